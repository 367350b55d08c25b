"""Reads the tables, columns, keys and indexes that a database has from its own catalog.

SQLAlchemy's reflection is not used on MySQL: it takes a key on a column whose name contains ``PARTITION`` for a
partitioning clause and omits it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, inspect

from hms_cache.store.engine.dialects import dialect_name
from hms_cache.values import frozen


@frozen
class ColumnShape:
    """A column as the database describes it; ``type`` and ``default`` in the database's own words."""

    name: str
    type: str
    nullable: bool
    default: str | None
    generated: bool = False
    """The database generates its values."""

    collation: str | None = None
    """MySQL only."""


@frozen
class IndexShape:
    """An index or unique key, primary keys excepted."""

    name: str
    columns: tuple[str, ...]
    unique: bool
    method: str = "btree"
    """PostgreSQL only: ``btree`` or ``hash``."""

    prefixes: tuple[int | None, ...] = ()
    """MySQL only: number of indexed characters per column, None for all."""


@frozen
class ForeignKeyShape:
    """A foreign key."""

    name: str
    columns: tuple[str, ...]
    referred_table: str
    referred_columns: tuple[str, ...]
    cascade: bool
    deferrable: bool = False


@dataclass(slots=True)
class TableShape:
    """A table: columns in their order, the rest by name."""

    name: str
    columns: dict[str, ColumnShape] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None
    indexes: dict[str, IndexShape] = field(default_factory=dict)
    foreign_keys: dict[str, ForeignKeyShape] = field(default_factory=dict)


def inspect_tables(connection: Connection) -> dict[str, TableShape]:
    """All tables of the connection's database, by name as the database spells it. PostgreSQL: those that can be used
    without a schema name, in any schema of the search path.

    If MySQL compares table names case-insensitively (``lower_case_table_names``), names are returned in upper case, as
    Hive spells its own.
    """
    match dialect_name(connection.dialect.name):
        case "mysql":
            return _inspect_mysql(connection)
        case "postgresql":
            return _inspect_postgresql(connection)
        case _:
            return _inspect_sqlite(connection)


def _inspect_mysql(connection: Connection) -> dict[str, TableShape]:
    ignores_case = connection.exec_driver_sql("SELECT @@lower_case_table_names").scalar_one() != 0

    def spelled(table: str) -> str:
        return table.upper() if ignores_case else table

    tables: dict[str, TableShape] = {}
    for table, name, column_type, nullable, default, extra, collation in _rows(
        connection,
        "SELECT c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE, c.COLUMN_DEFAULT, c.EXTRA, c.COLLATION_NAME"
        " FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"
        " ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
        " WHERE c.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION",
    ):
        shape = tables.setdefault(spelled(table), TableShape(spelled(table)))
        # For a nullable column without default, MariaDB has the word NULL, and MySQL a null.
        default_text = None if default in (None, "NULL") else str(default)
        # MySQL marks a default that is an expression as DEFAULT_GENERATED.
        generated = any(word in extra.upper().split() for word in ("AUTO_INCREMENT", "GENERATED"))
        shape.columns[name] = ColumnShape(name, column_type, nullable == "YES", default_text, generated, collation)
    keys: dict[tuple[str, str], tuple[bool, list[tuple[str, int | None]]]] = {}
    for table, key, non_unique, name, prefix in _rows(
        connection,
        "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS"
        " WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
    ):
        keys.setdefault((spelled(table), key), (not non_unique, []))[1].append((name, prefix))
    for (table, key), (unique, parts) in keys.items():
        columns, prefixes = zip(*parts, strict=True)
        if key == "PRIMARY":
            tables[table].primary_key = columns
        else:
            tables[table].indexes[key] = IndexShape(key, columns, unique, prefixes=prefixes)
    foreign: dict[tuple[str, str, str, bool], list[tuple[str, str]]] = {}
    for table, key, name, referred, referred_name, rule in _rows(
        connection,
        "SELECT k.TABLE_NAME, k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME,"
        " r.DELETE_RULE FROM information_schema.KEY_COLUMN_USAGE k"
        " JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA"
        " AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME"
        " WHERE k.TABLE_SCHEMA = DATABASE() ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION",
    ):
        foreign.setdefault((spelled(table), key, spelled(referred), rule == "CASCADE"), []).append(
            (name, referred_name)
        )
    for (table, key, referred, cascade), pairs in foreign.items():
        own, theirs = zip(*pairs, strict=True)
        tables[table].foreign_keys[key] = ForeignKeyShape(key, own, referred, theirs, cascade)
    return tables


#: Selects from `pg_class` as `c` the tables, also partitioned ones, that can be used without a schema name. The current
#: schema alone would not be sufficient: a schema with the account's name comes first, and is empty if the tables are in
#: `public`.
_FOUND_BY_NAME = (
    "c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND c.relnamespace NOT IN"
    " (SELECT oid FROM pg_namespace WHERE starts_with(nspname, 'pg_') OR nspname = 'information_schema')"
)


