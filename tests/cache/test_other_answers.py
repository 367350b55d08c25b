"""P3, P4: reads include what the client has learned before by other means than cached reads.

A reader of the log learns of an event, a writer that its table already exists: neither may then get an older state, at
any `max_staleness`. Otherwise, a program that follows the log and reads again what an event names would keep the old
state permanently.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reasons import Reason
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.server.calls import Call, Kind, changes_catalog
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, partition, table

T = TableName(CATALOG, "d", "t")
KEYS = (("p", "string"),)
HANDLERS = all_handlers()
TOLD_BY_READS: dict[str, dict[str, Any]] = {
    "get_catalog": {"catName": ttypes.GetCatalogRequest(CATALOG)},
    "get_catalogs": {},
    "get_current_notificationEventId": {},
    "get_next_notification": {"rqst": ttypes.NotificationEventRequest(0)},
    "get_notification_events_count": {"rqst": ttypes.NotificationEventsCountRequest(0, "*")},
    "isPartitionMarkedForEvent": {"db_name": "d", "tbl_name": "t", "part_vals": {"p": "2"}, "eventType": 1},
}
FOUND_DONE: dict[str, dict[str, Any]] = {
    "add_partitions_req": {
        "request": ttypes.AddPartitionsRequest("d", "t", [partition(table("d", "t", KEYS), ("2",))], True)
    },
    "drop_database_req": {
        "req": ttypes.DropDatabaseRequest("gone", ignoreUnknownDb=True, deleteData=False, cascade=False)
    },
    "drop_partitions_req": {
        "req": ttypes.DropPartitionsRequest("d", "t", ttypes.RequestPartsSpec(names=["p=1"]), ifExists=True)
    },
}
REFUSED: dict[str, dict[str, Any]] = {
    "add_partition": {"new_part": partition(table("d", "t", KEYS), ("2",))},
    "append_partition": {"db_name": "d", "tbl_name": "t", "part_vals": ["2"]},
    "create_database": {"database": ttypes.Database(name="made", description="", parameters={})},
    "create_table": {"tbl": table("d", "made")},
    "drop_database": {"name": "gone", "deleteData": False, "cascade": False},
    "drop_partition": {"db_name": "d", "tbl_name": "t", "part_vals": ["1"], "deleteData": False},
    "drop_table": {"dbname": "d", "name": "gone", "deleteData": False},
    "fire_listener_event": {
        "rqst": ttypes.FireEventRequest(
            True, ttypes.FireEventRequestData(insertData=ttypes.InsertEventRequestData(["f"])), "d", "gone"
        )
    },
}
"""Writes of what `elsewhere` has written by then."""


@pytest.fixture(params=[1_000_000.0, float("inf")], ids=["a number", "inf"])
def pair(request: pytest.FixtureRequest, servers: MakeServer) -> tuple[Server, Server]:
    """`here` has the catalog in memory, and does not have to check for the changes that `elsewhere` has made since."""
    here, elsewhere = servers(CacheOptions(max_staleness_s=request.param)), servers()
    for name in ("d", "gone"):
        create_database(elsewhere.objects, name)
    for name in ("t", "gone"):
        elsewhere.objects.writes.tables.create_table(table("d", name, KEYS))
    elsewhere.objects.writes.partitions.add_partitions(T, [partition(table("d", "t"), ("1",))])
    here.poller.step()
    shown(here)
    return here, elsewhere


def change(server: Server) -> None:
    writes = server.objects.writes
    create_database(server.objects, "made")
    writes.databases.drop_database(DatabaseName(CATALOG, "gone"), delete_data=False, cascade=False)
    writes.tables.create_table(table("d", "made"))
    writes.tables.drop_table(TableName(CATALOG, "d", "gone"), delete_data=False)
    writes.partitions.add_partitions(T, [partition(table("d", "t"), ("2",))])
    writes.partitions.drop_partitions(T, ByNames(("p=1",)), delete_data=False)


def shown(server: Server) -> tuple[list[str], list[str], list[str]]:
    """What `change` changes, without a read that the database answers, after which the next one would check."""
    reads = server.store.reads
    names = reads.databases.get_database_names(CATALOG), reads.tables.get_table_names(DatabaseName(CATALOG, "d"))
    return *names, list(reads.partitions.get_partition_names(PartitionQuery(T)))


def call(server: Server, method: str, **arguments: Any) -> None:
    stores = Stores(server.store.reads, server.store.writes, None, server.log, None, server.auxiliary)  # type: ignore[arg-type]
    HANDLERS[method].function(Call(method, Session("test"), stores), METHODS[method].args_class(**arguments))


@pytest.mark.parametrize("method", TOLD_BY_READS)
def test_who_is_told_of_a_change_sees_it_from_then_on(pair: tuple[Server, Server], method: str) -> None:
    here, elsewhere = pair
    before = shown(here)
    change(elsewhere)
    assert shown(here) == before, "readers may be shown what was"
    call(here, method, **TOLD_BY_READS[method])
    assert shown(here) == shown(elsewhere)


@pytest.mark.parametrize("method", ["get_current_notificationEventId", "get_next_notification"])
def test_what_memory_has_applied_takes_no_question(pair: tuple[Server, Server], method: str) -> None:
    """A program that reads the end of the log each second must neither make each server check, nor fail in an
    outage."""
    here, elsewhere = pair
    change(elsewhere)
    here.poller.step()
    shown(here)
    checks = here.cache.check.checks
    call(here, method, **TOLD_BY_READS[method])
    assert shown(here) == shown(elsewhere)
    assert here.cache.check.checks == checks


@pytest.mark.parametrize("method", FOUND_DONE)
def test_a_write_that_finds_its_work_done_is_seen(pair: tuple[Server, Server], method: str) -> None:
    here, elsewhere = pair
    change(elsewhere)
    call(here, method, **FOUND_DONE[method])
    assert shown(here) == shown(elsewhere)


@pytest.mark.parametrize("method", REFUSED)
def test_what_a_write_is_refused_for_is_seen(pair: tuple[Server, Server], method: str) -> None:
    here, elsewhere = pair
    change(elsewhere)
    with pytest.raises((ttypes.AlreadyExistsException, ttypes.NoSuchObjectException)):
        call(here, method, **REFUSED[method])
    assert shown(here) == shown(elsewhere)


def test_every_write_that_is_refused_has_reads_ask(servers: MakeServer) -> None:
    here = servers(CacheOptions(max_staleness_s=float("inf")))
    freshness = here.cache.freshness
    writes = [name for name, one in HANDLERS.items() if one.kind is Kind.WRITE and changes_catalog(name)]
    assert len(writes) > 100
    assert freshness.is_check_required()  # since it began
    unseen = []
    for method in writes:
        here.poller.step()
        assert not freshness.is_check_required()
        with suppress(Exception):
            call(here, method)
        if not freshness.is_check_required():
            unseen.append(method)
    assert unseen == []


def test_a_log_without_news_and_an_outage_tell_nothing(pair: tuple[Server, Server]) -> None:
    here, _ = pair
    here.poller.step()
    end = here.log.current_event_id()
    call(here, "get_next_notification", rqst=ttypes.NotificationEventRequest(end))
    assert not here.cache.freshness.is_check_required()
    create = here.objects.writes.tables.create_table

    def unavailable(*arguments: Any, **options: Any) -> None:
        raise DatabaseUnavailableError("for the test")

    here.objects.writes.tables.create_table = unavailable  # type: ignore[method-assign]
    with pytest.raises(DatabaseUnavailableError):
        call(here, "create_table", tbl=table("d", "x"))
    here.objects.writes.tables.create_table = create  # type: ignore[method-assign]
    assert not here.cache.freshness.is_check_required()
    here.reasons()
    shown(here)
    assert set(here.reasons()) == {Reason.HIT}
