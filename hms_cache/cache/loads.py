"""Running loads, and what events did meanwhile to what each of them reads. Pure state, guarded by the cache's lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hms_cache.cache.entries import Facet, Key
from hms_cache.cache.event_rules import Action
from hms_cache.cache.partitions.segment import Values

MAX_NAMED = 10_000
"""Partitions named by events that one load remembers, about 3 MB. Beyond that, its result is discarded: a table whose
partitions change so fast is loaded later."""


@dataclass(slots=True, eq=False)
class Load:
    """A running load. It is created before its snapshot, so that every event applied meanwhile is noted on it."""

    key: Key
    facets: frozenset[Facet]
    began_at: int = -1
    """Events up to this one are not noted on the load, so its snapshot must show all of them: the position of the cache
    when it began, or the last event that was skipped until then."""
    effects: dict[tuple[Facet, Action], int] = field(default_factory=dict)
    """Effects of events on these facets, with the last event that had each: it only matters whether one came after a
    fence. Bounded: one for each pair."""
    named: dict[Facet, dict[Values, int]] = field(default_factory=dict)
    """Partitions that events named, with the last event that did; bounded by `MAX_NAMED`."""
    abandoned: bool = False
    """The cache was reset: everything that this load read belongs to another history."""

    def note(self, event_id: int, facet: Facet, action: Action, named: tuple[Values, ...] = ()) -> None:
        """Notes an event with this effect. Ids ascend."""
        if action is Action.DROP_NAMED:
            values = self.named.setdefault(facet, {})
            values.update(dict.fromkeys(named, event_id))
            if len(values) > MAX_NAMED:
                values.clear()
                action = Action.DROP
        self.effects[facet, action] = event_id

    def is_touched(self, facet: Facet, fence: int) -> bool:
        """Whether an event after the fence had an effect on the facet."""
        return any(event_id > fence for (of, _), event_id in self.effects.items() if of is facet)

    def named_since(self, facet: Facet, fence: int) -> set[Values] | None:
        """The partitions that events after the fence named; None: an event did more to the facet."""
        for (of, action), event_id in self.effects.items():
            if of is facet and event_id > fence and action is not Action.DROP_NAMED:
                return None
        return {values for values, event_id in self.named.get(facet, {}).items() if event_id > fence}


class RunningLoads:
    """All running loads, by subject and by facet, so that an event finds those that it concerns."""

    def __init__(self) -> None:
        self._by_key: dict[Key, set[Load]] = {}
        self._by_facet: dict[Facet, set[Load]] = {facet: set() for facet in Facet}

    def add(self, load: Load) -> None:
        """A load begins."""
        self._by_key.setdefault(load.key, set()).add(load)
        for facet in load.facets:
            self._by_facet[facet].add(load)

    def discard(self, load: Load) -> None:
        """A load has ended. May be called again."""
        some = self._by_key.get(load.key)
        if some is None or load not in some:
            return
        some.remove(load)
        if not some:
            del self._by_key[load.key]
        for facet in load.facets:
            self._by_facet[facet].discard(load)

    def of(self, key: Key) -> tuple[Load, ...]:
        """Loads of a subject."""
        return tuple(self._by_key.get(key, ()))

    def with_facet(self, facet: Facet) -> tuple[Load, ...]:
        """Loads of this facet of any subject."""
        return tuple(self._by_facet[facet])

    def subjects(self) -> tuple[Key, ...]:
        """The subjects that are being loaded."""
        return tuple(self._by_key)

    def __contains__(self, load: Load) -> bool:
        return load in self._by_key.get(load.key, ())

    def __iter__(self) -> Iterator[Load]:
        for some in tuple(self._by_key.values()):
            yield from tuple(some)

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))
