"""How many loads one user, and one client address, may have on their way at once: a limit for fairness.

A load reads a table, its partitions or a list of names as a whole. Who asks for many cold tables at once keeps the
database busy for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hms_cache.call_context import call_context
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class LoadLimitReached(MetaException):
    """The user or address has as many loads on their way as it may have; the read is refused."""


class LoadShares:
    """Counts the loads that calls run. `_lock` guards all attributes; it is not held while a load runs.

    Loads that no call waits for (warming, refill, background) count for nobody. Holds one entry for each user and
    address that has a load on its way: no more than there are threads.
    """

    def __init__(self, max_per_user: int = 0, max_per_address: int = 0, network_of: Callable[[str], str] = str) -> None:
        """0: no limit; `network_of`: what is counted as one with an address."""
        self._network_of = network_of
        self._lock = threading.Lock()
        self._max = {"user": max_per_user, "address": max_per_address}
        self._running: dict[tuple[str, str], int] = {}
        self.refused = {"user": 0, "address": 0}

    @contextmanager
    def one_load(self, *, may_refuse: bool = True) -> Iterator[None]:
        """Within it this thread's call runs a load.

        Raises LoadLimitReached before it begins. `may_refuse` False: it is counted only; what a write reads is part of
        the write, which has its own limits.
        """
        if not call_context.call:
            yield
            return
        call_context.loads += 1
        names = (("user", call_context.user), ("address", self._network_of(call_context.address)))
        with self._lock:
            for of, name in names if may_refuse else ():
                running = self._running.get((of, name), 0)
                if 0 < self._max[of] <= running:
                    self.refused[of] += 1
                    raise LoadLimitReached(
                        f"{running} loads into the cache for {of} {name} are on their way "
                        f"(setting cache.max_loads_per_{of}); retry"
                    )
            for one in names:
                self._running[one] = self._running.get(one, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                for one in names:
                    self._running[one] -= 1
                    if not self._running[one]:
                        del self._running[one]
