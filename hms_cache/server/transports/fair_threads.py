"""Threads for the work of clients that the event loop cannot wait for, shared by their addresses.

What waits is taken by turns: one address that hands in more than the threads can do waits for itself, and others wait
for no more than one of its pieces. What nobody wants any more when its turn comes is left out.
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
        """`name`: of the threads; `network_of`: what takes turns as one with an address."""
        self._pool = ThreadPoolExecutor(threads, name)
        self._network_of = network_of
        self._lock = threading.Lock()
        """Guards what waits."""
        self._waiting: dict[str, deque[tuple[Work, Callable[[], bool]]]] = {}
        """By address, in the order of their turns."""

    def submit(self, address: str, work: Work, is_wanted: Callable[[], bool]) -> None:
        """Runs `work` on a thread when the address has its turn, if it is still wanted then."""
        network = self._network_of(address)
        with self._lock:
            self._waiting.setdefault(network, deque()).append((work, is_wanted))
        # As many of these as there is work; which of it each of them does is decided when it begins.
        self._pool.submit(self._next)

    def waiting(self) -> int:
        """Pieces of work that have not begun."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """No more work; what waits is not done."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        with self._lock:
            address = next(iter(self._waiting))
            queue = self._waiting.pop(address)
            work, is_wanted = queue.popleft()
            if queue:
                self._waiting[address] = queue
        if is_wanted():
            work()
