"""Adds a part that was read (`Loaded.is_part`) to a facet. Under the cache's lock."""

from __future__ import annotations

from collections.abc import Set

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.statistics_by_column import CachedStatistics
from hms_cache.cache.warming.snapshot_reads import Loaded, SomePartitions, SomeSegments
from hms_cache.cache.weights import weight_of

AGGREGATE = "aggregate"
"""Marks a key of statistics merged over partitions."""


def add_part(entry: Entry, item: Loaded, max_bytes: int, named: Set[Values] = frozenset()) -> int | None:
    """Adds it to the entry, and returns the new weight of the facet. `max_bytes`: the limit for statistics. `named`:
    partitions of segments that events have named since they were read.

    None: it does not fit what is held, or takes too much memory. Raises UnencodableReply or MetaException; then nothing
    has changed.
    """
    if isinstance(item.value, SomeSegments):
        return _place_segments(entry, item.value, named)
    if isinstance(item.value, SomePartitions):
        return _add_partitions(entry, item.value)
    statistics_key = item.statistics_key
    found = entry.facets.get(item.facet)
    cached: CachedStatistics = found if found is not None else CachedStatistics()
    if not cached.has_room_for(statistics_key, item.added_weight, max_bytes):
        return None
    if item.is_aggregate:
        cached.add_aggregate(statistics_key, item.value, item.weight, item.key_weight, item.partitions)
    else:
        cached.add(statistics_key, item.value, item.key_weight, item.partitions)
    entry.facets[item.facet] = cached
    return cached.weight


def _place_segments(entry: Entry, some: SomeSegments, named: Set[Values]) -> int | None:
    if any(len(values) != len(some.keys) for values in named):
        return None  # an event with other partition keys
    cached = entry.facets.get(Facet.PARTITIONS)
    if cached is None:
        cached = PartitionSet.bare(some.keys)
    if not cached.place(some.covered, some.segments):
        return None
    for one in some.segments:
        one.last_read = entry.last_read
    cached.mark_missing(values for values in named if some.covered.holds(cached.name_of(values)))
    cached.drop_mostly_missing()
    entry.facets[Facet.PARTITIONS] = cached
    return weight_of(cached)


def _add_partitions(entry: Entry, some: SomePartitions) -> int:
    cached = entry.facets.get(Facet.PARTITIONS)
    if cached is None:
        cached = PartitionSet.bare(some.keys)
    cached.fill(some.requested, some.found)
    # Errors of encoding have been raised before: nothing is held that is not charged (P11).
    entry.facets[Facet.PARTITIONS] = cached
    return weight_of(cached)
