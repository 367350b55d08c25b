"""Statistics returned with a table or with partitions are current ones only, as in Hive 4.0.1."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve, database, table


def statistics(partition: str | None, *columns: str) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=9, numNulls=0, numDVs=3)
    described = ttypes.ColumnStatisticsDesc(partition is None, "d", "t", partName=partition, catName="hive")
    data = ttypes.ColumnStatisticsData(longStats=numbers)
    found = [ttypes.ColumnStatisticsObj(column, "int", data) for column in columns]
    return ttypes.ColumnStatistics(described, found, engine="hive")


@pytest.fixture
def link(serve: Serve) -> Link:
    link = serve().link()
    link.call("create_database", database=database("d"))
    made = table("d", "t")
    made.sd.cols = [ttypes.FieldSchema(name, "int", None) for name in ("a", "b")]
    made.partitionKeys = [ttypes.FieldSchema("p", "string", None)]
    link.call("create_table", tbl=made)
    return link


def columns_of(found: Any) -> list[str] | None:
    return None if found.colStats is None else sorted(one.colName for one in found.colStats.statsObj)


def ask_table(link: Link) -> list[str] | None:
    request = ttypes.GetTableRequest("d", "t", getColumnStats=True, engine="hive")
    return columns_of(link.call("get_table_req", req=request).table)


def ask_partition(link: Link) -> list[str] | None:
    request = ttypes.GetPartitionsByNamesRequest("d", "t", ["p=1"], get_col_stats=True, engine="hive")
    return columns_of(link.call("get_partitions_by_names_req", req=request).partitions[0])


def test_of_a_table(link: Link) -> None:
    assert ask_table(link) is None
    link.call(
        "set_aggr_stats_for", request=ttypes.SetPartitionsStatsRequest([statistics(None, "a", "b")], engine="hive")
    )
    assert ask_table(link) == ["a", "b"]
    altered = link.call("get_table", dbname="d", tbl_name="t")
    altered.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true"}}'
    link.call("alter_table", dbname="d", tbl_name="t", new_tbl=altered)
    assert ask_table(link) == ["b"]
    del altered.parameters["COLUMN_STATS_ACCURATE"]
    link.call("alter_table", dbname="d", tbl_name="t", new_tbl=altered)
    assert ask_table(link) is None


def test_of_partitions(link: Link) -> None:
    made = ttypes.Partition(values=["1"], dbName="d", tableName="t", sd=table("d", "t").sd, parameters={})
    made.sd.cols = [ttypes.FieldSchema(name, "int", None) for name in ("a", "b")]
    made.sd.location = None
    link.call("add_partition", new_part=made)
    assert ask_partition(link) is None
    link.call(
        "set_aggr_stats_for", request=ttypes.SetPartitionsStatsRequest([statistics("p=1", "a", "b")], engine="hive")
    )
    assert ask_partition(link) == ["a", "b"]
    altered = link.call("get_partition", db_name="d", tbl_name="t", part_vals=["1"])
    del altered.parameters["COLUMN_STATS_ACCURATE"]
    link.call("alter_partition", db_name="d", tbl_name="t", new_part=altered)
    assert ask_partition(link) is None


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__", "a/b", "%41"])
def test_of_a_partition_whose_name_spells_its_value_in_another_way(link: Link, value: str) -> None:
    added = ttypes.Partition([value], "d", "t", sd=link.call("get_table", dbname="d", tbl_name="t").sd, parameters={})
    added.sd.location = None
    link.call("add_partition", new_part=added)
    [name] = link.call("get_partition_names", db_name="d", tbl_name="t", max_parts=-1)
    request = ttypes.SetPartitionsStatsRequest([statistics(name, "a", "b")], engine="hive")
    link.call("set_aggr_stats_for", request=request)
    requested = ttypes.GetPartitionsByNamesRequest("d", "t", [name], get_col_stats=True, engine="hive")
    [found] = link.call("get_partitions_by_names_req", req=requested).partitions
    assert found.values == [value]
    assert columns_of(found) == ["a", "b"]
