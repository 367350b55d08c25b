"""Limits the number of loads that one user, or one client address, may have running: for fairness.

A load reads a table, its partitions or a list of names as a whole. A client that asks for many cold tables at once
would keep the database busy for everybody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hms_cache.call_context import call_context
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


class LoadLimitReached(MetaException):
    """The user or address has the maximum number of loads running; the read is refused."""


class LoadLimits:
    """Counts the loads that calls run. `_lock` guards all attributes; it is not held while a load runs.

    Loads that no call waits for (prewarm, refill, background) are not counted. Holds one entry for each user and
    address with a running load: no more than there are threads.
    """

    def __init__(self, max_per_user: int = 0, max_per_address: int = 0, network_of: Callable[[str], str] = str) -> None:
        """0: no limit; `network_of`: maps an address to the network whose addresses count as one."""
        self._network_of = network_of
        self._lock = threading.Lock()
        self._max = {"user": max_per_user, "address": max_per_address}
        self._running: dict[tuple[str, str], int] = {}
        self.refused = {"user": 0, "address": 0}

    @contextmanager
    def one_load(self, *, may_refuse: bool = True) -> Iterator[None]:
        """Context in which this thread's call runs a load. Raises LoadLimitReached before it begins.

        `may_refuse` False: the load is only counted. What a write reads is part of the write, which has limits of its
        own.
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
