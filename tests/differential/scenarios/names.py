"""Names in other spellings than the stored ones, and names of missing objects: the answers, and how the texts of
exceptions name them, which clients parse. Each text is compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    AllTableConstraintsRequest,
    AlterCatalogRequest,
    AlterDatabaseRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    AppendPartitionsRequest,
    Catalog,
    CheckConstraintsRequest,
    ColumnStatistics,
    ColumnStatisticsDesc,
    CompactionRequest,
    CompactionType,
    CreateCatalogRequest,
    CreateDatabaseRequest,
    CreateTableRequest,
    CreationMetadata,
    DefaultConstraintsRequest,
    DropCatalogRequest,
    DropConstraintRequest,
    DropDatabaseRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropTableRequest,
    FireEventRequest,
    FireEventRequestData,
    ForeignKeysRequest,
    GetCatalogRequest,
    GetDatabaseRequest,
    GetFieldsRequest,
    GetFunctionsRequest,
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsRequest,
    GetProjectionsSpec,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesRequest,
    GetValidWriteIdsRequest,
    InsertEventRequestData,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    NotNullConstraintsRequest,
    PartitionFilterMode,
    PartitionListComposingSpec,
    PartitionsByExprRequest,
    PartitionSpec,
    PartitionsRequest,
    PartitionsStatsRequest,
    PartitionValuesRequest,
    PrimaryKeysRequest,
    RenamePartitionRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    TableStatsRequest,
    TruncateTableRequest,
    UniqueConstraintsRequest,
    WriteNotificationLogRequest,
)
from hms_cache.wire.versions import parse_database_name
from tests.differential.comparison import WAREHOUSE, Call, Scenario, call
from tests.differential.objects import columns, database, descriptor, partition, table
from tests.differential.reasons import CREATOR_OF_CATALOG, NAMELESS, NAMES_OF_COMPACTIONS, NO_SUCH_OBJECT, NOT_COMMITTED
from tests.differential.scenarios import auxiliary, privileges, registry, transactions, workload
from tests.differential.scenarios.constraints import primary
from tests.differential.scenarios.functions import function
from tests.differential.scenarios.statistics import of_columns

ALL = b"\xff"
"""An expression that selects everything."""


def told(*calls: Call | list[Call]) -> list[Call]:
    """Returns these calls, with the texts of their exceptions compared."""
    flat = [one for item in calls for one in ([item] if isinstance(item, Call) else item)]
    return [replace(one, is_message_compared=True) for one in flat]


def unordered(method: str, *arguments: Any) -> Call:
    return call(method, *arguments, is_ordered=False)


def _apart(place: str) -> tuple[str | None, str | None]:
    """Catalog and database, in the form of a request's fields."""
    catalog, name = parse_database_name(place, "")
    return catalog or None, name


def reads_of_table(place: str, of: str) -> list[Call]:
    """All reads that name one table."""
    catalog, name = _apart(place)
    named = {"catName": catalog, "dbName": name, "tblName": of}
    constrained = {"catName": catalog, "db_name": name, "tbl_name": of}
    return [
        call("get_table", place, of),
        call("get_table_req", GetTableRequest(**named)),
        call("get_table_objects_by_name", place, [of]),
        call("get_table_objects_by_name_req", GetTablesRequest(catName=catalog, dbName=name, tblNames=[of])),
        call("get_fields", place, of),
        call("get_fields_with_environment_context", place, of, None),
        call("get_fields", place, f"{of}.x"),
        call("get_fields_req", GetFieldsRequest(**named)),
        call("get_schema", place, of),
        call("get_schema_with_environment_context", place, of, None),
        call("get_schema_req", GetSchemaRequest(**named)),
        unordered("get_all_table_constraints", AllTableConstraintsRequest(name, of, catalog)),
        unordered("get_primary_keys", PrimaryKeysRequest(**{**constrained, "catName": catalog})),
        unordered("get_unique_constraints", UniqueConstraintsRequest(**constrained)),
        unordered("get_not_null_constraints", NotNullConstraintsRequest(**constrained)),
        unordered("get_default_constraints", DefaultConstraintsRequest(**constrained)),
        unordered("get_check_constraints", CheckConstraintsRequest(**constrained)),
        unordered("get_foreign_keys", ForeignKeysRequest(name, of, None, None, catalog)),
        unordered("get_foreign_keys", ForeignKeysRequest(None, None, name, of, catalog)),
        call("get_table_column_statistics", place, of, "A"),
        call("get_table_statistics_req", TableStatsRequest(**named, colNames=["A"], engine="hive")),
    ]


