"""Detects writers that do not log: a table has a new id, but no event reported its creation.

Ids of tables ascend, although they are assigned in blocks and not in the order of commits. So a table with an id above
all ids at event P was created after P. If its writer logs, one of the events since then names the table: as created, or
as renamed to its present name. Only such tables prove anything; an unlogged change of an older table cannot be
detected.
"""

from __future__ import annotations

from collections.abc import Iterable

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName

REMEMBERED_NAMES = 100_000
"""Names that are remembered (about 20 MB). Beyond that, the highest id is read again, and remembering starts again."""


class CreationWatch:
    """Names that events gave to tables since `since`. Guarded by the lock of the owning cache."""

    def __init__(self) -> None:
        self._since = 0
        self._names: set[TableName] = set()
        self._highest: tuple[int, int] | None = None
        """The highest id of a table, and the event at which it was the highest."""

    def begin(self, event_id: int) -> None:
        """Events up to this one may have named tables that are not remembered."""
        self._since = event_id
        self._names.clear()
        self._highest = None

    def named(self, tables: Iterable[TableName], event_id: int) -> None:
        """An event created these tables, or renamed tables to these names."""
        self._names.update(tables)
        if len(self._names) > REMEMBERED_NAMES:
            self.begin(event_id)

    def wants_highest_id(self, fence: int) -> bool:
        """Whether the highest id in a snapshot at `fence` would be useful."""
        return self._highest is None and fence >= self._since

    def found_highest_id(self, table_id: int, fence: int) -> None:
        """At `fence`, no table had a higher id."""
        if self.wants_highest_id(fence):
            self._highest = table_id, fence

    def is_unlogged(self, table: TableName, table_id: int, fence: int) -> bool:
        """Whether a table seen at `fence` was created by a writer that does not log. All events up to `fence` have been
        taken."""
        if self._highest is None or table.catalog != DEFAULT_CATALOG:
            return False
        highest, seen_at = self._highest
        return fence >= seen_at and table_id > highest and table not in self._names
