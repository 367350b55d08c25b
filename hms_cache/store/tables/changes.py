"""Alters tables: rename with the directory, columns, parameters, compare-and-set.

Facts: `HMSHandler.alter_table_core`, `HiveAlterHandler.alterTable`, `ObjectStore.alterTable` (Hive 4.0).
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.column_types import are_same_columns, is_column_prefix
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.principals import principal_type
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.environment import ANY_WRITER, EnvironmentOptions, ExpectedParameter, Writer
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.file_access import FileAccess
from hms_cache.store.replication_sources import check_kind_stays, check_location_stays
from hms_cache.store.rows.database_rows import DatabaseRow, read_database
from hms_cache.store.rows.parameters import (
    forget_directory_statistics,
    pop_do_not_update,
    set_basic_statistics_accurate,
    set_ddl_time,
    update_directory_statistics,
    withdraw_double_counted,
)
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid, check_statistics_change
from hms_cache.store.rows.storage_descriptor_writes import update_storage_descriptor, write_parameters
from hms_cache.store.rows.storage_descriptors import stored_orders
from hms_cache.store.rows.table_kinds import is_transactional, is_view, require_descriptor, stored_type
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import MV_CREATION_METADATA, MV_TABLES_USED, PARTITION_KEYS, TABLE_PARAMS, TBLS
from hms_cache.store.soft_drops import move_drops_along
from hms_cache.store.tables.change_checks import check_change, check_new_table, require_parts
from hms_cache.store.tables.change_columns import (
    drop_unused_columns,
    move_partition_locations,
    rename_partition_statistics,
    replace_columns,
    update_partition_columns,
    update_table_statistics,
)
from hms_cache.store.tables.conversions import begin_write_ids, require_files_of_hive
from hms_cache.store.tables.creation import (
    insert_creation_metadata,
    insert_partition_keys,
    lower_columns,
    table_id_of,
    table_values,
)
from hms_cache.store.tables.moves import move_directory, rename_elsewhere, replicated_move
from hms_cache.store.tables.transactional import check_altered_table
from hms_cache.store.waiting_deletions import release_location
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CreationMetadata,
    DatabaseType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    PrincipalType,
    Table,
)
from hms_cache.values import frozen


@frozen
class TableChange:
    """The parameters of `alter_table`, except the new table."""

    name: TableName
    writer: Writer = ANY_WRITER
    expected_parameter: ExpectedParameter | None = None


class TableChanges(PartOfStore):
    """`alter_table` and `update_creation_metadata`."""

    def alter_table(
        self,
        name: TableName,
        table: Table,
        *,
        writer: Writer = ANY_WRITER,
        expected_parameter: ExpectedParameter | None = None,
    ) -> None:
        """See `TableWrites.alter_table`."""
        if table is None:
            raise InvalidOperationException("New table is null")
        change = TableChange(name, writer, expected_parameter or writer.options.expected_parameter)
        new = copied(table)
        require_parts(new)
        self._normalize(new, change)
        run_write(
            self._database,
            # Each attempt begins with the client's struct.
            lambda transaction: alter_table(self._context, transaction, change, copied(new)),
        )

    def update_creation_metadata(self, name: TableName, creation_metadata: CreationMetadata) -> None:
        """See `TableWrites.update_creation_metadata`.

        Logs an ALTER_TABLE event, which Hive does not: without it no other server would see the change.
        """
        new_metadata = copied(creation_metadata)
        new_metadata.catName, new_metadata.dbName, new_metadata.tblName = name

        def replace(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            found = lock_table(connection, *name)
            if found is None or found.table.creationMetadata is None:
                raise MetaException(f"{name} is not a materialized view")
            metadata = MV_CREATION_METADATA.c
            ids = (
                connection.execute(
                    select(metadata.MV_CREATION_METADATA_ID).where(
                        metadata.CAT_NAME == name.catalog,
                        metadata.DB_NAME == name.database,
                        metadata.TBL_NAME == name.table,
                    )
                )
                .scalars()
                .all()
            )
            connection.execute(delete(MV_TABLES_USED).where(MV_TABLES_USED.c.MV_CREATION_METADATA_ID.in_(ids)))
            connection.execute(delete(MV_CREATION_METADATA).where(metadata.MV_CREATION_METADATA_ID.in_(ids)))
            insert_creation_metadata(transaction, new_metadata)
            after = copied(found.table)
            after.creationMetadata = new_metadata
            transaction.append_event(self._context.messages.build_alter_table(found.table, after))

        run_write(self._database, replace, ids={"MCreationMetadata": 1})

    def _normalize(self, new: Table, change: TableChange) -> None:
        """Normalizes names, fills in missing fields, and formats the location as Hive does."""
        new.tableName = normalize_identifier(new.tableName)
        new.dbName = normalize_identifier(new.dbName)
        sent = new.catName or change.name.catalog
        new.catName = normalize_catalog(sent)
        if new.catName != change.name.catalog:
            raise InvalidOperationException(
                f"Tables cannot be moved between catalogs, old catalog{change.name.catalog}, new catalog {sent}"
            )
        new.parameters = dict(new.parameters or {})
        set_ddl_time(new.parameters, self._context.ddl_time_s())
        new.partitionKeys = lower_columns(new.partitionKeys)
        new.tableType = stored_type(new)
        new.ownerType = principal_type(new.ownerType) or PrincipalType.USER
        new.rewriteEnabled = bool(new.rewriteEnabled)
        new.temporary = new.colStats = new.privileges = None
        if new.sd is not None:
            new.sd.cols = lower_columns(new.sd.cols)
            new.sd.sortCols = new.sd.sortCols and stored_orders(new.sd.sortCols)
            if new.sd.location:
                new.sd.location = str(self._context.warehouse.location(new.sd.location))


def alter_table(context: StoreContext, transaction: WriteTransaction, change: TableChange, new: Table) -> None:
    """Changes a table to `new` inside a transaction, with all consequences and the event."""
    connection = transaction.connection
    is_renamed = (new.dbName, new.tableName) != (change.name.database, change.name.table)
    row = lock_table(connection, *change.name)
    if row is None:
        raise InvalidOperationException(f"{change.name.as_sent} table not found")
    check_new_table(new, context.settings.catalog)
    require_descriptor(row.table)
    databases = _databases(connection, change, new)
    if is_renamed and table_id_of(connection, databases[1].database_id, new.tableName) is not None:
        raise InvalidOperationException(f"new table {new.dbName}.{new.tableName} already exists")
    if change.expected_parameter is not None:
        check_expected_parameter(connection, row, new, change.expected_parameter)
    old = row.table
    check_location_stays(databases[0].database, old, change.writer.options)
    check_kind_stays(databases[0].database, old, new)
    check_change(old, new, context.settings.catalog, change.writer.options)
    _check_location(context, old, new)
    becomes_acid = check_altered_table(old, new, context.settings.catalog)
    if becomes_acid:
        require_files_of_hive(context, connection, row, new)
    new.createTime = old.createTime
    new.id = old.id
    new.isStatsCompliant = None
    new.creationMetadata = old.creationMetadata
    if is_renamed:
        _store_name(connection, row, new, databases[1].database_id)
    copied_by_others = moved = replicated_move(context, old, new, change.writer.options)
    if moved is None and is_renamed:
        moved = move_directory(context, transaction, row, new, databases)
    if moved is None and (not is_renamed or _is_elsewhere(context, old, new)):
        _update_basic_statistics(context, connection, old, new, change.writer.options)
    if not is_view(new) and not new.sd.location:
        new.sd.location = old.sd.location  # an omitted location is not changed
    _release_new_location(context, connection, old, new)
    _correct_claims(connection, old, new, change)
    cd_id = replace_columns(transaction, row, new)
    _follow_up(context, connection, row, new, change, cd_id, moved)
    new.parameters = dict(sorted(new.parameters.items()))
    _write_row(transaction, row, new, databases[1].database_id, cd_id)
    drop_unused_columns(connection, row, cd_id)
    if is_renamed:
        rename_elsewhere(connection, old, new)
    if moved is not None and copied_by_others is None and is_transactional(old):
        move_drops_along(context, connection, new, *moved)
    if becomes_acid and change.name.catalog == DEFAULT_CATALOG:
        begin_write_ids(connection, new)
    event_write_id = change.writer.event_write_id
    transaction.append_event(context.messages.build_alter_table(old, new, write_id=event_write_id))


def _check_location(context: StoreContext, old: Table, new: Table) -> None:
    """Raises MetaException for a new location with a scheme that is not allowed; an existing one may stay."""
    if is_view(new) or new.sd is None or not new.sd.location:
        return
    if old.sd is None or new.sd.location != old.sd.location:
        location = context.warehouse.location(new.sd.location)
        if old.sd is None or not old.sd.location or str(location) != _normal(context, old.sd.location):
            context.warehouse.require_known_scheme(location)


def _normal(context: StoreContext, text: str) -> str:
    try:
        return str(context.warehouse.location(text))
    except MetaException:
        return text


def _is_elsewhere(context: StoreContext, old: Table, new: Table) -> bool:
    """Whether the client has given the table another location, so that its files are different ones."""
    if not new.sd.location:
        return False
    if old.sd is None or not old.sd.location:
        return True
    return new.sd.location not in (old.sd.location, _normal(context, old.sd.location))


def _release_new_location(context: StoreContext, connection: Connection, old: Table, new: Table) -> None:
    """Makes sure that no cleaner deletes the table's new directory, which results from a new name or comes from the
    client."""
    if not is_view(new) and _is_elsewhere(context, old, new):
        release_location(context, connection, new, context.warehouse.location(new.sd.location))


def _store_name(connection: Connection, row: TableRow, new: Table, database_id: int) -> None:
    """Stores the new name before a directory is moved.

    If two tables get the same name, the unique key admits one; the other waits here and fails with its files in place.
    If directories were moved first, the second one would undo its move over files of the first (P10).
    """
    try:
        values = {"TBL_NAME": new.tableName, "DB_ID": database_id}
        connection.execute(update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(values))
    except IntegrityError as error:
        raise RetryableConflict(f"somebody else took the name {new.dbName}.{new.tableName}") from error


def _databases(connection: Connection, change: TableChange, new: Table) -> tuple[DatabaseRow, DatabaseRow]:
    """The table's current and new database. Raises InvalidOperationException if one does not exist."""
    found: list[DatabaseRow] = []
    for name in (change.name.database, new.dbName):
        row = (
            found[0] if found and name == change.name.database else read_database(connection, change.name.catalog, name)
        )
        if row is None:
            raise InvalidOperationException(
                f"Unable to change partition or table. Object database {change.name.catalog}.{name} does not exist."
                " Check metastore logs for detailed stack."
            )
        if row.database.type == DatabaseType.REMOTE:
            raise MetaException(f"Alter table in REMOTE database {name} is not allowed")
        found.append(row)
    return found[0], found[1]