def reads_of_partitions(place: str, of: str) -> list[Call]:
    """All reads that name a table for its partitions."""
    catalog, name = _apart(place)
    named = {"catName": catalog, "dbName": name, "tblName": of}
    return [
        call("get_partition", place, of, ["1"]),
        call("get_partition", place, of, ["none"]),
        call("get_partition_req", GetPartitionRequest(**named, partVals=["1"])),
        call("get_partition_with_auth", place, of, ["1"], "u", []),
        call("get_partition_by_name", place, of, "k=1"),
        call("get_partition_by_name", place, of, "K=1"),
        call("get_partition_by_name", place, of, "k=none"),
        unordered("get_partitions", place, of, -1),
        unordered("get_partitions_req", PartitionsRequest(**named)),
        unordered("get_partitions_with_auth", place, of, -1, "u", []),
        unordered("get_partitions_pspec", place, of, -1),
        call("get_partition_names", place, of, -1),
        call("fetch_partition_names_req", PartitionsRequest(**named)),
        unordered("get_partitions_ps", place, of, ["1"], -1),
        unordered("get_partitions_ps_with_auth", place, of, ["1"], -1, "u", []),
        unordered("get_partitions_ps_with_auth_req", GetPartitionsPsWithAuthRequest(**named, partVals=["1"])),
        call("get_partition_names_ps", place, of, ["1"], -1),
        call("get_partition_names_ps_req", GetPartitionNamesPsRequest(**named, partValues=["1"])),
        call("get_partition_names_req", PartitionsByExprRequest(**named, expr=ALL)),
        unordered("get_partitions_by_filter", place, of, "k = '1'", -1),
        unordered("get_partitions_by_filter_req", GetPartitionsByFilterRequest(**named, filter="k = '1'")),
        unordered("get_part_specs_by_filter", place, of, "k = '1'", -1),
        call("get_num_partitions_by_filter", place, of, "k = '1'"),
        unordered("get_partitions_by_names", place, of, ["k=1"]),
        unordered("get_partitions_by_names_req", GetPartitionsByNamesRequest(place, of, ["k=1"])),
        unordered(
            "get_partitions_with_specs",
            GetPartitionsRequest(
                **named,
                projectionSpec=GetProjectionsSpec(),
                filterSpec=GetPartitionsFilterSpec(PartitionFilterMode.BY_NAMES, ["k=1"]),
            ),
        ),
        call("get_partition_column_statistics", place, of, "k=1", "A"),
        call("get_partitions_statistics_req", PartitionsStatsRequest(**named, colNames=["A"], partNames=["K=1"])),
        unordered("get_aggr_stats_for", PartitionsStatsRequest(**named, colNames=["A"], partNames=["k=1"])),
        call("get_partition_values", PartitionValuesRequest(**named, partitionKeys=columns("k:string"))),
        call("isPartitionMarkedForEvent", place, of, {"k": "1"}, 1),
    ]


def writes_of_table(place: str, of: str) -> list[Call]:
    """All changes that name one missing table."""
    catalog, name = _apart(place)
    new = table(of, dbName=name, catName=catalog)
    return [
        call("alter_table", place, of, new),
        call("alter_table_with_environment_context", place, of, new, None),
        call("alter_table_with_cascade", place, of, new, True),
        call("alter_table_req", AlterTableRequest(catalog, name, of, new)),
        call("drop_table", place, of, False),
        call("drop_table_with_environment_context", place, of, False, None),
        call("drop_table_req", DropTableRequest(catalog, name, of, deleteData=False), is_answer_compared=False),
        call("truncate_table", place, of, []),
        call("truncate_table_req", TruncateTableRequest(place, of)),
        call("update_creation_metadata", catalog or "hive", name, of, CreationMetadata("hive", name, of, set())),
        update_statistics(place, of),
        update_statistics(place, of, "k=1"),
        set_statistics(place, of),
        set_statistics(place, of, "k=1"),
        set_statistics(place, of, needs_merge=True),
        set_statistics(place, of, "k=1", needs_merge=True),
        call("delete_table_column_statistics", place, of, "A", "hive"),
        call("delete_partition_column_statistics", place, of, "k=1", "A", "hive"),
        call(
            "fire_listener_event",
            FireEventRequest(
                True, FireEventRequestData(InsertEventRequestData(filesAdded=[])), name, of, catName=catalog
            ),
            is_answer_compared=False,
        ),
        call(
            "add_write_notification_log",
            WriteNotificationLogRequest(1, 1, place, of, InsertEventRequestData(filesAdded=[])),
            is_answer_compared=False,
        ),
        call("markPartitionForEvent", place, of, {"k": "1"}, 1),
    ]


