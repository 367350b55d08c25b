"""Statistics of timestamps: clients since Hive 4 get them as such, earlier ones as statistics of integers."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Serve, database, table

MOMENTS = t.TimestampColumnStatsData(t.Timestamp(-7), t.Timestamp(9), 1, 3, b"HL")


def statistics(part: str | None) -> t.ColumnStatistics:
    description = t.ColumnStatisticsDesc(isTblLevel=part is None, dbName="d", tableName="t", partName=part)
    moment = t.ColumnStatisticsObj("m", "timestamp", t.ColumnStatisticsData(timestampStats=MOMENTS))
    number = t.ColumnStatisticsObj("n", "int", t.ColumnStatisticsData(longStats=t.LongColumnStatsData(1, 2, 0, 2)))
    return t.ColumnStatistics(description, [moment, number], engine="hive")


@pytest.mark.parametrize(("engine", "member"), [("hive", "timestampStats"), (None, "longStats")])
def test_by_the_field_that_came_with_hive_4(serve: Serve, engine: str | None, member: str) -> None:
    link = serve().link()
    link.call("create_database", database=database("d"))
    made = table("d", "t")
    made.sd.cols = [t.FieldSchema("m", "timestamp"), t.FieldSchema("n", "int")]
    link.call("create_table", tbl=made)
    link.call("append_partition_by_name", db_name="d", tbl_name="t", part_name="p=1")
    for part in (None, "p=1"):
        link.call("set_aggr_stats_for", request=t.SetPartitionsStatsRequest([statistics(part)], engine="hive"))
    of_table = t.TableStatsRequest("d", "t", ["m", "n"], engine=engine)
    of_partitions = t.PartitionsStatsRequest("d", "t", ["m", "n"], ["p=1"], engine=engine)
    found: list[list[Any]] = [
        link.call("get_table_statistics_req", request=of_table).tableStats,
        link.call("get_partitions_statistics_req", request=of_partitions).partStats["p=1"],
        link.call("get_aggr_stats_for", request=of_partitions).colStats,
    ]
    for columns in found:
        moment, number = sorted(columns, key=lambda one: str(one.colName))
        assert number.statsData.longStats.highValue == 2
        data = getattr(moment.statsData, member)
        low, high = (getattr(one, "secondsSinceEpoch", one) for one in (data.lowValue, data.highValue))
        assert (low, high, data.numNulls, data.numDVs) == (-7, 9, 1, 3)
