"""Calls of clients that are not run in the tests, from their sources: a row for each client and call, with what it
expects.

Clients that use Hive's Java client are listed with the calls that this client makes for them: those of Hive 3.1 name
the catalog before the database, those of 2.3 do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from thrift.Thrift import TException

from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.notifications.tjson import read_struct
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve

TEXT_INPUT, TEXT_OUTPUT = "org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyText"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
IMPALA_READS_AND_WRITES = [
    "EXTWRITE",
    "EXTREAD",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "HIVESQL",
    "HIVEMQT",
]
ICEBERG, PAIMON, HUDI = (
    f'hive_filter_field_params__{parameter} like "{value}"'
    for parameter, value in (("table_type", "ICEBERG"), ("table_type", "PAIMON"), ("provider", "hudi"))
)


def columns(*names: str) -> list[ttypes.FieldSchema]:
    return [ttypes.FieldSchema(name, "string", "") for name in names]


def descriptor(**more: Any) -> ttypes.StorageDescriptor:
    """Only what Doris and XTable set; Java's client always writes numbers and booleans."""
    return ttypes.StorageDescriptor(
        cols=columns("a", "b"),
        inputFormat=TEXT_INPUT,
        outputFormat=TEXT_OUTPUT,
        compressed=False,
        numBuckets=0,
        serdeInfo=ttypes.SerDeInfo(serializationLib=SERDE),
        **more,
    )


def table(name: str, keys: tuple[str, ...] = ("year", "month"), **more: Any) -> ttypes.Table:
    """As Doris creates it: its creation time does not fit into the field, and has become negative."""
    values = {"createTime": -1843204096, "lastAccessTime": -1843204096, "tableType": "MANAGED_TABLE", "parameters": {}}
    return ttypes.Table(name, "d", sd=descriptor(), partitionKeys=columns(*keys), **{**values, **more})


def partition(*values: str, **more: Any) -> ttypes.Partition:
    """As XTable creates it: without parameters."""
    return ttypes.Partition(list(values), "d", "t", createTime=0, lastAccessTime=0, sd=descriptor(**more))


def values_of(partitions: list[ttypes.Partition]) -> list[tuple[str, ...]]:
    return [tuple(one.values) for one in partitions]


class Row(NamedTuple):
    """A call of a client. `reads`: what the client reads from the answer, which must be `expected`; or the exception
    that it expects, with the words that it searches for, in lower case."""

    client: str
    method: str
    arguments: dict[str, Any]
    expected: Any = None
    reads: Callable[[Any], Any] = lambda answer: answer


class Refused(NamedTuple):
    """An exception whose text contains all of these words."""

    kind: type[TException]
    words: tuple[str, ...]


NO_OBJECT, EXISTS = ttypes.NoSuchObjectException, ttypes.AlreadyExistsException
PATH = "year=2024/month=01/"
"""Kafka Connect's time-based partitioners leave a slash at the end, depending on their format."""