def update_statistics(place: str, of: str, part: str | None = None) -> Call:
    catalog, name = _apart(place)
    described = ColumnStatisticsDesc(part is None, name, of, part, catName=catalog)
    kind = "table" if part is None else "partition"
    statistics = ColumnStatistics(described, of_columns(["A"]), engine="hive")
    return call(f"update_{kind}_column_statistics", statistics)


def set_statistics(place: str, of: str, part: str | None = None, *, needs_merge: bool = False) -> Call:
    catalog, name = _apart(place)
    described = ColumnStatisticsDesc(part is None, name, of, part, catName=catalog)
    statistics = ColumnStatistics(described, of_columns(["A"]), engine="hive")
    return call("set_aggr_stats_for", SetPartitionsStatsRequest([statistics], needs_merge, engine="hive"))


def writes_of_partitions(place: str, of: str) -> list[Call]:
    """All changes of partitions of a missing table, or of missing partitions."""
    catalog, name = _apart(place)
    new = partition("none", of=of, dbName=name, catName=catalog)
    return [
        call("alter_partition", place, of, new),
        call("alter_partition_with_environment_context", place, of, new, None),
        call("alter_partitions", place, of, [new]),
        call("alter_partitions_with_environment_context", place, of, [new], None),
        call("alter_partitions_req", AlterPartitionsRequest(catalog, name, of, [new])),
        call("rename_partition", place, of, ["none"], new),
        call("rename_partition_req", RenamePartitionRequest(catalog or "hive", name, of, ["none"], new)),
        call("drop_partition", place, of, ["none"], False),
        call("drop_partition_with_environment_context", place, of, ["none"], False, None),
        call("drop_partition_by_name", place, of, "k=none", False),
        call("drop_partition_by_name_with_environment_context", place, of, "k=none", False, None),
        call("drop_partition_req", DropPartitionRequest(catalog or "hive", name, of, None, ["none"], False)),
        call(
            "drop_partitions_req",
            DropPartitionsRequest(name, of, RequestPartsSpec(names=["k=none"]), False, False, catName=catalog),
        ),
    ]


def adds_to_no_table(place: str, of: str) -> list[Call]:
    catalog, name = _apart(place)
    new = partition("1", of=of, dbName=name, catName=catalog)
    mark, _, _ = place.rpartition("#")
    other = f"{mark}#d" if mark else "d"
    # Java uses the default catalog for a partition's, whatever it says.
    return [
        *([] if catalog else [call("add_partition", new)]),
        call("add_partitions", [new]),
        add_request(place, of, "1"),
        call(
            "add_partitions_pspec",
            [PartitionSpec(name, of, "", catName=catalog, partitionList=PartitionListComposingSpec([new]))],
        ),
        call("append_partition", place, of, ["1"]),
        call("append_partition_by_name", place, of, "k=1"),
        call("append_partition_req", AppendPartitionsRequest(catalog, name, of, None, ["1"])),
        call("append_partition_req", AppendPartitionsRequest(catalog, name, of, "k=1")),
        call("exchange_partition", {"k": "1"}, place, of, other, "p"),
        call("exchange_partition", {"k": "1"}, other, "p", place, of),
        call("exchange_partitions", {"k": "1"}, place, of, place, of),
    ]


def add_request(place: str, of: str, value: str) -> Call:
    catalog, name = _apart(place)
    new = partition(value, of=of, dbName=name, catName=catalog)
    return call("add_partitions_req", AddPartitionsRequest(name, of, [new], False, True, catName=catalog))


