"""Indexes in addition to those of Hive's scripts.

The first kind is one for each foreign key: without it, a database reads a whole table for each row that is deleted in
the other one.

SQLite and PostgreSQL look for rows that refer to a deleted row. Hive's script for PostgreSQL lacks some indexes, for
example of skewed values: dropping one table with 40,000 of them reads all rows 40,000 times, and holds its locks for
minutes. MySQL and MariaDB create these indexes themselves.

The second kind finds locks of a table, and changes that a committer has not seen, among tens of thousands. Hive has
none, and reads all. They are created on request: with few rows they cost more than they save.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.inspection import TableShape, inspect_tables
from hms_cache.values import frozen

_LONGEST_NAME = 63
"""Maximum length of an identifier in PostgreSQL."""


@frozen
class MissingIndex:
    """An index that a table lacks."""

    table: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name with which it is created."""
        return "_".join(("IDX", self.table, *self.columns))[:_LONGEST_NAME]

    def __str__(self) -> str:
        return f"{self.table} ({', '.join(self.columns)})"


def missing_indexes(connection: Connection) -> list[MissingIndex]:
    """The missing indexes of all foreign keys, sorted by table; empty on MySQL and MariaDB."""
    if connection.dialect.name not in ("sqlite", "postgresql"):
        return []
    found = {
        MissingIndex(table.name, key.columns)
        for table in inspect_tables(connection).values()
        for key in table.foreign_keys.values()
        if not _has_index(table, key.columns)
    }
    return sorted(found, key=lambda one: (one.table, one.columns))


_OF_TRANSACTIONS = (
    # Most locks have a type for which few others wait.
    MissingIndex("HIVE_LOCKS", ("HL_DB", "HL_LOCK_TYPE", "HL_TABLE")),
    # While one transaction stays open, all later changes are kept, and other transactions have seen nearly all of them.
    MissingIndex("WRITE_SET", ("WS_COMMIT_ID",)),
)


def missing_transaction_indexes(connection: Connection) -> list[MissingIndex]:
    """The missing ones of those that find locks by table, and changes by their commits; on all databases."""
    tables = inspect_tables(connection)
    return [one for one in _OF_TRANSACTIONS if one.table in tables and not _has_index(tables[one.table], one.columns)]


def create_indexes(
    connection: Connection, find: Callable[[Connection], list[MissingIndex]] = missing_indexes
) -> list[MissingIndex]:
    """Creates the missing indexes in the connection's transaction, and returns them.

    Writes to a table wait while its index is created.
    """
    missing = find(connection)
    for one in missing:
        connection.execute(text(_statement(connection, one)))
    return missing


def create_indexes_beside_writers(
    database: Database, find: Callable[[Connection], list[MissingIndex]] = missing_indexes
) -> list[MissingIndex]:
    """Creates the missing indexes, and returns them. On PostgreSQL this does not block writers.

    If it is interrupted there, an invalid index remains, which counts as missing; a later call replaces it. Raises
    DatabaseUnavailable.
    """
    with database.writing() as connection:
        if database.dialect != "postgresql":
            made = create_indexes(connection, find)
            connection.commit()
            return made
        missing = find(connection)
        connection.commit()
        own = connection.execution_options(isolation_level="AUTOCOMMIT")
        for one in missing:
            own.execute(text(f'DROP INDEX IF EXISTS "{one.name}"'))  # left by an interrupted call
            own.execute(text(_statement(own, one, "CONCURRENTLY ")))
        return missing


def _has_index(table: TableShape, columns: tuple[str, ...]) -> bool:
    """Whether an index begins with these columns, in any order."""
    keys = [table.primary_key, *(index.columns for index in table.indexes.values())]
    return any(set(key[: len(columns)]) == set(columns) for key in keys)


def _statement(connection: Connection, one: MissingIndex, how: str = "") -> str:
    quote = connection.dialect.identifier_preparer.quote_identifier
    columns = ", ".join(quote(column) for column in one.columns)
    return f"CREATE INDEX {how}{quote(one.name)} ON {quote(one.table)} ({columns})"