def check_expected_parameter(connection: Connection, row: TableRow, new: Table, expected: ExpectedParameter) -> None:
    """Raises MetaException unless the parameter is as expected.

    The table's row is locked, so that no server of this program can change the parameter before the commit. A Java
    metastore that alters the table without this lock conflicts with the conditional update of the parameter itself
    (HIVE-28121).
    """
    if expected.value is not None and expected.key not in new.parameters:
        raise MetaException(f"New value for expected key {expected.key} is not set")
    actual = (row.table.parameters or {}).get(expected.key)
    holds = actual == expected.value
    if holds and expected.value is not None:
        parameter = TABLE_PARAMS.c
        holds = (
            connection.execute(
                update(TABLE_PARAMS)
                .where(
                    parameter.TBL_ID == row.table_id,
                    parameter.PARAM_KEY == expected.key,
                    parameter.PARAM_VALUE == expected.value,
                )
                .values(PARAM_VALUE=expected.value)
            ).rowcount
            == 1
        )
    if not holds:
        raise MetaException(
            f"The table has been modified. The parameter value for key '{expected.key}' is "
            f"'{'null' if actual is None else actual}'. The expected was value was "
            f"'{'null' if expected.value is None else expected.value}'"
        )


def _update_basic_statistics(
    context: StoreContext, connection: Connection, old: Table, new: Table, environment_context: EnvironmentOptions
) -> None:
    """Reads the directory of an unpartitioned table again, as Hive does on every alter that does not forbid it.

    If this server may not list the directory, claims are kept only if a statistics task has counted; the figures of
    another directory are removed, unless nothing exists at the new one yet. Otherwise a table that is moved to other
    files would answer `count(*)` with the number of its former rows.

    The parameter DO_NOT_UPDATE_STATS is removed where Hive would read the directory, and kept if the context already
    forbids that: Iceberg and Trino send both (`MetaStoreServerUtils.requireCalStats`, `updateTableStatsSlow`, 4.0.1).
    """
    if is_view(new) or new.partitionKeys:
        return
    if environment_context.keeps_statistics:
        if not is_transactional(new):
            withdraw_double_counted(old.parameters or {}, new.parameters, are_files_listed=False)
        return
    if pop_do_not_update(new.parameters):
        return
    if context.warehouse.manages_files and not new.sd.location:
        raise MetaException(f"The new table {new.dbName}.{new.tableName} has no location")
    found = None
    files = FileAccess(context, connection)
    place = files.allow_text(new.sd.location)
    if place is None and _is_elsewhere(context, old, new):
        [place] = files.vacant([new.sd.location])
    if place is not None and not environment_context.counts_no_files:
        found = context.warehouse.directory_statistics(place)
    update_directory_statistics(new.parameters, found, environment_context)
    if not is_transactional(new):
        withdraw_double_counted(old.parameters or {}, new.parameters, are_files_listed=True)
    if place is None and _is_elsewhere(context, old, new) and environment_context.statistics_from is None:
        forget_directory_statistics(new.parameters)


