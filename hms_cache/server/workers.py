"""Bounded pools of threads for calls that need the database: one for each lane.

Smaller than `concurrent.futures` on purpose: a call costs one queue hop there and one `call_soon_threadsafe` back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from hms_cache.computing import turns
from hms_cache.metrics.lanes import LaneLoad

_log = logging.getLogger(__name__)


CALL_THREADS = "hms-call"
"""How names of their threads begin."""

MOST_REPLACEMENTS = 2
"""Times its threads a pool may start in place of those that stuck calls hold: a bound, since what holds a call for ever
(a file system that does not answer) may hold the next one, too."""


class _Waiting(NamedTuple):
    work: Callable[[], None]
    token: object
    since_s: float


class WorkerPool:
    """`threads` daemon threads that run submitted work in order of arrival; at most `most_waiting` wait for them.

    ``_lock`` guards all state. A call that is given up is cut off from its database connection, which ends most of
    them; another thread takes its place meanwhile, and whichever is one too many at the end stops.
    """

    def __init__(
        self,
        threads: int,
        name: str = "calls",
        *,
        most_waiting: int = 1024,
        on_thread_start: Callable[[], None] | None = None,
        cut_off: Callable[[int], bool] | None = None,
        observe_wait: Callable[[str, float], None] | None = None,
        takes_turns: bool = False,
    ) -> None:
        """`on_thread_start` runs first on each thread. `cut_off` closes the database connection that the thread of this
        identifier holds; `observe_wait` is told the lane and the seconds that a call waited for its thread.
        `takes_turns`: the threads compute by turns (`hms_cache.computing`).
        """
        self.name = name
        self._size = threads
        self._most_waiting = most_waiting
        self._on_thread_start = on_thread_start
        self._cut_off = cut_off
        self._observe_wait = observe_wait
        self._takes_turns = takes_turns
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[_Waiting] = deque()
        self._running: dict[object, int] = {}
        """Token of each call that runs: the identifier of its thread."""
        self._stuck: set[object] = set()
        self._threads: set[threading.Thread] = set()
        self._started = 0
        self._closed = False
        self._refused = 0
        self._begun = 0
        self._waited_s = 0.0

    def start(self) -> None:
        """Starts the threads."""
        with self._lock:
            for _ in range(self._size):
                self._start_one()

    def submit(self, work: Callable[[], None], token: object) -> bool:
        """Queues `work`, which must not raise; it runs on one of the threads. False: too many wait."""
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                self._refused += 1
                return False
            self._waiting.append(_Waiting(work, token, time.monotonic()))
            self._changed.notify()
        return True

    def refusal(self) -> str:
        """What a client is told when `submit` said no."""
        return (
            f"too many calls wait for a thread of the lane {self.name}: {self._most_waiting} "
            "(setting server.max_waiting_per_lane); retry"
        )

    def give_up(self, token: object) -> bool:
        """The call's time is up. True: it had not begun, and never will. Otherwise its thread is freed or replaced."""
        with self._lock:
            for one in self._waiting:
                if one.token is token:
                    self._waiting.remove(one)
                    return True
            thread = self._running.get(token)
            if thread is None:
                return False
            self._stuck.add(token)
            # Under the lock: the thread cannot go on to another call meanwhile, whose connection would be cut.
            cut = self._cut_off is not None and self._cut_off(thread)
            if self._free_threads() < self._size and len(self._threads) < self._size * (1 + MOST_REPLACEMENTS):
                self._start_one()
        _log.warning(
            "a call of the lane %s is stuck; %s", self.name, "its connection is closed" if cut else "it holds none"
        )
        return False

    def load(self) -> LaneLoad:
        """What it does now."""
        with self._lock:
            oldest = time.monotonic() - self._waiting[0].since_s if self._waiting else 0.0
            return LaneLoad(
                self.name,
                self._free_threads(),
                len(self._running) - len(self._stuck),
                len(self._waiting),
                self._most_waiting,
                oldest,
                len(self._stuck),
                self._refused,
                self._begun,
                self._waited_s,
            )

    def close(self) -> None:
        """Takes no more; what is queued still runs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        """Waits for each thread at most `timeout_s`, after `close`."""
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(timeout_s)

    def _free_threads(self) -> int:
        return len(self._threads) - len(self._stuck)

    def _start_one(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{CALL_THREADS}-{self.name}-{self._started}", daemon=True)
        self._started += 1
        self._threads.add(thread)
        thread.start()

    def _next(self, last: list[object]) -> _Waiting | None:
        """The next call for this thread, whose `last` one is taken out; None: it is to end."""
        with self._changed:
            done = last.pop() if last else None
            self._running.pop(done, None)
            if done is not None and done in self._stuck:
                self._stuck.discard(done)
                if self._free_threads() > self._size:
                    self._threads.discard(threading.current_thread())
                    return None  # another has taken its place
            del done  # the request of a call, not to be kept while this waits
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            one = self._waiting.popleft()
            self._running[one.token] = threading.get_ident()
            waited_s = time.monotonic() - one.since_s
            self._begun += 1
            self._waited_s += waited_s
        if self._observe_wait is not None:
            self._observe_wait(self.name, waited_s)
        return one

    def _run(self) -> None:
        if self._on_thread_start is not None:
            self._on_thread_start()
        done: list[object] = []
        while (one := self._next(done)) is not None:
            try:
                with turns.taken() if self._takes_turns else nullcontext():
                    one.work()
            except Exception:
                # Work reports its own failures to its client; anything here is a defect, and must not end the thread.
                _log.exception("a call failed outside its own error handling")
            done.append(one.token)
            del one  # a thread that waits would keep the last request and its connection
