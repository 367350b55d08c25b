"""Remembers what was last read of partitioned tables, as a guess that saves a round trip.

Selecting partitions requires the table's id and keys, which have to be read first. With a guess, both are asked for
together, and the answer is used if the table was read as guessed. Both are read in one snapshot, so an outdated guess
costs time but cannot cause a wrong answer.
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

MAX_REMEMBERED: Final = 1_000
"""Maximum number of remembered tables: some 1 MB."""

MAX_CHARACTERS: Final = 2_000
"""Maximum length of the names and types of a remembered table's keys, since clients choose their number and length."""


class TableGuesses:
    """Guesses, the least recently used first. Thread-safe; `_lock` guards `_tables`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: OrderedDict[TableName, PartitionedTable] = OrderedDict()

    def remember(self, name: TableName, table: PartitionedTable | None) -> None:
        """Remembers a table that was read under this name. None: the table does not exist."""
        with self._lock:
            self._tables.pop(name, None)
            if table is not None and _characters(table) <= MAX_CHARACTERS:
                self._tables[name.as_stored] = table
                if len(self._tables) > MAX_REMEMBERED:
                    self._tables.popitem(last=False)

    def guess(self, name: TableName) -> PartitionedTable | None:
        """The table as it was read last, or None."""
        with self._lock:
            found = self._tables.get(name)
            if found is not None:
                self._tables.move_to_end(name)
            return found

    def with_table(
        self, name: TableName, find: Callable[[PartitionedTable], Plan[T]]
    ) -> Plan[tuple[PartitionedTable, T]]:
        """The table and the result of `find` for it, in one round trip if the guess is right. Requires a connection on
        which all statements show one snapshot. Raises NoSuchObjectException with `get_table`'s text, and what `find`
        raises."""
        guessed = self.guess(name)
        if guessed is None:
            table = yield from partitioned_table_plan(name)
        else:
            table, outcome = yield from side_by_side(partitioned_table_plan(name), attempt(find(guessed)))
            if table == guessed:
                return table, outcome.result()
        self.remember(name, table)
        return table, (yield from find(table))


def _characters(table: PartitionedTable) -> int:
    return sum(len(name) + len(type_) for name, type_ in table.keys)
