"""The notification log for users who are not services: nothing that they may not see, in any event."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any

import pytest

from hms_cache.metadata.names import normalize_identifier
from hms_cache.server.authorization import events as shown
from hms_cache.server.authorization.events import HIDDEN
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Serve, database, table
from tests.server.test_authorization import World, outcome

HIDDEN_NAMES = ("secret", "closed", "hidden")


@pytest.fixture(params=["json-0.2", "gzip(json-2.0)"])
def world(serve: Serve, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    def start(**settings: Any) -> Any:
        return serve(**settings, **{"events.message_format": request.param})

    made = World(start, tmp_path / "policy.toml")
    root = made.root
    renamed = root.call("get_table", dbname="open", tbl_name="pub")
    for old, new in (("pub", "secret_pub"), ("secret_pub", "pub")):  # hidden, and visible again
        renamed.tableName = new
        root.call("alter_table", dbname="open", tbl_name=old, new_tbl=renamed)
    primary = t.SQLPrimaryKey("open", "secret", "a", 1, "pk_secret", True, False, False, catName="hive")
    root.call("add_primary_key", req=t.AddPrimaryKeyRequest([primary]))
    key = t.SQLForeignKey(
        *("open", "secret", "a", "open", "pub", "a", 1, 0, 0, "fk_hidden", "pk_secret", True, False, False),
        catName="hive",
    )
    root.call("add_foreign_key", req=t.AddForeignKeyRequest([key]))
    txn = root.call("open_txns", rqst=t.OpenTxnRequest(1, "root", "h")).txn_ids[0]
    root.call("allocate_table_write_ids", rqst=t.AllocateTableWriteIdsRequest("open", "secret", [txn]))
    root.call("commit_txn", rqst=t.CommitTxnRequest(txn))
    root.call("create_table", tbl=table("open", "pub2"))
    root.call("drop_table", dbname="open", name="secret", deleteData=True)
    root.call("create_database", database=database("closed2"))
    root.call("drop_database", name="closed2", deleteData=True, cascade=True)
    return made


def events(world: World, user: str, **request: Any) -> list[t.NotificationEvent]:
    requested = t.NotificationEventRequest(**{"lastEvent": 0, **request})
    found: list[t.NotificationEvent] = world.link(user).call("get_next_notification", rqst=requested).events
    return found


def text(event: t.NotificationEvent) -> str:
    message = event.message
    if (event.messageFormat or "").startswith("gzip"):
        message = gzip.decompress(base64.b64decode(message)).decode()
    return f"{event.catName} {event.dbName} {event.tableName} {message}"


def test_other_events_keep_their_ids_and_nothing_else(world: World) -> None:
    everything, shown = events(world, "hs2"), events(world, "ann")
    assert [one.eventId for one in shown] == [one.eventId for one in everything]
    original = {one.eventId: one for one in everything}
    for one in shown:
        names = any(name in text(original[one.eventId]) for name in HIDDEN_NAMES)
        if one.eventType == HIDDEN:
            expected = t.NotificationEvent(one.eventId, one.eventTime, HIDDEN, None, None, "{}", "json-0.2", None)
            assert one == expected and names, text(original[one.eventId])
        else:
            assert one == original[one.eventId] and not names, text(one)
    kinds = [one.eventType for one in shown]
    assert kinds.count("CREATE_TABLE") == 2 and "ALTER_TABLE" not in kinds and "ADD_FOREIGNKEY" not in kinds
    assert {"CREATE_DATABASE", "CREATE_FUNCTION", "OPEN_TXN", "COMMIT_TXN"} <= set(kinds)
    assert all(one.eventType != HIDDEN for one in events(world, "hs2"))


def test_filters_tell_nothing_of_other_events(world: World) -> None:
    for filters in (
        {"tableNames": ["secret"]},
        {"dbName": "closed"},
        {"dbName": "closed", "maxEvents": 1},
        {"eventTypeList": ["ADD_FOREIGNKEY"]},
        {"eventTypeList": ["ADD_FOREIGNKEY"], "maxEvents": 1},
        {"eventTypeSkipList": sorted({one.eventType for one in events(world, "hs2")} - {"DROP_TABLE"})},
    ):
        assert events(world, "hs2", **filters), filters
        assert events(world, "ann", **filters) == [], filters
    found = events(world, "ann", dbName="OPEN ", eventTypeList=["CREATE_TABLE"], maxEvents=1)
    assert [(one.tableName, one.eventType) for one in found] == [("pub", "CREATE_TABLE")]
    rest = events(world, "ann", eventTypeList=["CREATE_TABLE"], lastEvent=found[0].eventId)
    assert [one.tableName for one in rest] == ["pub2"]
    assert len(events(world, "ann", maxEvents=3)) == 3


def test_counts_are_for_services(world: World) -> None:
    request = t.NotificationEventsCountRequest(0, "open")
    assert "Permission denied" in outcome(world.link("ann"), "get_notification_events_count", rqst=request)[1]
    assert world.link("ann").call("get_current_notificationEventId").eventId > 5


def test_a_filter_is_made_once_however_many_events_there_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may name thousands of tables, and there may be as many events."""
    names = [f"t{number}" for number in range(10_000)]
    root, hs2 = world.link("root"), world.link("hs2")
    counted = [0]

    def counting(name: str) -> str:
        counted[0] += 1
        return normalize_identifier(name)

    monkeypatch.setattr(shown, "normalize_identifier", counting)
    found = root.call("get_next_notification", rqst=t.NotificationEventRequest(0, tableNames=[*names[1:], "PUB "]))
    assert [one.tableName for one in found.events if one.tableName] == ["pub", "pub"]
    assert counted[0] <= len(names) + 10
    for user in (root, hs2):
        for field in ("tableNames", "eventTypeList", "eventTypeSkipList"):
            requested = t.NotificationEventRequest(0, **{field: [*names, "more"]})
            assert "limits.request_tables" in outcome(user, "get_next_notification", rqst=requested)[1], field


def test_a_filter_that_shows_nothing_holds_a_page_of_the_log_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [t.NotificationEvent(number, 1, "OPEN_TXN", None, None, "{}") for number in range(1, 100_001)]
    log[-1].tableName = "wanted"
    monkeypatch.setattr(shown, "_visible", lambda _decisions, page: [True] * len(page))
    pages: list[int] = []

    def ask(request: t.NotificationEventRequest) -> t.NotificationEventResponse:
        most = request.maxEvents or len(log)
        pages.append(len(page := log[request.lastEvent : request.lastEvent + most]))
        return t.NotificationEventResponse(page)

    last, found = 0, []
    while not found:
        requested = t.NotificationEventRequest(last, tableNames=["wanted"])
        before = len(pages)
        [event] = shown.shown_events(None, requested, ask).events  # type: ignore[arg-type]
        assert len(pages) - before <= shown.MAX_PAGES
        last = event.eventId
        found = [event] if event.eventType != HIDDEN else []
    assert found == [log[-1]]
    assert max(pages) <= shown.EVENTS_OF_A_PAGE < len(log) // shown.MAX_PAGES
