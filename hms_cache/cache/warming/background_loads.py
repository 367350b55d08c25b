"""Large tables are loaded in the background if that is worth it, while reads of them pass through (P12).

A read of partitions that are not held comes here first. A small table is loaded at once: that costs about as much as
the question itself. For a large table, the store answers exactly what was asked, at the cost of an uncached read. The
table is queued for a load if it is asked for again, and is loaded if it fits its share of the budget.

The caller of `step` loads one table at a time, page by page with pauses in between, on one connection: no request waits
for it. If a table is too large for its share, only the ranges around what was asked for are loaded, each as a segment.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from hms_cache.cache.entries import Facet
from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.cooldowns import Cooldowns
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.snapshot_reads import LoadRequest, Window
from hms_cache.clock import Clock
from hms_cache.metadata.name_ranges import EVERY_NAME, NameRange
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.snapshots import StoreReads

_log = logging.getLogger(__name__)

AT_ONCE_PARTITIONS: Final = 300
"""The default of `cache.load_at_once_partitions`: loading them takes about 10 ms, like the question of a planner."""

MAX_FEW: Final = 1_000
"""Partitions that are read together with their table, in one piece. If there are more, they are read page by page."""

REQUESTED_AGAIN_S: Final = 600.0
"""A table that is requested again within ten minutes is worth a load; the refill uses the same time."""

TABLE_SHARE: Final = 2
"""A table that takes more than half of the budget would evict everything else, and then be evicted by it."""

FREE_SHARE: Final = 0.9
"""Tables above a tenth of the budget are loaded only if the budget is free up to this part."""

BYTES_A_PARTITION: Final = 200
"""Bytes of a held partition (docs/evidence/benchmarks.md: 192), to estimate the size of a table before it is loaded."""

MAX_QUEUED: Final = 1_000
"""Tables that wait for a load, and single partitions of one table. Further ones are queued when they are asked for
again."""

LONGEST_NAME: Final = 1_000
"""Maximum characters of partition values, or of the bounds of a name range, that are kept for a load: longer ones do
not fit into the column for names. In a request, they may be as long as a message."""

MAX_WINDOWS: Final = 16
"""Segments loaded for one range; all together, they take at most a table's share."""

SMALLEST_WINDOW: Final = 100
"""Partitions in a segment if the budget is very small."""

SHORTEST_COOLDOWN_TIMES: Final = 1
"""A table that was loaded and dropped again may be loaded again after as long as the load took."""

LONGEST_COOLDOWN_TIMES: Final = 64
"""A table that is dropped each time takes one load of a second per minute."""

MAX_REMEMBERED: Final = 10_000
"""Tables whose size or last request is remembered, about 2 MB."""


class _Requested(NamedTuple):
    """What reads requested of one table, in the order of the requests."""

    named: dict[Values, None]
    """Single partitions."""
    gaps: dict[NameRange, None]


class LoadDecision(Enum):
    """How to answer a read of partitions that are not held."""

    PASS_THROUGH = "by the store"
    LOAD_FEW = "from a load; all partitions of the table are few"
    LOAD = "from a load"


