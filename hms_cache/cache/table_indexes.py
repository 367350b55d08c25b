"""Tables that events concern without naming them: an event looks at these, and not at all tables that are held.

Guarded by the lock of the cache.
"""

from __future__ import annotations

from hms_cache.cache.entries import Entry, Facet
from hms_cache.metadata.object_names import DatabaseName, TableName


class TableIndexes:
    """Each follows from what is held (`note`)."""

    def __init__(self) -> None:
        self.by_database: dict[DatabaseName, set[TableName]] = {}
        """Those of which anything is held."""
        self.with_constraints: set[TableName] = set()
        """Those whose constraints are held."""
        self.with_commit_parameters: set[TableName] = set()
        """Those with parameters that any commit may change (keys `_meta…`)."""
        self.maybe_transactional: set[TableName] = set()
        """Those that are transactional, and those of which the table itself is not held, so that nobody knows."""

    def note(self, table: TableName, entry: Entry) -> None:
        """Something else is held of a table than before, perhaps nothing."""
        facets = entry.facets
        if facets:
            self.by_database.setdefault(table.in_database, set()).add(table)
        elif (of_database := self.by_database.get(table.in_database)) is not None:
            of_database.discard(table)
            if not of_database:
                del self.by_database[table.in_database]
        is_held = Facet.TABLE in facets
        _put(self.with_constraints, table, Facet.CONSTRAINTS in facets)
        _put(self.with_commit_parameters, table, is_held and entry.has_commit_parameters)
        _put(self.maybe_transactional, table, bool(facets) and (entry.is_transactional or not is_held))

    def clear(self) -> None:
        """Nothing is held any more."""
        self.by_database.clear()
        self.with_constraints.clear()
        self.with_commit_parameters.clear()
        self.maybe_transactional.clear()


def _put(some: set[TableName], table: TableName, belongs: bool) -> None:
    if belongs:
        some.add(table)
    else:
        some.discard(table)
