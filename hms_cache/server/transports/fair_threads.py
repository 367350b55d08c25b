"""Threads for work that the event loop cannot wait for, shared fairly among client addresses.

Addresses take turns: one that hands in more work than the threads can do waits for itself, and others wait at most for
one piece of its work. Work that is not needed any more when its turn comes is left out.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

Work = Callable[[], None]


class FairThreads:
    """Thread-safe."""

    def __init__(self, threads: int, name: str, network_of: Callable[[str], str] = str) -> None:
        """`name`: prefix of the threads' names; `network_of`: maps an address to the network whose addresses share one
        turn."""
        self._pool = ThreadPoolExecutor(threads, name)
        self._network_of = network_of
        self._lock = threading.Lock()
        """Guards what waits."""
        self._waiting: dict[str, deque[tuple[Work, Callable[[], bool]]]] = {}
        """By address, in the order of their turns."""

    def submit(self, address: str, work: Work, is_needed: Callable[[], bool]) -> None:
        """Runs `work` on a thread when the address has its turn, if it is still needed then."""
        network = self._network_of(address)
        with self._lock:
            self._waiting.setdefault(network, deque()).append((work, is_needed))
        # One submission for each piece of work. Which piece a thread runs is decided when it begins.
        self._pool.submit(self._next)

    def waiting(self) -> int:
        """Number of pieces of work that have not begun."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """Accepts no more work. Waiting work is not done."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        with self._lock:
            address = next(iter(self._waiting))
            queue = self._waiting.pop(address)
            work, is_needed = queue.popleft()
            if queue:
                self._waiting[address] = queue
        if is_needed():
            work()
