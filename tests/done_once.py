"""Work that each test would repeat with the same result, and that takes longer than most tests: done once in a
process."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, contextmanager
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import uvicorn.server
from sqlalchemy import Connection, Dialect

from hms_cache.store.engine import database, inspection
from hms_cache.store.engine.drivers.sessions import Sessions
from hms_cache.store.engine.inspection import TableShape
from hms_cache.store.engine.statement_cache import StatementCache
from hms_cache.store.installation.init import ensure_default_roles, init_schema
from hms_cache.store.schema import METADATA
from tests.databases import initialized


@contextmanager
def done_once() -> Iterator[None]:
    """Until the end, embedded schemas are inspected once each, and statements compiled once for each kind of server.

    So are those that make a schema; a server whose embedded database is empty gets it as a copy. No test outlives its
    machine: embedded databases of this process do not wait for the disk, as those of servers in tests do not. Nor does
    anything wait for a management port that gives answers on their way a moment when it stops.
    """
    with pytest.MonkeyPatch.context() as patch:
        shared = SharedStatements()
        patch.setattr(database, "StatementCache", lambda: shared)
        patch.setattr(METADATA, "create_all", _making_what_was_made(METADATA.create_all))
        patch.setattr("hms_cache.app.database.init_schema", _copying_what_was_made(init_schema))
        patch.setattr(Sessions, "_prepare_sqlite", _prepare_without_waiting)
        patch.setattr(uvicorn.server, "asyncio", _looking_around_often())
        patch.setattr(inspection, "_inspect_sqlite", _by_definitions(inspection._inspect_sqlite))
        patch.setattr(inspection, "_inspect_mysql", _of_initialized(inspection._inspect_mysql))
        patch.setattr(inspection, "_inspect_postgresql", _of_initialized(inspection._inspect_postgresql))
        yield


prepare_as_servers_do = Sessions._prepare_sqlite


def _prepare_without_waiting(target: Sessions, connection: sqlite3.Connection, kind: str) -> None:
    """A commit waits for the disk for milliseconds, where a test has its database in a directory of its own."""
    prepare_as_servers_do(target, connection, kind)
    connection.execute("PRAGMA synchronous=OFF")


def _of_initialized(inspect: Callable[[Connection], dict[str, TableShape]]) -> Any:
    """A server takes 20 ms to describe its tables. Those of databases that tests give back stay as they were made, but
    for tables of our own, which come when they are needed."""
    found: dict[Hashable, dict[str, TableShape]] = {}

    def inspect_once(connection: Connection) -> dict[str, TableShape]:
        place = (connection.engine.url.port, connection.engine.url.database)
        if place not in initialized:
            return inspect(connection)
        tables = frozenset(connection.exec_driver_sql(_TABLES[connection.dialect.name]).scalars())
        if (place, tables) not in found:
            found[place, tables] = inspect(connection)
        return {name: _copied(shape) for name, shape in found[place, tables].items()}

    return inspect_once


_TABLES = {
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
    "postgresql": "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace",
}


def _by_definitions(inspect: Callable[[Connection], dict[str, TableShape]]) -> Any:
    """An inspection of SQLite takes 70 ms, and most tests open a database. It finds the same where the text of all
    definitions, which is all that SQLite knows of them, is the same."""
    found: dict[str, dict[str, TableShape]] = {}

    def inspect_once(connection: Connection) -> dict[str, TableShape]:
        definitions = connection.exec_driver_sql(_ALL_DEFINITIONS).scalar_one()
        if definitions not in found:
            found[definitions] = inspect(connection)
        return {name: _copied(shape) for name, shape in found[definitions].items()}  # each its own, to change

    return inspect_once


_ALL_DEFINITIONS = (
    "SELECT json_group_array(json_array(type, name, tbl_name, sql))"
    " FROM (SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3)"
)
"""As one text: to fetch each of the 200 rows would take as long as a test's own statements."""


def _copied(shape: TableShape) -> TableShape:
    columns, indexes, foreign_keys = dict(shape.columns), dict(shape.indexes), dict(shape.foreign_keys)
    return TableShape(shape.name, columns, shape.primary_key, shape.primary_key_name, indexes, foreign_keys)


