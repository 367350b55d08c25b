"""What writers report: events that they fire, files that transactions wrote, changed rows, sources of views.

Java logs none of it here: its DbNotificationListener is in a jar that is not among those the tests fetch. The refusals
and answers are compared; the tests of notifications compare our messages with Hive's.
"""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CmRecycleRequest,
    CreateTableRequest,
    CreationMetadata,
    FireEventRequest,
    FireEventRequestData,
    GetAllWriteEventInfoRequest,
    InsertEventRequestData,
    SourceTable,
    UpdateTransactionalStatsRequest,
    WriteNotificationLogBatchRequest,
    WriteNotificationLogRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, partition, table, view
from tests.differential.reasons import LOST_WRITE
from tests.differential.scenarios.tables import get_table
from tests.differential.scenarios.transactions import allocate, begin, commit

WORLD = (
    call("create_database", database()),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string", "l:int"))),
    call("add_partitions", [partition("1", "1"), partition("a b", "2")]),
    call("create_table", view("v")),
)
FILES = InsertEventRequestData(filesAdded=["file:/d/p/1", "file:/d/p/2"], filesAddedChecksum=["a", "b"])


def fired(
    of: str | None = "t", place: str | None = "d", values: list[str] | None = None, *, differs: str = "", **fields: Any
) -> Call:
    given = {"insertData": FILES, **fields}
    request = FireEventRequest(True, FireEventRequestData(**given), place, of, values)
    return call("fire_listener_event", request, differs=differs, is_answer_compared=False)


FIRED = Scenario.of(
    "fired events",
    WORLD,
    [
        fired(of, place)
        for of, place in (("t", "d"), ("T", "D"), ("v", "d"), ("none", "d"), ("t", "none"), (None, "d"), ("t", None))
    ],
    [
        fired("p", values=values)
        for values in (["1", "1"], ["a b", "2"], ["1", "01"], ["none", "1"], ["1"], ["1", "2", "3"], [], None)
    ],
    fired("t", values=["1"]),
    [
        fired("p", insertData=None, insertDatas=[InsertEventRequestData(filesAdded=["f"], partitionVal=values)])
        for values in (["1", "1"], ["none", "1"], None)
    ],
    fired("p", insertData=None, insertDatas=[]),
    fired("t", insertData=None, insertDatas=[InsertEventRequestData(filesAdded=["f"])]),
    fired("t", insertData=InsertEventRequestData(filesAdded=[], replace=True)),
    fired("t", insertData=InsertEventRequestData(filesAdded=None)),
    fired("t", insertData=None, refreshEvent=True),
    fired("t", insertData=None, refreshEvent=False),
    fired("none", insertData=None, refreshEvent=True),
    fired("p", values=["1", "1"], insertData=None, refreshEvent=True),
    fired("t", insertData=None),
    call("fire_listener_event", FireEventRequest(True, None, "d", "t"), is_answer_compared=False),
    call(
        "fire_listener_event",
        FireEventRequest(True, FireEventRequestData(insertData=FILES), "d", "t", catName="hive"),
        is_answer_compared=False,
    ),
    call(
        "fire_listener_event",
        FireEventRequest(True, FireEventRequestData(insertData=FILES), "d", "t", catName="none"),
        is_answer_compared=False,
    ),
)


def wrote(
    of: str | None = "t",
    place: str | None = "d",
    values: list[str] | None = None,
    *,
    txn: int | None = 1,
    write_id: int | None = 1,
    files: InsertEventRequestData | None = FILES,
) -> WriteNotificationLogRequest:
    return WriteNotificationLogRequest(txn, write_id, place, of, files, values)


WRITES = (
    wrote(),
    wrote("T", "D"),
    wrote("p", values=["1", "1"]),
    wrote("p", values=["a b", "2"]),
    wrote("p"),
    wrote("none"),
    wrote(place="none"),
    wrote("p", values=["none", "1"]),
    wrote("p", values=["1"]),
    wrote("t", values=["1"]),
    wrote("v"),
    wrote(txn=99),
    wrote(write_id=99),
    wrote(files=None),
    wrote(files=InsertEventRequestData(filesAdded=[])),
    wrote(None),
    wrote(place=None),
    wrote(txn=None),
)


