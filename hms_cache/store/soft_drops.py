"""Soft drops: metadata is deleted at once, files only after the last transaction that may read them.

A client asks for one by a drop without data in a transaction of type SOFT_DELETE, whose id is in the environment
context (`txnId`). The dropped object is queued as ready for cleaning under that transaction. A cleaner removes the
directory when all transactions have ended that were open at the commit. The table's write ids are kept, so that a new
table in the same place does not reuse the names of the old files. Facts: `AcidEventListener`,
`HMSHandler.addTruncateBaseFile` (Hive 4.0).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from hms_cache.metadata.names import DEFAULT_CATALOG, qualified
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.compactions.queue import submit_all_for_cleanup
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import OUTSIDE, FileAccess, log_files_kept
from hms_cache.store.rows.table_kinds import is_transactional, is_trash_skipped
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.shared_locations import SHARED, locations_in_use, partition_locations_in_use
from hms_cache.store.transactions.queued_drops import (
    LOCATION,
    dropped_tables,
    forget_entries,
    properties_of_dropped_partitions,
    store_properties,
)
from hms_cache.store.warehouse import AllowedLocation, Location, Warehouse, WarehouseChanges
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionRequest, CompactionType, MetaException, Table

SOFT_DELETE = "soft_delete"
"""Table parameter: a soft drop of the database drops the table softly."""

DROPPED = "dropped"
"""Value in the metadata of an empty base: the files that it hides were dropped (Hive's
`AcidMetaDataFile.DataFormat`)."""

_ACID_MARKER = "_metadata_acid"
_MARKER_MAX_BYTES = 1 << 16


def dropping_txn_id(table: Table, context: EnvironmentOptions, *, delete_data: bool) -> int:
    """The transaction of a soft drop, or 0 for another drop. Raises MetaException if the id is not a number."""
    return 0 if delete_data or not is_transactional(table) else context.txn_id


def queue_dropped_table(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    txn_id: int,
    environment_context: EnvironmentOptions = NO_OPTIONS,
) -> None:
    """Queues a dropped table's directory for cleaning."""
    table = row.table
    location = None if table.sd is None else table.sd.location
    if location:
        _queue(context, transaction, row, [(None, location)], table.writeId or 0, txn_id, environment_context)


def queue_dropped_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    partitions: Sequence[tuple[str, str | None]],
    txn_id: int,
    environment_context: EnvironmentOptions,
) -> None:
    """Queues the directories of dropped partitions (name, location) for cleaning."""
    places = [(name, location) for name, location in partitions if location]
    _queue(context, transaction, row, places, environment_context.write_id, txn_id, environment_context)


def forget_drops_inside(
    context: StoreContext, connection: Connection, name: DatabaseName, table: str | None, places: Sequence[Location]
) -> None:
    """Removes from the queue the soft drops of a database, or of one table name in it, inside these directories.

    Another drop now deletes or keeps the directories: a cleaner would look for them for ever, or delete what has to
    stay. Entries for other directories remain, because nothing else would delete those. Only the default catalog has
    transactions.
    """
    if name.catalog != DEFAULT_CATALOG:
        return

    def is_inside(text: str | None) -> bool:
        if text is None:
            return True
        try:
            location = context.warehouse.location(text)
        except MetaException:
            return False
        return any(place.holds(location) for place in places)

    entries = dropped_tables(connection, name.database, table)
    forget_entries(connection, [entry_id for entry_id, text in entries.items() if is_inside(text)])


def move_drops_along(
    context: StoreContext, connection: Connection, table: Table, source: Location, destination: Location
) -> None:
    """After a rename that moved a table's directory, updates queued soft drops of its partitions to the new location.

    Otherwise their files would stay for ever, and a cleaner would delete what another table puts at the former
    location, whose partitions the entry does not know. Only the default catalog has transactions.
    """
    if table.catName != DEFAULT_CATALOG:
        return
    for entry_id, properties in properties_of_dropped_partitions(connection, table.dbName, table.tableName).items():
        try:
            place = context.warehouse.location(properties.get(LOCATION, "")).spelled_as(source)
        except MetaException:
            continue
        if place.is_inside(source):
            moved = Location(
                destination.scheme, destination.authority, destination.path + place.path[len(source.path) :]
            )
            store_properties(connection, entry_id, {**properties, LOCATION: str(moved)})


