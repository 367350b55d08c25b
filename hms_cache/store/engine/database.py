"""The metastore database: three engines, one for each kind of access, and their limits.

================  ===========================  ===============================================================
engine            isolation                    for
================  ===========================  ===============================================================
*check*           AUTOCOMMIT                   position checks and polling: each statement sees the latest commit
*write*           READ COMMITTED               every change; ``BEGIN IMMEDIATE`` on SQLite, one writer at a time
*load*            REPEATABLE READ, read-only   reads of several statements that must show one moment
================  ===========================  ===============================================================

A load's snapshot is that of its first statement on all three databases.

``pool_size`` limits write and load connections together. A thread waits at most ``pool_timeout_s`` for one, and must
not ask for a second one: calls that all wait for their second connection would deadlock. Threads of transactions and
locks have reserved connections (`reserved_connections`), so that they do not wait for reads, loads and file operations.
The check engine has a few connections of its own; a thread that holds one waits for nothing else.

SQLite runs in WAL mode with ``synchronous=FULL``: with NORMAL, a power failure may undo an acknowledged commit (P10).
Foreign keys are enforced.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from hms_cache.call_context import call_context
from hms_cache.clock import Clock, SystemClock
from hms_cache.computing import scheduler
from hms_cache.config.database_url import sqlalchemy_url
from hms_cache.config.sections import DatabaseSettings
from hms_cache.errors import ConfigurationError
from hms_cache.metrics import TallyFamily
from hms_cache.metrics.registry import DatabaseMetrics
from hms_cache.notifications.event_log import History, LogHead
from hms_cache.store.engine.active_node import ActiveNode
from hms_cache.store.engine.connection_pool import RenewablePool
from hms_cache.store.engine.dialects import DialectName, dialect_name, translate_error
from hms_cache.store.engine.drivers.sessions import Sessions
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.events import CommitListener, WriteGuard
from hms_cache.store.engine.features import SchemaFeatures, read_features
from hms_cache.store.engine.log_sessions import HistoryText, file_identity, kept_history, last_event_id, read_head
from hms_cache.store.engine.sequences import IdBlocks
from hms_cache.store.engine.statement_cache import StatementCache
from hms_cache.store.engine.thread_connections import ThreadConnections, make_final

#: Key in a pooled connection's info: the `Database` that it belongs to.
_OWNER = "hms_cache.database"

_TRANSACTION_CONTROL = frozenset({"BEGIN", "BEGIN IMMEDIATE"})

#: Used instead of longer times: a day, longer than any statement or client lives. Drivers take no infinity, and some
#: databases no more than weeks.
_LONGEST_S = 86400.0
_TIMES = (
    "pool_timeout_s",
    "connect_timeout_s",
    "check_connect_timeout_s",
    "check_timeout_s",
    "statement_timeout_s",
)


class Database:
    """One metastore database. Thread-safe. Opens connections when they are first needed, and keeps them until
    :meth:`close`.

    :param url: SQLAlchemy's form or JDBC's; the driver is chosen here (PyMySQL, psycopg, sqlite3).
    :param settings: limits of the connections; its `url` is ignored. The defaults if None.
    :param reserved_connections: those in addition to `pool_size`, for threads that called `use_reserved_connections`.
    :raises ConfigurationError: the URL is invalid, or names an in-memory database.
    """

    def __init__(
        self,
        url: str,
        settings: DatabaseSettings | None = None,
        *,
        reserved_connections: int = 8,
        metrics: DatabaseMetrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        settings = settings or DatabaseSettings()
        self.settings = settings.model_copy(update={name: min(getattr(settings, name), _LONGEST_S) for name in _TIMES})
        self.clock: Clock = clock or SystemClock()
        try:
            self.url = make_url(sqlalchemy_url(url))
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        self.dialect: DialectName = dialect_name(self.url.get_backend_name())
        self._sessions = Sessions(self.url, self.dialect, self.settings)
        self.url = self._sessions.url
        if self.is_sqlite and self.url.database in (None, "", ":memory:"):
            raise ConfigurationError("an embedded database needs a file: sqlite:///file.db")
        self.statements: TallyFamily = metrics.statements if metrics else TallyFamily("hms_cache_statements_total", "")
        self.retries: TallyFamily = metrics.retries if metrics else TallyFamily("hms_cache_retries_total", "")
        self.refused_filters: TallyFamily = (
            metrics.refused_filters if metrics else TallyFamily("hms_cache_refused_filters_total", "")
        )
        self.id_blocks: IdBlocks | None = None if self.dialect == "sqlite" else IdBlocks(self)
        self.commit_listeners: list[CommitListener] = []
        """Called after every commit of `run_write` on this database. To be set before the first write."""

        self.write_guard: WriteGuard | None = None
        """Must agree before a write that logs events commits; None: no check. To be set before the first write."""

        self.active_node = ActiveNode()
        self.generation = 0
        """Incremented by :meth:`renew`: connections that others have opened at a lower value have to be opened
        again."""

        self.renewal_listeners: list[Callable[[], None]] = []
        """Called after every :meth:`renew`, by its thread."""

        self.keeps_connections = True
        """Whether connections are reused. False while the server is not a primary: a connection that stays open would
        continue to show a demoted server after its address has moved to the new primary."""

        self.history_text = HistoryText(self.dialect)
        self._file: History | None = None
        """The embedded database's file as last seen."""

        self._features: SchemaFeatures | None = None
        self._in_use = threading.BoundedSemaphore(self.settings.pool_size)
        self._reserved = threading.BoundedSemaphore(reserved_connections)
        self.thread_connections = ThreadConnections()
        """Connections in transactions, by the threads that hold them."""
        self._write_turn = threading.BoundedSemaphore(1)
        self._holding = threading.local()
        places = self.settings.pool_size + reserved_connections
        self.check_engine: Engine = self._engine("check", self.settings.check_pool_size)
        self.load_engine: Engine = self._engine("load", places)
        # SQLite has one writer at a time: threads queue for its connection instead of polling the lock of the file.
        self.write_engine: Engine = self._engine("write", 1 if self.is_sqlite else places)
        if metrics is not None:
            metrics.connections_in_use.set_function(self.connections_in_use)

    def keep_as_found(self) -> None:
        """For commands that only inspect: an embedded database's file is neither created nor switched to another
        journal mode."""
        self._sessions.keep_file_as_found()

    @property
    def missing_file(self) -> str | None:
        """The path of an embedded database that does not exist yet; None for any other database."""
        file = self.url.database or ""
        is_path = self.is_sqlite and not file.startswith("file:")
        return file if is_path and not os.path.exists(file) else None

    @property
    def is_sqlite(self) -> bool:
        """Whether this is an embedded database, which has one writer at a time and no second host."""
        return self.dialect == "sqlite"

    @property
    def engines(self) -> tuple[Engine, Engine, Engine]:
        """The check, load and write engines."""
        return self.check_engine, self.load_engine, self.write_engine

    @property
    def features(self) -> SchemaFeatures:
        """Which parts of the schema exist. Read at the first use and kept; see :meth:`forget_features`.

        The first use must not be while the thread holds a load or write connection.
        """
        features = self._features
        if features is None:
            features = self.read_features()
        return features

    def features_with(self, connection: Connection) -> SchemaFeatures:
        """Like :attr:`features`, for a thread that holds a connection: the first use reads them with it."""
        features = self._features
        if features is None:
            features = self._features = read_features(connection)
        return features

    def read_features(self) -> SchemaFeatures:
        """Reads the features again and keeps them."""
        with self.loading() as connection:
            features = self._features = read_features(connection)
        return features

    def forget_features(self) -> None:
        """Makes the next use read the features again, after the schema was created or upgraded."""
        self._features = None

    def connections_in_use(self) -> int:
        """Number of connections taken from the three pools."""
        return sum(_checked_out(engine) for engine in self.engines)

    def renew(self) -> None:
        """Drops all connections and unused ids, since a new connection may lead to another server."""
        self.generation += 1
        self.history_text.forget()
        self.active_node.forget()
        if self.id_blocks is not None:
            self.id_blocks.forget()
        self.close()
        for listener in self.renewal_listeners:
            listener()

    def file_history(self) -> History:
        """The history of the embedded database. It changes when its file is replaced."""
        identity = file_identity(self.url.database or "")
        known = self._file
        if known is None or known.server_identity != identity:
            self._file = History(identity)
            if known is not None:
                self.renew()  # open connections still read the previous file
            return self._file
        return known

    def close(self) -> None:
        """Closes idle connections now, others when they are returned. The database can be used again."""
        for engine in self.engines:
            engine.dispose()

    @contextmanager
    def checking(self) -> Iterator[Connection]:
        """A connection on which every statement sees the latest commit.

        :raises DatabaseUnavailable: no connection came free in time, or the database does not answer.
        """
        with self._connection(self.check_engine) as connection:
            yield connection

    @contextmanager
    def loading(self) -> Iterator[Connection]:
        """A read-only transaction that shows one snapshot; rolled back at the end. `run_read` also retries.

        :raises DatabaseUnavailable: no connection came free in time, or the database does not answer.
        :raises RuntimeError: this thread already holds a load or write connection.
        """
        shared: Connection | None = getattr(self._holding, "snapshot", None)
        if shared is not None:
            yield shared
            return
        with self._slot(self._places()), self._connection(self.load_engine) as connection:
            yield connection

    def use_reserved_connections(self) -> None:
        """Makes this thread take its connections from `reserved_connections`."""
        self._holding.reserved = True

    def _places(self) -> threading.BoundedSemaphore:
        return self._reserved if getattr(self._holding, "reserved", False) else self._in_use

    @property
    def in_snapshot(self) -> bool:
        """Whether this thread is inside :meth:`snapshot`."""
        return getattr(self._holding, "snapshot", None) is not None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A load transaction that all further `loading` of this thread joins until it ends.

        For a cache, which reads several objects and the event position in one snapshot.

        :raises DatabaseUnavailable: no connection came free in time, or the database does not answer.
        :raises RuntimeError: this thread already holds a load or write connection.
        """
        with self._slot(self._places()), self._connection(self.load_engine) as connection:
            self._holding.snapshot = connection
            try:
                yield connection
            finally:
                self._holding.snapshot = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction. The caller commits it, otherwise it is rolled back. Stores use `run_write`.

        :raises DatabaseUnavailable: no connection came free in time, or the database does not answer.
        :raises RuntimeError: this thread already holds a load or write connection.
        """
        # Writers of an embedded database queue for their one connection, and must not take the readers' places
        # meanwhile.
        places = self._write_turn if self.is_sqlite else self._places()
        with self._slot(places), self._connection(self.write_engine) as connection:
            yield connection

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        try:
            connection = engine.connect()
        except PoolTimeout as error:
            raise self._no_connection() from error
        with connection:
            # A position check is shared with other calls and never interrupted: it has its own, short limit.
            is_held = engine is not self.check_engine
            if is_held:
                self.thread_connections.record_checkout(connection)
            failure: BaseException | None = None
            try:
                yield connection
            except BaseException as error:
                failure = error
                raise
            finally:
                was_interrupted = is_held and self.thread_connections.record_checkin(connection)
                is_over = (
                    was_interrupted
                    or not self.keeps_connections
                    or (failure is not None and _driver_closed(connection))
                )
                if is_over and not connection.closed:
                    connection.invalidate()
                if was_interrupted:
                    make_final(failure)

    @contextmanager
    def _slot(self, places: threading.BoundedSemaphore) -> Iterator[None]:
        """Takes one of the ``pool_size`` places of write and load connections, or SQLite's single place for a
        writer."""
        if getattr(self._holding, "is_acquired", False):
            raise RuntimeError("this thread holds a database connection already and must not wait for a second one")
        if not places.acquire(blocking=False):
            with scheduler.waiting():
                came_free = places.acquire(timeout=self.settings.pool_timeout_s)
            if not came_free:
                raise self._no_connection()
        self._holding.is_acquired = True
        try:
            yield
        finally:
            self._holding.is_acquired = False
            places.release()

    def _no_connection(self) -> DatabaseUnavailable:
        return DatabaseUnavailable(f"no database connection came free within {self.settings.pool_timeout_s:g} s")

    def _engine(self, kind: str, pool_size: int) -> Engine:
        arguments, isolation = self._sessions.arguments(kind)
        engine = create_engine(
            self.url,
            connect_args=arguments,
            poolclass=RenewablePool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=self.settings.pool_timeout_s,
            pool_recycle=self.settings.recycle_s,
            pool_use_lifo=True,
            # Every user above ends its transaction; a ROLLBACK by the pool would cost one more round trip per call.
            pool_reset_on_return=None,
            skip_autocommit_rollback=kind == "check",
            hide_parameters=not self.settings.log_values,
            execution_options={"compiled_cache": StatementCache()},
            **isolation,
        )
        self._sessions.open_for(engine, kind)
        event.listen(engine, "connect", self._own, insert=True)
        event.listen(engine, "handle_error", translate_error)
        event.listen(engine, "before_cursor_execute", self._count)
        event.listen(engine, "after_cursor_execute", self._count_answer)
        return engine

    def _own(self, _: Any, record: Any) -> None:
        record.info[_OWNER] = self

    def _count(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        self.thread_connections.require_not_interrupted(connection)
        if statement not in _TRANSACTION_CONTROL:
            self.statements.add()
        call_context.statement_sent()

    def _count_answer(self, *_: Any) -> None:
        call_context.statement_answered()


def _driver_closed(connection: Connection) -> bool:
    """Whether the driver has closed the connection: a rollback would fail and hide the original error."""
    if connection.closed or connection.invalidated:
        return False
    of_driver = connection.connection.dbapi_connection
    return bool(getattr(of_driver, "closed", False)) or not getattr(of_driver, "open", True)


def read_log_end(database: Database) -> LogHead:
    """The end of the notification log and its history, read by one statement that sees the latest commit.

    :raises DatabaseUnavailable: the database does not answer.
    """
    if not database.is_sqlite:
        with database.checking() as connection:
            return read_head(connection, database.history_text)
    history = database.file_history()
    with database.checking() as connection:
        return LogHead(last_event_id(connection), history)


def session_of(database: Database, connection: Connection) -> History:
    """The history of this connection's session.

    :raises DatabaseUnavailable: the history was not known yet, and the database does not answer.
    """
    if database.is_sqlite:
        return database.file_history()
    known = kept_history(connection.info)
    return known if known is not None else read_head(connection, database.history_text).history


def session_now(database: Database, connection: Connection) -> History:
    """Like `session_of`, but always read: behind a proxy the connection may lead to another server than before.

    :raises DatabaseUnavailable: the database does not answer.
    """
    return database.file_history() if database.is_sqlite else read_head(connection, database.history_text).history


def features_of(connection: Connection) -> SchemaFeatures:
    """Which parts of the schema exist in the database of this connection."""
    database: Database = connection.info[_OWNER]
    return database.features_with(connection)


def _checked_out(engine: Engine) -> int:
    pool = engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0
