"""Constraints as rows: read in one statement, moved along with the columns they are on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, FromClause, Row, Select, and_, delete, exists, func, or_, select

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.schema import COLUMNS_V2, DBS, KEY_CONSTRAINTS, PARTITION_KEYS, TBLS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)

PRIMARY_KEY, FOREIGN_KEY, UNIQUE, NOT_NULL, DEFAULT, CHECK = range(6)
"""Values of KEY_CONSTRAINTS.CONSTRAINT_TYPE."""

ENABLE, VALIDATE, RELY = 4, 2, 1
"""Bits of KEY_CONSTRAINTS.ENABLE_VALIDATE_RELY."""

_PARENT, _PARENT_DB = TBLS.alias("P"), DBS.alias("PD")
_CHILD, _CHILD_DB = TBLS.alias("C"), DBS.alias("CD")
_PARENT_COLUMN, _CHILD_COLUMN = COLUMNS_V2.alias("PC"), COLUMNS_V2.alias("CC")
_PARENT_KEY, _CHILD_KEY = PARTITION_KEYS.alias("PK"), PARTITION_KEYS.alias("CK")
_K = KEY_CONSTRAINTS
_OTHER = KEY_CONSTRAINTS.alias("K2")


def _with_column(joined: FromClause, column: FromClause, key: FromClause, end: str) -> FromClause:
    """Joined with the column at one end of a constraint.

    A column is named by the column descriptor and its position there; a partition key by its position alone.
    """
    descriptor_id, position = _K.c[f"{end}_CD_ID"], _K.c[f"{end}_INTEGER_IDX"]
    return joined.outerjoin(column, and_(column.c.CD_ID == descriptor_id, column.c.INTEGER_IDX == position)).outerjoin(
        key,
        and_(descriptor_id.is_(None), key.c.TBL_ID == _K.c[f"{end}_TBL_ID"], key.c.INTEGER_IDX == position),
    )


_SELECT = select(
    _K.c.CONSTRAINT_NAME,
    _K.c.CONSTRAINT_TYPE,
    _K.c.POSITION,
    _K.c.UPDATE_RULE,
    _K.c.DELETE_RULE,
    _K.c.ENABLE_VALIDATE_RELY,
    _K.c.DEFAULT_VALUE,
    _PARENT_DB.c.CTLG_NAME.label("CATALOG"),
    _PARENT_DB.c.NAME.label("PARENT_DATABASE"),
    _PARENT.c.TBL_NAME.label("PARENT_TABLE"),
    func.coalesce(_PARENT_COLUMN.c.COLUMN_NAME, _PARENT_KEY.c.PKEY_NAME).label("PARENT_COLUMN"),
    func.coalesce(_PARENT_COLUMN.c.TYPE_NAME, _PARENT_KEY.c.PKEY_TYPE).label("PARENT_TYPE"),
    _CHILD_DB.c.NAME.label("CHILD_DATABASE"),
    _CHILD.c.TBL_NAME.label("CHILD_TABLE"),
    func.coalesce(_CHILD_COLUMN.c.COLUMN_NAME, _CHILD_KEY.c.PKEY_NAME).label("CHILD_COLUMN"),
    select(func.max(_OTHER.c.CONSTRAINT_NAME))
    .where(_OTHER.c.PARENT_TBL_ID == _K.c.PARENT_TBL_ID, _OTHER.c.CONSTRAINT_TYPE == PRIMARY_KEY)
    .scalar_subquery()
    .label("PRIMARY_KEY_NAME"),
).select_from(
    _with_column(
        _with_column(
            _K.join(_PARENT, _PARENT.c.TBL_ID == _K.c.PARENT_TBL_ID)
            .join(_PARENT_DB, _PARENT_DB.c.DB_ID == _PARENT.c.DB_ID)
            .outerjoin(_CHILD, _CHILD.c.TBL_ID == _K.c.CHILD_TBL_ID)
            .outerjoin(_CHILD_DB, _CHILD_DB.c.DB_ID == _CHILD.c.DB_ID),
            _PARENT_COLUMN,
            _PARENT_KEY,
            "PARENT",
        ),
        _CHILD_COLUMN,
        _CHILD_KEY,
        "CHILD",
    )
)


_HAS_ITS_KEY = exists().where(
    _OTHER.c.PARENT_TBL_ID == _K.c.PARENT_TBL_ID,
    _OTHER.c.PARENT_INTEGER_IDX == _K.c.PARENT_INTEGER_IDX,
    or_(_OTHER.c.PARENT_CD_ID == _K.c.PARENT_CD_ID, and_(_OTHER.c.PARENT_CD_ID.is_(None), _K.c.PARENT_CD_ID.is_(None))),
    _OTHER.c.CONSTRAINT_TYPE.in_((PRIMARY_KEY, UNIQUE)),
)
"""Whether the parent still has a key on the column that a foreign key names.

