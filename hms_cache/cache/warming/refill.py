"""Loads again what events dropped and was read recently, so that the next read finds it.

It is read from the database: the image in an event is never applied.
"""

from __future__ import annotations

import logging
from typing import Final

from hms_cache.cache.entries import Facet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.cooldowns import Cooldowns
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.clock import Clock
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

BATCH_TABLES = 50
"""Tables in one snapshot: some tens of milliseconds of database time, so that a refill never delays a load for long."""

RECENT_S = 600.0
"""A table that was not read for ten minutes is not worth a statement."""

SHORTEST_COOLDOWN_TIMES: Final = 5
"""A refill of a few partitions takes some milliseconds: their table may be refilled again some hundredths of a second
later."""

LONGEST_COOLDOWN_TIMES: Final = 80
"""A job that writes 500 partitions in each call causes 50 ms of refills every four seconds."""


class Refill:
    """`step` is called repeatedly by a background task."""

    def __init__(self, cache: SharedCache, loader: Loader, clock: Clock) -> None:
        self._cache = cache
        self._loader = loader
        self._clock = clock
        self._cooldowns = Cooldowns(SHORTEST_COOLDOWN_TIMES, LONGEST_COOLDOWN_TIMES)
        self.refilled = 0

    def step(self) -> int:
        """Loads one batch, and returns the number of its tables. After an outage of the database, they are left to the
        next read."""
        began_s = self._clock.monotonic_s()
        requested = self._next_batch(began_s)
        if not requested:
            return 0
        try:
            self._loader.load(requested)
        except DatabaseUnavailable as error:
            _log.info("no refill while the database is unavailable: %s", error)
            return 0
        now_s = self._clock.monotonic_s()
        tables = {one.key for one in requested if isinstance(one.key, TableName)}
        for table in tables:
            # They were loaded together.
            self._cooldowns.begin(table, now_s - (now_s - began_s) / len(tables), now_s)
        self.refilled += len(requested)
        return len(requested)

    def _next_batch(self, now_s: float) -> list[LoadRequest]:
        ready, old = self._ready(now_s)
        requested: list[LoadRequest] = []
        with self._cache.view():
            invalidated = self._cache.invalidated
            for key in old:
                invalidated.pop(key, None)
            for key in ready:
                found = invalidated.pop(key, None)
                if found is not None:
                    requested.extend(self._missing(key, found[0]))
        # Sorted, without the lock: there may be tens of thousands of partitions.
        return [
            one if not one.detail else LoadRequest(one.key, one.facet, tuple(sorted(one.detail))) for one in requested
        ]

    def _ready(self, now_s: float) -> tuple[list[TableName], list[TableName]]:
        """The next tables to load, those dropped last first; and some that have not been read for long.

        Selected without the lock: most of the waiting tables may have a cooldown.
        """
        with self._cache.view():
            waiting = list(reversed(self._cache.invalidated.items()))
        ready: list[TableName] = []
        old: list[TableName] = []
        for key, (_, last_read_s) in waiting:
            if not self._cooldowns.is_over(key, now_s):
                continue
            if last_read_s < now_s - RECENT_S:
                old.append(key)
                continue
            ready.append(key)
            if len(ready) == BATCH_TABLES:
                break
        return ready, old

    def _missing(self, key: TableName, facets: frozenset[Facet]) -> list[LoadRequest]:
        entry = self._cache.tables.get(key)
        cached = entry.facets if entry is not None else {}
        requested = []
        if Facet.TABLE not in cached and Facet.EXCLUDED not in cached:
            requested.append(LoadRequest(key, Facet.TABLE))
        if Facet.CONSTRAINTS in facets and Facet.CONSTRAINTS not in cached:
            requested.append(LoadRequest(key, Facet.CONSTRAINTS))
        if Facet.PARTITIONS in facets:
            partitions = cached.get(Facet.PARTITIONS)
            if partitions is not None and partitions.missing:
                requested.append(LoadRequest(key, Facet.PARTITIONS, tuple(partitions.missing)))
        return requested
