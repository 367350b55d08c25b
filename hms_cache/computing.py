"""Threads that read take turns at computing, so that who computes little does not wait behind all of them.

Python runs one thread at a time, and a thread that wants to run waits for each one before it to give way, which takes
`sys.getswitchinterval` each time. A heartbeat goes to its thread, to the database some times, and back to the event
loop: it waits some ten times. Beside sixteen threads that decode rows that is a tenth of a second. So threads that take
part compute one at a time: they queue for their turn rather than for the interpreter, which has only one place anyway,
and whoever takes no part (transactions, writes, the event loop, the poller) waits behind one of them at most.

No turn begins while a call is under way that goes first (`first`: transactions, locks, writes), which is over in a
millisecond: it would share the interpreter with one reader after the other. That holds for `COURTESY_S` from the last
such call's beginning, and from when the turn was due, so that neither a long call nor many short ones keep readers
waiting. Who waits looks for that each `SLICE_S`, and each call that goes first does when it begins. A thread that holds
locks of the database (`holding_locks`: the transaction of a large write) has its turn before those that read, and none
is withheld from it: others wait for the rows that it has locked.

A turn ends where a thread waits: for the database's answer (`pause` and `resume`, by the drivers' connections), for
another thread (`waiting`), and at the end of its call (`end`). Who computes longer than `SLICE_S`, or waits without
saying so, loses its turn to the next one, and goes on without: a turn is a courtesy, and nobody waits for long for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SLICE_S: Final = 0.01
"""An ordinary answer of some hundred partitions is made within it; a large one takes no one else's time besides."""

COURTESY_S: Final = 0.003
"""A call that goes first takes about one; with calls that follow each other without a pause, one reader a time still
has a turn as often as this."""


class _Part(threading.local):
    """What a thread has to do with it."""

    def __init__(self) -> None:
        self.takes_part = False
        self.holds_locks = False
        self.told = threading.Lock()
        """Released to tell a waiting thread that its turn has come."""
        self.told.acquire()


class Turns:
    """Who may compute. `_lock` guards all attributes."""

    def __init__(self, slice_s: float = SLICE_S, courtesy_s: float = COURTESY_S) -> None:
        self._lock = threading.Lock()
        self._slice_s = slice_s
        self._courtesy_s = courtesy_s
        self._owner: int | None = None
        """The thread whose turn it is."""
        self._since_s = 0.0
        self._queue: deque[tuple[int, threading.Lock]] = deque()
        self._queue_of_holders: deque[tuple[int, threading.Lock]] = deque()
        """Of those that hold locks."""
        self._first = 0
        """Calls under way that go first."""
        self._first_since_s = 0.0
        """When the last of them began."""
        self._free_since_s = 0.0
        """Since when nobody has had a turn though somebody waits for one."""
        self._part = _Part()

    @property
    def has_turn(self) -> bool:
        """Whether it is this thread's turn."""
        return self._owner == threading.get_ident()

    @property
    def holds_locks(self) -> bool:
        """Whether this thread is within `holding_locks`."""
        return self._part.holds_locks

    @property
    def waiting_threads(self) -> int:
        """How many wait for their turn."""
        return len(self._queue) + len(self._queue_of_holders)

    def begin(self) -> None:
        """This thread takes part from now on, and computes: waits for its turn."""
        self._part.takes_part = True
        self.resume()

    def end(self) -> None:
        """It has done its work."""
        self._part.takes_part = False
        self.pause()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around work that computes: `begin` and `end`."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def holding_locks(self) -> Iterator[None]:
        """Around a transaction that others may wait for: this thread's turns come before those of others meanwhile."""
        part = self._part
        held_before, part.holds_locks = part.holds_locks, True
        try:
            yield
        finally:
            part.holds_locks = held_before

    @contextmanager
    def first(self) -> Iterator[None]:
        """Around a call that goes first: no turn begins meanwhile, for `courtesy_s`."""
        with self._lock:
            self._look()
            self._first += 1
            self._first_since_s = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._first -= 1
                self._look()

    def _is_withheld(self, now_s: float) -> bool:
        """Under the lock: whether a turn that nobody has is not to begin yet."""
        return self._first > 0 and now_s - min(self._first_since_s, self._free_since_s) < self._courtesy_s

    def pause(self) -> bool:
        """It is about to wait; whether it takes part, and is to `resume` then."""
        if self.has_turn:
            with self._lock:
                if self.has_turn:  # else another has just taken it
                    self._hand_on()
        return self._part.takes_part

    def resume(self) -> None:
        """It has waited, and goes on: waits for its turn. Nothing where it takes no part, or has its turn."""
        part = self._part
        me = threading.get_ident()
        if not part.takes_part or self._owner == me:
            return
        with self._lock:
            if self._owner is None and not self._queue_of_holders and (part.holds_locks or not self._queue):
                now_s = time.monotonic()
                if not self._queue:
                    self._free_since_s = now_s
                if part.holds_locks or not self._is_withheld(now_s):
                    self._owner, self._since_s = me, now_s
                    return
            (self._queue_of_holders if part.holds_locks else self._queue).append((me, part.told))
        while not part.told.acquire(timeout=self._slice_s):
            with self._lock:
                if self._owner is not None and time.monotonic() - self._since_s >= self._slice_s:
                    self._hand_on()  # the owner computes without a turn from here on
                else:
                    self._look()

    def _hand_on(self) -> None:
        """Under the lock: the turn is over, and the next one begins unless a call goes first."""
        self._owner = None
        self._free_since_s = time.monotonic()
        self._look()

    def _look(self) -> None:
        """Under the lock: the turn that nobody has begins, if somebody waits for it and no call goes first."""
        if self._owner is not None:
            return
        now_s = time.monotonic()
        queue = self._queue_of_holders or self._queue
        if queue and (queue is self._queue_of_holders or not self._is_withheld(now_s)):
            self._owner, told = queue.popleft()
            self._since_s = now_s
            told.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait for another thread, or work that others wait for."""
        part = self._part
        took_part, part.takes_part = part.takes_part, False
        self.pause()
        try:
            yield
        finally:
            part.takes_part = took_part
            self.resume()


turns = Turns()
"""Of this process, as the interpreter is."""