TABLES = (
    call("create_database", database("d")),
    call("create_table", table("t")),
    call("create_table", table("p", keys=("k:string",))),
    call("add_partition", partition("1")),
    call("add_primary_key", AddPrimaryKeyRequest([primary()])),
)
ABSENT_TABLES = (
    ("d", "none"),
    ("d", "NoNe"),
    ("D", "None"),
    ("@hive#D", "None"),
    ("@HIVE#D", "NONE"),
    ("d", " None "),
    (" D ", "none"),
    ("d", "größe"),
    ("d", "GRÖSSE"),
    ("d", "ТАБЛИЦА"),
    ("d", "`None`"),
    ("d", '"None"'),
    ("d", "it's"),
    ("d", "a b"),
    ("d", "A.B"),
    ("NoDb", "T"),
    ("@hive#NoDb", "T"),
    ("@NoCat#D", "T"),
)
OTHER_SPELLINGS = (("D", "T"), ("@HIVE#D", "T"), ("@Hive#d", " T "))

NO_TABLE = [
    Scenario.of(
        f"no table {number}",
        TABLES,
        told(
            reads_of_table(place, of),
            reads_of_partitions(place, of),
            writes_of_table(place, of),
            writes_of_partitions(place, of),
            adds_to_no_table(place, of),
        ),
    )
    for number, (place, of) in enumerate(ABSENT_TABLES)
]

TABLE_IN_CAPITALS = Scenario.of(
    "a table in capitals",
    TABLES,
    update_statistics("d", "t"),
    update_statistics("d", "p", "k=1"),
    told(*(reads_of_table(place, of) for place, of in OTHER_SPELLINGS)),
    told(*(reads_of_table(place, "P") for place, _ in OTHER_SPELLINGS)),
    told(*(reads_of_partitions(place, "P") for place, _ in OTHER_SPELLINGS)),
    told(*(writes_of_partitions(place, "P") for place in ("D", "@HIVE#D"))),
)


_CATALOGS = ("MIXEDCASE", "mixedCase", "HIVE", "NoCat", "Größe", "КАТАЛОГ", "`hive`", "a b", "")
_CONNECTORS = ("MIXEDCASE", "NoConnector", "Größe", "ГОРОД", "`None`", "a b")


def _of_database(place: str) -> list[Call]:
    """Calls that name one database, and nothing in it."""
    catalog, name = _apart(place)
    new = database(name, catalogName=catalog)
    changes = [
        call("alter_database", place, new),
        call("alter_database_req", AlterDatabaseRequest(place, new), is_answer_compared=False),
        call("drop_database", f"{place}x", True, False),
        call(
            "drop_database_req",
            DropDatabaseRequest(f"{name}x", catalog, False, True, False),
            is_answer_compared=False,
        ),
    ]
    return [
        call("get_database", place),
        call("get_database_req", GetDatabaseRequest(name=name, catalogName=catalog)),
        call("get_all_tables", place),
        call("get_tables", place, "*"),
        call("get_tables_by_type", place, "*", "MANAGED_TABLE"),
        call("get_table_objects_by_name", place, ["None"]),
        call("get_table_objects_by_name_req", GetTablesRequest(catName=catalog, dbName=name, tblNames=["None"])),
        call("get_table_objects_by_name_req", GetTablesRequest(catName=catalog, dbName=name, tablesPattern="*")),
        call("get_table_names_by_filter", place, 'hive_filter_field_owner__ = "x"', -1),
        call("get_materialized_views_for_rewriting", place),
        call("get_functions", place, "*"),
        *(changes if name else []),
    ]


def _primary(name: str, place: str, of: str, column: str) -> Any:
    return primary(column, name, table_db=place, table_name=of, catName="HIVE")


def _drop_constraint(place: str, of: str, name: str) -> DropConstraintRequest:
    return DropConstraintRequest(place, of, name, "HIVE")


def make_table(new: Any, **expectations: Any) -> list[Call]:
    """A table created in all spellings of the call."""
    return [
        call("create_table", new, **expectations),
        call("create_table_with_environment_context", new, None, **expectations),
        call("create_table_with_constraints", new, None, None, None, None, None, None, **expectations),
        call("create_table_req", CreateTableRequest(new), **expectations),
    ]


def _at(directory: str) -> Any:
    return descriptor(location=f"{WAREHOUSE}/managed/d.db/{directory}")


