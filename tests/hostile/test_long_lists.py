"""A list in a request may be as long as its message: each list of each method, with many elements."""

from __future__ import annotations

import gc
import itertools
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TException, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TMemoryBuffer, TTransportException

from hms_cache.app.process import tune_interpreter
from hms_cache.app.service import Service
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore
from hms_cache.thrift_gen.hive_metastore.ttypes import AbortTxnsRequest, Database, OpenTxnRequest
from hms_cache.wire import METHODS
from tests.app.test_service import configured
from tests.cache.world import table

STATEMENTS_PER_ELEMENT = 0.1
"""Set-wise work takes a few statements for hundreds of elements; one or more for each makes a message of 100 MB a
million round trips under the locks of one transaction."""

ALWAYS = 3_500
"""Statements that any call may send: those that take some for each element are limited to 1,000 elements."""

LONGEST_CPU_S = 60.0
"""Of this process, client and server, for one call: an element more must not cost an element's square. Not by the
clock: beside other work, and at a low priority, a call of a second takes minutes."""


@contextmanager
def client(uri: str) -> Iterator[Any]:
    """A client of the whole protocol."""
    link = TSocket("127.0.0.1", int(uri.rsplit(":", 1)[1]))
    link.setTimeout(3_600_000)
    transport = TBufferedTransport(link, 1 << 16)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport, fallback=False))
    finally:
        transport.close()


_NUMBERS = itertools.count()

Path_ = tuple[str, ...]


def long_lists() -> Iterator[tuple[str, Path_]]:
    """Each list, set and map of each method: the method, and the path of fields to it."""
    for name, method in METHODS.items():
        yield from ((name, path) for path in _lists_of(method.args_class, (), ()))


def _lists_of(kind: Any, way: Path_, inside: tuple[Any, ...]) -> Iterator[Path_]:
    if kind in inside or len(way) > 4:
        return
    for field in filter(None, kind.thrift_spec):
        path = (*way, field[2])
        if field[1] in (TType.LIST, TType.SET, TType.MAP):
            yield path
        elif field[1] == TType.STRUCT:
            yield from _lists_of(field[3][0], path, (*inside, kind))


_NAMES = {
    **dict.fromkeys(("dbName", "dbname", "db_name", "databaseName", "database", "db", "parent_db_name"), "d"),
    **dict.fromkeys(("tblName", "tbl_name", "tableName", "tableName", "table", "parent_tbl_name"), "t"),
    **dict.fromkeys(("catName", "catalogName", "catalog", "cat_name", "parentCatalogName"), "hive"),
    "table_name": "t",
    "tablename": "t ",
    "type": "int",
    "colType": "int",
    "colName": "a",
    "user": "u",
    "hostname": "h",
    "principalName": "u",
    "partitionname": "p=1",
    "privilege": "SELECT",
}
_ALWAYS = ("type", "colType", "privilege", "user", "hostname", *(name for name, text in _NAMES.items() if text in "dt"))
"""Names whose values every element has."""

_UNSET = (
    "validWriteIdList",
    "replPolicy",
    "validTxnList",
    "processorIdentifier",
    "expr",
    "fileMetadata",
    "colStats",
    "location",
    "locationUri",
    "managedLocationUri",
)


def filled(kind: Any, long: Path_, count: int, number: int = 0, depth: int = 0) -> Any:
    """A struct with its fields set; `long`: the path to the list that has `count` distinct elements."""
    made = kind()
    for field in filter(None, kind.thrift_spec):
        _, type_, name, of, _ = field
        is_on_the_way = bool(long) and long[0] == name
        if name in _UNSET and not is_on_the_way:
            continue
        if depth > 3 and not is_on_the_way and type_ in (TType.STRUCT, TType.LIST, TType.MAP, TType.SET):
            continue
        rest = long[1:] if is_on_the_way else ()
        times = count if is_on_the_way else 1
        setattr(made, name, value(name, type_, of, rest, times, number, depth + 1))
    return made


def value(name: str, type_: int, of: Any, long: Path_, count: int, number: int, depth: int) -> Any:
    """A value of a field; the elements of a list differ by their number."""
    match type_:
        case TType.STRING:
            if of == "BINARY":
                return b"x"
            return f"x{number}" if name not in _NAMES or (number and name not in _ALWAYS) else _NAMES[name]
        case TType.BYTE | TType.I32:
            return 1  # values of enumerations, most of them
        case TType.STRUCT:
            return filled(of[0], long, count, number, depth)
        case TType.LIST | TType.SET:
            some = [value(name, of[0], of[1], (), 1, each, depth) for each in range(count)]
            return set(some) if type_ == TType.SET else some
        case TType.MAP:
            keys = [value(name, of[0], of[1], (), 1, each, depth) for each in range(count)]
            keys = [tuple(key) if isinstance(key, list) else key for key in keys]
            return {key: value(name, of[2], of[3], (), 1, each, depth) for each, key in enumerate(keys)}
        case TType.BOOL:
            return False
        case TType.DOUBLE:
            return 1.0
    if name in _OF_TXNS:
        return _first_txn[0] + number
    return number + 1


_OF_TXNS = ("txnid", "txn_id", "txnIds", "txn_ids", "txnId", "txnid", "partnames")
_first_txn = [1]
"""The first of as many open transactions as a list has elements."""


