"""Stored procedures and packages of HPL/SQL. Facts: `HMSHandler`, `ObjectStore` (Hive 4.0.1). They have no events.

Names are case-insensitive; an exact match is preferred. HPL/SQL creates `p` as `P`, but calls or drops a procedure with
the spelling in the program (`HmsFunctionRegistry`). Hive finds it on MySQL, whose collation ignores case, and not on
other databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, false, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.store.engine.context import PartOfStore, require_table
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.database_rows import read_database_id
from hms_cache.store.schema import DBS, PACKAGES, STORED_PROCS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPackageRequest,
    MetaException,
    NoSuchObjectException,
    Package,
    StoredProcedure,
)


class StoredProcedures(PartOfStore):
    """Reads and writes of procedures and packages. Thread-safe."""

    def save_procedure(self, procedure: StoredProcedure) -> None:
        """Creates a procedure, or replaces its source and owner.

        :raises NoSuchObjectException: no such database.
        :raises MetaException: a part is missing, or the database has another one whose name it considers equal.
        """
        values = {"OWNER_NAME": procedure.ownerName, "SOURCE": procedure.source}
        self._save(STORED_PROCS, "MStoredProc", procedure.catName, procedure.dbName, procedure.name, values)

    def get_procedure(self, catalog: str, database: str, name: str) -> StoredProcedure:
        """:raises NoSuchObjectException: it does not exist."""
        row = self._find(STORED_PROCS, catalog, database, name)
        if row is None:
            raise NoSuchObjectException(f"HPL/SQL StoredProcedure {database}.{name} does not exist")
        return StoredProcedure(row.NAME, row.DATABASE_NAME, row.CTLG_NAME, row.OWNER_NAME, row.SOURCE)

    def drop_procedure(self, catalog: str, database: str, name: str) -> None:
        """Drops a procedure. It is no error if it does not exist, as in Hive."""
        self._drop(STORED_PROCS, catalog, database, name)

    def get_procedure_names(self, catalog: str, database: str | None) -> list[str]:
        """Names in a database or in the whole catalog, ascending."""
        return self._names(STORED_PROCS, catalog, database)

    def save_package(self, package: AddPackageRequest) -> None:
        """Creates or replaces a package; raises as `save_procedure` does."""
        values = {"OWNER_NAME": package.ownerName, "HEADER": package.header, "BODY": package.body}
        self._save(PACKAGES, "MPackage", package.catName, package.dbName, package.packageName, values)

    def get_package(self, catalog: str, database: str, name: str) -> Package:
        """:raises NoSuchObjectException: it does not exist."""
        row = self._find(PACKAGES, catalog, database, name)
        if row is None:
            raise NoSuchObjectException(f"HPL/SQL package {database}.{name} does not exist")
        return Package(row.CTLG_NAME, row.DATABASE_NAME, row.NAME, row.OWNER_NAME, row.HEADER, row.BODY)

    def drop_package(self, catalog: str, database: str, name: str) -> None:
        """Drops a package. It is no error if it does not exist, as in Hive."""
        self._drop(PACKAGES, catalog, database, name)

    def get_package_names(self, catalog: str, database: str | None) -> list[str]:
        """Names in a database or in the whole catalog, ascending."""
        return self._names(PACKAGES, catalog, database)

    def _save(
        self, table: Table, model: str, catalog: str | None, database: str, name: str, values: dict[str, Any]
    ) -> None:
        if database is None or name is None or None in values.values():
            raise MetaException("A stored program needs a database, a name, an owner and its source")
        catalog, database = _place(catalog, database)
        key = next(iter(table.primary_key))
        values = {**values, "CREATE_TIME": self._context.now_s()}

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            database_id = read_database_id(connection, catalog, database)
            if database_id is None:
                raise NoSuchObjectException(f"There is no database {catalog}.{database}")
            is_it = (table.c.DB_ID == database_id) & or_(table.c.NAME == name, _has_name(table, name))
            rows = connection.execute(select(key, table.c.NAME).where(is_it).with_for_update()).all()
            found = _called(rows, name)
            if found is not None:
                connection.execute(update(table).where(key == found[0]).values({**values, "NAME": name}))
                return
            if rows:
                # MySQL cannot store both: the names differ in accents. Hive overwrites the other one.
                raise MetaException(f"The database takes the names {name} and {rows[0].NAME} for the same")
            row = {**values, key.name: transaction.id(model), "DB_ID": database_id, "NAME": name}
            try:
                connection.execute(insert(table).values(row))
            except IntegrityError as error:
                raise RetryableConflict(f"somebody else created {name}") from error

        require_table(self._database, table)
        run_write(self._database, work)

    def _find(self, table: Table, catalog: str | None, database: str, name: str) -> Any:
        catalog, database = _place(catalog, database)
        statement = _in_databases(table, *table.c, DBS.c.NAME.label("DATABASE_NAME"), DBS.c.CTLG_NAME).where(
            DBS.c.CTLG_NAME == catalog, DBS.c.NAME == database, _has_name(table, name)
        )
        require_table(self._database, table)
        return _called(run_read(self._database, lambda connection: connection.execute(statement).all()), name)

    def _drop(self, table: Table, catalog: str | None, database: str, name: str) -> None:
        catalog, database = _place(catalog, database)

        def work(transaction: WriteTransaction) -> None:
            database_id = read_database_id(transaction.connection, catalog, database)
            key = next(iter(table.primary_key))
            is_it = (table.c.DB_ID == database_id) & _has_name(table, name)
            rows = transaction.connection.execute(select(key, table.c.NAME).where(is_it).with_for_update()).all()
            found = _called(rows, name)
            if found is not None:
                transaction.connection.execute(delete(table).where(key == found[0]))

        require_table(self._database, table)
        run_write(self._database, work)

    def _names(self, table: Table, catalog: str | None, database: str | None) -> list[str]:
        statement = _in_databases(table, table.c.NAME).where(
            DBS.c.CTLG_NAME == normalize_catalog(catalog or DEFAULT_CATALOG)
        )
        if database is not None:
            statement = statement.where(DBS.c.NAME == normalize_identifier(database))

        def read(connection: Connection) -> list[str]:
            return sorted(listed(connection.execute(limited(statement)).scalars().all(), "names"))

        require_table(self._database, table)
        return run_read(self._database, read)


def _place(catalog: str | None, database: str) -> tuple[str, str]:
    return normalize_catalog(catalog or DEFAULT_CATALOG), normalize_identifier(database)


def _in_databases(table: Table, *columns: Any) -> Select[Any]:
    return select(*columns).select_from(table.join(DBS, DBS.c.DB_ID == table.c.DB_ID))


def _has_name(table: Table, name: str | None) -> ColumnElement[bool]:
    if name is None:
        return false()
    # SQLite ignores case for ASCII only.
    return or_(same_text(table.c.NAME, name), same_text(func.lower(table.c.NAME), name.lower()))


def _called(rows: Sequence[Any], name: str) -> Any:
    """The row with exactly this name, otherwise one whose name differs only in case; None if there is none."""
    alike = [row for row in rows if row.NAME.lower() == name.lower()]
    return min(alike, key=lambda row: (row.NAME != name, row.NAME), default=None)
