"""Loads on their way: what events did meanwhile to what each of them reads. Pure state, guarded by the cache's lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hms_cache.cache.entries import Facet, Key
from hms_cache.cache.event_rules import Action
from hms_cache.cache.partitions.segment import Values

MAX_NAMED = 10_000
"""Partitions named by events that one load remembers, some 3 MB; beyond that it is not kept: a table whose partitions
change so fast is loaded once that is over."""


@dataclass(slots=True, eq=False)
class Load:
    """A load on its way: taken before its snapshot, so that every event applied meanwhile is noted on it."""

    key: Key
    facets: frozenset[Facet]
    began_at: int = -1
    """Events up to this one are not noted on the load, so a snapshot must show them all: the position of the cache
    when it began, or the last event that was skipped until then."""
    effects: dict[tuple[Facet, Action], int] = field(default_factory=dict)
    """What events did to these facets, and the last event that did it: whether one came after a fence is all that is
    asked. Bounded: one for each pair."""
    named: dict[Facet, dict[Values, int]] = field(default_factory=dict)
    """Partitions that events named, and the last event that did; bounded by `MAX_NAMED`."""
    abandoned: bool = False
    """The cache was reset: whatever this load read belongs to another history."""

    def note(self, event_id: int, facet: Facet, action: Action, named: tuple[Values, ...] = ()) -> None:
        """An event came that does this. Ids ascend."""
        if action is Action.DROP_NAMED:
            values = self.named.setdefault(facet, {})
            values.update(dict.fromkeys(named, event_id))
            if len(values) > MAX_NAMED:
                values.clear()
                action = Action.DROP
        self.effects[facet, action] = event_id

    def is_touched(self, facet: Facet, fence: int) -> bool:
        """Whether an event after the fence did anything to the facet."""
        return any(event_id > fence for (of, _), event_id in self.effects.items() if of is facet)

    def named_since(self, facet: Facet, fence: int) -> set[Values] | None:
        """The partitions that events after the fence named; None: one did more to the facet than that."""
        for (of, action), event_id in self.effects.items():
            if of is facet and event_id > fence and action is not Action.DROP_NAMED:
                return None
        return {values for values, event_id in self.named.get(facet, {}).items() if event_id > fence}


class RunningLoads:
    """All loads on their way, by subject and by facet: an event asks for those that it concerns, not for all."""

    def __init__(self) -> None:
        self._by_key: dict[Key, set[Load]] = {}
        self._by_facet: dict[Facet, set[Load]] = {facet: set() for facet in Facet}

    def add(self, load: Load) -> None:
        """It begins."""
        self._by_key.setdefault(load.key, set()).add(load)
        for facet in load.facets:
            self._by_facet[facet].add(load)

    def discard(self, load: Load) -> None:
        """It ended; again: nothing."""
        some = self._by_key.get(load.key)
        if some is None or load not in some:
            return
        some.remove(load)
        if not some:
            del self._by_key[load.key]
        for facet in load.facets:
            self._by_facet[facet].discard(load)

    def of(self, key: Key) -> tuple[Load, ...]:
        """Those of a subject."""
        return tuple(self._by_key.get(key, ()))

    def with_facet(self, facet: Facet) -> tuple[Load, ...]:
        """Those that read this facet of any subject."""
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
