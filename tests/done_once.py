"""What each test would do again with the same result, and takes longer than most tests: done once in a process."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pymysql.connections import Connection as MysqlConnection
from sqlalchemy import Connection

from hms_cache.store.engine import inspection
from hms_cache.store.engine.inspection import TableShape
from tests.databases import WITH_THE_SCHEMA


@contextmanager
def done_once() -> Iterator[None]:
    """Until the end, schemas are inspected once each, and the system's certificates are read once."""
    with pytest.MonkeyPatch.context() as patch:
        for dialect in ("sqlite", "mysql", "postgresql"):
            patch.setattr(inspection, f"_inspect_{dialect}", _Inspection(getattr(inspection, f"_inspect_{dialect}")))
        patch.setattr(MysqlConnection, "_create_ssl_ctx", _one_context(MysqlConnection._create_ssl_ctx))
        yield


class _Inspection:
    """An inspection, which takes 70 ms on SQLite and asks a server for what it finds slowly, and most tests open a
    database. What it finds is the same where the definitions are."""

    def __init__(self, inspect: Any) -> None:
        self._inspect = inspect
        self._found: dict[Any, dict[str, TableShape]] = {}

    def __call__(self, connection: Connection) -> dict[str, TableShape]:
        definitions = _definitions(connection)
        if definitions is None:
            found: dict[str, TableShape] = self._inspect(connection)
            return found
        if definitions not in self._found:
            self._found[definitions] = self._inspect(connection)
        return dict(self._found[definitions])


def _definitions(connection: Connection) -> Any:
    """All definitions of the database, as text on SQLite, or what stands for them; None: nobody knows."""
    if connection.dialect.name == "sqlite":
        statement = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3"
        return tuple(connection.exec_driver_sql(statement).tuples())
    return "of the schema" if connection.engine.url.database in WITH_THE_SCHEMA else None


def _one_context(create: Any) -> Any:
    """Reading the certificates takes 25 ms for each connection. Contexts with settings stay what they are."""

    @functools.cache
    def plain() -> ssl.SSLContext:
        made: ssl.SSLContext = create(None, {})
        return made

    return lambda self, given: create(self, given) if given else plain()
