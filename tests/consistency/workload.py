"""Concurrent clients of two servers on one database: writers, a raw writer and readers.

Everything is recorded with the clients' clock (one process, one monotonic clock).
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from tests.consistency.history import RAW, VERSION, History, Place, Read, Write
from tests.consistency.raw_writer import RawWriter

DATABASES = ("d1", "d2")
TABLES = ("a", "b", "c")
VALUES = tuple("123456")
PLACES = tuple(Place(database, table) for database in DATABASES for table in TABLES)

#: What a metastore raises when a write cannot be made. Nothing may have changed then.
REFUSALS = (
    ttypes.NoSuchObjectException,
    ttypes.AlreadyExistsException,
    ttypes.InvalidOperationException,
    ttypes.InvalidObjectException,
    ttypes.MetaException,
)
ABSENT = (ttypes.NoSuchObjectException, ttypes.InvalidObjectException)
"""How a table or partition that is not there is told (`get_partitions_by_names`: the second)."""
TEXT = "org.apache.hadoop.mapred.TextInputFormat"


class Client:
    """A connection to each server, for one thread."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.connections: list[Any] = []
        self._transports: list[TBufferedTransport] = []
        for port in ports:
            socket = TSocket("127.0.0.1", port)
            socket.setTimeout(60_000)
            transport = TBufferedTransport(socket)
            transport.open()
            self._transports.append(transport)
            self.connections.append(ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport)))

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


def descriptor() -> ttypes.StorageDescriptor:
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("a", "string", None)],
        inputFormat=TEXT,
        outputFormat=TEXT,
        serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def new_table(place: Place, label: str) -> ttypes.Table:
    return ttypes.Table(
        tableName=place.table,
        dbName=place.database,
        owner="tester",
        sd=descriptor(),
        partitionKeys=[ttypes.FieldSchema("p", "string", None)],
        parameters={VERSION: label},
        tableType="MANAGED_TABLE",
    )


def new_partition(place: Place, value: str, label: str) -> ttypes.Partition:
    return ttypes.Partition(
        values=[value], dbName=place.database, tableName=place.table, sd=descriptor(), parameters={VERSION: label}
    )


# Reads: each returns what `history.shown` computes


