"""The memory budget: the bytes that facets are charged with, and what is evicted when the budget is exceeded."""

from __future__ import annotations

from collections import OrderedDict

from hms_cache.cache.answers import Answers
from hms_cache.cache.cached_entries import REFILL_KEYS, CachedEntries
from hms_cache.cache.entries import STATISTICS, Entry, Facet, Key
from hms_cache.cache.weights import weight_of
from hms_cache.metadata.object_names import TableName

ANSWERS_SHARE = 4
"""Encoded answers may take a quarter of the budget in addition to the entries they are made from: a hot table gets few
different requests, and an answer is about as large as its entry."""

ALWAYS_KEPT_ANSWER_BYTES = 1024 * 1024
"""Larger answers are kept only when they are requested again: most are requested once."""


FULL_SHARE = 0.9
"""Part of the budget that may be filled before reads ask. The rest is for what is read meanwhile."""

MAX_MISSING = 1_000
"""Databases and catalogs of which only empty lists are held, like those that do not exist: dropped ones, and any name
that a client invents."""

MISSING_SHARE = 64
"""They may take a sixty-fourth of the budget. Otherwise they would displace tables, which are evicted first."""


STATISTICS_SHARE = 2
ONE_STATISTICS_SHARE = 8
"""Statistics may take half of the budget; those of one table, and those of its partitions, an eighth each. They are
held by key, and a request may name any partitions and columns, existing or not: a client that names others each
time would displace all tables."""

MAX_LARGE_KEYS = 64
"""Number of keys remembered of one table, or of its partitions. Beyond it, remembering starts again."""


