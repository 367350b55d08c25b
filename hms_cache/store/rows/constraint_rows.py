"""Constraints as rows: reads them in two statements, and updates them when columns change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    delete,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from hms_cache.batches import batches
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, in_ids
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
from hms_cache.values import frozen

PRIMARY_KEY, FOREIGN_KEY, UNIQUE, NOT_NULL, DEFAULT, CHECK = range(6)
"""Values of KEY_CONSTRAINTS.CONSTRAINT_TYPE."""


@frozen
class ConstraintKind:
    """The names of one kind of constraint in structs and in the database."""

    number: int
    """The value of `CONSTRAINT_TYPE`."""
    struct: type[Any]
    list_field: str
    """The field of `SQLAllTableConstraints`."""
    name_field: str
    suffix: str
    """Suffix of generated names."""
    has_position: bool
    value_field: str = ""
    """Empty if it has no value."""


_CHECKS = ConstraintKind(CHECK, SQLCheckConstraint, "checkConstraints", "dc_name", "dc", False, "check_expression")

KINDS = (
    ConstraintKind(PRIMARY_KEY, SQLPrimaryKey, "primaryKeys", "pk_name", "pk", True),
    ConstraintKind(FOREIGN_KEY, SQLForeignKey, "foreignKeys", "fk_name", "fk", True),
    ConstraintKind(UNIQUE, SQLUniqueConstraint, "uniqueConstraints", "uk_name", "uk", True),
    ConstraintKind(NOT_NULL, SQLNotNullConstraint, "notNullConstraints", "nn_name", "nn", False),
    _CHECKS,
    ConstraintKind(DEFAULT, SQLDefaultConstraint, "defaultConstraints", "dc_name", "dc", False, "default_value"),
)
"""In the order in which Hive adds them."""

_KIND_OF_NUMBER = {kind.number: kind for kind in KINDS}

ENABLE, VALIDATE, RELY = 4, 2, 1
"""Bits of KEY_CONSTRAINTS.ENABLE_VALIDATE_RELY."""

_PARENT, _PARENT_DB = TBLS.alias("P"), DBS.alias("PD")
_CHILD, _CHILD_DB = TBLS.alias("C"), DBS.alias("CD")
_K = KEY_CONSTRAINTS

# A column is identified by the column descriptor and its position there; a partition key by its position and no
# descriptor.
_COLUMNS = (
    _K.c.CONSTRAINT_NAME,
    _K.c.CONSTRAINT_TYPE,
    _K.c.POSITION,
    _K.c.UPDATE_RULE,
    _K.c.DELETE_RULE,
    _K.c.ENABLE_VALIDATE_RELY,
    _K.c.DEFAULT_VALUE,
    _K.c.PARENT_TBL_ID,
    _K.c.PARENT_CD_ID,
    _K.c.PARENT_INTEGER_IDX,
    _K.c.CHILD_TBL_ID,
    _K.c.CHILD_CD_ID,
    _K.c.CHILD_INTEGER_IDX,
    _PARENT_DB.c.CTLG_NAME.label("CATALOG"),
    _PARENT_DB.c.NAME.label("PARENT_DATABASE"),
    _PARENT.c.TBL_NAME.label("PARENT_TABLE"),
    _CHILD_DB.c.NAME.label("CHILD_DATABASE"),
    _CHILD.c.TBL_NAME.label("CHILD_TABLE"),
)

_WITH_NAMES = (
    _K.join(_PARENT, _PARENT.c.TBL_ID == _K.c.PARENT_TBL_ID)
    .join(_PARENT_DB, _PARENT_DB.c.DB_ID == _PARENT.c.DB_ID)
    .outerjoin(_CHILD, _CHILD.c.TBL_ID == _K.c.CHILD_TBL_ID)
    .outerjoin(_CHILD_DB, _CHILD_DB.c.DB_ID == _CHILD.c.DB_ID)
)

_OF_TABLE = or_(
    and_(_K.c.PARENT_TBL_ID == TBLS.c.TBL_ID, _K.c.CONSTRAINT_TYPE != FOREIGN_KEY),
    and_(_K.c.CHILD_TBL_ID == TBLS.c.TBL_ID, _K.c.CONSTRAINT_TYPE == FOREIGN_KEY),
)
"""Constraints on the table, and its foreign keys."""

_CONSTRAINTS_OF_TABLE = (
    select(TBLS.c.TBL_ID, *_COLUMNS)
    .select_from(TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).outerjoin(_WITH_NAMES, _OF_TABLE))
    .where(
        TBLS.c.TBL_NAME == bindparam("table"),
        DBS.c.NAME == bindparam("database"),
        DBS.c.CTLG_NAME == bindparam("catalog"),
    )
)

_FOREIGN_KEYS = select(*_COLUMNS).select_from(_WITH_NAMES).where(_K.c.CONSTRAINT_TYPE == FOREIGN_KEY)

_KEYS_OF_TABLE = (
    select(*_COLUMNS)
    .select_from(_WITH_NAMES)
    .where(_K.c.PARENT_TBL_ID == bindparam("table_id"), _K.c.CONSTRAINT_TYPE.in_(bindparam("kinds", expanding=True)))
)

# No index contains the position of columns. In a join with constraints, all columns of a table would be read for each
# row of a key, and all keys of its parent for each row of a foreign key. So they are read separately, once. The texts
# of the three parts are separate columns, since their collations may differ in Hive's schema on MySQL.
_IS_COLUMN, _IS_PARTITION_KEY, _IS_KEY_OF_PARENT = range(3)
_ZERO: ColumnElement[int] = literal_column("0")
_NONE = null()
_COLUMNS_NAMED = union_all(
    select(
        literal_column(str(_IS_COLUMN)).label("PART"),
        COLUMNS_V2.c.CD_ID.label("OWNER_ID"),
        COLUMNS_V2.c.INTEGER_IDX.label("PLACE"),
        _ZERO.label("CD_ID"),
        _ZERO.label("KIND"),
        COLUMNS_V2.c.COLUMN_NAME,
        COLUMNS_V2.c.TYPE_NAME,
        _NONE.label("PKEY_NAME"),
        _NONE.label("PKEY_TYPE"),
        _NONE.label("CONSTRAINT_NAME"),
    ).where(
        in_ids(COLUMNS_V2.c.CD_ID, "cd_ids"), COLUMNS_V2.c.INTEGER_IDX.between(bindparam("first"), bindparam("last"))
    ),
    select(
        literal_column(str(_IS_PARTITION_KEY)),
        PARTITION_KEYS.c.TBL_ID,
        PARTITION_KEYS.c.INTEGER_IDX,
        _ZERO,
        _ZERO,
        _NONE,
        _NONE,
        PARTITION_KEYS.c.PKEY_NAME,
        PARTITION_KEYS.c.PKEY_TYPE,
        _NONE,
    ).where(in_ids(PARTITION_KEYS.c.TBL_ID, "partitioned_ids")),
    select(
        literal_column(str(_IS_KEY_OF_PARENT)),
        _K.c.PARENT_TBL_ID,
        _K.c.PARENT_INTEGER_IDX,
        _K.c.PARENT_CD_ID,
        _K.c.CONSTRAINT_TYPE,
        _NONE,
        _NONE,
        _NONE,
        _NONE,
        _K.c.CONSTRAINT_NAME,
    ).where(in_ids(_K.c.PARENT_TBL_ID, "parent_ids"), _K.c.CONSTRAINT_TYPE.in_((PRIMARY_KEY, UNIQUE))),
)

_Column = tuple[str | None, str | None]
"""Name and type; None if the row is missing."""

_ColumnPosition = tuple[int | None, int]
"""CD_ID (None for partition keys) and position."""


class _Named:
    """The columns, and the keys at the other end of foreign keys, that rows of KEY_CONSTRAINTS refer to by ids."""

    def __init__(self, connection: Connection, rows: Sequence[Row[Any]]) -> None:
        self._columns: dict[tuple[int, int], _Column] = {}
        self._partition_keys: dict[tuple[int, int], _Column] = {}
        self._keyed_positions: dict[int, set[_ColumnPosition]] = {}
        self._primary_keys: dict[int, str] = {}
        ends = [(row.PARENT_TBL_ID, row.PARENT_CD_ID, row.PARENT_INTEGER_IDX) for row in rows]
        foreign = [row for row in rows if row.CONSTRAINT_TYPE == FOREIGN_KEY]
        ends += [(row.CHILD_TBL_ID, row.CHILD_CD_ID, row.CHILD_INTEGER_IDX) for row in foreign]
        ids = {
            "cd_ids": sorted({cd_id for _, cd_id, _ in ends if cd_id is not None}),
            "partitioned_ids": sorted({table_id for table_id, cd_id, _ in ends if cd_id is None and table_id}),
            "parent_ids": sorted({row.PARENT_TBL_ID for row in foreign}),
        }
        places = [place for _, _, place in ends if place is not None]
        values = {"first": min(places, default=0), "last": max(places, default=0)}
        for start in range(0, max(map(len, ids.values())), IDS_IN_A_STATEMENT):
            some = {name: list(found[start : start + IDS_IN_A_STATEMENT]) for name, found in ids.items()}
            for row in connection.execute(_COLUMNS_NAMED, {**values, **some}).all():
                self._take(row)

    def _take(self, row: Row[Any]) -> None:
        place = (row.OWNER_ID, row.PLACE)
        if row.PART == _IS_COLUMN:
            self._columns[place] = row.COLUMN_NAME, row.TYPE_NAME
        elif row.PART == _IS_PARTITION_KEY:
            self._partition_keys[place] = row.PKEY_NAME, row.PKEY_TYPE
        else:
            self._keyed_positions.setdefault(row.OWNER_ID, set()).add((row.CD_ID, row.PLACE))
            if row.KIND == PRIMARY_KEY:
                name = self._primary_keys.get(row.OWNER_ID, row.CONSTRAINT_NAME)
                self._primary_keys[row.OWNER_ID] = max(name, row.CONSTRAINT_NAME)

    def parent_column(self, row: Row[Any]) -> _Column:
        """The column of a constraint."""
        return self._column(row.PARENT_TBL_ID, row.PARENT_CD_ID, row.PARENT_INTEGER_IDX)

    def child_column(self, row: Row[Any]) -> _Column:
        """The column that has a foreign key."""
        return self._column(row.CHILD_TBL_ID, row.CHILD_CD_ID, row.CHILD_INTEGER_IDX)

    def primary_key(self, row: Row[Any]) -> str | None:
        """The name of the parent's primary key."""
        return self._primary_keys.get(row.PARENT_TBL_ID)

    def has_its_key(self, row: Row[Any]) -> bool:
        """Whether the parent still has a key on the column to which a foreign key refers.

        Engines remove joins because of foreign keys, which is only correct if there is a key at the other end. Hive's
        metastore omits foreign keys whose parent has no primary key (`MetaStoreDirectSql.getForeignKeys`, 4.0.1); it
        also omits those that refer to unique keys, which it returns without direct SQL. The row is kept, and the
        foreign key is returned again when the parent gets a key.
        """
        return (row.PARENT_CD_ID, row.PARENT_INTEGER_IDX) in self._keyed_positions.get(row.PARENT_TBL_ID, ())

    def _column(self, table_id: int, cd_id: int | None, place: int) -> _Column:
        found = self._partition_keys.get((table_id, place)) if cd_id is None else self._columns.get((cd_id, place))
        return found or (None, None)


