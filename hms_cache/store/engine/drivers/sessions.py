"""Opens connections and configures their sessions, for each kind of access and each database.

The kinds are those of `store/engine/database.py`: *check*, *load* and *write*.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine import URL

from hms_cache.config.sections import DatabaseSettings
from hms_cache.store.engine.dialects import DialectName
from hms_cache.store.engine.drivers import mysql_driver
from hms_cache.store.engine.drivers.mysql_tls import pop_tls_options
from hms_cache.store.engine.drivers.postgresql_options import settings_of
from hms_cache.store.engine.drivers.postgresql_tls import PostgresqlTls
from hms_cache.store.engine.drivers.sqlite_files import FileOpener
from hms_cache.store.engine.errors import RetryableConflict

#: Longest text that MySQL joins in a GROUP_CONCAT: ids of a million partitions. Its default is 1,024. Callers detect
#: longer ones and read row by row.
_LONGEST_AGGREGATE_BYTES = 16 * 1024 * 1024

#: Settings that a database or an account may have changed: figures have all digits (before PostgreSQL 12 only 15), and
#: its catalog spells types and expressions as they are compared here.
_POSTGRESQL_SESSION = {"extra_float_digits": "3", "quote_all_identifiers": "off"}

#: The socket's timeout is longer than the statement's by this, so that the database reports the error first.
_SOCKET_MARGIN_S = 10.0
_CHECK_SOCKET_MARGIN_S = 1.0

#: How long a connection waits for another one that initializes a new SQLite file (which takes some milliseconds), and
#: the pause between attempts.
_NEW_FILE_WAIT_S = 10.0
_NEW_FILE_PAUSE_S = 0.01


class Sessions:
    """Sessions of one database."""

    def __init__(self, url: URL, dialect: DialectName, settings: DatabaseSettings) -> None:
        """Raises ConfigurationError."""
        self._dialect = dialect
        self.settings = settings
        self.url = url
        """Without the parts that the driver gets as arguments."""
        self._tls_options: dict[str, Any] = {}
        self._given_settings: dict[str, str] = {}
        """PostgreSQL's, from the URL."""
        if dialect == "mysql":
            self.url, self._tls_options = pop_tls_options(url)
        elif dialect == "postgresql":
            self._postgresql_tls = PostgresqlTls(url)
            self.url = self._postgresql_tls.url
            options = self.url.query.get("options", "")
            given = settings_of(options if isinstance(options, str) else " ".join(options))
            if given is not None:
                self._given_settings = given
                self.url = self.url.difference_update_query(["options"])
        self._file_opener = FileOpener()
        self._prepares_file = True

    def keep_file_as_found(self) -> None:
        """See `Database.keep_as_found`."""
        self._file_opener.expect_file()
        self._prepares_file = False

    def open_for(self, engine: Engine, kind: str) -> None:
        """Makes the engine open its connections and begin its transactions accordingly."""
        if self._dialect == "mysql":
            event.listen(engine, "do_connect", mysql_driver.connect)
        elif self._dialect == "postgresql":
            event.listen(engine, "do_connect", self._connect_postgresql(kind))
        else:
            event.listen(engine, "do_connect", self._file_opener)
            if kind != "check":
                begin = "BEGIN IMMEDIATE" if kind == "write" else "BEGIN"
                event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        # First: SQLAlchemy inspects its first connection to find out how identifiers are quoted (ANSI_QUOTES), and
        # which schema is searched.
        event.listen(engine, "connect", self._on_connect(kind), insert=self._dialect != "sqlite")

    def arguments(self, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments for the driver, and for SQLAlchemy's engine."""
        level = {"check": "AUTOCOMMIT", "load": "REPEATABLE READ", "write": "READ COMMITTED"}[kind]
        connect_s = self._connect_limit_s(kind)
        if self._dialect == "mysql":
            return {
                "charset": "utf8mb4",
                "connect_timeout": connect_s,
                # Until the session is prepared: the driver also sends statements while it connects.
                "read_timeout": connect_s,
                "write_timeout": self._socket_limit_s(kind),
                **self._tls_options,
            }, {"isolation_level": level}
        if self._dialect == "postgresql":
            return {
                "connect_timeout": math.ceil(connect_s),
                # Otherwise it is the database's encoding, and the driver cannot encode texts outside of it.
                "client_encoding": "utf8",
                # No column has this type; SQLAlchemy would look it up with each engine's first connection.
            }, {"isolation_level": level, "use_native_hstore": False}
        # No isolation level for load and write: then the driver does not begin transactions; the listener above does.
        return {"timeout": self.settings.statement_timeout_s, "check_same_thread": False}, (
            {"isolation_level": level} if kind == "check" else {}
        )

    def _statement_limit_s(self, kind: str) -> float:
        return self.settings.check_timeout_s if kind == "check" else self.settings.statement_timeout_s

    def _connect_limit_s(self, kind: str) -> float:
        return self.settings.check_connect_timeout_s if kind == "check" else self.settings.connect_timeout_s

    def _socket_limit_s(self, kind: str) -> float:
        """Timeout of one reply: a lost host or a hanging server never reports an error itself."""
        margin_s = _CHECK_SOCKET_MARGIN_S if kind == "check" else _SOCKET_MARGIN_S
        return self._statement_limit_s(kind) + margin_s

    def _connect_postgresql(self, kind: str) -> Callable[..., Any]:
        """SQLAlchemy's `do_connect` listener. Imports the driver only when needed, since it is an optional
        dependency."""

        def connect(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
            from hms_cache.store.engine.drivers.postgresql_driver import LimitedConnection

            connection = LimitedConnection.connect(*arguments, **options)
            connection.answer_limit_s = self._socket_limit_s(kind)
            return connection

        return connect

    def _on_connect(self, kind: str) -> Callable[[Any, Any], None]:
        prepare = {"sqlite": self._prepare_sqlite, "mysql": self._prepare_mysql, "postgresql": self._prepare_postgresql}
        prepare_one = prepare[self._dialect]
        return lambda connection, record: prepare_one(connection, kind)

    def _prepare_sqlite(self, connection: sqlite3.Connection, kind: str) -> None:
        connection.isolation_level = None
        end_s = monotonic() + _NEW_FILE_WAIT_S
        while True:
            try:
                if self._prepares_file and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                # Another process is switching the new file's journal mode; SQLite does not wait for that.
                if monotonic() >= end_s:
                    raise RetryableConflict(str(error)) from error
                sleep(_NEW_FILE_PAUSE_S)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        if kind != "write":
            connection.execute("PRAGMA query_only=ON")

    def _prepare_mysql(self, connection: Any, kind: str) -> None:
        limit_s = self._statement_limit_s(kind)
        is_mariadb = "MariaDB" in connection.get_server_info()
        limit_ms = math.ceil(limit_s * 1000)
        # In both, 0 is no limit. MySQL's is in milliseconds, and for SELECT only.
        limit = f"max_statement_time={limit_ms / 1000}" if is_mariadb else f"max_execution_time={limit_ms}"
        with connection.cursor() as cursor:
            # Strict mode: a value that does not fit its column is an error, never truncated or replaced by question
            # marks. Texts of errors are in English: some are evaluated (`dialects`).
            cursor.execute(
                "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION',"
                f" time_zone='+00:00', innodb_lock_wait_timeout={math.ceil(limit_s)}, {limit},"
                f" group_concat_max_len={_LONGEST_AGGREGATE_BYTES}, lc_messages='en_US'"
            )
            if kind == "load":
                cursor.execute("SET SESSION TRANSACTION READ ONLY")
            else:
                # A server without the variable returns no row.
                cursor.execute("SHOW SESSION VARIABLES LIKE 'wsrep_on'")
                connection.is_node_of_cluster = cursor.fetchone() == ("wsrep_on", "ON")
        connection._read_timeout = self._socket_limit_s(kind)
        connection.rolls_back_later = kind == "load"

    def settings_on_postgresql(self, kind: str) -> dict[str, str]:
        """The settings of a session, by name. Those of the URL come first."""
        limit_ms = str(math.ceil(self._statement_limit_s(kind) * 1000))
        limits = {"statement_timeout": limit_ms, "lock_timeout": limit_ms}
        return {**self._given_settings, **limits, **_POSTGRESQL_SESSION}

    def _prepare_postgresql(self, connection: Any, kind: str) -> None:
        limit_s, connection.answer_limit_s = connection.answer_limit_s, self._connect_limit_s(kind)
        connection.set_for_session(self.settings_on_postgresql(kind))
        connection.answer_limit_s = limit_s
        if kind == "load":
            connection.read_only = True
            connection.rolls_back_later = True
