"""Table constraints. Facts: `ObjectStore.addPrimaryKeys` … `dropConstraint`, `MConstraint` (Hive 4.0)."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, or_, select, union_all
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.constraints import ConstraintReads, ConstraintWrites, KeyEnd
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.text_conditions import one_of_texts
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.constraint_rows import (
    CHECK,
    ENABLE,
    FOREIGN_KEY,
    KINDS,
    PRIMARY_KEY,
    RELY,
    UNIQUE,
    VALIDATE,
    keys_of,
    read_constraints,
    read_foreign_keys,
)
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import KEY_CONSTRAINTS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    SQLAllTableConstraints,
    SQLForeignKey,
    SQLPrimaryKey,
    Table,
)

_KIND_OF_STRUCT = {kind.struct: kind for kind in KINDS}

_Finder = Callable[[str, str, str], TableRow | None]

_Places = dict[int, dict[str, tuple[int | None, int]]]
"""CD_ID and position of each column, by table id. A partition key has no CD_ID."""

_OF_NO_COLUMN = (None, -1)
"""For a check constraint that compares columns with each other: it belongs to the table, `CHECK (a < b)`, and names no
column."""


class Constraints(PartOfStore, ConstraintReads, ConstraintWrites):
    """Reads and writes of constraints."""

    def get_table_constraints(self, table: TableName, *, version: ReadVersion = ANY_VERSION) -> SQLAllTableConstraints:
        found = run_read(self._database, lambda connection: read_constraints(connection, table))
        if found is None:
            raise NoSuchObjectException(f"{table.as_sent} table not found")
        return found

    def get_foreign_keys(
        self, catalog: str, parent: KeyEnd, child: KeyEnd, *, version: ReadVersion = ANY_VERSION
    ) -> list[SQLForeignKey]:
        of = normalize_catalog(catalog)
        return run_read(self._database, lambda connection: read_foreign_keys(connection, of, parent, child))

    def add_constraints(self, constraints: SQLAllTableConstraints) -> None:
        foreign_keys = copied(constraints)

        def add(transaction: WriteTransaction) -> None:
            _add(self._context, transaction, copied(foreign_keys))

        run_write(self._database, add)

    def drop_constraint(self, table: TableName, constraint: str) -> None:
        name = normalize_identifier(constraint)

        def drop(transaction: WriteTransaction) -> None:
            found = lock_table(transaction.connection, *table)
            count = 0
            if found is not None:
                count = _drop(transaction.connection, found.table_id, name)
            if count:
                of = Table(tableName=table.table, dbName=table.database, catName=table.catalog)
                transaction.append_event(self._context.messages.build_drop_constraint(of, constraint))
            else:
                raise NoSuchObjectException(
                    f"The constraint: {constraint} does not exist for the associated table: "
                    f"{table.database}.{table.table}"
                )

        run_write(self._database, drop)


def _drop(connection: Connection, table_id: int, name: str) -> int:
    """Deletes the table's constraint of this name; if there is none, the foreign keys of that name that refer to the
    table, as in Hive. Returns the number of rows."""
    keys = KEY_CONSTRAINTS.c
    is_named = one_of_texts(func.lower(keys.CONSTRAINT_NAME), [name])
    ends_here = keys.PARENT_TBL_ID == table_id
    is_of_table = or_(
        and_(ends_here, keys.CONSTRAINT_TYPE != FOREIGN_KEY),
        and_(keys.CHILD_TBL_ID == table_id, keys.CONSTRAINT_TYPE == FOREIGN_KEY),
    )
    for condition in (is_of_table, ends_here):
        count = connection.execute(delete(KEY_CONSTRAINTS).where(is_named, condition)).rowcount
        if count:
            return count
    return 0


def add_constraints_of_new_table(
    context: StoreContext, transaction: WriteTransaction, table: Table, constraints: SQLAllTableConstraints
) -> None:
    """Adds the constraints with which a table is created. Raises InvalidObjectException for a missing column or key."""
    foreign_keys = copied(constraints)
    for constraint in _all_of(foreign_keys):
        if constraint.catName is None:
            constraint.catName = table.catName
    _add(context, transaction, foreign_keys)


def _all_of(constraints: SQLAllTableConstraints) -> list[Any]:
    return [one for kind in KINDS for one in getattr(constraints, kind.list_field) or ()]


def _add(context: StoreContext, transaction: WriteTransaction, constraints: SQLAllTableConstraints) -> None:
    """Inserts the rows of all lists and appends an event per kind and table, the kinds in Hive's order."""
    connection = transaction.connection
    tables: dict[tuple[str, str, str], TableRow | None] = {}
    places: _Places = {}

    def find(catalog: str, database: str, table: str) -> TableRow | None:
        key = (catalog, database, table)
        if key not in tables:
            tables[key] = lock_table(connection, *key)
        return tables[key]

    for kind, group in itertools.groupby(_all_of(constraints), key=type):
        foreign_keys = list(group)
        _make_up_names(context, foreign_keys)
        rows = [_row(find, places, constraint) for constraint in foreign_keys]
        if kind is SQLPrimaryKey:
            _require_no_primary_key(connection, find, foreign_keys)
        _require_free_names(connection, rows)
        if kind is SQLForeignKey:
            _require_keys_of_parents(connection, find, foreign_keys)
        try:
            connection.execute(insert(KEY_CONSTRAINTS), rows)
        except IntegrityError as error:
            names = ", ".join(sorted({row["CONSTRAINT_NAME"] for row in rows}))
            raise InvalidObjectException(f"Constraint names that the database takes for the same: {names}") from error
        by_table = sorted(zip(rows, foreign_keys, strict=True), key=lambda pair: pair[0]["PARENT_TBL_ID"])
        for _, pairs in itertools.groupby(by_table, key=lambda pair: pair[0]["PARENT_TBL_ID"]):
            some = [constraint for _, constraint in pairs]
            parent = _parent(find, some[0])
            transaction.append_event(context.messages.build_add_constraints(parent.table, some))