CREATION = Scenario.of(
    "names of new tables",
    call("create_database", database("d")),
    told(
        make_table(table("MixedCase", dbName="D", catName="HIVE")),
        call("get_table", "d", "mixedcase"),
        make_table(table("mixedcase")),
        make_table(table(" MixedCase ")),
        make_table(table("T", dbName="NoDb")),
        make_table(table("T", dbName="D", catName="NoCat")),
        make_table(table("Größe", dbName="D")),
        make_table(table("Semi;Colon", dbName="D")),
        call("get_table", "D", "SEMI;COLON"),
        make_table(table("", dbName="D")),
        call("get_all_tables", "D"),
        call("alter_table", "D", "MIXEDCASE", table("Other", dbName="D", sd=_at("mixedcase"))),
        call("get_table", "D", "OTHER"),
        call("alter_table", "D", "OTHER", table("Größe", dbName="D")),
        call("alter_table", "D", "OTHER", table("Semi;COLON", dbName="D")),
        call("alter_table", "D", "OTHER", table("OTHER", dbName="NoDb")),
        call("alter_table", "D", "OTHER", table("OTHER", dbName="D", catName="NoCat")),
        call(
            "alter_table_req",
            AlterTableRequest("Hive", "D", "OTHER", table("OTHER", dbName="D", catName="HIVE", sd=_at("other"))),
        ),
        call("truncate_table", "D", "OTHER", None),
        call("drop_table", "D", "OTHER", True),
        call("drop_table", "D", "OTHER", True),
    ),
)

AT_13 = _at("p/k=13")
MORE = Scenario.of(
    "names of new partitions",
    call("create_database", database("d")),
    call("create_database", database("e")),
    call("create_table", table("p", keys=("k:string",))),
    call("create_table", table("q", keys=("k:string",), dbName="e")),
    told(
        call("add_partition", partition("1", of="P", dbName="D")),
        call("add_partition", partition("1", of="P", dbName="D")),
        call("add_partition", partition("2", of="P", dbName="D")),
        call("add_partitions", [partition("3", of="P", dbName="D")]),
        call("add_partitions", [partition("3", of="P", dbName="D")]),
        call("add_partitions", [partition("4", of="P", dbName="D"), partition("4", of="P", dbName="D")]),
        call("add_partitions", [partition("4", of="P", dbName="D"), partition("5", of="Other", dbName="D")]),
        add_request("D", "P", "6"),
        add_request("@HIVE#D", "P", "7"),
        add_request("D", "P", "7"),
        call("append_partition", "D", "P", ["8"]),
        call("append_partition", "D", "P", ["8"]),
        call("append_partition", "@HIVE#D", "P", ["9"]),
        call("append_partition_by_name", "D", "P", "K=10"),
        call("append_partition_by_name", "D", "P", "k=10"),
        call("append_partition_req", AppendPartitionsRequest("hive", "D", "P", None, ["11"])),
        call("append_partition_req", AppendPartitionsRequest("HIVE", "D", "P", "k=12")),
        call("get_partition_names", "D", "P", -1),
        call("rename_partition", "D", "P", ["1"], partition("2", of="P", dbName="D")),
        call("rename_partition", "D", "P", ["1"], partition("13", of="P", dbName="D", sd=AT_13)),
        call("alter_partition", "D", "P", partition("13", of="P", dbName="D", parameters={"x": "y"}, sd=AT_13)),
        call("alter_partition", "D", "P", partition("13", of="Other", dbName="D", sd=AT_13), differs=NOT_COMMITTED),
        call("alter_partition", "D", "P", partition("13", of="P", dbName="Other", sd=AT_13), differs=NOT_COMMITTED),
        call("exchange_partitions", {"k": "13"}, "D", "P", "E", "Q"),
        call("append_partition", "D", "P", ["13"]),
        call("exchange_partitions", {"k": "13"}, "D", "P", "E", "Q"),
        call("exchange_partitions", {"k": "none"}, "D", "P", "E", "Q"),
        call("drop_partition", "D", "P", ["2"], True),
        call("drop_partition_by_name", "D", "P", "K=3", True),
        call("drop_partition_by_name", "D", "P", "k=3", True),
        unordered("get_partitions", "D", "P", -1),
        call("drop_database", "D", True, False),
        call("drop_database", "@Hive#D", True, False),
    ),
)

