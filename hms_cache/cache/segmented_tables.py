"""Tables whose partitions are held in several segments, to find the segment with the least recent read.

Guarded by the lock of the cache. There are few segments: each takes some megabytes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from hms_cache.cache.entries import Entry, Facet, Key
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Segment


class CachedSegment(NamedTuple):
    """A segment, and the set and entry that it is part of."""

    entry: Entry
    cached: PartitionSet
    segment: Segment


class SegmentedTables:
    """The entries of these tables."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._none_read_before = math.inf
        """No segment was last read before this time: reads only increase their times. It saves evictions of many
        tables, or with each load, from looking at all segments."""

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, entry: Entry) -> None:
        """An entry's partitions may be another set now."""
        cached = entry.facets.get(Facet.PARTITIONS)
        if cached is not None and cached.is_segmented:
            self._entries[entry.key] = entry
            self._none_read_before = -math.inf
        else:
            self._entries.pop(entry.key, None)

    def clear(self) -> None:
        """Forgets all of them."""
        self._entries.clear()

    def oldest(self, before_s: float) -> CachedSegment | None:
        """The segment with the least recent read, if that was not after this time."""
        if self._none_read_before > before_s:
            return None
        found: CachedSegment | None = None
        for entry in self._entries.values():
            cached: PartitionSet = entry.facets[Facet.PARTITIONS]
            segment = cached.oldest
            if segment is not None and (found is None or segment.last_read < found.segment.last_read):
                found = CachedSegment(entry, cached, segment)
        self._none_read_before = math.inf if found is None else found.segment.last_read
        return found if self._none_read_before <= before_s else None