def read_constraints(connection: Connection, table: TableName) -> SQLAllTableConstraints | None:
    """All constraints of a table, including its foreign keys, in two statements, or one if it has none. None if the
    table does not exist."""
    rows = connection.execute(_CONSTRAINTS_OF_TABLE, table._asdict()).all()
    if not rows:
        return None
    rows = [row for row in rows if row.CONSTRAINT_NAME is not None]
    found = SQLAllTableConstraints([], [], [], [], [], [])
    named = _Named(connection, rows)
    for row in sorted(rows, key=lambda row: (row.CONSTRAINT_NAME, row.POSITION)):
        if row.CONSTRAINT_TYPE == FOREIGN_KEY:
            if named.has_its_key(row):
                found.foreignKeys.append(_foreign_key(row, named))
            continue
        kind = _KIND_OF_NUMBER.get(row.CONSTRAINT_TYPE, _CHECKS)
        values: dict[str, Any] = {
            "catName": row.CATALOG,
            "table_db": row.PARENT_DATABASE,
            "table_name": row.PARENT_TABLE,
            "column_name": named.parent_column(row)[0],
            kind.name_field: row.CONSTRAINT_NAME,
            **_flags(row),
        }
        if kind.has_position:
            values["key_seq"] = row.POSITION
        if kind.value_field:
            values[kind.value_field] = row.DEFAULT_VALUE
        getattr(found, kind.list_field).append(kind.struct(**values))
    return found


