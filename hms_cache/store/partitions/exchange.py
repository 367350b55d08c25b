"""Moves partitions from one table to another with the same columns and keys.

Facts: `HMSHandler.exchange_partitions` (Hive 4.0.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from hms_cache.metadata.column_types import are_same_columns
from hms_cache.metadata.names import qualified
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.partition_names import PartitionNaming, escape_path_name
from hms_cache.notifications.events import PartitionFiles
from hms_cache.store.contract.partitions import ByPartialValues
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.read_plans import execute_plan
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import OUTSIDE, FileAccess
from hms_cache.store.partitions.additions import insert_partitions, partitioned
from hms_cache.store.partitions.reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import partitions_by_name, select_for_write
from hms_cache.store.replication_files import files_of_new_partitions
from hms_cache.store.replication_sources import is_move_allowed
from hms_cache.store.rows.database_rows import require_database
from hms_cache.store.rows.parameters import without_claims_about_columns
from hms_cache.store.rows.partition_deletion import delete_partitions
from hms_cache.store.rows.table_kinds import require_descriptor
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.shared_locations import partition_locations_in_use
from hms_cache.store.waiting_deletions import release_locations, waiting_deletions_plan
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, MetaException, Partition, Table


def exchange_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    specification: Mapping[str, str],
    source_name: TableName,
    destination_name: TableName,
) -> list[Partition]:
    """Moves the partitions that the (partial) specification selects, with rows and directory, inside a transaction.

    Events: ADD_PARTITION of the destination, DROP_PARTITION of the source.
    """
    if source_name.catalog != destination_name.catalog:
        raise MetaException("You cannot move a partition across catalogs")
    connection = transaction.connection
    # Locked in the order of their names, so that two opposite exchanges do not deadlock.
    named = [(destination_name, "destination"), (source_name, "source")]
    found = {role: lock_table(connection, *name) for name, role in sorted(named)}
    destination, source = (_required(found[role], name, role) for name, role in named)
    keys = [key.name for key in source.table.partitionKeys or ()]
    given = {name.lower(): value for name, value in specification.items()}
    values = [given.get(key.lower()) or "" for key in keys]
    if not any(values):
        raise MetaException(f"The partition specification names no partition: {dict(specification)}")
    first_open = next((index for index, value in enumerate(values) if not value), len(values))
    if any(values[first_open:]):
        # Only the directory of the leading keys can be moved.
        raise MetaException(f"The values of the keys before {keys[first_open + 1]} are missing: {dict(specification)}")
    header = partitioned(source)
    selected = select_for_write(connection, header, ByPartialValues(tuple(values)), context)
    rows = read_partition_rows(connection, header, selected)
    if not rows.part_ids:
        shown = ", ".join(f"{key}={value}" for key, value in specification.items())
        raise MetaException(
            f"No partition is found with the values {{{shown}}} for the table {source_name.as_sent.table}"
        )
    _require_same_schema(source.table, destination.table)
    moved = partitions_of_rows(rows)
    naming = PartitionNaming([key.name for key in destination.table.partitionKeys or ()])
    by_name = {naming.name(partition.values): partition for partition in moved}
    in_use = partitions_by_name(connection, partitioned(destination), by_name)
    if in_use:
        first, sent = min(name for _, name in in_use), destination_name.as_sent.table
        raise MetaException(f"The partition {first} already exists in the table {sent}")
    _require_move_allowed(connection, source.table, destination.table)
    root = context.warehouse.location(destination.table.sd.location)
    _require_locations_by_name(context, source.table, by_name)
    for name, partition in by_name.items():
        partition.catName, partition.dbName = destination.table.catName, destination.table.dbName
        partition.tableName = destination.table.tableName
        # The column statistics are deleted with the rows of the source.
        partition.parameters = without_claims_about_columns(partition.parameters)
        if partition.sd is not None and context.warehouse.manages_files:  # otherwise no files are moved
            partition.sd.location = str(root.child(*name.split("/")))
    _move_directory(context, transaction, source, destination, keys, values)
    _release_locations(context, connection, destination.table, by_name)
    delete_partitions(connection, zip(rows.part_ids, rows.sd_ids, strict=True))
    insert_partitions(context, transaction, destination, by_name)
    files = _files(context, connection, destination.table, by_name)
    for event in context.messages.build_add_partitions(destination.table, moved, files):
        transaction.append_event(event)
    for event in context.messages.build_drop_partitions(source.table, [partition.values for partition in moved]):
        transaction.append_event(event)
    return moved


def _release_locations(
    context: StoreContext, connection: Connection, table: Table, moved: Mapping[str, Partition]
) -> None:
    """Makes sure that no cleaner deletes the new directories of the partitions."""
    places = [
        (name, context.warehouse.location(partition.sd.location))
        for name, partition in moved.items()
        if partition.sd is not None and partition.sd.location
    ]
    release_locations(context, connection, table, places, execute_plan(connection, waiting_deletions_plan(connection)))


def _files(
    context: StoreContext, connection: Connection, table: Table, moved: Mapping[str, Partition]
) -> dict[tuple[str, ...], PartitionFiles]:
    """The files that a replica has to copy: it drops the source's partitions together with their files."""
    access = FileAccess(context, connection)
    places = {name: access.allow_text(partition.sd.location) for name, partition in moved.items() if partition.sd}
    allowed = {name: place for name, place in places.items() if place is not None}
    return files_of_new_partitions(context, connection, table, moved, allowed)


