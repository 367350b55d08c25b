"""Shared state of the worker processes of one server, by which they keep the promises of one server together (P3, P4).

A page of memory that all of them map, created before the fork. Each worker writes to its own slot only, so no lock
between processes is needed. A worker that is killed does no harm: its slot stays true. A slot has four numbers of 8
bytes, each written atomically: the floor (no read on this server may be answered below this event, which is a write of
the worker, or the position of its memory), the history of the floor, when the database last answered a read at an
unknown position, and how often the slot was reset. Times are those of the machine's monotonic clock, which processes
share.
"""

from __future__ import annotations

import hashlib
import mmap
import threading
from typing import Final, NamedTuple

_NUMBERS: Final = 4
_FLOOR, _HISTORY, _REQUIRED_NS, _BEGUN = range(_NUMBERS)
_NUMBER_BYTES: Final = 8


class CombinedPositions(NamedTuple):
    """The combined state of all workers."""

    floor: int
    """The highest floor in this history; -1: none."""

    required_after_s: float
    """When the database last answered a read at an unknown position (monotonic); minus infinity: never."""

    agree: bool
    """Whether all workers that have written anything follow the same history."""


class WorkerPositions:
    """The page. Created by the parent; each worker takes its `slot` after the fork."""

    def __init__(self, count: int) -> None:
        self._page = mmap.mmap(-1, count * _NUMBERS * _NUMBER_BYTES)
        self.count = count

    def slot(self, index: int) -> WorkerSlot:
        """A worker's own slot, as its predecessor left it."""
        return WorkerSlot(self._page, self.count, index)


class WorkerSlot:
    """One worker's view: writes to its slot, reads all. `_lock` guards writes of this process's threads."""

    def __init__(self, page: mmap.mmap, count: int, index: int) -> None:
        self._page = page
        self._numbers = memoryview(page).cast("q")
        self._count = count
        self._first = index * _NUMBERS
        self._lock = threading.Lock()
        self._seen = b""

    def raise_floor(self, event_id: int, server_identity: str) -> None:
        """No worker may answer a read below this event from now on."""
        history = _number_of(server_identity)
        with self._lock:
            self._follow(history)
            if event_id + 1 > self._numbers[self._first + _FLOOR]:
                self._numbers[self._first + _FLOOR] = event_id + 1

    def begin(self, event_id: int, server_identity: str) -> None:
        """This worker's cache was reset: earlier events may belong to another history."""
        with self._lock:
            self._numbers[self._first + _FLOOR] = 0
            self._numbers[self._first + _HISTORY] = _number_of(server_identity)
            self._numbers[self._first + _FLOOR] = event_id + 1
            self._numbers[self._first + _BEGUN] += 1

    def require_check(self, now_s: float) -> None:
        """The database answered a read at an unknown position: every worker needs a position check (P3).

        Threads may call this in any order: the latest time counts.
        """
        required_ns = int(now_s * 1e9) + 1
        with self._lock:
            if required_ns > self._numbers[self._first + _REQUIRED_NS]:
                self._numbers[self._first + _REQUIRED_NS] = required_ns

    def has_changed(self) -> bool:
        """Whether any worker has written anything since `read`: one comparison of bytes."""
        return self._page[:] != self._seen

    def read(self, server_identity: str) -> CombinedPositions:
        """The state of all workers, including this one and its predecessor."""
        self._seen = self._page[:]
        numbers = memoryview(self._seen).cast("q")
        history = _number_of(server_identity)
        floor, required_ns, agree = 0, 0, True
        for first in range(0, self._count * _NUMBERS, _NUMBERS):
            required_ns = max(required_ns, numbers[first + _REQUIRED_NS])
            if numbers[first + _HISTORY] == history:
                floor = max(floor, numbers[first + _FLOOR])
            elif numbers[first + _HISTORY]:
                agree = False
        return CombinedPositions(floor - 1, required_ns / 1e9 if required_ns else float("-inf"), agree)

    def forget_seen(self) -> None:
        """What was read is no longer valid: the cache was reset."""
        self._seen = b""

    def _follow(self, history: int) -> None:
        """Under the lock. A floor of another history means nothing."""
        if self._numbers[self._first + _HISTORY] != history:
            self._numbers[self._first + _FLOOR] = 0
            self._numbers[self._first + _HISTORY] = history


def _number_of(server_identity: str) -> int:
    """Not 0, which means that nothing was written."""
    digest = hashlib.blake2b(server_identity.encode("utf-8", "replace"), digest_size=7).digest()
    return int.from_bytes(digest, "little") | 1
