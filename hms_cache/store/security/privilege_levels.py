"""The levels of privileges: one table of grants per kind of object, and the lookup of a request's object.

`LEVELS` is in the order in which Hive lists all grants: global, databases, data connectors, tables, partitions, columns
of tables, columns of partitions.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, FromClause, Select, Table, null, select

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.rows.comparable_texts import comparable_rows
from hms_cache.store.schema import (
    DATACONNECTORS,
    DB_PRIVS,
    DBS,
    DC_PRIVS,
    GLOBAL_PRIVS,
    PART_COL_PRIVS,
    PART_PRIVS,
    PARTITION_KEYS,
    PARTITIONS,
    TBL_COL_PRIVS,
    TBL_PRIVS,
    TBLS,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import HiveObjectRef, HiveObjectType, MetaException
from hms_cache.values import frozen


@frozen
class Level:
    """One table of grants."""

    object_type: int
    table: Table
    model: str
    """The model class of its ids."""

    id_column: Column[Any]
    privilege: Column[Any]
    object_column: Column[Any] | None
    """The column of the object's id; None for global grants."""

    source: FromClause
    """The grants, joined with the names of their objects."""

    has_columns: bool = False
    has_partitions: bool = False


_DATABASES = DBS.c.DB_ID
_TABLES_OF_DATABASES = TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)


def _of_tables(grants: Table) -> FromClause:
    return grants.join(TBLS, TBLS.c.TBL_ID == grants.c.TBL_ID).join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)


def _of_partitions(grants: Table) -> FromClause:
    return (
        grants.join(PARTITIONS, PARTITIONS.c.PART_ID == grants.c.PART_ID)
        .join(TBLS, TBLS.c.TBL_ID == PARTITIONS.c.TBL_ID)
        .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
    )


def _level(
    object_type: int,
    table: Table,
    model: str,
    object_name: str | None,
    source: FromClause,
    *,
    columns: bool = False,
    partitions: bool = False,
) -> Level:
    """`object_name`: the column of the object's id. The columns of the grant's id and of the privilege are determined
    here."""
    (id_column,) = table.primary_key.columns
    (privilege,) = (column for column in table.columns if column.name.endswith("_PRIV"))
    object_column = None if object_name is None else table.c[object_name]
    return Level(object_type, table, model, id_column, privilege, object_column, source, columns, partitions)


GLOBAL = _level(HiveObjectType.GLOBAL, GLOBAL_PRIVS, "MGlobalPrivilege", None, GLOBAL_PRIVS)
DATABASE = _level(
    HiveObjectType.DATABASE, DB_PRIVS, "MDBPrivilege", "DB_ID", DB_PRIVS.join(DBS, DBS.c.DB_ID == DB_PRIVS.c.DB_ID)
)
DATA_CONNECTOR = _level(HiveObjectType.DATACONNECTOR, DC_PRIVS, "MDCPrivilege", "NAME", DC_PRIVS)
TABLE = _level(HiveObjectType.TABLE, TBL_PRIVS, "MTablePrivilege", "TBL_ID", _of_tables(TBL_PRIVS))
PARTITION = _level(
    HiveObjectType.PARTITION, PART_PRIVS, "MPartitionPrivilege", "PART_ID", _of_partitions(PART_PRIVS), partitions=True
)
TABLE_COLUMN = _level(
    HiveObjectType.COLUMN, TBL_COL_PRIVS, "MTableColumnPrivilege", "TBL_ID", _of_tables(TBL_COL_PRIVS), columns=True
)
PARTITION_COLUMN = _level(
    HiveObjectType.COLUMN,
    PART_COL_PRIVS,
    "MPartitionColumnPrivilege",
    "PART_ID",
    _of_partitions(PART_COL_PRIVS),
    columns=True,
    partitions=True,
)

LEVELS = (GLOBAL, DATABASE, DATA_CONNECTOR, TABLE, PARTITION, TABLE_COLUMN, PARTITION_COLUMN)