ROWS = [
    # StarRocks, with Hive 3.1's client
    Row("StarRocks", "get_databases", {"pattern": "@hive#"}, ["d", "default"]),
    Row("StarRocks", "get_all_tables", {"db_name": "@hive#d"}, ["t", "u"]),
    Row("StarRocks", "get_database", {"name": "@hive#d"}, "d", lambda found: found.name),
    Row("StarRocks", "get_database", {"name": "@hive#e"}, Refused(NO_OBJECT, ("database",))),
    Row("StarRocks", "get_partition_names", {"db_name": "@hive#d", "tbl_name": "t", "max_parts": -1},
        ["year=2023/month=12", "year=2024/month=01", "year=2024/month=02"]),
    Row("StarRocks", "get_partition_names_ps",
        {"db_name": "@hive#d", "tbl_name": "t", "part_vals": ["", "01"], "max_parts": -1}, ["year=2024/month=01"]),
    Row("StarRocks", "get_partitions_by_filter",
        {"db_name": "@hive#d", "tbl_name": "t", "filter": "year = '2024'", "max_parts": -1},
        [("2024", "01"), ("2024", "02")], values_of),
    Row("StarRocks", "get_partitions_statistics_req", {"request": ttypes.PartitionsStatsRequest(
        "d", "t", ["a"], ["year=2024/month=01", "year=2024/month=09"], catName="hive")}, {},
        lambda found: found.partStats),
    Row("StarRocks", "create_table_with_environment_context", {"tbl": table("s", (), catName="hive", parameters={
        "numRows": "0", "totalSize": "0", "starrocks_version": "3"}), "environment_context": None}),
    Row("StarRocks", "get_table_req", {"req": ttypes.GetTableRequest("d", "s", catName="hive",
        capabilities=ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]))}, "3",
        lambda found: found.table.parameters["starrocks_version"]),
    Row("StarRocks", "add_partitions", {"new_parts": [partition("2025", "01")]}, 1),
    Row("StarRocks", "drop_partition_with_environment_context",
        {"db_name": "@hive#d", "tbl_name": "t", "part_vals": ["2025", "01"], "deleteData": False,
         "environment_context": None}, True),
    # Doris, with Hive 2.3's or 3.1's client
    Row("Doris", "create_database", {"database": ttypes.Database("e", None, None, {}, catalogName="hive")}),
    Row("Doris", "create_table_with_constraints", {"tbl": table("dv", (), catName="hive"), "defaultConstraints": [
        ttypes.SQLDefaultConstraint("hive", "d", "dv", "a", "7", "a_dv_constraint", False, False, False)]}),
    Row("Doris", "get_default_constraints", {"request": ttypes.DefaultConstraintsRequest("hive", "d", "dv")},
        [("a", "7", "a_dv_constraint")],
        lambda found: [(one.column_name, one.default_value, one.dc_name) for one in found.defaultConstraints]),
    Row("Doris", "get_default_constraints", {"request": ttypes.DefaultConstraintsRequest("hive", "d", "t")}, [],
        lambda found: found.defaultConstraints),
    Row("Doris", "get_table", {"dbname": "@hive#d", "tbl_name": "dv"}, True, lambda found: found.createTime > 0),
    Row("Doris", "get_table_statistics_req", {"request": ttypes.TableStatsRequest("d", "dv", ["a"], catName="hive")},
        [], lambda found: found.tableStats),
    Row("Doris", "get_partitions_by_names",
        {"db_name": "@hive#d", "tbl_name": "t",
         "names": ["year=2024/month=02", "year=2023/month=12", "year=1/month=1"]},
        {("2023", "12"), ("2024", "02")}, lambda found: set(values_of(found))),
    Row("Doris", "get_partitions", {"db_name": "@hive#d", "tbl_name": "t", "max_parts": -1}, 3, len),
    Row("Doris", "truncate_table", {"dbName": "@hive#d", "tableName": "t", "partNames": None}),
    Row("Doris", "truncate_table", {"dbName": "@hive#d", "tableName": "t", "partNames": ["year=2024/month=02"]}),
    Row("Doris", "get_open_txns", {}, 0, lambda found: found.txn_high_water_mark),
    Row("Doris", "get_valid_write_ids", {"rqst": ttypes.GetValidWriteIdsRequest(
        ["d.t"], "9223372036854775807:9223372036854775807::")}, [("d.t", 0)],
        lambda found: [(one.fullTableName, one.writeIdHighWaterMark) for one in found.tblValidWriteIds]),
    Row("Doris", "get_catalog", {"catName": ttypes.GetCatalogRequest("hive")}, True,
        lambda found: bool(found.catalog.locationUri)),
    Row("Doris", "drop_database", {"name": "@hive#e", "deleteData": True, "cascade": False}),
    # Impala, built with Cloudera's Hive 3 (its default)
    Row("Impala", "get_config_value", {"name": "metastore.catalog.default", "defaultValue": ""}, "hive"),
    Row("Impala", "get_config_value", {"name": "hive.metastore.notifications.add.thrift.objects", "defaultValue": ""},
        "true"),
    Row("Impala", "get_config_value", {"name": "hive.metastore.alter.notifications.basic", "defaultValue": ""},
        "false"),
    Row("Impala", "get_config_value",
        {"name": "hive.metastore.notification.parameters.exclude.patterns", "defaultValue": ""}, ""),
    Row("Impala", "get_table_statistics_req",
        {"request": ttypes.TableStatsRequest("d", "u", ["a"], catName="hive", engine="impala")}, [],
        lambda found: found.tableStats),
    Row("Impala", "truncate_table_req",
        {"req": ttypes.TruncateTableRequest("d", "u", [], writeId=-1, validWriteIdList=None)}, True,
        lambda found: found is not None),
    Row("Impala", "get_latest_committed_compaction_info",
        {"rqst": ttypes.GetLatestCommittedCompactionInfoRequest("d", "u")}, [], lambda found: found.compactions),
    # waggle-dance forwards what its clients send, with the names of its databases replaced
    Row("waggle-dance", "set_ugi", {"user_name": "ann", "group_names": ["g"]}, ["g"]),
    Row("waggle-dance", "getStatus", {}, 2),
    Row("waggle-dance", "get_table_meta", {"db_patterns": "d", "tbl_patterns": "*", "tbl_types": []},
        [("d", "t"), ("d", "u")], lambda found: [(one.dbName, one.tableName) for one in found]),
    Row("waggle-dance", "add_partitions", {"new_parts": []}, 0),
    Row("waggle-dance", "get_table_objects_by_name", {"dbname": "d", "tbl_names": ["u", "none", "t"]}, {"t", "u"},
        lambda found: {one.tableName for one in found}),
    Row("waggle-dance", "get_primary_keys", {"request": ttypes.PrimaryKeysRequest("d", "t")}, [],
        lambda found: found.primaryKeys),
    Row("waggle-dance", "get_foreign_keys", {"request": ttypes.ForeignKeysRequest(None, None, "d", "t")}, [],
        lambda found: found.foreignKeys),
    # Gravitino decides by the exception, and by a word in its text, what does not exist
    Row("Gravitino", "get_catalogs", {}, ["hive"], lambda found: found.names),
    Row("Gravitino", "get_table_names_by_filter",
        {"dbname": "@hive#d", "filter": f"{ICEBERG} or {PAIMON} or {HUDI}", "max_tables": -1}, []),
    Row("Gravitino", "create_database", {"database": ttypes.Database("d", catalogName="hive")},
        Refused(EXISTS, ("database",))),
    Row("Gravitino", "create_table", {"tbl": table("t", catName="hive")}, Refused(EXISTS, ("table",))),
    Row("Gravitino", "add_partition", {"new_part": partition("2024", "01")}, Refused(EXISTS, ("partition",))),
    Row("Gravitino", "drop_database", {"name": "@hive#d", "deleteData": True, "cascade": False},
        Refused(ttypes.InvalidOperationException, ("not empty", "database"))),
    Row("Gravitino", "drop_database", {"name": "@hive#e", "deleteData": True, "cascade": False},
        Refused(NO_OBJECT, ("database",))),
    Row("Gravitino", "get_table", {"dbname": "@hive#d", "tbl_name": "none"}, Refused(NO_OBJECT, ("table",))),
    Row("Gravitino", "get_partition", {"db_name": "@hive#d", "tbl_name": "t", "part_vals": ["1", "1"]},
        Refused(NO_OBJECT, ("partition",))),
    Row("Gravitino", "get_partition", {"db_name": "@hive#d", "tbl_name": "t", "part_vals": ["1"]},
        Refused(ttypes.MetaException, ("invalid partition key",))),
    Row("Gravitino", "drop_partition",
        {"db_name": "@hive#d", "tbl_name": "t", "part_vals": ["1", "1"], "deleteData": True},
        Refused(NO_OBJECT, ("partition",))),
    # Kafka Connect's HDFS sink, with Hive 2.3's client
    Row("Kafka Connect", "append_partition_by_name", {"db_name": "d", "tbl_name": "t", "part_name": PATH},
        Refused(EXISTS, ())),
    Row("Kafka Connect", "drop_partition_by_name",
        {"db_name": "d", "tbl_name": "t", "part_name": PATH, "deleteData": False}, True),
    Row("Kafka Connect", "append_partition_by_name", {"db_name": "d", "tbl_name": "t", "part_name": PATH}, (
        ["2024", "01"], "month=01"), lambda found: (found.values, found.sd.location.rpartition("/")[2])),
    Row("Kafka Connect", "get_partition_by_name", {"db_name": "d", "tbl_name": "t", "part_name": PATH}, ["2024", "01"],
        lambda found: found.values),
    # XTable
    Row("XTable", "add_partitions_req", {"request": ttypes.AddPartitionsRequest(
        "d", "t", [partition("2024", "01"), partition("2026", "01")], True, needResult=False)},
        None, lambda found: found.partitions),
    Row("XTable", "alter_partitions", {"db_name": "d", "tbl_name": "t", "new_parts": [partition("2026", "01")]}),
    Row("XTable", "get_partitions", {"db_name": "d", "tbl_name": "t", "max_parts": -1}, 4, len),
    # Beekeeper, Drill, Dremio
    Row("Beekeeper", "drop_partition_by_name",
        {"db_name": "d", "tbl_name": "t", "part_name": "year=1/month=1", "deleteData": False}, Refused(NO_OBJECT, ())),
    Row("Beekeeper", "drop_table", {"dbname": "d", "name": "none", "deleteData": True}, Refused(NO_OBJECT, ())),
    Row("Drill", "get_table_objects_by_name_req", {"req": ttypes.GetTablesRequest("d", ["u", "t"])}, {"t", "u"},
        lambda found: {one.tableName for one in found.tables}),
    Row("Drill", "get_table_objects_by_name", {"dbname": "none", "tbl_names": ["t"]},
        Refused(ttypes.UnknownDBException, ())),
    Row("Dremio", "get_partition_names", {"db_name": "d", "tbl_name": "none", "max_parts": -1}, []),
    # `hive-metastore-client` of QuintoAndar, and DataHub: if no table is named, DataHub calls `get_all_tables`
    Row("hive-metastore-client", "create_table", {"tbl": table("x", tableType="EXTERNAL_TABLE", parameters={
        "EXTERNAL": "TRUE"})}),
    Row("hive-metastore-client", "add_partitions", {"new_parts": [partition("2024", "01")]}, Refused(EXISTS, ())),
    Row("DataHub", "get_table_objects_by_name_req", {"req": ttypes.GetTablesRequest("d", catName="hive")},
        Refused(ttypes.InvalidOperationException, ())),
]  # fmt: skip


