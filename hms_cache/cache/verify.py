"""Compares what is remembered with the database, encoded bytes against encoded bytes.

Each object is read in a snapshot as a load would be, under a slot, so that an event which arrives meanwhile is no
difference. The oracle is the store, never the cache.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hms_cache.cache import invariants
from hms_cache.cache.entries import Facet
from hms_cache.cache.loader import Loader
from hms_cache.cache.partition_set import PartitionSet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.notifications.scope import TableName
from hms_cache.store.contract.partitions import AllPartitions
from hms_cache.store.contract.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Partition
from hms_cache.wire import encode_struct


@dataclass(slots=True)
class Report:
    """What was compared, and what differs."""

    tables: int = 0
    partitions: int = 0
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
    progress: Callable[[int, int], bool] | None = None,
) -> Report:
    """Compares all cached tables, or `keys`, or `sample` of them picked by `seed`, after the invariants.

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
            break
    return report


def _compare(cache: SharedCache, store: SnapshotStore, loader: Loader, key: TableName, report: Report) -> None:
    slot = cache.begin_load(key, (Facet.TABLE, Facet.PARTITIONS))
    try:
        with store.snapshot() as snapshot:
            try:
                table = store.get_table(*key)
            except NoSuchObjectException:
                table = None
            partitions = store.get_partitions(*key, AllPartitions()).partitions if table and table.partitionKeys else []
            fence = snapshot.event_id
        if not loader.bring_up_to(fence):
            report.undecided += 1
            return
        with cache.lock:
            entry = cache.tables.get(key)
            late = any(event_id > fence for event_id, *_ in slot.effects)
            if entry is None or slot.abandoned or late:
                report.undecided += 1
                return
            held = entry.facets.get(Facet.TABLE)
            held_partitions = entry.facets.get(Facet.PARTITIONS)
            # What is selected stays as it is: the structs are made without the lock.
            selected = held_partitions.all() if isinstance(held_partitions, PartitionSet) else None
            whole = isinstance(held_partitions, PartitionSet) and held_partitions.whole
    finally:
        cache.end_load(slot)
    report.tables += 1
    label = ".".join(key)
    if held is not None and (table is None or encode_struct(held) != encode_struct(table)):
        report.differences.append(f"{label}: the table differs: held {held}, database {table}")
    if not isinstance(held_partitions, PartitionSet) or selected is None:
        return
    structs = dict(zip(selected.names(), selected.structs(), strict=True))
    stored = {held_partitions.name_of(partition.values): partition for partition in partitions}
    report.partitions += len(structs)
    report.differences.extend(_partition_differences(label, structs, stored, whole))


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
