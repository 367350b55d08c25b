"""Fills what is missing: snapshot loads with fences, one at a time for each thing (DESIGN 4).

A load takes its slots in the cache first, then opens one snapshot transaction, which reads the event position F, the
objects and, for transactional tables, their tags; then A is brought to F or above, and each object is installed
unless an event in (F, A] concerns it. What is asked by several requests at once is read once (single flight): the
others wait for it and then look again, since what is in the cache is true at A whoever loaded it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hms_cache.cache.entries import Entry, Facet, Key, has_commit_parameters, is_transactional
from hms_cache.cache.freshness import Freshness
from hms_cache.cache.partition_set import PartitionSet, SetTooLargeError, Values
from hms_cache.cache.policy import properties_allow
from hms_cache.cache.process_memory import SharedParts
from hms_cache.cache.shared_cache import Load, SharedCache
from hms_cache.cache.statistics_by_column import add_columns, weight_of_columns
from hms_cache.cache.weights import OVERHEAD_BYTES, weight_of, weight_of_table
from hms_cache.notifications.scope import DatabaseName, TableName
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.contract.snapshots import SnapshotStore
from hms_cache.store.errors import DatabaseUnavailable
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException, Table
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire.codec import encode_struct

MATERIALIZED_VIEW = "MATERIALIZED_VIEW"


MOST_STATISTICS_ANSWERS = 64
"""Different statistics questions held for one table: planners ask the same few; beyond it they start anew (P11)."""

AGGREGATE = "aggregate"
"""Marks a question for statistics merged over partitions."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A facet that a read needs. `detail` narrows it: partition values, or (engine, names, columns) of statistics."""

    key: Key
    facet: Facet
    detail: tuple[Any, ...] = ()


@dataclass(slots=True)
class _Loaded:
    wanted: Wanted
    facet: Facet
    value: Any
    weight: int
    prepare: Callable[[Entry], None] | None = None
    merge: Callable[[Entry, Any], int] | None = None
    """For facets that grow: puts the value into what is there, returns the new weight."""


