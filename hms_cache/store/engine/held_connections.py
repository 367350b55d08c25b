"""Which thread holds which connection, so that a call that was given up stops waiting for the database."""

from __future__ import annotations

import threading
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection

from hms_cache.store.engine.drivers.driver_sockets import interrupt
from hms_cache.store.engine.errors import DatabaseUnavailable

_STUCK_PAUSE_S = 0.02
"""Between looks whether a thread has given its connection back."""


class HeldConnections:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, list[tuple[Connection, Any]]] = {}
        """Connections, ours and the driver's, that each thread holds, by its identifier. `_lock` guards all three."""
        self._cut: set[Connection] = set()
        self._given_up: set[int] = set()
        """Identifiers of the threads whose call was given up and has not ended."""

    def note_taken(self, connection: Connection) -> None:
        """By this thread. Raises DatabaseUnavailable: its call was given up."""
        of_driver = connection.connection.dbapi_connection
        thread = threading.get_ident()
        with self._lock:
            if thread in self._given_up:
                raise _given_up()
            self._by_thread.setdefault(thread, []).append((connection, of_driver))

    def note_given_back(self, connection: Connection) -> bool:
        """Whether it was cut off meanwhile, and must not be used again."""
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
        """Closes the socket of the connection that a thread holds, or interrupts SQLite's statement: what waits for the
        database there fails. False: it holds none. From any thread; does not wait.

        What fails there is then the end of it, and is not run again: the connection was not lost, nobody waits for the
        answer any more, and a write was said to have been given up. For the same reason the thread gets no other
        connection before `call_ended`, whatever it waits for now.
        """
        with self._lock:
            self._given_up.add(thread)
            held = self._by_thread.get(thread, ())
            for connection, of_driver in held:
                self._cut.add(connection)
                interrupt(of_driver)
            return bool(held)

    def cut_off_stuck(self, patience_s: float) -> None:
        """As `cut_off`, of each thread that holds after so long what it holds now: for a server that stops. Waits for
        as long, unless none does."""
        held = self._now()
        end_s = monotonic() + patience_s
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
        """The call for which a thread was cut off is over; the thread may use the database again."""
        with self._lock:
            self._given_up.discard(thread)

    def require_not_cut_off(self, connection: Connection) -> None:
        """For the last moment before a COMMIT. SQLite has no socket to be closed: between two statements nothing else
        stops it.

        :raises DatabaseUnavailable: `cut_off` was called for the thread that holds the connection.
        """
        if connection in self._cut:
            raise _given_up()


def _given_up() -> DatabaseUnavailable:
    return DatabaseUnavailable("the call was given up")


def end_for_good(failure: BaseException | None) -> None:
    """What failed on a connection that was cut off becomes an error that is no reason for another attempt."""
    if isinstance(failure, DatabaseUnavailable):
        failure.connection_lost = False  # goes on as it is: the outcome of a COMMIT stays unknown
    elif isinstance(failure, Exception):
        raise DatabaseUnavailable(f"the call was given up: {failure}") from failure
