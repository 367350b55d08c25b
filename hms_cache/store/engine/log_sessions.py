"""Which history a read of the log's end was made in: the server, its timeline, and the session on it.

An event id proves nothing by itself: after a failover that lost a commit, the next write takes the same id. What cannot
change under a reader is the history of one session on one server: a server loses commits only in a crash, a restart or
a promotion, which end its sessions. So the statement that reads NEXT_EVENT_ID reads this, too, in the same round trip,
and the answer is compared as one text. Behind a proxy a connection may be moved to another server between two
statements; then the text is another one.

=============  ==================================================================================================
database       what the text names
=============  ==================================================================================================
MySQL,         ``@@server_uuid`` or ``@@server_uid`` (as far as there), ``@@server_id``, ``@@hostname``, ``@@port``,
MariaDB        and ``DATABASE()``; ``CONNECTION_ID()``; ``@@read_only``, ``@@innodb_read_only``, Galera's settings,
               MySQL's of a group with one primary
PostgreSQL     system identifier, timeline, ``current_database()``; start of the server, process of the session;
               ``pg_is_in_recovery()``
SQLite         the file (device and inode)
=============  ==================================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, func, literal_column, select

from hms_cache.notifications.event_log import History, LogHead
from hms_cache.store.engine.dialects import DialectName
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.read_plans import Plan, PlannedQuery, fetch, fetch_together
from hms_cache.store.schema import NOTIFICATION_SEQUENCE

_SEPARATOR: Final = "|"
_KEPT: Final = "hms_cache.history"
_NEXT_EVENT_ID: Final = select(func.max(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID))

_SERVER_VARIABLES: Final = ("server_uuid", "server_uid", "server_id", "hostname", "port")
_STANDING_VARIABLES: Final = (
    *("read_only", "innodb_read_only", "wsrep_on", "wsrep_sync_wait", "group_replication_single_primary_mode"),
)

_POSTGRESQL_TEXT: Final = (
    "concat_ws('|', concat_ws(':', {system}, CASE WHEN pg_is_in_recovery() THEN 'recovery'"
    " ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END),"
    " pg_is_in_recovery()::text,"
    " concat_ws(':', pg_postmaster_start_time(), pg_backend_pid()),"
    " current_database())"
)
_SYSTEM_IDENTIFIER: Final = "(SELECT system_identifier FROM pg_control_system())"


class HistoryText:
    """The statement for one database's server, made at the first use. Two threads may make it at the same time; both
    are equal."""

    def __init__(self, dialect: DialectName) -> None:
        self._dialect = dialect
        self._statement: Select[Any] | None = None
        self._query: DirectQuery | None = None
        """The query of `_statement`."""

    def forget(self) -> None:
        """Makes the next use create it again: another server may be behind the address."""
        self._statement = None

    def statement(self, connection: Connection) -> Select[Any]:
        """The end of the log and its history: one row, one round trip. Raises DatabaseUnavailable.

        Returns the same object until `forget`: creating it costs as much as the query.
        """
        found = self._statement
        if found is None:
            text = _mysql_text(connection) if self._dialect == "mysql" else _postgresql_text(connection)
            found = select(func.max(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID), literal_column(text))
            self._statement = found
        return found

    def query(self, connection: Connection) -> DirectQuery:
        """The statement as a query that can be sent together with other queries."""
        statement, found = self.statement(connection), self._query
        if found is None or found.statement is not statement:
            found = self._query = DirectQuery(statement)
        return found


def _mysql_text(connection: Connection) -> str:
    names = ", ".join(f"'{name}'" for name in (*_SERVER_VARIABLES, *_STANDING_VARIABLES))
    rows = connection.exec_driver_sql(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})").tuples().all()
    there = {row[0].lower() for row in rows}
    server = ", ".join(f"@@global.{name}" for name in _SERVER_VARIABLES if name in there)
    # Of Galera's settings, those of this session count.
    scopes = {name: "" if name.startswith("wsrep") else "global." for name in _STANDING_VARIABLES}
    standing = ", ".join(f"'{name}', @@{scopes[name]}{name}" for name in _STANDING_VARIABLES if name in there)
    return (
        f"CONCAT_WS('{_SEPARATOR}', CONCAT_WS(':', {server}), CONCAT_WS(':', {standing}), CONNECTION_ID(), DATABASE())"
    )


def _postgresql_text(connection: Connection) -> str:
    allowed = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
    may_read_identifier = bool(connection.exec_driver_sql(allowed).scalar_one())
    return _POSTGRESQL_TEXT.format(system=_SYSTEM_IDENTIFIER if may_read_identifier else "'postgresql'")


def read_head(connection: Connection, history_text: HistoryText) -> LogHead:
    """The end of the log, on MySQL, MariaDB or PostgreSQL. Raises DatabaseUnavailable."""
    # Every exact read waits for this read: `Connection.execute` would cost more than everything else in it.
    [[row]] = fetch_together(connection, [PlannedQuery(history_text.query(connection), {})])
    return head_of(connection, row)


def head_plan(connection: Connection, history_text: HistoryText) -> Plan[LogHead]:
    """`read_head` as a plan, to read a snapshot's fence together with other queries."""
    [row] = yield from fetch(PlannedQuery(history_text.query(connection), {}))
    return head_of(connection, row)


