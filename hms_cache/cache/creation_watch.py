"""Finds writers that log nothing: a table with a new id whose creation no event told of.

Ids of tables are handed out upwards, if in blocks and not in the order of commits. So a table whose id is above every
id that was there at event P was made after P, and if its writer logs, one of the events since then names it: as
created, or as renamed to what it is called now. Only such a table proves anything; an unlogged change of an older one
cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName

REMEMBERED_NAMES = 100_000
"""Names remembered (some 20 MB); with more of them the highest id is read again and the names start anew."""


class CreationWatch:
    """Names that events gave to tables since `since`. Guarded by the lock of the cache that owns it."""

    def __init__(self) -> None:
        self._since = 0
        self._names: set[TableName] = set()
        self._highest: tuple[int, int] | None = None
        """The highest id of a table, and the event at which it was that."""

    def begin(self, event_id: int) -> None:
        """Events up to this one may have named tables that are not remembered."""
        self._since = event_id
        self._names.clear()
        self._highest = None

    def named(self, tables: Iterable[TableName], event_id: int) -> None:
        """An event created these tables, or gave them these names."""
        self._names.update(tables)
        if len(self._names) > REMEMBERED_NAMES:
            self.begin(event_id)

    def wants_highest_id(self, fence: int) -> bool:
        """Whether the highest id in a snapshot at `fence` would be of use."""
        return self._highest is None and fence >= self._since

    def found_highest_id(self, table_id: int, fence: int) -> None:
        """No table had a higher id at `fence`."""
        if self.wants_highest_id(fence):
            self._highest = table_id, fence

    def is_unlogged(self, table: TableName, table_id: int, fence: int) -> bool:
        """Whether a table seen at `fence` was made by a writer that logs nothing. All events up to there were taken."""
        if self._highest is None or table.catalog != DEFAULT_CATALOG:
            return False
        highest, seen_at = self._highest
        return fence >= seen_at and table_id > highest and table not in self._names
