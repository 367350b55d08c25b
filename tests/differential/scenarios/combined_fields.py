"""Optional fields of requests in pairs: a client sets several, and each may change the meaning of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AllocateTableWriteIdsRequest,
    AllTableConstraintsRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    DropPartitionsRequest,
    EnvironmentContext,
    GetDatabaseRequest,
    GetFieldsRequest,
    GetPartitionNamesPsRequest,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetProjectionsSpec,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    LongColumnStatsData,
    NotificationEventRequest,
    OpenTxnRequest,
    PartitionsRequest,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    ShowLocksRequest,
    TableStatsRequest,
    TruncateTableRequest,
)
from tests.differential.comparison import WAREHOUSE, Call, Scenario, call
from tests.differential.objects import database, descriptor, partition, table, view

Options = Mapping[str, tuple[Any, ...]]

ACCURATE = '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}'
VALID = "d.acid:1:9223372036854775807::"
OLD = "d.acid:0:9223372036854775807::"
WRITE_IDS: Options = {"validWriteIdList": (VALID, OLD), "id": (12345,)}
CATALOG: Options = {"catName": ("hive", "HIVE", "missing")}
CLIENT: Options = {
    "processorCapabilities": ([], ["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"], ["EXTREAD"]),
    "processorIdentifier": ("client@host",),
}


def _statistics(name: str | None) -> ColumnStatistics:
    numbers = LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=3)
    description = ColumnStatisticsDesc(name is None, "d", "acid" if name else "flat", name, 1000000000, "hive")
    return ColumnStatistics(
        description, [ColumnStatisticsObj("a", "int", ColumnStatisticsData(longStats=numbers))], True, "hive"
    )


WORLD = (
    call("create_database", database("d")),
    call("create_table", table("flat")),
    call("create_table", view("v")),
    call(
        "create_table",
        table(
            "acid",
            keys=("day:string", "hour:int"),
            parameters={"transactional": "true", "transactional_properties": "insert_only"},
        ),
    ),
    call("open_txns", OpenTxnRequest(1, "u", "h"), keeps="txns"),
    call("allocate_table_write_ids", AllocateTableWriteIdsRequest("d", "acid", [1])),
    call(
        "add_partitions",
        [partition(day, hour, of="acid", writeId=1) for day in ("2024-01-01", "2024-01-02") for hour in ("1", "2")],
    ),
    call(
        "set_aggr_stats_for",
        SetPartitionsStatsRequest(
            [_statistics(f"day=2024-01-0{day}/hour=1") for day in (1, 2)],
            *(False, 1, "d.acid:1:9223372036854775807::"),
            engine="hive",
        ),
    ),
    # Java stores no write id of added partitions, nor that of statistics of several: this write sets the state.
    call(
        "alter_partitions_req",
        AlterPartitionsRequest(
            partitions=[
                partition(
                    *(day, hour),
                    of="acid",
                    sd=descriptor(location=f"{WAREHOUSE}/managed/d.db/acid/day={day}/hour={hour}"),
                    parameters={"numRows": "3", "COLUMN_STATS_ACCURATE": ACCURATE} if hour == "1" else {},
                )
                for day in ("2024-01-01", "2024-01-02")
                for hour in ("1", "2")
            ],
            dbName="d",
            tableName="acid",
            writeId=1,
            validWriteIdList=VALID,
            environmentContext=EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}),
        ),
        is_answer_compared=False,
    ),
    call("set_aggr_stats_for", SetPartitionsStatsRequest([_statistics(None)], engine="hive")),
    call("commit_txn", CommitTxnRequest(1)),
)


def pairs(options: Options) -> Iterator[dict[str, Any]]:
    """No field, each field alone, each two, with each of their values."""
    for count in (0, 1, 2):
        for names in combinations(options, count):
            for values in product(*(options[name] for name in names)):
                yield dict(zip(names, values, strict=True))


def combined(
    method: str, request: Callable[..., Any], given: Mapping[str, Any], options: Options, **expectations: Any
) -> list[Call]:
    return [call(method, request(**{**given, **fields}), **expectations) for fields in pairs(options)]


def _of(name: str, db: str = "dbName", tbl: str = "tblName") -> dict[str, Any]:
    return {db: "d", tbl: name}


CAPABILITIES = (
    ClientCapabilities([]),
    ClientCapabilities([ClientCapability.TEST_CAPABILITY]),
    ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES]),
)
STATISTICS: Options = {"engine": ("hive", "impala")}
PROJECTIONS = (GetProjectionsSpec([], "", ""),)

TABLES = Scenario.of(
    "tables",
    WORLD,
    [
        step
        for name in ("acid", "flat", "missing")
        for step in (
            *combined(
                *("get_table_req", GetTableRequest, _of(name)),
                {
                    **CATALOG,
                    **WRITE_IDS,
                    **CLIENT,
                    **STATISTICS,
                    "capabilities": CAPABILITIES,
                    "getColumnStats": (False, True),
                },
            ),
            *combined("get_fields_req", GetFieldsRequest, _of(name), {**CATALOG, **WRITE_IDS}),
            *combined("get_schema_req", GetSchemaRequest, _of(name), {**CATALOG, **WRITE_IDS}),
        )
    ],
    combined(
        *("get_table_objects_by_name_req", GetTablesRequest, {"dbName": "d", "tblNames": ["acid", "flat", "no"]}),
        {
            **CATALOG,
            **CLIENT,
            "capabilities": CAPABILITIES,
            "projectionSpec": PROJECTIONS,
            "tablesPattern": ("fl*",),
        },
        is_ordered=False,
    ),
    combined("get_database_req", GetDatabaseRequest, {"name": "d"}, {"catalogName": CATALOG["catName"], **CLIENT}),
    combined(
        *("get_tables_ext", GetTablesExtRequest, {"catalog": "hive", "database": "d", "tableNamePattern": "*"}),
        {"requestedFields": (0, 1, 7, 2**31 - 1), "limit": (-1, 0, 1, 9), **CLIENT},
        is_ordered=False,
    ),
)

DAY = ["2024-01-01"]
PARTITIONS = Scenario.of(
    "partitions",
    WORLD,
    [
        step
        for name in ("acid", "flat", "missing")
        for step in (
            *combined(
                *("get_partition_names_ps_req", GetPartitionNamesPsRequest, _of(name)),
                {
                    **CATALOG,
                    **WRITE_IDS,
                    "partValues": ([], DAY, [*DAY, ""], ["", "2"], [*DAY, "1", "3"]),
                    "maxParts": (1, 2, 9),
                },
                is_ordered=False,
            ),
            *combined(
                *("fetch_partition_names_req", PartitionsRequest, _of(name)),
                {**CATALOG, **WRITE_IDS, "maxParts": (0, 1, 9)},
            ),
            *combined(
                *("get_primary_keys", PrimaryKeysRequest, _of(name, "db_name", "tbl_name")),
                {**CATALOG, "validWriteIdList": WRITE_IDS["validWriteIdList"], "tableId": (12345,)},
            ),
            *combined(
                *("get_all_table_constraints", AllTableConstraintsRequest, {**_of(name), "catName": "hive"}),
                {"validWriteIdList": WRITE_IDS["validWriteIdList"], "tableId": (12345,)},
            ),
        )
    ],
)

PARTITION = "day=2024-01-01/hour=1"
LISTS = Scenario.of(
    "partition lists",
    WORLD,
    [
        step
        for name in ("acid", "flat", "missing")
        for step in (
            *combined(
                *("get_partitions_ps_with_auth_req", GetPartitionsPsWithAuthRequest, _of(name)),
                {
                    **CATALOG,
                    **WRITE_IDS,
                    "partVals": ([], DAY, ["", "2"], [*DAY, "1", "3"]),
                    "partNames": ([], [PARTITION], [PARTITION, "day=2025/hour=9"]),
                    "maxParts": (-1, 0, 1),
                    "userName": ("u",),
                    "groupNames": (["g"],),
                },
                is_ordered=False,
            ),
            *combined(
                *("get_partitions_by_names_req", GetPartitionsByNamesRequest),
                {**_of(name, "db_name", "tbl_name"), "names": [PARTITION, "day=2025/hour=9"]},
                {"get_col_stats": (False, True), "engine": ("hive", "impala"), **CLIENT},
                is_ordered=False,
            ),
            *combined(
                *("get_partitions_by_filter_req", GetPartitionsByFilterRequest, _of(name, "dbName", "tblName")),
                {
                    "filter": ("", 'day = "2024-01-01"', "no = 1"),
                    "maxParts": (-1, 0, 1),
                    "includeParamKeyPattern": ("k%",),
                    "skipColumnSchemaForPartition": (True,),
                },
                is_ordered=False,
            ),
        )
    ],
)

COLUMNS = Scenario.of(
    "statistics of columns",
    WORLD,
    [
        step
        for name in ("acid", "flat", "missing")
        for step in (
            *combined(
                *("get_table_statistics_req", TableStatsRequest, {**_of(name), "colNames": ["a"], "engine": "hive"}),
                {**CATALOG, **WRITE_IDS, "colNames": (["A"], ["a", "no"]), "engine": ("impala",)},
                is_ordered=False,
            ),
            *(
                step
                for method in ("get_partitions_statistics_req", "get_aggr_stats_for")
                for step in combined(
                    *(method, PartitionsStatsRequest),
                    {**_of(name), "colNames": ["a"], "partNames": [PARTITION], "engine": "hive"},
                    {
                        **CATALOG,
                        "validWriteIdList": WRITE_IDS["validWriteIdList"],
                        "colNames": (["A"], ["a", "no"]),
                        "partNames": ([], [PARTITION, "day=2024-01-02/hour=1"], ["day=2025/hour=9"]),
                        "engine": ("impala",),
                    },
                    is_ordered=False,
                )
            ),
        )
    ],
)

CONTEXTS = (
    EnvironmentContext({}),
    EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}),
    EnvironmentContext({"STATS_GENERATED": "TASK"}),
    EnvironmentContext({"CASCADE": "true"}),
)


def _altered(name: str) -> list[Call]:
    new = table(name, keys=("day:string", "hour:int") if name == "acid" else ())
    if name == "acid":
        new.parameters = {"transactional": "true", "transactional_properties": "insert_only", "numRows": "7"}
    read = call("get_table_req", GetTableRequest("d", name, capabilities=CAPABILITIES[2], getColumnStats=True))
    steps = combined(
        *("alter_table_req", AlterTableRequest, {"dbName": "d", "tableName": name, "table": new}),
        {
            **CATALOG,
            **CLIENT,
            "validWriteIdList": WRITE_IDS["validWriteIdList"],
            "writeId": (0, 1),
            "environmentContext": CONTEXTS,
        },
        is_answer_compared=False,
    )
    return [both for step in steps for both in (step, read)]


def _partitions_altered(name: str) -> list[Call]:
    read = call("get_partitions_by_names_req", GetPartitionsByNamesRequest("d", name, ["day=2024-01-01/hour=1"], True))
    new = partition("2024-01-01", "1", of=name, parameters={"k": "w", "numRows": "5"})
    steps = combined(
        "alter_partitions_req",
        AlterPartitionsRequest,
        {"dbName": "d", "tableName": name, "partitions": [new]},
        {
            **CATALOG,
            "validWriteIdList": WRITE_IDS["validWriteIdList"],
            "writeId": (0, 1),
            "environmentContext": CONTEXTS,
        },
        is_answer_compared=False,
    )
    return [both for step in steps for both in (step, read)]


def _truncated(name: str) -> list[Call]:
    read = call("get_table_req", GetTableRequest("d", name, capabilities=CAPABILITIES[2], getColumnStats=True))
    parts = call("get_partitions_by_names_req", GetPartitionsByNamesRequest("d", name, ["day=2024-01-01/hour=1"]))
    # For a transactional table, Java hides no rows by the base that it writes if the write id is 0.
    keeps_files = {"truncateSkipDataDeletion": "true"} if name == "flat" else {"ifPurge": "true"}
    steps = combined(
        *("truncate_table_req", TruncateTableRequest, {"dbName": "d", "tableName": name}),
        {
            "partNames": ([], ["day=2024-01-01/hour=1"], ["day=2024-01-01/hour=9"]),
            "validWriteIdList": WRITE_IDS["validWriteIdList"],
            "writeId": (0, 1),
            "environmentContext": (*CONTEXTS, EnvironmentContext(keeps_files)),
        },
        is_answer_compared=False,
    )
    return [each for step in steps for each in (step, read, parts)]


def _added_and_dropped(name: str) -> list[Call]:
    read = call("get_partition_names_ps_req", GetPartitionNamesPsRequest(dbName="d", tblName=name), is_ordered=False)
    new = [partition("2024-01-01", "1", of=name), partition("2025", "1", of=name)]
    added = combined(
        *("add_partitions_req", AddPartitionsRequest, {**_of(name), "parts": new, "ifNotExists": True}),
        {
            "catName": ("hive", "missing"),
            "validWriteIdList": WRITE_IDS["validWriteIdList"],
            "ifNotExists": (False,),
            "needResult": (False, True),
        },
        is_ordered=False,
    )
    dropped = combined(
        *("drop_partitions_req", DropPartitionsRequest),
        {**_of(name), "parts": RequestPartsSpec(names=["day=2025/hour=1", "day=2026/hour=1"])},
        {
            **CATALOG,
            "deleteData": (False, True),
            "ifExists": (False, True),
            "ignoreProtection": (True,),
            "needResult": (False, True),
            "environmentContext": (EnvironmentContext({"ifPurge": "true"}),),
        },
        is_ordered=False,
    )
    again = call("add_partitions_req", AddPartitionsRequest("d", name, new, True, False))
    return [
        *(each for step in added for each in (step, read, dropped[0])),
        *(each for step in dropped for each in (again, step, read)),
    ]


WRITES = [
    Scenario.of(f"{title} of {name}", WORLD, steps(name))
    for title, steps, names in (
        ("changes", _altered, ("acid", "flat", "missing")),
        ("changed partitions", _partitions_altered, ("flat", "missing")),
        ("truncations", _truncated, ("acid", "flat", "missing")),
        ("added and dropped partitions", _added_and_dropped, ("acid", "flat", "missing")),
    )
    for name in names
]

LOG = Scenario.of(
    "log",
    WORLD,
    combined(
        *("get_next_notification", NotificationEventRequest, {"lastEvent": 0}),
        {
            "maxEvents": (-1, 0, 1, 2),
            "eventTypeSkipList": ([], ["CREATE_TABLE"], ["create_table"], ["OPEN_TXN", "ADD_PARTITION"]),
            "catName": ("hive", "missing"),
            "dbName": ("d", "D", "missing"),
            "tableNames": ([], ["flat"], ["FLAT", "acid"]),
        },
        is_answer_compared=False,
    ),
    combined(
        *("show_locks", ShowLocksRequest, {}),
        {
            "dbname": ("d",),
            "tablename": ("acid",),
            "partname": ("day=1",),
            "isExtended": (True,),
            "txnid": (1,),
            "catname": ("hive",),
        },
    ),
)

SCENARIOS = (TABLES, PARTITIONS, LISTS, COLUMNS, *WRITES, LOG)