DATABASES = Scenario.of(
    "names of databases",
    told(
        call("create_database", database("MixedCase")),
        call("create_database", database("mixedcase")),
        call("create_database", database("MIXEDCASE", catalogName="HIVE")),
        call("create_database", database(" MixedCase ")),
        call("create_database_req", CreateDatabaseRequest(databaseName="MixedCASE"), is_answer_compared=False),
        call("create_database", database("Größe")),
        call("create_database", database("D", catalogName="NoCat")),
        call("create_database", database("")),
        [
            step
            for place in (
                *(
                    "MixedCase",
                    "@hive#MIXEDCASE",
                    "@HIVE#mixedcase",
                    " MixedCase ",
                    "NoDb",
                    "@HIVE#NoDb",
                    "@NoCat#NoDb",
                ),
                *("Größe", "ГОРОД", "`NoDb`", '"NoDb"', "a b", "A.B", "", "@hive#!"),
            )
            for step in _of_database(place)
        ],
        call("get_databases", "MIXED*"),
        call("get_databases", "@HIVE#MIXED*"),
        call("get_table_meta", "MIXED*", "*", []),
        call("drop_database", "MIXEDCASE", True, False),
        call("drop_database", "MIXEDCASE", True, False),
        call("drop_database", "DEFAULT", True, True),
        call("drop_database", "@Hive#Default", True, True),
    ),
)

CATALOGS = Scenario.of(
    "names of catalogs",
    told(
        call("create_catalog", CreateCatalogRequest(Catalog("MixedCase", None, "{warehouse}/managed/c"))),
        call("create_catalog", CreateCatalogRequest(Catalog("MIXEDCASE", None, "{warehouse}/managed/c"))),
        call("create_catalog", CreateCatalogRequest(Catalog("Hive", None, "{warehouse}/managed/h"))),
        call("create_catalog", CreateCatalogRequest(Catalog("Größe", None, "{warehouse}/managed/g"))),
        call("create_catalog", CreateCatalogRequest(Catalog("Semi;Colon", None, "{warehouse}/managed/g"))),
        call("get_catalogs"),
        [call("get_catalog", GetCatalogRequest(name)) for name in _CATALOGS],
        call("get_database", "@MIXEDCASE#DEFAULT", differs=CREATOR_OF_CATALOG),
        [
            call("alter_catalog", AlterCatalogRequest(name, Catalog(name, "text", "{warehouse}/managed/c")))
            for name in _CATALOGS
        ],
        call("create_database", database("D", catalogName="MIXEDCASE")),
        call("get_database", "@MIXEDCASE#D"),
        call("get_databases", "@MIXEDCASE#*"),
        call("create_table", table("T", dbName="D", catName="MIXEDCASE")),
        call("create_table", table("T", dbName="D", catName="MIXEDCASE")),
        call("get_table", "@MIXEDCASE#D", "T"),
        call("get_tables", "@MixedCase#d", "*"),
        call("get_all_tables", "@MixedCase#d"),
        call("drop_catalog", DropCatalogRequest(name="MIXEDCASE")),
        call("drop_database", "@MIXEDCASE#D", True, True),
        call("create_table", table("T", dbName="DEFAULT", catName="MIXEDCASE")),
        call("drop_catalog", DropCatalogRequest(name="MIXEDCASE")),
        call("drop_table", "@MIXEDCASE#DEFAULT", "T", True),
        call("drop_catalog", DropCatalogRequest(name="MIXEDCASE")),
        [call("drop_catalog", DropCatalogRequest(name=name)) for name in ("MIXEDCASE", "HIVE", "Größe", "NoCat")],
    ),
)

