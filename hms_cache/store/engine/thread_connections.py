"""Tracks which thread holds which connection, so that a call that is given up stops waiting for the database."""

from __future__ import annotations

import threading
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection

from hms_cache.store.engine.drivers.driver_sockets import interrupt
from hms_cache.store.engine.errors import DatabaseUnavailable

_STUCK_PAUSE_S = 0.02
"""Pause between checks whether a thread has returned its connection."""


class ThreadConnections:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, list[tuple[Connection, Any]]] = {}
        """Connections (SQLAlchemy's and the driver's) that each thread holds, by thread identifier. `_lock` guards all
        three."""
        self._interrupted: set[Connection] = set()
        self._given_up: set[int] = set()
        """Identifiers of threads whose call was given up and has not ended."""

    def record_checkout(self, connection: Connection) -> None:
        """Called by the thread that takes a connection. Raises DatabaseUnavailable if its call was given up."""
        of_driver = connection.connection.dbapi_connection
        thread = threading.get_ident()
        with self._lock:
            if thread in self._given_up:
                raise _given_up()
            self._by_thread.setdefault(thread, []).append((connection, of_driver))

    def record_checkin(self, connection: Connection) -> bool:
        """Returns whether the connection was interrupted meanwhile, and must not be reused."""
        thread = threading.get_ident()
        with self._lock:
            in_use = self._by_thread[thread]
            in_use[:] = [one for one in in_use if one[0] is not connection]
            if not in_use:
                del self._by_thread[thread]
            was_interrupted = connection in self._interrupted
            self._interrupted.discard(connection)
            return was_interrupted

    def interrupt(self, thread: int) -> bool:
        """Closes the socket of the connection that a thread holds, or interrupts SQLite's statement, so that the thread
        stops waiting for the database. Returns False if it holds none. Can be called from any thread; does not wait.

        The failure in that thread is final and not retried: the connection was not lost, the client no longer waits,
        and a write has been reported as given up. For the same reason the thread gets no other connection before
        `call_ended`.
        """
        with self._lock:
            self._given_up.add(thread)
            in_use = self._by_thread.get(thread, ())
            for connection, of_driver in in_use:
                self._interrupted.add(connection)
                interrupt(of_driver)
            return bool(in_use)

    def interrupt_stuck(self, max_wait_s: float) -> None:
        """`interrupt` for each thread that still holds, after `max_wait_s`, a connection that it holds now: for a
        server that stops. Waits that long, unless all are returned earlier."""
        in_use = self._now()
        end_s = monotonic() + max_wait_s
        while in_use and monotonic() < end_s:
            sleep(_STUCK_PAUSE_S)
            now = self._now()
            in_use = {
                thread: stuck
                for thread, before in in_use.items()
                if (stuck := [one for one in before if any(one is other for other in now.get(thread, ()))])
            }
        for thread in in_use:
            self.interrupt(thread)

    def _now(self) -> dict[int, list[Connection]]:
        with self._lock:
            return {thread: [one for one, _ in connections] for thread, connections in self._by_thread.items()}

    def call_ended(self, thread: int) -> None:
        """The call for which the thread was interrupted has ended; the thread may use the database again."""
        with self._lock:
            self._given_up.discard(thread)

    def require_not_interrupted(self, connection: Connection) -> None:
        """Last check before a COMMIT. SQLite has no socket to close, so nothing else stops a call between two
        statements.

        :raises DatabaseUnavailable: `interrupt` was called for the thread that holds the connection.
        """
        if connection in self._interrupted:
            raise _given_up()


def _given_up() -> DatabaseUnavailable:
    return DatabaseUnavailable("the call was given up")


def make_final(failure: BaseException | None) -> None:
    """Makes an error on a connection that was interrupted final, so that it is not retried."""
    if isinstance(failure, DatabaseUnavailable):
        failure.connection_lost = False  # keeps its class: the outcome of a COMMIT stays unknown
    elif isinstance(failure, Exception):
        raise DatabaseUnavailable(f"the call was given up: {failure}") from failure
