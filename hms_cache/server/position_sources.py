"""Where the event loop gets the position from: inline, by bare packets, or through a thread."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable

from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.position_wire import PositionConnection

_log = logging.getLogger(__name__)

Answered = Callable[[int | None], None]

ANSWER_TIMEOUT_S = 5.0
"""A position check that takes longer lets its requests take the ordinary way, where the database's time-outs rule."""

GATHER_S = 80e-6
"""How long a question to a database server is worth holding back: about as long as its answer takes."""

RECONNECT_INTERVAL_S = 1.0
"""Between attempts to open a connection for packets: meanwhile the thread answers, slower."""


class InlineSource:
    """Reads on the loop itself: for SQLite, whose reads wait for nobody and take a few microseconds."""

    gather_s = 0.0

    def __init__(self, read_position: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        self._read_position = read_position
        self._loop = loop

    def ask(self, answered: Answered) -> None:
        """At the end of this turn of the loop, so that all requests of the turn share the read."""
        self._loop.call_soon(self._read, answered)

    def _read(self, answered: Answered) -> None:
        try:
            position: int | None = self._read_position()
        except Exception as error:
            _log.warning("the position check failed: %s", error)
            position = None
        answered(position)

    def close(self) -> None:
        """Holds nothing."""


class ThreadSource:
    """Reads on a thread of its own: for databases without a shorter way."""

    gather_s = GATHER_S

    def __init__(self, read_position: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        self._read_position = read_position
        self._loop = loop
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
                position: int | None = self._read_position()
            except Exception as error:
                _log.warning("the position check failed: %s", error)
                position = None
            try:
                self._loop.call_soon_threadsafe(answered, position)
            except RuntimeError:  # the loop is closed: the server stops
                return


class PacketSource:
    """Bare packets on the loop; while its connection is down, questions go through a thread, which opens a new one."""

    gather_s = GATHER_S

    def __init__(
        self,
        connect: Callable[[], PositionConnection | None],
        read_position: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connect = connect
        self._loop = loop
        self._connection: PositionConnection | None = None
        self._answered: Answered | None = None
        self._asked_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._offered: PositionConnection | None = None
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
                    self._timer = self._loop.call_later(ANSWER_TIMEOUT_S, self._look)
                return
        self._fallback.ask(answered)

    def close(self) -> None:
        self._drop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fallback.close()

    def _read_and_connect(self) -> int:
        """On the fallback's thread: answers this question, and opens a connection for the next ones."""
        position = self._read_position()
        if self._connection is None and self._offered is None and time.monotonic() >= self._next_connect_s:
            self._next_connect_s = time.monotonic() + RECONNECT_INTERVAL_S
            self._offered = self._connect()
        return position

    def _take_offered(self) -> PositionConnection | None:
        connection, self._offered = self._offered, None
        if connection is not None:
            self._connection = connection
            self._loop.add_reader(connection.fileno(), self._readable)
        return connection

    def _readable(self) -> None:
        assert self._connection is not None
        try:
            position = self._connection.receive()
        except DatabaseUnavailable as error:
            self._lose(error)
            return
        if position is not None:
            self._finish(position)

    def _look(self) -> None:
        """Whether the question that is open now is overdue. One timer at a time, not one for each question."""
        self._timer = None
        if self._answered is None:
            return
        rest_s = self._asked_s + ANSWER_TIMEOUT_S - self._loop.time()
        if rest_s > 0:
            self._timer = self._loop.call_later(rest_s, self._look)
        else:
            self._lose(DatabaseUnavailable(f"no answer to the position check within {ANSWER_TIMEOUT_S:g} s"))

    def _lose(self, error: Exception) -> None:
        _log.warning("%s", error)
        self._drop()
        self._finish(None)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._loop.remove_reader(connection.fileno())
            connection.close()

    def _finish(self, position: int | None) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(position)
