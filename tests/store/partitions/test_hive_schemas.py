"""Partitions and statistics in databases created by Hive's own scripts of 3.1 and 4.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByValues, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.statistics.statistics_store import Statistics
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    EnvironmentContext,
    LongColumnStatsData,
)
from tests.store.partitions.catalog import PartitionCatalog, partition
from tests.store.schema.distribution import load_hive_schema

pytestmark = pytest.mark.java
T = ("hive", "d", "t")
KEEP_STATISTICS = environment_options(EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))


@pytest.mark.parametrize("release", ["3.1.3", "4.0.1"])
@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"])
def test_everything_works_there(database_url: str, release: str, tmp_path: Path) -> None:
    load_hive_schema(database_url, release)
    database = Database(database_url)
    try:
        catalog = PartitionCatalog(database, tmp_path)
        catalog.create_table(parameters={"transactional": "true"})
        _exercise(catalog, has_write_ids=release != "3.1.3")
    finally:
        database.close()


def _exercise(catalog: PartitionCatalog, *, has_write_ids: bool) -> None:
    statistics = Statistics(catalog.context)
    catalog.writes.add_partitions(
        TableName(*T), [partition("a", str(hour)) for hour in range(3)], writer=Writer(write_id=4)
    )
    found = catalog.reads.get_partition(TableName(*T), ["a", "1"])
    assert found.writeId == (4 if has_write_ids else -1)
    found.parameters["k"] = "v"
    found.createTime = 77
    snapshot = "d.t:5:9223372036854775807::"
    catalog.writes.alter_partitions(
        TableName(*T), [found], writer=Writer(write_id=5, valid_write_ids=snapshot, options=KEEP_STATISTICS)
    )
    changed = catalog.reads.get_partition(TableName(*T), ["a", "1"])
    assert (changed.parameters["k"], changed.createTime, changed.writeId) == ("v", 77, 5 if has_write_ids else -1)

    def longs(high: int) -> ColumnStatisticsObj:
        data = ColumnStatisticsData(longStats=LongColumnStatsData(0, high, 0, high))
        return ColumnStatisticsObj("id", "bigint", data)

    names = ["dt=a/hr=0", "dt=a/hr=1"]
    statistics.update_partition_column_statistics(
        [
            ColumnStatistics(ColumnStatisticsDesc(False, "d", "t", name), [longs(number + 1)])
            for number, name in enumerate(names)
        ],
        writer=Writer(write_id=5, valid_write_ids=snapshot),
    )
    statistics.update_table_column_statistics(
        ColumnStatistics(ColumnStatisticsDesc(True, "d", "t"), [longs(9)]),
        writer=Writer(write_id=5, valid_write_ids=snapshot),
    )
    assert statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["id"])).statsObj == [longs(9)]
    aggregate = statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["id"]), names)
    assert (aggregate.partsFound, aggregate.colStats) == (2, [longs(2)])
    moved = catalog.reads.get_partition(TableName(*T), ["a", "0"])
    moved.values = ["b", "7"]
    catalog.writes.rename_partition(TableName(*T), ["a", "0"], moved)
    [renamed] = statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["id"]), ["dt=b/hr=7"])
    assert renamed.statsObj == [longs(1)]
    assert catalog.reads.get_partition_names(PartitionQuery(TableName(*T), ByFilter("hr > 1"))) == [
        "dt=a/hr=2",
        "dt=b/hr=7",
    ]
    catalog.writes.drop_partitions(TableName(*T), ByValues(("a", "2")), delete_data=True)
    assert len(catalog.writes.drop_partitions(TableName(*T), AllPartitions(), delete_data=True)) == 2
