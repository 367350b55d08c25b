"""Drops tables. Facts: `HMSHandler.drop_table_core`, `ObjectStore.dropTable` (Hive 4.0)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, and_, bindparam, not_, or_, select
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.names import qualified
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions
from hms_cache.store.contract.tables import UsedByViews
from hms_cache.store.engine.bulk_writes import delete_together
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.text_conditions import begins_with
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.file_access import OUTSIDE, FileAccess, log_files_kept
from hms_cache.store.rows.database_rows import require_database
from hms_cache.store.rows.partition_deletion import PARTITIONS_AT_ONCE, delete_partitions
from hms_cache.store.rows.storage_descriptor_writes import delete_storage_descriptors
from hms_cache.store.rows.table_kinds import is_data_owned, is_parameter_true, is_transactional, is_trash_skipped
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import MATERIALIZED_VIEW, TableRow, read_tables
from hms_cache.store.schema import (
    KEY_CONSTRAINTS,
    MV_CREATION_METADATA,
    MV_TABLES_USED,
    PARTITION_KEYS,
    PARTITIONS,
    SDS,
    TAB_COL_STATS,
    TABLE_PARAMS,
    TBL_COL_PRIVS,
    TBL_PRIVS,
    TBLS,
)
from hms_cache.store.shared_locations import SHARED, locations_in_use, own_locations, partitions_inside
from hms_cache.store.soft_drops import SOFT_DELETE, dropping_txn_id, forget_drops_inside, queue_dropped_table
from hms_cache.store.transactions.name_changes import ObjectName, drop_from_transaction_tables
from hms_cache.store.warehouse import AllowedLocation, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, MetaException, NoSuchObjectException, Table

_TABLES_AT_ONCE = 500
"""Tables read per round when a database is dropped: their events contain whole tables."""

_TABLES_IN_CONDITION = 100
"""Tables whose locations are in one condition: SQLite limits the nesting of expressions to 1,000."""

_CHILDREN_OF_TABLE = (
    TABLE_PARAMS.c.TBL_ID,
    PARTITION_KEYS.c.TBL_ID,
    TBL_PRIVS.c.TBL_ID,
    TBL_COL_PRIVS.c.TBL_ID,
    TAB_COL_STATS.c.TBL_ID,
    KEY_CONSTRAINTS.c.PARENT_TBL_ID,
    KEY_CONSTRAINTS.c.CHILD_TBL_ID,
)

_PARTITION_BATCH = (
    select(PARTITIONS.c.PART_ID, PARTITIONS.c.SD_ID)
    .where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
    .order_by(PARTITIONS.c.PART_ID)
    .limit(PARTITIONS_AT_ONCE)
)


class TableDrops(PartOfStore):
    """`drop_table`."""

    def drop_table(self, name: TableName, *, delete_data: bool, options: EnvironmentOptions = NO_OPTIONS) -> None:
        """See `TableWrites.drop_table`."""
        skip_trash = options.purges

        def drop(transaction: WriteTransaction) -> None:
            found = lock_table(transaction.connection, *name)
            if found is None:
                require_database(transaction.connection, name.in_database)
                raise NoSuchObjectException(f"{name.as_sent} table not found")
            _require_unused(transaction.connection, [found])
            if is_transactional(found.table):
                # If the files stay, a new table in their place must not write under their names.
                drop_from_transaction_tables(
                    transaction.connection,
                    ObjectName(name.database, name.table),
                    catalog=name.catalog,
                    keep_write_ids=not delete_data,
                    keep_table_drops=True,
                )
                own = locations_of_tables(self._context, [found])
                forget_drops_inside(self._context, transaction.connection, name.in_database, name.table, own)
                txn_id = dropping_txn_id(found.table, options, delete_data=delete_data)
                if txn_id > 0:
                    queue_dropped_table(self._context, transaction, found, txn_id, options)
            elsewhere = _partitions_elsewhere(self._context, transaction.connection, [found]) if delete_data else {}
            delete_tables(transaction.connection, [found])
            transaction.append_event(self._context.messages.build_drop_table(found.table))
            if delete_data:
                places = elsewhere.get(found.table_id, ())
                files = FileAccess(self._context, transaction.connection)
                _plan_deletions(self._context, transaction, files, [(found.table, places)], skip_trash=skip_trash)

        run_write(self._database, drop)


def drop_tables_of_database(
    context: StoreContext,
    transaction: WriteTransaction,
    files: FileAccess,
    database: Database,
    database_id: int,
    *,
    delete_data: bool,
    soft_txn_id: int = 0,
    directories: Sequence[Location] = (),
) -> tuple[list[Location], list[Location]]:
    """Drops all tables of a database, materialized views first, with an event each; plans the deletion of their data.

    `soft_txn_id`: the transaction under which tables with `soft_delete` are dropped softly, 0 for none. Returns the
    directories whose data stays (of tables that are external without purge or dropped softly, and those of the
    database's `directories` that contain partitions of such tables), and the directories to delete; a directory that
    contains such a table stays, too. With `delete_data`, earlier soft drops stay queued. Raises UsedByViews if a
    materialized view of another database uses one of the tables.
    """
    connection = transaction.connection
    rows = connection.execute(
        select(TBLS.c.TBL_NAME, TBLS.c.TBL_TYPE).where(TBLS.c.DB_ID == database_id).with_for_update()
    ).all()
    # If the files stay, a new database in their place must not have tables that write under their names.
    drop_from_transaction_tables(
        connection,
        ObjectName(str(database.name)),
        catalog=str(database.catalogName),
        keep_write_ids=not delete_data,
        keep_table_drops=delete_data,
        dropping_txn_id=soft_txn_id,
    )
    views = sorted(name for name, kind in rows if kind == MATERIALIZED_VIEW)
    others = sorted(name for name, kind in rows if kind != MATERIALIZED_VIEW)
    stays: list[Location] = []
    owned: list[tuple[Table, Sequence[Location]]] = []
    for names in (views, others):
        for some in batches(names, _TABLES_AT_ONCE):
            found = read_tables(connection, str(database.catalogName), str(database.name), some)
            _require_unused(connection, found)
            soft = {
                row.table_id
                for row in found
                if soft_txn_id > 0 and is_transactional(row.table) and is_parameter_true(row.table, SOFT_DELETE)
            }
            elsewhere: dict[int, list[Location]] = {}
            if delete_data:
                elsewhere = _partitions_elsewhere(context, connection, found)
                kept = [row for row in found if not is_data_owned(row.table) or row.table_id in soft]
                stays += locations_of_tables(context, kept)
                with_partitions = [row.table_id for row in kept if row.table.partitionKeys]
                stays += partitions_inside(connection, with_partitions, directories)
            delete_tables(connection, found)
            for row in found:
                transaction.append_event(context.messages.build_drop_table(row.table))
                if row.table_id in soft:
                    queue_dropped_table(context, transaction, row, soft_txn_id)
                elif delete_data and is_data_owned(row.table):
                    owned.append((row.table, elsewhere.get(row.table_id, ())))
    files.check_texts(table.sd.location for table, _ in owned if table.sd is not None)
    return stays, _plan_deletions(context, transaction, files, owned, skip_trash=False, stays=stays)


def delete_tables(connection: Connection, tables: Sequence[TableRow]) -> None:
    """Deletes the rows of these tables and of everything that belongs to them: partitions, statistics, constraints,
    privileges. Memory is bounded for any number of partitions."""
    if not tables:
        return
    for row in tables:
        if row.table.partitionKeys:
            _delete_partitions_of(connection, row.table_id)
    ids = [row.table_id for row in tables]
    _delete_creation_metadata(connection, [row for row in tables if row.table.tableType == MATERIALIZED_VIEW])
    try:
        delete_together(connection, [(column, ids) for column in (*_CHILDREN_OF_TABLE, TBLS.c.TBL_ID)])
    except IntegrityError as error:
        raise RetryableConflict("something was added to a table while it was dropped") from error
    delete_storage_descriptors(connection, [row.sd_id for row in tables if row.sd_id is not None])


def _delete_partitions_of(connection: Connection, table_id: int) -> None:
    while True:
        rows: Sequence[Any] = connection.execute(_PARTITION_BATCH, {"table_id": table_id}).all()
        if not rows:
            return
        delete_partitions(connection, [(row.PART_ID, row.SD_ID) for row in rows])


def _delete_creation_metadata(connection: Connection, views: Sequence[TableRow]) -> None:
    for row in views:
        metadata = MV_CREATION_METADATA.c
        condition = (
            (metadata.TBL_NAME == row.name)
            & (metadata.DB_NAME == row.table.dbName)
            & (metadata.CAT_NAME == row.table.catName)
        )
        ids = connection.execute(select(metadata.MV_CREATION_METADATA_ID).where(condition)).scalars().all()
        if ids:
            delete_together(
                connection, [(MV_TABLES_USED.c.MV_CREATION_METADATA_ID, ids), (metadata.MV_CREATION_METADATA_ID, ids)]
            )


def _require_unused(connection: Connection, tables: Sequence[TableRow]) -> None:
    """Raises UsedByViews if a materialized view is built on one of them."""
    ids = [row.table_id for row in tables]
    if not ids:
        return
    metadata = MV_CREATION_METADATA.c
    views = connection.execute(
        select(metadata.CAT_NAME, metadata.DB_NAME, metadata.TBL_NAME)
        .join(MV_TABLES_USED, MV_TABLES_USED.c.MV_CREATION_METADATA_ID == metadata.MV_CREATION_METADATA_ID)
        .where(MV_TABLES_USED.c.TBL_ID.in_(ids))
        .distinct()
    ).all()
    if views:
        raise UsedByViews([TableName(*view) for view in views])


def _partitions_elsewhere(
    context: StoreContext, connection: Connection, tables: Sequence[TableRow]
) -> dict[int, list[Location]]:
    """Locations of partitions outside their table's directory, by TBL_ID, for tables that own their data."""
    owners = [
        row
        for row in tables
        if row.table.partitionKeys and is_data_owned(row.table) and row.table.sd is not None and row.table.sd.location
    ]
    found: dict[int, list[Location]] = {}
    statement = (
        select(PARTITIONS.c.TBL_ID, SDS.c.LOCATION)
        .join(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID)
        .order_by(PARTITIONS.c.PART_ID)
    )
    for some in batches(owners, _TABLES_IN_CONDITION):
        of_some = [
            and_(
                PARTITIONS.c.TBL_ID == row.table_id,
                not_(begins_with(SDS.c.LOCATION, f"{row.table.sd.location}/")),
            )
            for row in some
        ]
        for table_id, location in connection.execute(statement.where(or_(*of_some))):
            if location:
                with suppress(MetaException):  # a location that cannot be parsed cannot be deleted either
                    found.setdefault(table_id, []).append(context.warehouse.location(location))
    return found


def locations_of_tables(context: StoreContext, tables: Iterable[TableRow]) -> list[Location]:
    """Locations of the tables, without those that cannot be parsed."""
    found = []
    for row in tables:
        if row.table.sd and row.table.sd.location:
            with suppress(MetaException):
                found.append(context.warehouse.location(row.table.sd.location))
    return found


def _plan_deletions(
    context: StoreContext,
    transaction: WriteTransaction,
    files: FileAccess,
    tables: Sequence[tuple[Table, Sequence[Location]]],
    *,
    skip_trash: bool,
    stays: Sequence[Location] = (),
) -> list[Location]:
    """Plans to delete, after the commit, the directories of tables that own their data, and of their partitions
    elsewhere.

    Not deleted are directories that contain data of `stays`, directories of partitions that contain the table's own,
    directories that are not allowed, and those that another object uses, which is determined for all at once. Returns
    the directories to delete.
    """
    if not context.warehouse.manages_files:
        return []
    candidates = [
        (table, _deletion_candidates(context, files, table, partitions, stays))
        for table, partitions in tables
        if is_data_owned(table) and table.sd is not None and table.sd.location
    ]
    own = own_locations(
        context, transaction.connection, [(table, each.location) for table, places in candidates for each in places]
    )
    others = [each.location for _, places in candidates for each in places if each.location not in own]
    shared = locations_in_use(context, transaction.connection, others)
    changes = context.warehouse.changes(transaction)
    by_trash: dict[bool, list[AllowedLocation]] = {}
    for table, places in candidates:
        log_files_kept(_is_dropped(table), [each.location for each in places if each.location in shared], SHARED)
        going = [each for each in places if each.location not in shared]
        by_trash.setdefault(skip_trash or is_trash_skipped(table), []).extend(going)
    for is_skipped, going in by_trash.items():
        changes.delete_directories_after_commit(going, skip_trash=is_skipped)
    return [each.location for going in by_trash.values() for each in going]


def _is_dropped(table: Table) -> str:
    return f"table {qualified(table.catName, table.dbName, table.tableName)} is dropped"


def _deletion_candidates(
    context: StoreContext, files: FileAccess, table: Table, partitions: Sequence[Location], stays: Sequence[Location]
) -> list[AllowedLocation]:
    """The directories of one table that may be deleted, before other objects are considered."""
    try:
        own = context.warehouse.location(table.sd.location)
    except MetaException as error:
        log_files_kept(_is_dropped(table), [table.sd.location], str(error.message))
        return []
    candidates: list[AllowedLocation] = []
    outside = []
    files.check_all((*partitions, own))
    for location in dict.fromkeys((*partitions, own)):
        if location != own and (location.is_root or own.spelled_as(location).is_inside(location)):
            continue
        if any(location.holds(other) for other in stays):
            continue
        allowed = files.allow_deletion(location)
        if allowed is None:
            outside.append(location)
        elif location != own and location.is_inside(own) and files.allow_deletion(own) is not None:
            continue  # deleted with the table's directory
        else:
            candidates.append(allowed)
    log_files_kept(_is_dropped(table), outside, OUTSIDE)
    return candidates
