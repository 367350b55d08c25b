"""For a column that a request names twice, also in different case, there is one row: the last one's."""

from __future__ import annotations

from hms_cache.store.statistics.writes import prepared
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    Table,
)


def column(name: str, distinct: int) -> ColumnStatisticsObj:
    return ColumnStatisticsObj(
        name, "BIGINT", ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=distinct))
    )


def test_the_last_one_counts() -> None:
    sent = ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=True, dbName="d", tableName="t"),
        statsObj=[column("id", 1), column("v", 2), column("ID", 3), column("v", 4)],
    )
    own = prepared(sent, Table(catName="hive", dbName="d", tableName="t"), 5)
    found = [(one.colName, one.colType, one.statsData.longStats.numDVs) for one in own.statsObj]
    assert found == [("id", "bigint", 3), ("v", "bigint", 4)]
    assert len(sent.statsObj) == 4, "the request stays as it is"
