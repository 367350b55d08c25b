"""The partitions of one table in memory: all of them, or single ones.

The plain first form: Python structs by values. `complete` says whether every partition of the table is here (P6);
`missing` holds values that an event named and that have not been read again yet, so that a change touches only its
partitions: a set with missing ones answers nothing about them until they are filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_cache.expressions import KeyColumns
from hms_cache.expressions import PartitionKey as Key
from hms_cache.store.partition_names import make_partition_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition

Values = tuple[str, ...]


class PartitionSet:
    """Partitions by values, in the order of their names. Guarded by the lock of the cache it is in.

    Names are kept sorted by code point; the structs are frozen by convention, answers share them.
    """

    def __init__(self, keys: Sequence[Key], partitions: Iterable[Partition], *, complete: bool) -> None:
        self.keys = tuple(keys)
        self._key_names = [name for name, _ in keys]
        self.complete = complete
        self.missing: set[Values] = set()
        self._by_name: dict[str, Partition] = {}
        self._names: list[str] | None = None
        self._columns: KeyColumns | None = None
        self.put(partitions)

    def __len__(self) -> int:
        return len(self._by_name)

    def name_of(self, values: Sequence[str]) -> str:
        """The partition name of these values. Raises MetaException for a wrong number of them."""
        return make_partition_name(self._key_names, values)

    def put(self, partitions: Iterable[Partition]) -> None:
        """Adds or replaces partitions."""
        for partition in partitions:
            self._by_name[self.name_of(partition.values)] = partition
            self.missing.discard(tuple(partition.values))
        self._names = self._columns = None

    def mark_missing(self, values: Iterable[Values]) -> None:
        """An event named these: what is held of them is forgotten."""
        for one in values:
            if len(one) != len(self.keys):
                # An event of another partition scheme than ours: nothing here can be trusted.
                self.complete = False
                self._by_name.clear()
                self.missing.clear()
                break
            self._by_name.pop(self.name_of(one), None)
            if self.complete:
                self.missing.add(one)
        self._names = self._columns = None

    def fill(self, asked: Iterable[Values], found: Iterable[Partition]) -> None:
        """The missing ones were read again: `found` are those that exist."""
        for values in asked:
            self.missing.discard(values)
        self.put(found)

    @property
    def whole(self) -> bool:
        """Whether every partition of the table is here now."""
        return self.complete and not self.missing

    def find(self, values: Sequence[str]) -> Partition | None:
        """The partition with these values, if held."""
        return self._by_name.get(self.name_of(values))

    def find_name(self, name: str) -> Partition | None:
        """The partition of this name, if held."""
        return self._by_name.get(name)

    def names(self) -> list[str]:
        """Names ascending by code point. Not to be changed by the caller."""
        if self._names is None:
            self._names = sorted(self._by_name)
        return self._names

    def columns(self, default_partition_name: str | None = None) -> KeyColumns:
        """Key values as columns, rows in the order of `names()`."""
        if self._columns is None:
            rows = [self._by_name[name].values for name in self.names()]
            self._columns = KeyColumns.from_values(self.keys, rows)
        return self._columns
