"""Puts a part that was read (`Loaded.is_part`) into what a facet holds. Under the cache's lock."""

from __future__ import annotations

from typing import Any

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.statistics_by_column import add_columns, weight_of_columns
from hms_cache.cache.warming.snapshot_reads import Loaded, SomePartitions
from hms_cache.cache.weights import weight_of

MOST_STATISTICS_ANSWERS = 64
"""Different statistics questions held for one table: planners ask the same few; beyond it they start anew (P11)."""

AGGREGATE = "aggregate"
"""Marks a question for statistics merged over partitions."""


def add_part(entry: Entry, item: Loaded) -> int:
    """Puts it into the entry; the new weight of the facet."""
    if isinstance(item.value, SomePartitions):
        return _add_partitions(entry, item.value)
    engine, names, columns, *kind = item.wanted.detail
    question = item.wanted.detail if kind else (engine, names)
    held: dict[tuple[Any, ...], Any] = entry.facets.setdefault(item.facet, {})
    if question not in held and len(held) >= MOST_STATISTICS_ANSWERS:
        held.clear()
    if kind:
        held[question] = item.value
    else:
        add_columns(held.setdefault(question, {}), columns, item.value)
    return sum(
        weight_of(asked) + (weight_of_columns(value) if isinstance(value, dict) else weight_of(value))
        for asked, value in held.items()
    )


def _add_partitions(entry: Entry, some: SomePartitions) -> int:
    held = entry.facets.get(Facet.PARTITIONS)
    if not isinstance(held, PartitionSet):
        held = entry.facets[Facet.PARTITIONS] = PartitionSet(some.keys, (), complete=False)
    held.fill(some.asked, some.found)
    return weight_of(held)
