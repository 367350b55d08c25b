"""Databases. Facts: `HMSHandler.create_database_core`, `alter_database`, `drop_database_core`, `ObjectStore` (4.0)."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    is_valid_name,
    matching_names,
    normalize_catalog,
)
from hms_cache.metadata.object_names import DatabaseName, database_name
from hms_cache.metadata.principals import principal_type, principal_type_name
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.databases import DatabaseReads, DatabaseWrites
from hms_cache.store.databases.replication import with_target_id
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.text_conditions import may_match
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.file_access import OUTSIDE, FileAccess, log_files_kept
from hms_cache.store.objects.functions import drop_functions_of_database
from hms_cache.store.replication_sources import is_source_of_replication
from hms_cache.store.rows.database_rows import (
    LOCATION_LEFT_ALONE,
    MANAGED_LOCATION_LEFT_ALONE,
    DatabaseRow,
    lock_database,
    read_catalog,
    read_database,
    read_databases,
    require_database,
    without_marks,
)
from hms_cache.store.rows.storage_descriptor_writes import write_parameters
from hms_cache.store.schema import DATABASE_PARAMS, DB_PRIVS, DBS, FUNCS, I_SCHEMA, PACKAGES, STORED_PROCS, TBLS
from hms_cache.store.shared_locations import SHARED, locations_in_use
from hms_cache.store.soft_drops import forget_drops_inside
from hms_cache.store.tables.drops import drop_tables_of_database
from hms_cache.store.warehouse import AllowedLocation, Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    Database,
    DatabaseType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)


class Databases(PartOfStore, DatabaseReads, DatabaseWrites):
    """Reads and writes of databases."""

    def get_database(self, database: DatabaseName) -> Database:
        return run_read(self._database, lambda connection: require_database(connection, database)).database

    def get_database_names(self, catalog: str, pattern: str | None = None) -> list[str]:
        statement = select(DBS.c.NAME).where(
            DBS.c.CTLG_NAME == normalize_catalog(catalog), *may_match(DBS.c.NAME, pattern)
        )
        names = run_read(self._database, lambda connection: connection.execute(statement).scalars().all())
        return matching_names(names, pattern)

    def get_databases(self, catalog: str, pattern: str | None = None) -> list[Database]:
        name = normalize_catalog(catalog)
        found = run_read(
            self._database, lambda connection: read_databases(connection, name, *may_match(DBS.c.NAME, pattern))
        )
        return [found[each].database for each in matching_names(list(found), pattern)]

    def create_database(self, database: Database) -> None:
        run_write(
            self._database,
            lambda transaction: insert_database(self._context, transaction, copied(database)),
            ids={"MDatabase": 1},
        )

    def alter_database(self, name: DatabaseName, database: Database) -> None:
        run_write(self._database, lambda transaction: self._alter(transaction, name, copied(database)))

    def drop_database(
        self,
        name: DatabaseName,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        soft_txn_id: int = 0,
        keeps_managed_directory: bool = False,
    ) -> None:
        if name == DatabaseName(DEFAULT_CATALOG, DEFAULT_DATABASE):
            raise MetaException(f"Can not drop {DEFAULT_DATABASE} database in catalog {DEFAULT_CATALOG}")

        def drop(transaction: WriteTransaction) -> None:
            found = lock_database(transaction.connection, *name)
            if found is None:
                if if_exists:
                    return
                raise NoSuchObjectException(f"database {name.as_sent}")
            if is_source_of_replication(found.database):
                raise InvalidOperationException("can not drop a database which is a source of replication")
            delete_database(
                self._context,
                transaction,
                found,
                delete_data=delete_data,
                cascade=cascade,
                soft_txn_id=soft_txn_id,
                keeps_managed_directory=keeps_managed_directory,
            )

        run_write(self._database, drop)

    def _alter(self, transaction: WriteTransaction, name: DatabaseName, new: Database) -> None:
        found = lock_database(transaction.connection, *name)
        if found is None:
            raise NoSuchObjectException(f"database {name.as_sent}")
        before = found.database
        after = copied(before)
        after.parameters = without_marks(with_target_id(transaction.connection, before.parameters, new.parameters))
        after.ownerName = new.ownerName
        after.ownerType = principal_type(new.ownerType) or before.ownerType
        # Blank values leave the stored ones unchanged, as in Hive.
        if (new.description or "").strip():
            after.description = new.description
        declarations = _Declarations(self._context, transaction, name.database, dict(found.marks))
        if (new.locationUri or "").strip():
            after.locationUri = declarations.change(LOCATION_LEFT_ALONE, before.locationUri, new.locationUri)
        if new.managedLocationUri is not None and new.managedLocationUri.strip():
            declarations.change(MANAGED_LOCATION_LEFT_ALONE, before.managedLocationUri, new.managedLocationUri)
            # Stored as sent, unlike the other location, as in Hive.
            after.managedLocationUri = new.managedLocationUri
        transaction.connection.execute(
            update(DBS)
            .where(DBS.c.DB_ID == found.database_id)
            .values(
                features_of(transaction.connection).writable(
                    DBS,
                    {
                        "DESC": after.description,
                        "DB_LOCATION_URI": after.locationUri,
                        "DB_MANAGED_LOCATION_URI": after.managedLocationUri,
                        "OWNER_NAME": after.ownerName,
                        "OWNER_TYPE": principal_type_name(after.ownerType),
                    },
                )
            )
        )
        write_parameters(
            transaction.connection,
            DATABASE_PARAMS,
            "DB_ID",
            found.database_id,
            {**before.parameters, **found.marks},
            {**after.parameters, **declarations.marks},
        )
        transaction.append_event(self._context.messages.build_alter_database(before, after))


class _Declarations:
    """Locations that a transaction gives to a database: directories to create, and marks if files must be left
    alone."""

    def __init__(self, context: StoreContext, transaction: WriteTransaction, name: str, marks: dict[str, str]) -> None:
        self._context = context
        self._transaction = transaction
        self._files = FileAccess(context, transaction.connection)
        self._name = name
        self._directories: list[AllowedLocation] = []
        self.marks = marks

    def add(self, mark: str, location: Location) -> None:
        """Checks a location. Raises MetaException for a scheme that is not allowed."""
        directory = self._files.declare(location, f"Database {self._name}")
        self.marks.pop(mark, None)
        if directory is not None:
            self._directories.append(directory)
        elif self._context.warehouse.manages_files:
            self.marks[mark] = str(location)

    def change(self, mark: str, before: str | None, sent: str) -> str:
        """The complete form of a location. A location that differs from the stored one is checked."""
        location = self._context.warehouse.location(sent)
        if sent != before and location != self._parsed(before):
            self.add(mark, location)
        return str(location)

    def _parsed(self, text: str | None) -> Location | None:
        try:
            return self._context.warehouse.location(text) if text else None
        except MetaException:
            return None

    def make_directories(self) -> None:
        """Creates missing directories; they are removed if the transaction fails. Raises MetaException."""
        changes = self._context.warehouse.changes(self._transaction)
        for directory in self._directories:
            changes.make_directory(directory)


def insert_database(context: StoreContext, transaction: WriteTransaction, database: Database) -> None:
    """Creates a database inside a transaction, with its directories. Changes the struct to what is stored."""
    connection = transaction.connection
    if not is_valid_name(database.name, special_characters=context.settings.catalog.special_characters_in_table_names):
        raise InvalidObjectException(f"{database.name} is not a valid database name")
    name = database_name(database.catalogName, database.name)
    database.catalogName, database.name = name
    catalog = read_catalog(connection, name.catalog)
    if catalog is None:
        raise InvalidObjectException(f"No such catalog {name.as_sent.catalog}")
    if database.locationUri == "":
        raise MetaException(f"The location of database {database.name} is the empty text")
    if read_database(connection, *name) is not None:
        raise AlreadyExistsException(f"Database {name.as_sent.database} already exists")
    location = context.warehouse.database_location(database, catalog)
    managed = context.warehouse.location(database.managedLocationUri) if database.managedLocationUri else None
    is_remote = database.type == DatabaseType.REMOTE
    declarations = _Declarations(context, transaction, database.name, {})
    if not is_remote:
        if managed is not None:
            declarations.add(MANAGED_LOCATION_LEFT_ALONE, managed)
        declarations.add(LOCATION_LEFT_ALONE, location)
    database.locationUri = str(location)
    database.managedLocationUri = None if managed is None else str(managed)
    if database.ownerName is None:
        database.ownerName = context.server_user
    database.ownerType = principal_type(database.ownerType) or PrincipalType.USER
    database.createTime = context.now_s()
    database.parameters = without_marks(database.parameters)
    database.type = DatabaseType.REMOTE if is_remote else DatabaseType.NATIVE
    database.privileges = None
    database_id = transaction.id("MDatabase")
    features = features_of(connection)
    try:
        connection.execute(
            insert(DBS).values(
                features.writable(
                    DBS,
                    {
                        "DB_ID": database_id,
                        "DESC": database.description,
                        "DB_LOCATION_URI": database.locationUri,
                        "DB_MANAGED_LOCATION_URI": database.managedLocationUri,
                        "NAME": database.name,
                        "OWNER_NAME": database.ownerName,
                        "OWNER_TYPE": principal_type_name(database.ownerType),
                        "CTLG_NAME": database.catalogName,
                        "CREATE_TIME": database.createTime,
                        "TYPE": "REMOTE" if is_remote else "NATIVE",
                        "DATACONNECTOR_NAME": database.connector_name if is_remote else None,
                        "REMOTE_DBNAME": database.remote_dbname if is_remote else None,
                    },
                )
            )
        )
    except IntegrityError as error:
        raise RetryableConflict(f"somebody else created database {database.name} at the same moment") from error
    write_parameters(
        connection, DATABASE_PARAMS, "DB_ID", database_id, {}, {**database.parameters, **declarations.marks}
    )
    transaction.append_event(context.messages.build_create_database(database))
    declarations.make_directories()


def delete_database(
    context: StoreContext,
    transaction: WriteTransaction,
    found: DatabaseRow,
    *,
    delete_data: bool,
    cascade: bool,
    soft_txn_id: int = 0,
    keeps_managed_directory: bool = False,
) -> None:
    """Drops a database inside a transaction, and with `cascade` everything in it.

    Raises InvalidOperationException if it is not empty and `cascade` is false, or if it has schemas of the registry.
    """
    connection, database, database_id = transaction.connection, found.database, found.database_id
    if connection.execute(select(exists().where(I_SCHEMA.c.DB_ID == database_id))).scalar():
        # In Hive the foreign key prevents it, with or without cascade.
        raise InvalidOperationException(f"Database {database.name} is not empty. One or more schemas exist.")
    if not cascade:
        _require_empty(connection, database, database_id)
    files = FileAccess(context, connection)
    directories = []
    if delete_data and database.type != DatabaseType.REMOTE and context.warehouse.manages_files:
        # Checked while the database exists: its location may be allowed only because of it.
        directories = _directories(context, files, database)
    drop_functions_of_database(context, transaction, str(database.catalogName), str(database.name), database_id)
    stays, going = drop_tables_of_database(
        context,
        transaction,
        files,
        database,
        database_id,
        delete_data=delete_data,
        soft_txn_id=soft_txn_id,
        directories=[each.location for each in directories],
    )
    features = features_of(connection)
    for table in (DATABASE_PARAMS, DB_PRIVS, STORED_PROCS, PACKAGES):
        if features.has(table):
            connection.execute(delete(table).where(table.c.DB_ID == database_id))
    try:
        connection.execute(delete(DBS).where(DBS.c.DB_ID == database_id))
    except IntegrityError as error:
        raise RetryableConflict(f"something was created in database {database.name} while it was dropped") from error
    transaction.append_event(context.messages.build_drop_database(database))
    if directories:
        spared = context.warehouse.managed_database_location(database) if keeps_managed_directory else None
        going += _plan_deletions(context, transaction, database, directories, stays, spared)
    if delete_data:
        forget_drops_inside(
            context, connection, DatabaseName(str(database.catalogName), str(database.name)), None, going
        )


def _require_empty(connection: Connection, database: Database, database_id: int) -> None:
    features = features_of(connection)
    kinds = ((TBLS, "tables"), (FUNCS, "functions"), (STORED_PROCS, "stored procedures"), (PACKAGES, "packages"))
    for table, things in kinds:
        if features.has(table) and connection.execute(select(exists().where(table.c.DB_ID == database_id))).scalar():
            raise InvalidOperationException(f"Database {database.name} is not empty. One or more {things} exist.")


def _directories(context: StoreContext, files: FileAccess, database: Database) -> list[AllowedLocation]:
    """The directories of a database that may be deleted."""
    warehouse = context.warehouse
    what = f"database {database.catalogName}.{database.name} is dropped"
    try:
        own = warehouse.location(database.locationUri)
        locations = list(dict.fromkeys([warehouse.managed_database_location(database), own]))
    except MetaException as error:
        log_files_kept(what, [str(database.locationUri)], str(error.message))
        return []
    allowed = {location: files.allow_deletion(location) for location in locations}
    outside = [location for location, found in allowed.items() if found is None and not warehouse.is_own_root(location)]
    log_files_kept(what, outside, OUTSIDE)
    return [found for found in allowed.values() if found is not None]


def _plan_deletions(
    context: StoreContext,
    transaction: WriteTransaction,
    database: Database,
    directories: list[AllowedLocation],
    stays: list[Location],
    spared: Location | None,
) -> list[Location]:
    """Plans to delete the database's directories, unless they contain files that stay: data of external tables
    (`stays`) or other objects.

    The directory `spared`, and directories that contain it, are deleted only if they are empty. Returns the directories
    that are deleted with all contents.
    """
    changes = context.warehouse.changes(transaction)
    candidates = [each for each in directories if not any(map(each.location.holds, stays))]
    shared = locations_in_use(context, transaction.connection, [each.location for each in candidates])
    log_files_kept(f"database {database.catalogName}.{database.name} is dropped", sorted(shared, key=str), SHARED)
    going = [each for each in candidates if each.location not in shared]
    empty = [each for each in going if spared is not None and each.location.holds(spared)]
    whole = [each for each in going if each not in empty]
    changes.delete_directories_after_commit(whole, skip_trash=False)
    changes.remove_empty_directories_after_commit(empty)
    return [each.location for each in whole]
