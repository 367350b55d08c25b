"""Compares what is remembered with the database, encoded bytes against encoded bytes.

Each object is read in a snapshot as a load would be, under a slot, so that an event which arrives meanwhile is no
difference. The oracle is the store, never the cache.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_cache.cache import invariants
from hms_cache.cache.entries import DATABASE_FACETS, Facet, is_transactional
from hms_cache.cache.loader import Loader
from hms_cache.cache.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.notifications.scope import DatabaseName, TableName
from hms_cache.store.contract.partitions import AllPartitions
from hms_cache.store.contract.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    NoSuchObjectException,
    Partition,
    SQLAllTableConstraints,
    Table,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.wire import encode_struct


@dataclass(slots=True)
class Report:
    """What was compared, and what differs."""

    tables: int = 0
    partitions: int = 0
    databases: int = 0
    undecided: int = 0
    """Changed while they were compared, or evicted."""
    differences: list[str] = field(default_factory=list)


def verify(
    cache: SharedCache,
    store: SnapshotStore,
    loader: Loader,
    *,
    sample: int | None = None,
    seed: int | None = None,
    keys: Sequence[TableName] | None = None,
    databases: Sequence[DatabaseName] = (),
    progress: Callable[[int, int], bool] | None = None,
) -> Report:
    """Compares all cached tables, or `keys`, or `sample` of them picked by `seed`, after the invariants.

    A table with its constraints, tag and partitions, as far as they are held; then `databases` with the names in them.

    `progress` is told how many of how many are compared, and says whether to go on. Raises DatabaseUnavailable.
    """
    invariants.check(cache)
    if keys is None:
        with cache.lock:
            keys = list(cache.tables)
    if sample is not None and sample < len(keys):
        keys = random.Random(seed).sample(keys, sample)
    report = Report()
    for done, key in enumerate(keys, start=1):
        _compare(cache, store, loader, key, report)
        if progress is not None and not progress(done, len(keys)):
            return report
    for database in databases:
        _compare_database(cache, store, loader, database, report)
    return report


def _compare(cache: SharedCache, store: SnapshotStore, loader: Loader, key: TableName, report: Report) -> None:
    slot = cache.begin_load(key, (Facet.TABLE, Facet.PARTITIONS, Facet.CONSTRAINTS))
    try:
        with cache.lock:
            before = cache.tables.get(key)
            facets = set(before.facets) if before is not None else set()
        with store.snapshot() as snapshot:
            stored = _read_table(store, key, facets)
            fence = snapshot.event_id
        if not loader.bring_up_to(fence):
            report.undecided += 1
            return
        with cache.lock:
            entry = cache.tables.get(key)
            late = any(event_id > fence for event_id, *_ in slot.effects)
            if entry is None or slot.abandoned or late or entry.facets.keys() - facets:
                report.undecided += 1
                return
            held = entry.facets.get(Facet.TABLE)
            constraints, tag = entry.facets.get(Facet.CONSTRAINTS), entry.tag
            held_partitions = entry.facets.get(Facet.PARTITIONS)
            # What is selected stays as it is: the structs are made without the lock.
            selected = held_partitions.all() if isinstance(held_partitions, PartitionSet) else None
            whole = isinstance(held_partitions, PartitionSet) and held_partitions.whole
    finally:
        cache.end_load(slot)
    report.tables += 1
    label = ".".join(key)
    table = stored.table
    if held is not None and (table is None or encode_struct(held) != encode_struct(table)):
        report.differences.append(f"{label}: the table differs: held {held}, database {table}")
    if constraints is not None and constraints != stored.constraints:
        report.differences.append(f"{label}: constraints differ: held {constraints}, database {stored.constraints}")
    # Fewer valid ids than there are only cost a question to the database; more would be a lie (P2).
    if held is not None and tag is not None and (stored.tag is None or not stored.tag.covers(tag)):
        report.differences.append(f"{label}: the write-id tag says too much: held {tag}, database {stored.tag}")
    if not isinstance(held_partitions, PartitionSet) or selected is None:
        return
    structs = dict(zip(selected.names(), selected.structs(), strict=True))
    named = {held_partitions.name_of(partition.values): partition for partition in stored.partitions}
    report.partitions += len(structs)
    report.differences.extend(_partition_differences(label, structs, named, whole))


@dataclass(frozen=True, slots=True)
class _Stored:
    """A table as the database has it; what is not held is not read."""

    table: Table | None
    partitions: Sequence[Partition] = ()
    constraints: SQLAllTableConstraints | None = None
    tag: ValidWriteIdList | None = None


def _read_table(store: SnapshotStore, key: TableName, facets: Collection[Facet]) -> _Stored:
    """Within the snapshot."""
    try:
        table = store.get_table(*key)
        constraints = store.get_table_constraints(*key) if Facet.CONSTRAINTS in facets else None
    except NoSuchObjectException:
        return _Stored(None)
    partitions: Sequence[Partition] = ()
    if table.partitionKeys and Facet.PARTITIONS in facets:
        partitions = store.get_partitions(*key, AllPartitions()).partitions
    text = store.get_write_id_tag(*key) if is_transactional(table) else None
    return _Stored(table, partitions, constraints, ValidWriteIdList.parse(text) if text is not None else None)


def _compare_database(
    cache: SharedCache, store: SnapshotStore, loader: Loader, key: DatabaseName, report: Report
) -> None:
    """The database itself, and the complete sets of its tables' and functions' names (P6)."""
    slot = cache.begin_load(key, DATABASE_FACETS)
    try:
        with store.snapshot() as snapshot:
            try:
                database = store.get_database(*key)
                found = store.get_table_meta(key.catalog, key.database, None)
                functions = store.get_functions(key.catalog, key.database)
            except NoSuchObjectException:
                database, found, functions = None, [], []
            fence = snapshot.event_id
        if not loader.bring_up_to(fence):
            report.undecided += 1
            return
        with cache.lock:
            entry = cache.databases.get(key)
            if entry is None or slot.abandoned or any(event_id > fence for event_id, *_ in slot.effects):
                report.undecided += 1
                return
            held = dict(entry.facets)
    finally:
        cache.end_load(slot)
    report.databases += 1
    stored: dict[Facet, Any] = {
        Facet.DATABASE: database,
        Facet.TABLE_NAMES: {meta.tableName: meta for meta in found if meta.dbName == key.database},
        Facet.FUNCTIONS: functions,
    }
    for facet, value in held.items():
        if value != stored[facet]:
            report.differences.append(f"{'.'.join(key)}: {facet.value} differ: held {value}, database {stored[facet]}")


def _partition_differences(
    label: str, held: dict[str, Partition], stored: dict[str, Partition], whole: bool
) -> Iterable[str]:
    for name, partition in held.items():
        if name not in stored:
            yield f"{label}: partition {name} is held and is not in the database"
        elif encode_struct(partition) != encode_struct(stored[name]):
            yield f"{label}: partition {name} differs: held {partition}, database {stored[name]}"
    if whole:
        for name in stored.keys() - held.keys():
            yield f"{label}: partition {name} is in the database and not in the set that is held as complete"