def _required(found: TableRow | None, name: TableName, role: str) -> TableRow:
    if found is None:
        raise MetaException(f"The {role} table {name.as_sent} not found")
    require_descriptor(found.table)
    if not found.table.sd.location:
        raise MetaException(f"The {role} table {name} has no location")
    return found


def _require_locations_by_name(context: StoreContext, source: Table, moved: Mapping[str, Partition]) -> None:
    """Raises MetaException if a partition does not lie where its name says: the directory that is moved would not
    contain its files, and Hive would find no files, or old ones, at the new location."""
    warehouse = context.warehouse
    if not warehouse.manages_files:
        return
    root = warehouse.location(source.sd.location)
    for name, partition in moved.items():
        text = None if partition.sd is None else partition.sd.location
        if text and warehouse.location(text).spellings[0] != root.child(*name.split("/")).spellings[0]:
            raise MetaException(f"Unable to move data from {source.sd.location}: the partition {name} lies at {text}")


def _require_move_allowed(connection: Connection, source: Table, destination: Table) -> None:
    if source.dbName == destination.dbName:
        return
    databases = [
        require_database(connection, name_of_table(table).in_database).database for table in (source, destination)
    ]
    if not is_move_allowed(*databases):
        name = qualified(source.catName, source.dbName, source.tableName)
        raise MetaException(f"Exchange partition not allowed for {name} Dest db : {destination.dbName}")


def _require_same_schema(source: Table, destination: Table) -> None:
    def same(one: Sequence[FieldSchema] | None, other: Sequence[FieldSchema] | None) -> bool:
        return are_same_columns(_without_comments(one), _without_comments(other))

    if not same(source.sd.cols, destination.sd.cols) or not same(source.partitionKeys, destination.partitionKeys):
        raise MetaException("The tables have different schemas. Their partitions cannot be exchanged.")


def _without_comments(columns: Sequence[FieldSchema] | None) -> list[FieldSchema]:
    return [FieldSchema(name=column.name, type=column.type) for column in columns or ()]


def _move_directory(
    context: StoreContext,
    transaction: WriteTransaction,
    source: TableRow,
    destination: TableRow,
    keys: Sequence[str],
    values: Sequence[str],
) -> None:
    """Moves the directory of the given values as a whole, with all partitions in it.

    Raises MetaException if directories must not be moved: changing only the rows would leave the files behind.
    """
    warehouse = context.warehouse
    parts = [
        f"{escape_path_name(key.lower())}={escape_path_name(value)}"
        for key, value in zip(keys, values, strict=True)
        if value
    ]
    if not warehouse.manages_files:
        return
    files = FileAccess(context, transaction.connection)
    old_location = warehouse.location(source.table.sd.location).child(*parts)
    new_location = warehouse.location(destination.table.sd.location).child(*parts)
    old, new = files.allow(old_location), files.allow(new_location)
    if old is None or new is None:
        outside = old_location if old is None else new_location
        raise MetaException(f"Unable to move data from {old_location} to {new_location}: {outside} is {OUTSIDE}")
    if partition_locations_in_use(context, transaction.connection, source, [old_location]):
        raise MetaException(f"Unable to move data from {old_location} to {new_location}: other tables lie there, too")
    changes = warehouse.changes(transaction)
    if changes.resume_rename(old, new):
        return
    if not warehouse.is_directory(old):
        # A partition with another location is not moved, and its files must not be forgotten.
        raise MetaException(f"Unable to move data from {old} to {new}: the source directory does not exist")
    if new.parent is not None:
        changes.make_directory(new.parent)
    changes.rename_directory(old, new)
