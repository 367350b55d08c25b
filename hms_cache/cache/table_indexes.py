"""Tables that events may concern without naming them, so that an event looks at these and not at all entries.

Guarded by the lock of the cache.
"""

from __future__ import annotations

from hms_cache.cache.entries import Entry, Facet
from hms_cache.metadata.object_names import DatabaseName, TableName


class TableIndexes:
    """Each index follows from the entries (`note`)."""

    def __init__(self) -> None:
        self.by_database: dict[DatabaseName, set[TableName]] = {}
        """Tables with entries."""
        self.with_constraints: set[TableName] = set()
        """Tables whose constraints are held."""
        self.with_commit_parameters: set[TableName] = set()
        """Tables with parameters that any commit may change (keys `_meta…`)."""
        self.maybe_transactional: set[TableName] = set()
        """Transactional tables, and tables whose struct is not held, so that this is unknown."""

    def note(self, table: TableName, entry: Entry) -> None:
        """The entry of a table has changed, or was removed."""
        facets = entry.facets
        if facets:
            self.by_database.setdefault(table.in_database, set()).add(table)
        elif (of_database := self.by_database.get(table.in_database)) is not None:
            of_database.discard(table)
            if not of_database:
                del self.by_database[table.in_database]
        is_cached = Facet.TABLE in facets
        _put(self.with_constraints, table, Facet.CONSTRAINTS in facets)
        _put(self.with_commit_parameters, table, is_cached and entry.has_commit_parameters)
        _put(self.maybe_transactional, table, bool(facets) and (entry.is_transactional or not is_cached))

    def clear(self) -> None:
        """All entries were removed."""
        self.by_database.clear()
        self.with_constraints.clear()
        self.with_commit_parameters.clear()
        self.maybe_transactional.clear()


def _put(some: set[TableName], table: TableName, belongs: bool) -> None:
    if belongs:
        some.add(table)
    else:
        some.discard(table)
