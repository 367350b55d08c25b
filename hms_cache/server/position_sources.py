"""Position checks of the event loop: on the loop itself, by bare packets, or through a thread."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from hms_cache.event_loops import CLIENT_TIME_PARTS, ClientTimer
from hms_cache.limited_log import LimitedLog
from hms_cache.notifications.event_log import History, LogHead
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.position_wire import PositionConnection

_logger = logging.getLogger(__name__)

Answered = Callable[[LogHead | None], None]

GATHER_S = 80e-6
"""How long it is worth delaying a check of a database server: about as long as the check takes."""

RECONNECT_INTERVAL_S = 1.0
"""Between attempts to open a connection for packets. Meanwhile the thread answers, more slowly."""


class InlineSource:
    """Reads on the loop itself: for SQLite, whose reads never wait and take a few microseconds."""

    gather_s = 0.0

    def __init__(
        self,
        read_position: Callable[[], LogHead],
        loop: asyncio.AbstractEventLoop,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """`close`: frees the connection."""
        self._read_position = read_position
        self._loop = loop
        self._close = close
        self._log = LimitedLog(_logger)

    def check(self, answered: Answered) -> None:
        """Reads at the end of this turn of the loop, so that all requests of the turn share the read."""
        self._loop.call_soon(self._read, answered)

    def _read(self, answered: Answered) -> None:
        try:
            head: LogHead | None = self._read_position()
        except Exception as error:
            self._log.warning("the position check failed: %s", error)
            head = None
        answered(head)

    def close(self) -> None:
        """Sends no more checks."""
        self._close()


class ThreadSource:
    """Reads on a thread of its own: for databases without a faster way."""

    gather_s = GATHER_S

    def __init__(self, read_position: Callable[[], LogHead], loop: asyncio.AbstractEventLoop) -> None:
        self._read_position = read_position
        self._loop = loop
        self._log = LimitedLog(_logger)
        self._checks: queue.SimpleQueue[Answered | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hms-position", daemon=True)
        self._thread.start()

    def check(self, answered: Answered) -> None:
        self._checks.put(answered)

    def close(self) -> None:
        self._checks.put(None)

    def _run(self) -> None:
        while (answered := self._checks.get()) is not None:
            try:
                head: LogHead | None = self._read_position()
            except Exception as error:
                self._log.warning("the position check failed: %s", error)
                head = None
            try:
                self._loop.call_soon_threadsafe(answered, head)
            except RuntimeError:  # the loop is closed: the server stops
                return


class PacketSource:
    """Bare packets on the loop. While its connection is down, checks go through a thread, which opens a new one."""

    gather_s = GATHER_S

    def __init__(
        self,
        connect: Callable[[], PositionConnection | None],
        read_position: Callable[[], LogHead],
        loop: asyncio.AbstractEventLoop,
        *,
        answer_timeout_s: float = 5.0,
        recycle_s: float = 1800.0,
    ) -> None:
        """`connect` opens a connection whose history is proven. If a check takes longer than `answer_timeout_s`, its
        requests take the ordinary path. A connection older than `recycle_s` is replaced."""
        self._connect = connect
        self._loop = loop
        self._answer_timeout_s = answer_timeout_s
        self._recycle_s = recycle_s
        self._log = LimitedLog(_logger)
        self._history: History | None = None
        self._recycling: asyncio.TimerHandle | None = None
        self._is_old = False
        self._connection: PositionConnection | None = None
        self._answered: Answered | None = None
        self._sent_s = 0.0
        self._timer: ClientTimer | None = None
        self._timed_from_s = 0.0
        """When the check was sent for which the timer was started."""
        self._offered: tuple[PositionConnection, int] | None = None
        """A new connection, and how often connections had been renewed before it was opened."""
        self._renewals = 0
        self._next_connect_s = 0.0
        self._read_position = read_position
        self._fallback = ThreadSource(self._read_and_connect, loop)

    def check(self, answered: Answered) -> None:
        connection = self._connection or self._use_offered()
        if connection is not None:
            try:
                connection.send_query()
            except DatabaseUnavailable as error:
                self._lose(error)
            else:
                self._answered = answered
                self._sent_s = self._loop.time()
                if self._timer is None:
                    self._time(self._answer_timeout_s)
                return
        self._fallback.check(answered)

    def close(self) -> None:
        self._drop()
        offered, self._offered = self._offered, None
        if offered is not None:
            offered[0].close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fallback.close()

    def renew(self) -> None:
        """Replaces the connection for the next checks: all that are open, or being opened, may lead to another server.
        From any thread."""
        self._renewals += 1
        with suppress(RuntimeError):  # the loop is closed: the server stops
            self._loop.call_soon_threadsafe(self._retire, self._connection)

    def _retire(self, connection: PositionConnection | None) -> None:
        """On the loop. A check that is under way is answered first."""
        if connection is None or connection is not self._connection:
            return
        if self._answered is None:
            self._drop()
        else:
            self._is_old = True

    def _read_and_connect(self) -> LogHead:
        """On the fallback's thread: answers this check, and opens a connection for the next ones."""
        head = self._read_position()
        if self._connection is None and self._offered is None and time.monotonic() >= self._next_connect_s:
            self._next_connect_s = time.monotonic() + RECONNECT_INTERVAL_S
            renewals = self._renewals
            connection = self._connect()
            self._offered = None if connection is None else (connection, renewals)
        return head

    def _use_offered(self) -> PositionConnection | None:
        offered, self._offered = self._offered, None
        if offered is None:
            return None
        connection, renewals = offered
        if renewals != self._renewals:
            connection.close()
            return None
        self._connection, self._history, self._is_old = connection, connection.history, False
        self._recycling = self._loop.call_later(self._recycle_s, self._retire, connection)
        self._loop.add_reader(connection.fileno(), self._readable)
        return connection

    def _readable(self) -> None:
        assert self._connection is not None
        try:
            head = self._connection.receive()
        except DatabaseUnavailable as error:
            self._lose(error)
            return
        if head is None:
            return
        if head[1] is not self._history:
            self._lose(DatabaseUnavailable("the connection of the position check leads to another server"))
            return
        if self._is_old:
            self._drop()
        self._finish(head)

    def _time(self, time_s: float) -> None:
        self._timed_from_s = self._sent_s
        self._timer = ClientTimer(self._loop, time_s, self._check_overdue)

    def _check_overdue(self) -> None:
        """Whether the current check is overdue. There is one timer, not one for each check."""
        self._timer = None
        if self._answered is None:
            return
        if self._sent_s > self._timed_from_s:
            # The loop may have stood still for a part of this time: see `ClientTimer`.
            rest_s = self._sent_s + self._answer_timeout_s - self._loop.time()
            self._time(max(rest_s, self._answer_timeout_s / CLIENT_TIME_PARTS))
        else:
            self._lose(DatabaseUnavailable(f"no answer to the position check within {self._answer_timeout_s:g} s"))

    def _lose(self, error: Exception) -> None:
        self._log.warning("%s", error)
        self._drop()
        self._finish(None)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._loop.remove_reader(connection.fileno())
            connection.close()
        if self._recycling is not None:
            self._recycling.cancel()
            self._recycling = None

    def _finish(self, head: LogHead | None) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(head)
