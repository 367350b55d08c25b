"""Changes of the catalog, each client on its own tables; measures how the metastore processes such calls."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

from benchmarks.client import connect
from benchmarks.cycles import Cycle, Note
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE = "bench_changes"

_numbers = itertools.count(os.getpid() * 1_000_000)
"""Numbers for names and values that no earlier run has used."""


def prepare(address: str, clients: int) -> None:
    """Creates the database and a partitioned table for each client."""
    client = connect(address)
    if DATABASE not in client.get_all_databases():
        client.create_database(ttypes.Database(name=DATABASE, description="bench", parameters={}))
    known = set(client.get_all_tables(DATABASE))
    for number in range(clients):
        if f"t{number}" not in known:
            client.create_table_req(ttypes.CreateTableRequest(table=external_table(DATABASE, f"t{number}")))


def external_table(database: str, name: str, **parameters: str) -> ttypes.Table:
    """Returns a table with ten columns and one partition key."""
    return ttypes.Table(
        tableName=name,
        dbName=database,
        owner="bench",
        sd=descriptor([ttypes.FieldSchema(f"c{number}", "string", None) for number in range(10)], None),
        partitionKeys=[ttypes.FieldSchema("p", "string", None)],
        parameters={"EXTERNAL": "TRUE", **parameters},
        tableType="EXTERNAL_TABLE",
    )


def descriptor(columns: list[Any], location: str | None) -> ttypes.StorageDescriptor:
    """Returns the storage descriptor of a table or a partition, as Hive writes it."""
    return ttypes.StorageDescriptor(
        cols=columns,
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def stored(client: Any, database: str, name: str) -> Any:
    """Returns the table as the metastore stores it."""
    return client.get_table_req(ttypes.GetTableRequest(dbName=database, tblName=name)).table


def _create(client: Any, number: int, note: Note) -> None:
    name = f"c{next(_numbers)}"
    began = time.perf_counter()
    client.create_table_req(ttypes.CreateTableRequest(table=external_table(DATABASE, name)))
    created = time.perf_counter()
    client.drop_table_with_environment_context(DATABASE, name, False, None)
    note("create_table", created - began)
    note("drop_table", time.perf_counter() - created)


def _alter(client: Any, number: int, note: Note) -> None:
    """Reads the table, as clients do, and sets a parameter."""
    began = time.perf_counter()
    table = stored(client, DATABASE, f"t{number}")
    read = time.perf_counter()
    table.parameters["bench"] = str(next(_numbers))
    client.alter_table_req(ttypes.AlterTableRequest(dbName=DATABASE, tableName=f"t{number}", table=table))
    note("get_table", read - began)
    note("alter_table", time.perf_counter() - read)


def _partition(client: Any, number: int, note: Note) -> None:
    value = f"v{next(_numbers)}"
    columns = [ttypes.FieldSchema(f"c{column}", "string", None) for column in range(10)]
    partition = ttypes.Partition(
        values=[value], dbName=DATABASE, tableName=f"t{number}", sd=descriptor(columns, None), parameters={}
    )
    began = time.perf_counter()
    client.add_partition(partition)
    added = time.perf_counter()
    client.drop_partition(DATABASE, f"t{number}", [value], False)
    note("add_partition", added - began)
    note("drop_partition", time.perf_counter() - added)


CHANGES = (
    Cycle("Tables created and dropped", ("create_table", "drop_table"), _create, prepare),
    Cycle("Tables altered", ("get_table", "alter_table"), _alter, prepare),
    Cycle("Partitions added and dropped", ("add_partition", "drop_partition"), _partition, prepare),
)
