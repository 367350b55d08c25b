"""Small equal catalogs, created in any metastore through its protocol."""

from __future__ import annotations

import copy

from hms_cache.client import MetastoreClient
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    Function,
    FunctionType,
    LongColumnStatsData,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

PARTITIONS = 5


def storage_descriptor(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema("id", "int", None), FieldSchema("amount", "bigint", "in cents")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo("", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def fill(client: MetastoreClient, root: str) -> None:
    """Creates a database `shop` with two tables, partitions, statistics, a view and a function; files are below
    ``root``."""
    client.call(
        "create_database", Database(name="shop", description="a shop", locationUri=f"{root}/shop", parameters={})
    )
    for name in ("orders", "stock"):
        _create_table(client, root, name)
    client.call(
        "create_function",
        Function("twice", "shop", "org.example.Twice", "me", PrincipalType.USER, 1, FunctionType.JAVA, []),
    )


def _create_table(client: MetastoreClient, root: str, name: str) -> None:
    descriptor = storage_descriptor(f"{root}/shop/{name}")
    table = Table(
        tableName=name,
        dbName="shop",
        owner="me",
        retention=0,
        sd=descriptor,
        partitionKeys=[FieldSchema("day", "string", None)],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    client.call("create_table", table)
    partitions = []
    for number in range(PARTITIONS):
        own = copy.deepcopy(descriptor)
        own.location = f"{root}/shop/{name}/day=d{number}"
        partitions.append(
            Partition(values=[f"d{number}"], dbName="shop", tableName=name, sd=own, parameters={"n": "1"})
        )
    client.call("add_partitions", partitions)
    for number in range(PARTITIONS):
        data = ColumnStatisticsData(longStats=LongColumnStatsData(1, 10 + number, 2, 5))
        description = ColumnStatisticsDesc(False, "shop", name, f"day=d{number}")
        statistics = ColumnStatistics(description, [ColumnStatisticsObj("amount", "bigint", data)], engine="hive")
        client.call("update_partition_column_statistics", statistics)
