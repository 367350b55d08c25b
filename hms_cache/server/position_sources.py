"""Where the event loop gets the position from: inline, by bare packets, or through a thread."""

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
"""How long a question to a database server is worth holding back: about as long as its answer takes."""

RECONNECT_INTERVAL_S = 1.0
"""Between attempts to open a connection for packets: meanwhile the thread answers, slower."""


class InlineSource:
    """Reads on the loop itself: for SQLite, whose reads wait for nobody and take a few microseconds."""

    gather_s = 0.0

    def __init__(
        self,
        read_position: Callable[[], LogHead],
        loop: asyncio.AbstractEventLoop,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """`close`: lets go of what is read with."""
        self._read_position = read_position
        self._loop = loop
        self._close = close
        self._log = LimitedLog(_logger)

    def ask(self, answered: Answered) -> None:
        """At the end of this turn of the loop, so that all requests of the turn share the read."""
        self._loop.call_soon(self._read, answered)

    def _read(self, answered: Answered) -> None:
        try:
            head: LogHead | None = self._read_position()
        except Exception as error:
            self._log.warning("the position check failed: %s", error)
            head = None
        answered(head)

    def close(self) -> None:
        """No more questions."""
        self._close()


class ThreadSource:
    """Reads on a thread of its own: for databases without a shorter way."""

    gather_s = GATHER_S

    def __init__(self, read_position: Callable[[], LogHead], loop: asyncio.AbstractEventLoop) -> None:
        self._read_position = read_position
        self._loop = loop
        self._log = LimitedLog(_logger)
        self._questions: queue.SimpleQueue[Answered | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hms-position", daemon=True)
        self._thread.start()

    def ask(self, answered: Answered) -> None:
        self._questions.put(answered)

    def close(self) -> None:
        self._questions.put(None)

    def _run(self) -> None:
        while (answered := self._questions.get()) is not None:
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
    """Bare packets on the loop; while its connection is down, questions go through a thread, which opens a new one."""

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
        """`connect` opens a connection whose history is proven. A check that takes longer than `answer_timeout_s` lets
        its requests take the ordinary way; a connection older than `recycle_s` is replaced."""
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
        self._asked_s = 0.0
        self._timer: ClientTimer | None = None
        self._timed_from_s = 0.0
        """When the question was asked that the timer was started for."""
        self._offered: tuple[PositionConnection, int] | None = None
        """A new connection, and how often connections had been renewed before it was opened."""
        self._renewals = 0
        self._next_connect_s = 0.0
        self._read_position = read_position
        self._fallback = ThreadSource(self._read_and_connect, loop)

    def ask(self, answered: Answered) -> None:
        connection = self._connection or self._take_offered()
        if connection is not None:
            try:
                connection.ask()
            except DatabaseUnavailable as error:
                self._lose(error)
            else:
                self._answered = answered
                self._asked_s = self._loop.time()
                if self._timer is None:
                    self._time(self._answer_timeout_s)
                return
        self._fallback.ask(answered)

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
        """Another connection for the next questions: all that are open, or being opened, may lead to another server.
        On any thread."""
        self._renewals += 1
        with suppress(RuntimeError):  # the loop is closed: the server stops
            self._loop.call_soon_threadsafe(self._retire, self._connection)

    def _retire(self, connection: PositionConnection | None) -> None:
        """On the loop. A question that is on its way is answered first."""
        if connection is None or connection is not self._connection:
            return
        if self._answered is None:
            self._drop()
        else:
            self._is_old = True

    def _read_and_connect(self) -> LogHead:
        """On the fallback's thread: answers this question, and opens a connection for the next ones."""
        head = self._read_position()
        if self._connection is None and self._offered is None and time.monotonic() >= self._next_connect_s:
            self._next_connect_s = time.monotonic() + RECONNECT_INTERVAL_S
            renewals = self._renewals
            connection = self._connect()
            self._offered = None if connection is None else (connection, renewals)
        return head

    def _take_offered(self) -> PositionConnection | None:
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
        self._timed_from_s = self._asked_s
        self._timer = ClientTimer(self._loop, time_s, self._look)

    def _look(self) -> None:
        """Whether the question that is open now is overdue. One timer at a time, not one for each question."""
        self._timer = None
        if self._answered is None:
            return
        if self._asked_s > self._timed_from_s:
            # Of this question's time a part may have gone by while the loop stood still: see `ClientTimer`.
            rest_s = self._asked_s + self._answer_timeout_s - self._loop.time()
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
