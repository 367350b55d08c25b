"""Clients of two servers that concurrently run transactions on transactional tables and read with their lists.

Writers open a transaction, take its list, allocate, write through either server, read what they wrote through both,
commit or abort; or drop, create and rename, which no transaction protects. Readers take a list and table ids and read
with them for a while, as they get older, through either server.
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

from hms_cache.client import MetastoreClient, Transaction
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.txn import ValidTxnList, ValidWriteIdList
from tests.consistency.history import VERSION, History, Place, Read, Write
from tests.consistency.workload import ABSENT, REFUSALS, new_partition, new_table
from tests.consistency.write_id_history import ListRead

DATABASE = "acid"
PLACES = tuple(Place(DATABASE, table) for table in "abc")
VALUES = tuple("1234")
KINDS = ("table", "table", "table", "partition", "partitions", "by_names", "partition_names")
LOST = (ttypes.TxnAbortedException, ttypes.NoSuchTxnException)


def transactional_table(place: Place, label: str) -> ttypes.Table:
    """Insert-only: its files may have any format."""
    table = new_table(place, label)
    table.parameters.update(transactional="true", transactional_properties="insert_only")
    return table


def arguments_for(kind: str, place: Place, chance: random.Random) -> tuple[Any, ...]:
    match kind:
        case "partition":
            return (*place, chance.choice(VALUES))
        case "by_names":
            return (*place, tuple(chance.sample(VALUES, 3)))
    return tuple(place)


def request_for(kind: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """Returns the method that takes a list, and its request without one."""
    database, table = arguments[:2]
    named = {"dbName": database, "tblName": table}
    match kind:
        case "table":
            capabilities = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
            return "get_table_req", ttypes.GetTableRequest(capabilities=capabilities, **named)
        case "partition":
            return "get_partition_req", ttypes.GetPartitionRequest(partVals=[arguments[2]], **named)
        case "partitions":
            return "get_partitions_req", ttypes.PartitionsRequest(maxParts=-1, **named)
        case "by_names":
            names = [f"p={value}" for value in arguments[2]]
            return "get_partitions_by_names_req", ttypes.GetPartitionsByNamesRequest(database, table, names)
        case "partition_names":
            return "get_partition_names_ps_req", ttypes.GetPartitionNamesPsRequest(partValues=[""], **named)
    raise ValueError(kind)


def answer_of(kind: str, answer: Any) -> Any:
    """In the form of `history.shown`."""
    match kind:
        case "table":
            return answer.table.parameters[VERSION]
        case "partition":
            return answer.partition.parameters[VERSION]
        case "partition_names":
            return tuple(sorted(name.removeprefix("p=") for name in answer.names))
    return tuple(sorted((one.values[0], one.parameters[VERSION]) for one in answer.partitions))


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work, and its concurrency."""

    reads: int
    rounds: int
    """Transactions and changes of names, by all writers together."""
    readers: int = 4
    writers: int = 3