def move_constraints_to_columns(
    connection: Connection, table_id: int, old_cd_id: int, new_cd_id: int, positions: dict[int, int]
) -> None:
    """Moves a table's constraints to its new column descriptor. `positions` maps old positions to new ones.

    A constraint on a removed column is deleted as a whole, since the rest of a key is not a key. Hive 4.0.1 keeps the
    rest of a key of several columns.
    """
    for cd, index, owner in (
        (_K.c.PARENT_CD_ID, _K.c.PARENT_INTEGER_IDX, _K.c.PARENT_TBL_ID),
        (_K.c.CHILD_CD_ID, _K.c.CHILD_INTEGER_IDX, _K.c.CHILD_TBL_ID),
    ):
        are_on_old = and_(owner == table_id, cd == old_cd_id)
        rows = connection.execute(
            select(_K.c.PARENT_TBL_ID, _K.c.CONSTRAINT_NAME, index.label("PLACE")).where(are_on_old)
        ).all()
        gone = {(row.PARENT_TBL_ID, row.CONSTRAINT_NAME) for row in rows if row.PLACE not in positions}
        for some in batches(sorted(gone), _NAMES_IN_A_STATEMENT):
            # The ids alone as well: not every database uses its index for pairs.
            is_parent = _K.c.PARENT_TBL_ID.in_(sorted({parent_id for parent_id, _ in some}))
            are_gone = tuple_(_K.c.PARENT_TBL_ID, _K.c.CONSTRAINT_NAME).in_(some)
            connection.execute(delete(_K).where(is_parent, are_gone))
        places = sorted({row.PLACE for row in rows} & positions.keys())
        moved = {place: positions[place] for place in places if positions[place] != place}
        for batch in batches(sorted(moved), _PLACES_IN_A_STATEMENT):
            values = {cd: new_cd_id, index: case({place: moved[place] for place in batch}, value=index, else_=index)}
            connection.execute(update(_K).where(are_on_old, index.in_(batch)).values(values))
        if len(moved) < len(places):
            # The remaining rows: those with changed positions have been updated already.
            connection.execute(update(_K).where(are_on_old).values({cd: new_cd_id}))