class Loader:
    """Loads into one cache from one store. `_lock` guards `_running`."""

    def __init__(
        self,
        cache: SharedCache,
        store: SnapshotStore,
        freshness: Freshness,
        apply: Callable[[int, float], bool],
        report: Callable[[str], None],
        wait_timeout_s: float = 60.0,
    ) -> None:
        """`apply` brings the position up; `report` is told of what following the log cannot repair."""
        self._cache = cache
        self._store = store
        self._freshness = freshness
        self._apply = apply
        self._report = report
        self._wait_timeout_s = wait_timeout_s
        self._lock = threading.Lock()
        self._running: dict[Wanted, threading.Event] = {}
        self._shared_parts = SharedParts()
        self.loads = 0
        self.discarded = 0

    def load(self, wanted: Iterable[Wanted]) -> bool:
        """Loads what nobody else is loading, waits for the rest; True when everything loaded here was kept.

        Raises what the store raises, but NoSuchObjectException: what is absent shows in the lists of names.
        """
        wanted = tuple(wanted)
        with self._cache.lock:
            if any(not one.detail and (one.key, one.facet) in self._cache.too_large for one in wanted):
                return False
        mine: list[Wanted] = []
        others: list[threading.Event] = []
        done = threading.Event()
        with self._lock:
            for one in dict.fromkeys(wanted):
                running = self._running.get(one)
                if running is not None:
                    others.append(running)
                else:
                    self._running[one] = done
                    mine.append(one)
        try:
            kept = self._load(mine) if mine else True
        finally:
            with self._lock:
                for one in mine:
                    del self._running[one]
            done.set()
        for event in others:
            event.wait(self._wait_timeout_s)
        return kept

    def _load(self, wanted: Sequence[Wanted]) -> bool:
        slots = {key: self._cache.begin_load(key, facets) for key, facets in _facets(wanted).items()}
        began_s = self._freshness.now_s()
        try:
            self.loads += 1
            try:
                fence, loaded, highest_id = self._read_all(wanted)
            except DatabaseUnavailable as error:
                if not error.connection_lost:
                    raise
                # As the store does by itself for what it is asked directly (P9): the connection had gone stale.
                fence, loaded, highest_id = self._read_all(wanted)
            if not self.bring_up_to(fence) or any(slot.abandoned for slot in slots.values()):
                return False
            if self._has_unlogged(loaded, fence, highest_id):
                return False
            kept = True
            took_s = self._freshness.now_s() - began_s
            for item in loaded:
                kept = self._install(slots[item.wanted.key], fence, item, took_s) and kept
            if not kept:
                self.discarded += 1
            for key in slots:
                self._renew_block(key)
            return kept
        finally:
            for slot in slots.values():
                self._cache.end_load(slot)

    def _read_all(self, wanted: Sequence[Wanted]) -> tuple[int, list[_Loaded], int | None]:
        """In one snapshot: its fence, the objects, and the highest id of a table if that is of use."""
        with self._store.snapshot() as snapshot:
            fence = snapshot.event_id
            loaded = [item for one in wanted for item in self._read(one, fence)]
            with self._cache.lock:
                wants_id = self._cache.creations.wants_highest_id(fence)
            return fence, loaded, self._store.get_highest_table_id() if wants_id else None

    def bring_up_to(self, fence: int) -> bool:
        """Applies events until A is at the fence; False when that cannot be done in time."""
        if self._cache.position >= fence or self._apply(fence, self._freshness.apply_timeout_s):
            return True
        # Somebody may have been shown more than is applied: the floor keeps later reads from going back (P3).
        self._freshness.raise_floor(fence)
        return False

    def _has_unlogged(self, loaded: Sequence[_Loaded], fence: int, highest_id: int | None) -> bool:
        """Whether a table was read that a writer made without an event; then nothing can be kept true (DESIGN 3)."""
        creations = self._cache.creations
        with self._cache.lock:
            unlogged = [
                item
                for item in loaded
                if item.facet is Facet.TABLE
                and isinstance(item.wanted.key, TableName)
                and creations.is_unlogged(item.wanted.key, item.value.id, fence)
            ]
            if highest_id is not None and self._cache.position >= fence:
                creations.found_highest_id(highest_id, fence)
        for item in unlogged:
            name = ".".join(item.wanted.key)
            self._report(f"unlogged writer: no event tells of the creation of {name} (table id {item.value.id})")
        return bool(unlogged)

    def _install(self, slot: Load, fence: int, item: _Loaded, took_s: float) -> bool:
        if item.merge is not None:
            return self._merge(slot, fence, item)

        def prepare(entry: Entry) -> None:
            entry.fence, entry.load_s = fence, took_s
            if item.prepare is not None:
                item.prepare(entry)

        return self._cache.install(slot, fence, item.facet, item.value, item.weight, prepare)

    def _merge(self, slot: Load, fence: int, item: _Loaded) -> bool:
        """Adds to a facet in place, under the lock, unless an event after the fence concerns the facet."""
        cache = self._cache
        assert item.merge is not None
        with cache.lock:
            touched = any(event_id > fence and facet is item.facet for event_id, facet, _, _ in slot.effects)
            if slot.abandoned or cache.position < fence or touched:
                return False
            entry = cache._entries(slot.key).get(slot.key)
            if entry is None or Facet.TABLE not in entry.facets:
                return False
            cache.recharge(entry, item.facet, item.merge(entry, item.value))
            return True

    def _renew_block(self, key: Key) -> None:
        """Makes a new block of a table's partitions where changes have outgrown the old one.

        Under the cache's lock at its beginning and at its end only: changes meanwhile are taken over.
        """
        cache = self._cache
        with cache.lock:
            entry = cache.tables.get(key) if isinstance(key, TableName) else None
            held = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
            if not isinstance(held, PartitionSet) or not held.is_outgrown:
                return
            rebuild = held.begin_rebuild()
        try:
            rebuild.run()
        finally:
            with cache.lock:
                done = held.finish_rebuild(rebuild)
                if done and entry is not None and entry.facets.get(Facet.PARTITIONS) is held:
                    cache.recharge(entry, Facet.PARTITIONS, weight_of(held))

    # Reading, within the snapshot

    def _read(self, one: Wanted, fence: int) -> list[_Loaded]:
        match one.facet:
            case Facet.TABLE:
                return self._read_table(one, fence)
            case Facet.PARTITIONS:
                return self._read_partitions(one, fence)
            case Facet.TABLE_STATISTICS | Facet.PARTITION_STATISTICS:
                return self._read_statistics(one)
            case _:
                value = self._read_plain(one)
                return [] if value is None else [_Loaded(one, one.facet, value, OVERHEAD_BYTES + weight_of(value))]

    def _read_plain(self, one: Wanted) -> Any:
        key = one.key
        try:
            if isinstance(key, TableName):
                return self._store.get_table_constraints(*key)
            if isinstance(key, DatabaseName):
                if one.facet is Facet.DATABASE:
                    return self._store.get_database(*key)
                if one.facet is Facet.TABLE_NAMES:
                    found = self._store.get_table_meta(key.catalog, key.database, None)
                    return {meta.tableName: meta for meta in found if meta.dbName == key.database}
                return self._store.get_functions(key.catalog, key.database)
            return self._store.get_database_names(key)
        except NoSuchObjectException:
            return None

    def _read_table(self, one: Wanted, fence: int) -> list[_Loaded]:
        key = one.key
        assert isinstance(key, TableName)
        names = Wanted(key.in_database, Facet.TABLE_NAMES)
        try:
            table = self._store.get_table(*key)
        except NoSuchObjectException:
            # Absence is answered from complete names only (P6).
            return self._read(names, fence)
        database = Wanted(key.in_database, Facet.DATABASE)
        loaded: list[_Loaded] = []
        with self._cache.lock:
            # What is held may be older than the snapshot; newer is no harm, that event discards this load.
            entry = self._cache.databases.get(key.in_database) if self._cache.position >= fence else None
            held = entry.facets.get(Facet.DATABASE) if entry is not None else None
        if held is None:
            loaded = self._read(database, fence)
            held = loaded[0].value if loaded else None
        allowed = properties_allow(table.parameters, held.parameters if held is not None else None)
        # The tables that a materialized view reads may get other names, and no event names the view (research d.5).
        if not allowed or table.tableType == MATERIALIZED_VIEW:
            return [*loaded, _Loaded(one, Facet.EXCLUDED, True, OVERHEAD_BYTES)]
        self._shared_parts.share(table)
        tag = self._tag(key, table)
        transactional = is_transactional(table)
        commit_parameters = has_commit_parameters(table)
        encoded = encode_struct(table)

        def prepare(entry: Entry) -> None:
            entry.table_id, entry.tag, entry.encoded_table = table.id, tag, encoded
            entry.is_transactional, entry.has_commit_parameters = transactional, commit_parameters
            entry.facets.pop(Facet.EXCLUDED, None)

        return [*loaded, _Loaded(one, Facet.TABLE, table, weight_of_table(encoded), prepare)]

    def _tag(self, key: TableName, table: Table) -> ValidWriteIdList | None:
        if not is_transactional(table):
            return None
        text = self._store.get_write_id_tag(*key)
        return ValidWriteIdList.parse(text) if text is not None else None

    def _read_partitions(self, one: Wanted, fence: int) -> list[_Loaded]:
        key = one.key
        assert isinstance(key, TableName)
        try:
            table = self._store.get_table(*key)
        except NoSuchObjectException:
            return self._read(Wanted(key.in_database, Facet.TABLE_NAMES), fence)
        keys = [(field.name, field.type) for field in table.partitionKeys or ()]
        if not one.detail:
            budget = self._cache.budget_bytes
            pages = self._store.read_partition_pages(*key)
            try:
                whole = PartitionSet.from_pages(keys, pages, complete=True, most_bytes=budget)
            except SetTooLargeError:
                return [_Loaded(one, Facet.PARTITIONS, PartitionSet(keys, (), complete=False), budget + 1)]
            return [_Loaded(one, Facet.PARTITIONS, whole, weight_of(whole))]
        asked: tuple[Values, ...] = one.detail
        shape = PartitionSet(keys, (), complete=False)
        try:
            names = tuple(shape.name_of(values) for values in asked)
        except MetaException:
            return []
        found = self._store.get_partitions(*key, ByNames(names)).partitions

        def merge(entry: Entry, value: Any) -> int:
            held = entry.facets.get(Facet.PARTITIONS)
            if not isinstance(held, PartitionSet):
                held = entry.facets[Facet.PARTITIONS] = shape
            held.fill(asked, value)
            return weight_of(held)

        return [_Loaded(one, Facet.PARTITIONS, found, 0, merge=merge)]

    def _read_statistics(self, one: Wanted) -> list[_Loaded]:
        engine, names, columns, *kind = one.detail
        if kind:
            return self._read_aggregate(one)
        key = one.key
        assert isinstance(key, TableName)
        of_partitions = one.facet is Facet.PARTITION_STATISTICS
        found = self._store.read_column_statistics(*key, names if of_partitions else None, columns, engine=engine)

        def merge(entry: Entry, value: Any) -> int:
            held = _room_for(entry, one.facet, (engine, names))
            add_columns(held.setdefault((engine, names), {}), columns, value)
            return _weight_of_statistics(held)

        return [_Loaded(one, one.facet, found, 0, merge=merge)]

    def _read_aggregate(self, one: Wanted) -> list[_Loaded]:
        key = one.key
        assert isinstance(key, TableName)
        engine, names, columns, *_ = one.detail
        found = self._store.get_aggregate_statistics(*key, names, columns, engine=engine)

        def merge(entry: Entry, value: Any) -> int:
            held = _room_for(entry, one.facet, one.detail)
            held[one.detail] = value
            return _weight_of_statistics(held)

        return [_Loaded(one, one.facet, found, 0, merge=merge)]


def _room_for(entry: Entry, facet: Facet, question: tuple[Any, ...]) -> dict[tuple[Any, ...], Any]:
    held: dict[tuple[Any, ...], Any] = entry.facets.setdefault(facet, {})
    if question not in held and len(held) >= MOST_STATISTICS_ANSWERS:
        held.clear()
    return held


def _weight_of_statistics(held: dict[tuple[Any, ...], Any]) -> int:
    return sum(
        weight_of(asked) + (weight_of_columns(value) if isinstance(value, dict) else weight_of(value))
        for asked, value in held.items()
    )


def _facets(wanted: Iterable[Wanted]) -> dict[Key, set[Facet]]:
    """What a load of these may install, by subject: a table's load may fill in parts of its database."""
    facets: dict[Key, set[Facet]] = {}
    for one in wanted:
        facets.setdefault(one.key, set()).add(one.facet)
        if one.facet is Facet.TABLE:
            facets[one.key].add(Facet.EXCLUDED)
        if isinstance(one.key, TableName):
            facets.setdefault(one.key.in_database, set()).update((Facet.DATABASE, Facet.TABLE_NAMES))
    return facets
