"""The common parts of all events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from hms_cache.metadata.object_names import TableName, database_name, table_name
from hms_cache.notifications import tjson
from hms_cache.notifications.events.rows import EventHeader
from hms_cache.notifications.scope import EVERYTHING, Scope, scope_of_tables
from hms_cache.values import frozen

_Struct = TypeVar("_Struct")


@frozen
class Event:
    """One event of the log."""

    header: EventHeader

    @property
    def event_id(self) -> int:
        return self.header.event_id

    @property
    def scope(self) -> Scope:
        """What the event may concern: possibly more than it does, never less."""
        return scope_of_row(self.header)

    @property
    def own_table(self) -> TableName | None:
        """The table named in the row's columns."""
        return table_of_row(self.header)


def table_of_row(header: EventHeader) -> TableName | None:
    if header.database and header.table:
        return table_name(header.catalog, header.database, header.table)
    return None


def scope_of_row(header: EventHeader) -> Scope:
    """The narrowest scope given by the columns alone: the table, otherwise the database, otherwise everything."""
    table = table_of_row(header)
    if table is not None:
        return scope_of_tables([table], foreign_keys=True)
    if header.database:
        return Scope(whole_databases=frozenset([database_name(header.catalog, header.database)]), foreign_keys=True)
    return EVERYTHING


class _FieldOfStructs(Generic[_Struct]):
    def __init__(self, field: str, struct_class: type[_Struct]) -> None:
        self._field = field
        self._struct_class = struct_class


class StructIn(_FieldOfStructs[_Struct]):
    """A method that decodes the struct in a field of an event; None if the message has none."""

    def __get__(self, event: Any, owner: type[Any] | None = None) -> Callable[[], _Struct | None]:
        text = getattr(event, self._field)
        return lambda: None if text is None else tjson.read_struct(text, self._struct_class)


class StructsIn(_FieldOfStructs[_Struct]):
    """A method that decodes the structs in a field of an event."""

    def __get__(self, event: Any, owner: type[Any] | None = None) -> Callable[[], list[_Struct]]:
        texts = getattr(event, self._field)
        return lambda: [tjson.read_struct(text, self._struct_class) for text in texts]
