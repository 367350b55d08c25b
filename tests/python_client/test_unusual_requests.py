"""Requests that lack something, or name missing objects, answered as by Hive 4.0.1's own metastore."""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DropCatalogRequest,
    InvalidObjectException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    Partition,
    PrimaryKeysRequest,
)
from tests.python_client.conftest import DATABASE, Metastore, StartMetastore, partition, table


@pytest.fixture
def metastore(start_metastore: StartMetastore) -> Metastore:
    """With a table `p` that has the keys `y` and `m`, and a table `t` without keys."""
    metastore = start_metastore()
    metastore.client.call("create_database", DATABASE)
    for created in (table("p", keys=("y", "m")), table("q", keys=("y", "m")), table("t")):
        metastore.client.call("create_table", created)
    metastore.client.call("add_partition", partition(table("p", keys=("y", "m")), "1", "2"))
    return metastore


def test_a_request_without_its_struct_is_answered(metastore: Metastore) -> None:
    """Also if the audit log would contain it."""
    with pytest.raises(MetaException):
        metastore.client.call("add_partition", None)
    with pytest.raises(MetaException):
        metastore.client.call("add_partitions", None)


def test_statistics_of_no_columns_leave_the_others_alone(metastore: Metastore) -> None:
    description = ColumnStatisticsDesc(True, "d", "t")
    data = ColumnStatisticsData(longStats=LongColumnStatsData(1, 2, 0, 2))
    one = ColumnStatistics(description, [ColumnStatisticsObj("a", "int", data)])
    metastore.client.call("update_table_column_statistics", one)
    metastore.client.call("update_table_column_statistics", ColumnStatistics(description, []))
    assert metastore.client.call("get_table_column_statistics", "d", "t", "a").statsObj[0].statsData == data


def test_partitions_are_exchanged_by_leading_keys_only(metastore: Metastore) -> None:
    """Directories move as a whole: those of `m=2` alone are not at locations of their own."""
    with pytest.raises(MetaException):
        metastore.client.call("exchange_partition", {"m": "2"}, "d", "p", "d", "q")
    assert metastore.client.call("get_partition_names", "d", "p", -1) == ["y=1/m=2"]
    answer = metastore.client.call("exchange_partition", {"y": "1"}, "d", "p", "d", "q")
    assert answer == Partition(createTime=0, lastAccessTime=0)
    assert metastore.client.call("get_partition_names", "d", "q", -1) == ["y=1/m=2"]


def test_a_table_that_is_not_there_has_no_partitions_and_no_constraints(metastore: Metastore) -> None:
    assert metastore.client.call("get_partitions", "d", "none", -1) == []
    assert metastore.client.call("get_partition_names", "d", "none", -1) == []
    assert metastore.client.call("get_primary_keys", PrimaryKeysRequest("d", "none", "hive")).primaryKeys == []
    with pytest.raises(NoSuchObjectException):
        metastore.client.call("get_partitions_with_auth", "d", "none", -1, "u", [])


def test_an_empty_name_is_a_name_that_nothing_has(metastore: Metastore) -> None:
    for method, arguments in (("get_database", ("",)), ("get_table", ("d", "")), ("get_partitions", ("", "p", -1))):
        with pytest.raises(NoSuchObjectException):
            metastore.client.call(method, *arguments)
    with pytest.raises(MetaException):
        metastore.client.call("get_database", None)
    assert metastore.client.call("get_databases", "") == []


def test_appending_to_no_table(metastore: Metastore) -> None:
    with pytest.raises(InvalidObjectException):
        metastore.client.call("append_partition", "d", "none", ["1"])
    with pytest.raises(MetaException):
        metastore.client.call("append_partition", "d", "p", [])


def test_a_table_needs_a_serde_and_columns(metastore: Metastore) -> None:
    for part in ("serdeInfo", "cols"):
        lacking = table("lacking")
        setattr(lacking.sd, part, None)
        with pytest.raises(MetaException):
            metastore.client.call("create_table", lacking)


def test_dropping_no_catalog_fails_unless_the_request_says_otherwise(metastore: Metastore) -> None:
    with pytest.raises(NoSuchObjectException):
        metastore.client.call("drop_catalog", DropCatalogRequest("none"))
    metastore.client.call("drop_catalog", DropCatalogRequest("none", ifExists=True))