def open_txns(uri: str, count: int) -> None:
    """Opens this many, with consecutive ids; reuses them if the previous call left them unchanged."""
    with client(uri) as metastore:
        still_open = metastore.get_open_txns().open_txns
        if {*range(_first_txn[0], _first_txn[0] + count)} <= {*still_open}:
            return
        for start in range(0, len(still_open), 1000):
            metastore.abort_txns(AbortTxnsRequest(sorted(still_open)[start : start + 1000]))
        first = metastore.open_txns(OpenTxnRequest(1000, "u", "h")).txn_ids[0]
        for _ in range((count - 1) // 1000):
            metastore.open_txns(OpenTxnRequest(1000, "u", "h"))
    _first_txn[0] = first


class WatchedService:
    """A service of this process, which records whether a call has written anything."""

    def __init__(self, directory: Path) -> None:
        self.service = Service(configured(directory, admin__enabled=True, admin__port=0))
        self.uri = self.service.start()
        self.has_written = True
        self.statements = 0
        """All that were sent so far, in this process."""
        event.listen(Engine, "before_cursor_execute", self._note)
        with client(self.uri) as metastore:
            metastore.create_database(Database(name="d"))

    def _note(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.statements += 1
        if not statement.startswith(_READING):
            self.has_written = True

    def make_again(self, make: Callable[[str], None]) -> bool:
        """Creates what calls need, if any call has written since and so may have changed it. Returns whether it was
        created."""
        if not self.has_written:
            return False
        make(self.uri)
        self.has_written = False
        return True

    def forget(self) -> None:
        """Memory is empty, as after everything was created."""
        sources = self.service.admin_sources
        assert sources is not None and sources.cache is not None
        sources.cache.shared.forget_all()

    def stop(self) -> None:
        """The reply must be of this kind."""
        event.remove(Engine, "before_cursor_execute", self._note)
        self.service.stop()


_READING = ("SELECT ", "WITH ", "BEGIN", "PRAGMA ")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedService]:
    with a_servers_interpreter():
        watched = WatchedService(tmp_path_factory.mktemp("served"))
        yield watched
        watched.stop()


@contextmanager
def a_servers_interpreter() -> Iterator[None]:
    """This process is configured like a server's."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    tune_interpreter()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


outcomes: dict[Any, str] = {}


def make_table(uri: str) -> None:
    """What the previous call may have dropped or changed."""
    with client(uri) as metastore:
        with suppress(TException):
            metastore.create_database(Database(name="d"))
        with suppress(TException):
            metastore.drop_table("d", "t", False)
        metastore.create_table(table("d", "t", keys=(("p", "string"),)))


def send(metastore: Any, method: str, path: Path_, count: int) -> None:
    """Builds the request's bytes and frees what they were built from: a million objects of the client would make each
    garbage collection, and each count of objects, in this process slow."""
    written = TMemoryBuffer()
    to_bytes = ThriftHiveMetastore.Client(None, TBinaryProtocolAccelerated(written, fallback=False))
    getattr(to_bytes, f"send_{method}")(*_arguments(method, path, count))
    metastore._iprot.trans.write(written.getvalue())
    metastore._iprot.trans.flush()


def _arguments(method: str, path: Path_, count: int) -> list[Any]:
    arguments = filled(METHODS[method].args_class, path, count)
    if method.startswith("create_table"):
        made = next(getattr(arguments, name) for name in ("tbl", "request") if hasattr(arguments, name))
        getattr(made, "table", made).tableName = f"made{next(_NUMBERS)}"
    return [getattr(arguments, field[2]) for field in METHODS[method].args_class.thrift_spec if field is not None]


def call(served: WatchedService, method: str, path: Path_, count: int) -> tuple[int, str]:
    """Statements that the call sent, and what is wrong with its outcome."""
    wrong = ""
    sent_before = served.statements
    began_s = time.process_time()
    try:
        with client(served.uri) as metastore:
            send(metastore, method, path, count)
            if not METHODS[method].oneway:
                getattr(metastore, f"recv_{method}")()
    except TTransportException as error:
        wrong = f"the connection ended: {error}"
    except TApplicationException as error:
        outcomes[method, path] = f"{error.message}"[:100]
        if "Error" in (error.message or ""):
            wrong = str(error.message)[:300]
    except TException as error:
        outcomes[method, path] = f"{type(error).__name__} {str(getattr(error, 'message', error))[:80]}"
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        outcomes[method, path] = f"not sent: {error}"
    if time.process_time() - began_s > LONGEST_CPU_S:
        wrong = wrong or "it took too long"
    return served.statements - sent_before, wrong


LISTS = tuple(long_lists())


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("count", [1_500, 40_000])
def test_no_list_makes_its_call_fail_inside_or_ask_for_each_element(count: int, served: WatchedService) -> None:
    wrong = []
    for method, path in LISTS:
        if method == "shutdown":
            continue
        if not served.make_again(make_table):
            served.forget()
        if any(word in method for word in ("txn", "lock", "write_id", "dynamic", "compact")):
            open_txns(served.uri, count)
        statements, fault = call(served, method, path, count)
        if fault:
            wrong.append(f"{method} {'.'.join(path)}: {fault}")
        elif statements > ALWAYS + STATEMENTS_PER_ELEMENT * count:
            wrong.append(f"{method} {'.'.join(path)}: {statements} statements")
    assert not wrong, "\n".join(wrong)