@pytest.fixture
def link(serve: Serve) -> Link:
    """With a database `d`, a table `t` of three partitions and a table `u` without keys."""
    link = serve().link()
    link.call("create_database", database=ttypes.Database("d", None, None, {}))
    link.call("create_table", tbl=table("t"))
    link.call("create_table", tbl=table("u", ()))
    months = (("2023", "12"), ("2024", "01"), ("2024", "02"))
    link.call("add_partitions", new_parts=[partition(*month) for month in months])
    return link


@pytest.mark.parametrize("client", list(dict.fromkeys(row.client for row in ROWS)))
def test_calls(link: Link, client: str) -> None:
    """The calls in their order, on one connection."""
    for row in (row for row in ROWS if row.client == client):
        call = f"{row.method} {row.arguments}"
        if isinstance(row.expected, Refused):
            with pytest.raises(row.expected.kind) as raised:
                link.call(row.method, **row.arguments)
            text = str(raised.value.message).lower()  # type: ignore[attr-defined]
            assert all(word in text for word in row.expected.words), (call, text)
        else:
            assert row.reads(link.call(row.method, **row.arguments)) == row.expected, call


def test_doris_asks_for_fewer_partitions_if_the_text_says_so(serve: Serve) -> None:
    link = serve(**{"catalog.partition_request_limit": 1}).link()
    link.call("create_database", database=ttypes.Database("d"))
    link.call("create_table", tbl=table("t"))
    link.call("add_partitions", new_parts=[partition("1", "1"), partition("1", "2")])
    with pytest.raises(ttypes.MetaException) as raised:
        link.call("get_partitions_by_filter", db_name="d", tbl_name="t", filter="year = '1'", max_parts=-1)
    text = raised.value.message.lower()
    assert "partitions scanned" in text and "exceeds limit" in text


