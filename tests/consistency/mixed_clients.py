"""Concurrent clients of several kinds, each with its own databases, compared with a server without a cache.

Only the client itself writes to its databases. So each read on another server has one correct answer at any moment:
that of the server without a cache. The shared parts (the log, the lists of names, the memory of the servers,
transactions) are in use meanwhile. Lists of all databases are compared while no client writes.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.consistency.all_reads import (
    Ask,
    Connection,
    Known,
    Place,
    descriptor,
    of_database,
    of_lists,
    of_partitions,
    of_table,
    outcome,
    write_id_list,
)

ORACLE = -1
"""Of a client's connections."""

TABLES = ("a", "b", "acid", "ice")
OTHER_CATALOG = "mixed"


class Gate:
    """Admits any number of writers, or one client that needs a moment without writes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._writing = 0
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Waits while a client is alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._writing += 1
        try:
            yield
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until nobody writes."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._writing)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


FORMS: Sequence[tuple[type[Any], type[Any]]] = (
    (TBufferedTransport, TBinaryProtocolAccelerated),
    (TFramedTransport, TBinaryProtocolAccelerated),
    (TFramedTransport, TCompactProtocolAccelerated),
    (TBufferedTransport, TCompactProtocolAccelerated),
)
"""Transport and protocol of clients."""


class AnyForm:
    """A connection to each server in one of the forms, for one thread."""

    def __init__(self, ports: Sequence[int], form: int) -> None:
        transport_of, protocol_of = FORMS[form % len(FORMS)]
        self.connections: list[Connection] = []
        self._transports: list[Any] = []
        for port in ports:
            socket = TSocket("127.0.0.1", port)
            socket.setTimeout(60_000)
            transport = transport_of(socket)
            transport.open()
            self._transports.append(transport)
            self.connections.append(ThriftHiveMetastore.Client(protocol_of(transport)))

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


class MixedClient:
    """One client: sends sequences of calls like engines, to either server, and reads on the others."""

    def __init__(self, number: int, ports: Sequence[int], gate: Gate, seed: int) -> None:
        self.number = number
        self._chance = random.Random(seed * 100 + number)
        self._client = AnyForm(ports, number)
        self._servers = len(ports) - 1
        self._gate = gate
        self._count = 0
        self._known = Known()
        self._open: list[tuple[int, Place, int]] = []
        self._text: list[str] = []
        self.databases = (f"w{number}", f"v{number}")
        self.places = [Place("hive", name, table) for name in self.databases for table in TABLES]
        self.places += [Place(OTHER_CATALOG, self.databases[0], table) for table in ("a", "b")]
        self.reads = self.writes = self.refused = 0
        self.wrong: list[str] = []
        self.sequences = {name[2:]: getattr(self, name) for name in sorted(dir(self)) if name.startswith("s_")}
        self.made: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def prepare(self) -> None:
        """Its databases."""
        for name in self.databases:
            self._do("create_database", lambda c, n=name: c.create_database(t.Database(n, "d", None, {})))
        made = t.Database(self.databases[0], "other", None, {}, catalogName=OTHER_CATALOG)
        self._do("create_database", lambda c: c.create_database(made))

    def step(self) -> None:
        """Runs one sequence, with reads after each of its writes."""
        name = self._chance.choice(list(self.sequences))
        self._text.append(f"-- {name}")
        before, refused = self.writes, self.refused
        self.sequences[name](self._chance.choice(self.places))
        self.made[name] += self.writes - before
        self.refusals[name] += self.refused - refused

    # Writing and reading

    def _do(self, text: str, ask: Ask, about: Place | None = None) -> Any:
        """A write at either server, and immediate reads elsewhere."""
        server = self._chance.randrange(self._servers)
        with self._gate.writing():
            answer = outcome(ask, self._client.connections[server])
            is_refused = isinstance(answer, tuple)
            self.refused += is_refused
            self.writes += not is_refused
            self._text.append(
                f"{text} {about or ''} at {server}: {answer!s:.160}"
                if is_refused
                else f"{text} {about or ''} at {server}"
            )
            if about is not None:
                self._look(about, 1 - server if self._servers > 1 else server)
        return answer

    def _asks(self, place: Place) -> list[tuple[str, Ask]]:
        chance = self._chance
        found = [*of_table(place), *of_partitions(place, chance), *of_lists(place, chance, self._known)]
        return [*found, *of_database(place, chance), *_of_rights(place, chance)]

    def _look(self, place: Place, first: int) -> None:
        """Reads some of what was written, and one other object of its own, on one server, then on all."""
        asks = self._chance.sample(self._asks(place), 5)
        asks.append(self._chance.choice(self._asks(self._chance.choice(self.places))))
        for label, ask in asks:
            self.compare(label, ask, first)

    def compare(self, label: str, ask: Ask, first: int = 0) -> None:
        """Returns the answers of both servers, and of the one without a cache, for a read while nothing changes."""
        self.kinds[label.partition(" ")[0]] += 1
        expected = None
        for server in (first, *(one for one in range(self._servers) if one != first)):
            self._client.connections[server]._seqid = self.reads % 1_000_000  # with a cached answer, it is another one
            answer = outcome(ask, self._client.connections[server])
            if expected is None:
                expected = (outcome(ask, self._client.connections[ORACLE]),)
            self.reads += 1
            if answer != expected[0]:
                again = outcome(ask, self._client.connections[server])
                self.wrong.append(
                    f"client {self.number}, server {server}: {label}\n  {answer!s:.1500}\n  {expected[0]!s:.1500}\n"
                    f"  again {'right' if again == expected[0] else 'wrong'}\n  after "
                    + "\n        ".join(self._text[-25:])
                )

    def look_at_all(self, share: float) -> None:
        """A part of all reads of all its objects. No client may write."""
        for place in self.places:
            for label, ask in self._asks(place):
                if self._chance.random() < share:
                    self.compare(label, ask, self._chance.randrange(self._servers))

    def look_at_shared(self) -> None:
        """Compares the answers about all clients' databases. No client may write meanwhile."""
        for label, ask in shared_reads():
            self.compare(label, ask)

    def _get(self, place: Place) -> t.Table | None:
        found = outcome(lambda c: c.get_table(place.sent, place.table), self._client.connections[ORACLE])
        return found if isinstance(found, t.Table) else None

    def _names(self, place: Place) -> list[str]:
        found = outcome(lambda c: c.get_partition_names(place.sent, place.table, -1), self._client.connections[ORACLE])
        return found if isinstance(found, list) else []

    def _partition(self, place: Place) -> t.Partition | None:
        names = self._names(place)
        if not names:
            return None
        name = self._chance.choice(names)
        return outcome(
            lambda c: c.get_partition_by_name(place.sent, place.table, name), self._client.connections[ORACLE]
        )

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _table(self, place: Place, keys: int) -> t.Table:
        parameters = {"n": str(self._next())}
        kind = "MANAGED_TABLE"
        if place.table == "acid":
            parameters["transactional"] = "true"
        else:
            kind, parameters["EXTERNAL"] = "EXTERNAL_TABLE", "TRUE"
            parameters["external.table.purge"] = "TRUE"  # else it is not truncated
        return t.Table(
            tableName=place.table,
            dbName=place.database,
            catName=place.catalog,
            owner="o",
            createTime=1,
            sd=descriptor(),
            partitionKeys=[t.FieldSchema(name, "string", None) for name in ("p", "q")[:keys]],
            parameters=parameters,
            tableType=kind,
        )

    def _there(self, place: Place) -> t.Table | None:
        """The table, created if necessary."""
        table = self._get(place)
        if table is None:
            self._do("create_table", lambda c: c.create_table(self._table(place, 1)), place)
            table = self._get(place)
        if table is not None:
            self._known.ids.setdefault(place, []).append(table.id)
            if place.catalog == "hive":
                lists = self._known.lists.setdefault(place, [])
                lists.append(write_id_list(self._client.connections[ORACLE], place))
                del lists[:-6]
        return table

    def _new_partition(self, place: Place, table: t.Table, value: str) -> t.Partition:
        values = [value, self._chance.choice("xy")][: len(table.partitionKeys)]
        sd = descriptor(tuple(one.name for one in table.sd.cols))
        return t.Partition(
            values, place.database, place.table, 1, 0, sd, {"n": str(self._next())}, catName=place.catalog
        )


