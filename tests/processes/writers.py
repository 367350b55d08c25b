"""Clients that create, alter and drop, and record the acknowledged state."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    EnvironmentContext,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.processes.catalog_history import Catalog
from tests.servers import MAX_WAIT_S

DATABASE = "shop"
TEXT = "org.apache.hadoop.mapred.TextInputFormat"


def connect(port: int) -> tuple[Any, Any]:
    """A client of the newest protocol and what closes it."""
    socket = TSocket("127.0.0.1", port)
    socket.setTimeout(MAX_WAIT_S * 1000)
    transport = TBufferedTransport(socket)
    transport.open()
    return ThriftHiveMetastore.Client(TBinaryProtocol(transport)), transport.close


@contextmanager
def connected(port: int) -> Any:
    """As `connect`, closed at the end."""
    client, close = connect(port)
    try:
        yield client
    finally:
        close()


def create_database(port: int) -> None:
    """The database in which writers work."""
    with connected(port) as client:
        client.create_database(Database(name=DATABASE))


def descriptor() -> StorageDescriptor:
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={})
    columns = [FieldSchema("id", "int", ""), FieldSchema("name", "string", "")]
    return StorageDescriptor(cols=columns, inputFormat=TEXT, outputFormat=TEXT, serdeInfo=serde, parameters={})


def new_table(name: str) -> Table:
    keys = [FieldSchema("p", "string", "")]
    return Table(name, DATABASE, "me", sd=descriptor(), partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE")


def new_partition(table: str, value: str) -> Partition:
    return Partition([value], DATABASE, table, sd=descriptor(), parameters={})


class Writer:
    """Works with tables of its own until the connection breaks.

    `sure` is the acknowledged catalog (of its tables). If its last call was not answered, `doubtful` is the catalog if
    that call was executed.
    """

    def __init__(self, name: str, seed: int, acknowledged: Callable[[], None]) -> None:
        self.name = name
        self._random = random.Random(seed)
        self._acknowledged = acknowledged
        self._number = 0
        self.sure: Catalog = {}
        self.doubtful: Catalog | None = None

    def run(self, port: int) -> None:
        """Writes until the server is gone."""
        with suppress(TTransportException, OSError, EOFError), connected(port) as client:
            while True:
                call, outcome = self._choose()
                self.doubtful = outcome
                call(client)
                self.sure, self.doubtful = outcome, None
                self._acknowledged()

    def _choose(self) -> tuple[Callable[[Any], object], Catalog]:
        """A call and the catalog after it."""
        tables = sorted(self.sure)
        if len(tables) < 2:
            return self._create()
        _, table = self._random.choice(tables)
        choices = [self._add, self._add, self._alter, self._rename, self._drop_partitions, self._drop]
        return self._random.choice(choices)(table)

    def _new_name(self) -> str:
        self._number += 1
        return f"{self.name}_{self._number}"

    def _after(self, table: str, partitions: set[str] | None) -> Catalog:
        after = {name: set(values) for name, values in self.sure.items()}
        if partitions is None:
            del after[DATABASE, table]
        else:
            after[DATABASE, table] = partitions
        return after

    def _create(self) -> tuple[Callable[[Any], object], Catalog]:
        name = self._new_name()
        return (lambda client: client.create_table(new_table(name))), self._after(name, set())

    def _add(self, table: str) -> tuple[Callable[[Any], object], Catalog]:
        values = [self._new_name() for _ in range(self._random.randint(1, 5))]
        partitions = [new_partition(table, value) for value in values]
        after = self.sure[DATABASE, table] | {f"p={value}" for value in values}
        return (lambda client: client.add_partitions(partitions)), self._after(table, after)

    def _alter(self, table: str) -> tuple[Callable[[Any], object], Catalog]:
        def call(client: Any) -> None:
            altered = client.get_table(DATABASE, table)
            altered.parameters["number"] = self._new_name()
            client.alter_table_with_environment_context(DATABASE, table, altered, EnvironmentContext({}))

        return call, self.sure

    def _rename(self, table: str) -> tuple[Callable[[Any], object], Catalog]:
        name = self._new_name()

        def call(client: Any) -> None:
            renamed = client.get_table(DATABASE, table)
            renamed.tableName = name
            client.alter_table(DATABASE, table, renamed)

        after = self._after(table, None)
        after[DATABASE, name] = set(self.sure[DATABASE, table])
        return call, after

    def _drop_partitions(self, table: str) -> tuple[Callable[[Any], object], Catalog]:
        there = sorted(self.sure[DATABASE, table])
        if not there:
            return self._add(table)
        dropped = self._random.choice(there)
        after = self._after(table, self.sure[DATABASE, table] - {dropped})
        return (lambda client: client.drop_partition_by_name(DATABASE, table, dropped, True)), after

    def _drop(self, table: str) -> tuple[Callable[[Any], object], Catalog]:
        return (lambda client: client.drop_table(DATABASE, table, True)), self._after(table, None)
