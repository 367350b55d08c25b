"""How the event loop reads the position on each kind of database."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hms_cache.cache.freshness import Freshness
from hms_cache.cache.position_check import PositionCheck
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.notifications.event_log import History, LogHead
from hms_cache.server.hot_path import PositionSource
from hms_cache.server.position_sources import InlineSource, PacketSource, ThreadSource
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.drivers.sqlite_files import existing_file
from hms_cache.store.engine.position_wire import PositionConnection

_log = logging.getLogger(__name__)


def position_source(
    database: Database, check: PositionCheck, freshness: Freshness
) -> Callable[[asyncio.AbstractEventLoop], PositionSource]:
    """A function that creates the source on the server's loop.

    Reads inline on SQLite, with bare packets on MariaDB and MySQL, otherwise through a thread.
    """

    def read_on_thread() -> LogHead:
        result = check.check()
        freshness.prove(result.history)
        return LogHead(result.position, result.history)

    def connect() -> PositionConnection | None:
        """Connects and proves the history of the connection, which a thread can wait for but the loop cannot."""
        connection = _packet_connection(database)
        if connection is not None and not freshness.prove(connection.history):
            connection.close()
            return None
        return connection

    def make(loop: asyncio.AbstractEventLoop) -> PositionSource:
        if database.is_sqlite:
            reader = _SqliteReader(database)
            return InlineSource(reader.read, loop, reader.close)
        if database.dialect == "mysql":
            limits = database.settings
            source = PacketSource(
                connect, read_on_thread, loop, answer_timeout_s=limits.check_timeout_s, recycle_s=limits.recycle_s
            )
            database.renewal_listeners.append(source.renew)
            return source
        return ThreadSource(read_on_thread, loop)

    return make


class _SqliteReader:
    """Reads on a connection that belongs to the loop; a statement in autocommit mode sees the latest commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = database.url.database or ""
        self._opened: tuple[sqlite3.Connection, History] | None = None

    def read(self) -> LogHead:
        """The current end of the log."""
        history = self._database.file_history()
        if self._opened is None or self._opened[1] is not history:
            self.close()
            path = existing_file(self._path)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0, uri=True)
            self._opened = connection, history
        found = self._opened[0].execute("SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE").fetchone()
        return LogHead((found[0] or 1) - 1, history)

    def close(self) -> None:
        """Closes the connection. When the last one is closed, SQLite writes committed data into the file and removes
        the journal."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].close()


def _packet_connection(database: Database) -> PositionConnection | None:
    """A separate connection for bare packets; None if the driver's connection does not support them."""
    driver: Any = None
    try:
        with database.checking() as connection:
            query = str(database.history_text.statement(connection).compile(connection.engine))
        pooled: Any = database.check_engine.raw_connection()
        driver = pooled.driver_connection
        pooled.detach()
        if PositionConnection.supports(driver):
            return PositionConnection(driver, query)
    except DatabaseUnavailableError as error:
        _log.info("no connection for the position check yet: %s", error)
    if driver is not None:
        with suppress(Exception):
            driver.close()
    return None