class BackgroundLoads:
    """The queue, and the `step` of its worker. `_lock` guards all attributes; it is never held during I/O or while
    another lock is taken."""

    def __init__(
        self,
        cache: SharedCache,
        loader: Loader,
        store: StoreReads,
        clock: Clock,
        at_once_partitions: int = AT_ONCE_PARTITIONS,
    ) -> None:
        self._cache = cache
        self._loader = loader
        self._store = store
        self._clock = clock
        self.at_once_partitions = at_once_partitions
        self._lock = threading.Lock()
        self._large: OrderedDict[TableName, float] = OrderedDict()
        """Tables that were found to be large, with the time. A table that has shrunk since is merely loaded later."""
        self._requested: OrderedDict[TableName, float] = OrderedDict()
        """When reads of tables that are not queued last passed through."""
        self._queue: OrderedDict[TableName, _Requested] = OrderedDict()
        """What to load: tables, with what reads requested of them, which is used if the whole table is too large."""
        self._cooldowns = Cooldowns(SHORTEST_COOLDOWN_TIMES, LONGEST_COOLDOWN_TIMES)
        """Cooldowns after loads of whole tables."""
        self._loading: TableName | None = None
        """The table that is being loaded as a whole."""
        self.loaded = 0
        """Tables that were loaded this way."""

    def decide(
        self, table: TableName, requested: Sequence[LoadRequest], gaps: Sequence[NameRange] = ()
    ) -> LoadDecision:
        """How to answer a read of partitions that needs more than is held. A table that is worth it is queued. `gaps`:
        ranges that the read needs and that are not held.

        One round trip if the size of the table is not known. Raises DatabaseUnavailable.
        """
        of_partitions = [one for one in requested if one.facet in (Facet.TABLE, Facet.PARTITIONS)]
        if not of_partitions or self._is_refill(table, of_partitions):
            return LoadDecision.LOAD
        count = self._count_unless_large(table)
        if count is not None:
            return LoadDecision.LOAD_FEW if count <= MAX_FEW else LoadDecision.LOAD
        self._enqueue(table, [values for one in of_partitions for values in one.detail], gaps)
        return LoadDecision.PASS_THROUGH

    def is_loading(self, table: TableName) -> bool:
        """Whether all partitions of the table are being loaded, with pauses: no read should wait for that."""
        with self._lock:
            return self._loading == table

    def _is_refill(self, table: TableName, requested: Sequence[LoadRequest]) -> bool:
        """Whether only the table, or some partitions, are missing from a complete set: reading these costs less."""
        named = [len(one.detail) or MAX_QUEUED + 1 for one in requested if one.facet is Facet.PARTITIONS]
        if sum(named) > MAX_QUEUED:
            return False
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            if cached is None or not cached.has_complete:
                return False
            return all(_is_in_complete(cached, values) for one in requested for values in one.detail)

    def _count_unless_large(self, table: TableName) -> int | None:
        """Number of partitions of a table; None: more than are loaded at once."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            found_s = self._large.get(table)
        if found_s is not None and now_s - found_s < REQUESTED_AGAIN_S:
            return None
        count = self._store.count_partitions(TableName(*table), self.at_once_partitions + 1)
        if count <= self.at_once_partitions:
            return count
        with self._lock:
            _remember(self._large, table, now_s)
        return None

    def _enqueue(self, table: TableName, named: Sequence[Values], gaps: Sequence[NameRange]) -> None:
        now_s = self._clock.monotonic_s()
        with self._cache.view():
            entry = self._cache.tables.get(table)
            reads = entry.reads if entry is not None else self._cache.reads_before.get(table, 0)
            evictions = self._cache.evictions
        with self._lock:
            requested_s = self._requested.pop(table, float("-inf"))
            if table not in self._queue:
                is_worth_it = bool(reads) or now_s - requested_s <= REQUESTED_AGAIN_S
                is_cooling_down = not self._cooldowns.is_over(table, now_s, evictions)
                if is_cooling_down or not is_worth_it or len(self._queue) >= MAX_QUEUED:
                    _remember(self._requested, table, now_s)
                    return
                self._queue[table] = _Requested({}, {})
            requested = self._queue[table]
            named = [values for values in named if sum(map(len, values)) <= LONGEST_NAME]
            gaps = [gap for gap in gaps if max(len(gap.first), len(gap.end or "")) <= LONGEST_NAME]
            requested.named.update(dict.fromkeys(named[: MAX_QUEUED - len(requested.named)]))
            requested.gaps.update(dict.fromkeys(gaps[: MAX_QUEUED - len(requested.gaps)]))

    # The worker's side

    def step(self) -> bool:
        """Loads one table; False if none waits. After an outage of the database, later questions queue it again."""
        with self._lock:
            if not self._queue:
                return False
            table, requested = self._queue.popitem(last=False)
        try:
            if self._load(table, requested):
                self.loaded += 1
        except DatabaseUnavailable as error:
            _log.info("%s is not loaded while the database is unavailable: %s", ".".join(table), error)
        return True

    def drain(self) -> None:
        """Loads everything that waits now, on this thread."""
        while self.step():
            pass

    @property
    def waiting(self) -> int:
        """Tables that wait to be loaded."""
        with self._lock:
            return len(self._queue)

    def _load(self, table: TableName, requested: _Requested) -> bool:
        if not self._holds_table(table):
            self._loader.load([LoadRequest(table, Facet.TABLE)])
            if not self._holds_table(table):
                return False  # it does not exist, may not be cached, or has just changed
        if not (requested.gaps and self._holds_segments(table)) and self._fits(table):
            return self._load_whole(table)
        loaded = [self._load_gaps(table, covered) for covered in requested.gaps]
        if requested.named:
            loaded.append(self._loader.load([LoadRequest(table, Facet.PARTITIONS, tuple(requested.named))]))
        return any(loaded)

    def _load_whole(self, table: TableName) -> bool:
        if self._holds_all(table):
            return False  # it was asked for again during the load
        began_s, before = self._clock.monotonic_s(), self._cache.evictions
        with self._lock:
            self._loading = table
        try:
            return self._loader.load([LoadRequest(table, Facet.PARTITIONS)], throttled=True)
        finally:
            now_s, after = self._clock.monotonic_s(), self._cache.evictions
            with self._lock:
                self._loading = None
                self._cooldowns.begin(table, began_s, now_s, evictions_before=before, evictions=after)

    def _holds_all(self, table: TableName) -> bool:
        """Whether reads find all partitions, or ask for single ones that changed."""
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            return cached is not None and cached.complete and not cached.is_mostly_missing

    def _load_gaps(self, table: TableName, covered: NameRange) -> bool:
        """Loads the gaps in a range of names, and what lies around them. Returns whether anything was kept."""
        most = self._cache.budget_bytes // TABLE_SHARE // MAX_WINDOWS // BYTES_A_PARTITION
        most = max(SMALLEST_WINDOW, min(segments.SEGMENT_PARTITIONS, most))
        before: NameRange | None = None
        for number in range(MAX_WINDOWS):
            gap = self._gap(table, covered)
            if gap is None or gap == before:  # everything is held, or the last window could not be kept
                return number > 0
            before = gap
            window = Window(gap, max(gap.first, covered.first), most)
            if not self._loader.load([LoadRequest(table, Facet.PARTITIONS, (window,))], throttled=True):
                return number > 0
        return True

    def _gap(self, table: TableName, covered: NameRange) -> NameRange | None:
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            return cached.gap_in(covered) if cached is not None else EVERY_NAME

    def _holds_segments(self, table: TableName) -> bool:
        """Whether some segments are held, so that only the others have to be read."""
        with self._cache.view():
            entry = self._cache.tables.get(table)
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            return cached is not None and cached.is_segmented and cached.has_complete

    def _holds_table(self, table: TableName) -> bool:
        with self._cache.view():
            entry = self._cache.tables.get(table)
            return entry is not None and Facet.TABLE in entry.facets

    def _fits(self, table: TableName) -> bool:
        """Whether the whole table is worth its share of the budget."""
        with self._cache.view():
            if (table, Facet.PARTITIONS) in self._cache.too_large:
                return False
            budget_bytes = self._cache.budget_bytes
            free_bytes = int(budget_bytes * FREE_SHARE) - self._cache.weight
        max_bytes = min(budget_bytes // TABLE_SHARE, max(free_bytes, budget_bytes // 10))
        max_partitions = max_bytes // BYTES_A_PARTITION
        return self._store.count_partitions(TableName(*table), max_partitions + 1) <= max_partitions


def _is_in_complete(cached: PartitionSet, values: Values) -> bool:
    """Whether it is known for all partitions around these values whether they exist."""
    return len(values) == len(cached.keys) and cached.segment_of(cached.name_of(values)).complete


def _remember(seen: OrderedDict[TableName, float], table: TableName, now_s: float) -> None:
    seen.pop(table, None)
    seen[table] = now_s
    while len(seen) > MAX_REMEMBERED:
        seen.popitem(last=False)
