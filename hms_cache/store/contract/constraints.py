"""Contract: table constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.thrift_gen.hive_metastore.ttypes import SQLAllTableConstraints, SQLForeignKey


class ConstraintStore(ABC):
    """Primary and foreign keys, unique, not-null, default and check constraints."""

    @abstractmethod
    def get_table_constraints(
        self,
        catalog: str,
        database: str,
        table: str,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> SQLAllTableConstraints:
        """All constraints of the table as of one moment (foreign keys: those of which it is the child), every list set.

        Each list by constraint name, then position. Raises NoSuchObjectException.
        """

    @abstractmethod
    def get_foreign_keys(
        self,
        catalog: str,
        parent: tuple[str | None, str | None],
        child: tuple[str | None, str | None],
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[SQLForeignKey]:
        """Foreign keys between (database, table) pairs; None stands for any. By child, constraint name, position."""

    @abstractmethod
    def add_constraints(self, constraints: SQLAllTableConstraints) -> None:
        """Adds the given lists, all or none; absent names are made up as Hive does.

        Raises InvalidObjectException (no such table or column, name in use), MetaException (a second primary key, no
        matching key in the parent).
        """

    @abstractmethod
    def drop_constraint(
        self, catalog: str, database: str, table: str, constraint: str, *, if_exists: bool = False
    ) -> None:
        """Drops a constraint by name. Raises NoSuchObjectException unless `if_exists`."""
