"""Data connectors, tokens and keys, types, stored programs, properties, reports, configuration, partition markers."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPackageRequest,
    AlterDataConnectorRequest,
    CacheFileMetadataRequest,
    ClearFileMetadataRequest,
    CreateDataConnectorRequest,
    DatabaseType,
    DataConnector,
    DropDataConnectorRequest,
    DropPackageRequest,
    GetDataConnectorRequest,
    GetFileMetadataRequest,
    GetPackageRequest,
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    ListPackageRequest,
    ListStoredProcedureRequest,
    PartitionEventType,
    PropertyGetRequest,
    PropertySetRequest,
    PutFileMetadataRequest,
    ReplicationMetricList,
    ReplicationMetrics,
    RuntimeStat,
    StoredProcedure,
    StoredProcedureRequest,
    Type,
)
from tests.differential.comparison import Call, Kept, Scenario, call
from tests.differential.objects import columns, database, partition, table
from tests.differential.reasons import (
    DATABASE_ERROR,
    DECLARED_PROPERTIES,
    ECHO,
    NO_URL,
    SERVER_WIDE,
    TWO_SPELLINGS,
    WRAPPED,
)


def connector(name: str | None = "pg", **fields: Any) -> DataConnector:
    given = {
        "type": "postgres",
        "url": "jdbc:postgresql://host/db",
        "description": "text",
        "parameters": {"k": "v"},
        "ownerName": "owner",
        "ownerType": 1,
    }
    return DataConnector(**{"name": name, **given, **fields})


def create_connector(made: DataConnector | None, **expectations: Any) -> Call:
    return call("create_dataconnector_req", CreateDataConnectorRequest(made), **expectations)


def get_connector(name: str | None) -> Call:
    return call("get_dataconnector_req", GetDataConnectorRequest(name))


def alter_connector(name: str | None, to: DataConnector | None, **expectations: Any) -> Call:
    return call("alter_dataconnector_req", AlterDataConnectorRequest(name, to), **expectations)


def drop_connector(name: str | None, if_exists: bool | None = False, check: bool | None = False) -> Call:
    return call("drop_dataconnector_req", DropDataConnectorRequest(name, if_exists, check))


CONNECTOR_NAMES = call("get_dataconnectors", is_ordered=False)

CONNECTORS = Scenario.of(
    "data connectors",
    CONNECTOR_NAMES,
    create_connector(connector()),
    create_connector(connector()),
    create_connector(connector("PG")),
    create_connector(connector("Upper", ownerType=2, parameters=None, description=None)),
    create_connector(connector("plain", ownerName=None, ownerType=None, parameters={})),
    create_connector(connector("nobodys", ownerName="")),
    create_connector(connector("bad name!")),
    create_connector(connector("")),
    create_connector(connector(None)),
    create_connector(connector("typeless", type=None), differs=DATABASE_ERROR),
    create_connector(connector("urlless", url=None), differs=DATABASE_ERROR),
    create_connector(connector("unknown", type="unknown")),
    create_connector(None),
    [get_connector(name) for name in ("pg", "PG", "upper", "UPPER", "plain", "nobodys", "unknown", "none", "", None)],
    CONNECTOR_NAMES,
    alter_connector("pg", connector(url="jdbc:postgresql://other/db", parameters={"x": "y"}, description="new")),
    get_connector("pg"),
    alter_connector("pg", connector(description=None, parameters=None, ownerName=None, ownerType=None)),
    get_connector("pg"),
    alter_connector("pg", connector("renamed", type="mysql", description=" ", ownerName="other", ownerType=2)),
    get_connector("pg"),
    get_connector("renamed"),
    alter_connector("PG", connector(url=None), differs=NO_URL),
    alter_connector("PG", connector()),
    get_connector("pg"),
    alter_connector("none", connector()),
    alter_connector("pg", None),
    alter_connector(None, connector()),
    drop_connector("none"),
    drop_connector("none", True),
    drop_connector("none", None, None),
    drop_connector(None),
    drop_connector("UPPER"),
    drop_connector("plain", True, True),
    CONNECTOR_NAMES,
    call("create_database", database("r", type=DatabaseType.REMOTE, connector_name="pg", remote_dbname="far")),
    call("create_database", database("q", type=DatabaseType.REMOTE, connector_name="none", remote_dbname="far")),
    drop_connector("pg", False, True),
    drop_connector("pg", False, False),
    CONNECTOR_NAMES,
    drop_connector("unknown"),
)

TOKENS = Scenario.of(
    "tokens and keys",
    call("get_all_token_identifiers"),
    call("get_master_keys"),
    call("add_token", "b", "second"),
    call("add_token", "a", "first"),
    call("add_token", "a", "again"),
    call("get_token", "a"),
    call("get_token", "A"),
    call("get_token", "none"),
    call("get_all_token_identifiers", is_ordered=False),
    call("remove_token", "none"),
    call("remove_token", "a"),
    call("remove_token", "a"),
    call("get_token", "a"),
    call("add_token", "a", "new"),
    call("get_token", "a"),
    call("add_token", "", ""),
    call("get_token", ""),
    call("add_token", None, None),
    call("get_token", None),
    call("remove_token", None),
    call("get_all_token_identifiers", is_ordered=False),
    call("add_master_key", "one", keeps="first"),
    call("add_master_key", "two", keeps="second"),
    call("add_master_key", "one", keeps="third"),
    call("get_master_keys", is_ordered=False),
    call("update_master_key", Kept("second"), "changed"),
    call("update_master_key", Kept("second"), "changed"),
    call("update_master_key", 999_999, "changed", differs=WRAPPED),
    call("get_master_keys", is_ordered=False),
    call("remove_master_key", Kept("first")),
    call("remove_master_key", Kept("first")),
    call("remove_master_key", 999_999),
    call("get_master_keys", is_ordered=False),
    call("get_delegation_token", "owner", "renewer"),
    call("get_delegation_token", None, None),
    call("renew_delegation_token", "text"),
    call("cancel_delegation_token", "text"),
)


def named(name: str | None, **fields: Any) -> Type:
    return Type(**{"name": name, "fields": columns("a:int:first", "b:string"), **fields})


TYPES = Scenario.of(
    "types",
    call("create_type", named("person")),
    call("create_type", named("person")),
    call("create_type", named("PERSON")),
    call("create_type", named("listed", type1="int", fields=[])),
    call("create_type", named("mapped", type1="string", type2="int", fields=[])),
    call("create_type", named("fieldless", fields=None)),
    call("create_type", named("twice", fields=columns("a:int", "b:int", "a:string")), differs=DATABASE_ERROR),
    call("create_type", named("bad name!")),
    call("create_type", named("")),
    call("create_type", named(None)),
    [call("get_type", name) for name in ("person", "Person", "listed", "mapped", "none", "", None)],
    call("get_type_all", "person"),
    call("drop_type", "none"),
    call("drop_type", "person"),
    call("drop_type", "person"),
    call("get_type", "person"),
    call("drop_type", None),
    call("drop_type", "listed"),
    call("get_type", "listed"),
)


def procedure(name: str | None = "p", **fields: Any) -> Call:
    given = {"dbName": "d", "catName": "hive", "ownerName": "owner", "source": "BEGIN END"}
    return call("create_stored_procedure", StoredProcedure(**{"name": name, **given, **fields}))


def package(name: str | None = "p", **fields: Any) -> Call:
    given = {"catName": "hive", "dbName": "d", "ownerName": "owner", "header": "h", "body": "b"}
    return call("add_package", AddPackageRequest(**{"packageName": name, **given, **fields}))


PLACES = (
    ("hive", "d", "p"),
    ("HIVE", "D", "p"),
    ("hive", "d", "P"),
    ("hive", "d", "none"),
    ("hive", "none", "p"),
    ("none", "d", "p"),
    (None, "d", "p"),
    ("hive", None, "p"),
    ("hive", "d", None),
)
LISTS = (("hive", "d"), ("HIVE", "D"), ("hive", None), ("hive", "none"), ("none", "d"), ("none", None), (None, None))

PROCEDURES = Scenario.of(
    "stored procedures",
    call("create_database", database()),
    procedure(),
    procedure("Q", dbName="D"),
    procedure(source="other", ownerName="new"),
    procedure(dbName="none"),
    procedure(catName="none"),
    procedure("r", source=None),
    procedure("s", ownerName=None),
    procedure(None),
    procedure(dbName=None),
    [
        call("get_stored_procedure", StoredProcedureRequest(*place), differs=ECHO if place[0] == "HIVE" else "")
        for place in PLACES
    ],
    call("get_stored_procedure", StoredProcedureRequest("hive", "d", "Q")),
    [call("get_all_stored_procedures", ListStoredProcedureRequest(*one), is_ordered=False) for one in LISTS],
    [call("drop_stored_procedure", StoredProcedureRequest(*place)) for place in PLACES[::-1]],
    [call("get_all_stored_procedures", ListStoredProcedureRequest(*one), is_ordered=False) for one in LISTS[:3]],
    call("drop_stored_procedure", StoredProcedureRequest("hive", "d", "Q")),
)

PACKAGES = Scenario.of(
    "packages",
    call("create_database", database()),
    package(),
    package("Q", dbName="D"),
    package(header="other", body="new", ownerName="another"),
    package(dbName="none"),
    package(catName="none"),
    package("r", body=None),
    package("s", header=None),
    package("t", ownerName=None),
    package(None),
    package(dbName=None),
    [call("find_package", GetPackageRequest(*place)) for place in PLACES],
    call("find_package", GetPackageRequest("hive", "d", "Q")),
    [call("get_all_packages", ListPackageRequest(*one), is_ordered=False) for one in LISTS],
    [call("drop_package", DropPackageRequest(*place)) for place in PLACES[::-1]],
    [call("get_all_packages", ListPackageRequest(*one), is_ordered=False) for one in LISTS[:3]],
    call("drop_package", DropPackageRequest("hive", "d", "Q")),
)


def get_properties(prefix: str | None, predicate: str | None = None, selection: list[str] | None = None) -> Call:
    request = PropertyGetRequest("hms", prefix, predicate, selection)
    return call("get_properties", request, differs=DECLARED_PROPERTIES)


PROPERTIES = Scenario.of(
    "properties",
    call("set_properties", PropertySetRequest("none", {"a": "b"})),
    call("get_properties", PropertyGetRequest("none", None, None, None)),
    call("get_properties", PropertyGetRequest(None, None, None, None)),
    call("set_properties", PropertySetRequest("hms", {}), differs=DECLARED_PROPERTIES),
    call("set_properties", PropertySetRequest("hms", {"d.t.p": "x"}), differs=DECLARED_PROPERTIES),
    get_properties(None),
    get_properties(""),
    get_properties("none"),
)


def runtime(max_weight: int | None, before: int | None) -> Call:
    return call("get_runtime_stats", GetRuntimeStatsRequest(max_weight, before))


def metrics(identity: int | None, **fields: Any) -> Call:
    given = {"policy": "p", "dumpExecutionId": 7, "metadata": "{}", "progress": "none"}
    listed = ReplicationMetricList([ReplicationMetrics(**{"scheduledExecutionId": identity, **given, **fields})])
    return call("add_replication_metrics", listed)


def get_metrics(identity: int | None = None, policy: str | None = None, dump: int | None = None) -> Call:
    return call("get_replication_metrics", GetReplicationMetricsRequest(identity, policy, dump))


REPORTS = Scenario.of(
    "reports",
    runtime(-1, 0),
    # All equal: their order within a second is the database's.
    [call("add_runtime_stats", RuntimeStat(100 * number, 2, b"x")) for number in range(1, 5)],
    call("add_runtime_stats", RuntimeStat(None, None, None)),
    [runtime(weight, before) for weight in (-1, 0, 1, 4, 5, 100, None) for before in (0, 301, 300, -1, None)],
    get_metrics(1),
    get_metrics(),
    get_metrics(policy="p"),
    metrics(1),
    get_metrics(1),
    metrics(1, metadata="", progress="half", policy="other", dumpExecutionId=9),
    get_metrics(1),
    metrics(1, metadata=None, progress=None, messageFormat="f"),
    get_metrics(1),
    [
        step
        for fields in (
            {"progress": "none"},
            {"messageFormat": "g"},
            {"metadata": None, "progress": None},
            {"messageFormat": ""},
        )
        for step in (metrics(1, messageFormat="f"), metrics(1, **fields), get_metrics(1))
    ],
    metrics(2, metadata="x" * 4001),
    metrics(3, progress="y" * 10001, messageFormat="gzip"),
    metrics(4, policy="q"),
    metrics(5, policy=None),
    metrics(None),
    get_metrics(policy="p"),
    get_metrics(policy="none"),
    get_metrics(2, "p"),
    get_metrics(4, "p"),
    get_metrics(dump=7),
    get_metrics(4, dump=7),
    get_metrics(99),
    call("add_replication_metrics", ReplicationMetricList([])),
)


def value(name: str | None, default: str | None = "absent") -> Call:
    return call("get_config_value", name, default)


CONFIGURATION = Scenario.of(
    "configuration",
    value("hive.metastore.batch.retrieve.max"),
    value("metastore.batch.retrieve.max"),
    value("metastore.limit.partition.request"),
    value("metastore.try.direct.sql"),
    value("hive.exec.default.partition.name"),
    value("metastore.default.partition.name"),
    value("metastore.partition.name.whitelist.pattern"),
    value("hive.no.such.key"),
    value("mapred.no.such.key"),
    value("metastore.no.such.key", None),
    value("hdfs.no.such.key", ""),
    value("javax.jdo.option.ConnectionPassword"),
    value("no.such.key"),
    value(""),
    value(None),
    call("getMetaConf", "metastore.try.direct.sql"),
    call("getMetaConf", "hive.metastore.try.direct.sql"),
    call("getMetaConf", "metastore.batch.retrieve.max"),
    call("getMetaConf", "metastore.client.socket.timeout"),
    call("getMetaConf", "metastore.partition.name.whitelist.pattern"),
    [
        call("getMetaConf", f"metastore.{name}")
        for name in (
            "warehouse.dir",
            "callerContext.enabled",
            "try.direct.sql.ddl",
            "partitions.parameters.include.pattern",
            "partitions.parameters.exclude.pattern",
            "client.capability.check",
            "disallow.incompatible.col.type.changes",
        )
    ],
    call("getMetaConf", "no.such.key"),
    call("getMetaConf", ""),
    call("setMetaConf", "metastore.try.direct.sql", "false"),
    call("getMetaConf", "metastore.try.direct.sql"),
    call("getMetaConf", "hive.metastore.try.direct.sql", differs=TWO_SPELLINGS),
    call("setMetaConf", "hive.metastore.try.direct.sql", "true"),
    call("getMetaConf", "metastore.try.direct.sql", differs=TWO_SPELLINGS),
    call("setMetaConf", "metastore.try.direct.sql", "perhaps"),
    call("setMetaConf", "metastore.batch.retrieve.max", "many"),
    call("setMetaConf", "metastore.client.capability.check", "true", differs=SERVER_WIDE),
    call("setMetaConf", "metastore.disallow.incompatible.col.type.changes", "true", differs=SERVER_WIDE),
    call("setMetaConf", "metastore.warehouse.dir", "/x"),
    call("setMetaConf", "no.such.key", "x"),
    call("getName"),
    call("getStatus"),
    call("getStatusDetails"),
    call("getOption", "none"),
    call("setOption", "k", "v"),
    call("getOption", "k"),
    call("getOptions"),
    call("getCounter", "none"),
    call("getCpuProfile", 1),
    call("aliveSince", is_answer_compared=False),
    call("flushCache"),
    call("get_metastore_db_uuid", is_answer_compared=False),
    call("get_file_metadata", GetFileMetadataRequest([1, 2])),
    call("get_file_metadata", GetFileMetadataRequest([])),
    call("put_file_metadata", PutFileMetadataRequest([1], [b"x"])),
    call("clear_file_metadata", ClearFileMetadataRequest([1])),
    call("cache_file_metadata", CacheFileMetadataRequest("d", "t")),
)

DONE = PartitionEventType.LOAD_DONE


def mark(values: dict[str, str] | None, of: str = "p", place: str = "d") -> Call:
    return call("markPartitionForEvent", place, of, values, DONE)


def is_marked(values: dict[str, str] | None, of: str = "p", place: str = "d") -> Call:
    return call("isPartitionMarkedForEvent", place, of, values, DONE)


MARKERS = Scenario.of(
    "partition markers",
    call("create_database", database()),
    call("create_table", table("p", keys=("k:string", "n:int"))),
    call("create_table", table("flat")),
    call("add_partition", partition("x", "1")),
    is_marked({"k": "x", "n": "1"}),
    mark({"k": "x", "n": "1"}),
    is_marked({"k": "x", "n": "1"}),
    is_marked({"n": "1", "k": "x"}),
    is_marked({"k": "x", "n": "2"}),
    mark({"k": "y", "n": "2"}),
    is_marked({"k": "y", "n": "2"}),
    mark({"k": "x"}),
    is_marked({"k": "x"}),
    mark({"k": "x", "z": "1"}),
    is_marked({"k": "x", "z": "1"}),
    mark({}),
    is_marked({}),
    mark(None),
    is_marked(None),
    mark({"k": "x", "n": "1"}, "none"),
    is_marked({"k": "x", "n": "1"}, "none"),
    mark({"k": "x", "n": "1"}, place="none"),
    is_marked({"k": "x", "n": "1"}, place="none"),
    mark({"k": "x"}, "flat"),
    is_marked({"k": "x"}, "flat"),
)

SCENARIOS = (
    CONNECTORS,
    TOKENS,
    TYPES,
    PROCEDURES,
    PACKAGES,
    PROPERTIES,
    REPORTS,
    CONFIGURATION,
    MARKERS,
)
