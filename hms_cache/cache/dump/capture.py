"""Copies all entries as they are at one position, while events are applied: `capture`.

To copy everything under the lock at once would stop all reads meanwhile. So a few entries are copied at a time, each in
its present state, and those that change afterwards are noted and left out at the end. An entry that no event has
touched meanwhile is also true at the position reached by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

from hms_cache.batches import batches
from hms_cache.cache.entries import Facet, Key
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import StatisticsHeld
from hms_cache.notifications.event_log import LogPosition
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.values import frozen

AT_ONCE: Final = 100
"""Entries that are copied in one go under the lock, which takes some tenths of a millisecond."""

MAX_MISSING: Final = 10_000
"""Copying a set with more missing partitions would take milliseconds under the lock: it is left out."""

CONFIRM_TRIES: Final = 100
CONFIRM_PAUSE_S: Final = 0.02
"""The poller records its position after the cache has taken it, at the end of its step."""


@frozen
class CapturedEntry:
    """One subject, with values that do not change any more."""

    key: Key
    facets: dict[Facet, Any]
    """Partitions as `SetParts`, statistics as `StatisticsParts`."""
    weights: dict[Facet, int]
    tag: ValidWriteIdList | None
    table_id: int | None
    is_transactional: bool
    has_commit_parameters: bool
    encoded_table: bytes | None
    reads: int


@frozen
class Capture:
    """The entries at a position. Tables: the least recently used first."""

    place: LogPosition
    generation: int
    entries: Sequence[CapturedEntry]


def capture(cache: SharedCache, place: Callable[[], LogPosition], wait: threading.Event) -> Capture | None:
    """The entries, and the position at which all of them are true; `place`: the position of the poller that feeds the
    cache.

    None: nothing could be proven later, the cache was reset meanwhile, or `wait` (the end of the server) is set.
    """
    changed: set[Key] = set()
    with cache.view():
        generation = cache.generation
        keys: list[Key] = [*cache.catalogs, *cache.databases, *cache.tables]
        cache.change_notes.append(changed)
    try:
        captured: list[CapturedEntry] = []
        for some in batches(keys, AT_ONCE):
            with cache.view():
                changed.difference_update(some)
                captured.extend(_copies(cache, some))
            if wait.is_set():
                return None
        for _ in range(CONFIRM_TRIES):
            with cache.view():
                if cache.generation != generation:
                    return None
                position, gone = cache.position, frozenset(changed)
            reached = place()
            if reached.event_id == position:
                # Without a row of the log, nothing would prove that the log is still the same.
                return Capture(reached, generation, _without(captured, gone)) if reached.row_digest else None
            if wait.wait(CONFIRM_PAUSE_S):
                return None
        return None
    finally:
        with cache.view():
            cache.change_notes[:] = [one for one in cache.change_notes if one is not changed]


def _copies(cache: SharedCache, keys: Sequence[Key]) -> Iterator[CapturedEntry]:
    """Under the lock."""
    for key in keys:
        entry = cache.entry(key)
        if entry is None:
            continue
        facets = {facet: _copy(value) for facet, value in entry.facets.items() if not _is_left_out(value)}
        yield CapturedEntry(
            key,
            facets,
            {facet: entry.weights.get(facet, 0) for facet in facets},
            entry.tag,
            entry.table_id,
            entry.is_transactional,
            entry.has_commit_parameters,
            entry.encoded_table,
            cache.reads_of(entry),
        )


def _without(captured: Sequence[CapturedEntry], changed: Set[Key]) -> list[CapturedEntry]:
    return [one for one in captured if one.key not in changed]


def _is_left_out(value: Any) -> bool:
    return isinstance(value, PartitionSet) and len(value.missing) > MAX_MISSING


def _copy(value: Any) -> Any:
    """Structs and lists are replaced as a whole when they change; these two change in place."""
    if isinstance(value, PartitionSet | StatisticsHeld):
        return value.parts()
    return value