# ---- the log ----


class Read(NamedTuple):
    """What StarRocks, Doris and Impala read from an event: the partitions are decoded with the keys of the table in
    it."""

    kind: str
    database: str | None
    table: str | None
    objects: tuple[str, ...]
    partitions: tuple[str, ...] = ()


_STRUCTS = {
    "dbJson": ttypes.Database,
    "dbObjBeforeJson": ttypes.Database,
    "dbObjAfterJson": ttypes.Database,
    "tableObjJson": ttypes.Table,
    "tableObjBeforeJson": ttypes.Table,
    "tableObjAfterJson": ttypes.Table,
    "partitionObjBeforeJson": ttypes.Partition,
    "partitionObjAfterJson": ttypes.Partition,
    "ptnObjJson": ttypes.Partition,
}

_REQUIRED = {
    "CREATE_DATABASE": ("dbJson",),
    "ALTER_DATABASE": ("dbObjBeforeJson", "dbObjAfterJson"),
    "DROP_DATABASE": ("dbJson",),
    "CREATE_TABLE": ("tableObjJson",),
    "ALTER_TABLE": ("tableObjBeforeJson", "tableObjAfterJson"),
    "DROP_TABLE": ("tableObjJson",),
    "ADD_PARTITION": ("tableObjJson", "partitionListJson", "partitions"),
    "ALTER_PARTITION": ("tableObjJson", "partitionObjBeforeJson", "partitionObjAfterJson", "keyValues"),
    "DROP_PARTITION": ("tableObjJson", "partitions"),
    "INSERT": ("tableObjJson", "replace"),
    "RELOAD": ("tableObjJson", "refreshEvent"),
}
"""Without one of these, at least one of them cannot read the event, and stops or reads everything anew."""


