"""What all events of the log have."""

from __future__ import annotations

from typing import TypeVar

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
        """What the event may concern: never less than it does."""
        return scope_of_row(self.header)

    @property
    def own_table(self) -> TableName | None:
        """The table that the row's columns name."""
        return table_of_row(self.header)


def table_of_row(header: EventHeader) -> TableName | None:
    if header.database and header.table:
        return table_name(header.catalog, header.database, header.table)
    return None


def scope_of_row(header: EventHeader) -> Scope:
    """The narrowest scope that the columns alone name: the table, else the database, else everything."""
    table = table_of_row(header)
    if table is not None:
        return scope_of_tables([table], foreign_keys=True)
    if header.database:
        return Scope(whole_databases=frozenset([database_name(header.catalog, header.database)]), foreign_keys=True)
    return EVERYTHING


def struct_of(text: str | None, struct_class: type[_Struct]) -> _Struct | None:
    return None if text is None else tjson.read_struct(text, struct_class)


# ---- databases and catalogs -----------------------------------------------------------------------------------------
