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


class HeldConnections:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, list[tuple[Connection, Any]]] = {}
        """Connections (SQLAlchemy's and the driver's) that each thread holds, by thread identifier. `_lock` guards all
        three."""
        self._cut: set[Connection] = set()
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
        """Returns whether the connection was cut off meanwhile, and must not be reused."""
        thread = threading.get_ident()
        with self._lock:
            held = self._by_thread[thread]
            held[:] = [one for one in held if one[0] is not connection]
            if not held:
                del self._by_thread[thread]
            was_cut = connection in self._cut
            self._cut.discard(connection)
            return was_cut

    def cut_off(self, thread: int) -> bool:
        """Closes the socket of the connection that a thread holds, or interrupts SQLite's statement, so that the thread
        stops waiting for the database. Returns False if it holds none. Can be called from any thread; does not wait.

        The failure in that thread is final and not retried: the connection was not lost, the client no longer waits,
        and a write has been reported as given up. For the same reason the thread gets no other connection before
        `call_ended`.
        """
        with self._lock:
            self._given_up.add(thread)
            held = self._by_thread.get(thread, ())
            for connection, of_driver in held:
                self._cut.add(connection)
                interrupt(of_driver)
            return bool(held)

    def cut_off_stuck(self, max_wait_s: float) -> None:
        """`cut_off` for each thread that still holds, after `max_wait_s`, a connection that it holds now: for a server
        that stops. Waits that long, unless all are returned earlier."""
        held = self._now()
        end_s = monotonic() + max_wait_s
        while held and monotonic() < end_s:
            sleep(_STUCK_PAUSE_S)
            now = self._now()
            held = {
                thread: stuck
                for thread, before in held.items()
                if (stuck := [one for one in before if any(one is other for other in now.get(thread, ()))])
            }
        for thread in held:
            self.cut_off(thread)

    def _now(self) -> dict[int, list[Connection]]:
        with self._lock:
            return {thread: [one for one, _ in connections] for thread, connections in self._by_thread.items()}

    def call_ended(self, thread: int) -> None:
        """The call for which the thread was cut off has ended; the thread may use the database again."""
        with self._lock:
            self._given_up.discard(thread)

    def require_not_cut_off(self, connection: Connection) -> None:
        """Last check before a COMMIT. SQLite has no socket to close, so nothing else stops a call between two
        statements.

        :raises DatabaseUnavailable: `cut_off` was called for the thread that holds the connection.
        """
        if connection in self._cut:
            raise _given_up()


def _given_up() -> DatabaseUnavailable:
    return DatabaseUnavailable("the call was given up")


def make_final(failure: BaseException | None) -> None:
    """Makes an error on a connection that was cut off final, so that it is not retried."""
    if isinstance(failure, DatabaseUnavailable):
        failure.connection_lost = False  # keeps its class: the outcome of a COMMIT stays unknown
    elif isinstance(failure, Exception):
        raise DatabaseUnavailable(f"the call was given up: {failure}") from failure