def _of_rights(place: Place, chance: random.Random) -> Iterator[tuple[str, Ask]]:
    reference = t.HiveObjectRef(t.HiveObjectType.TABLE, place.database, place.table, None, None, place.catalog)
    of_database_ = t.HiveObjectRef(t.HiveObjectType.DATABASE, place.database, None, None, None, place.catalog)
    column = t.HiveObjectRef(t.HiveObjectType.COLUMN, place.database, place.table, None, "a", place.catalog)
    for shown, one in (("table", reference), ("database", of_database_), ("column", column)):
        yield f"get_privilege_set {shown} {place}", lambda c, o=one: c.get_privilege_set(o, "u", [])
        yield (
            f"list_privileges {shown} {place}",
            lambda c, o=one: sorted(map(str, c.list_privileges("u", t.PrincipalType.USER, o))),
        )
    value = chance.choice("123")
    yield (
        f"isMarked {place}",
        lambda c: c.isPartitionMarkedForEvent(place.sent, place.table, {"p": value}, t.PartitionEventType.LOAD_DONE),
    )


def shared_reads() -> Iterator[tuple[str, Ask]]:
    """Those whose answers show what several clients wrote."""
    yield "get_all_databases", lambda c: c.get_all_databases()
    yield "get_catalogs", lambda c: c.get_catalogs()
    yield "get_catalog", lambda c: c.get_catalog(t.GetCatalogRequest(OTHER_CATALOG))
    yield "get_all_functions", lambda c: c.get_all_functions()
    yield "get_materializations", lambda c: c.get_all_materialized_view_objects_for_rewriting()
    for catalog, prefix in (("hive", ""), (OTHER_CATALOG, f"@{OTHER_CATALOG}#")):
        yield f"get_databases {catalog}", lambda c, p=prefix: c.get_databases(f"{p}*")
        yield f"get_databases w* {catalog}", lambda c, p=prefix: c.get_databases(f"{p}w*")
        yield f"get_table_meta {catalog}", lambda c, p=prefix: c.get_table_meta(f"{p}*", "*", None)
        yield f"get_table_meta a {catalog}", lambda c, p=prefix: c.get_table_meta(f"{p}v*", "a*|m*", ["EXTERNAL_TABLE"])
        yield (
            f"get_databases_req {catalog}",
            lambda c, k=catalog: c.get_databases_req(t.GetDatabaseObjectsRequest(k, "*")),
        )
        yield (
            f"get_functions_req {catalog}",
            lambda c, k=catalog: c.get_functions_req(t.GetFunctionsRequest(None, k, "*", False)),
        )