def _inspect_postgresql(connection: Connection) -> dict[str, TableShape]:
    tables: dict[str, TableShape] = {}
    for table, name, column_type, required, default in _rows(
        connection,
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
        " pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
        f" WHERE {_FOUND_BY_NAME} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum",
    ):
        shape = tables.setdefault(table, TableShape(table))
        generated = default is not None and default.startswith("nextval(")
        # Hive's script writes DEFAULT NULL::character varying, which means no default.
        written = None if default is None or default.startswith("NULL::") else default
        shape.columns[name] = ColumnShape(name, column_type, not required, written, generated)
    for table, key, unique, primary, method, columns in _rows(
        connection,
        "SELECT c.relname, i.relname, x.indisunique, x.indisprimary, m.amname,"
        " ARRAY(SELECT a.attname::text FROM unnest(x.indkey) WITH ORDINALITY k(attnum, position)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum ORDER BY k.position)"
        " FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid"
        " JOIN pg_am m ON m.oid = i.relam"
        # An index that an interrupted CREATE INDEX CONCURRENTLY has left is not used.
        f" WHERE {_FOUND_BY_NAME} AND x.indisvalid",
    ):
        if primary:
            tables[table].primary_key = tuple(columns)
            tables[table].primary_key_name = key
        else:
            tables[table].indexes[key] = IndexShape(key, tuple(columns), unique, method)
    for table, key, definition, deferrable in _rows(
        connection,
        "SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), k.condeferrable FROM pg_constraint k"
        " JOIN pg_class c ON c.oid = k.conrelid"
        f" WHERE {_FOUND_BY_NAME} AND k.contype = 'f'",
    ):
        own, referred, theirs = re.match(r"FOREIGN KEY \((.*)\) REFERENCES (.*)\((.*?)\)", definition).groups()  # type: ignore[union-attr]
        tables[table].foreign_keys[key] = ForeignKeyShape(
            key,
            _unquoted(own.split(", ")),
            _unquoted([referred])[0],
            _unquoted(theirs.split(", ")),
            "ON DELETE CASCADE" in definition,
            deferrable,
        )
    return tables


def _inspect_sqlite(connection: Connection) -> dict[str, TableShape]:
    """Uses SQLAlchemy for the names of constraints, which exist only in the text of a table's definition. That takes a
    millisecond per table, so it is done only for tables that have such constraints."""
    inspector = inspect(connection)
    tables = {name: TableShape(name) for name in inspector.get_table_names()}
    keys: dict[str, list[tuple[int, str]]] = {}
    for table, name, column_type, required, default, position in _rows(
        connection,
        'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk'
        " FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid",
    ):
        if table in tables:
            tables[table].columns[name] = ColumnShape(name, column_type, not required, default)
            if position:
                keys.setdefault(table, []).append((position, name))
    for table, key in keys.items():
        tables[table].primary_key = tuple(name for _, name in sorted(key))
    indexes: dict[tuple[str, str, bool], list[str | None]] = {}
    with_constraints: set[str] = set()
    for table, name, unique, origin, column in _rows(
        connection,
        'SELECT t.name, i.name, i."unique", i.origin, c.name FROM sqlite_master t JOIN pragma_index_list(t.name) i'
        " JOIN pragma_index_info(i.name) c WHERE t.type = 'table' ORDER BY t.name, i.name, c.seqno",
    ):
        if origin == "c":
            indexes.setdefault((table, name, bool(unique)), []).append(column)
        elif origin == "u":
            with_constraints.add(table)
    for (table, name, unique), columns in indexes.items():
        if None not in columns:  # no index on expressions
            tables[table].indexes[name] = IndexShape(name, tuple(filter(None, columns)), unique)
    for table in sorted(with_constraints):
        for constraint in inspector.get_unique_constraints(table):
            name = str(constraint["name"])
            tables[table].indexes[name] = IndexShape(name, tuple(constraint["column_names"]), True)
    of_foreign_keys = (
        "SELECT DISTINCT t.name FROM sqlite_master t JOIN pragma_foreign_key_list(t.name) WHERE t.type = 'table'"
    )
    for (table,) in _rows(connection, of_foreign_keys):
        for number, foreign in enumerate(inspector.get_foreign_keys(table)):
            name = foreign["name"] or f"{table}#{number}"
            tables[table].foreign_keys[name] = ForeignKeyShape(
                name,
                tuple(foreign["constrained_columns"]),
                foreign["referred_table"],
                tuple(foreign["referred_columns"]),
                foreign["options"].get("ondelete") == "CASCADE",
            )
    return tables


def _rows(connection: Connection, statement: str) -> Iterable[tuple[Any, ...]]:
    return connection.exec_driver_sql(statement).tuples().all()


def _unquoted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip('"') for name in names)
