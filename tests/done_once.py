"""What each test would do again with the same result, and takes longer than most tests: done once in a process."""

from __future__ import annotations

import functools
import pickle
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pymysql.connections import Connection as MysqlConnection
from sqlalchemy import Connection

from hms_cache.store.engine import inspection
from hms_cache.store.engine.inspection import TableShape


@contextmanager
def done_once() -> Iterator[None]:
    """Until the end, embedded schemas are inspected once each, and the system's certificates are read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection, "_inspect_sqlite", _by_definitions(inspection._inspect_sqlite))
        patch.setattr(MysqlConnection, "_create_ssl_ctx", _one_context(MysqlConnection._create_ssl_ctx))
        yield


def _by_definitions(inspect: Callable[[Connection], dict[str, TableShape]]) -> Any:
    """An inspection of SQLite takes 70 ms, and most tests open a database. It finds the same where the text of all
    definitions, which is all that SQLite knows of them, is the same."""
    found: dict[tuple[Any, ...], bytes] = {}

    def inspect_once(connection: Connection) -> dict[str, TableShape]:
        statement = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3"
        definitions = tuple(map(tuple, connection.exec_driver_sql(statement)))
        if definitions not in found:
            found[definitions] = pickle.dumps(inspect(connection))
        answer: dict[str, TableShape] = pickle.loads(found[definitions])  # each its own, to change
        return answer

    return inspect_once


def _one_context(create: Any) -> Any:
    """Reading the certificates takes 25 ms for each connection. Contexts with settings stay what they are."""

    @functools.cache
    def plain() -> ssl.SSLContext:
        made: ssl.SSLContext = create(None, {})
        return made

    return lambda self, given: create(self, given) if given else plain()
