"""Evicts random parts of a cache, as a budget or changes do. Reads may then cost more, but must return the same
answers."""

from __future__ import annotations

import random
from dataclasses import replace

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.event_rules import Action
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.weights import weight_of


def evict_at_random(cache: SharedCache, chance: random.Random) -> None:
    """Evicts a table, a facet, some partitions, a segment, or whatever exceeds a smaller budget. As with other
    evictions, loads in progress continue."""
    with cache.view():
        entries = sorted(cache.tables.values(), key=lambda one: one.key)
        if not entries:
            return
        entry = chance.choice(entries)
        match chance.randrange(5):
            case 0:
                for facet in list(entry.facets):
                    cache._remove_facet(entry, facet)
            case 1:
                cache._remove_facet(entry, chance.choice(sorted(entry.facets, key=lambda one: one.value)))
            case 2:
                _miss_some(cache, entry, chance)
            case 3:
                _evict_a_segment(cache, entry, chance)
            case _:
                whole = cache.budget_bytes
                cache.budget_bytes = chance.randrange(cache.weight + 1)
                cache._evict(keep=replace(entry))  # none of the entries
                cache.budget_bytes = whole


def _evict_a_segment(cache: SharedCache, entry: Entry, chance: random.Random) -> None:
    held = entry.facets.get(Facet.PARTITIONS)
    if isinstance(held, PartitionSet) and held.is_segmented:
        held.evict(chance.choice(held.segments))
        cache.recharge(entry, Facet.PARTITIONS, weight_of(held))


def _miss_some(cache: SharedCache, entry: Entry, chance: random.Random) -> None:
    held = entry.facets.get(Facet.PARTITIONS)
    if not isinstance(held, PartitionSet):
        return
    some = [tuple(one) for one in sorted(held.all().values()) if chance.random() < 0.3]
    if some:
        cache._act(entry, Facet.PARTITIONS, Action.DROP_NAMED, tuple(some))
