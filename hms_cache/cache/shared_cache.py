"""The cache's contents. Pure state: no SQL, no socket, no clock, no thread. One lock guards every attribute and every
entry.

The cache as a whole is true at one position `position` (A): each facet equals what the database contained when exactly
the events up to A had happened. `apply` advances A and drops what the events concern; `install` adds what a snapshot of
the database showed at its fence F, if A has reached F and no event in (F, A] concerns it (P1). Nothing but invalidation
and installation changes it.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from hms_cache.cache.cached_entries import REFILL_KEYS
from hms_cache.cache.entries import (
    CATALOG_FACETS,
    DATABASE_FACETS,
    TABLE_FACETS,
    Entry,
    Facet,
    Key,
    has_commit_parameters,
)
from hms_cache.cache.event_rules import Action
from hms_cache.cache.invalidation import CommitResolver, FollowingEntries
from hms_cache.cache.loads import Load
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.weights import weight_of
from hms_cache.call_context import AppliedPosition
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

_log = logging.getLogger(__name__)


class SharedCache(FollowingEntries):
    """Entries of catalogs, databases and tables, and the position at which they are true.

    `CachedEntries` has the entries and the position, `BudgetedEntries` the memory budget, `FollowingEntries` the effect
    of events. This class installs loads of snapshots, and drops entries on command.
    """

    def __init__(
        self, budget_bytes: int, resolve_commits: CommitResolver | None = None, *, has_peers: bool = False
    ) -> None:
        super().__init__(budget_bytes, resolve_commits, has_peers=has_peers)
        self.generation = 0
        """Number of resets."""
        self.tags_forgotten: OrderedDict[TableName, float] = OrderedDict()
        """When tags were last dropped because lists stayed uncovered (monotonic). Bounded."""
        self.forgetting_listener: Callable[[], None] | None = None
        """Called after something was dropped on command or by a reset, without the lock and before the command answers:
        no event reports the reason, so nothing kept from before may be installed again (P7)."""
        self.resets = 0

    @property
    def applied_position(self) -> AppliedPosition:
        """The position at which memory is true. Under the lock."""
        return AppliedPosition(self.generation, self.position)

    # Loads

    def begin_load(self, key: Key, facets: Iterable[Facet]) -> Load:
        """Begins a load. Must be called before the snapshot is opened, or an event in between would be missed."""
        with self._lock:
            load = Load(key, frozenset(facets), max(self.position, self._skipped_to))
            self.loads.add(load)
        return load

    def end_load(self, load: Load) -> None:
        """Ends a load. Call it in `finally`."""
        with self._lock:
            self.loads.discard(load)

    def install(
        self,
        load: Load,
        fence: int,
        facet: Facet,
        value: Any,
        weight: int,
        prepare: Callable[[Entry], None] | None = None,
    ) -> bool:
        """Installs what a load with fence F has read; False if it must not be kept. A must be at F or above.

        Effects of events in (F, A] discard the value or, if they name partitions only, remove these from it. `prepare`
        sets what belongs to the facet (table id, tag), under the lock.
        """
        with self._lock:
            if load.abandoned or self.position < fence or load not in self.loads or facet not in load.facets:
                return False
            named: list[Values] = []
            for (effect_facet, action), event_id in load.effects.items():
                if event_id <= fence or effect_facet is not facet:
                    continue
                if action is Action.DROP_NAMED and isinstance(value, PartitionSet):
                    named.extend(values for values, last in load.named.get(facet, {}).items() if last > fence)
                elif _concerns(action, value):
                    return False
            if named:
                value.mark_missing(named)
                if value.is_mostly_missing:
                    return False
                weight = weight_of(value)
            if weight > self.budget_bytes:
                self._remember_too_large(load.key, facet)
                return False
            entries = self._entries(load.key)
            entry = entries.get(load.key)
            if entry is None:
                entry = entries[load.key] = Entry(load.key)
                if isinstance(load.key, TableName):
                    entry.reads = self.reads_before.pop(load.key, 0)
            if prepare is not None:
                prepare(entry)
            self._charge(entry, facet, weight)
            entry.facets[facet] = value
            # A change without an event may have included or excluded the table since the other facet was installed.
            for contrary in _contrary(facet) & entry.facets.keys():
                self._remove_facet(entry, contrary)
            if isinstance(value, PartitionSet):
                value.touch(entry.last_read)
            self._changed(entry)
            if isinstance(load.key, TableName):
                self._index(load.key, entry)
            else:
                self._bound_missing(entry)
            self._evict(keep=entry)
            if self.weight > self.budget_bytes:
                self._remove_facet(entry, facet)
                self._remember_too_large(load.key, facet)
                return False
            return True

    # Drops without an event

    def reset(self, reason: str, position: int) -> None:
        """Drops everything and begins again at `position`, after a gap in the log or with another history (P7).

        The tables that were read are passed to the refill, those read last first.
        """
        if self.position_listener is not None:
            self.position_listener(position, True)
        with self._lock:
            _log.info("the cache starts again at event %d: %s", position, reason)
            lost = self._tables_read()
            self._forget_all()
            self.invalidated.update(lost)
            self.creations.begin(position)
            self.position = self._skipped_to = position
            self.generation += 1
            self.resets += 1
        self._notify_forgetting()

    def start_at(self, position: int) -> None:
        """Called before the log is followed: what is installed from now on is true at `position`, which still has to be
        proven (`Poller.start`). If the proof fails, `reset` is called."""
        with self._lock:
            self._forget_all()
            self.creations.begin(position)
            self.position = self._skipped_to = position
            # The floor begins again, and the next read needs a check: before the restart, clients may have seen more
            # (P3).
            self.generation += 1

    def forget_all(self) -> None:
        """Drops everything on command, at the same position. Results of running loads are not kept either."""
        with self._lock:
            self._forget_all()
        self._notify_forgetting()

    def _notify_forgetting(self) -> None:
        """Afterwards: what was copied before is older than the call, and what is copied later does not contain it."""
        if self.forgetting_listener is not None:
            self.forgetting_listener()

    def _forget_all(self) -> None:
        self._clear()
        for load in self.loads:
            load.abandoned = True

    def _tables_read(self) -> list[tuple[TableName, tuple[frozenset[Facet], float]]]:
        """What the refill needs to load the tables again that were read: those with entries, and those that events
        dropped before. The one read last comes last, so that it is loaded first. Bounded by `REFILL_KEYS`."""
        found: dict[TableName, tuple[frozenset[Facet], float]] = dict(self.invalidated)
        for key, entry in self.tables.items():
            # Requests answered by their bytes, which are the most frequent ones, record no time.
            last_read = math.inf if self.answers.collect_used(entry) else entry.last_read
            if last_read:
                found[key] = (frozenset((Facet.TABLE, *entry.facets)) - {Facet.PARTITIONS}, last_read)
        return sorted(found.items(), key=lambda one: one[1][1])[-REFILL_KEYS:]

    def forget(self, key: Key, facets: frozenset[Facet] | None = None) -> None:
        """Drops one subject, or these facets of it, on command (flush, refresh). Results of running loads of it are not
        kept either."""
        with self._lock:
            if facets is None:
                facets = (
                    TABLE_FACETS
                    if isinstance(key, TableName)
                    else (DATABASE_FACETS if isinstance(key, DatabaseName) else CATALOG_FACETS)
                )
            for load in self.loads.of(key):
                if load.facets & facets:
                    load.abandoned = True
            entry = self._entries(key).get(key)
            if entry is not None:
                for facet in facets:
                    self._remove_facet(entry, facet)
        self._notify_forgetting()

    def forget_tag(self, table: TableName, now_s: float, interval_s: float) -> None:
        """Under the lock. Drops the facets that a table's tag belongs to, so that it is read again, at most once in
        `interval_s`."""
        entry = self.tables.get(table)
        if entry is None or now_s - self.tags_forgotten.get(table, float("-inf")) < interval_s:
            return
        self._remove_facet(entry, Facet.TABLE)
        self.tags_forgotten.pop(table, None)
        self.tags_forgotten[table] = now_s
        if len(self.tags_forgotten) > REFILL_KEYS:
            self.tags_forgotten.popitem(last=False)

    def forget_partitions(self, table: TableName, partitions: tuple[Values, ...]) -> None:
        """Drops these partitions of a table on command, and the statistics of all partitions, as `forget` does for a
        subject."""
        with self._lock:
            for load in self.loads.of(table):
                if load.facets & {Facet.PARTITIONS, Facet.PARTITION_STATISTICS}:
                    load.abandoned = True
            entry = self.tables.get(table)
            if entry is not None:
                self._act(entry, Facet.PARTITIONS, Action.DROP_NAMED, partitions)
                self._remove_facet(entry, Facet.PARTITION_STATISTICS)
        self._notify_forgetting()


def _contrary(facet: Facet) -> frozenset[Facet]:
    """Facets of a table that cannot be held together with this one."""
    if facet is Facet.EXCLUDED:
        return TABLE_FACETS - {facet}
    return frozenset({Facet.EXCLUDED}) if facet is Facet.TABLE else frozenset()


def _concerns(action: Action, value: Any) -> bool:
    """Whether an effect after the fence applies to the value that was read."""
    if action is Action.DROP_IF_TRANSACTIONAL and isinstance(value, Table):
        return is_transactional(value)
    if action is Action.DROP_IF_COMMIT_PARAMETERS and isinstance(value, Table):
        return has_commit_parameters(value)
    return action is not Action.KEEP