_PLAIN = {HiveObjectType.GLOBAL: GLOBAL, HiveObjectType.DATABASE: DATABASE, HiveObjectType.TABLE: TABLE}
_PLAIN |= {HiveObjectType.PARTITION: PARTITION, HiveObjectType.DATACONNECTOR: DATA_CONNECTOR}


def level_of(reference: HiveObjectRef) -> Level:
    """The table of grants for an object. Raises MetaException for an unknown type."""
    if reference.objectType == HiveObjectType.COLUMN:
        return PARTITION_COLUMN if reference.partValues else TABLE_COLUMN
    level = _PLAIN.get(reference.objectType)
    if level is None:
        raise MetaException(f"Unexpected object type {reference.objectType}")
    return level


def column_of(level: Level, reference: HiveObjectRef) -> str | None:
    """The column in a request, as stored."""
    return normalize_identifier(reference.columnName) if level.has_columns and reference.columnName else None


@frozen
class Target:
    """An existing object."""

    level: Level
    object_id: Any = None
    """The id of its row, or a data connector's name; None for global."""

    column: str | None = None
    partition_name: str | None = None


def find_target(connection: Connection, reference: HiveObjectRef, *, lock: bool = False) -> Target | None:
    """The object of a request; None if it does not exist.

    :param lock: locks its row against other grants and drops until the transaction ends.
    :raises MetaException: the type is unknown, or the number of the partition's values is not that of the keys.
    """
    level = level_of(reference)
    column = column_of(level, reference)
    if level is GLOBAL:
        return Target(level)
    if level is DATA_CONNECTOR:
        if not features_of(connection).has(DATACONNECTORS):
            return None
        name = normalize_identifier(reference.objectName or "")
        is_it = same_text(DATACONNECTORS.c.NAME, name)
        return _found(connection, level, select(DATACONNECTORS.c.NAME).where(is_it), lock)
    catalog = normalize_catalog(reference.catName or DEFAULT_CATALOG)
    database = normalize_identifier(reference.dbName or "")
    if level is DATABASE:
        statement = select(_DATABASES).where(DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog)
        return _found(connection, level, statement, lock)
    statement = (
        select(TBLS.c.TBL_ID)
        .select_from(_TABLES_OF_DATABASES)
        .where(
            TBLS.c.TBL_NAME == normalize_identifier(reference.objectName or ""),
            DBS.c.NAME == database,
            DBS.c.CTLG_NAME == catalog,
        )
    )
    table = _found(connection, TABLE, statement, lock)
    if table is None or not level.has_partitions:
        return None if table is None else Target(level, table.object_id, column)
    keys = connection.execute(
        select(PARTITION_KEYS.c.PKEY_NAME)
        .where(PARTITION_KEYS.c.TBL_ID == table.object_id)
        .order_by(PARTITION_KEYS.c.INTEGER_IDX)
    )
    name = make_partition_name(list(keys.scalars()), reference.partValues or [])
    part_id = connection.execute(
        select(PARTITIONS.c.PART_ID).where(
            PARTITIONS.c.TBL_ID == table.object_id, same_text(PARTITIONS.c.PART_NAME, name)
        )
    ).scalar()
    return None if part_id is None else Target(level, part_id, column, name)


def name_columns(level: Level) -> tuple[Any, ...]:
    """Catalog, database, object, partition and column, for a SELECT from `Level.source`."""
    nothing = null()
    column = level.table.c.COLUMN_NAME if level.has_columns else nothing
    if level is GLOBAL:
        return (nothing,) * 5
    if level is DATABASE:
        return (DBS.c.CTLG_NAME, DBS.c.NAME, nothing, nothing, nothing)
    if level is DATA_CONNECTOR:
        return (nothing, nothing, DC_PRIVS.c.NAME, nothing, nothing)
    partition = PARTITIONS.c.PART_NAME if level.has_partitions else nothing
    return (DBS.c.CTLG_NAME, DBS.c.NAME, TBLS.c.TBL_NAME, partition, column)


def _found(connection: Connection, level: Level, statement: Select[Any], lock: bool) -> Target | None:
    if lock:
        statement = statement.with_for_update()
    rows = comparable_rows(connection, statement, {})
    return Target(level, rows[0][0]) if rows else None