def told(
    catalog: str | None, place: str | None, of: str | None, *requests: WriteNotificationLogRequest, differs: str = ""
) -> Call:
    request = WriteNotificationLogBatchRequest(catalog, place, of, list(requests))
    return call("add_write_notification_log_in_batch", request, differs=differs)


NOTIFIED = Scenario.of(
    "written files",
    WORLD,
    begin(),
    allocate(1),
    allocate(1, of="p"),
    [call("add_write_notification_log", request) for request in WRITES],
    told("hive", "d", "p", wrote("p", values=["1", "1"]), wrote("p", values=["a b", "2"])),
    told("hive", "D", "P", wrote("P", "D", values=["1", "1"])),
    told("hive", "d", "p", wrote("p", values=["1", "1"]), wrote("p", values=["none", "1"]), differs=LOST_WRITE),
    told("hive", "d", "t", wrote()),
    told("hive", "d", "t"),
    told("hive", "d", "none", wrote("none")),
    told("hive", "none", "t", wrote(place="none")),
    told("none", "d", "t", wrote()),
    told("", "d", "t", wrote()),
    told(None, "d", "t", wrote()),
    commit(1),
    call("add_write_notification_log", wrote()),
    call("get_all_write_event_info", GetAllWriteEventInfoRequest(98)),
    call("get_all_write_event_info", GetAllWriteEventInfoRequest(None)),
)


def made_from(*names: str, **fields: Any) -> CreationMetadata:
    given = {"catName": "hive", "dbName": "d", "tblName": "mv", "tablesUsed": set(names), **fields}
    return CreationMetadata(**given)


def sources(place: str | None, of: str | None, made: CreationMetadata | None, catalog: str | None = "hive") -> Call:
    return call("update_creation_metadata", catalog, place, of, made)


VIEW = get_table("d", "mv", is_ordered=False)

SOURCES = Scenario.of(
    "sources of views",
    WORLD,
    call(
        "create_table",
        view("mv", tableType="MATERIALIZED_VIEW", rewriteEnabled=True, creationMetadata=made_from("d.t")),
    ),
    VIEW,
    sources("d", "mv", made_from("d.t", "d.p", validTxnList="d.t:1:9223372036854775807::")),
    VIEW,
    sources("D", "MV", made_from("d.p")),
    VIEW,
    sources("d", "mv", made_from("d.p", sourceTables=[SourceTable(table("p"), 1, 0, 0)])),
    VIEW,
    sources("d", "mv", made_from("d.t", tblName="other", dbName="elsewhere")),
    VIEW,
    sources("d", "mv", made_from()),
    VIEW,
    sources("d", "mv", made_from("d.none")),
    VIEW,
    sources("d", "none", made_from("d.t")),
    sources("none", "mv", made_from("d.t")),
    sources("d", "t", made_from("d.t")),
    sources("d", "v", made_from("d.t")),
    sources("d", "mv", None),
    sources("d", "mv", made_from("d.t"), "none"),
    sources(None, "mv", made_from("d.t")),
    sources("d", None, made_from("d.t")),
    VIEW,
    sources("d", "mv", made_from("d.t"), None),
    call("drop_table", "d", "mv", True),
)

CHANGED_ROWS = Scenario.of(
    "changed rows",
    WORLD,
    [
        call("update_transaction_statistics", UpdateTransactionalStatsRequest(identity, 1, 2, 3))
        for identity in (1_000_000, 0, -1)
    ],
    call("update_transaction_statistics", UpdateTransactionalStatsRequest(None, 1, 2, 3)),
    call("update_transaction_statistics", UpdateTransactionalStatsRequest(1_000_000, None, None, None)),
    call("cm_recycle", CmRecycleRequest("{warehouse}/x", True)),
    call("cm_recycle", CmRecycleRequest("{warehouse}/x", False)),
    [
        call("translate_table_dryrun", CreateTableRequest(made))
        for made in (table("new"), table("new", dbName="none"), table("t"), view("new"), table(None))
    ],
)

SCENARIOS = (FIRED, NOTIFIED, SOURCES, CHANGED_ROWS)
