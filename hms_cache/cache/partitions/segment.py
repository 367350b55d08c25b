"""The partitions of a table whose names lie in one range: all of them, or single ones.

Most are in a block, which never changes. Later changes are collected in a small tail; rows of the block that were
dropped, or that are in the tail, are hidden. `complete` says whether every partition of the range is here (P6).
`missing` holds partitions that an event named and that have not been read again yet: only they are affected by a
change, and the segment answers nothing about them until they are filled in.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import PartitionBlock, Rows, indexes
from hms_cache.cache.partitions.segment_rows import SegmentRows, Tail
from hms_cache.expressions import KeyColumns
from hms_cache.expressions import PartitionKey as Key
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire.partition_parts import decode_partition, encode_partition

Values = tuple[str, ...]

SEGMENT_PARTITIONS = 16_384
"""Partitions in a new segment, about 3 MB, which is loaded, evicted or rebuilt in one go. Smaller segments would cost
each filter some more calls of numpy."""

SMALLEST_TAIL: Final = 32
"""Fewer changes than this are never worth a new block. Each takes an encoded partition, about 2 KB."""

LARGEST_TAIL: Final = 20_000
"""More changes than this always are: about 40 MB, with as much work for each answer as a block of as many
partitions."""

TAIL_SHARE: Final = 16
"""In between, a new block is made if there is one change for this number of partitions."""

_TAIL_ENTRY_BYTES: Final = 400
"""Dictionary slots, key, values and objects of one partition in the tail."""

_MISSING_BYTES: Final = 300
"""Set slot, tuple and texts of one missing partition."""

_SEGMENT_BYTES: Final = 600
"""The segment itself, and the name that it begins at."""


class Changed(NamedTuple):
    """A partition in the tail."""

    values: Values
    encoded: bytes


class SegmentParts(NamedTuple):
    """A segment's contents at one time, as values that do not change."""

    first: str
    block: PartitionBlock
    hidden: npt.NDArray[np.bool_] | None
    """Rows of the block that were dropped or are in the tail; None: none."""
    changed: dict[str, tuple[Values, bytes]]
    """The tail: values and encoded partition by name."""
    missing: frozenset[Values]
    complete: bool


