"""Detects a pooler between this server and PostgreSQL that gives each transaction another session.

PgBouncer does so with ``pool_mode = transaction``. Then settings and prepared statements of a session reach others, and
the position of the log can never be proven to be that of the same session (`log_sessions`).
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from hms_cache.store.engine.database import Database

_SESSION = select(func.pg_backend_pid())

_ATTEMPTS = 3
"""Other users of the pool may take the session that two connections would share."""


def shares_sessions(database: Database) -> bool:
    """Whether two connections to the database use one session. False if none is seen to. Raises DatabaseUnavailable."""
    if database.dialect != "postgresql":
        return False
    for _ in range(_ATTEMPTS):
        with database.checking() as first:
            before = _session(first)
            with database.loading() as second:
                of_second = _session(second)
            if of_second == before or _session(first) != before:
                return True
    return False


def _session(connection: Connection) -> int:
    return int(connection.execute(_SESSION).scalar_one())
