"""Detects what stands between this server and its database and breaks what it relies on.

A pooler that gives each transaction another session (PgBouncer with ``pool_mode = transaction``): settings and prepared
statements of a session reach others, and the position of the log can never be proven to be that of the same session
(`log_sessions`).

A router that sends reads to replicas and writes to the primary (Pgpool-II, MaxScale, ProxySQL): reads do not show what
was committed before them, and even reads of a write transaction may not.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, func, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable, RetryableConflict
from hms_cache.store.schema import NOTIFICATION_SEQUENCE

SHARED_SESSIONS: Final = "the database is behind a pool that gives each transaction another session"
DISTRIBUTED_READS: Final = "the database is behind a router that sends reads to another server than writes"

_SESSION = select(func.pg_backend_pid())

_ATTEMPTS = 3
"""Other users of the pool may take the session that two connections would share."""

_SERVER = {
    # Functions that Pgpool-II takes for reads: pg_is_in_recovery(), which is volatile, always goes to the primary.
    "postgresql": text(
        "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), inet_server_addr(), inet_server_port())"
    ),
    "mysql": text("SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id)"),
}
"""Tells which server has executed the statement."""

_WRITE = (
    update(NOTIFICATION_SEQUENCE)
    .where(NOTIFICATION_SEQUENCE.c.NNI_ID == -1)
    .values(NEXT_EVENT_ID=NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)
)
"""Changes nothing. After it, a router sends a transaction's other statements to the primary, too."""


def problem_of_proxy(database: Database) -> str | None:
    """What makes the database unusable, `SHARED_SESSIONS` or `DISTRIBUTED_READS`; None if nothing is found. Changes
    nothing. Raises DatabaseUnavailable.

    A router that balances sessions at random may go unnoticed, except for Pgpool-II.
    """
    if database.is_sqlite:
        return None
    if database.dialect == "postgresql":
        if _pgpool_balances(database):
            return DISTRIBUTED_READS
        if shares_sessions(database):
            return SHARED_SESSIONS
    return DISTRIBUTED_READS if _reads_go_elsewhere(database) else None


def shares_sessions(database: Database) -> bool:
    """Whether two connections to a PostgreSQL database use one session. False if none is seen to. Raises
    DatabaseUnavailable."""
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


def _reads_go_elsewhere(database: Database) -> bool:
    """Whether a read by itself, one of a read transaction and one of a write transaction show more than one server."""
    servers = set()
    with database.checking() as connection:
        servers.add(_server(connection))
    with database.loading() as connection:
        servers.add(_server(connection))
    try:
        with database.writing() as connection:
            connection.execute(_WRITE)
            servers.add(_server(connection))
    except (DatabaseUnavailable, RetryableConflict, SQLAlchemyError):
        # A replica, an account that may only read, or no schema yet: nothing will be written, either. Or the table is
        # locked for a time, by a backup or a change of the schema, which does not prevent a start.
        pass
    return len(servers) > 1


def _server(connection: Connection) -> str:
    return str(connection.execute(_SERVER[connection.dialect.name]).scalar_one())


def _pgpool_balances(database: Database) -> bool:
    """Whether Pgpool-II may send reads of this session, or of others like it, to a standby."""
    with database.checking() as connection:
        if _is_direct(connection) or not _is_on(_shown(connection, "PGPOOL SHOW load_balance_mode")):
            return False
        redirects = (
            _shown(connection, f"PGPOOL SHOW {kind}_redirect_preference_list") for kind in ("database", "app_name")
        )
        if not any(_value(found) for found in redirects):
            return True
        nodes = connection.exec_driver_sql("SHOW pool_nodes").mappings().all()
        return any(node["load_balance_node"] == "true" and node["role"] != "primary" for node in nodes)


def _is_direct(connection: Connection) -> bool:
    """Whether the server's end of the connection is ours: then nobody is in between, and need not be asked.

    PostgreSQL would log the question as an error.
    """
    try:
        with socket.socket(fileno=connection.connection.fileno()) as own:
            try:
                port = own.getsockname()[1]
            finally:
                own.detach()
    except (OSError, AttributeError, IndexError, TypeError):
        return False
    return bool(connection.execute(select(func.inet_client_port())).scalar_one() == port)


def _shown(connection: Connection, statement: str) -> Mapping[str, Any] | None:
    """The row that a statement of Pgpool-II returns; None if it does not know the statement."""
    try:
        row = connection.exec_driver_sql(statement).mappings().first()
    except SQLAlchemyError:
        return None
    return None if row is None else dict(row)


def _value(row: Mapping[str, Any] | None) -> str:
    return str(next(iter(row.values()))) if row else ""


def _is_on(row: Mapping[str, Any] | None) -> bool:
    return _value(row) in ("on", "1", "true")
