"""How the event loop reads the position on each kind of database."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hms_cache.cache.position_check import PositionCheck
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.server.hot_path import PositionSource
from hms_cache.server.position_sources import InlineSource, PacketSource, ThreadSource
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.position_wire import PositionConnection

_log = logging.getLogger(__name__)


def position_source(database: Database, check: PositionCheck) -> Callable[[asyncio.AbstractEventLoop], PositionSource]:
    """What makes the source on the server's loop.

    Inline on SQLite, bare packets on MariaDB and MySQL, elsewhere through a thread.
    """

    def read_on_thread() -> int:
        return check.check().position

    def make(loop: asyncio.AbstractEventLoop) -> PositionSource:
        if database.is_sqlite:
            return InlineSource(_sqlite_reader(database), loop)
        if database.dialect == "mysql":
            return PacketSource(lambda: _packet_connection(database), read_on_thread, loop)
        return ThreadSource(read_on_thread, loop)

    return make


def _sqlite_reader(database: Database) -> Callable[[], int]:
    """Reads on a connection of the loop's own; a statement in autocommit sees the latest commit."""
    path = database.url.database or ""
    opened: list[sqlite3.Connection] = []
    generation = database.generation

    def read() -> int:
        nonlocal generation
        if generation != database.generation:
            generation = database.generation
            while opened:
                opened.pop().close()
        if not opened:
            opened.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0))
        found = opened[0].execute("SELECT MAX(NEXT_EVENT_ID) FROM NOTIFICATION_SEQUENCE").fetchone()
        return (found[0] or 1) - 1

    return read


def _packet_connection(database: Database) -> PositionConnection | None:
    """A connection of its own for bare packets; None where the driver's is none that packets can be sent on."""
    driver: Any = None
    try:
        connection: Any = database.check_engine.raw_connection()
        driver = connection.driver_connection
        connection.detach()
        if PositionConnection.can_take(driver):
            return PositionConnection(driver)
    except DatabaseUnavailableError as error:
        _log.info("no connection for the position check yet: %s", error)
    if driver is not None:
        with suppress(Exception):
            driver.close()
    return None
