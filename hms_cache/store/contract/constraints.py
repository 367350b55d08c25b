"""Contract: table constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import SQLAllTableConstraints, SQLForeignKey

KeyEnd = tuple[str | None, str | None]
"""Database and table at one end of a foreign key; None matches any."""


class ConstraintReads(ABC):
    """Reads of primary and foreign keys, unique, not-null, default and check constraints."""

    @abstractmethod
    def get_table_constraints(self, table: TableName, *, version: ReadVersion = ANY_VERSION) -> SQLAllTableConstraints:
        """All constraints of the table in one snapshot, with every list set. Foreign keys are those of which it is the
        child.

        Each list is sorted by constraint name, then position. Raises NoSuchObjectException.
        """

    @abstractmethod
    def get_foreign_keys(
        self, catalog: str, parent: KeyEnd, child: KeyEnd, *, version: ReadVersion = ANY_VERSION
    ) -> list[SQLForeignKey]:
        """Foreign keys between (database, table) pairs; None matches any. Sorted by child, constraint name,
        position."""


class ConstraintWrites(ABC):
    """Writes of constraints."""

    @abstractmethod
    def add_constraints(self, constraints: SQLAllTableConstraints) -> None:
        """Adds the constraints of these lists, all or none. Generates missing names as Hive does.

        Raises InvalidObjectException (no such table or column, name in use), MetaException (a second primary key, no
        matching key in the parent).
        """

    @abstractmethod
    def drop_constraint(self, table: TableName, constraint: str) -> None:
        """Drops a constraint by name. Raises NoSuchObjectException."""