def _make_up_names(context: StoreContext, foreign_keys: Sequence[Any]) -> None:
    """Gives unnamed constraints generated names in Hive's format. The columns of one key share one."""
    kind = _KIND_OF_STRUCT[type(foreign_keys[0])]
    made: dict[tuple[str, str, str], str] = {}
    for number, constraint in enumerate(foreign_keys):
        _normalize(constraint)
        name = getattr(constraint, kind.name_field)
        if name:
            setattr(constraint, kind.name_field, normalize_identifier(name))
            continue
        owner = _owner(constraint)
        if kind.has_position and constraint.key_seq not in (0, 1) and owner in made:
            name = made[owner]
        else:
            column = constraint.fkcolumn_name if kind.number == FOREIGN_KEY else constraint.column_name
            # Defaults and checks have the same letters: for one column, only the seed makes their names differ.
            seed = zlib.crc32("|".join((*owner, column or "", str(kind.number))).encode()) & 0xFFFFFFF
            name = made[owner] = f"{kind.suffix}_{seed}_{int(context.clock.epoch_s() * 1000)}_{number}"
        setattr(constraint, kind.name_field, name)


def _normalize(constraint: Any) -> None:
    constraint.catName = normalize_catalog(constraint.catName or DEFAULT_CATALOG)
    for field in (
        "table_db",
        "table_name",
        "column_name",
        "pktable_db",
        "pktable_name",
        "pkcolumn_name",
        "fktable_db",
        "fktable_name",
        "fkcolumn_name",
    ):
        value = getattr(constraint, field, None)
        if value is not None:
            setattr(constraint, field, normalize_identifier(value))


def _owner(constraint: Any) -> tuple[str, str, str]:
    """The table on which the constraint is declared."""
    if isinstance(constraint, SQLForeignKey):
        return constraint.catName, constraint.fktable_db, constraint.fktable_name
    return constraint.catName, constraint.table_db, constraint.table_name