def read_of(event: ttypes.NotificationEvent) -> Read:
    assert (event.messageFormat, event.catName) == ("json-0.2", "hive")  # Doris: no "gzip" at the beginning
    message = json.loads(event.message)
    assert all(message.get(name) is not None for name in _REQUIRED[event.eventType]), event
    objects = {name: read_struct(message[name], kind) for name, kind in _STRUCTS.items() if message.get(name)}
    named: list[str] = []
    if "tableObjJson" in objects:
        keys = [key.name for key in objects["tableObjJson"].partitionKeys]
        listed = [read_struct(one, ttypes.Partition) for one in message.get("partitionListJson", ())]
        changed = [objects[name] for name in ("partitionObjAfterJson", "ptnObjJson") if name in objects]
        named = [make_partition_name(keys, one.values) for one in (*listed, *changed)]
        if not named:
            named = [make_partition_name(keys, [one[key] for key in keys]) for one in message.get("partitions", ())]
    names = tuple(one.name if isinstance(one, ttypes.Database) else one.tableName for one in objects.values())
    return Read(event.eventType, event.dbName, event.tableName, names, tuple(named))


def followed(link: Link, after: int, page: int) -> Iterator[ttypes.NotificationEvent]:
    """Like Hive's client, which stops at a gap, and like Impala, which reads until the current event."""
    last = link.call("get_current_notificationEventId").eventId
    while after < last:
        request = ttypes.NotificationEventRequest(after, min(page, last - after))
        events = link.call("get_next_notification", rqst=request).events
        assert [event.eventId for event in events] == list(range(after + 1, after + 1 + len(events))) != []
        yield from events
        after = events[-1].eventId


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_following_the_log(link: Link, page: int) -> None:
    start = link.call("get_current_notificationEventId").eventId
    month = "year=2024/month=01"
    altered = link.call("get_partition_by_name", db_name="d", tbl_name="t", part_name=month)
    renamed = link.call("get_table", dbname="d", tbl_name="u")
    renamed.tableName = "v"
    inserted = ttypes.FireEventRequestData(ttypes.InsertEventRequestData(filesAdded=["f"], replace=False))
    reloaded = ttypes.FireEventRequestData(refreshEvent=True)
    place = {"dbName": "d", "tableName": "t", "partitionVals": altered.values}
    link.call("alter_database", dbname="d", db=ttypes.Database("d", "new", None, {}))
    link.call("alter_partitions", db_name="d", tbl_name="t", new_parts=[altered])
    link.call("fire_listener_event", rqst=ttypes.FireEventRequest(True, inserted, **place))
    link.call("fire_listener_event", rqst=ttypes.FireEventRequest(True, inserted, "d", "u"))
    link.call("fire_listener_event", rqst=ttypes.FireEventRequest(True, reloaded, **place))
    link.call("drop_partition", db_name="d", tbl_name="t", part_vals=altered.values, deleteData=False)
    link.call("append_partition_by_name", db_name="d", tbl_name="t", part_name=PATH)
    link.call("alter_table", dbname="d", tbl_name="u", new_tbl=renamed)
    link.call("drop_table", dbname="d", name="v", deleteData=True)
    link.call("create_database", database=ttypes.Database("e", parameters={}))
    link.call("drop_database", name="e", deleteData=True, cascade=False)
    assert [read_of(event) for event in followed(link, start, page)] == [
        Read("ALTER_DATABASE", "d", None, ("d", "d")),
        Read("ALTER_PARTITION", "d", "t", ("t", "t", "t"), (month,)),
        Read("INSERT", "d", "t", ("t", "t"), (month,)),
        Read("INSERT", "d", "u", ("u",)),
        Read("RELOAD", "d", "t", ("t", "t"), (month,)),
        Read("DROP_PARTITION", "d", "t", ("t",), (month,)),
        Read("ADD_PARTITION", "d", "t", ("t",), (month,)),
        Read("ALTER_TABLE", "d", "v", ("u", "v")),
        Read("DROP_TABLE", "d", "v", ("v",)),
        Read("CREATE_DATABASE", "e", None, ("e",)),
        Read("DROP_DATABASE", "e", None, ("e",)),
    ]
    assert list(followed(link, link.call("get_current_notificationEventId").eventId, page)) == []