Engines leave joins out because of foreign keys, which is right only with a key at the other end. Hive's metastore
answers none without a primary key there (`MetaStoreDirectSql.getForeignKeys`, 4.0.1), nor those of unique keys, which
it does without direct SQL; the row stays, and comes back with the next key.
"""


def read_constraints(connection: Connection, table_id: int) -> SQLAllTableConstraints:
    """All constraints of a table in one statement: those on it, and the foreign keys that it holds."""
    statement = _SELECT.where(
        or_(
            and_(_K.c.PARENT_TBL_ID == table_id, _K.c.CONSTRAINT_TYPE != FOREIGN_KEY),
            and_(_K.c.CHILD_TBL_ID == table_id, _K.c.CONSTRAINT_TYPE == FOREIGN_KEY, _HAS_ITS_KEY),
        )
    )
    found = SQLAllTableConstraints([], [], [], [], [], [])
    for row in sorted(connection.execute(statement), key=lambda row: (row.CONSTRAINT_NAME, row.POSITION)):
        if row.CONSTRAINT_TYPE == FOREIGN_KEY:
            found.foreignKeys.append(foreign_key(row))
            continue
        place: dict[str, Any] = {
            "catName": row.CATALOG,
            "table_db": row.PARENT_DATABASE,
            "table_name": row.PARENT_TABLE,
        }
        place["column_name"] = row.PARENT_COLUMN
        name, sequence = row.CONSTRAINT_NAME, row.POSITION
        if row.CONSTRAINT_TYPE == PRIMARY_KEY:
            found.primaryKeys.append(SQLPrimaryKey(**place, key_seq=sequence, pk_name=name, **_flags(row)))
        elif row.CONSTRAINT_TYPE == UNIQUE:
            found.uniqueConstraints.append(SQLUniqueConstraint(**place, key_seq=sequence, uk_name=name, **_flags(row)))
        elif row.CONSTRAINT_TYPE == NOT_NULL:
            found.notNullConstraints.append(SQLNotNullConstraint(**place, nn_name=name, **_flags(row)))
        elif row.CONSTRAINT_TYPE == DEFAULT:
            found.defaultConstraints.append(
                SQLDefaultConstraint(**place, default_value=row.DEFAULT_VALUE, dc_name=name, **_flags(row))
            )
        else:
            found.checkConstraints.append(
                SQLCheckConstraint(**place, check_expression=row.DEFAULT_VALUE, dc_name=name, **_flags(row))
            )
    return found


def move_constraints_to_columns(
    connection: Connection, table_id: int, old_cd_id: int, new_cd_id: int, positions: dict[int, int]
) -> None:
    """Points the constraints of a table at its new column descriptor; `positions` maps old places to new ones.

    A constraint on a column that is gone goes too, whole. Hive drops all constraints of the table instead when no
    partition shares the old columns, and leaves them at the old columns otherwise.
    """
    for cd, index, owner in (
        (_K.c.PARENT_CD_ID, _K.c.PARENT_INTEGER_IDX, _K.c.PARENT_TBL_ID),
        (_K.c.CHILD_CD_ID, _K.c.CHILD_INTEGER_IDX, _K.c.CHILD_TBL_ID),
    ):
        rows = connection.execute(
            select(_K.c.PARENT_TBL_ID, _K.c.CONSTRAINT_NAME, _K.c.POSITION, index.label("PLACE")).where(
                owner == table_id, cd == old_cd_id
            )
        ).all()
        gone = {(row.PARENT_TBL_ID, row.CONSTRAINT_NAME) for row in rows if row.PLACE not in positions}
        for parent_id, name in sorted(gone):
            connection.execute(delete(_K).where(_K.c.PARENT_TBL_ID == parent_id, _K.c.CONSTRAINT_NAME == name))
        for row in rows:
            if (row.PARENT_TBL_ID, row.CONSTRAINT_NAME) not in gone:
                connection.execute(
                    _K.update()
                    .where(
                        _K.c.PARENT_TBL_ID == row.PARENT_TBL_ID,
                        _K.c.CONSTRAINT_NAME == row.CONSTRAINT_NAME,
                        _K.c.POSITION == row.POSITION,
                    )
                    .values({cd.name: new_cd_id, index.name: positions[row.PLACE]})
                )


def _flags(row: Row[Any]) -> dict[str, Any]:
    bits = row.ENABLE_VALIDATE_RELY
    return {"enable_cstr": bool(bits & ENABLE), "validate_cstr": bool(bits & VALIDATE), "rely_cstr": bool(bits & RELY)}


def foreign_key(row: Row[Any]) -> SQLForeignKey:
    """The struct of a row of `select_foreign_keys`."""
    return SQLForeignKey(
        pktable_db=row.PARENT_DATABASE,
        pktable_name=row.PARENT_TABLE,
        pkcolumn_name=row.PARENT_COLUMN,
        fktable_db=row.CHILD_DATABASE,
        fktable_name=row.CHILD_TABLE,
        fkcolumn_name=row.CHILD_COLUMN,
        key_seq=row.POSITION,
        update_rule=row.UPDATE_RULE or 0,
        delete_rule=row.DELETE_RULE or 0,
        fk_name=row.CONSTRAINT_NAME,
        pk_name=row.PRIMARY_KEY_NAME,
        catName=row.CATALOG,
        **_flags(row),
    )


def foreign_key_order(row: Row[Any]) -> tuple[Any, ...]:
    """By child, constraint name, position."""
    return row.CHILD_DATABASE, row.CHILD_TABLE, row.CONSTRAINT_NAME, row.POSITION


def select_foreign_keys(
    catalog: str, parent: tuple[str | None, str | None], child: tuple[str | None, str | None]
) -> Select[Any]:
    """Foreign keys between (database, table) pairs; None stands for any."""
    statement = _SELECT.where(_K.c.CONSTRAINT_TYPE == FOREIGN_KEY, _PARENT_DB.c.CTLG_NAME == catalog, _HAS_ITS_KEY)
    columns = (_PARENT_DB.c.NAME, _PARENT.c.TBL_NAME, _CHILD_DB.c.NAME, _CHILD.c.TBL_NAME)
    for column, name in zip(columns, (*parent, *child), strict=True):
        if name is not None:
            statement = statement.where(column == normalize_identifier(name))
    return statement


def keys_of(connection: Connection, table_id: int, kinds: Sequence[int]) -> list[frozenset[tuple[str, str]]]:
    """The keys of these kinds that a table has: (column, type) of each one's columns."""
    statement = _SELECT.where(_K.c.PARENT_TBL_ID == table_id, _K.c.CONSTRAINT_TYPE.in_(kinds))
    keys: dict[str, set[tuple[str, str]]] = {}
    for row in connection.execute(statement):
        keys.setdefault(row.CONSTRAINT_NAME, set()).add((row.PARENT_COLUMN, row.PARENT_TYPE))
    return [frozenset(columns) for columns in keys.values()]
