"""Threads of reads take turns at computing, so that a short call does not wait behind all of them.

Python runs one thread at a time. A thread that wants to run waits until each thread before it gives way, which takes
`sys.getswitchinterval` each time. A heartbeat passes through its thread, several times through the database, and back
through the event loop, so it waits some ten times; beside sixteen threads that decode rows, this adds up to a tenth of
a second. Therefore threads that take part compute one at a time: they queue for their turn instead of competing for the
interpreter. Threads that do not take part (transactions, writes, the event loop, the poller) wait behind at most one of
them.

No turn begins while a call with priority (`first`: transactions, locks, writes) is running. Such a call takes about a
millisecond, and would otherwise share the interpreter with one reader after the other. A turn is delayed by at most
`MAX_PRIORITY_S`, counted both from the start of the last such call and from the time at which the turn was due, so that
neither one long call nor many short ones delay readers for long. Waiting threads check this every `SLICE_S`, and so
does each call with priority when it begins. A thread that holds locks of the database (`holding_locks`: the transaction
of a large write) gets its turn before readers, and its turn is not delayed, because others wait for the rows that it
has locked.

A turn ends when the thread waits for the database's answer (`pause` and `resume`, called by the drivers' connections)
or for another thread (`waiting`), and at the end of its call (`end`). A thread that computes for longer than `SLICE_S`,
or waits without calling these methods, loses its turn to the next one, but continues to run: turns are a convention
among the threads, so none of them waits for long.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SLICE_S: Final = 0.01
"""Maximum length of a turn. An ordinary answer of some hundred partitions is assembled within it."""

MAX_PRIORITY_S: Final = 0.003
"""The longest delay of a turn for calls with priority, which take about a millisecond. If such calls follow each other
without a pause, one reader at a time still gets a turn this often."""


class _Part(threading.local):
    """The state of one thread."""

    def __init__(self) -> None:
        self.participates = False
        self.holds_locks = False
        self.signal = threading.Lock()
        """Held, except to signal a waiting thread that its turn has come."""
        self.signal.acquire()


class ThreadScheduler:
    """The turns of a process's threads. `_lock` guards all attributes."""

    def __init__(self, slice_s: float = SLICE_S, max_priority_s: float = MAX_PRIORITY_S) -> None:
        self._lock = threading.Lock()
        self._slice_s = slice_s
        self._max_priority_s = max_priority_s
        self._owner: int | None = None
        """The thread that has the turn."""
        self._since_s = 0.0
        self._queue: deque[tuple[int, threading.Lock]] = deque()
        self._queue_of_holders: deque[tuple[int, threading.Lock]] = deque()
        """Queue of the threads that hold locks of the database."""
        self._first = 0
        """Number of running calls with priority."""
        self._first_since_s = 0.0
        """Start of the last such call."""
        self._free_since_s = 0.0
        """Since when no thread has had the turn although at least one waits for it."""
        self._part = _Part()

    @property
    def is_owner(self) -> bool:
        """Whether this thread has the turn."""
        return self._owner == threading.get_ident()

    @property
    def holds_locks(self) -> bool:
        """Whether this thread is within `holding_locks`."""
        return self._part.holds_locks

    @property
    def waiting_threads(self) -> int:
        """Number of threads that wait for their turn."""
        return len(self._queue) + len(self._queue_of_holders)

    def begin(self) -> None:
        """Lets this thread take part, and waits for its turn."""
        self._part.participates = True
        self.resume()

    def end(self) -> None:
        """Ends this thread's part, and its turn."""
        self._part.participates = False
        self.pause()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Calls `begin` before the block and `end` after it."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def holding_locks(self) -> Iterator[None]:
        """Marks a transaction for which others may wait: inside the block, this thread's turns come before those of
        readers."""
        part = self._part
        held_before, part.holds_locks = part.holds_locks, True
        try:
            yield
        finally:
            part.holds_locks = held_before

    @contextmanager
    def first(self) -> Iterator[None]:
        """Marks a call with priority: no turn begins inside the block, for up to `max_priority_s`."""
        with self._lock:
            self._start_free_slot()
            self._first += 1
            self._first_since_s = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._first -= 1
                self._start_free_slot()

    def _is_delayed(self, now_s: float) -> bool:
        """Whether a free turn must not begin yet. The caller holds the lock."""
        return self._first > 0 and now_s - min(self._first_since_s, self._free_since_s) < self._max_priority_s

    def pause(self) -> bool:
        """Ends the turn before this thread waits. Returns whether the thread takes part, and must call `resume`
        afterwards."""
        if self.is_owner:
            with self._lock:
                if self.is_owner:  # else another thread has just taken it
                    self._pass_slot()
        return self._part.participates

    def resume(self) -> None:
        """Waits for this thread's turn after a wait. Does nothing if the thread does not take part, or has the turn."""
        part = self._part
        me = threading.get_ident()
        if not part.participates or self._owner == me:
            return
        with self._lock:
            if self._owner is None and not self._queue_of_holders and (part.holds_locks or not self._queue):
                now_s = time.monotonic()
                if not self._queue:
                    self._free_since_s = now_s
                if part.holds_locks or not self._is_delayed(now_s):
                    self._owner, self._since_s = me, now_s
                    return
            (self._queue_of_holders if part.holds_locks else self._queue).append((me, part.signal))
        while not part.signal.acquire(timeout=self._slice_s):
            with self._lock:
                if self._owner is not None and time.monotonic() - self._since_s >= self._slice_s:
                    self._pass_slot()  # the owner continues without a turn
                else:
                    self._start_free_slot()

    def _pass_slot(self) -> None:
        """Ends the turn, and starts the next one unless a call with priority runs. The caller holds the lock."""
        self._owner = None
        self._free_since_s = time.monotonic()
        self._start_free_slot()

    def _start_free_slot(self) -> None:
        """Starts a free turn if a thread waits for it and it need not be delayed. The caller holds the lock."""
        if self._owner is not None:
            return
        now_s = time.monotonic()
        queue = self._queue_of_holders or self._queue
        if queue and (queue is self._queue_of_holders or not self._is_delayed(now_s)):
            self._owner, signal = queue.popleft()
            self._since_s = now_s
            signal.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Gives up the turn inside the block: for a wait for another thread, or work for which others wait."""
        part = self._part
        participated, part.participates = part.participates, False
        self.pause()
        try:
            yield
        finally:
            part.participates = participated
            self.resume()


scheduler = ThreadScheduler()
"""One for the process, because it has one interpreter."""
