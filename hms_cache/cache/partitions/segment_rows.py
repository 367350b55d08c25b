"""Partitions of one segment that a read selected: rows of a block and of its tail, neither of which changes.

Needs no lock: the answer is encoded, or its structs are made, after the lock is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import PIECES, PartitionBlock, Rows, indexes, row_count
from hms_cache.expressions import KeyColumns
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.values import frozen
from hms_cache.wire.partition_parts import decode_partition

T = TypeVar("T")

ROWS_AT_ONCE: Final = 16_384
"""Partitions whose pieces are held at once: about 130,000 short-lived objects, 10 MB."""


@frozen
class Tail:
    """Partitions that changed after their block was made, by name."""

    names: list[str]
    encoded: list[bytes]
    columns: KeyColumns
    places: npt.NDArray[np.int64]
    """For each of them, how many rows of the block have a smaller name."""


@frozen
class SegmentRows:
    """Partitions by name. Values of `rows` from the size of the block on are rows of the tail."""

    block: PartitionBlock
    rows: Rows
    tail: Tail | None

    def __len__(self) -> int:
        return row_count(self.rows)

    def first(self, count: int) -> SegmentRows:
        """The first `count`, or all if there are no more."""
        if count >= len(self):
            return self
        rows = slice(self.rows.start, self.rows.start + count) if isinstance(self.rows, slice) else self.rows[:count]
        return SegmentRows(self.block, rows, self.tail)

    def indexes(self) -> npt.NDArray[np.int64]:
        """`rows` as indexes."""
        return indexes(self.rows)

    def subset(self, positions: npt.NDArray[Any]) -> SegmentRows:
        """The partitions at these positions, ascending."""
        return SegmentRows(self.block, self.indexes()[positions], self.tail)

    def tail_struct(self, row: int) -> Partition:
        """A partition of the tail, by its row there."""
        assert self.tail is not None
        return decode_partition(self.tail.encoded[row])

    def structs(self) -> list[Partition]:
        """The partitions, each a struct of its own."""
        tail = self.tail
        return self.spread(
            self.block.decode_all, 1, lambda row: [decode_partition(tail.encoded[row])] if tail is not None else []
        )

    def names(self) -> list[str]:
        """Their names."""
        tail = self.tail
        return self.spread(self.block.names, 1, lambda row: [tail.names[row]] if tail is not None else [])

    def values(self) -> list[list[str]]:
        """Their values."""
        tail = self.tail
        return self.spread(self._block_values, 1, lambda row: [tail.columns.row(row)] if tail is not None else [])

    def distinct_values(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """The distinct combinations of values at these positions, in the order of the first partition with each."""
        if self.tail is None and self._combinations(positions) < 1 << 62:
            rows = self._first_rows(positions)
        else:
            return list(dict.fromkeys(tuple(row[position] for position in positions) for row in self.values()))
        return [tuple(row[position] for position in positions) for row in self._block_values(rows)]

    def _combinations(self, positions: Sequence[int]) -> int:
        return math.prod(max(1, len(self.block.columns.columns[position].dictionary)) for position in positions)

    def _first_rows(self, positions: Sequence[int]) -> npt.NDArray[Any]:
        """One row of the block for each combination."""
        rows = indexes(self.rows)
        combined = np.zeros(len(rows), np.int64)
        for position in positions:
            column = self.block.columns.columns[position]
            combined = combined * max(1, len(column.dictionary)) + column.codes[rows]
        _, first = np.unique(combined, return_index=True)
        first.sort()
        return rows[first]

    def _block_values(self, rows: Rows) -> list[list[str]]:
        columns = []
        for column in self.block.columns.columns:
            codes = column.codes[rows]
            used, positions = np.unique(codes, return_inverse=True)
            texts = [column.dictionary[code] for code in used.tolist()]
            columns.append([texts[position] for position in positions.tolist()])
        return [list(values) for values in zip(*columns, strict=True)]

    def pieces(self, *, joined: bool) -> list[bytes]:
        """The encoded partitions as `PartitionBlock.pieces` returns them: the last piece of each ends with the header
        of the next.

        `joined`: some thousands at a time, if the pieces of all would take too much memory.
        """
        if not joined:
            return self._pieces(self.rows)
        return [b"".join(self._pieces(part)) for part in self._parts()]

    def _parts(self) -> list[Rows]:
        count = len(self)
        parts: list[Rows] = []
        for first in range(0, count, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, count)
            if isinstance(self.rows, slice):
                parts.append(slice(self.rows.start + first, self.rows.start + last))
            else:
                parts.append(self.rows[first:last])
        return parts

    def _pieces(self, rows: Rows) -> list[bytes]:
        tail, header = self.tail, self.block.header
        return self.spread(
            self.block.pieces,
            PIECES,
            lambda row: [tail.encoded[row][len(header) :], header] if tail is not None else [],
            rows,
        )

    def name_pieces(self) -> list[bytes]:
        """The names, each as an encoded string, in pieces."""
        tail = self.tail
        if tail is None:
            return [self.block.encoded_names(self.rows)]

        def of_tail(row: int) -> list[bytes]:
            name = tail.names[row].encode()
            return [len(name).to_bytes(4, "big"), name]

        return self.spread(self.block.encoded_name_pieces, 1, of_tail)

    def spread(
        self,
        of_block: Callable[[Rows], list[T]],
        width: int,
        of_tail: Callable[[int], list[T]],
        rows: Rows | None = None,
    ) -> list[T]:
        """What `of_block` returns for rows of the block, `width` elements each, with those of the tail in between."""
        chosen = self.rows if rows is None else rows
        if self.tail is None or isinstance(chosen, slice):
            return of_block(chosen)
        size = len(self.block)
        from_tail = np.flatnonzero(chosen >= size)
        if not len(from_tail):
            return of_block(chosen)
        elements = of_block(chosen[chosen < size])
        spread: list[Any] = []
        taken = 0
        for number, (place, row) in enumerate(
            zip(from_tail.tolist(), (chosen[from_tail] - size).tolist(), strict=True)
        ):
            before = (place - number) * width
            spread += elements[taken:before]
            spread += of_tail(row)
            taken = before
        spread += elements[taken:]
        return spread
