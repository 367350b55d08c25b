"""The shared position check: one read of NEXT_EVENT_ID answers every request that was waiting when it was sent.

This is Raft's ReadIndex. A request that arrives while a check is under way joins the next one: a check that was sent
before the request arrived proves nothing about it. So the list of waiters is swapped before the query is sent, by the
waiting thread that leads. No thread is started for a check, and no lock is held during the query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from hms_cache.clock import Clock
from hms_cache.notifications.event_log import History, LogHead
from hms_cache.store.engine.errors import DatabaseUnavailable


class CheckResult(NamedTuple):
    """The position that the database returned, when the check was sent (monotonic seconds), and in which history."""

    position: int
    sent_s: float
    history: History


class _Waiter:
    __slots__ = ("error", "leads", "result", "woken")

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.result: CheckResult | None = None
        self.error: Exception | None = None
        self.leads = False


_STALE_CONNECTION_S = 1.0
"""How often a check is sent. A connection that had gone stale fails at once. One that is lost later may be lost again:
its readers get the error."""


_SLICES = 30
"""Number of slices that the time limit of a waiter is divided into."""


class PositionCheck:
    """Shares `read_position` between threads. `_lock` guards `_waiters` and `_busy`."""

    def __init__(self, read_position: Callable[[], LogHead], clock: Clock, timeout_s: float = 30.0) -> None:
        self._read_position = read_position
        self._clock = clock
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._waiters: list[_Waiter] = []
        self._busy = False
        self.checks = 0
        """Number of queries sent."""
        self.requests = 0
        """Number of requests that waited for one."""

    def check(self) -> CheckResult:
        """The last committed event id, read by a query that was sent after this call began.

        Raises DatabaseUnavailable if the database does not answer in time.
        """
        me = _Waiter()
        with self._lock:
            self.requests += 1
            self._waiters.append(me)
            if not self._busy:
                self._busy = me.leads = True
        if not me.leads and not self._is_woken(me) and self._end_wait(me):
            raise DatabaseUnavailable(f"the position check did not answer within {self._timeout_s:g} s")
        if me.result is None and me.error is None:
            self._lead()
        if me.error is not None:
            raise DatabaseUnavailable(str(me.error)) from me.error
        assert me.result is not None
        return me.result

    def _is_woken(self, me: _Waiter) -> bool:
        """Waits for the answer, or to become the leader. If the whole process stood still (stopped, or its machine
        suspended), only one slice of that time counts: the answer may have arrived meanwhile, and is about to be
        read."""
        return any(me.woken.wait(self._timeout_s / _SLICES) for _ in range(_SLICES))

    def _end_wait(self, me: _Waiter) -> bool:
        """Ends the wait; False if the answer or the lead arrived at the last moment, which must not be lost."""
        with self._lock:
            if me.woken.is_set():
                return False
            if me in self._waiters:
                self._waiters.remove(me)
            return True

    def _lead(self) -> None:
        """Sends one query for all present waiters, then hands the lead to one that arrived meanwhile."""
        with self._lock:
            served, self._waiters = self._waiters, []
            self.checks += 1
        sent_s = self._clock.monotonic_s()
        result: CheckResult | None = None
        error: Exception | None = None
        try:
            head = self._read()
            result = CheckResult(head.last_event_id, sent_s, head.history)
        except Exception as problem:
            error = problem
        with self._lock:
            for waiter in served:
                waiter.result, waiter.error = result, error
                waiter.woken.set()
            if self._waiters:
                # Its answer has not arrived, so it leads when it wakes.
                self._waiters[0].leads = True
                self._waiters[0].woken.set()
            else:
                self._busy = False

    def _read(self) -> LogHead:
        """Reads the position, and once more if the connection turned out to be stale."""
        began_s = self._clock.monotonic_s()
        try:
            return self._read_position()
        except DatabaseUnavailable as error:
            if not error.connection_lost or self._clock.monotonic_s() - began_s > _STALE_CONNECTION_S:
                raise
            return self._read_position()
