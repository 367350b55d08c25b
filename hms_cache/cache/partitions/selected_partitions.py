"""Partitions that a read selected, by name: the rows of one segment after the other.

Needs no lock: the answer is encoded, or its structs are made, after the lock is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from thrift.Thrift import TType

from hms_cache.cache.partitions.segment_rows import ROWS_AT_ONCE, SegmentRows
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.values import frozen
from hms_cache.wire.encoded_lists import EncodedList


@frozen
class SelectedPartitions:
    """Partitions in the order of their names. No part is empty."""

    parts: tuple[SegmentRows, ...]

    @classmethod
    def of(cls, parts: Iterable[SegmentRows]) -> SelectedPartitions:
        """Of segments in the order of their names."""
        return cls(tuple(part for part in parts if len(part)))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def first(self, count: int) -> SelectedPartitions:
        """The first `count`, or all if there are no more."""
        parts = []
        for part in self.parts:
            if count <= 0:
                break
            parts.append(part.first(count))
            count -= len(part)
        return SelectedPartitions(tuple(parts))

    def subset(self, positions: npt.NDArray[Any]) -> SelectedPartitions:
        """The partitions at these positions, ascending."""
        chosen = []
        start = 0
        for part in self.parts:
            low, high = np.searchsorted(positions, (start, start + len(part)))
            chosen.append(part.subset(positions[low:high] - start))
            start += len(part)
        return SelectedPartitions.of(chosen)

    def structs(self) -> list[Partition]:
        """The partitions, each a struct of its own."""
        return [one for part in self.parts for one in part.structs()]

    def names(self) -> list[str]:
        """Their names."""
        return [name for part in self.parts for name in part.names()]

    def values(self) -> list[list[str]]:
        """Their values."""
        return [values for part in self.parts for values in part.values()]

    def distinct_values(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """The distinct combinations of values at these positions, in the order of the first partition with each."""
        return list(dict.fromkeys(chain.from_iterable(part.distinct_values(positions) for part in self.parts)))

    def encoded_structs(self) -> EncodedPartitions:
        """The partitions as a list that knows its encoding."""
        return EncodedPartitions(self, self._encode)

    def encoded_names(self) -> EncodedList[str]:
        """The names as a list that knows its encoding."""
        return EncodedList(
            len(self), self.names, lambda: [piece for part in self.parts for piece in part.name_pieces()], TType.STRING
        )

    def _encode(self) -> list[bytes]:
        if not self.parts:
            return []
        header = self.parts[0].block.header
        pieces = [header]
        joined = len(self) > ROWS_AT_ONCE
        for part in self.parts:
            pieces += part.pieces(joined=joined)
        pieces[-1] = pieces[-1][: len(pieces[-1]) - len(header)]
        return pieces


class EncodedPartitions(EncodedList[Partition]):
    """Selected partitions as a list."""

    def __init__(self, selected: SelectedPartitions, encode: Callable[[], list[bytes]]) -> None:
        super().__init__(len(selected), selected.structs, encode)
        self.selected = selected
        """The contents that the list was made of. Once it is no longer `is_encoded`, use the list itself."""
