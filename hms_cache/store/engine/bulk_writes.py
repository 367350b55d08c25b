"""Inserts, updates and deletes of thousands of rows in few statements.

Drivers send one statement per row of an UPDATE, but many rows of an INSERT as one. So changes are inserts that update
existing rows (in each database's own syntax), and deletions list their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, bindparam, delete, insert, literal_column, select
from sqlalchemy.dialects import mysql, postgresql, sqlite

from hms_cache.batches import batches
from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectRows,
    execute_directly,
    execute_in_packets,
    insert_directly,
    supports_direct_statements,
)
from hms_cache.store.schema.column_types import MYSQL_DIALECTS
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

IDS_IN_A_STATEMENT = 10_000
"""Ids in one statement: some 100 KB of SQL, below the limits of SQLite (1 MB) and MySQL (16 MB)."""

ROWS_IN_A_STATEMENT = 5_000
"""Rows passed to a driver at once: only the texts of one batch are in memory."""

_ROWS_IN_A_PACKET = 500
"""Maximum number of rows, of different tables, in one packet: the rows of one object of the catalog, or a few. Even
with parameters of maximum length, the packet stays below the smallest limit of servers (4 MB)."""


def in_ids(column: Column[Any], name: str = "ids") -> ColumnElement[bool]:
    """`column IN (…)` for the parameter `name`, a list of integers. The integers are written into the statement's text,
    so the database's limit on parameters does not apply."""
    return column.in_(bindparam(name, expanding=True, literal_execute=True))


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that all have the same keys."""
    if not rows:
        return
    _require_distinct_parameters(connection, table, rows)
    directly = _directly(_insert(table), tuple(rows[0])) if supports_direct_statements(connection) else None
    _execute_rows(connection, _insert(table), directly, rows)


def delete_some(connection: Connection, table: Table, condition: ColumnElement[bool], limit: int) -> int:
    """Deletes any rows that match the condition, at most `limit`, and returns their number. For tables without a
    primary key."""
    if connection.dialect.name in MYSQL_DIALECTS:
        limited = delete(table).where(condition).with_dialect_options(mysql_limit=limit, mariadb_limit=limit)
        return connection.execute(limited).rowcount
    place: ColumnElement[Any] = literal_column("ctid" if connection.dialect.name == "postgresql" else "rowid")
    some = select(place).select_from(table).where(condition).limit(limit).correlate(None)
    return connection.execute(delete(table).where(place.in_(some))).rowcount


def upsert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts the rows; if the primary key exists, updates the other columns. All rows have the same keys, which must
    include every column that is not nullable."""
    if not rows:
        return
    _require_distinct_parameters(connection, table, rows)
    columns = tuple(rows[0])
    statement = _upsert(connection.dialect.name, table, columns)
    directly = _directly(statement, columns) if supports_direct_statements(connection) else None
    _execute_rows(connection, statement, directly, rows)


def _execute_rows(
    connection: Connection, statement: Any, directly: DirectRows | None, rows: Sequence[Mapping[str, Any]]
) -> None:
    for batch in batches(rows, ROWS_IN_A_STATEMENT):
        if directly is not None:
            insert_directly(connection, directly, batch)
        else:
            connection.execute(statement, list(batch))


def insert_together(
    connection: Connection, rows: Mapping[Table, Sequence[Mapping[str, Any]]], *, upserted: Collection[Table] = ()
) -> None:
    """Inserts rows into several tables, in their order; tables in `upserted` are upserted.

    On MySQL and MariaDB a small number of rows is sent as one packet.
    """
    given = {table: some for table, some in rows.items() if some}
    few = sum(map(len, given.values())) <= _ROWS_IN_A_PACKET
    if few and len(given) > 1 and supports_direct_statements(connection):
        dialect, packet = connection.dialect.name, []
        for one, some in given.items():
            _require_distinct_parameters(connection, one, some)
            columns = tuple(some[0])
            statement = _upsert(dialect, one, columns) if one in upserted else _insert(one)
            packet.append((_directly(statement, columns), some))
        execute_in_packets(connection, packet)
        return
    for one, some in given.items():
        (upsert_rows if one in upserted else insert_rows)(connection, one, some)


def require_distinct_keys(connection: Connection, keys: Iterable[str]) -> None:
    """Raises MetaException if the database would treat two of these parameter keys of one object as equal.

    MySQL and MariaDB ignore trailing blanks: one of the two values would be lost.
    """
    if connection.dialect.name not in MYSQL_DIALECTS:
        return
    keys = list(keys)
    if not any(key.endswith(" ") for key in keys):
        return
    seen: dict[str, str] = {}
    for key in keys:
        other = seen.setdefault(key.rstrip(" "), key)
        if other != key:
            raise MetaException(f"The database takes the parameters '{other}' and '{key}' for the same")


