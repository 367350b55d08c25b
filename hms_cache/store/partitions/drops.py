"""Drops partitions: rows in bulk, data after the commit.

Facts: `HMSHandler.drop_partitions_req`, `drop_partition_common` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from hms_cache.metadata.names import qualified
from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByAnyExpression,
    ByExpression,
    ByNames,
    ByValues,
    PartitionSelection,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import OUTSIDE, FileAccess, log_files_kept
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import SelectedPartitions, select_by_each, select_for_write
from hms_cache.store.partitions.shared_directories import locations_of_other_partitions
from hms_cache.store.rows.partition_deletion import delete_partitions
from hms_cache.store.rows.table_kinds import is_data_owned, is_transactional, is_trash_skipped
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.shared_locations import SHARED, partition_locations_in_use
from hms_cache.store.soft_drops import deletable_locations, dropping_txn_id, hide_older_files, queue_dropped_partitions
from hms_cache.store.transactions.name_changes import drop_partitions_from_transaction_tables
from hms_cache.store.warehouse import AllowedLocation, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException, Partition


def drop_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    selection: PartitionSelection | ByAnyExpression,
    *,
    delete_data: bool,
    if_exists: bool,
    options: EnvironmentOptions,
) -> list[Partition]:
    """Drops the selected partitions inside a transaction, with the event; returns them as they were before.

    A fixed number of statements per 10,000 partitions.
    """
    table = row.table
    header = partitioned(row)
    connection = transaction.connection
    if isinstance(selection, ByAnyExpression):
        selected = _selected_by_any(context, transaction, header, selection, if_exists)
    else:
        selected = select_for_write(connection, header, selection, context)
        _check_selected(selection, selected, if_exists)
    rows = read_partition_rows(connection, header, selected)
    if not rows.part_ids:
        return []
    partitions = partitions_of_rows(rows)
    delete_partitions(connection, zip(rows.part_ids, rows.sd_ids, strict=True), table_cd_id=row.cd_id)
    if is_transactional(table):
        drop_partitions_from_transaction_tables(
            connection, (table.dbName, table.tableName), rows.names, catalog=table.catName
        )
    for event in context.messages.build_drop_partitions(table, [partition.values for partition in partitions]):
        transaction.append_event(event)
    if delete_data and is_data_owned(table):
        skip_trash = options.purges or is_trash_skipped(table)
        plan_data_deletion(context, transaction, row, rows, skip_trash=skip_trash)
    elif not delete_data and is_transactional(table):
        _drop_softly(context, transaction, row, rows, options)
    return partitions


def _drop_softly(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    rows: PartitionRows,
    options: EnvironmentOptions,
) -> None:
    """Queues the directories for cleaning, and hides their files from a partition that is created in the same place
    later."""
    txn_id = dropping_txn_id(row.table, options, delete_data=False)
    places = _locations_of_no_other(context, transaction, row, rows)
    if txn_id > 0:
        queue_dropped_partitions(context, transaction, row, places, txn_id, options)
    write_id = options.write_id
    if write_id > 0 and context.warehouse.manages_files:
        changes = context.warehouse.changes(transaction)
        files = FileAccess(context, transaction.connection)
        texts = [text for _, text in places]
        may_go = deletable_locations(context, transaction, row, texts, of_partitions=True)
        for text in texts:
            if text in may_go and (place := files.allow_text(text)) is not None:
                hide_older_files(changes, place, write_id, "dropped")


def _locations_of_no_other(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, rows: PartitionRows
) -> list[tuple[str, str]]:
    """Names and locations of the partitions, without locations that a remaining partition uses, too."""
    places = [(name, text) for name, text in zip(rows.names, rows.locations, strict=True) if text]
    warehouse = context.warehouse
    if not warehouse.manages_files or row.table.sd is None or not row.table.sd.location:
        return places
    parsed: dict[str, Location] = {}
    for _, text in places:
        with suppress(MetaException):
            parsed[text] = warehouse.location(text)
    named = [(name, parsed[text]) for name, text in places if text in parsed]
    root = warehouse.location(row.table.sd.location)
    shared = locations_of_other_partitions(context, transaction.connection, row, root, named)
    what = f"partitions of {qualified(row.table.catName, row.table.dbName, row.table.tableName)} are dropped softly"
    log_files_kept(what, sorted(shared, key=str), SHARED)
    return [(name, text) for name, text in places if parsed.get(text) not in shared]


def _selected_by_any(
    context: StoreContext,
    transaction: WriteTransaction,
    header: PartitionedTable,
    selection: ByAnyExpression,
    if_exists: bool,
) -> SelectedPartitions:
    """The partitions that any of the expressions selects. Each must select at least one, as in Hive."""
    expressions = selection.expressions
    found: dict[int, str] = {}
    for one, selected in zip(
        expressions, select_by_each(transaction.connection, header, expressions, context), strict=True
    ):
        _check_selected(one, selected, if_exists)
        found.update(zip(selected.part_ids or (), selected.names or (), strict=True))
    pairs = sorted(found.items(), key=lambda pair: pair[1])
    return SelectedPartitions([part_id for part_id, _ in pairs], [name for _, name in pairs])


def _check_selected(selection: PartitionSelection, selected: SelectedPartitions, if_exists: bool) -> None:
    if selected.has_unknown:
        raise MetaException("Unexpected unknown partitions to drop")
    if if_exists or selected.part_ids is None or isinstance(selection, AllPartitions):
        return
    if isinstance(selection, ByValues) and not selected.part_ids:
        raise NoSuchObjectException(f"partition values=[{', '.join(selection.values)}]")
    if isinstance(selection, ByNames) and len(selected.part_ids) != len(selection.names):
        # As in Hive, a name that is given twice counts as missing the second time.
        raise NoSuchObjectException("Some partitions to drop are missing")
    if isinstance(selection, ByExpression) and not selected.part_ids:
        raise NoSuchObjectException("Some partitions to drop are missing")


def _place_of(location: str | None, parameters: Mapping[str, str]) -> str | None:
    """The directory of a partition. An archived partition is stored in a file; this is the directory that was
    archived."""
    is_archived = parameters.get("is_archived", "").lower() == "true"
    return parameters.get("original_location") if is_archived else location


def plan_data_deletion(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, rows: PartitionRows, *, skip_trash: bool
) -> None:
    """Plans to delete the partitions' directories after the commit, and parent directories that become empty.

    Never deleted are: the table's own directory or one that contains it, whatever the partition's location is; a
    directory in which another partition lies according to its name; outside the table's directory, anything that
    another object uses; anything that is not allowed.
    """
    warehouse, table = context.warehouse, row.table
    if not warehouse.manages_files:
        return
    changes = warehouse.changes(transaction)
    files = FileAccess(context, transaction.connection)
    root = None if table.sd is None or not table.sd.location else warehouse.location(table.sd.location)
    depth = len(table.partitionKeys or ())
    texts = map(_place_of, rows.locations, rows.parameters)
    named = [(name, place) for name, place in zip(rows.names, texts, strict=True) if place]
    above: set[AllowedLocation] = set()
    outside: list[str] = []
    candidates: list[AllowedLocation] = []
    by_name: list[tuple[str, Location]] = []
    allowed_locations = files.allow_texts_by_names([place for _, place in named])
    for (name, place), allowed in zip(named, allowed_locations, strict=True):
        if allowed is None:
            outside.append(place)
            continue
        location = allowed.location
        if not allowed.is_below_root or (root is not None and location.holds(root)):
            continue
        candidates.append(allowed)
        by_name.append((name, location))
        parent = allowed.parent
        for _ in range(depth - 1):
            if root is None or parent is None or not parent.location.is_inside(root):
                break
            above.add(parent)
            parent = parent.parent
    shared = partition_locations_in_use(context, transaction.connection, row, [each.location for each in candidates])
    shared |= locations_of_other_partitions(context, transaction.connection, row, root, by_name)
    changes.delete_directories_after_commit(
        [each for each in candidates if each.location not in shared], skip_trash=skip_trash
    )
    what = f"partitions of {qualified(table.catName, table.dbName, table.tableName)} are dropped"
    log_files_kept(what, outside, OUTSIDE)
    log_files_kept(what, sorted(shared, key=str), SHARED)
    deepest_first = sorted(above, key=lambda each: each.location.path.count("/"), reverse=True)
    changes.remove_empty_directories_after_commit(deepest_first)