def _correct_claims(connection: Connection, old: Table, new: Table, change: TableChange) -> None:
    """Keeps the claims about a transactional table's statistics correct. Source: `ObjectStore.alterTable`.

    The table's write id is that of its statistics: it changes only with a list of valid write ids.
    """
    new.writeId = old.writeId
    if not is_transactional(new):
        return
    valid_write_ids = _list_of_the_writer(old, new, change)
    check_statistics_change(
        f"{new.dbName}.{new.tableName}",
        old.parameters,
        new.parameters,
        change.writer.given_write_id,
        valid_write_ids if change.writer.given_write_id is not None else None,
        is_column_change=False,
    )
    if not is_transactional(old):
        set_basic_statistics_accurate(new.parameters, False)
    elif valid_write_ids is not None and change.writer.given_write_id is not None:
        aborted = aborted_write_ids(connection, (old.catName, old.dbName, old.tableName), [old.writeId])
        if not are_statistics_valid(
            old.parameters, old.writeId, valid_write_ids, is_complete_writer=True, aborted=aborted
        ):
            set_basic_statistics_accurate(new.parameters, False)
        new.writeId = change.writer.given_write_id


def _list_of_the_writer(old: Table, new: Table, change: TableChange) -> str | None:
    """The writer's list; None if the change rewrites partitions of the table (`HiveAlterHandler.alterTable`)."""
    if old.partitionKeys:
        if (old.dbName, old.tableName) != (new.dbName, new.tableName):
            return None
        before, after = (old.sd.cols if old.sd is not None else None) or [], new.sd.cols or []
        if not (are_same_columns if change.writer.options.cascades else is_column_prefix)(before, after):
            return None
    return change.writer.valid_write_ids


