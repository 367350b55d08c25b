"""New blocks for segments whose changes outgrow the old one, made without the cache's lock.

At the same time, a segment that has doubled in size is cut, and one that has become small is joined to its neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions.block import PartitionBlock, Rows
from hms_cache.cache.partitions.block_builder import BlockBuilder
from hms_cache.cache.partitions.segment import Segment
from hms_cache.expressions import PartitionKey as Key
from hms_cache.metadata.name_ranges import split_positions
from hms_cache.wire.partition_parts import decode_partition

SPLIT_ABOVE: Final = 2
"""A segment larger than this many times its usual size is cut."""

JOIN_BELOW: Final = 4
"""A segment smaller than this part of its usual size is joined, if both together do not exceed that size."""


@dataclass(slots=True, eq=False)
class Rebuild:
    """New blocks in the making, for one segment or for two adjacent ones."""

    keys: tuple[Key, ...]
    of: tuple[Segment, ...]
    rows: tuple[tuple[PartitionBlock, Rows], ...]
    """The rows that are kept of their blocks."""
    encoded: list[bytes]
    """The contents of their tails."""
    blocks: list[PartitionBlock] | None = None
    """The result, by name."""

    @classmethod
    def begin(cls, keys: tuple[Key, ...], of: tuple[Segment, ...]) -> Rebuild:
        """Takes the present contents. The segments note changes from now on. Under the lock."""
        rebuild = cls(
            keys,
            of,
            tuple((one.block, one.visible_rows()) for one in of),
            # By name, so that the workers of a server make equal blocks of equal changes (`shared_blocks`).
            [one.changed[name].encoded for one in of for name in sorted(one.changed)],
        )
        for one in of:
            one.renewal, one.noted = rebuild, set()
        return rebuild

    def run(self) -> None:
        """Makes the blocks. Needs no lock."""
        (base, kept), *others = sorted(self.rows, key=lambda one: -len(one[0]))
        builder = BlockBuilder(self.keys, base)
        for block, rows in others:
            builder.add_structs(block.decode_all(rows))
        builder.add_structs(decode_partition(encoded) for encoded in self.encoded)
        made = builder.build(kept)
        most = segments.SEGMENT_PARTITIONS
        if len(made) <= SPLIT_ABOVE * most or not all(one.complete for one in self.of):
            self.blocks = [made]
            return
        cuts = [*split_positions(len(made), most, made.name), len(made)]
        self.blocks = [BlockBuilder(self.keys, made).build(slice(low, high)) for low, high in pairwise(cuts)]

    def finished(self) -> list[Segment]:
        """The new segments, without later changes. Under the lock."""
        assert self.blocks is not None
        complete = all(one.complete for one in self.of)
        made = [
            Segment(self.keys, block.name(0) if at else self.of[0].first, block, complete=complete)
            for at, block in enumerate(self.blocks)
        ]
        for one in made:
            one.last_read = max(old.last_read for old in self.of)
        return made


def joined_with(segment: Segment, neighbours: list[Segment]) -> Segment | None:
    """The neighbour that a small segment is joined to, if there is one."""
    most = segments.SEGMENT_PARTITIONS
    if not segment.complete or JOIN_BELOW * len(segment) >= most:
        return None
    for one in neighbours:
        if one.complete and one.renewal is None and len(one) + len(segment) <= most:
            return one
    return None
