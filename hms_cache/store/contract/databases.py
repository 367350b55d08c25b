"""Contract: databases."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.metadata.object_names import DatabaseName
from hms_cache.thrift_gen.hive_metastore.ttypes import Database


class DatabaseReads(ABC):
    """Reads of databases."""

    @abstractmethod
    def get_database(self, database: DatabaseName) -> Database:
        """The database, `catalogName` set. Raises NoSuchObjectException."""

    @abstractmethod
    def get_database_names(self, catalog: str, pattern: str | None = None) -> list[str]:
        """Names, ascending. `pattern` has Hive's syntax: `*` for any text, `|` between alternatives, case-insensitive.
        None matches all."""

    @abstractmethod
    def get_databases(self, catalog: str, pattern: str | None = None) -> list[Database]:
        """The databases with the names that `get_database_names` returns, in the same order, all of one moment (P1)."""


class DatabaseWrites(ABC):
    """Writes of databases."""

    @abstractmethod
    def create_database(self, database: Database) -> None:
        """Creates rows and directory. The default location is `<warehouse>/<name>.db`.

        Raises AlreadyExistsException, InvalidObjectException (name, unknown catalog), MetaException (directory).
        """

    @abstractmethod
    def alter_database(self, name: DatabaseName, database: Database) -> None:
        """Replaces description, location, owner and parameters as Hive's `alter_database` does.

        Raises NoSuchObjectException.
        """

    @abstractmethod
    def drop_database(
        self,
        name: DatabaseName,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        soft_txn_id: int = 0,
        keeps_managed_directory: bool = False,
    ) -> None:
        """Drops the database, and with `cascade` everything in it. Directories of managed and purge tables are deleted
        after the commit.

        `soft_txn_id`: tables with the parameter `soft_delete` are queued for cleaning under this transaction, and their
        data stays. `keeps_managed_directory`: the directory of managed tables is deleted only if it is empty, since it
        may contain files of tables that were dropped softly before.

        Raises NoSuchObjectException unless `if_exists`, InvalidOperationException if the database is not empty and
        `cascade` is false, MetaException for the default database.
        """