def deletable_locations(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, texts: Sequence[str], *, of_partitions: bool
) -> set[str]:
    """The directories of a table, or of its partitions, that a drop with data would delete.

    A cleaner, which may be Hive's, deletes every directory in the queue. So a directory must not be queued if it is not
    allowed or if other objects use it; nor, for a partition, if it is the table's directory or one around it. All
    directories are returned if this server does not manage files.
    """
    if not context.warehouse.manages_files:
        return set(texts)
    table = row.table
    if of_partitions and table.sd is not None and table.sd.location:
        own = context.warehouse.location(table.sd.location)
        texts = [text for text in texts if not _contains_table(context, text, own)]
    files = FileAccess(context, transaction.connection)
    files.check_texts(texts)
    allowed: dict[str, Location] = {}
    for text in texts:
        found = files.allow_text(text)
        if found is not None and files.allow_deletion(found.location) is not None:
            allowed[text] = found.location
    what = f"{qualified(table.catName, table.dbName, table.tableName)}, or partitions of it, are dropped softly"
    log_files_kept(what, sorted(set(texts) - set(allowed)), OUTSIDE)
    shared = partition_locations_in_use(context, transaction.connection, row, list(allowed.values()))
    log_files_kept(what, sorted(shared, key=str), SHARED)
    return {text for text, location in allowed.items() if location not in shared}


def _contains_table(context: StoreContext, text: str, own: Location) -> bool:
    """Whether this location is, or contains, the table's directory. False for a location that cannot be parsed."""
    try:
        return context.warehouse.location(text).holds(own)
    except MetaException:
        return False


def require_cleanable(context: StoreContext, connection: Connection, request: CompactionRequest) -> None:
    """Raises MetaException if the request is to clean a directory that no drop of this server would delete."""
    text = (request.properties or {}).get(LOCATION)
    if text is None or not context.warehouse.manages_files:
        return
    files = FileAccess(context, connection)
    found = files.allow_text(text)
    reason = None
    if found is None or files.allow_deletion(found.location) is None:
        reason = f"it is {OUTSIDE}"
    elif locations_in_use(context, connection, [found.location]):
        reason = SHARED
    if reason is not None:
        raise MetaException(f"No cleaner may delete {text}: {reason}")


def needs_copy(table: Table, context: EnvironmentOptions, write_id: int | None) -> bool:
    """Whether the files of a renamed partition are copied instead of moved (`HiveAlterHandler.alterPartition`): only
    for a writer, whose write id hides the old files."""
    return is_transactional(table) and write_id is not None and write_id > 0 and context.copies_renamed


def queue_renamed_partition(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    name: str,
    location: str | None,
    write_id: int,
    environment_context: EnvironmentOptions,
) -> None:
    """Queues the old directory of a renamed partition whose files were copied, if a transaction renames it."""
    txn_id = environment_context.txn_id
    if txn_id > 0 and location:
        _queue(context, transaction, row, [(name, location)], write_id, txn_id, environment_context)


def _queue(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    named: Sequence[tuple[str | None, str]],
    write_id: int,
    txn_id: int,
    environment_context: EnvironmentOptions,
) -> None:
    texts, of_partitions = [location for _, location in named], any(name is not None for name, _ in named)
    may_go = deletable_locations(context, transaction, row, texts, of_partitions=of_partitions)
    places = [(name, location) for name, location in named if location in may_go]
    if not places:
        return
    table = row.table
    is_purged = environment_context.purges or is_trash_skipped(table)
    owner = _owner(context, transaction, table)
    requests = [
        CompactionRequest(
            dbname=table.dbName,
            tablename=table.tableName,
            partitionname=name,
            type=CompactionType.MAJOR,
            runas=owner,
            properties={LOCATION: location, "ifPurge": "true" if is_purged else "false"},
        )
        for name, location in places
    ]
    submit_all_for_cleanup(transaction.connection, requests, write_id, txn_id)


def _owner(context: StoreContext, transaction: WriteTransaction, table: Table) -> str | None:
    """The user as which a cleaner works: the owner of the table's directory, otherwise of the table."""
    warehouse = context.warehouse
    place = None if table.sd is None else FileAccess(context, transaction.connection).allow_text(table.sd.location)
    if place is not None:
        try:
            found = warehouse.owner(place)
        except MetaException:
            # The file system is unavailable; the metadata can be dropped anyway.
            found = None
        if found:
            return found
    return str(table.owner) if table.owner else None


def hide_older_files(changes: WarehouseChanges, directory: AllowedLocation, write_id: int, data_format: str) -> None:
    """Writes an empty base of this write id: readers of the directory skip everything written before.

    `data_format`: `truncated` or `dropped` (Hive's `AcidMetaDataFile.DataFormat`).
    """
    changes.write_file(directory.child(_base(write_id), _ACID_MARKER), _marker(data_format))


def remove_interrupted_drop(warehouse: Warehouse, directory: AllowedLocation, write_id: int) -> None:
    """Removes an empty base of the same write id that a server left when it died before its commit.

    If it were copied with the other files, it would hide the copy from readers. Raises MetaException.
    """
    marker = directory.child(_base(write_id), _ACID_MARKER)
    dropped = _marker(DROPPED)
    if warehouse.exists(marker) and warehouse.read_file(marker, _MARKER_MAX_BYTES) == dropped:
        warehouse.delete_directory(directory.child(_base(write_id)), skip_trash=True)


def _base(write_id: int) -> str:
    return f"base_{write_id:07d}"


def _marker(data_format: str) -> bytes:
    return f'{{"thisFileVersion":"0","dataFormat":"{data_format}"}}'.encode()
