"""Limits the number of a job's requests to a store per second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """Limits the rate at which requests to each store start; stores are independent of each other.

    A store is a scheme with an authority: a bucket, a name node. Thread-safe: `_lock` guards `_next_s` and is not held
    while a thread waits.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """:param per_second: 0 for no limit."""
        self._interval_s = 1 / per_second if per_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next_s: dict[str, float] = {}

    def wait(self, store: str) -> None:
        """Waits until the next request to the store may start: in the order of the calls, evenly spread."""
        if not self._interval_s:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._next_s.get(store, now))
            self._next_s[store] = turn + self._interval_s
        if turn > now:
            self._sleep(turn - now)
