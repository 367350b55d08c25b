"""The partitions of one table in memory: all of them, or single ones.

Most are in a block, which never changes; what changed since it was made gathers in a small tail beside it, and rows of
the block that are no more, or are in the tail, are hidden. `complete` says whether every partition of the table is
here (P6); `missing` holds values that an event named and that have not been read again yet, so that a change touches
only its partitions: a set with missing ones answers nothing about them until they are filled in.

When the tail has outgrown the block, a new block is made (`begin_rebuild`, `Rebuild.run`, `finish_rebuild`), outside
the lock but for its beginning and end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import PartitionBlock, Rows, indexes
from hms_cache.cache.partitions.block_builder import BlockBuilder
from hms_cache.cache.partitions.block_records import decode_partition, encode_partition
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions, Tail
from hms_cache.expressions import KeyColumns
from hms_cache.expressions import PartitionKey as Key
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.partitions.reads import PartitionRows
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition

Values = tuple[str, ...]

SMALLEST_TAIL: Final = 32
"""Changes that are never worth a new block: each costs an encoded partition, some 2 KB."""

LARGEST_TAIL: Final = 20_000
"""Changes that always are: some 40 MB, and as much work for each answer as a block of as many partitions."""

TAIL_SHARE: Final = 16
"""Between the two, one change for so many partitions."""

_TAIL_ENTRY_BYTES: Final = 400
"""Dictionary slots, key, values and objects of one partition in the tail."""

_MISSING_BYTES: Final = 300
"""Set slot, tuple and texts of one missing partition."""


class SetTooLargeError(Exception):
    """The partitions of a table take more memory than they may."""


class _Changed(NamedTuple):
    """A partition in the tail."""

    values: Values
    encoded: bytes


class SetParts(NamedTuple):
    """All that a set is made of, as of one moment: values that nobody changes."""

    keys: tuple[Key, ...]
    block: PartitionBlock
    hidden: npt.NDArray[np.bool_] | None
    """Rows of the block that are no more, or are in the tail; None: none."""
    changed: dict[str, tuple[Values, bytes]]
    """The tail: values and encoded partition by name."""
    missing: frozenset[Values]
    complete: bool


@dataclass(slots=True, eq=False)
class Rebuild:
    """A new block on its way."""

    keys: tuple[Key, ...]
    base: PartitionBlock
    rows: Rows
    encoded: list[bytes]
    changed: set[str] = field(default_factory=set)
    """Names that changed since; guarded as the set is."""
    block: PartitionBlock | None = None

    def run(self) -> None:
        """Makes the block. Needs no lock."""
        builder = BlockBuilder(self.keys, self.base)
        builder.add_structs(decode_partition(encoded) for encoded in self.encoded)
        self.block = builder.build(self.rows)


class PartitionSet:
    """Partitions by values, in the order of their names. Guarded by the lock of the cache it is in.

    What it answers stays as it is whatever happens to the set afterwards: `SelectedPartitions` needs no lock.
    """

    def __init__(self, keys: Sequence[Key], partitions: Iterable[Partition], *, complete: bool) -> None:
        builder = BlockBuilder(keys)
        by_name = {builder.naming.name(partition.values): partition for partition in partitions}
        builder.add_structs(by_name.values())
        self._set_up(keys, builder.build(), complete)

    @classmethod
    def from_pages(
        cls, keys: Sequence[Key], pages: Iterable[PartitionRows], *, complete: bool, most_bytes: int | None = None
    ) -> PartitionSet:
        """From rows as the store reads them, page by page, without structs.

        Raises SetTooLargeError as soon as it is clear that the set will take more than `most_bytes`; UnencodableReply,
        MetaException (a name without the table's keys), and what the pages raise.
        """
        builder = BlockBuilder(keys)
        for page in pages:
            builder.add_rows(page)
            if most_bytes is not None and builder.least_bytes > most_bytes:
                raise SetTooLargeError(f"more than {most_bytes} bytes after {len(builder)} partitions")
        made = cls.__new__(cls)
        made._set_up(keys, builder.build(), complete)
        return made

    def parts(self) -> SetParts:
        """What it is made of now: a copy of what may change. Under the cache's lock."""
        hidden = self._hidden.copy() if self._hidden is not None and self._hidden_count else None
        changed = {name: (one.values, one.encoded) for name, one in self._changed.items()}
        return SetParts(self.keys, self._block, hidden, changed, frozenset(self.missing), self.complete)

    @classmethod
    def from_parts(cls, parts: SetParts) -> PartitionSet:
        """The set that `parts` was asked of."""
        made = cls.__new__(cls)
        made._set_up(parts.keys, parts.block, parts.complete)
        if parts.hidden is not None:
            made._hidden = parts.hidden
            made._hidden_count = int(np.count_nonzero(parts.hidden))
        made._changed = {name: _Changed(*one) for name, one in parts.changed.items()}
        made.missing = set(parts.missing)
        return made

    def _set_up(self, keys: Sequence[Key], block: PartitionBlock, complete: bool) -> None:
        self.keys = tuple(keys)
        self.complete = complete
        self.missing: set[Values] = set()
        self._naming = PartitionNaming([name for name, _ in keys])
        self._set_block(block)
        self._rebuild: Rebuild | None = None

    def _set_block(self, block: PartitionBlock) -> None:
        self._block = block
        self._hidden: npt.NDArray[np.bool_] | None = None
        self._hidden_count = 0
        self._changed: dict[str, _Changed] = {}
        self._tail: Tail | None = None

    def __len__(self) -> int:
        return len(self._block) - self._hidden_count + len(self._changed)

    def name_of(self, values: Sequence[str]) -> str:
        """The partition name of these values. Raises MetaException for a wrong number of them."""
        return self._naming.name(values)

    # Changes

    def put(self, partitions: Iterable[Partition]) -> None:
        """Adds or replaces partitions."""
        for partition in partitions:
            values = tuple(partition.values)
            name = self.name_of(values)
            changed = _Changed(values, encode_partition(partition))
            self._forget(name)
            self._changed[name] = changed
            self.missing.discard(values)

    def mark_missing(self, values: Iterable[Values]) -> None:
        """An event named these: what is held of them is forgotten."""
        for one in values:
            if len(one) != len(self.keys):
                # An event of another partition scheme than ours: nothing here can be trusted.
                self.complete = False
                self.missing.clear()
                self._rebuild = None
                self._set_block(BlockBuilder(self.keys).build())
                break
            self._forget(self.name_of(one))
            if self.complete:
                self.missing.add(one)

    @property
    def is_mostly_missing(self) -> bool:
        """Whether so many are missing that the whole set is read again rather than those."""
        return len(self.missing) > len(self) // 2 + 1000

    def fill(self, asked: Iterable[Values], found: Iterable[Partition]) -> None:
        """The missing ones were read again: `found` are those that exist."""
        for values in asked:
            self.missing.discard(values)
        self.put(found)

    def _forget(self, name: str) -> None:
        self._tail = None
        if self._rebuild is not None:
            self._rebuild.changed.add(name)
        if self._changed.pop(name, None) is not None:
            return
        row = self._block.find(name)
        if row is None:
            return
        if self._hidden is None:
            self._hidden = np.zeros(len(self._block), np.bool_)
        if not self._hidden[row]:
            self._hidden[row] = True
            self._hidden_count += 1

    # New blocks

    @property
    def is_outgrown(self) -> bool:
        """Whether what changed is worth a new block now."""
        changes = len(self._changed) + self._hidden_count
        most = max(SMALLEST_TAIL, min(LARGEST_TAIL, len(self._block) // TAIL_SHARE))
        return changes > most and self._rebuild is None

    def begin_rebuild(self) -> Rebuild:
        """Takes what there is now; changes from now on are noted. Under the lock."""
        encoded = [changed.encoded for changed in self._changed.values()]
        self._rebuild = Rebuild(self.keys, self._block, self._visible_rows(), encoded)
        return self._rebuild

    def finish_rebuild(self, rebuild: Rebuild) -> bool:
        """Puts the new block in place, with the changes since; False when it came too late. Under the lock."""
        if self._rebuild is not rebuild:
            return False
        self._rebuild = None
        if rebuild.block is None:
            return False
        changed = self._changed
        self._set_block(rebuild.block)
        for name in rebuild.changed:
            self._forget(name)
            if name in changed:
                self._changed[name] = changed[name]
        return True

    # Questions

    @property
    def whole(self) -> bool:
        """Whether every partition of the table is here now."""
        return self.complete and not self.missing

    def find(self, values: Sequence[str]) -> Partition | None:
        """The partition with these values, if held."""
        return self.find_name(self.name_of(values))

    def find_name(self, name: str) -> Partition | None:
        """The partition of this name, if held."""
        changed = self._changed.get(name)
        if changed is not None:
            return decode_partition(changed.encoded)
        row = self._find_row(name)
        return self._block.decode(row) if row is not None else None

    def _find_row(self, name: str) -> int | None:
        row = self._block.find(name)
        return None if row is None or (self._hidden is not None and self._hidden[row]) else row

    def names(self) -> list[str]:
        """Names ascending by code point."""
        return self.all().names()

    @property
    def base_columns(self) -> KeyColumns:
        """Key values of the block, hidden rows included: masks of theirs go to `select_masks`."""
        return self._block.columns

    @property
    def tail_columns(self) -> KeyColumns | None:
        """Key values of what changed; None: nothing."""
        return self._current_tail().columns if self._changed else None

    @property
    def hides_rows(self) -> bool:
        """Whether `base_columns` has rows that are no more."""
        return self._hidden_count > 0

    def visible_columns(self) -> KeyColumns:
        """Key values of the block without the hidden rows."""
        return self._block.columns.take(indexes(self._visible_rows()))

    def all(self) -> SelectedPartitions:
        """All partitions that are held."""
        return self._selected(self._visible_rows(), np.arange(len(self._changed)))

    def select_masks(self, base: npt.NDArray[np.bool_], tail: npt.NDArray[np.bool_] | None) -> SelectedPartitions:
        """The rows of a mask over `base_columns` and of one over `tail_columns`."""
        if self._hidden is not None and self._hidden_count:
            base = base & ~self._hidden
        found = np.flatnonzero(tail) if tail is not None else np.zeros(0, np.int64)
        return self._selected(np.flatnonzero(base), found)

    def select_names(self, names: Iterable[str]) -> SelectedPartitions:
        """The partitions of these names, unknown ones left out, each once."""
        wanted = set(names)
        changed = [name for name in wanted if name in self._changed] if self._changed else []
        rows = np.array(self._block.find_all([*wanted.difference(changed)]), np.int64)
        if self._hidden is not None and self._hidden_count:
            rows = rows[~self._hidden[rows]]
        rows.sort()
        if not changed:
            return self._selected(rows, np.zeros(0, np.int64))
        held = self._current_tail().names
        return self._selected(rows, np.sort(np.array([bisect_left(held, name) for name in changed], np.int64)))

    def _visible_rows(self) -> Rows:
        if self._hidden is None or not self._hidden_count:
            return self._block.every_row
        return np.flatnonzero(~self._hidden)

    def _current_tail(self) -> Tail:
        if self._tail is None:
            names = sorted(self._changed)
            changed = [self._changed[name] for name in names]
            self._tail = Tail(
                names,
                [one.encoded for one in changed],
                KeyColumns.from_values(self.keys, [one.values for one in changed]),
                np.array([self._block.insertion_point(name) for name in names], np.int64),
            )
        return self._tail

    def _selected(self, rows: Rows, tail_rows: npt.NDArray[Any]) -> SelectedPartitions:
        """Rows of the block and of the tail, both ascending, by name."""
        if not len(tail_rows):
            return SelectedPartitions(self._block, rows, None)
        tail = self._current_tail()
        rows = indexes(rows)
        places = np.searchsorted(rows, tail.places[tail_rows])
        return SelectedPartitions(self._block, np.insert(rows, places, tail_rows + len(self._block)), tail)

    def memory_bytes(self) -> int:
        """Bytes held."""
        tail = sum(_TAIL_ENTRY_BYTES + len(name) + len(one.encoded) for name, one in self._changed.items())
        hidden = self._hidden.nbytes if self._hidden is not None else 0
        return self._block.memory_bytes() + tail + hidden + _MISSING_BYTES * len(self.missing)
