"""Copies all entries as of one position of the event log, while events are applied: `capture`.

Copying all of them under the lock would block every read for too long. So a few entries are copied at a time, each in
its current state. Entries that events change afterwards are recorded, and left out at the end. An entry that no event
has changed is also true at the position that has been reached by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final

from hms_cache.batches import batches
from hms_cache.cache.entries import Facet, Key
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import CachedStatistics
from hms_cache.notifications.event_log import LogPosition
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.values import frozen

AT_ONCE: Final = 100
"""Number of entries copied at a time under the lock, which takes some tenths of a millisecond."""

MAX_MISSING: Final = 10_000
"""A set with more missing partitions is left out: copying it would hold the lock for milliseconds."""

CONFIRM_TRIES: Final = 100
CONFIRM_PAUSE_S: Final = 0.02
"""The poller records its position only at the end of its step, after the cache has reached it; `capture` waits for
that."""


@frozen
class CapturedEntry:
    """The copy of one entry; its values no longer change."""

    key: Key
    facets: dict[Facet, Any]
    """Partition sets are held as `SetParts`, statistics as `StatisticsParts`."""
    weights: dict[Facet, int]
    tag: ValidWriteIdList | None
    table_id: int | None
    is_transactional: bool
    has_commit_parameters: bool
    encoded_table: bytes | None
    reads: int


@frozen
class Capture:
    """The entries as of a position. Tables are ordered, the least recently used first."""

    place: LogPosition
    generation: int
    entries: Sequence[CapturedEntry]


def capture(cache: SharedCache, place: Callable[[], LogPosition], wait: threading.Event) -> Capture | None:
    """Returns the entries, and the position at which all of them are true.

    Returns None if the log has no row at that position, so nothing could be proven later; if the poller did not confirm
    the position in time; if the cache was reset meanwhile; or if `wait` is set, which means that the server stops.

    :param place: returns the position of the poller that updates the cache.
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
    """Returns copies of these entries. The caller holds the lock."""
    for key in keys:
        entry = cache.entry(key)
        if entry is None:
            continue
        facets = {facet: _copy(value) for facet, value in entry.facets.items() if not _is_omitted(value)}
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


def _is_omitted(value: Any) -> bool:
    return isinstance(value, PartitionSet) and len(value.missing) > MAX_MISSING


def _copy(value: Any) -> Any:
    """Returns a copy that does not change. Only partition sets and statistics change in place; structs and lists are
    replaced as a whole."""
    if isinstance(value, PartitionSet | CachedStatistics):
        return value.parts()
    return value
