"""Directories of partitions that are renamed or moved."""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.read_plans import execute_plan
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.partitions.additions import (
    partitioned,
)
from hms_cache.store.partitions.images import StoredPartition, place_of
from hms_cache.store.partitions.selection import partitions_by_name
from hms_cache.store.partitions.shared_directories import locations_of_other_partitions
from hms_cache.store.rows.table_kinds import is_external, is_parameter_true
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.shared_locations import partition_locations_in_use
from hms_cache.store.soft_drops import (
    DROPPED,
    hide_older_files,
    remove_interrupted_drop,
)
from hms_cache.store.waiting_deletions import release_location, release_locations, waiting_deletions_plan
from hms_cache.store.warehouse import AllowedLocation
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidOperationException,
    Partition,
    Table,
)


def move_directory(
    context: StoreContext,
    transaction: WriteTransaction,
    files: FileAccess,
    row: TableRow,
    old: Partition,
    new: Partition,
    new_name: str,
    copying_write_id: int | None,
) -> None:
    """Sets the location that belongs to the new name, and renames the directory if it exists.

    With `copying_write_id` the directory is copied instead, and the old files are hidden from readers that see this
    write id. The location of a partition does not change if the table is external, or if its directory must not be
    moved because it is not allowed or another object or partition uses it.
    """
    table = row.table
    if new.sd is None or old.sd is None:
        return
    moves = not is_external(table) or is_parameter_true(table, "TRANSLATED_TO_EXTERNAL")
    if not moves or table.sd is None or not table.sd.location or not old.sd.location:
        new.sd.location = old.sd.location
        return
    warehouse = context.warehouse
    source = warehouse.location(old.sd.location)
    root = warehouse.location(table.sd.location).spelled_as(source)
    goal = root.child(*new_name.split("/"))
    if not source.is_same_file_system(goal):
        raise InvalidOperationException(
            f"New table location {goal} is on a different file system than the old location {source}. "
            "This operation is not supported."
        )
    if not warehouse.manages_files:
        new.sd.location = old.sd.location  # the files there cannot be moved
        return
    if source == goal:
        new.sd.location = str(goal)
        return
    place, new_location = files.allow(source), files.allow(goal)
    naming = PartitionNaming([key.name for key in table.partitionKeys or ()])
    if (
        place is None
        or new_location is None
        or not place.is_below_root
        or source == root
        or root.is_inside(source)
        or partition_locations_in_use(context, transaction.connection, row, [source])
        or locations_of_other_partitions(
            context, transaction.connection, row, root, [(naming.name(old.values), source)]
        )
    ):
        new.sd.location = old.sd.location
        return
    changes = warehouse.changes(transaction)
    if copying_write_id is not None:
        changes.remove_interrupted_copy(new_location)
    there = (
        None if changes.resume_rename(place, new_location) else _actual_location(context, transaction, row, root, place)
    )
    if there is not None:
        if changes.is_in_use(there, new_location):
            raise InvalidOperationException(
                f"New location for this table {table.dbName}.{table.tableName} already exists : {goal}"
            )
        if copying_write_id is None or there is not place:
            changes.rename_directory(there, new_location, origin=place)
        else:
            remove_interrupted_drop(warehouse, place, copying_write_id)
            changes.copy_directory(place, new_location)
            hide_older_files(changes, place, copying_write_id, DROPPED)
    new.sd.location = str(goal)
    release_location(context, transaction.connection, table, goal, new_name)


def release_new_locations(
    context: StoreContext,
    transaction: WriteTransaction,
    table: Table,
    names: Sequence[str],
    changes: Sequence[tuple[StoredPartition, Partition]],
) -> None:
    """Makes sure that no cleaner deletes the directories to which this change moves partitions."""
    moved = [
        (name, context.warehouse.location(new.sd.location))
        for name, (old, new) in zip(names, changes, strict=True)
        if new.sd is not None and new.sd.location and new.sd.location != place_of(old.partition)
    ]
    if moved:
        waiting = execute_plan(transaction.connection, waiting_deletions_plan(transaction.connection))
        release_locations(context, transaction.connection, table, moved, waiting)


def _actual_location(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, root: Location, place: AllowedLocation
) -> AllowedLocation | None:
    """The directory of a partition whose row says that it is at `place`; None if there is none.

    A rename that ended without its commit may have moved the directory aside. If another partition has been added at
    that location meanwhile, the directory belongs to that one.
    """
    warehouse = context.warehouse
    if warehouse.is_directory(place):
        return place
    moved = warehouse.move_records.moved_beside(place)
    if moved is None or not moved[0].location.is_inside(root):
        return None
    found, record = moved
    name = found.location.path[len(root.path.rstrip("/")) + 1 :]
    if partitions_by_name(transaction.connection, partitioned(row), [name], is_exact=False):
        return None
    warehouse.changes(transaction).forget_after_commit(record)
    return found
