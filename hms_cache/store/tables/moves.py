"""Consequences of a table's new name: its directory, and rows that refer to it by name.

Facts: `HiveAlterHandler.alterTable`, `AcidEventListener` (Hive 4.0).
"""

from __future__ import annotations

from sqlalchemy import Connection, update

from hms_cache.metadata.names import qualified, table_directory_name
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.file_access import FileAccess
from hms_cache.store.replication_sources import is_move_allowed
from hms_cache.store.rows.database_rows import DatabaseRow
from hms_cache.store.rows.table_kinds import is_external, is_parameter_true, is_transactional, is_view
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import MV_CREATION_METADATA
from hms_cache.store.shared_locations import locations_in_use, own_locations
from hms_cache.store.transactions.name_changes import ObjectName, rename_in_transaction_tables
from hms_cache.store.warehouse import AllowedLocation, Location, WarehouseChanges
from hms_cache.thrift_gen.hive_metastore.ttypes import InvalidOperationException, MetaException, Table

_TRANSLATED_TO_EXTERNAL = "TRANSLATED_TO_EXTERNAL"
"""Parameter of tables that a Hive 4 server made external although they were requested as managed."""


def move_directory(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    new: Table,
    databases: tuple[DatabaseRow, DatabaseRow],
) -> tuple[Location, Location] | None:
    """Moves the directory of a renamed table that has its default location. Returns (from, to), or None if nothing is
    moved.

    Not moved: views, external tables, tables with other locations, and tables for which the client gives a new
    location.
    """
    old = row.table
    warehouse = context.warehouse
    if is_view(old) or old.sd is None or not old.sd.location or not warehouse.manages_files:
        return None
    is_translated = all(
        is_parameter_true(table, "EXTERNAL") and is_parameter_true(table, _TRANSLATED_TO_EXTERNAL)
        for table in (old, new)
    )
    if is_external(old) and not is_translated:
        return None
    if str((new.parameters or {}).get("table_type", "")).upper() == "ICEBERG":
        return None
    source = warehouse.location(old.sd.location)
    is_location_kept = not new.sd.location or warehouse.location(new.sd.location) == source
    if not is_location_kept:
        return None
    old_root = _root(context, databases[0], is_external=is_translated)
    if source != old_root.child(table_directory_name(old.tableName)):
        new.sd.location = old.sd.location
        return None
    if not is_move_allowed(databases[0].database, databases[1].database):
        before, after = (qualified(table.catName, table.dbName, table.tableName) for table in (old, new))
        raise MetaException(f"Alter table not allowed for table {before}to new table = {after}")
    path = _root(context, databases[1], is_external=is_translated).child(table_directory_name(new.tableName)).path
    # The new directory is on the same file system, whatever the database's location is.
    destination = Location(source.scheme, source.authority, path)
    files = FileAccess(context, transaction.connection)
    allowed, goal = files.allow(source), files.allow(destination)
    if (
        allowed is None
        or goal is None
        or not allowed.is_below_root
        or not goal.is_below_root
        or (
            source not in own_locations(context, transaction.connection, [(old, source)])
            and locations_in_use(context, transaction.connection, [source], except_table=row.table_id)
        )
    ):
        # As for a table with its own location: the files stay where they are, and so does the location.
        new.sd.location = old.sd.location
        return None
    changes = warehouse.changes(transaction)
    if changes.resume_rename(allowed, goal):
        new.sd.location = str(destination)
        return source, destination
    if changes.is_in_use(allowed, goal):
        name = f"{new.catName}.{new.dbName}.{new.tableName}"
        raise InvalidOperationException(f"New location for this table {name} already exists : {destination}")
    new.sd.location = str(destination)
    if warehouse.exists(allowed):
        _move(changes, old, allowed, goal)
    elif (moved := warehouse.move_records.moved_beside(allowed)) is not None:
        # Moved by a rename that ended without its commit: its server died, or the database ended its transaction and
        # released its locks, so that the directory is moved back while other calls continue.
        place, record = moved
        if not locations_in_use(context, transaction.connection, [place.location]):
            try:
                _move(changes, old, place, goal, origin=allowed)
            except InvalidOperationException as error:
                if warehouse.exists(allowed):
                    raise RetryableConflict(f"{allowed} was moved back at the same moment") from error
                raise
            changes.forget_after_commit(record)
    elif warehouse.exists(allowed):
        _move(changes, old, allowed, goal)
    return source, destination


def _move(
    changes: WarehouseChanges,
    table: Table,
    source: AllowedLocation,
    destination: AllowedLocation,
    origin: AllowedLocation | None = None,
) -> None:
    try:
        changes.rename_directory(source, destination, origin=origin)
    except MetaException as error:
        raise InvalidOperationException(
            f"Alter Table operation for {table.dbName}.{table.tableName} failed to move data due to: "
            f"'{error.message}' See hive log file for details."
        ) from error


def replicated_move(
    context: StoreContext, old: Table, new: Table, options: EnvironmentOptions
) -> tuple[Location, Location] | None:
    """(from, to) of a table whose data replication has put at its new location; None for any other.

    The former directory, which Hive deletes, stays: a user who may alter a table need not be allowed to delete its
    files.
    """
    if not options.has_replicated_elsewhere or old.sd is None or not old.sd.location or not new.sd.location:
        return None
    source, destination = (context.warehouse.location(table.sd.location) for table in (old, new))
    return None if source == destination else (source, destination)


def _root(context: StoreContext, database: DatabaseRow, *, is_external: bool) -> Location:
    warehouse = context.warehouse
    if is_external:
        return warehouse.external_database_location(database.database)
    return warehouse.managed_database_location(database.database)


def rename_elsewhere(connection: Connection, old: Table, new: Table) -> None:
    """Changes the table's name in rows that refer to it by name: materialized views, transactions."""
    metadata = MV_CREATION_METADATA.c
    if old.creationMetadata is not None:
        connection.execute(
            update(MV_CREATION_METADATA)
            .where(metadata.CAT_NAME == old.catName, metadata.DB_NAME == old.dbName, metadata.TBL_NAME == old.tableName)
            .values(DB_NAME=new.dbName, TBL_NAME=new.tableName)
        )
        new.creationMetadata = copied(old.creationMetadata)
        new.creationMetadata.dbName, new.creationMetadata.tblName = new.dbName, new.tableName
    if is_transactional(old) or is_transactional(new):
        rename_in_transaction_tables(
            connection,
            ObjectName(old.dbName, old.tableName),
            ObjectName(new.dbName, new.tableName),
            catalog=old.catName,
            has_min_history_write_id=features_of(connection).has_min_history_write_id,
        )