FUNCTIONS = Scenario.of(
    "names of functions",
    call("create_database", database("d")),
    told(
        call("create_function", function("MixedCase", dbName="D", className="org.example.Mixed")),
        call("create_function", function("MIXEDCASE")),
        call("create_function", function("mixedcase", dbName="D", catName="HIVE")),
        call("create_function", function("Größe")),
        call("create_function", function("F", dbName="NoDb")),
        call("create_function", function("F", dbName="D", catName="NoCat")),
        [
            step
            for place, name in (
                *(("D", "MIXEDCASE"), ("@HIVE#D", "mixedCase"), (" d ", " MixedCase ")),
                *(("d", "None"), ("D", "NoNe"), ("@Hive#D", "None"), ("NoDb", "F"), ("@NoCat#D", "F")),
                *(("d", "Größe"), ("d", "ФУНКЦИЯ"), ("d", "a.B"), ("d", "`F`"), ("d", "")),
            )
            for step in (
                call("get_function", place, name),
                call("alter_function", place, name, function(name, dbName="D")),
                call("get_functions", place, name),
            )
        ],
        call("get_functions", "D", "MIXED*"),
        call("get_functions_req", GetFunctionsRequest("D", "HIVE", "MIXED*", returnNames=False)),
        call("create_function", function("other")),
        call("alter_function", "D", "OTHER", function("F", dbName="NoDb")),
        call("alter_function", "D", "OTHER", function("F", dbName="D", catName="NoCat")),
        call("drop_function", "D", "MIXEDCASE"),
        call("drop_function", "D", "MIXEDCASE"),
        call("drop_function", "@Hive#D", "NoNe"),
        call("drop_function", "NoDb", "F"),
        call("drop_function", "D", "Größe"),
        call("drop_function", "D", " None "),
    ),
)

CONSTRAINTS = Scenario.of(
    "names of constraints",
    call("create_database", database("d")),
    call("create_table", table("t")),
    told(
        call("add_primary_key", AddPrimaryKeyRequest([_primary("Key", "D", "T", "A")])),
        call("add_primary_key", AddPrimaryKeyRequest([_primary("KEY", "D", "T", "A")])),
        call("add_primary_key", AddPrimaryKeyRequest([_primary("Other", "D", "None", "A")])),
        call("add_primary_key", AddPrimaryKeyRequest([_primary("Other", "D", "T", "None")])),
        call("get_primary_keys", PrimaryKeysRequest("D", "T", catName="HIVE")),
        call("drop_constraint", _drop_constraint("D", "T", "None")),
        call("drop_constraint", _drop_constraint("D", "None", "Key")),
        call("drop_constraint", _drop_constraint("D", "T", "KEY")),
        call("drop_constraint", _drop_constraint("D", "T", "KEY")),
    ),
)

TRANSACTIONS = Scenario.of(
    "names in transactions",
    call("create_database", database("d")),
    call("create_table", table("t")),
    transactions.begin(),
    told(
        call("allocate_table_write_ids", AllocateTableWriteIdsRequest("D", "T", [1])),
        call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "t", [1])),
        transactions.highest("T", "D"),
        call("get_valid_write_ids", GetValidWriteIdsRequest(["D.T", "d.t", "D.None"])),
        call("get_valid_write_ids", GetValidWriteIdsRequest(["T"])),
        call(
            "lock",
            LockRequest(
                [LockComponent(LockType.SHARED_READ, LockLevel.TABLE, "D", "T", operationType=1, isTransactional=True)],
                1,
                "u",
                "h",
            ),
        ),
        call("show_locks", ShowLocksRequest()),
        call("show_locks", ShowLocksRequest("D", "T")),
        call("compact", CompactionRequest("D", "T", type=CompactionType.MAJOR), is_answer_compared=False),
        call("show_compact", ShowCompactRequest(), differs=NAMES_OF_COMPACTIONS),
        call("allocate_table_write_ids", AllocateTableWriteIdsRequest("D", "T", [99])),
    ),
)

PRIVILEGES = Scenario.of(
    "names in privileges",
    call("create_database", database("d")),
    call("create_table", table("t")),
    told(
        call("create_role", privileges.Role("Mixed", 1, "o")),
        call("create_role", privileges.Role("MIXED", 1, "o")),
        call("create_role", privileges.Role("mixed", 1, "o")),
        call("drop_role", "NoRole"),
        call("grant_role", "NoRole", "U", privileges.USER, "g", privileges.USER, False),
        call("revoke_role", "NoRole", "U", privileges.USER),
        call("grant_role", "Mixed", "U", privileges.USER, "g", privileges.USER, False),
        call("grant_role", "Mixed", "U", privileges.USER, "g", privileges.USER, False),
        call("list_roles", "U", privileges.USER),
        [
            step
            for where, reason in (
                (privileges.at(privileges.HiveObjectType.TABLE, "T", "D"), ""),
                (privileges.at(privileges.HiveObjectType.TABLE, "None", "D"), NO_SUCH_OBJECT),
                (privileges.at(privileges.HiveObjectType.DATABASE, None, "NoDb"), ""),
            )
            for step in (
                *[replace(privileges.grant(where), differs=reason)] * 2,
                call("revoke_privileges", privileges.bag(where, "INSERT")),
            )
        ],
    ),
)