def _making_what_was_made(create_all: Callable[[Connection], None]) -> Callable[[Connection], None]:
    """Most of the 100 ms that an empty embedded database takes to get its 83 tables go into writing the statements.

    What is not empty, or on a server, is made as ever.
    """
    made: list[str] = []

    def create(connection: Connection) -> None:
        is_embedded = connection.dialect.name == "sqlite"
        if not is_embedded or connection.exec_driver_sql("SELECT COUNT(*) FROM sqlite_master").scalar():
            create_all(connection)
            return
        if not made:
            create_all(connection)
            made.extend(connection.exec_driver_sql(_DEFINITIONS).scalars())
            return
        for statement in made:
            connection.exec_driver_sql(statement)

    return create


_DEFINITIONS = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite^_%' ESCAPE '^'"
"""Without those that SQLite makes itself, as for numbers that it counts."""


def _copying_what_was_made(init: Callable[[database.Database], None]) -> Callable[[database.Database], None]:
    """Of the processor time that a server in this process takes to start, a third went into making the schema of its
    embedded database and its roles. Pages of one that a server has made are copied into any other that is empty."""
    template = sqlite3.connect(":memory:", check_same_thread=False)
    lock = threading.Lock()
    is_made = False

    def make_or_copy(target: database.Database) -> None:
        nonlocal is_made
        with lock:
            if is_made and _is_empty(target):
                with closing(sqlite3.connect(target.url.database, timeout=60)) as copy:
                    copy.execute("PRAGMA synchronous=OFF")
                    template.backup(copy)
                target.forget_features()
                return
            was_empty = not is_made and _is_empty(target)
            init(target)
            if was_empty:
                with target.writing() as connection:
                    ensure_default_roles(connection, int(target.clock.epoch_s()))
                    connection.commit()
                with closing(sqlite3.connect(target.url.database)) as made:
                    made.backup(template)
                is_made = True

    return make_or_copy


def _is_empty(target: database.Database) -> bool:
    if not target.is_sqlite:
        return False
    with target.checking() as connection:
        return not connection.exec_driver_sql("SELECT COUNT(*) FROM sqlite_master").scalar()


def _looking_around_often() -> ModuleType:
    """As `asyncio`, for uvicorn, which waits for 0.1 s when it stops: longer than a server takes to start."""
    often = ModuleType("asyncio")
    often.__dict__.update(vars(asyncio))
    often.sleep = lambda delay_s, *result: asyncio.sleep(min(delay_s, 0.002), *result)  # type: ignore[attr-defined]
    return often


class SharedStatements:
    """Compiled statements of all engines, found again by any whose dialect has the same properties.

    A server compiles each statement once, and most tests have a server's engines of their own: a fifth of the
    processor time of tests with databases went into compiling the same statements again.
    """

    def __init__(self) -> None:
        self._compiled = StatementCache()
        self._compiled.capacity = _MAX_STATEMENTS
        self._kinds: WeakKeyDictionary[Dialect, Hashable] = WeakKeyDictionary()

    def get(self, key: tuple[Any, ...]) -> Any:
        """As SQLAlchemy asks: the first part of the key is the dialect."""
        return self._compiled.get(self._shared(key))

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._compiled[self._shared(key)] = compiled

    def _shared(self, key: tuple[Any, ...]) -> Hashable:
        dialect, *rest = key
        kind = self._kinds.get(dialect)
        if kind is None:
            kind = _kind_of(dialect)
            if getattr(dialect, "server_version_info", None) is not None:  # else it may still learn more of its server
                self._kinds[dialect] = kind
        return (kind, *rest)


_MAX_STATEMENTS = 3_000


def _kind_of(dialect: Dialect) -> Hashable:
    """All that a dialect holds of plain values: what a server said, and how it was made."""
    plain = (bool, int, float, str, tuple, frozenset, type(None))
    held = {name: value for name, value in vars(dialect).items() if isinstance(value, plain)}
    return type(dialect), repr(sorted(held.items()))
