"""Creates tables. Facts: `HMSHandler.create_table_core`, `ObjectStore.createTable` (Hive 4.0)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.column_types import column_names, invalid_type
from hms_cache.metadata.names import DEFAULT_CATALOG, is_valid_name, normalize_catalog, normalize_identifier
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.principals import USER, principal_type, principal_type_name
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.environment import NO_OPTIONS, EnvironmentOptions
from hms_cache.store.engine.bulk_writes import insert_rows, insert_together
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.read_plans import Plan, PlannedQuery, execute_plan, fetch, side_by_side
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.file_access import FileAccess
from hms_cache.store.objects.constraints import add_constraints_of_new_table
from hms_cache.store.replication_files import files_of_new_table
from hms_cache.store.rows.database_rows import DatabaseRow, read_database
from hms_cache.store.rows.parameters import (
    claim_nothing_there,
    has_fast_statistics,
    pop_do_not_update,
    pop_request_for_new_table,
    set_ddl_time,
    update_directory_statistics,
)
from hms_cache.store.rows.storage_descriptor_writes import insert_storage_descriptors
from hms_cache.store.rows.storage_descriptors import stored_orders
from hms_cache.store.rows.table_kinds import is_external, is_parameter_true, is_transactional, is_view, stored_type
from hms_cache.store.rows.table_rows import MANAGED_TABLE, MATERIALIZED_VIEW, read_table, read_tables
from hms_cache.store.schema import MV_CREATION_METADATA, MV_TABLES_USED, PARTITION_KEYS, TABLE_PARAMS, TBL_PRIVS, TBLS
from hms_cache.store.soft_drops import SOFT_DELETE
from hms_cache.store.statistics.of_tables import write_table_statistics
from hms_cache.store.statistics.writes import writer_of_new_object
from hms_cache.store.tables.transactional import check_created_table
from hms_cache.store.waiting_deletions import release_locations, waiting_deletions_plan
from hms_cache.store.warehouse import AllowedLocation, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    ColumnStatistics,
    CreationMetadata,
    DatabaseType,
    FieldSchema,
    InvalidObjectException,
    MetaException,
    PrincipalPrivilegeSet,
    PrincipalType,
    SQLAllTableConstraints,
    Table,
)

_WAYS_OF_CREATION = ("created_with_ctas", "created_with_ctlt")
"""Parameters that tell the server that the table is created by AS SELECT or LIKE; never stored."""

_TABLE_ID = DirectQuery(
    select(TBLS.c.TBL_ID).where(TBLS.c.DB_ID == bindparam("database_id"), TBLS.c.TBL_NAME == bindparam("name"))
)

_AUTHORIZER = "SQL"
"""The authorization to which the privileges of a new table belong."""


class TableCreation(PartOfStore):
    """`create_table`."""

    def create_table(
        self,
        table: Table,
        *,
        options: EnvironmentOptions = NO_OPTIONS,
        constraints: SQLAllTableConstraints | None = None,
    ) -> None:
        """See `TableWrites.create_table`."""
        new = copied(table)
        name = self._check(new, options)
        privileges, new.privileges = new.privileges, None
        statistics, new.colStats = new.colStats, None

        def create(transaction: WriteTransaction) -> None:
            # Each attempt begins with the client's struct.
            created = copied(new)
            self._create(transaction, created, name, privileges, options, constraints)
            if statistics is not None:
                self._write_statistics(transaction, created, copied(statistics))

        ids = {"MTable": 1, "MStorageDescriptor": 1, "MSerDeInfo": 1, "MColumnDescriptor": 1}
        if statistics is not None:
            ids["MTableColumnStatistics"] = len(statistics.statsObj or ())
        run_write(self._database, create, ids=ids)

    def _write_statistics(self, transaction: WriteTransaction, table: Table, statistics: ColumnStatistics) -> None:
        row = read_table(transaction.connection, table.catName, table.dbName, table.tableName)
        if row is None or statistics.statsDesc is None or statistics.statsObj is None:
            raise InvalidObjectException("Invalid column stats object")
        writer = writer_of_new_object(table.dbName, table.tableName, table.writeId)
        write_table_statistics(self._context, transaction, row, statistics, writer)

    def _check(self, table: Table, options: EnvironmentOptions) -> TableName:
        """Makes the checks that need no database, and normalizes names. Returns the name."""
        if table.dbName is None:
            raise MetaException("Null database name is not allowed")
        _require_what_hive_needs(table)
        special = self._context.settings.catalog.special_characters_in_table_names
        if not is_valid_name(table.tableName, special_characters=special):
            raise InvalidObjectException(f"{table.tableName} is not a valid object name")
        name = name_of_table(table)
        table.catName, table.dbName, table.tableName = name
        table.parameters = dict(table.parameters or {})
        for way in _WAYS_OF_CREATION:
            table.parameters.pop(way, None)
        if options.creates_external and table.tableType == MANAGED_TABLE:
            table.parameters["EXTERNAL"] = "TRUE"
        table.partitionKeys = lower_columns(table.partitionKeys)
        table.sd.cols = lower_columns(table.sd.cols)
        table.sd.sortCols = table.sd.sortCols and stored_orders(table.sd.sortCols)
        _check_columns(table)
        table.tableType = stored_type(table)  # the parameter EXTERNAL also decides what may be transactional
        check_created_table(table, self._context.settings.catalog)
        table.ownerType = principal_type(table.ownerType) or PrincipalType.USER
        table.temporary = None
        # Only transactional tables have one; -1 is Hive's value for none.
        table.writeId = (-1 if table.writeId is None else table.writeId) if is_transactional(table) else 0
        table.sd.storedAsSubDirectories = bool(table.sd.storedAsSubDirectories)
        table.rewriteEnabled = bool(table.rewriteEnabled)
        return name

    def _create(
        self,
        transaction: WriteTransaction,
        table: Table,
        name: TableName,
        privileges: PrincipalPrivilegeSet | None,
        options: EnvironmentOptions,
        constraints: SQLAllTableConstraints | None,
    ) -> None:
        connection = transaction.connection
        database = read_database(connection, table.catName, table.dbName)
        if database is None:
            # Hive's handler raises this type for every form of the call.
            raise InvalidObjectException(f"database {name.in_database.as_sent}")
        if database.database.type == DatabaseType.REMOTE:
            raise MetaException(f"Create table in REMOTE database {table.dbName} is not allowed")
        taken, waiting = execute_plan(
            connection,
            side_by_side(_table_id_plan(database.database_id, table.tableName), waiting_deletions_plan(connection)),
        )
        if taken is not None:
            raise AlreadyExistsException(f"Table {name.as_sent} already exists")
        access = FileAccess(self._context, connection)
        location = self._place(access, table, database, options)
        if not is_view(table):
            there = self._context.warehouse.location(table.sd.location)
            release_locations(self._context, connection, table, [(None, there)], waiting)
        place = None if location is None else access.allow(location.location)
        files = files_of_new_table(self._context, database.database, table, place)
        table.createTime = self._context.now_s()
        set_ddl_time(table.parameters, self._context.ddl_time_s())
        table.parameters = dict(sorted(table.parameters.items()))
        table.id = insert_table(transaction, table, database.database_id)
        if location is not None:
            # After the row: if another call has taken the name, this one fails before it could undo the other's
            # directory.
            self._context.warehouse.changes(transaction).make_directory(location)
        _insert_privileges(transaction, table.id, privileges, table.createTime)
        if table.tableType == MATERIALIZED_VIEW and table.creationMetadata is not None:
            insert_creation_metadata(transaction, table.creationMetadata)
        transaction.append_event(self._context.messages.build_create_table(table, files))
        if constraints is not None:
            add_constraints_of_new_table(self._context, transaction, table, constraints)

    def _place(
        self, files: FileAccess, table: Table, database: DatabaseRow, options: EnvironmentOptions
    ) -> AllowedLocation | None:
        """Sets the table's location and reads an existing directory there. Returns the directory to create.

        None for views, and if files are left alone. Raises MetaException for a scheme that is not allowed.
        """
        if is_view(table):
            return None
        # As in an alter, the parameter is kept on views and if the context already forbids reading the directory.
        is_forbidden = options.keeps_statistics
        is_forbidden = is_forbidden or pop_do_not_update(table.parameters)
        warehouse = self._context.warehouse
        is_given = bool(table.sd.location)
        if is_given:
            location = _with_suffix(warehouse.location(table.sd.location), table)
            if location.is_root:
                raise InvalidObjectException(f"{table.tableName} location must not be root path")
            warehouse.require_known_scheme(location)
        else:
            location = _with_suffix(
                warehouse.default_table_location(database.database, table.tableName, external=is_external(table)), table
            )
        table.sd.location = str(location)
        allowed = files.allow(location)
        self._claim_statistics_of_new_table(table, allowed)
        gathers_statistics = self._context.settings.catalog.statistics_autogather and not is_forbidden
        if gathers_statistics and not table.partitionKeys:
            if allowed is not None and warehouse.is_directory(allowed):
                self._add_statistics(table, allowed, options)
            elif allowed is None and is_given:
                self._add_statistics(table, None, options)
        return allowed or files.allow_making(location)

    def _claim_statistics_of_new_table(self, table: Table, location: AllowedLocation | None) -> None:
        """Marks all statistics of a table without files as known: all are zero. Hive 4 asks for this.

        Otherwise the first insert finds no figures to add to, and no `count(*)` is answered from statistics.
        """
        request = pop_request_for_new_table(table)
        if request is None or not self._context.warehouse.manages_files:
            return
        is_empty = request.is_iceberg
        if not is_empty and location is not None:
            found = self._context.warehouse.directory_statistics(location)
            is_empty = found is not None and not found.file_count
        if is_empty:
            columns = request.columns or column_names(table)
            claim_nothing_there(table.parameters, columns)

    def _add_statistics(self, table: Table, location: AllowedLocation | None, options: EnvironmentOptions) -> None:
        """`location`: None if files may exist that this server may not list; then nothing is claimed to be exact."""
        if has_fast_statistics(table.parameters):
            return
        found = None
        if location is not None and not options.counts_no_files:
            found = self._context.warehouse.directory_statistics(location)
        update_directory_statistics(table.parameters, found, options)


def _with_suffix(location: Location, table: Table) -> Location:
    """The directory with the creating transaction in its name, if the table will be dropped softly.

    After the drop its directory waits for a cleaner, which deletes it completely. A new table of the same name must be
    elsewhere. Source: `HMSHandler.getTableSuffix` (Hive 4.0.1).
    """
    is_soft_delete = table.txnId is not None and is_parameter_true(table, SOFT_DELETE)
    _, dot, version = location.name.rpartition(".v")
    has_suffix = bool(dot) and version.isascii() and version.isdigit()
    if not is_soft_delete or location.is_root or has_suffix:
        return location
    return location.parent.child(f"{location.name}.v{table.txnId:07d}")


def table_id_of(connection: Connection, database_id: int, name: str) -> int | None:
    """TBL_ID of a table of the database; None if it does not exist."""
    return execute_plan(connection, _table_id_plan(database_id, name))


def _table_id_plan(database_id: int, name: str) -> Plan[int | None]:
    rows = yield from fetch(PlannedQuery(_TABLE_ID, {"database_id": database_id, "name": name}, compares_texts=True))
    return rows[0].TBL_ID if rows else None


def table_values(table: Table) -> dict[str, Any]:
    """The columns of TBLS that come from the struct itself."""
    return {
        "CREATE_TIME": table.createTime or 0,
        "LAST_ACCESS_TIME": table.lastAccessTime or 0,
        "OWNER": table.owner,
        "OWNER_TYPE": principal_type_name(table.ownerType) or USER,
        "RETENTION": table.retention or 0,
        "TBL_NAME": table.tableName,
        "TBL_TYPE": table.tableType,
        "VIEW_EXPANDED_TEXT": table.viewExpandedText,
        "VIEW_ORIGINAL_TEXT": table.viewOriginalText,
        "IS_REWRITE_ENABLED": bool(table.rewriteEnabled),
        "WRITE_ID": table.writeId or 0,
    }


def insert_table(transaction: WriteTransaction, table: Table, database_id: int) -> int:
    """Inserts a table with its descriptor, keys and parameters; returns its TBL_ID.

    Raises RetryableConflict if the name was taken or the database dropped at the same time.
    """
    connection = transaction.connection
    [sd_id] = insert_storage_descriptors(transaction, [table.sd])
    table_id = transaction.id("MTable")
    values = {"TBL_ID": table_id, "DB_ID": database_id, "SD_ID": sd_id, **table_values(table)}
    parameters = [
        {"TBL_ID": table_id, "PARAM_KEY": key, "PARAM_VALUE": value}
        for key, value in sorted((table.parameters or {}).items())
        if value is not None
    ]
    rows = {
        TBLS: [features_of(connection).writable(TBLS, values)],
        TABLE_PARAMS: parameters,
        PARTITION_KEYS: _rows_of_partition_keys(table_id, table.partitionKeys),
    }
    try:
        # Upserted: a database that Hive did not create may consider more keys equal than `require_distinct_keys` does.
        insert_together(connection, rows, upserted=[TABLE_PARAMS])
    except IntegrityError as error:
        raise RetryableConflict(f"somebody else created or dropped what table {table.tableName} needs") from error
    return table_id


def insert_partition_keys(connection: Connection, table_id: int, keys: list[FieldSchema] | None) -> None:
    """Inserts the partition keys of a table."""
    insert_rows(connection, PARTITION_KEYS, _rows_of_partition_keys(table_id, keys))


def _rows_of_partition_keys(table_id: int, keys: list[FieldSchema] | None) -> list[dict[str, Any]]:
    return [
        {
            "TBL_ID": table_id,
            "PKEY_COMMENT": key.comment,
            "PKEY_NAME": key.name.lower(),
            "PKEY_TYPE": key.type,
            "INTEGER_IDX": position,
        }
        for position, key in enumerate(keys or ())
    ]


def insert_creation_metadata(transaction: WriteTransaction, metadata: CreationMetadata) -> None:
    """Stores the tables from which a materialized view was built. Raises MetaException if one does not exist."""
    connection = transaction.connection
    features = features_of(connection)
    sources = _source_tables(connection, metadata)
    metadata_id = transaction.id("MCreationMetadata")
    connection.execute(
        insert(MV_CREATION_METADATA).values(
            {
                "MV_CREATION_METADATA_ID": metadata_id,
                "CAT_NAME": normalize_catalog(metadata.catName or DEFAULT_CATALOG),
                "DB_NAME": normalize_identifier(metadata.dbName),
                "TBL_NAME": normalize_identifier(metadata.tblName),
                "TXN_LIST": metadata.validTxnList,
                "MATERIALIZATION_TIME": metadata.materializationTime or 0,
            }
        )
    )
    rows = [
        features.writable(
            MV_TABLES_USED,
            {
                "MV_CREATION_METADATA_ID": metadata_id,
                "TBL_ID": table_id,
                "INSERTED_COUNT": counts[0],
                "UPDATED_COUNT": counts[1],
                "DELETED_COUNT": counts[2],
            },
        )
        for table_id, counts in sources.items()
    ]
    try:
        if rows:
            connection.execute(insert(MV_TABLES_USED), rows)
    except IntegrityError as error:
        raise RetryableConflict(f"somebody else dropped a table that view {metadata.tblName} uses") from error


def _source_tables(connection: Connection, metadata: CreationMetadata) -> dict[int, tuple[int, int, int]]:
    """TBL_ID and changed-row counters of the tables that a view uses: 4.x names them in `sourceTables`, 3.1 in
    `tablesUsed`. They are looked up in the view's catalog, regardless of their own
    (`ObjectStore.convertToSourceTable`)."""
    own_catalog = normalize_catalog(metadata.catName or DEFAULT_CATALOG)
    names: dict[tuple[str, str, str], tuple[int, int, int]] = {}
    for full_name in sorted(metadata.tablesUsed or ()):
        parts = [normalize_identifier(part) for part in full_name.split(".")]
        catalog, database, table = parts if len(parts) == 3 else (own_catalog, *parts[-2:])
        names[(catalog, database, table)] = (0, 0, 0)
    for source in metadata.sourceTables or ():
        key = (own_catalog, source.table.dbName, source.table.tableName)
        counts = (source.insertedCount or 0, source.updatedCount or 0, source.deletedCount or 0)
        names[tuple(normalize_identifier(part) for part in key)] = counts  # type: ignore[index]
    by_database: dict[tuple[str, str], list[str]] = {}
    for catalog, database, table in names:
        by_database.setdefault((catalog, database), []).append(table)
    ids = {
        (*of, row.name): row.table_id for of, some in by_database.items() for row in read_tables(connection, *of, some)
    }
    found = {}
    for name, counts in names.items():
        if name not in ids:
            raise MetaException(f"{'.'.join(name)} table not found")
        found[ids[name]] = counts
    return dict(sorted(found.items()))


def _insert_privileges(
    transaction: WriteTransaction, table_id: int, privileges: PrincipalPrivilegeSet | None, now_s: int
) -> None:
    if privileges is None:
        return
    granted = [
        (principal, kind, grant)
        for kind, grants in (
            ("USER", privileges.userPrivileges),
            ("GROUP", privileges.groupPrivileges),
            ("ROLE", privileges.rolePrivileges),
        )
        for principal, some in sorted((grants or {}).items())
        for grant in some
    ]
    if not granted:
        return
    ids = transaction.ids("MTablePrivilege", len(granted))
    transaction.connection.execute(
        insert(TBL_PRIVS),
        [
            {
                "TBL_GRANT_ID": grant_id,
                "CREATE_TIME": now_s,
                "GRANT_OPTION": int(bool(grant.grantOption)),
                "GRANTOR": grant.grantor,
                "GRANTOR_TYPE": principal_type_name(grant.grantorType) or USER,
                "PRINCIPAL_NAME": principal,
                "PRINCIPAL_TYPE": kind,
                "TBL_PRIV": grant.privilege,
                "TBL_ID": table_id,
                "AUTHORIZER": _AUTHORIZER,
            }
            for grant_id, (principal, kind, grant) in zip(ids, granted, strict=True)
        ],
    )


def lower_columns(columns: list[FieldSchema] | None) -> list[FieldSchema]:
    """The columns with their names as stored."""
    return [FieldSchema(column.name.lower(), column.type, column.comment) for column in columns or ()]


def _require_what_hive_needs(table: Table) -> None:
    """Raises MetaException for a missing part of the table, with the text of Hive (4.0.1, its null pointers)."""
    if table.tableName is None:
        raise MetaException("Null table name is not allowed")
    if table.sd is None:
        raise MetaException(f"Table {table.tableName} has no storage descriptor")
    if table.sd.cols is None:
        raise MetaException(f"The storage descriptor of table {table.tableName} has no list of columns")
    if table.sd.serdeInfo is None:
        raise MetaException("Invalid SerDeInfo object")
    if any(column.type is None for column in (*table.sd.cols, *(table.partitionKeys or ()))):
        raise MetaException(f"A column of table {table.tableName} has no type")


def _check_columns(table: Table) -> None:
    """Raises InvalidObjectException for types that Hive does not support, duplicate names, and skew on a missing
    column."""
    wrong = invalid_type(table.sd.cols)
    if wrong is not None:
        raise InvalidObjectException(f"Invalid column {wrong}")
    wrong = invalid_type(table.partitionKeys)
    if wrong is not None:
        raise InvalidObjectException(f"Invalid partition column {wrong}")
    keys = [key.name for key in table.partitionKeys]
    if len(set(keys)) < len(keys):
        raise InvalidObjectException(f"Invalid partition column names: {keys} name one more than once")
    skew = table.sd.skewedInfo
    names = {column.name for column in table.sd.cols}
    missing = [name for name in (skew.skewedColNames if skew else None) or () if name.lower() not in names]
    if missing:
        raise InvalidObjectException(f"Invalid skew column [{', '.join(missing)}]")