CONNECTORS = Scenario.of(
    "names of connectors",
    told(
        auxiliary.create_connector(auxiliary.connector("MixedCase")),
        auxiliary.create_connector(auxiliary.connector("MIXEDCASE")),
        auxiliary.create_connector(auxiliary.connector("Größe")),
        [auxiliary.get_connector(name) for name in _CONNECTORS],
        [auxiliary.alter_connector(name, auxiliary.connector(name)) for name in _CONNECTORS],
        [auxiliary.drop_connector(name) for name in _CONNECTORS],
    ),
)

PLANS = Scenario.of(
    "names of resource plans",
    told(
        workload.create("MixedCase", 2),
        workload.create("MIXEDCASE", 2, differs=NAMELESS),
        [workload.get(name) for name in ("MIXEDCASE", "NoPlan", "Größe")],
        workload.get("MIXEDCASE", "NoSpace"),
        workload.alter("NoPlan", workload.status(workload.ENABLED)),
        workload.pool("Pool", plan="MixedCase"),
        workload.pool("POOL", plan="MixedCase", differs=NAMELESS),
        workload.pool("Pool", plan="NoPlan"),
        call("drop_resource_plan", workload.WMDropResourcePlanRequest("NoPlan", ns=workload.NS)),
        call("drop_resource_plan", workload.WMDropResourcePlanRequest("MIXEDCASE", ns=workload.NS)),
    ),
)

SCHEMAS = Scenario.of(
    "names in the schema registry",
    call("create_database", database("d")),
    told(
        call("create_ischema", registry.schema("MixedCase", dbName="D")),
        call("create_ischema", registry.schema("MIXEDCASE")),
        call("create_ischema", registry.schema("S", dbName="NoDb")),
        call("create_ischema", registry.schema("S", catName="NoCat")),
        [
            step
            for name in (
                *(registry.name("MIXEDCASE", "D", "HIVE"), registry.name("NoSchema", "D"), registry.name("S", "NoDb")),
                *(registry.name("S", "D", "NoCat"), registry.name("Größe")),
            )
            for step in (
                call("get_ischema", name),
                call("alter_ischema", registry.AlterISchemaRequest(name, registry.schema())),
                call("get_schema_version", registry.at(9, name)),
                call("get_schema_latest_version", name),
                call("get_schema_all_versions", name),
                call("drop_schema_version", registry.at(9, name)),
            )
        ],
        call("add_schema_version", registry.version(1, registry.name("MIXEDCASE", "D"))),
        call("add_schema_version", registry.version(1, registry.name("MIXEDCASE", "D"))),
        call("add_schema_version", registry.version(1, registry.name("NoSchema", "D"))),
        call("drop_ischema", registry.name("MIXEDCASE", "D")),
        call("drop_ischema", registry.name("NoSchema", "D")),
        call("get_serde", registry.GetSerdeRequest("NoSerde")),
        call("add_serde", registry.serde("MixedSerde")),
        call("add_serde", registry.serde("MixedSerde")),
        call("get_serde", registry.GetSerdeRequest("MIXEDSERDE")),
    ),
)

PROGRAMS = Scenario.of(
    "names of programs and types",
    call("create_database", database("d")),
    told(
        [
            call("get_stored_procedure", auxiliary.StoredProcedureRequest("hive", *name))
            for name in (("D", "NoProcedure"), ("NoDb", "P"))
        ],
        [
            call("find_package", auxiliary.GetPackageRequest("hive", *name))
            for name in (("D", "NoPackage"), ("NoDb", "P"))
        ],
        call("create_type", auxiliary.Type("MixedType", fields=[])),
        call("create_type", auxiliary.Type("MixedType", fields=[])),
        call("get_type", "MixedType"),
        call("get_type", "NoType"),
        call("drop_type", "NoType"),
    ),
)

SCENARIOS = (
    *NO_TABLE,
    TABLE_IN_CAPITALS,
    CREATION,
    MORE,
    DATABASES,
    CATALOGS,
    FUNCTIONS,
    CONSTRAINTS,
    TRANSACTIONS,
    PRIVILEGES,
    CONNECTORS,
    PLANS,
    SCHEMAS,
    PROGRAMS,
)
