"""Writers that log nothing are detected by the tables they create, and no others are mistaken for them."""

from __future__ import annotations

import copy

import pytest
from sqlalchemy import delete

from hms_cache.cache import creation_watch
from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, table


def read(server: Server, name: str, database: str = "d") -> Reason:
    server.reads.clear()
    assert server.store.reads.tables.get_table(TableName(CATALOG, database, name)).tableName == name
    return server.reasons()[-1]


def create_without_an_event(server: Server, name: str) -> None:
    """What a metastore without a transactional listener leaves behind: the rows, and no event."""
    before = server.objects.reads.current_event_id()
    server.objects.writes.tables.create_table(table("d", name))
    with server.database.writing() as connection:
        connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID > before))
        connection.execute(NOTIFICATION_SEQUENCE.update().values(NEXT_EVENT_ID=before + 1))
        connection.commit()


@pytest.fixture
def here(servers: MakeServer) -> Server:
    elsewhere = servers()
    create_database(elsewhere.objects, "d")
    elsewhere.objects.writes.tables.create_table(table("d", "known"))
    server = servers()
    read(server, "known")
    return server


def test_a_table_that_no_event_told_of_ends_the_service_from_memory(here: Server, servers: MakeServer) -> None:
    elsewhere = servers(CacheOptions(max_staleness_s=0))
    elsewhere.poller.stop()
    elsewhere.database.commit_listeners.clear()
    create_without_an_event(elsewhere, "unlogged")
    assert read(here, "unlogged") is Reason.INCOMPLETE
    report = here.poller.status_report()
    assert report.status is PollerStatus.ERROR
    assert "unlogged writer" in report.reason and "hive.d.unlogged" in report.reason
    assert read(here, "known") is Reason.BEHIND_EVENTS
    elsewhere.objects.writes.tables.alter_table(
        TableName(CATALOG, "d", "known"), changed_table(elsewhere.objects, "d", "known", k="v")
    )
    assert here.store.reads.tables.get_table(TableName(CATALOG, "d", "known")).parameters["k"] == "v"
    # Once the writer has been dealt with, an operator resets the detection.
    here.poller.resync("the writer logs now")
    here.poller.step()
    assert [read(here, name) for name in ("unlogged", "known", "known")] == [Reason.MISS, Reason.MISS, Reason.HIT]


@pytest.mark.parametrize("stepped", [False, True], ids=["found by the read", "applied before"])
def test_tables_that_are_made_renamed_and_made_again_are_known(
    stepped: bool, here: Server, servers: MakeServer
) -> None:
    elsewhere = servers()
    create_database(elsewhere.objects, "e")
    elsewhere.objects.writes.tables.create_table(table("d", "a"))
    elsewhere.objects.writes.tables.create_table(table("d", "b"))
    moved = copy.deepcopy(elsewhere.objects.reads.tables.get_table(TableName(CATALOG, "d", "a")))
    moved.dbName, moved.tableName = "e", "moved"
    elsewhere.objects.writes.tables.alter_table(TableName(CATALOG, "d", "a"), moved)
    elsewhere.objects.writes.tables.create_table(table("d", "a"))
    elsewhere.objects.writes.tables.drop_table(TableName(CATALOG, "d", "b"), delete_data=True)
    elsewhere.objects.writes.tables.create_table(table("d", "b"))
    if stepped:
        here.poller.step()
    assert [read(here, name) for name in ("a", "b")] == [Reason.MISS] * 2
    assert read(here, "moved", "e") is Reason.MISS
    assert here.poller.status is PollerStatus.ACTIVE


def test_a_reset_and_a_forgotten_name_begin_the_watch_anew(
    here: Server, servers: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation_watch, "REMEMBERED_NAMES", 3)
    elsewhere = servers()
    for number in range(10):
        elsewhere.objects.writes.tables.create_table(table("d", f"t{number}"))
        if number % 4 == 0:
            here.poller.step()
        if number == 5:
            here.poller.resync("for the test")
            here.poller.step()
        assert read(here, f"t{number}") is Reason.MISS
    for number in range(10):
        here.cache.shared.forget_all()
        assert read(here, f"t{number}") is Reason.MISS
    assert here.poller.status is PollerStatus.ACTIVE


def test_a_table_that_was_there_at_the_start_may_have_any_id(servers: MakeServer) -> None:
    elsewhere = servers()
    create_database(elsewhere.objects, "d")
    for name in ("a", "b", "c"):
        elsewhere.objects.writes.tables.create_table(table("d", name))
    here = servers()
    assert [read(here, name) for name in ("c", "a", "b")] == [Reason.MISS] * 3
    assert here.poller.status is PollerStatus.ACTIVE