def _follow_up(
    context: StoreContext,
    connection: Connection,
    row: TableRow,
    new: Table,
    change: TableChange,
    cd_id: int | None,
    moved: tuple[Location, Location] | None,
) -> None:
    """Updates partitions and statistics."""
    features = features_of(connection)
    is_partitioned = bool(row.table.partitionKeys)
    is_renamed = (row.table.dbName, row.table.tableName) != (new.dbName, new.tableName)
    if is_partitioned and moved is not None:
        move_partition_locations(connection, row, *moved)
    if is_partitioned and is_renamed:
        rename_partition_statistics(connection, row, new, features)
    if is_partitioned:
        update_partition_columns(
            connection, row, new, cd_id, cascade=change.writer.options.cascades, settings=context.settings.catalog
        )
    update_table_statistics(connection, row, new, features)


def _write_row(transaction: WriteTransaction, row: TableRow, new: Table, database_id: int, cd_id: int | None) -> None:
    connection = transaction.connection
    old = row.table
    values = {**table_values(new), "DB_ID": database_id}
    if values != {**table_values(old), "DB_ID": row.database_id}:  # usually only parameters have changed
        writable = features_of(connection).writable(TBLS, values)
        connection.execute(update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(writable))
    write_parameters(connection, TABLE_PARAMS, "TBL_ID", row.table_id, old.parameters, new.parameters)
    if _keys(old) != _keys(new):
        connection.execute(delete(PARTITION_KEYS).where(PARTITION_KEYS.c.TBL_ID == row.table_id))
        insert_partition_keys(connection, row.table_id, new.partitionKeys)
    if row.sd_id is None or old.sd is None:
        raise InvalidObjectException(f"Table {old.tableName} has no storage descriptor")
    update_storage_descriptor(
        transaction,
        row.sd_id,
        row.serde_id,
        old.sd,
        new.sd,
        former_column_descriptor_id=row.cd_id,
        column_descriptor_id=cd_id,
    )


def _keys(table: Table) -> list[tuple[str, str, str | None]]:
    return [(key.name, key.type, key.comment) for key in table.partitionKeys or ()]
