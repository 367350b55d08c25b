"""Reads with lists of write ids and masks of fields, and statistics of decimals and times."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckConstraintsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DefaultConstraintsRequest,
    ForeignKeysRequest,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsFilterSpec,
    GetPartitionsRequest,
    GetProjectionsSpec,
    NotNullConstraintsRequest,
    PartitionFilterMode,
    PartitionsRequest,
    PartitionsStatsRequest,
    PartitionValuesRequest,
    SetPartitionsStatsRequest,
    TableStatsRequest,
    Timestamp,
    TimestampColumnStatsData,
    UniqueConstraintsRequest,
)
from tests.differential.comparison import Call, Scenario, call
from tests.differential.objects import columns, database, descriptor, partition, table
from tests.differential.scenarios.combined_fields import (
    CATALOG,
    CLIENT,
    OLD,
    PARTITION,
    VALID,
    WORLD,
    Options,
    combined,
)

LISTS: Options = {"validWriteIdList": (VALID, OLD)}

CONSTRAINTS = (
    ("get_foreign_keys", ForeignKeysRequest, {"foreign_db_name": "d", "foreign_tbl_name": "acid"}),
    ("get_unique_constraints", UniqueConstraintsRequest, {"catName": "hive", "db_name": "d", "tbl_name": "acid"}),
    ("get_not_null_constraints", NotNullConstraintsRequest, {"catName": "hive", "db_name": "d", "tbl_name": "acid"}),
    ("get_default_constraints", DefaultConstraintsRequest, {"catName": "hive", "db_name": "d", "tbl_name": "acid"}),
    ("get_check_constraints", CheckConstraintsRequest, {"catName": "hive", "db_name": "d", "tbl_name": "acid"}),
)
ALL_FIELDS = (
    ["values"],
    ["values", "dbName", "tableName", "catName"],
    ["sd.location"],
    ["sd.cols"],
    ["sd.cols.name", "sd.cols.type"],
    ["sd.serdeInfo.serializationLib", "sd.serdeInfo.parameters"],
    ["parameters"],
    ["createTime", "lastAccessTime", "writeId"],
    ["sd"],
    ["VALUES", "sd.Location"],
    ["nothing"],
    ["sd.nothing"],
    ["sd.skewedInfo.skewedColNames", "sd.bucketCols", "sd.sortCols.col"],
    ["privileges"],
)
READS = Scenario.of(
    "reads with lists",
    WORLD,
    [step for method, request, given in CONSTRAINTS for step in combined(method, request, given, {**LISTS})],
    combined(
        *("get_partition_req", GetPartitionRequest, {"dbName": "d", "tblName": "acid"}),
        {
            **CATALOG,
            **LISTS,
            "partVals": ([], ["2024-01-01", "1"], ["2024-01-01"], ["2024-01-01", "9"]),
            "id": (12345,),
        },
    ),
    combined(
        *("get_partitions_req", PartitionsRequest, {"dbName": "d", "tblName": "acid"}),
        {**CATALOG, **LISTS, "maxParts": (0, 1, 9), "id": (12345,)},
        is_ordered=False,
    ),
    combined(
        *("get_partition_values", PartitionValuesRequest),
        {"dbName": "d", "tblName": "acid", "partitionKeys": columns("hour:int")},
        {
            **CATALOG,
            **LISTS,
            "applyDistinct": (False,),
            "ascending": (False,),
            "maxParts": (0, 1),
            "filter": ("", 'day = "2024-01-01"'),
            "partitionOrder": (columns("hour:int"), columns("day:string")),
        },
        is_ordered=False,
    ),
    combined(
        *("get_partitions_by_names_req", GetPartitionsByNamesRequest),
        {"db_name": "d", "tbl_name": "acid", "names": [PARTITION]},
        {**LISTS, "get_col_stats": (True,), "engine": ("hive",), "id": (12345,)},
        is_ordered=False,
    ),
    combined(
        *("get_partitions_with_specs", GetPartitionsRequest),
        {"dbName": "d", "tblName": "acid", "projectionSpec": GetProjectionsSpec(["parameters"], "", "")},
        {
            "catName": ("hive", "missing"),
            "withAuth": (False, True),
            "user": ("u",),
            "groupNames": ([], ["g"]),
            **CLIENT,
            **LISTS,
            "projectionSpec": tuple(GetProjectionsSpec(fields, "", "") for fields in ALL_FIELDS[:2]),
            "filterSpec": (
                GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_NAMES, filters=[PARTITION]),
                GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_VALUES, filters=["2024-01-01"]),
            ),
        },
        is_ordered=False,
    ),
    [
        call(
            "get_partitions_with_specs",
            GetPartitionsRequest(
                dbName="d",
                tblName=name,
                projectionSpec=GetProjectionsSpec(fields, include, exclude),
                filterSpec=GetPartitionsFilterSpec(filterMode=PartitionFilterMode.BY_NAMES, filters=[PARTITION]),
            ),
            is_ordered=False,
        )
        for name in ("acid",)
        for fields in ([], *ALL_FIELDS)
        for include, exclude in ((None, None), ("", ""), ("num%", None), (None, "num%"), ("%", "COLUMN%"))
    ],
)

_DECIMALS = (
    Decimal(unscaled=b"\x01", scale=0),
    Decimal(unscaled=b"\xff\x85", scale=2),
    Decimal(unscaled=b"\x00\x80", scale=10),
)
_TYPED: dict[str, tuple[str, tuple[ColumnStatisticsData, ...]]] = {
    "d": (
        "decimal(10,2)",
        tuple(
            ColumnStatisticsData(
                decimalStats=DecimalColumnStatsData(lowValue=low, highValue=high, numNulls=1, numDVs=2)
            )
            for low in (None, *_DECIMALS)
            for high in (None, _DECIMALS[0])
        ),
    ),
    "e": (
        "date",
        tuple(
            ColumnStatisticsData(
                dateStats=DateColumnStatsData(
                    lowValue=None if low is None else Date(low),
                    highValue=None if high is None else Date(high),
                    numNulls=0,
                    numDVs=5,
                )
            )
            for low in (None, -719162, 0, 20000)
            for high in (None, 2932896)
        ),
    ),
    "s": (
        "timestamp",
        tuple(
            ColumnStatisticsData(
                timestampStats=TimestampColumnStatsData(
                    lowValue=None if low is None else Timestamp(low),
                    highValue=None if high is None else Timestamp(high),
                    numNulls=0,
                    numDVs=5,
                )
            )
            for low in (None, -62135769600, 0)
            for high in (None, 253402300799)
        ),
    ),
}


def _statistics(name: str, data: ColumnStatisticsData, of: str | None, **fields: Any) -> ColumnStatistics:
    description = ColumnStatisticsDesc(of is None, "d", "typed" if of else "plain", of, 1000000000, **fields)
    return ColumnStatistics(description, [ColumnStatisticsObj(name, _TYPED[name][0], data)], engine="hive")


def _written(name: str, data: ColumnStatisticsData) -> list[Call]:
    names = ["k=1", "k=2"]
    return [
        call(
            "update_table_column_statistics_req",
            SetPartitionsStatsRequest([_statistics(name, data, None)], engine="hive"),
        ),
        call("get_table_statistics_req", TableStatsRequest("d", "plain", [name], engine="hive")),
        call(
            "update_partition_column_statistics_req",
            SetPartitionsStatsRequest([_statistics(name, data, "k=1")], engine="hive"),
        ),
        call("get_partitions_statistics_req", PartitionsStatsRequest("d", "typed", [name], names, engine="hive")),
        call("get_aggr_stats_for", PartitionsStatsRequest("d", "typed", [name], names, engine="hive")),
    ]


TYPED = [f"{name}:{kind}" for name, (kind, _) in _TYPED.items()]
STATISTICS = Scenario.of(
    "statistics of decimals and times",
    call("create_database", database("d")),
    call("create_table", table("plain", sd=descriptor(*TYPED))),
    call("create_table", table("typed", sd=descriptor(*TYPED), keys=("k:int",))),
    call("add_partitions", [partition(value, of="typed", sd=descriptor(*TYPED)) for value in ("1", "2")]),
    [
        call(
            "update_partition_column_statistics_req",
            SetPartitionsStatsRequest([_statistics(name, data[-1], "k=2")], engine="hive"),
        )
        for name, (_, data) in _TYPED.items()
    ],
    [step for name, (_, values) in _TYPED.items() for data in values for step in _written(name, data)],
    combined(
        *("update_table_column_statistics_req", SetPartitionsStatsRequest),
        {"colStats": [_statistics("d", _TYPED["d"][1][-1], None)], "engine": "hive"},
        {"needMerge": (False, True), "writeId": (0, 1), **LISTS, "engine": ("impala",)},
    ),
    combined(
        *("update_partition_column_statistics_req", SetPartitionsStatsRequest),
        {"colStats": [_statistics("d", _TYPED["d"][1][-1], "k=1")], "engine": "hive"},
        {"needMerge": (False, True), "writeId": (0, 1), **LISTS, "engine": ("impala",)},
    ),
    call("get_table_statistics_req", TableStatsRequest("d", "plain", ["d", "e", "s"], engine="hive"), is_ordered=False),
    call(
        "get_partitions_statistics_req",
        PartitionsStatsRequest("d", "typed", ["d", "e", "s"], ["k=1", "k=2"], engine="hive"),
        is_ordered=False,
    ),
)

SCENARIOS = (READS, STATISTICS)
