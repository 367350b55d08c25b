"""Statistics of altered partitions: which still hold, which are recomputed, and which are deleted.

Facts: `MetaStoreServerUtils.requireCalStats`, `ObjectStore.alterPartitionNoTxn` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select

from hms_cache.batches import batches
from hms_cache.metadata.column_types import are_columns_included
from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.engine.bulk_writes import (
    IDS_IN_A_STATEMENT,
    delete_ids,
    in_ids,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.partitions.images import StoredPartition, place_of, resolved_location
from hms_cache.store.rows.parameters import (
    FAST_STATISTICS,
    forget_directory_statistics,
    has_fast_statistics,
    remove_columns_from_accuracy,
    set_basic_statistics_accurate,
    update_directory_statistics,
    withdraw_double_counted,
)
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid, check_statistics_change
from hms_cache.store.rows.table_kinds import is_transactional, is_view
from hms_cache.store.schema import PART_COL_STATS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    Partition,
    Table,
)


def update_basic_statistics(
    context: StoreContext,
    files: FileAccess,
    table: Table,
    changes: Sequence[tuple[StoredPartition, Partition]],
    environment_context: EnvironmentOptions,
    *,
    keeps_files: bool = False,
) -> None:
    """Recomputes numFiles and totalSize unless the client sent them and they are unchanged. If a statistics task or a
    user computed them, only the claim of accuracy is set (`MetaStoreServerUtils.requireCalStats`).

    File systems are asked about all partitions in parallel. A new location has other files, unless the partition's
    files were moved with it (`keeps_files`). So they are counted, and no claim about them is kept unless a statistics
    task has made it. Hive keeps figures and claims there, and then answers `count(*)` from them. If this server may not
    list the new directory, the old figures are removed; if it does not exist yet, it has no files. Claims about
    transactional partitions are checked by write ids instead.
    """
    if environment_context.keeps_partition_statistics or is_view(table):
        return
    is_generated = environment_context.statistics_from is not None
    moved = set()
    if not keeps_files and not is_transactional(table):
        moved = {id(new) for old, new in changes if _is_moved(context, table, old.partition, new)}
    updated: list[Partition] = []
    counted: list[Partition] = []
    for old, new in changes:
        is_same = _has_same_fast_statistics(old.partition.parameters, new.parameters)
        is_same = is_same and id(new) not in moved
        if has_fast_statistics(new.parameters) and is_same and not is_generated:
            continue
        updated.append(new)
        if is_same:
            set_basic_statistics_accurate(new.parameters, environment_context.statistics_from == "TASK")
        elif not is_transactional(table) and new.sd is not None:
            counted.append(new)
    files.check_texts(new.sd.location for new in counted)
    places = {id(new): place for new in counted if (place := files.allow_text(new.sd.location)) is not None}
    outside = [new for new in counted if id(new) in moved and id(new) not in places]
    vacant = zip(outside, files.vacant(new.sd.location for new in outside), strict=True)
    places |= {id(new): place for new, place in vacant if place is not None}
    found = dict(zip(places, context.warehouse.directory_statistics_all(list(places.values())), strict=True))
    for new in counted:
        update_directory_statistics(new.parameters, found.get(id(new)), environment_context)
        if id(new) in moved and id(new) not in places and not is_generated:
            forget_directory_statistics(new.parameters)
    if not is_transactional(table):
        for old, new in changes:
            withdraw_double_counted(old.partition.parameters or {}, new.parameters, are_files_listed=True)
    for new in updated:
        new.parameters = dict(sorted(new.parameters.items()))


def _is_moved(context: StoreContext, table: Table, old: Partition, new: Partition) -> bool:
    before, after = place_of(old), place_of(new)
    if before == after or not after:
        return False
    try:
        return not before or str(resolved_location(context, table, before)) != after
    except MetaException:
        return True


def _has_same_fast_statistics(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    try:
        return all(key in old and key in new and int(old[key]) == int(new[key]) for key in FAST_STATISTICS)
    except ValueError:
        return False


_COLUMN_STATISTICS = select(
    PART_COL_STATS.c.CS_ID, PART_COL_STATS.c.PART_ID, PART_COL_STATS.c.COLUMN_NAME, PART_COL_STATS.c.COLUMN_TYPE
).where(in_ids(PART_COL_STATS.c.PART_ID))


def drop_outdated_column_statistics(
    transaction: WriteTransaction, changes: Sequence[tuple[StoredPartition, Partition]]
) -> None:
    """Deletes statistics of columns that were removed or have another type now, and the claims that they are
    accurate."""
    changed = {
        old.part_id: new
        for old, new in changes
        if old.partition.sd is not None
        and new.sd is not None
        and new.sd.cols is not old.partition.sd.cols
        and not are_columns_included(old.partition.sd.cols or (), new.sd.cols or ())
    }
    outdated: list[int] = []
    gone: dict[int, list[str]] = {}
    for batch in batches(sorted(changed), IDS_IN_A_STATEMENT):
        for cs_id, part_id, column, type_name in transaction.connection.execute(
            _COLUMN_STATISTICS, {"ids": list(batch)}
        ):
            kept = {field.name.lower(): (field.type or "").lower() for field in changed[part_id].sd.cols or ()}
            if kept.get(column.lower()) != (type_name or "").lower():
                outdated.append(cs_id)
                gone.setdefault(part_id, []).append(column)
    if outdated:
        delete_ids(transaction.connection, PART_COL_STATS.c.CS_ID, outdated)
    for part_id, columns in gone.items():
        remove_columns_from_accuracy(changed[part_id].parameters, columns)


def read_aborted_write_ids(
    transaction: WriteTransaction, table: Table, stored: Sequence[StoredPartition]
) -> frozenset[int]:
    """Write ids of these partitions of a transactional table whose transactions were aborted."""
    if not is_transactional(table):
        return frozenset()
    write_ids = {one.partition.writeId for one in stored}
    return aborted_write_ids(transaction.connection, (table.catName, table.dbName, table.tableName), write_ids)


def settle_write_id(
    table: Table, old: Partition, new: Partition, valid_write_ids: str | None, aborted: Collection[int]
) -> None:
    """Stores the writer's write id in a transactional table, and removes claims about statistics that it has not seen.

    Raises MetaException if a request without write id or list changes the claims (`ObjectStore.alterPartitionNoTxn`):
    it would not be known for which readers they are valid.
    """
    if is_transactional(table):
        check_statistics_change(
            f"{table.dbName}.{table.tableName}",
            old.parameters or {},
            new.parameters,
            new.writeId,
            valid_write_ids,
            is_column_change=False,
        )
    if is_transactional(table) and valid_write_ids is not None and new.writeId > 0:
        if not are_statistics_valid(
            new.parameters, old.writeId, valid_write_ids, is_complete_writer=True, aborted=aborted
        ):
            set_basic_statistics_accurate(new.parameters, False)
    else:
        new.writeId = old.writeId