def _parent(find: _Finder, constraint: Any) -> TableRow:
    names = _owner(constraint)
    if isinstance(constraint, SQLForeignKey):
        names = (constraint.catName, constraint.pktable_db, constraint.pktable_name)
    found = find(*names)
    if found is None:
        raise InvalidObjectException(f"Parent table not found: {names[2]}")
    return found


def _place_of(places: _Places, table: TableRow, column: str, which: str) -> tuple[int | None, int]:
    """The place of a column. Adds all columns of its table to `places`."""
    of_table = places.get(table.table_id)
    if of_table is None:
        of_table = places[table.table_id] = {}
        sd = table.table.sd
        for cd_id, columns in ((table.cd_id, sd.cols if sd is not None else None), (None, table.table.partitionKeys)):
            for position, found in enumerate(columns or ()):
                of_table.setdefault(found.name.lower(), (cd_id, position))
    place = of_table.get(column)
    if place is None:
        raise InvalidObjectException(f"{which} column not found: {column}")
    return place


def _row(find: _Finder, places: _Places, constraint: Any) -> dict[str, Any]:
    kind = _KIND_OF_STRUCT[type(constraint)]
    parent = _parent(find, constraint)
    is_foreign = kind.number == FOREIGN_KEY
    column = constraint.pkcolumn_name if is_foreign else constraint.column_name
    is_on_table = kind.number == CHECK and not column
    cd_id, position = _OF_NO_COLUMN if is_on_table else _place_of(places, parent, column, "Parent")
    row: dict[str, Any] = {
        "CHILD_CD_ID": None,
        "CHILD_INTEGER_IDX": None,
        "CHILD_TBL_ID": None,
        "PARENT_CD_ID": cd_id,
        "PARENT_INTEGER_IDX": position,
        "PARENT_TBL_ID": parent.table_id,
        "POSITION": (constraint.key_seq or 0) if kind.has_position else 1,
        "CONSTRAINT_NAME": getattr(constraint, kind.name_field),
        "CONSTRAINT_TYPE": kind.number,
        "UPDATE_RULE": None,
        "DELETE_RULE": None,
        "ENABLE_VALIDATE_RELY": ENABLE * bool(constraint.enable_cstr)
        + VALIDATE * bool(constraint.validate_cstr)
        + RELY * bool(constraint.rely_cstr),
        "DEFAULT_VALUE": getattr(constraint, kind.value_field) if kind.value_field else None,
    }
    if is_foreign:
        child = find(*_owner(constraint))
        if child is None:
            raise InvalidObjectException(f"Child table not found: {constraint.fktable_name}")
        row["CHILD_CD_ID"], row["CHILD_INTEGER_IDX"] = _place_of(places, child, constraint.fkcolumn_name, "Child")
        row["CHILD_TBL_ID"] = child.table_id
        row["UPDATE_RULE"], row["DELETE_RULE"] = constraint.update_rule or 0, constraint.delete_rule or 0
    return row