class WriteIdWorkload:
    """Runs clients against servers at these ports; `history` grows with each run."""

    def __init__(self, ports: Sequence[int], seed: int, *, always_with_id: bool) -> None:
        """`always_with_id`: each list comes with its table id; otherwise, some come without."""
        self.history = History()
        self._uris = [f"thrift://127.0.0.1:{port}" for port in ports]
        self._always_with_id = always_with_id
        self._labels = itertools.count(1)
        self._seeds = itertools.count(seed * 1000)
        self._names = {place: threading.Lock() for place in PLACES}
        """Held by whoever creates, drops, renames or allocates: write ids go to the table that bears the name."""
        self._existing: set[Place] = set()
        self._paces = threading.Condition()
        self._sessions_done = 0
        self._errors: list[BaseException] = []

    def prepare(self) -> None:
        """The database, and initial tables."""
        with ExitStack() as stack:
            client = self.client(stack)
            client.through[0].call("create_database", ttypes.Database(name=DATABASE, description="", parameters={}))
            for place in PLACES:
                self.create(client, 0, place)

    def client(self, stack: ExitStack) -> _Client:
        return _Client(self, [stack.enter_context(MetastoreClient(uri)) for uri in self._uris])

    def run(self, size: Size) -> None:
        """Runs all clients concurrently until `size` is done. Raises what a client does not expect."""
        self._sessions_done = 0
        with ExitStack() as stack:
            threads = []
            for number in range(size.writers):
                share = size.rounds // size.writers
                threads.append(self._thread(stack, self._write, share, size, number))
            for number in range(size.readers):
                threads.append(self._thread(stack, self._read, size.reads // size.readers, size, number))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[0]

    def _thread(self, stack: ExitStack, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        client = self.client(stack)

        def run() -> None:
            try:
                work(client, random.Random(next(self._seeds)), *arguments)
            except BaseException as error:
                self._errors.append(error)
            with self._paces:
                self._paces.notify_all()

        return threading.Thread(target=run, daemon=True)

    def label(self) -> str:
        return f"w{next(self._labels)}"

    @contextmanager
    def naming(self, *places: Place) -> Iterator[None]:
        """Alone with these names."""
        with ExitStack() as stack:
            for place in sorted(set(places)):
                stack.enter_context(self._names[place])
            yield

    # Readers

    def _read(self, client: _Client, chance: random.Random, share: int, _size: Size, number: int) -> None:
        done = 0
        server = number % 2
        while done < share and not self._errors:
            place = chance.choice(PLACES)
            valid, table_id = client.snapshot(server, place)
            for _ in range(min(chance.choice((1, 4, 12)), share - done)):
                if chance.random() < 0.2:
                    server = 1 - server
                with_id = self._always_with_id or chance.random() < 0.8
                kind = chance.choice(KINDS)
                arguments = arguments_for(kind, place, chance)
                if chance.random() < 0.1:
                    client.read_plainly(server, kind, arguments)
                else:
                    client.read(server, kind, arguments, valid, table_id if with_id else None)
                done += 1
            with self._paces:
                self._sessions_done += 1
                self._paces.notify_all()

    # Writers

    def _write(self, client: _Client, chance: random.Random, share: int, size: Size, _number: int) -> None:
        for number in range(share):
            if self._errors:
                return
            server, place = chance.randrange(2), chance.choice(PLACES)
            turn = chance.random()
            if turn < 0.2:
                self._replace(client, chance, server, place)
            elif turn < 0.25:
                self.rename(client, server, place, chance.choice(PLACES))
            else:
                self._transact(client, chance, server, place)
            self._keep_pace(number, share, size)

    def _keep_pace(self, done: int, share: int, size: Size) -> None:
        """Distributes writes over the reads: each session of a reader consists of five or six reads."""
        wanted = done / share * size.reads / 12
        with self._paces:
            self._paces.wait_for(lambda: self._errors or self._sessions_done >= wanted, 5)

    def _replace(self, client: _Client, chance: random.Random, server: int, place: Place) -> None:
        """Gives the name to another table; its first reader calls a server that may not know it yet."""
        self._look(client, chance, 1 - server, server, place)
        self.drop(client, server, place)
        self.create(client, server, place)
        self._look(client, chance, 1 - server, server, place)

    def _look(self, client: _Client, chance: random.Random, through: int, of: int, place: Place) -> None:
        """Reads through a server with the list from another one."""
        valid, table_id = client.snapshot(of, place)
        kind = chance.choice(KINDS)
        client.read(through, kind, arguments_for(kind, place, chance), valid, table_id)

    def _transact(self, client: _Client, chance: random.Random, server: int, place: Place) -> None:
        table = ".".join(place)
        txn = Transaction(client.through[server], [table])
        opened = Write(server, "open", time.monotonic())
        self.history.writes.append(opened)
        txn.begin()
        opened.ended_s, opened.done, opened.key = time.monotonic(), True, ("open", str(txn.txn_id))
        with self.naming(place):
            if place not in self._existing or txn.version(table).table_id is None:
                self._end(txn, server, "abort")
                return
            allocated = Write(server, "allocate", time.monotonic(), key=("allocate", str(txn.txn_id), place.table))
            self.history.writes.append(allocated)
            txn.write_id(table)
            allocated.ended_s, allocated.done = time.monotonic(), True
        version = txn.version(table)
        for _ in range(chance.choice((1, 2, 3))):
            self._change(txn, client, chance, chance.randrange(2), place)
            for through in chance.sample((0, 1), 2):
                kind = chance.choice(KINDS)
                arguments = arguments_for(kind, place, chance)
                client.read(through, kind, arguments, version.write_ids.to_text(), version.table_id)
        self._end(txn, server, "commit" if chance.random() < 0.8 else "abort")
        valid, table_id = client.snapshot(server, place)
        for through in chance.sample((0, 1), 2):
            kind = chance.choice(KINDS)
            client.read(through, kind, arguments_for(kind, place, chance), valid, table_id)

    def _end(self, txn: Transaction, server: int, how: str) -> None:
        ended = Write(server, how, time.monotonic(), key=(how, str(txn.txn_id)))
        self.history.writes.append(ended)
        (txn.commit if how == "commit" else txn.abort)()
        ended.ended_s, ended.done = time.monotonic(), True

    def _change(self, txn: Transaction, client: _Client, chance: random.Random, server: int, place: Place) -> None:
        label = self.label()
        table, through = ".".join(place), client.through[server]
        partition = new_partition(place, chance.choice(VALUES), label)
        named = {"dbName": place.database, "catName": "hive"}
        add = ttypes.AddPartitionsRequest(tblName=place.table, parts=[partition], ifNotExists=False, **named)
        alter = ttypes.AlterPartitionsRequest(tableName=place.table, partitions=[partition], **named)
        calls: dict[str, Callable[[], object]] = {
            "alter": lambda: txn.alter_table(table, transactional_table(place, label), through=through),
            "add_partitions": lambda: txn.write("add_partitions_req", table, add, through=through),
            "alter_partitions": lambda: txn.write("alter_partitions_req", table, alter, through=through),
        }
        kind = chance.choice(("alter", "alter", "add_partitions", "alter_partitions"))
        self._record(Write(server, kind, time.monotonic(), label=label), calls[kind])

    def _record(self, write: Write, call: Callable[[], object]) -> bool:
        self.history.writes.append(write)
        try:
            call()
        except REFUSALS:
            write.ended_s = time.monotonic()
            return False
        write.ended_s = time.monotonic()
        write.done = True
        return True

    def create(self, client: _Client, server: int, place: Place) -> None:
        label = self.label()
        with self.naming(place):
            write = Write(server, "create", time.monotonic(), label=label)
            call = client.through[server].call
            if self._record(write, lambda: call("create_table", transactional_table(place, label))):
                self._existing.add(place)

    def drop(self, client: _Client, server: int, place: Place) -> None:
        with self.naming(place):
            write = Write(server, "drop", time.monotonic(), key=("drop_table", *place))
            if self._record(write, lambda: client.through[server].call("drop_table", *place, True)):
                self._existing.discard(place)

    def rename(self, client: _Client, server: int, place: Place, new: Place) -> None:
        label = self.label()
        if place == new:
            return
        with self.naming(place, new):
            write = Write(server, "rename", time.monotonic(), label=label)
            changed = transactional_table(new, label)
            call = client.through[server].call
            if self._record(write, lambda: call("alter_table", *place, changed)):
                self._existing.discard(place)
                self._existing.add(new)


class _Client:
    """A thread's connections, one to each server."""

    def __init__(self, workload: WriteIdWorkload, through: Sequence[MetastoreClient]) -> None:
        self.through = through
        self._history = workload.history

    def snapshot(self, server: int, place: Place) -> tuple[str, int | None]:
        """Returns what a reader may see now: its list and the table's id; None if the table does not exist."""
        ask = self.through[server].call
        transactions = ValidTxnList.from_open_txns(ask("get_open_txns"), 0)
        request = ttypes.GetValidWriteIdsRequest([".".join(place)], transactions.to_text())
        element = ask("get_valid_write_ids", request).tblValidWriteIds[0]
        return ValidWriteIdList.from_thrift(element).to_text(), element.tableId

    def read(self, server: int, kind: str, arguments: tuple[Any, ...], valid: str, table_id: int | None) -> None:
        """One read with a list, recorded."""
        method, request = request_for(kind, arguments)
        request.validWriteIdList = valid
        if table_id is not None:
            request.id = table_id
        started_s = time.monotonic()
        answer = self._ask(server, kind, method, request)
        record = ListRead(server, kind, arguments, started_s, time.monotonic(), answer, valid, table_id)
        self._history.reads.append(record)

    def read_plainly(self, server: int, kind: str, arguments: tuple[Any, ...]) -> None:
        """One read without a list, recorded."""
        method, request = request_for(kind, arguments)
        started_s = time.monotonic()
        answer = self._ask(server, kind, method, request)
        self._history.reads.append(Read(server, kind, arguments, started_s, time.monotonic(), answer))

    def _ask(self, server: int, kind: str, method: str, request: Any) -> Any:
        try:
            return answer_of(kind, self.through[server].call(method, request))
        except ABSENT:
            return () if kind in ("partitions", "partition_names") else None
