"""Writes of one kind that wait at the same moment become one transaction (group commit).

The first request runs at once, alone. Those that come while it runs wait, and the first of them then leads all that
wait: their statements run in one transaction in the order of arrival, their events are written together, and one COMMIT
ends it. Nothing waits for a batch to fill, so a single client pays nothing; the more clients wait, the fewer
statements and round trips there are for each.

Requests stay as independent as they were. If a batch fails in any way but one, it was rolled back, and each of its
requests is run again in a transaction of its own, by the thread that brought it: the error of one is nobody else's. The
exception is a COMMIT whose outcome is unknown: that is what each is told.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown, DatabaseUnavailable
from hms_cache.store.engine.work_units import WriteTransaction, run_write

R = TypeVar("R")
T = TypeVar("T")

_WAIT_MARGIN_S = 30.0
"""Beyond the time in which the database gives up on a transaction: for a leader that the machine does not let run."""


class _Waiting(Generic[R, T]):
    """A request that waits for a leader. Written by the leader before `woken` is set, read by its thread after."""

    __slots__ = ("batch", "error", "request", "result", "runs_alone", "woken")

    def __init__(self, request: R) -> None:
        self.request = request
        self.woken = threading.Event()
        self.batch: list[_Waiting[R, T]] | None = None
        """Itself first: this thread leads these."""
        self.runs_alone = False
        self.error: CommitOutcomeUnknown | None = None
        self.result: list[T] = []


class CombinedWrites(Generic[R, T]):
    """The queue of one kind of write. Thread-safe; `_lock` guards `_queue` and `_is_led` and is held across no I/O."""

    def __init__(
        self, database: Database, work: Callable[[WriteTransaction, Sequence[R]], list[T]], max_requests: int
    ) -> None:
        """`work` carries requests out, in order, and answers a result for each; it is all or nothing.

        `max_requests`: as many make one transaction at most; 1: each has its own, always.
        """
        self._database = database
        self._work = work
        self._max_requests = max_requests
        self._lock = threading.Lock()
        self._queue: deque[_Waiting[R, T]] = deque()
        self._is_led = False

    @property
    def waiting(self) -> int:
        """Requests that no leader has taken yet."""
        return len(self._queue)

    def run(self, request: R) -> T:
        """Carry the request out, alone or with others; its result, after the commit.

        Raises what `run_write` raises, and DatabaseUnavailable if no leader took the request in time.
        """
        if self._max_requests == 1:
            return self._run_alone(request)
        waiting: _Waiting[R, T] = _Waiting(request)
        with self._lock:
            if self._is_led:
                self._queue.append(waiting)
            else:
                self._is_led = True
                waiting.batch = [waiting]
        if waiting.batch is None:
            self._wait(waiting)
        batch, waiting.batch = waiting.batch, None  # It holds this request: a cycle.
        if batch is not None:
            self._lead(batch)
        if waiting.error is not None:
            raise CommitOutcomeUnknown(str(waiting.error), connection_lost=True) from waiting.error
        if waiting.runs_alone:
            return self._run_alone(request)
        return waiting.result[0]

    def _run_alone(self, request: R) -> T:
        return run_write(self._database, lambda transaction: self._work(transaction, [request]))[0]

    def _wait(self, waiting: _Waiting[R, T]) -> None:
        if waiting.woken.wait(self._database.settings.retry_total_s + _WAIT_MARGIN_S):
            return
        with self._lock:
            if waiting in self._queue:
                self._queue.remove(waiting)
                raise DatabaseUnavailable("the transactions before this one took too long: nothing was written")
        # A leader has it: its statements have limits of their own.
        waiting.woken.wait()

    def _lead(self, batch: list[_Waiting[R, T]]) -> None:
        """Run the batch and hand the queue over. Whatever happens, each of the batch is told, and the queue goes on."""
        results: list[T] | None = None
        unknown: CommitOutcomeUnknown | None = None
        try:
            requests = [one.request for one in batch]
            results = run_write(self._database, lambda transaction: self._work(transaction, requests))
        except CommitOutcomeUnknown as error:
            unknown = error
        except BaseException:
            if len(batch) == 1:
                raise
        finally:
            self._hand_over()
            for number, one in enumerate(batch):
                if results is not None:
                    one.result = [results[number]]
                else:
                    one.error, one.runs_alone = unknown, unknown is None
                one.woken.set()

    def _hand_over(self) -> None:
        """Make the first that waits the leader of all that wait; without any, the next request leads itself."""
        with self._lock:
            count = min(len(self._queue), self._max_requests)
            batch = [self._queue.popleft() for _ in range(count)]
            self._is_led = bool(batch)
        if batch:
            batch[0].batch = batch
            batch[0].woken.set()
