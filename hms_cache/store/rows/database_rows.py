"""Databases and catalogs as rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, select

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.schema import CATALOG_PARAMS, CTLGS, DATABASE_PARAMS, DBS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Catalog,
    Database,
    DatabaseType,
    NoSuchObjectException,
    PrincipalType,
)

LOCATION_LEFT_ALONE = "hms_cache.location.left_alone"
MANAGED_LOCATION_LEFT_ALONE = "hms_cache.managed_location.left_alone"
"""Database parameters: this server stored the location although it is not allowed, and did not create its directory, so
the database does not make the location allowed. Clients neither see nor set them. The value is the location, for people
who read the table; only the presence of the parameter counts."""

_MARKS = frozenset({LOCATION_LEFT_ALONE, MANAGED_LOCATION_LEFT_ALONE})


@dataclass(slots=True)
class DatabaseRow:
    """A database with its DB_ID."""

    database: Database
    database_id: int
    marks: dict[str, str]
    """Parameters that clients do not see."""


def without_marks(parameters: dict[str, str] | None) -> dict[str, str]:
    """A client's database parameters, sorted, without those reserved by this server."""
    # Databases ignore trailing blanks of keys when comparing, some also case.
    return {key: value for key, value in sorted((parameters or {}).items()) if key.strip().lower() not in _MARKS}


@lru_cache(maxsize=8)
def _database_statement(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
    return _database_columns(missing_columns).where(
        DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == bindparam("catalog")
    )


def _database_columns(missing_columns: frozenset[tuple[str, str]]) -> Select[Any]:
    """For a schema without these columns (3.1 has no types, connectors and creation times)."""
    features = SchemaFeatures(None, missing_columns=missing_columns)
    return select(
        *(features.column(column) for column in DBS.c), DATABASE_PARAMS.c.PARAM_KEY, DATABASE_PARAMS.c.PARAM_VALUE
    ).select_from(DBS.outerjoin(DATABASE_PARAMS, DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID))


_DATABASE_ID = select(DBS.c.DB_ID).where(DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == bindparam("catalog"))
_LOCK = _DATABASE_ID.with_for_update()


def read_database(connection: Connection, catalog: str, database: str) -> DatabaseRow | None:
    """The database with this (normalized) name, in one statement; None if it does not exist."""
    statement = _database_statement(features_of(connection).missing_columns)
    rows = comparable_rows(connection, statement, {"catalog": catalog, "database": database})
    return _database_row(rows) if rows else None


def lock_database(connection: Connection, catalog: str, database: str) -> DatabaseRow | None:
    """Locks the database's row until the transaction ends, then reads the database; None if it does not exist.

    Otherwise two concurrent changes could overwrite each other, or a drop be followed by a change in the log.
    """
    names = {"catalog": catalog, "database": database}
    # SQLite has one writer at a time.
    if connection.dialect.name != "sqlite" and not comparable_rows(connection, _LOCK, names):
        return None
    return read_database(connection, catalog, database)


def lock_databases(connection: Connection, catalog: str, databases: Collection[str]) -> dict[str, DatabaseRow]:
    """Like `lock_database` for several, locked in order of their ids. Returns those that exist, by name, unordered."""
    conditions = (DBS.c.CTLG_NAME == catalog, DBS.c.NAME.in_(sorted(databases)))
    if connection.dialect.name != "sqlite":
        connection.execute(select(DBS.c.DB_ID).where(*conditions).order_by(DBS.c.DB_ID).with_for_update()).all()
    return read_databases(connection, catalog, *conditions)


def read_databases(connection: Connection, catalog: str, *conditions: ColumnElement[bool]) -> dict[str, DatabaseRow]:
    """The databases of a (normalized) catalog that match the conditions, by name, unordered, in one statement."""
    statement = _database_columns(features_of(connection).missing_columns)
    rows_of: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(statement.where(DBS.c.CTLG_NAME == catalog, *conditions)):
        rows_of.setdefault(row.NAME, []).append(row)
    return {name: _database_row(rows) for name, rows in rows_of.items()}


def read_database_id(connection: Connection, catalog: str, database: str) -> int | None:
    """DB_ID of the database; None if it does not exist."""
    rows = comparable_rows(connection, _DATABASE_ID, {"catalog": catalog, "database": database})
    return rows[0][0] if rows else None


def require_database(connection: Connection, database: DatabaseName) -> DatabaseRow:
    """The database. Raises NoSuchObjectException with Hive's text."""
    found = read_database(connection, *database)
    if found is None:
        raise NoSuchObjectException(f"database {database.as_sent}")
    return found


def read_catalog(connection: Connection, catalog: str) -> Catalog | None:
    """The catalog with this (normalized) name. Its parameters are None if the schema has none (before 4.2)."""
    features = features_of(connection)
    columns = [features.column(column) for column in CTLGS.c]
    row = connection.execute(select(*columns).where(CTLGS.c.NAME == catalog)).first()
    if row is None:
        return None
    parameters = None
    if features.has(CATALOG_PARAMS):
        stored = CATALOG_PARAMS.c
        of_it = (stored.CTLG_ID == row.CTLG_ID) & stored.PARAM_VALUE.is_not(None)
        rows = connection.execute(select(stored.PARAM_KEY, stored.PARAM_VALUE).where(of_it)).tuples()
        parameters = dict(sorted(rows))
    return Catalog(row.NAME, row.DESC, row.LOCATION_URI, row.CREATE_TIME, parameters)


def lock_catalog(connection: Connection, catalog: str) -> Catalog | None:
    """Like `lock_database` for a catalog. Also prevents additions of databases to it."""
    locked = select(CTLGS.c.NAME).where(CTLGS.c.NAME == catalog).with_for_update()
    if connection.dialect.name != "sqlite" and connection.execute(locked).first() is None:
        return None
    return read_catalog(connection, catalog)


def _database_row(rows: list[Row[Any]] | Any) -> DatabaseRow:
    marks = {row.PARAM_KEY: row.PARAM_VALUE or "" for row in rows if row.PARAM_KEY in _MARKS}
    return DatabaseRow(_database(rows), rows[0].DB_ID, marks)


def _database(rows: list[Row[Any]] | Any) -> Database:
    row = rows[0]
    is_remote = (row.TYPE or "NATIVE").upper() == "REMOTE"
    return Database(
        name=row.NAME,
        description=row.DESC,
        locationUri=row.DB_LOCATION_URI,
        parameters=dict(
            sorted(
                (each.PARAM_KEY, each.PARAM_VALUE)
                for each in rows
                if each.PARAM_KEY is not None and each.PARAM_VALUE is not None and each.PARAM_KEY not in _MARKS
            )
        ),
        ownerName=row.OWNER_NAME,
        ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE) if row.OWNER_TYPE else None,
        catalogName=row.CTLG_NAME,
        createTime=row.CREATE_TIME,
        managedLocationUri=row.DB_MANAGED_LOCATION_URI,
        type=DatabaseType.REMOTE if is_remote else DatabaseType.NATIVE,
        connector_name=row.DATACONNECTOR_NAME if is_remote else None,
        remote_dbname=row.REMOTE_DBNAME if is_remote else None,
    )