class Segment:
    """Partitions by name. Guarded by the lock of its cache.

    Answers stay valid whatever happens to the segment afterwards: `SegmentRows` needs no lock.
    """

    def __init__(self, keys: tuple[Key, ...], first: str, block: PartitionBlock, *, complete: bool) -> None:
        self.keys = keys
        self.first = first
        """The name that its range begins at; it ends where the next segment begins."""
        self.block = block
        self.complete = complete
        self.missing: set[Values] = set()
        self.last_read = 0.0
        """When a read last needed it (monotonic); 0: never."""
        self.renewal: object | None = None
        """The rebuild that is making a new block of it; its `noted` has the names that changed since it began."""
        self.noted: set[str] = set()
        self._hidden: npt.NDArray[np.bool_] | None = None
        self._hidden_count = 0
        self._changed: dict[str, Changed] = {}
        self._changed_bytes = 0
        """Their bytes, maintained with each change, since every event asks for the weight."""
        self._tail: Tail | None = None
        self._weight: int | None = None
        self._weighed_readings = 0

    def parts(self) -> SegmentParts:
        """What it is made of now: a copy of what may change. Under the cache's lock."""
        hidden = self._hidden.copy() if self._hidden is not None and self._hidden_count else None
        changed = {name: (one.values, one.encoded) for name, one in self._changed.items()}
        return SegmentParts(self.first, self.block, hidden, changed, frozenset(self.missing), self.complete)

    @classmethod
    def from_parts(cls, keys: tuple[Key, ...], parts: SegmentParts) -> Segment:
        """The segment that `parts` was asked of."""
        made = cls(keys, parts.first, parts.block, complete=parts.complete)
        if parts.hidden is not None:
            made._hidden = parts.hidden
            made._hidden_count = int(np.count_nonzero(parts.hidden))
        made._changed = {name: Changed(*one) for name, one in parts.changed.items()}
        made._changed_bytes = sum(_bytes_of(name, one) for name, one in made._changed.items())
        made.missing = set(parts.missing)
        return made

    def __len__(self) -> int:
        return len(self.block) - self._hidden_count + len(self._changed)

    @property
    def is_bare(self) -> bool:
        """Whether nothing is held of its range."""
        return not self.complete and not len(self)

    def replace_block(self, block: PartitionBlock, same: PartitionBlock) -> None:
        """Replaces the block by an equal one in other memory, if it is still in use."""
        if self.block is block:
            self.block = same

    # Changes

    def put(self, name: str, changed: Changed) -> None:
        """Adds or replaces a partition."""
        self.forget(name)
        self._changed[name] = changed
        self._changed_bytes += _bytes_of(name, changed)
        self.missing.discard(changed.values)

    def encode(self, partition: Partition) -> Changed:
        """A partition as it is put. Raises UnencodableReply."""
        return Changed(tuple(partition.values), encode_partition(partition))

    def mark_missing(self, name: str, values: Values) -> None:
        """An event named these partitions: they are dropped."""
        self.forget(name)
        if self.complete:
            self.missing.add(values)

    @property
    def is_mostly_missing(self) -> bool:
        """Whether so many are missing that the whole segment is read again."""
        return len(self.missing) > len(self) // 2 + 1000

    def found(self, values: Values) -> None:
        """Missing values were read again; if the partition exists, it was put as well."""
        self.missing.discard(values)
        self._weight = None

    def forget(self, name: str) -> None:
        """Drops the partition of this name."""
        self._tail = self._weight = None
        if self.renewal is not None:
            self.noted.add(name)
        changed = self._changed.pop(name, None)
        if changed is not None:
            self._changed_bytes -= _bytes_of(name, changed)
            return
        row = self.block.find(name)
        if row is None:
            return
        if self._hidden is None:
            self._hidden = np.zeros(len(self.block), np.bool_)
        if not self._hidden[row]:
            self._hidden[row] = True
            self._hidden_count += 1

    @property
    def is_outgrown(self) -> bool:
        """Whether the changes are worth a new block now."""
        changes = len(self._changed) + self._hidden_count
        most = max(SMALLEST_TAIL, min(LARGEST_TAIL, len(self.block) // TAIL_SHARE))
        return changes > most and self.renewal is None

    @property
    def changed(self) -> dict[str, Changed]:
        """The tail: what changed since the block was made, by name."""
        return self._changed

    # Questions

    def find_name(self, name: str) -> Partition | None:
        """The partition of this name, if held."""
        changed = self._changed.get(name)
        if changed is not None:
            return decode_partition(changed.encoded)
        row = self.block.find(name)
        if row is None or (self._hidden is not None and self._hidden[row]):
            return None
        return self.block.decode(row)

    @property
    def base_columns(self) -> KeyColumns:
        """Key values of the block, including hidden rows: masks over them are passed to `select_masks`."""
        return self.block.columns

    @property
    def tail_columns(self) -> KeyColumns | None:
        """Key values of what changed; None: nothing."""
        return self._current_tail().columns if self._changed else None

    @property
    def hides_rows(self) -> bool:
        """Whether `base_columns` contains dropped rows."""
        return self._hidden_count > 0

    def visible_columns(self) -> KeyColumns:
        """Key values of the block without the hidden rows."""
        return self.block.columns.take(indexes(self.visible_rows()))

    def all(self) -> SegmentRows:
        """All partitions that are held."""
        return self._selected(self.visible_rows(), np.arange(len(self._changed)))

    def select_masks(self, base: npt.NDArray[np.bool_], tail: npt.NDArray[np.bool_] | None) -> SegmentRows:
        """The rows of a mask over `base_columns` and of one over `tail_columns`."""
        if self._hidden is not None and self._hidden_count:
            base = base & ~self._hidden
        found = np.flatnonzero(tail) if tail is not None else np.zeros(0, np.int64)
        return self._selected(np.flatnonzero(base), found)

    def select_names(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> SegmentRows:
        """The partitions of these names, which must differ; unknown ones are left out. `rows`: the rows of the block
        that have these names, ascending; None: they are looked up now."""
        if rows is None:
            rows = np.sort(np.array(self.block.find_all(names), np.int64))
        if self._hidden is not None and self._hidden_count:
            # Rows in the tail are hidden in the block.
            rows = rows[~self._hidden[rows]]
        changed = set(names).intersection(self._changed) if self._changed else ()
        if not changed:
            return self._selected(rows, np.zeros(0, np.int64))
        cached = self._current_tail().names
        return self._selected(rows, np.sort(np.array([bisect_left(cached, name) for name in changed], np.int64)))

    def visible_rows(self) -> Rows:
        """Rows of the block that are not hidden."""
        if self._hidden is None or not self._hidden_count:
            return self.block.every_row
        return np.flatnonzero(~self._hidden)

    def _current_tail(self) -> Tail:
        if self._tail is None:
            names = sorted(self._changed)
            changed = [self._changed[name] for name in names]
            self._tail = Tail(
                names,
                [one.encoded for one in changed],
                KeyColumns.from_values(self.keys, [one.values for one in changed]),
                np.array([self.block.insertion_point(name) for name in names], np.int64),
            )
        return self._tail

    def _selected(self, rows: Rows, tail_rows: npt.NDArray[Any]) -> SegmentRows:
        """Rows of the block and of the tail, both ascending, by name."""
        if not len(tail_rows):
            return SegmentRows(self.block, rows, None)
        tail = self._current_tail()
        rows = indexes(rows)
        places = np.searchsorted(rows, tail.places[tail_rows])
        return SegmentRows(self.block, np.insert(rows, places, tail_rows + len(self.block)), tail)

    @property
    def has_unweighed_readings(self) -> bool:
        """Whether a filter has read keys in a way that their columns keep since this was weighed."""
        return self.block.columns.reading_count != self._weighed_readings

    def memory_bytes(self) -> int:
        """Bytes held."""
        if self._weight is None or self.has_unweighed_readings:
            self._weighed_readings = self.block.columns.reading_count
            hidden = self._hidden.nbytes if self._hidden is not None else 0
            own = self.block.memory_bytes() if len(self.block) or self.complete else 0
            self._weight = _SEGMENT_BYTES + own + self._changed_bytes + hidden + _MISSING_BYTES * len(self.missing)
        return self._weight


def _bytes_of(name: str, changed: Changed) -> int:
    """Bytes of a partition in the tail."""
    return _TAIL_ENTRY_BYTES + len(name) + len(changed.encoded)
