"""Names of partitions in a request, and their rows: found without the cache's lock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import PartitionBlock
from hms_cache.cache.partitions.segment import Segment


class RequestedNames:
    """Names in ascending order, without duplicates. Not thread-safe.

    A lookup takes a microsecond, and a planner may name all partitions of a table. Blocks never change, so rows that
    were found in a block stay valid.
    """

    __slots__ = ("_rows", "ordered")

    def __init__(self, names: Iterable[str]) -> None:
        self.ordered = sorted(set(names))
        self._rows: dict[int, tuple[PartitionBlock, npt.NDArray[np.int64]]] = {}
        """By the identity of a block, which is kept so that no other block can have the same."""

    def find_rows(self, segments: Sequence[Segment]) -> None:
        """Finds their rows in the present blocks of all segments of a table."""
        for segment, some in self.in_segments(segments):
            block = segment.block
            self._rows[id(block)] = block, np.sort(np.array(block.find_all(some), np.int64))

    def rows_in(self, block: PartitionBlock) -> npt.NDArray[np.int64] | None:
        """The rows of a block that have one of the names, ascending; None: the names were not looked up in it."""
        found = self._rows.get(id(block))
        return found[1] if found is not None else None

    def in_segments(self, segments: Sequence[Segment]) -> Iterator[tuple[Segment, Sequence[str]]]:
        """The segments that contain any of the names, each with its names."""
        if len(segments) == 1:
            if self.ordered:
                yield segments[0], self.ordered
            return
        starts = [bisect_left(self.ordered, one.first) for one in segments[1:]]
        for segment, start, end in zip(segments, [0, *starts], [*starts, len(self.ordered)], strict=bool(segments)):
            if start < end:
                yield segment, self.ordered[start:end]