def _absent(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ABSENT:
        return None


def _labels(partitions: Sequence[ttypes.Partition]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((one.values[0], one.parameters[VERSION]) for one in partitions))


def perform_read(connection: Any, kind: str, arguments: tuple[Any, ...]) -> Any:
    """Sends a read, and returns the answer in the form of `history.shown`."""
    match kind:
        case "names":
            return tuple(sorted(connection.get_all_tables(arguments[0])))
        case "objects":
            found = connection.get_table_objects_by_name_req(
                ttypes.GetTablesRequest(dbName=arguments[0], tblNames=list(arguments[1]))
            ).tables
            versions = {table.tableName: table.parameters[VERSION] for table in found}
            return tuple((name, versions[name]) for name in arguments[1] if name in versions)
        case "table":
            return _absent(lambda: connection.get_table(*arguments).parameters[VERSION])
        case "partition":
            database, table, value = arguments
            return _absent(lambda: connection.get_partition(database, table, [value]).parameters[VERSION])
        case "partition_names":
            names = _absent(lambda: connection.get_partition_names(*arguments, -1))
            return tuple(sorted(name.removeprefix("p=") for name in names or ()))
        case "partitions":
            return _absent(lambda: _labels(connection.get_partitions(*arguments, -1))) or ()
        case "by_names":
            database, table, values = arguments
            names = [f"p={value}" for value in values]
            return _absent(lambda: _labels(connection.get_partitions_by_names(database, table, names)))
        case "filter":
            database, table, value = arguments
            text = f'p >= "{value}"'
            return _absent(lambda: _labels(connection.get_partitions_by_filter(database, table, text, -1)))
    raise ValueError(kind)


KINDS = (
    "table",
    "table",
    "table",
    "names",
    "objects",
    "partition",
    "partition_names",
    "partitions",
    "by_names",
    "filter",
)


def arguments_for(kind: str, place: Place, chance: random.Random) -> tuple[Any, ...]:
    match kind:
        case "names":
            return (place.database,)
        case "objects":
            return (place.database, TABLES)
        case "partition":
            return (*place, chance.choice(VALUES))
        case "by_names":
            return (*place, tuple(chance.sample(VALUES, 3)))
        case "filter":
            return (*place, chance.choice(VALUES))
    return tuple(place)


# The run


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work, and its concurrency."""

    reads: int
    writes: int
    readers: int = 6
    writers: int = 4
    raw: bool = True
    """Whether the last writer writes beside all servers."""


class Workload:
    """Runs clients against servers at these ports; `history` grows with each run."""

    def __init__(
        self,
        ports: Sequence[int],
        database_url: str,
        seed: int,
        client: Callable[[Sequence[int]], Client] | None = None,
    ) -> None:
        """`client`: makes a connection to each server."""
        self.history = History()
        self._client = client or Client
        self._ports = tuple(ports)
        self._url = database_url
        self._seed = seed
        self._labels = itertools.count(1)
        self._names = {place: threading.Lock() for place in PLACES}
        """Held by whoever creates, drops or renames: tells which event of several is whose. Alters need none."""
        self._paces = threading.Condition()
        self._reads_done = 0
        self._errors: list[BaseException] = []
        self._seeds = itertools.count(seed * 1000)

    def prepare(self) -> None:
        """The databases, and initial tables."""
        client = self._client(self._ports)
        for name in DATABASES:
            client.connections[0].create_database(ttypes.Database(name=name))
        writer = _Writer(self, client, random.Random(self._seed))
        for place in PLACES:
            writer.create(0, place)
            writer.add_partitions(0, place)
        client.close()

    def run(self, size: Size) -> None:
        """Runs all clients concurrently until `size` is done. Raises what a client does not expect."""
        self._reads_done = 0
        with ExitStack() as stack:
            threads = []
            left = size.writes
            for number in range(size.writers):
                share = left // (size.writers - number)
                left -= share
                work = self._write_raw if size.raw and number == size.writers - 1 else self._write
                threads.append(self._thread(stack, work, share, size))
            for number in range(size.readers):
                share = size.reads // size.readers
                threads.append(self._thread(stack, self._read, share, size, number % len(self._ports)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[0]

    def label(self) -> str:
        return f"w{next(self._labels)}"

    @contextmanager
    def naming(self, *places: Place) -> Iterator[None]:
        """Alone with these names."""
        with ExitStack() as stack:
            for place in sorted(set(places)):
                stack.enter_context(self._names[place])
            yield

    def _thread(self, stack: ExitStack, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        client = self._client(self._ports)
        stack.callback(client.close)

        def run() -> None:
            try:
                work(client, random.Random(next(self._seeds)), *arguments)
            except BaseException as error:
                self._errors.append(error)
            with self._paces:
                self._paces.notify_all()

        return threading.Thread(target=run, daemon=True)

    def _keep_pace(self, done: int, share: int, size: Size) -> None:
        """Writes are distributed over the reads."""
        with self._paces:
            self._paces.wait_for(lambda: self._errors or self._reads_done * share >= done * size.reads * 0.95, 60)

    def _read(self, client: Client, chance: random.Random, share: int, _size: Size, server: int) -> None:
        for number in range(share):
            if self._errors:
                return
            if chance.random() < 0.1:
                server = self._other(server)  # a client that changes servers
            place = chance.choice(PLACES)
            kind = chance.choice(KINDS)
            self.read(client, server, kind, arguments_for(kind, place, chance))
            if number % 20 == 19:
                with self._paces:
                    self._reads_done += 20
                    self._paces.notify_all()
        with self._paces:
            self._reads_done += share % 20

    def read(self, client: Client, server: int, kind: str, arguments: tuple[Any, ...]) -> Any:
        """One read, recorded."""
        started_s = time.monotonic()
        answer = perform_read(client.connections[server], kind, arguments)
        self.history.reads.append(Read(server, kind, arguments, started_s, time.monotonic(), answer))
        return answer

    def _write(self, client: Client, chance: random.Random, share: int, size: Size) -> None:
        writer = _Writer(self, client, chance)
        for number in range(share):
            if self._errors:
                return
            server, place = chance.randrange(len(self._ports)), chance.choice(PLACES)
            writer.random_write(server, place)
            self._look(client, chance, server, place)
            self._keep_pace(number, share, size)

    def _look(self, client: Client, chance: random.Random, server: int, place: Place) -> None:
        """A writer reads what it wrote, on the server that executed the write and then on another one."""
        kind = chance.choice(KINDS)
        arguments = arguments_for(kind, place, chance)
        self.read(client, server, kind, arguments)
        self.read(client, self._other(server), kind, arguments)

    def _other(self, server: int) -> int:
        return (server + 1) % len(self._ports)

    def _write_raw(self, client: Client, chance: random.Random, share: int, size: Size) -> None:
        raw = RawWriter(self._url)
        try:
            for number in range(share):
                if self._errors:
                    return
                place = chance.choice(PLACES)
                self._write_rows(raw, chance, place)
                self._look(client, chance, number % 2, place)
                self._keep_pace(number, share, size)
        finally:
            raw.close()

    def _write_rows(self, raw: RawWriter, chance: random.Random, place: Place) -> None:
        label = self.label()
        kind = chance.choice(("alter", "alter_partition", "rename"))
        new = chance.choice([one for one in PLACES if one.database == place.database and one != place])
        calls: dict[str, Callable[[], bool]] = {
            "alter": lambda: raw.alter(place, label),
            "alter_partition": lambda: raw.alter_partition(place, chance.choice(VALUES), label),
            "rename": lambda: raw.rename(place, new.table, label),
        }
        with self.naming(*((place, new) if kind == "rename" else ())):
            write = Write(RAW, kind, time.monotonic(), label=label)
            self.history.writes.append(write)
            write.done = calls[kind]()
            write.ended_s = time.monotonic()


class _Writer:
    """One thread's writes through servers."""

    def __init__(self, workload: Workload, client: Client, chance: random.Random) -> None:
        self._workload = workload
        self._client = client
        self._chance = chance

    def random_write(self, server: int, place: Place) -> None:
        kinds = (
            (self.alter, 6),
            (self.alter_partition, 4),
            (self.add_partitions, 4),
            (self.drop_partition, 2),
            (self.create, 3),
            (self.drop, 1),
            (self.rename, 2),
        )
        write = self._chance.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
        write(server, place)

    def _perform(self, server: int, kind: str, call: Callable[[], object], **record: Any) -> bool:
        write = Write(server, kind, time.monotonic(), **record)
        self._workload.history.writes.append(write)
        try:
            call()
        except REFUSALS:
            write.ended_s = time.monotonic()
            return False
        write.ended_s = time.monotonic()
        write.done = True
        return True

    def create(self, server: int, place: Place) -> None:
        label = self._workload.label()
        connection = self._client.connections[server]
        with self._workload.naming(place):
            self._perform(server, "create", lambda: connection.create_table(new_table(place, label)), label=label)

    def alter(self, server: int, place: Place) -> None:
        label = self._workload.label()
        connection = self._client.connections[server]
        self._perform(server, "alter", lambda: connection.alter_table(*place, new_table(place, label)), label=label)

    def rename(self, server: int, place: Place) -> None:
        label = self._workload.label()
        connection = self._client.connections[server]
        new = self._chance.choice([one for one in PLACES if one != place])
        with self._workload.naming(place, new):
            self._perform(server, "rename", lambda: connection.alter_table(*place, new_table(new, label)), label=label)

    def drop(self, server: int, place: Place) -> None:
        connection = self._client.connections[server]
        with self._workload.naming(place):
            self._perform(server, "drop", lambda: connection.drop_table(*place, True), key=("drop_table", *place))

    def add_partitions(self, server: int, place: Place) -> None:
        label = self._workload.label()
        connection = self._client.connections[server]
        values = self._chance.sample(VALUES, self._chance.randint(1, 3))
        partitions = [new_partition(place, value, label) for value in values]
        self._perform(server, "add_partitions", lambda: connection.add_partitions(partitions), label=label)

    def alter_partition(self, server: int, place: Place) -> None:
        label = self._workload.label()
        connection = self._client.connections[server]
        partition = new_partition(place, self._chance.choice(VALUES), label)
        self._perform(server, "alter_partition", lambda: connection.alter_partition(*place, partition), label=label)

    def drop_partition(self, server: int, place: Place) -> None:
        connection = self._client.connections[server]
        value = self._chance.choice(VALUES)
        with self._workload.naming(place):
            self._perform(
                server,
                "drop_partition",
                lambda: connection.drop_partition(*place, [value], True),
                key=("drop_partition", *place, value),
            )