# ---- what Impala may do with a table ----


@pytest.mark.parametrize(
    ("mode", "created", "access"),
    [("off", "MANAGED_TABLE", None), ("access", "MANAGED_TABLE", 8), ("hive4", "EXTERNAL_TABLE", 8)],
)
def test_access(serve: Serve, mode: str, created: str, access: int | None) -> None:
    """Impala, built with Cloudera's Hive 3, refuses tables without an access type. Other clients get what they sent."""
    link = serve(**{"catalog.metadata_translation": mode}).link()
    link.call("create_database", database=ttypes.Database("d"))
    link.call("create_table", tbl=table("t"))
    link.call("create_table", tbl=table("v", (), tableType="VIRTUAL_VIEW", viewOriginalText="x", viewExpandedText="x"))
    request = ttypes.GetTableRequest(
        "d",
        "t",
        catName="hive",
        processorCapabilities=[*IMPALA_READS_AND_WRITES, "HIVEBUCKET2"],
        processorIdentifier="I",
    )
    for _ in range(3):
        found = link.call("get_table_req", req=request).table
        assert (found.tableType, found.accessType) == (created, access)
        assert link.call("get_table", dbname="d", tbl_name="t").accessType is None
    request.tblName = "v"
    assert link.call("get_table_req", req=request).table.accessType == (access and 2)
    dry = link.call("translate_table_dryrun", request=ttypes.CreateTableRequest(table("w")))
    assert dry.tableType == created
    extended = ttypes.GetTablesExtRequest("hive", "d", "t", 1, processorCapabilities=IMPALA_READS_AND_WRITES)
    assert [one.accessType for one in link.call("get_tables_ext", req=extended)] == [access]
    transformer = link.call("get_config_value", name="metastore.metadata.transformer.class", defaultValue="none")
    assert bool(transformer) == (mode == "hive4")
