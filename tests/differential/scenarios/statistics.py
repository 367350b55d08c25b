"""Column statistics of tables and partitions: all types, refusals, aggregates."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    GetPartitionsByNamesRequest,
    LongColumnStatsData,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    StringColumnStatsData,
    TableStatsRequest,
    Timestamp,
    TimestampColumnStatsData,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import database, descriptor, partition, table
from tests.differential.reasons import MERGED, NAMED_TWICE, NO_PARTITION, UNCOUNTED

TYPES = {
    "i": ("int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 9, 2, 5))),
    "f": ("double", ColumnStatisticsData(doubleStats=DoubleColumnStatsData(0.5, 9.5, 0, 7))),
    "s": ("string", ColumnStatisticsData(stringStats=StringColumnStatsData(20, 7.5, 1, 6))),
    "y": ("binary", ColumnStatisticsData(binaryStats=BinaryColumnStatsData(20, 7.5, 1))),
    "b": ("boolean", ColumnStatisticsData(booleanStats=BooleanColumnStatsData(3, 4, 1))),
    "m": (
        "decimal(10,2)",
        ColumnStatisticsData(
            decimalStats=DecimalColumnStatsData(
                Decimal(unscaled=b"\x01", scale=2), Decimal(unscaled=b"\x10", scale=2), 1, 4
            )
        ),
    ),
    "d": ("date", ColumnStatisticsData(dateStats=DateColumnStatsData(Date(10), Date(20), 0, 3))),
    "t": (
        "timestamp",
        ColumnStatisticsData(timestampStats=TimestampColumnStatsData(Timestamp(10), Timestamp(20), 0, 3)),
    ),
}
NAMES = list(TYPES)


def of_columns(names: list[str], scale: int = 1) -> list[ColumnStatisticsObj]:
    found = []
    for name in names:
        kind, data = TYPES.get(name, TYPES["i"])
        if name == "i":
            data = ColumnStatisticsData(longStats=LongColumnStatsData(scale, 9 * scale, 2, 5 * scale))
        found.append(ColumnStatisticsObj(name, kind, data))
    return found


def update(
    names: list[str],
    *,
    part: str | None = None,
    of: str = "t",
    scale: int = 1,
    engine: str = "hive",
    **fields: Any,
) -> Call:
    description = {
        "isTblLevel": part is None,
        "dbName": "d",
        "tableName": of,
        "partName": part,
        "lastAnalyzed": 100,
        **fields,
    }
    statistics = ColumnStatistics(ColumnStatisticsDesc(**description), of_columns(names, scale), engine=engine)
    method = "update_table_column_statistics" if part is None else "update_partition_column_statistics"
    return call(method, statistics)


def table_request(names: list[str] | None, **fields: Any) -> Call:
    given = {"dbName": "d", "tblName": "t", "colNames": names, "catName": "hive", "engine": "hive", **fields}
    return call("get_table_statistics_req", TableStatsRequest(**given), is_ordered=False)


COLUMNS = [f"{name}:{kind}" for name, (kind, _) in TYPES.items()]

OF_TABLE = Scenario.of(
    "table",
    call("create_database", database("d")),
    call("create_table", table("t", sd=descriptor(*COLUMNS))),
    call("create_table", table("p", keys=("k:string",), sd=descriptor(*COLUMNS))),
    call("get_table_column_statistics", "d", "t", "i"),
    update(NAMES),
    [call("get_table_column_statistics", "d", "t", name) for name in (*NAMES, "I", "none", "", None)],
    [
        call("get_table_column_statistics", *name, "i")
        for name in (
            ("D", "T"),
            ("@hive#d", "t"),
            ("d", "none"),
            ("none", "t"),
            (None, "t"),
            ("d", None),
            ("", "t"),
            ("d", ""),
        )
    ],
    call("get_table_column_statistics", "d", "p", "k"),
    table_request(NAMES),
    table_request(["i"]),
    table_request(["I", "none"]),
    table_request([]),
    table_request(None),
    table_request(["i"], tblName="none"),
    table_request(["i"], dbName="none"),
    table_request(["i"], engine="impala"),
    update(["none"]),
    update([]),
    update(["i"], of="none"),
    update(["i"], dbName="none"),
    update(["i"], of="T", scale=2),
    call("get_table_column_statistics", "d", "t", "i"),
    call(
        "update_table_column_statistics_req",
        SetPartitionsStatsRequest(
            [ColumnStatistics(ColumnStatisticsDesc(True, "d", "t"), of_columns(["i"], 3), engine="hive")], engine="hive"
        ),
    ),
    call("get_table_column_statistics", "d", "t", "i"),
    call("delete_table_column_statistics", "d", "t", "i", "hive"),
    call("delete_table_column_statistics", "d", "t", "i", "hive"),
    call("delete_table_column_statistics", "d", "t", "none", "hive"),
    call("delete_table_column_statistics", "d", "none", "i", "hive"),
    call("delete_table_column_statistics", "none", "t", "i", "hive"),
    call("delete_table_column_statistics", None, "t", "i", "hive"),
    call("delete_table_column_statistics", "d", None, "i", "hive"),
    call("delete_table_column_statistics", "d", "t", "s", "impala"),
    table_request(NAMES),
    call("delete_table_column_statistics", "d", "t", None, "hive"),
    table_request(NAMES),
)

P1, P2 = "k=1", "k=2"


def partition_request(
    names: list[str] | None,
    parts: list[str] | None,
    method: str = "get_partitions_statistics_req",
    *,
    differs: str = "",
    **fields: Any,
) -> Call:
    given = {
        "dbName": "d",
        "tblName": "p",
        "colNames": names,
        "partNames": parts,
        "catName": "hive",
        "engine": "hive",
        **fields,
    }
    return call(method, PartitionsStatsRequest(**given), is_ordered=False, differs=differs)


def both(names: list[str] | None, parts: list[str] | None, **fields: Any) -> list[Call]:
    return [
        partition_request(names, parts, method, **fields)
        for method in ("get_partitions_statistics_req", "get_aggr_stats_for")
    ]


OF_PARTITIONS = Scenario.of(
    "partitions",
    call("create_database", database("d")),
    call("create_table", table("p", keys=("k:string",), sd=descriptor(*COLUMNS))),
    call("create_table", table("t", sd=descriptor(*COLUMNS))),
    [call("add_partition", partition(value, sd=descriptor(*COLUMNS))) for value in ("1", "2", "3")],
    both(["i"], [P1]),
    update(NAMES, part=P1, of="p"),
    update(NAMES, part=P2, of="p", scale=4),
    update(["i"], part="k=none", of="p"),
    update(["i"], part=P1, of="none"),
    update(["i"], part="nonsense", of="p"),
    update(["i"], part=P1, of="p", dbName="none"),
    [call("get_partition_column_statistics", "d", "p", P1, name) for name in (*NAMES, "I", "none", "", None)],
    [
        call("get_partition_column_statistics", *name, "i")
        for name in (
            ("d", "p", "k=none"),
            ("d", "p", "k=3"),
            ("d", "p", "nonsense"),
            ("d", "none", P1),
            ("none", "p", P1),
            ("d", "p", None),
            (None, "p", P1),
            ("d", None, P1),
            ("d", "p", ""),
        )
    ],
    both(NAMES, [P1, P2]),
    both(NAMES, [P1]),
    both(["i"], [P1, P2, "k=3"]),
    both(["i"], [P1, "k=none"]),
    both(["i"], ["k=none"]),
    both(["i"], []),
    both([], [P1]),
    both(["i"], None),
    both(None, [P1]),
    both(["none"], [P1]),
    both(["I"], [P1]),
    both(["i"], [P1], tblName="none"),
    both(["i"], [P1], dbName="none"),
    both(["i"], [P1], engine="impala"),
    both(["k"], [P1]),
    call(
        "set_aggr_stats_for",
        SetPartitionsStatsRequest(
            [ColumnStatistics(ColumnStatisticsDesc(False, "d", "p", P1), of_columns(["i"], 3), engine="hive")],
            engine="hive",
        ),
    ),
    call(
        "set_aggr_stats_for",
        SetPartitionsStatsRequest(
            [ColumnStatistics(ColumnStatisticsDesc(True, "d", "t"), of_columns(["i"], 3), engine="hive")], engine="hive"
        ),
    ),
    call("set_aggr_stats_for", SetPartitionsStatsRequest([], engine="hive")),
    call(
        "set_aggr_stats_for",
        SetPartitionsStatsRequest(
            [ColumnStatistics(ColumnStatisticsDesc(False, "d", "p", P1), of_columns(["i"], 5), engine="hive")],
            needMerge=True,
            engine="hive",
        ),
        differs=MERGED,
    ),
    both(["i"], [P1, P2]),
    call(
        "update_partition_column_statistics_req",
        SetPartitionsStatsRequest(
            [ColumnStatistics(ColumnStatisticsDesc(False, "d", "p", P2), of_columns(["f"]), engine="hive")],
            engine="hive",
        ),
    ),
    call("delete_partition_column_statistics", "d", "p", P1, "i", "hive"),
    call("delete_partition_column_statistics", "d", "p", P1, "i", "hive"),
    call("delete_partition_column_statistics", "d", "p", "k=none", "i", "hive"),
    call("delete_partition_column_statistics", "d", "none", P1, "i", "hive"),
    call("delete_partition_column_statistics", "none", "p", P1, "i", "hive"),
    call("delete_partition_column_statistics", "d", "p", None, "i", "hive"),
    call("delete_partition_column_statistics", "d", "p", P1, None, "hive"),
    both(NAMES, [P1, P2]),
)


def setting(
    method: str, part: str | None, *, of: str = "p", place: str = "d", is_merged: bool = False, differs: str = ""
) -> Call:
    description = ColumnStatisticsDesc(part is None, place, of, part)
    statistics = ColumnStatistics(description, of_columns(["i"], 3), engine="hive")
    request = SetPartitionsStatsRequest([statistics], needMerge=is_merged, engine="hive")
    return call(method, request, differs=differs)


AGGREGATES, ONE_TABLE, ONE_PARTITION = (
    "set_aggr_stats_for",
    "update_table_column_statistics_req",
    "update_partition_column_statistics_req",
)
CLAIMS = call("get_partitions_by_names_req", GetPartitionsByNamesRequest("d", "p", [P2]), differs=UNCOUNTED)

ABSENT = Scenario.of(
    "absent and repeated",
    call("create_database", database("d")),
    call("create_table", table("p", keys=("k:string",), sd=descriptor(*COLUMNS))),
    call("create_table", table("t", sd=descriptor(*COLUMNS))),
    [call("add_partition", partition(value, sd=descriptor(*COLUMNS))) for value in ("1", "2", "3")],
    [
        setting(method, part, **where)
        for method in (AGGREGATES, ONE_TABLE, ONE_PARTITION)
        for part in ((P1,) if method == ONE_PARTITION else (None, P1))
        for where in ({"of": "none"}, {"place": "none"})
    ],
    setting(AGGREGATES, "k=9", differs=NO_PARTITION),
    setting(AGGREGATES, P1, of="t", differs=NO_PARTITION),
    [setting(ONE_TABLE, part) for part in ("k=9", "nonsense", P1)],
    table_request(["i"], tblName="p"),
    partition_request(["i"], [P1]),
    [setting(ONE_PARTITION, part) for part in (None, "k=9", P1)],
    partition_request(["i"], [P1]),
    setting(AGGREGATES, P2),
    CLAIMS,
    both(["i"], [P1, P1]),
    partition_request(["i"], [P1, P2, P2]),
    [
        partition_request(["i"], names, "get_aggr_stats_for", differs=NAMED_TWICE)
        for names in ([P1, P2, P2], [P1, P1, P2, "k=9"])
    ],
    [
        step
        for engine in ("impala", "hive")
        for step in (
            call("delete_table_column_statistics", "d", "t", None, engine),
            call("delete_table_column_statistics", "d", "none", None, engine),
            call("delete_partition_column_statistics", "d", "p", P1, None, engine),
            call("delete_partition_column_statistics", "d", "p", P1, "i", engine),
            call("delete_partition_column_statistics", "d", "p", "k=3", None, engine),
            call("delete_partition_column_statistics", "d", "p", "k=9", None, engine),
            call("delete_partition_column_statistics", "d", "p", P1, None, engine),
        )
    ],
    partition_request(["i"], [P1, P2]),
)

ENGINES = Scenario.of(
    "engines",
    call("create_database", database("d")),
    call("create_table", table("t", sd=descriptor(*COLUMNS))),
    call("create_table", table("p", keys=("k:string",), sd=descriptor(*COLUMNS))),
    call("add_partition", partition("1", sd=descriptor(*COLUMNS))),
    # Of one column, with statistics of one engine only: with two, Hive says that its query is not unique.
    update(["i", "f"], engine="impala"),
    update(["i", "f"], part=P1, of="p", engine="impala"),
    call("delete_table_column_statistics", "d", "t", "i", None),
    call("delete_partition_column_statistics", "d", "p", P1, "i", None),
    table_request(["i", "f"], engine="impala"),
    partition_request(["i", "f"], [P1], engine="impala"),
    update(["i", "f"]),
    update(["i", "f"], part=P1, of="p"),
    call("delete_table_column_statistics", "d", "t", None, None),
    call("delete_partition_column_statistics", "d", "p", P1, None, None),
    [table_request(["i", "f"], engine=engine) for engine in ("impala", "hive")],
    [partition_request(["i", "f"], [P1], engine=engine) for engine in ("impala", "hive")],
)
"""Deletions that name no engine."""

SCENARIOS = [OF_TABLE, OF_PARTITIONS, ABSENT, ENGINES]