def _require_free_names(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """A constraint's name is unique in the table on which it is declared: it identifies the constraint for a drop, and
    the columns of a key. The database also requires unique names among the foreign keys that refer to a table. `rows`:
    of one kind."""
    if rows[0]["CONSTRAINT_TYPE"] == FOREIGN_KEY:
        _require_free(connection, _AT_PARENT, rows, "PARENT_TBL_ID")
        _require_free(connection, union_all(_DECLARED, _AT_CHILD), rows, "CHILD_TBL_ID")
    else:
        _require_free(connection, union_all(_AT_PARENT, _AT_CHILD), rows, "PARENT_TBL_ID")


def _require_free(connection: Connection, in_use: Any, rows: Sequence[dict[str, Any]], column: str) -> None:
    named = Counter((row[column], row["CONSTRAINT_NAME"], row["POSITION"]) for row in rows)
    names_of: dict[int, set[str]] = {}
    for table_id, name, _ in named:
        names_of.setdefault(table_id, set()).add(name)
    found = next((name for (_, name, _), count in named.items() if count > 1), None)
    for table_id, names in sorted(names_of.items()):
        for some in batches(sorted(names), _NAMES_IN_A_STATEMENT):
            found = connection.execute(in_use, {"table_id": table_id, "names": list(some)}).scalar() or found
    if found is not None:
        raise InvalidObjectException(f"Constraint name already exists: {found}")


_NAMES_IN_A_STATEMENT = 5_000

_OF_NAMES = select(KEY_CONSTRAINTS.c.CONSTRAINT_NAME).where(
    KEY_CONSTRAINTS.c.CONSTRAINT_NAME.in_(bindparam("names", expanding=True))
)
_AT_PARENT = _OF_NAMES.where(KEY_CONSTRAINTS.c.PARENT_TBL_ID == bindparam("table_id"))
_DECLARED = _AT_PARENT.where(KEY_CONSTRAINTS.c.CONSTRAINT_TYPE != FOREIGN_KEY)
_AT_CHILD = _OF_NAMES.where(
    KEY_CONSTRAINTS.c.CHILD_TBL_ID == bindparam("table_id"), KEY_CONSTRAINTS.c.CONSTRAINT_TYPE == FOREIGN_KEY
)


def _require_no_primary_key(connection: Connection, find: _Finder, foreign_keys: Iterable[SQLPrimaryKey]) -> None:
    for names in sorted({_owner(constraint) for constraint in foreign_keys}):
        table = find(*names)
        if table is not None and keys_of(connection, table.table_id, [PRIMARY_KEY]):
            raise MetaException(f" Primary key already exists for: {'.'.join(names)}")


def _require_keys_of_parents(connection: Connection, find: _Finder, foreign_keys: Sequence[SQLForeignKey]) -> None:
    """Each foreign key must refer to all columns of a primary or unique key of its parent."""
    keys: dict[tuple[Any, ...], list[SQLForeignKey]] = {}
    for one in foreign_keys:
        keys.setdefault((one.fk_name, *_owner(one), one.pktable_db, one.pktable_name), []).append(one)
    types_of: dict[int, dict[str, str]] = {}
    known_of: dict[int, list[frozenset[tuple[str, str]]]] = {}
    for some in keys.values():
        parent = _parent(find, some[0])
        # The parent's key is found by the names of its columns and the child's types.
        child = find(*_owner(some[0]))
        assert child is not None, "checked when the rows were made"
        if child.table_id not in types_of:
            types_of[child.table_id] = _types(child)
        if parent.table_id not in known_of:
            known_of[parent.table_id] = keys_of(connection, parent.table_id, [PRIMARY_KEY, UNIQUE])
        types, known = types_of[child.table_id], known_of[parent.table_id]
        if not known:
            raise MetaException(
                "Trying to define foreign key but there are no primary keys or unique keys for referenced table"
            )
        requested = frozenset((key.pkcolumn_name, types[key.fkcolumn_name]) for key in some)
        columns = "".join(f"{column}:{kind};" for column, kind in sorted(requested))
        if requested not in known:
            possible = ", ".join(sorted("".join(f"{c}:{t};" for c, t in sorted(key)) for key in known))
            raise MetaException(
                f"Foreign key references {columns} but no corresponding primary key or unique key exists. "
                f"Possible keys: [{possible}]"
            )
        if child.table_id == parent.table_id and all(key.fkcolumn_name == key.pkcolumn_name for key in some):
            raise MetaException(f"Cannot be both foreign key and primary/unique key on same table: {columns}")


def _types(row: TableRow) -> dict[str, str]:
    columns = [*((row.table.sd.cols if row.table.sd is not None else None) or ()), *(row.table.partitionKeys or ())]
    return {column.name.lower(): column.type for column in columns}