class BudgetedEntries(CachedEntries):
    """Entries within a memory budget: the least recently read ones are evicted."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__(Answers(budget_bytes // ANSWERS_SHARE, ALWAYS_KEPT_ANSWER_BYTES))
        self.budget_bytes = budget_bytes
        self.too_large: OrderedDict[tuple[Key, Facet], None] = OrderedDict()
        """Whole facets that a load found to be larger than the budget. They are not loaded again before they change.
        Bounded."""
        self.large_keys: OrderedDict[tuple[Key, Facet], set[int]] = OrderedDict()
        """Hashes of keys of statistics (`LoadRequest`) whose answers exceed their share. Until they change, loading
        them again would only repeat the work of the store's answer. Bounded."""
        self.evictions = 0
        self.seem_missing: OrderedDict[Key, int] = OrderedDict()
        """Databases and catalogs of which only empty lists are held, with their weights. Bounded. Some may have changed
        since."""
        self._missing_weight = 0
        self.statistics: OrderedDict[tuple[TableName, Facet], int] = OrderedDict()
        """Bytes that statistics are charged with. Entries to which something was added last are at the end."""
        self.statistics_weight = 0

    @property
    def is_filled_ahead(self) -> bool:
        """Whether the rest of the budget is reserved for what is read meanwhile."""
        return self.weight > FULL_SHARE * self.budget_bytes

    def recharge(self, entry: Entry, facet: Facet, weight: int) -> None:
        """Charges a facet that grew in place anew, and drops it if it exceeds the limit for one facet."""
        self._charge(entry, facet, weight)
        self.segmented.note(entry)
        self._evict(keep=entry)
        if self.weight > self.budget_bytes:
            self._remove_facet(entry, facet)

    def _charge(self, entry: Entry, facet: Facet, weight: int) -> None:
        super()._charge(entry, facet, weight)
        if facet in STATISTICS and isinstance(entry.key, TableName):
            self.statistics_weight += weight - self.statistics.pop((entry.key, facet), 0)
            self.statistics[entry.key, facet] = weight

    def _remove_facet(self, entry: Entry, facet: Facet) -> None:
        if facet in STATISTICS and isinstance(entry.key, TableName):
            self.statistics_weight -= self.statistics.pop((entry.key, facet), 0)
        super()._remove_facet(entry, facet)

    def _drop_all(self) -> None:
        self.statistics.clear()
        self.statistics_weight = 0
        self.large_keys.clear()
        super()._drop_all()

    def _bound_statistics(self, keep: Entry) -> None:
        """Keeps all statistics together within their share: those to which nothing was added for the longest time are
        dropped."""
        max_bytes = self.budget_bytes // STATISTICS_SHARE
        for _ in range(len(self.statistics)):
            if self.statistics_weight <= max_bytes:
                return
            key, facet = next(iter(self.statistics))
            if key == keep.key:
                self.statistics.move_to_end((key, facet))
            else:
                self._remove_facet(self.tables[key], facet)

    def _bound_missing(self, entry: Entry) -> None:
        """Something of a database or catalog was installed. If it seems not to exist, others of this kind make room."""
        key = entry.key
        self._missing_weight -= self.seem_missing.pop(key, 0)
        if not _seems_missing(entry):
            return
        self.seem_missing[key] = weight = sum(entry.weights.values())
        self._missing_weight += weight
        max_bytes = self.budget_bytes // MISSING_SHARE
        while len(self.seem_missing) > 1 and (len(self.seem_missing) > MAX_MISSING or self._missing_weight > max_bytes):
            oldest, weight = self.seem_missing.popitem(last=False)
            self._missing_weight -= weight
            found = self._entries(oldest).get(oldest)
            if found is not None and _seems_missing(found):
                for facet in list(found.facets):
                    self._remove_facet(found, facet)

    def remember_large_key(self, key: Key, facet: Facet, statistics_key: int) -> None:
        """Under the lock."""
        of_subject = self.large_keys.setdefault((key, facet), set())
        if len(of_subject) >= MAX_LARGE_KEYS:
            of_subject.clear()
        of_subject.add(statistics_key)
        while len(self.large_keys) > REFILL_KEYS:
            self.large_keys.popitem(last=False)

    def _remember_too_large(self, key: Key, facet: Facet) -> None:
        self.too_large[key, facet] = None
        while len(self.too_large) > REFILL_KEYS:
            self.too_large.popitem(last=False)

    def _evict(self, keep: Entry) -> None:
        """Makes room by evicting the least recently used tables first. The name and type of an evicted table remain."""
        self._bound_statistics(keep)
        self._evict_tables(keep)
        # Names alone exceed the budget: those of catalogs, and of the databases loaded first, are evicted.
        for entries in (self.databases, self.catalogs):
            for entry in list(entries.values()) if self.weight > self.budget_bytes else ():
                if entry is keep or self.weight <= self.budget_bytes:
                    continue
                for facet in list(entry.facets):
                    self._remove_facet(entry, facet)
                self.evictions += 1

    def _evict_tables(self, keep: Entry) -> None:
        while self.weight > self.budget_bytes and self.tables:
            key = next(iter(self.tables))
            entry = self.tables[key]
            if self._evict_segment(entry.last_read):
                continue
            if entry is keep:
                if len(self.tables) == 1:
                    return
                self.tables.move_to_end(key)
                continue
            if self.answers.collect_used(entry):
                # Answers of it were sent since the last check, without a read that came here: it gets a second chance.
                self.tables.move_to_end(key)
                continue
            for facet in list(entry.facets):
                self._remove_facet(entry, facet)
            self.invalidated.pop(key, None)
            self.tables.pop(key, None)
            self.evictions += 1

    def _evict_segment(self, before_s: float) -> bool:
        """Evicts the segment whose last read is the longest ago, if that was not after this time."""
        found = self.segmented.oldest(before_s)
        if found is None:
            return False
        found.cached.evict(found.segment)
        self.evictions += 1
        if found.cached.is_bare:
            self._remove_facet(found.entry, Facet.PARTITIONS)
        else:
            # Answers made from it are still true: the entry has not changed.
            self._charge(found.entry, Facet.PARTITIONS, weight_of(found.cached))
            self.segmented.note(found.entry)
        return True


def _seems_missing(entry: Entry) -> bool:
    """Whether everything held of a database or catalog is an empty list."""
    return not any(entry.facets.values())
