"""Loads what is missing: snapshots with fences, one load at a time for each thing.

A load takes its slots in the cache first. Then it opens one snapshot transaction, which reads the event position F, the
objects and, for transactional tables, their tags. Then A is brought to F or above, and each object is installed unless
an event in (F, A] concerns it.

If several requests need the same, it is read once (single flight): the others wait for the load and then look again,
since what is in the cache is true at A, whoever loaded it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from hms_cache.cache.budget import ONE_STATISTICS_SHARE
from hms_cache.cache.entries import STATISTICS, Entry, Facet, Key
from hms_cache.cache.freshness import Freshness
from hms_cache.cache.loads import Load
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.load_limits import LoadLimits
from hms_cache.cache.warming.loaded_parts import add_part
from hms_cache.cache.warming.name_list_cooldowns import NameListCooldowns
from hms_cache.cache.warming.process_memory import SharedParts
from hms_cache.cache.warming.snapshot_reads import (
    Loaded,
    LoadRequest,
    Reader,
    SnapshotRead,
    SnapshotReads,
    SomeSegments,
)
from hms_cache.cache.weights import weight_of
from hms_cache.computing import scheduler
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.snapshots import StoreReads
from hms_cache.thrift_gen.hive_metastore.ttypes import Database

_log = logging.getLogger(__name__)


class _Running:
    """A running load that others may wait for."""

    __slots__ = ("done", "everything", "requested")

    def __init__(self, requested: tuple[LoadRequest, ...]) -> None:
        self.requested = requested
        self.everything = frozenset(requested)
        self.done = threading.Event()


class Loader:
    """Loads into one cache from one store. `_lock` guards `_running`."""

    def __init__(
        self,
        cache: SharedCache,
        store: StoreReads,
        freshness: Freshness,
        apply: Callable[[int, float], bool],
        report: Callable[[str], None],
        wait_timeout_s: float = 60.0,
        limits: LoadLimits | None = None,
        may_hold: Callable[[Facet], bool] = lambda facet: True,
    ) -> None:
        """`apply` brings the position up, however many events are missing; `report` is called with problems that
        following the log cannot repair. `may_hold`: whether every writer logs changes of a facet. A load of a table
        also reads its database, which is not kept otherwise."""
        self._cache = cache
        self.name_list_cooldowns = NameListCooldowns(freshness.now_s)
        self._reads = SnapshotReads(
            store, cache.budget_bytes, self._cached_database, self._wants_highest_id, self.name_list_cooldowns
        )
        self._freshness = freshness
        self._apply = apply
        self._report = report
        self._wait_timeout_s = wait_timeout_s
        self._lock = threading.Lock()
        self._running: dict[LoadRequest, list[_Running]] = {}
        self._shared_parts = SharedParts()
        self._may_hold = may_hold
        self.limits = limits or LoadLimits()
        """For loads that a call waits for."""
        self.loads = 0
        self.discarded = 0
        self.refused = 0
        """Loads that showed an older state, or another server, than the cache has."""

    def load(self, requested: Iterable[LoadRequest], *, throttled: bool = False, is_few: bool = False) -> bool:
        """Loads what no other thread is loading, and waits for the rest. True if that came in time and everything
        loaded here was kept.

        A read waits for nothing it does not need (P12): what another thread loads together with other things is loaded
        here, too. `throttled`: pauses after each page of partitions, for loads that no call waits for. `is_few`: the
        tables are known to have few partitions.

        Raises what the store raises, except NoSuchObjectException: the lists of names show what does not exist.
        """
        requested = tuple(dict.fromkeys(requested))
        with self._cache.view():
            if any(not one.detail and (one.key, one.facet) in self._cache.too_large for one in requested):
                return False
        mine, others = self._divided(requested)
        try:
            reads = self._reads
            read = reads.read_throttled if throttled else reads.read_few if is_few else reads.read
            kept = self._load(mine.requested, read, is_awaited=not throttled) if mine.requested else True
        finally:
            self._end(mine)
        if others:
            with scheduler.waiting():
                # A load that takes this long is not waited for again.
                kept = all(other.done.wait(self._wait_timeout_s) for other in others) and kept
        return kept

    def _divided(self, requested: Sequence[LoadRequest]) -> tuple[_Running, list[_Running]]:
        """What to load here, beginning with this, and the running loads that bring the rest and nothing else."""
        everything = frozenset(requested)
        others: list[_Running] = []
        mine: list[LoadRequest] = []
        with self._lock:
            for one in requested:
                found = next((other for other in self._running.get(one, ()) if other.everything <= everything), None)
                if found is None:
                    mine.append(one)
                elif found not in others:
                    others.append(found)
            running = _Running(tuple(mine))
            for one in mine:
                self._running.setdefault(one, []).append(running)
        return running, others

    def _end(self, running: _Running) -> None:
        with self._lock:
            for one in running.requested:
                self._running[one].remove(running)
                if not self._running[one]:
                    del self._running[one]
        running.done.set()

    def load_ahead(self, requested: Iterable[LoadRequest], read: Reader | None = None) -> bool:
        """Like `load`, for things that no call waits for yet. A read that asks for some of it meanwhile loads that at
        once, rather than wait for a large or slow load. `read`: how to read; None: here, from the store."""
        return self._load(tuple(dict.fromkeys(requested)), read or self._reads.read, is_awaited=False)

    def _load(self, requested: Sequence[LoadRequest], read: Reader, *, is_awaited: bool) -> bool:
        generation = self._cache.generation
        slots = {key: self._cache.begin_load(key, facets) for key, facets in _facets(requested).items()}
        began_s = self._freshness.now_s()
        try:
            self.loads += 1
            found = _read_twice(read, requested)
            if not self.apply_up_to(found.fence) and (is_awaited or not self._wait_for(found.fence)):
                # A client may have seen more than is applied: the floor keeps later reads from going back (P3).
                if self._is_of_this_history(slots.values(), found):
                    self._freshness.raise_floor(found.fence, generation)
                return False
            if any(slot.abandoned for slot in slots.values()):
                return False
            if not self._is_of_this_history(slots.values(), found) or self._has_unlogged(found):
                return False
            kept = True
            duration_s = self._freshness.now_s() - began_s
            for item in filter(lambda item: self._may_hold(item.facet), found.loaded):
                kept = self._install(slots[item.requested.key], found.fence, item, duration_s) and kept
            if not kept:
                self.discarded += 1
            for key in slots:
                self._renew_block(key)
            return kept and not found.lacks_name_lists
        finally:
            for slot in slots.values():
                self._cache.end_load(slot)

    def _is_of_this_history(self, slots: Iterable[Load], found: SnapshotRead) -> bool:
        """Whether the snapshot shows the database that the cache follows, and a state not older than the begin of the
        load.

        A replica, or a connection that still leads to a demoted primary, may show an older one: events between its
        fence and the begin were applied before the slots were taken, so they were not noted.
        """
        began_at = max(slot.began_at for slot in slots)
        if found.fence >= began_at and self._freshness.is_same_server(found.server_identity):
            return True
        self.refused += 1
        self._freshness.revalidate_connections()
        _log.warning(
            "a load is refused: it was read at event %d of %s, and began when event %d was applied",
            *(found.fence, found.server_identity or "a database without a name", began_at),
        )
        return False

    def _cached_database(self, key: DatabaseName, fence: int) -> Database | None:
        with self._cache.view():
            # What is held may be older than the snapshot. Newer data does no harm: the event behind it discards this
            # load.
            entry = self._cache.databases.get(key) if self._cache.position >= fence else None
            return entry.facets.get(Facet.DATABASE) if entry is not None else None

    def _wants_highest_id(self, fence: int) -> bool:
        with self._cache.view():
            return self._cache.creations.wants_highest_id(fence)

    def apply_up_to(self, fence: int) -> bool:
        """Applies events until A is at the fence; False if that takes too long."""
        if self._cache.position >= fence:
            return True
        with scheduler.waiting():
            return self._freshness.apply_up_to(fence)

    def _wait_for(self, fence: int) -> bool:
        """The same, however many events are missing."""
        with scheduler.waiting():
            return self._apply(fence, self._freshness.apply_timeout_s)

    def _has_unlogged(self, found: SnapshotRead) -> bool:
        """Whether a table was read that a writer created without an event. Then nothing can be kept correct."""
        creations = self._cache.creations
        with self._cache.view():
            unlogged = [
                item
                for item in found.loaded
                if item.facet is Facet.TABLE
                and isinstance(item.requested.key, TableName)
                and creations.is_unlogged(item.requested.key, item.value.id, found.fence)
            ]
            if found.highest_id is not None and self._cache.position >= found.fence:
                creations.found_highest_id(found.highest_id, found.fence)
        for item in unlogged:
            name = ".".join(item.requested.key)
            self._report(f"unlogged writer: no event tells of the creation of {name} (table id {item.value.id})")
        return bool(unlogged)

    def _install(self, slot: Load, fence: int, item: Loaded, duration_s: float) -> bool:
        if item.is_part:
            return self._merge(slot, fence, item)
        facts = item.facts
        if facts is not None:
            self._shared_parts.share(item.value)

        def prepare(entry: Entry) -> None:
            entry.fence, entry.load_s = fence, duration_s
            if facts is not None:
                entry.table_id, entry.tag, entry.encoded_table = facts.table_id, facts.tag, facts.encoded
                entry.is_transactional = facts.is_transactional
                entry.has_commit_parameters = facts.has_commit_parameters

        return self._cache.install(slot, fence, item.facet, item.value, item.weight, prepare)

    def _merge(self, slot: Load, fence: int, item: Loaded) -> bool:
        """Adds to a facet in place, under the lock, unless an event after the fence concerns the facet."""
        cache = self._cache
        with cache.view():
            if slot.abandoned or cache.position < fence:
                return False
            # Of a segment, only the partitions that events named meanwhile are read again.
            named = slot.named_since(item.facet, fence) if isinstance(item.value, SomeSegments) else set()
            if named is None or (not isinstance(item.value, SomeSegments) and slot.is_touched(item.facet, fence)):
                return False
            entry = cache.entry(slot.key)
            if entry is None or Facet.TABLE not in entry.facets:
                return False
            max_bytes = cache.budget_bytes // ONE_STATISTICS_SHARE
            weight = add_part(entry, item, max_bytes, named)
            if weight is None:
                if item.facet in STATISTICS:
                    cache.remember_large_key(slot.key, item.facet, hash(item.requested))
                return False
            cache.recharge(entry, item.facet, weight)
            return True

    def _renew_block(self, key: Key) -> None:
        """Makes new blocks for the segments of a table whose changes outgrow the old ones.

        Takes the cache's lock only at the beginning and at the end. Changes in between are added to the new blocks'
        tails.
        """
        cache = self._cache
        with cache.view():
            entry = cache.tables.get(key) if isinstance(key, TableName) else None
            cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
        if entry is None or cached is None:
            return
        with cache.view():
            outgrown = [one for one in cached.segments if one.is_outgrown]
        for segment in outgrown:
            with cache.view():
                if segment not in cached.segments or not segment.is_outgrown:
                    continue  # it was evicted or joined, or another thread makes it anew
                rebuild = cached.begin_rebuild(segment)
            try:
                rebuild.run()
            finally:
                with cache.view():
                    done = cached.finish_rebuild(rebuild)
                    # After a reset, the entry still has its facets, but is not in the cache: it must not be charged
                    # again.
                    is_cached = cache.entry(key) is entry and entry.facets.get(Facet.PARTITIONS) is cached
                    if done and is_cached:
                        cache.recharge(entry, Facet.PARTITIONS, weight_of(cached))


def _read_twice(read: Reader, requested: Sequence[LoadRequest]) -> SnapshotRead:
    """Tries again if the connection was stale, as the store itself does for direct questions (P9)."""
    try:
        return read(requested)
    except DatabaseUnavailable as error:
        if not error.connection_lost:
            raise
        return read(requested)


def _facets(requested: Iterable[LoadRequest]) -> dict[Key, set[Facet]]:
    """What a load of these may install, by subject: the load of a table may fill in facets of its database."""
    facets: dict[Key, set[Facet]] = {}
    for one in requested:
        facets.setdefault(one.key, set()).add(one.facet)
        if one.facet is Facet.TABLE:
            facets[one.key].add(Facet.EXCLUDED)
        if isinstance(one.key, TableName):
            facets.setdefault(one.key.in_database, set()).update((Facet.DATABASE, Facet.TABLE_NAMES))
    return facets
