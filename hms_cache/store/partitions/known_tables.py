"""What was last seen of partitioned tables, as a guess that saves a round trip.

To select partitions takes the table's id and its keys, which have to be read first. Whoever guesses them asks for both
together, and believes the answer if the table was read as guessed: in one snapshot of the database, so that a guess
that is out of date costs time and changes nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.read_plans import Plan, attempt, side_by_side
from hms_cache.store.partitions.partitioned_tables import PartitionedTable, partitioned_table_plan

T = TypeVar("T")

MAX_KNOWN: Final = 1_000
"""Tables of which something is remembered: some 1 MB."""

MAX_CHARACTERS: Final = 2_000
"""In the names and the types of the keys of a table that is remembered: clients choose how many and how long they
are."""


class KnownTables:
    """Guesses, the least recently used of them first. Thread-safe; `_lock` guards `_tables`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: OrderedDict[TableName, PartitionedTable] = OrderedDict()

    def saw(self, name: TableName, table: PartitionedTable | None) -> None:
        """A table as it was read under a name; None: there was none."""
        with self._lock:
            self._tables.pop(name, None)
            if table is not None and _characters(table) <= MAX_CHARACTERS:
                self._tables[name.as_stored] = table
                if len(self._tables) > MAX_KNOWN:
                    self._tables.popitem(last=False)

    def guess(self, name: TableName) -> PartitionedTable | None:
        """The table as it was seen last; None: not lately."""
        with self._lock:
            found = self._tables.get(name)
            if found is not None:
                self._tables.move_to_end(name)
            return found

    def with_table(
        self, name: TableName, find: Callable[[PartitionedTable], Plan[T]]
    ) -> Plan[tuple[PartitionedTable, T]]:
        """A table and what is found of it, together if it is as guessed. On a connection that shows one moment to all
        statements. Raises NoSuchObjectException with `get_table`'s text, and what `find` raises."""
        guessed = self.guess(name)
        if guessed is None:
            table = yield from partitioned_table_plan(name)
        else:
            table, outcome = yield from side_by_side(partitioned_table_plan(name), attempt(find(guessed)))
            if table == guessed:
                return table, outcome.result()
        self.saw(name, table)
        return table, (yield from find(table))


def _characters(table: PartitionedTable) -> int:
    return sum(len(name) + len(type_) for name, type_ in table.keys)