_NAMES_IN_A_STATEMENT = 5_000

_PLACES_IN_A_STATEMENT = 500
"""Each is used three times in it."""


def _flags(row: Row[Any]) -> dict[str, Any]:
    bits = row.ENABLE_VALIDATE_RELY
    return {"enable_cstr": bool(bits & ENABLE), "validate_cstr": bool(bits & VALIDATE), "rely_cstr": bool(bits & RELY)}


def _foreign_key(row: Row[Any], named: _Named) -> SQLForeignKey:
    return SQLForeignKey(
        pktable_db=row.PARENT_DATABASE,
        pktable_name=row.PARENT_TABLE,
        pkcolumn_name=named.parent_column(row)[0],
        fktable_db=row.CHILD_DATABASE,
        fktable_name=row.CHILD_TABLE,
        fkcolumn_name=named.child_column(row)[0],
        key_seq=row.POSITION,
        update_rule=row.UPDATE_RULE or 0,
        delete_rule=row.DELETE_RULE or 0,
        fk_name=row.CONSTRAINT_NAME,
        pk_name=named.primary_key(row),
        catName=row.CATALOG,
        **_flags(row),
    )


def read_foreign_keys(
    connection: Connection,
    catalog: str,
    parent: tuple[str | None, str | None],
    child: tuple[str | None, str | None],
) -> list[SQLForeignKey]:
    """Foreign keys between (database, table) pairs, where None matches any; by child, constraint name, position."""
    statement = _FOREIGN_KEYS.where(_PARENT_DB.c.CTLG_NAME == catalog)
    columns = (_PARENT_DB.c.NAME, _PARENT.c.TBL_NAME, _CHILD_DB.c.NAME, _CHILD.c.TBL_NAME)
    for column, name in zip(columns, (*parent, *child), strict=True):
        if name is not None:
            statement = statement.where(column == normalize_identifier(name))
    rows = sorted(
        connection.execute(statement).all(),
        key=lambda row: (row.CHILD_DATABASE, row.CHILD_TABLE, row.CONSTRAINT_NAME, row.POSITION),
    )
    named = _Named(connection, rows)
    return [_foreign_key(row, named) for row in rows if named.has_its_key(row)]


def keys_of(connection: Connection, table_id: int, kinds: Sequence[int]) -> list[frozenset[tuple[str, str]]]:
    """The keys of these kinds that a table has: the (column, type) pairs of each."""
    rows = connection.execute(_KEYS_OF_TABLE, {"table_id": table_id, "kinds": list(kinds)}).all()
    named = _Named(connection, rows)
    keys: dict[str, set[Any]] = {}
    for row in rows:
        keys.setdefault(row.CONSTRAINT_NAME, set()).add(named.parent_column(row))
    return [frozenset(columns) for columns in keys.values()]