def _require_distinct_parameters(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if "PARAM_KEY" not in rows[0] or not any(row["PARAM_KEY"].endswith(" ") for row in rows):
        return
    owner, *_ = table.primary_key.columns
    keys: dict[int, list[str]] = {}
    for row in rows:
        keys.setdefault(row[owner.name], []).append(row["PARAM_KEY"])
    for of_one in keys.values():
        require_distinct_keys(connection, of_one)


def delete_together(connection: Connection, deletions: Sequence[tuple[Column[Any], Iterable[int]]]) -> None:
    """`delete_ids` for several columns, in their order. On MySQL and MariaDB a small number of ids is sent as one
    packet."""
    given = [(column, found) for column, ids in deletions if (found := sorted(ids))]
    few = sum(len(ids) for _, ids in given) <= IDS_IN_A_STATEMENT
    if few and len(given) > 1 and supports_direct_statements(connection):
        execute_directly(connection, [(_delete_directly(column), {"ids": ids}) for column, ids in given])
        return
    for column, ids in given:
        delete_ids(connection, column, ids)


def delete_ids(connection: Connection, column: Column[Any], ids: Iterable[int]) -> None:
    """Deletes the rows whose `column` has one of these ids."""
    statement = _delete(column)
    for batch in batches(sorted(ids), IDS_IN_A_STATEMENT):
        connection.execute(statement, {"ids": list(batch)})


@lru_cache(maxsize=128)
def _insert(table: Table) -> Any:
    return insert(table)


@lru_cache(maxsize=256)
def _directly(statement: Any, columns: tuple[str, ...]) -> DirectRows:
    """The same statement as a bare packet for MySQL and MariaDB, which avoids most of the cost of many small rows."""
    return DirectRows(statement, columns)


@lru_cache(maxsize=128)
def _delete(column: Column[Any]) -> Any:
    return delete(column.table).where(in_ids(column))


@lru_cache(maxsize=128)
def _delete_directly(column: Column[Any]) -> Direct:
    return Direct(_delete(column))


@lru_cache(maxsize=128)
def _upsert(dialect: str, table: Table, columns: tuple[str, ...]) -> Any:
    keys = [column.name for column in table.primary_key]
    changed = [name for name in columns if name not in keys]
    if dialect in ("mysql", "mariadb"):
        of_mysql = mysql.insert(table)
        return of_mysql.on_duplicate_key_update({name: of_mysql.inserted[name] for name in changed})
    of_others: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    return of_others.on_conflict_do_update(
        index_elements=keys, set_={name: of_others.excluded[name] for name in changed}
    )


_KEYS_DELETED_ONE_BY_ONE = 20
"""Up to this many distinct keys are deleted with one statement each. If there are more, all parameters of the owners
are deleted and inserted again."""


@frozen
class ParameterChange:
    """The stored parameters of one owner, and the new ones. A new value None removes the parameter."""

    owner_id: int
    before: Mapping[str, str | None]
    after: Mapping[str, str | None]


def change_parameters(
    connection: Connection, table: Table, owner_column: str, changes: Sequence[ParameterChange]
) -> None:
    """Changes a parameter table's rows to `after`. Writes only differences, in few statements.

    Raises MetaException as `require_distinct_keys` does.
    """
    new: list[dict[str, Any]] = []
    gone: dict[str, list[int]] = {}
    for change in changes:
        if change.after is change.before:
            continue
        require_distinct_keys(connection, (key for key, value in change.after.items() if value is not None))
        for key, value in change.after.items():
            if value is not None and change.before.get(key) != value:
                new.append({owner_column: change.owner_id, "PARAM_KEY": key, "PARAM_VALUE": value})
        for key in change.before:
            if change.after.get(key) is None:
                gone.setdefault(key, []).append(change.owner_id)
    owner = table.c[owner_column]
    if len(gone) > _KEYS_DELETED_ONE_BY_ONE:
        owners = {owner_id for ids in gone.values() for owner_id in ids}
        delete_ids(connection, owner, owners)
        new = [row for row in new if row[owner_column] not in owners] + [
            {owner_column: change.owner_id, "PARAM_KEY": key, "PARAM_VALUE": value}
            for change in changes
            if change.owner_id in owners
            for key, value in change.after.items()
            if value is not None
        ]
    else:
        for key, ids in gone.items():
            for batch in batches(ids, IDS_IN_A_STATEMENT):
                connection.execute(_delete_keyed(owner), {"ids": list(batch), "key": key})
    upsert_rows(connection, table, new)


@lru_cache(maxsize=128)
def _delete_keyed(column: Column[Any]) -> Any:
    return delete(column.table).where(in_ids(column), column.table.c.PARAM_KEY == bindparam("key"))
