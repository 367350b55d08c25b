"""The entries, their position, the indexes to find them, and what is remembered of dropped ones.

One lock guards every attribute and every entry; `view` takes it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from hms_cache.cache.answers import Answers
from hms_cache.cache.entries import CatalogKey, Entry, Facet, Key
from hms_cache.cache.segmented_tables import SegmentedTables
from hms_cache.cache.table_indexes import TableIndexes
from hms_cache.metadata.object_names import DatabaseName, TableName

REFILL_KEYS = 10_000
"""Tables that are remembered for the refill. More would not be refilled before reads ask for them anyway."""


class CachedEntries:
    """Entries of catalogs, databases and tables. Methods whose names begin with an underscore are called under the
    lock."""

    def __init__(self, answers: Answers) -> None:
        self._lock = threading.Lock()
        self.position = -1
        """A: the last applied event; -1 before the first position is known."""
        self.weight = 0
        """Bytes that all facets are charged with."""
        self.catalogs: dict[CatalogKey, Entry] = {}
        self.databases: OrderedDict[DatabaseName, Entry] = OrderedDict()
        self.tables: OrderedDict[TableName, Entry] = OrderedDict()
        self.names_by_id: dict[int, TableName] = {}
        self.segmented = SegmentedTables()
        self.indexes = TableIndexes()
        self.answers = answers
        self.unshared: set[TableName] | None = None
        """Tables some of whose partitions may be in memory that is not shared yet; None: blocks are not shared
        (`BlockSharing`)."""
        self.invalidated: OrderedDict[TableName, tuple[frozenset[Facet], float]] = OrderedDict()
        """Facets that events or a reset dropped from tables that had been read, with the time; for the refill.
        Bounded."""
        self.change_notes: list[set[Key]] = []
        """Subjects that change are added here, for those who copy the entries a few at a time (`dump.capture`)."""
        self.reads_before: OrderedDict[TableName, int] = OrderedDict()
        """Number of reads from memory of tables that have no entry now, so that a table that changes often does not
        appear unused. Bounded."""

    def view(self) -> threading.Lock:
        """`with cache.view():` all entries stay as they are, true at one position. The holder must not wait."""
        return self._lock

    def entry(self, key: Key) -> Entry | None:
        """The entry of a subject, if there is one."""
        found: Entry | None = self._entries(key).get(key)
        return found

    def _entries(self, key: Key) -> dict[Any, Entry]:
        if isinstance(key, TableName):
            return self.tables
        return self.databases if isinstance(key, DatabaseName) else self.catalogs

    def touch(self, entry: Entry, now_s: float) -> None:
        """Records that a read needs it, for the order of eviction and for the refill."""
        entry.last_read = now_s
        if isinstance(entry.key, TableName):
            self.tables.move_to_end(entry.key)

    def reads_of(self, entry: Entry) -> int:
        """Number of reads that it has answered since the start, by the bytes of the request or decoded; exact under the
        lock."""
        return entry.reads + self.answers.uses(entry)

    def _index(self, table: TableName, entry: Entry) -> None:
        self.segmented.note(entry)
        if entry.table_id is not None:
            self.names_by_id[entry.table_id] = table
        self.indexes.note(table, entry)

    def _changed(self, entry: Entry) -> None:
        entry.version += 1
        for changed in self.change_notes:
            changed.add(entry.key)
        if entry.answers:
            self.answers.drop(entry)

    def _charge(self, entry: Entry, facet: Facet, weight: int) -> None:
        self.weight += weight - entry.weights.get(facet, 0)
        entry.weights[facet] = weight
        if facet is Facet.PARTITIONS and self.unshared is not None and isinstance(entry.key, TableName):
            self.unshared.add(entry.key)

    def _remove_facet(self, entry: Entry, facet: Facet) -> None:
        if facet not in entry.facets:
            return
        self._changed(entry)
        del entry.facets[facet]
        self.weight -= entry.weights.pop(facet, 0)
        if isinstance(entry.key, TableName):
            if facet is Facet.TABLE:
                entry.tag = entry.encoded_table = None
                if entry.table_id is not None:
                    self.names_by_id.pop(entry.table_id, None)
                    entry.table_id = None
            elif facet is Facet.PARTITIONS:
                self.segmented.note(entry)
            self.indexes.note(entry.key, entry)
            self._remember_invalidated(entry, facet)
        if not entry.facets:
            self._entries(entry.key).pop(entry.key, None)
            self._remember_reads(entry)

    def _remember_reads(self, entry: Entry) -> None:
        """The entry, which has no answers any more, is removed."""
        if entry.reads and isinstance(entry.key, TableName):
            self.reads_before[entry.key] = entry.reads
            if len(self.reads_before) > REFILL_KEYS:
                self.reads_before.popitem(last=False)

    def _remember_invalidated(self, entry: Entry, facet: Facet) -> None:
        key = entry.key
        if not isinstance(key, TableName) or not entry.last_read:
            return
        before, _ = self.invalidated.pop(key, (frozenset(), 0.0))
        self.invalidated[key] = (before | {facet}, entry.last_read)
        while len(self.invalidated) > REFILL_KEYS:
            self.invalidated.popitem(last=False)

    def _drop_all(self) -> None:
        self.answers.clear()
        for entries in (self.catalogs, self.databases, self.tables):
            for changed in self.change_notes:
                changed.update(entries)
            for entry in entries.values():
                entry.version += 1
                self._remember_reads(entry)
        self.catalogs.clear()
        self.databases.clear()
        self.tables.clear()
        self.names_by_id.clear()
        self.segmented.clear()
        if self.unshared is not None:
            self.unshared.clear()
        self.indexes.clear()
        self.invalidated.clear()
        self.weight = 0
