"""The memory that entries may take: what a facet is charged with, and what is evicted when that is too much."""

from __future__ import annotations

from collections import OrderedDict

from hms_cache.cache.answers import Answers
from hms_cache.cache.entries import STATISTICS, Entry, Facet, Key
from hms_cache.cache.held_entries import REFILL_KEYS, HeldEntries
from hms_cache.cache.weights import weight_of
from hms_cache.metadata.object_names import TableName

ANSWERS_SHARE = 4
"""Encoded answers may take a quarter of the budget on top of what they are made from: a hot table is asked with a few
different requests, and its answer is about as large as its entry."""

ALWAYS_KEPT_ANSWER_BYTES = 1024 * 1024
"""Larger answers are kept when they are asked for again: most of them are asked for once."""


FULL_SHARE = 0.9
"""Part of the budget that is filled ahead: the rest is for what is asked meanwhile."""

MAX_MISSING = 1_000
"""Databases and catalogs of which nothing is known but that there is nothing in them, as of those that are not there:
each that was dropped, and each name that a client makes up."""

MISSING_SHARE = 64
"""They may take a sixty-fourth of the budget: tables, which are evicted first, would make way for them."""


STATISTICS_SHARE = 2
ONE_STATISTICS_SHARE = 8
"""Statistics may take half of the budget, those of one table, and those of its partitions, an eighth each. Each answer
is held by what was asked, and a request may name any number of partitions and columns, whether there are such or not: a
client that goes on naming others would push out all tables."""

MAX_LARGE_QUESTIONS = 64
"""Remembered of one table, or of its partitions; beyond it they start anew."""


class BudgetedEntries(HeldEntries):
    """Entries that take no more memory than they may: the least recently read ones are evicted."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__(Answers(budget_bytes // ANSWERS_SHARE, ALWAYS_KEPT_ANSWER_BYTES))
        self.budget_bytes = budget_bytes
        self.too_large: OrderedDict[tuple[Key, Facet], None] = OrderedDict()
        """Whole facets that a load found larger than the budget: not loaded again before they change; bounded."""
        self.large_questions: OrderedDict[tuple[Key, Facet], set[int]] = OrderedDict()
        """Hashes of questions for statistics (`Wanted`) whose answers take more than their share: to load them would
        cost what the store's answer costs, once more, until they change. Bounded."""
        self.evictions = 0
        self.seem_missing: OrderedDict[Key, int] = OrderedDict()
        """Databases and catalogs of which only empty lists are held, and their weights; bounded. Some may have changed
        since."""
        self._missing_weight = 0
        self.statistics: OrderedDict[tuple[TableName, Facet], int] = OrderedDict()
        """What statistics are charged with; those that something was added to last are the last."""
        self.statistics_weight = 0

    @property
    def is_filled_ahead(self) -> bool:
        """Whether what is left of the budget is for what is asked meanwhile."""
        return self.weight > FULL_SHARE * self.budget_bytes

    def recharge(self, entry: Entry, facet: Facet, weight: int) -> None:
        """A facet that grew in place is charged anew; one that outgrew all others is dropped."""
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
        self.large_questions.clear()
        super()._drop_all()

    def _bound_statistics(self, keep: Entry) -> None:
        """All statistics together take no more than they may: those go that nothing was added to for longest."""
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
        """Of a database or catalog something was installed: if it seems not to be there, others that were found so
        before go."""
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

    def remember_large_question(self, key: Key, facet: Facet, question: int) -> None:
        """Under the lock."""
        of_subject = self.large_questions.setdefault((key, facet), set())
        if len(of_subject) >= MAX_LARGE_QUESTIONS:
            of_subject.clear()
        of_subject.add(question)
        while len(self.large_questions) > REFILL_KEYS:
            self.large_questions.popitem(last=False)

    def _remember_too_large(self, key: Key, facet: Facet) -> None:
        self.too_large[key, facet] = None
        while len(self.too_large) > REFILL_KEYS:
            self.too_large.popitem(last=False)

    def _evict(self, keep: Entry) -> None:
        """Makes room: tables first, least recently used, so that an evicted table falls back to its name and type."""
        self._bound_statistics(keep)
        self._evict_tables(keep)
        # Names alone pass the budget: those of the databases that were loaded first, and of catalogs, go.
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
            if self.answers.take_used(entry):
                # Asked since it was last looked at, by requests that never came here: a second chance.
                self.tables.move_to_end(key)
                continue
            for facet in list(entry.facets):
                self._remove_facet(entry, facet)
            self.invalidated.pop(key, None)
            self.tables.pop(key, None)
            self.evictions += 1

    def _evict_segment(self, before_s: float) -> bool:
        """Evicts the segment that was read the longest ago, if that was no later than at this time."""
        found = self.segmented.oldest(before_s)
        if found is None:
            return False
        found.held.evict(found.segment)
        self.evictions += 1
        if found.held.is_bare:
            self._remove_facet(found.entry, Facet.PARTITIONS)
        else:
            # What was answered from it is still true: the entry has not changed.
            self._charge(found.entry, Facet.PARTITIONS, weight_of(found.held))
            self.segmented.note(found.entry)
        return True


def _seems_missing(entry: Entry) -> bool:
    """Whether all that is held of a database or catalog are lists with nothing in them."""
    return not any(entry.facets.values())
