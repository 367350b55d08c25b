"""Events of constraints."""

from __future__ import annotations

from typing import Any, ClassVar

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications import tjson
from hms_cache.notifications.events.base import Event
from hms_cache.notifications.scope import EVERYTHING, Scope, scope_of_tables
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen


@frozen
class ConstraintsAdded(Event):
    """Base of the six kinds; ``constraint_jsons`` are the added constraints (one per column of each).

    Hive logs one event per request, and its row names the table of the first constraint; the others may be of other
    tables. ``tables`` has all of them; ``None`` if they are unknown.
    """

    constraint_class: ClassVar[Any] = None
    table_fields: ClassVar[tuple[str, str, str]] = ("1", "2", "3")
    """The fields of the struct with the table's name: catalog, database, table."""
    is_key: ClassVar[bool] = False
    """Whether foreign keys of other tables, which the message does not name, may refer to it and change."""

    constraint_jsons: tuple[str, ...] = ()
    tables: frozenset[TableName] | None = frozenset()

    @property
    def scope(self) -> Scope:
        table = self.own_table
        if table is None:
            return EVERYTHING
        return scope_of_tables({table, *(self.tables or ())}, foreign_keys=self.is_key or self.tables is None)

    def constraints(self) -> list[Any]:
        """The Thrift structs, of the class for this kind."""
        return [tjson.read_struct(text, self.constraint_class) for text in self.constraint_jsons]


@frozen
class PrimaryKeyAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLPrimaryKey
    table_fields: ClassVar[tuple[str, str, str]] = ("9", "1", "2")
    is_key: ClassVar[bool] = True


@frozen
class ForeignKeyAdded(ConstraintsAdded):
    """The row names the parent (the table with the primary key); ``tables`` contains both tables of every key."""

    constraint_class: ClassVar[Any] = ttypes.SQLForeignKey

    tables: frozenset[TableName] | None = None

    @property
    def scope(self) -> Scope:
        if self.tables is None:
            return EVERYTHING
        table = self.own_table
        return scope_of_tables(self.tables if table is None else {*self.tables, table})


@frozen
class UniqueConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLUniqueConstraint
    is_key: ClassVar[bool] = True


@frozen
class NotNullConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLNotNullConstraint


@frozen
class DefaultConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLDefaultConstraint


@frozen
class CheckConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLCheckConstraint


@frozen
class ConstraintDropped(Event):
    """A foreign key may be dropped under the name of either of its tables; the event does not name the other one."""

    constraint_name: str | None = None
