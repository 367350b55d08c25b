"""A small catalog for the tests of jobs, created through a server."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from hms_cache.client import MetastoreClient
from hms_cache.jobs.statistics.hashes import hash_longs
from hms_cache.jobs.statistics.sketches import sketches_of_groups
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    LongColumnStatsData,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
)


def descriptor(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema("id", "bigint", "the key"), FieldSchema("name", "string", None)],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib="lazy", parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def sketch_of(distinct: int) -> bytes:
    """Returns a bit vector of this many numbers, as Hive and the job `statistics` write it."""
    groups = np.zeros(distinct, np.int64)
    return sketches_of_groups(groups, hash_longs(np.arange(distinct)), 1)[0]


class Catalog:
    """Objects created over one connection; external tables, so that no directories are created."""

    def __init__(self, uri: str) -> None:
        self.client = MetastoreClient(uri)

    def database(self, name: str) -> None:
        self.client.call("create_database", Database(name=name, locationUri=f"file:/nowhere/{name}", parameters={}))

    def table(self, database: str, name: str, *, keys: Sequence[str] = (), **parameters: str) -> Table:
        table = Table(
            tableName=name,
            dbName=database,
            owner="ann",
            sd=descriptor(f"file:/nowhere/{database}/{name}"),
            partitionKeys=[FieldSchema(key, "string", None) for key in keys],
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )
        self.client.call("create_table", table)
        return table

    def partitions(self, database: str, table: str, values: Sequence[Sequence[str]]) -> None:
        partitions = []
        for each in values:
            partitions.append(
                Partition(
                    values=list(each),
                    dbName=database,
                    tableName=table,
                    sd=descriptor(f"file:/nowhere/{database}/{table}/{'/'.join(each)}"),
                    parameters={"numRows": "7", "totalSize": "4096"},
                )
            )
        self.client.call("add_partitions", partitions)

    def set_parameter(self, database: str, name: str, key: str, value: str) -> None:
        table = copy.deepcopy(self.client.call("get_table", database, name))
        table.parameters[key] = value
        self.client.call("alter_table", database, name, table)

    def statistics(self, database: str, table: str, partition: str | None = None) -> None:
        description = ColumnStatisticsDesc(
            isTblLevel=partition is None, dbName=database, tableName=table, partName=partition
        )
        numbers = LongColumnStatsData(lowValue=-3, highValue=900, numNulls=2, numDVs=40, bitVectors=sketch_of(40))
        texts = StringColumnStatsData(maxColLen=20, avgColLen=4.5, numNulls=0, numDVs=12, bitVectors=sketch_of(12))
        statistics = ColumnStatistics(
            statsDesc=description,
            statsObj=[
                ColumnStatisticsObj("id", "bigint", ColumnStatisticsData(longStats=numbers)),
                ColumnStatisticsObj("name", "string", ColumnStatisticsData(stringStats=texts)),
            ],
            engine="hive",
        )
        method = "update_table_column_statistics" if partition is None else "update_partition_column_statistics"
        self.client.call(method, statistics)

    def close(self) -> None:
        self.client.close()
