"""Indexes beyond those of Hive's scripts.

One for each foreign key: without it, a database reads a whole table for each row that is deleted elsewhere.

SQLite and PostgreSQL look for the rows that refer to a row that is deleted. Hive's script for PostgreSQL leaves out
some indexes, of skewed values among others: the drop of one table with 40,000 of them reads 40,000 times all that there
are, and holds its locks for minutes. On MySQL and MariaDB the database itself makes these indexes.

And those by which locks of a table, and changes that a committer has not seen, are found where there are tens of
thousands. Hive has none, and reads all. They are made on request: where there are few, they cost more than they save.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.inspection import TableShape, inspect_tables
from hms_cache.values import frozen

_LONGEST_NAME = 63
"""Characters of an identifier that PostgreSQL keeps."""


@frozen
class MissingIndex:
    """An index that a table lacks."""

    table: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """How it is called when it is made."""
        return "_".join(("IDX", self.table, *self.columns))[:_LONGEST_NAME]

    def __str__(self) -> str:
        return f"{self.table} ({', '.join(self.columns)})"


def missing_indexes(connection: Connection) -> list[MissingIndex]:
    """Of all foreign keys that the database has, sorted by table; empty on MySQL and MariaDB."""
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
    # Most locks are of a type that few wait for.
    MissingIndex("HIVE_LOCKS", ("HL_DB", "HL_LOCK_TYPE", "HL_TABLE")),
    # While one transaction stays open all changes since are kept, of which others have seen nearly all.
    MissingIndex("WRITE_SET", ("WS_COMMIT_ID",)),
)


def missing_transaction_indexes(connection: Connection) -> list[MissingIndex]:
    """Of those which find locks by table, and changes by their commits; on all databases."""
    tables = inspect_tables(connection)
    return [one for one in _OF_TRANSACTIONS if one.table in tables and not _has_index(tables[one.table], one.columns)]


def create_indexes(
    connection: Connection, find: Callable[[Connection], list[MissingIndex]] = missing_indexes
) -> list[MissingIndex]:
    """Makes those that are missing, in the connection's transaction; which they were.

    Writes to a table wait while its index is made.
    """
    missing = find(connection)
    for one in missing:
        connection.execute(text(_statement(connection, one)))
    return missing


def create_indexes_beside_writers(
    database: Database, find: Callable[[Connection], list[MissingIndex]] = missing_indexes
) -> list[MissingIndex]:
    """Makes those that are missing, on PostgreSQL without holding up writers; which they were.

    One that is interrupted there stays behind as an invalid index, which does not count as one: a later call replaces
    it. Raises DatabaseUnavailable.
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
            own.execute(text(f'DROP INDEX IF EXISTS "{one.name}"'))  # what an interrupted call has left
            own.execute(text(_statement(own, one, "CONCURRENTLY ")))
        return missing


def _has_index(table: TableShape, columns: tuple[str, ...]) -> bool:
    """Whether one begins with these columns, in any order."""
    keys = [table.primary_key, *(index.columns for index in table.indexes.values())]
    return any(set(key[: len(columns)]) == set(columns) for key in keys)


def _statement(connection: Connection, one: MissingIndex, how: str = "") -> str:
    quote = connection.dialect.identifier_preparer.quote_identifier
    columns = ", ".join(quote(column) for column in one.columns)
    return f"CREATE INDEX {how}{quote(one.name)} ON {quote(one.table)} ({columns})"
