"""Statements as the database's own driver or server counts them, below SQLAlchemy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event

from hms_cache.store.engine.database import Database

_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK")


class DatabaseStatements:
    """Counts what all connections of a database send from now on, except starts and ends of transactions.

    MariaDB counts the statements of a connection (`Questions`), including commits; SQLite traces what it runs; libpq
    traces what it sends to PostgreSQL.
    """

    def __init__(self, database: Database, directory: Path) -> None:
        self._kind = database.engines[0].dialect.name
        self._connections: list[Any] = []
        self._traced: list[str] = []
        self._trace = directory / "libpq.trace"
        self._file = os.open(self._trace, os.O_CREAT | os.O_WRONLY)
        for engine in database.engines:
            event.listen(engine, "checkout", lambda connection, *_: self._connect_to(connection))

    def _connect_to(self, connection: Any) -> None:
        if connection in self._connections:
            return
        self._connections.append(connection)
        if self._kind == "sqlite":
            connection.set_trace_callback(self._traced.append)
        elif self._kind == "postgresql":
            connection.pgconn.trace(self._file)

    def close(self) -> None:
        """Stops counting; the connections cannot be used any more."""
        os.close(self._file)

    def count(self, call: Callable[[], object]) -> int:
        """Returns the number of statements of the call. Its connections must have been used before."""
        known = len(self._connections)
        before = self._total()
        call()
        after = self._total()
        assert len(self._connections) == known, "a new connection: what it sent before is not counted"
        return after - before

    def _total(self) -> int:
        if self._kind == "postgresql":
            return self._sent()
        if self._kind == "sqlite":
            return sum(not statement.startswith(_CONTROL) for statement in self._traced)
        return sum(_questions(connection) for connection in self._connections)

    def _sent(self) -> int:
        text = self._trace.read_text(errors="replace")
        lines = [line.split("\t") for line in text.splitlines()]
        # In a trace: time, F(rontend) or B(ackend), length, message, its parts.
        sent = [fields[3:] for fields in lines if len(fields) > 3 and fields[1] == "F"]
        plain = [rest for name, *rest in sent if name == "Query" and not rest[0].strip(' "').startswith(_CONTROL)]
        return len(plain) + sum(name == "Execute" for name, *_ in sent)


def _questions(connection: Any) -> int:
    """Returns the number of the connection's statements so far, except those of this function."""
    requested = getattr(connection, "_asked_for_questions", 0)
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
        found = int(cursor.fetchone()[1])
    connection._asked_for_questions = requested + 1
    return found - requested - 1