def head_of(connection: Connection, row: Sequence[Any]) -> LogHead:
    """Parses a row of `HistoryText.query`."""
    next_event_id, text = row
    return LogHead((next_event_id or 1) - 1, history_of(connection.info, connection.dialect.name, text))


def history_of(session: MutableMapping[Any, Any], dialect: str, text: str) -> History:
    """The history that a text describes. The same object as long as the same connection returns the same text
    (`session`: the connection's info, which lives as long as the connection)."""
    kept = session.get(_KEPT)
    if kept is None or kept[0] != text:
        kept = session[_KEPT] = text, parse_history(dialect, text)
    history: History = kept[1]
    return history


def parse_history(dialect: str, text: str) -> History:
    """A new history for the session that returned this text."""
    server, standing, session, database = text.split(_SEPARATOR, 3)
    kind = "postgresql" if dialect == "postgresql" else "mysql"
    reason = _reason_in_postgresql(standing) if kind == "postgresql" else _reason_in_mysql(standing)
    return History(f"{kind}:{server}/{database}", session, reason)


def _reason_in_postgresql(standing: str) -> str | None:
    return "the database is in recovery: a replica" if standing == "true" else None


def _reason_in_mysql(standing: str) -> str | None:
    parts = standing.split(":")
    values = dict(zip(parts[::2], parts[1::2], strict=False))
    off = ("0", "OFF")
    if values.get("read_only", "0") not in off or values.get("innodb_read_only", "0") not in off:
        return "the database is read-only: a replica, most likely"
    if values.get("wsrep_on", "0") not in off and not int(values.get("wsrep_sync_wait", "0") or 0) & 1:
        return "the database is a Galera cluster whose reads do not wait for it (wsrep_sync_wait has no bit 1)"
    if values.get("group_replication_single_primary_mode", "1") in off:
        return "the database is a group of MySQL servers with several primaries"
    return None


def kept_history(session: Mapping[Any, Any]) -> History | None:
    """The history in which this connection was last seen; None if it was not read yet."""
    kept = session.get(_KEPT)
    return kept[1] if kept is not None else None


def last_event_id(connection: Connection) -> int:
    """The last event id only."""
    return (connection.execute(_NEXT_EVENT_ID).scalar() or 1) - 1


def file_identity(path: str) -> str:
    """Identifies an embedded database by its file: another file may have been put in its place under the same name."""
    path = os.path.abspath(path)
    try:
        status = os.stat(path)
    except OSError:
        return f"sqlite:{path}"
    return f"sqlite:{path}:{status.st_dev}:{status.st_ino}"
