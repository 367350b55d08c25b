"""Puts a part that was read (`Loaded.is_part`) into what a facet holds. Under the cache's lock."""

from __future__ import annotations

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.statistics_by_column import StatisticsHeld
from hms_cache.cache.warming.snapshot_reads import Loaded, SomePartitions
from hms_cache.cache.weights import weight_of

AGGREGATE = "aggregate"
"""Marks a question for statistics merged over partitions."""


def add_part(entry: Entry, item: Loaded) -> int:
    """Puts it into the entry; the new weight of the facet."""
    if isinstance(item.value, SomePartitions):
        return _add_partitions(entry, item.value)
    engine, names, columns, *kind = item.wanted.detail
    held: StatisticsHeld = entry.facets.setdefault(item.facet, StatisticsHeld())
    if kind:
        held.add_aggregate(item.wanted.detail, item.value, item.partitions)
    else:
        held.add((engine, names), columns, item.value, item.partitions)
    return held.weight


def _add_partitions(entry: Entry, some: SomePartitions) -> int:
    held = entry.facets.get(Facet.PARTITIONS)
    if not isinstance(held, PartitionSet):
        held = entry.facets[Facet.PARTITIONS] = PartitionSet(some.keys, (), complete=False)
    held.fill(some.asked, some.found)
    return weight_of(held)
