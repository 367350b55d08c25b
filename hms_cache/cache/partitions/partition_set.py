"""The partitions of one table in memory: segments, each of one range of names, adjacent and without gaps.

Each name lies in one segment, whether anything is held of it or not. A segment is loaded, evicted and rebuilt by
itself; the set is `complete` if all of them are (P6). A table of which single partitions are held has one incomplete
segment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions.block import PartitionBlock
from hms_cache.cache.partitions.block_builder import BlockBuilder
from hms_cache.cache.partitions.rebuild import Rebuild, joined_with
from hms_cache.cache.partitions.requested_names import RequestedNames
from hms_cache.cache.partitions.segment import Changed, Segment, SegmentParts, Values
from hms_cache.cache.partitions.segment_rows import SegmentRows
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.expressions import PartitionKey as Key
from hms_cache.metadata.name_ranges import EVERY_NAME, NameRange
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.partitions.reads import PartitionRows
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition


class SetTooLargeError(Exception):
    """The partitions of a table exceed the memory that they may take."""


class SetParts(NamedTuple):
    """A set's contents at one time, as values that do not change."""

    keys: tuple[Key, ...]
    segments: tuple[SegmentParts, ...]


class PartitionSet:
    """Partitions by values, in the order of their names. Guarded by the lock of its cache.

    Answers stay valid whatever happens to the set afterwards: `SelectedPartitions` needs no lock.
    """

    def __init__(self, keys: Sequence[Key], partitions: Iterable[Partition], *, complete: bool) -> None:
        builder = BlockBuilder(keys)
        by_name = {builder.naming.name(partition.values): partition for partition in partitions}
        builder.add_structs(by_name.values())
        self._set_up(keys, segments_of(tuple(keys), builder, complete=complete))

    @classmethod
    def from_pages(
        cls, keys: Sequence[Key], pages: Iterable[PartitionRows], *, complete: bool, max_bytes: int | None = None
    ) -> PartitionSet:
        """Makes a set of rows as the store reads them, page by page, without structs.

        Raises SetTooLargeError as soon as it is clear that the set will take more than `max_bytes`; ForeignNameError,
        UnencodableReply, MetaException (a name without the table's keys), and the errors of the pages.
        """
        made = cls.__new__(cls)
        builder = builder_of_pages(keys, pages, max_bytes)
        made._set_up(keys, segments_of(tuple(keys), builder, complete=complete))
        return made

    @classmethod
    def bare(cls, keys: Sequence[Key]) -> PartitionSet:
        """A set without any knowledge; cheap to make."""
        made = cls.__new__(cls)
        made._set_up(keys, [made._bare_segment(tuple(keys), "")])
        return made

    def parts(self) -> SetParts:
        """Its present contents: copies what may change. Under the cache's lock."""
        return SetParts(self.keys, tuple(one.parts() for one in self.segments))

    @classmethod
    def from_parts(cls, parts: SetParts) -> PartitionSet:
        """The set that `parts` was called on."""
        made = cls.__new__(cls)
        made._set_up(parts.keys, [Segment.from_parts(parts.keys, one) for one in parts.segments])
        return made

    def _set_up(self, keys: Sequence[Key], made: Sequence[Segment]) -> None:
        self.keys = tuple(keys)
        self._naming = PartitionNaming([name for name, _ in keys])
        self._set_segments(made)

    def _set_segments(self, made: Sequence[Segment]) -> None:
        self.segments = tuple(made)
        """By name; the first one begins before all names."""
        self._firsts = [one.first for one in self.segments]

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    def name_of(self, values: Sequence[str]) -> str:
        """The partition name of these values. Raises MetaException for a wrong number of them."""
        return self._naming.name(values)

    # Segments

    @property
    def is_segmented(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.segments) > 1

    def segment_of(self, name: str) -> Segment:
        """The segment that the name lies in."""
        return self.segments[bisect_right(self._firsts, name) - 1] if len(self.segments) > 1 else self.segments[0]

    def range_of(self, segment: Segment) -> NameRange:
        """The names of a segment of this set."""
        after = bisect_right(self._firsts, segment.first)
        return NameRange(segment.first, self._firsts[after] if after < len(self._firsts) else None)

    def narrowed(self, ranges: Iterable[NameRange] | None) -> PartitionSet:
        """The segments that these ranges touch, as a set for questions about the ranges only; None: all."""
        if ranges is None or not self.is_segmented:
            return self
        touched: set[int] = set()
        for first, end in ranges:
            low = bisect_right(self._firsts, first) - 1
            touched.update(range(low, len(self.segments) if end is None else bisect_left(self._firsts, end, low + 1)))
        return self._narrowed([self.segments[at] for at in sorted(touched)])

    def narrowed_to_names(self, names: RequestedNames) -> PartitionSet:
        """The same for single names."""
        if not self.is_segmented:
            return self
        return self._narrowed([segment for segment, _ in names.in_segments(self.segments)])

    def _narrowed(self, touched: Sequence[Segment]) -> PartitionSet:
        made = PartitionSet.__new__(PartitionSet)
        made.keys, made._naming = self.keys, self._naming
        made._set_segments(touched)
        return made

    def touch(self, now_s: float) -> None:
        """A read needs them now."""
        for one in self.segments:
            one.last_read = now_s

    def place(self, covered: NameRange, made: Sequence[Segment]) -> bool:
        """Replaces what is held of a range by segments that hold all its partitions. False: the range begins or ends
        inside a complete segment. Single partitions in a segment that it cuts are dropped."""
        low = bisect_right(self._firsts, covered.first) - 1
        high = len(self.segments) if covered.end is None else bisect_left(self._firsts, covered.end)
        before, after = self.segments[low], self.segments[high - 1]
        begins_within = before.first != covered.first
        ends_within = covered.end is not None and self.range_of(after).end != covered.end
        if (begins_within and before.complete) or (ends_within and after.complete):
            return False
        placed = [*self.segments[:low], *made, *self.segments[high:]]
        if begins_within:
            placed.insert(low, self._bare(before.first))
        if ends_within and covered.end is not None:
            placed.insert(low + begins_within + len(made), self._bare(covered.end))
        self._set_segments(placed)
        self._join_bare()
        return True

    def evict(self, segment: Segment) -> None:
        """Drops what is held of a segment's range."""
        self._set_segments([self._bare(one.first) if one is segment else one for one in self.segments])
        self._join_bare()

    def _bare(self, first: str) -> Segment:
        return self._bare_segment(self.keys, first)

    @staticmethod
    def _bare_segment(keys: tuple[Key, ...], first: str) -> Segment:
        return Segment(keys, first, _empty_block(keys), complete=False)

    def _join_bare(self) -> None:
        """Joins adjacent ranges of which nothing is held."""
        kept: list[Segment] = []
        for one in self.segments:
            if not (kept and kept[-1].is_bare and one.is_bare):
                kept.append(one)
        if len(kept) < len(self.segments):
            self._set_segments(kept)

    @property
    def is_bare(self) -> bool:
        """Whether nothing is held."""
        return all(one.is_bare for one in self.segments)

    def gap_in(self, covered: NameRange) -> NameRange | None:
        """The range of the first incomplete segment that a range touches."""
        for one in self._between(covered):
            if not one.complete:
                return self.range_of(one)
        return None

    def _between(self, covered: NameRange) -> tuple[Segment, ...]:
        low = bisect_right(self._firsts, covered.first) - 1
        return self.segments[low : None if covered.end is None else bisect_left(self._firsts, covered.end, low + 1)]

    @property
    def oldest(self) -> Segment | None:
        """The segment with the least recent read, if the set has several."""
        if not self.is_segmented:
            return None
        cached = (one for one in self.segments if not one.is_bare)
        return min(cached, key=lambda one: one.last_read, default=None)

    # Changes

    def put(self, partitions: Iterable[Partition]) -> None:
        """Adds or replaces partitions. Raises UnencodableReply or MetaException (wrong number of values); then nothing
        has changed."""
        self._put_encoded(self._encoded(partitions))

    def _encoded(self, partitions: Iterable[Partition]) -> list[tuple[str, Changed]]:
        found = []
        for partition in partitions:
            name = self.name_of(partition.values)
            found.append((name, self.segment_of(name).encode(partition)))
        return found

    def _put_encoded(self, changes: Iterable[tuple[str, Changed]]) -> None:
        for name, changed in changes:
            self.segment_of(name).put(name, changed)

    def mark_missing(self, values: Iterable[Values]) -> None:
        """An event named these partitions: they are dropped."""
        for one in values:
            if len(one) != len(self.keys):
                # An event with other partition keys: nothing held here can be trusted.
                self._set_segments([self._bare("")])
                break
            name = self.name_of(one)
            self.segment_of(name).mark_missing(name, one)

    @property
    def is_mostly_missing(self) -> bool:
        """Whether so many of a segment are missing that the whole segment is read again."""
        return any(one.is_mostly_missing for one in self.segments)

    def drop_mostly_missing(self) -> bool:
        """Drops the segments of which so many are missing. Returns whether nothing is left."""
        lost = [one for one in self.segments if one.is_mostly_missing]
        for one in lost:
            self.evict(one)
        return bool(lost) and self.is_bare

    def fill(self, requested: Iterable[Values], found: Iterable[Partition]) -> None:
        """The missing partitions were read again: `found` are those that exist. Raises as `put`; then all are still
        missing, and none counts as absent (P6)."""
        changes = self._encoded(found)
        names = [(self.name_of(values), values) for values in requested]
        for name, values in names:
            self.segment_of(name).found(values)
        self._put_encoded(changes)

    # New blocks

    @property
    def is_outgrown(self) -> bool:
        """Whether the changes of a segment are worth a new block now."""
        return any(one.is_outgrown for one in self.segments)

    def begin_rebuild(self, segment: Segment | None = None) -> Rebuild:
        """Begins to rebuild a segment; None: one whose changes outgrow its block, or the first. Further changes are
        noted. Under the lock."""
        chosen = segment
        if chosen is None:
            chosen = next((one for one in self.segments if one.is_outgrown), self.segments[0])
        at = self.segments.index(chosen)
        neighbour = joined_with(chosen, [*self.segments[at + 1 : at + 2], *self.segments[max(0, at - 1) : at]])
        of = (chosen,) if neighbour is None else tuple(sorted((chosen, neighbour), key=lambda one: one.first))
        return Rebuild.begin(self.keys, of)

    def finish_rebuild(self, rebuild: Rebuild) -> bool:
        """Installs the new blocks, with the changes since; False if they came too late. Under the lock."""
        is_current = all(one.renewal is rebuild for one in rebuild.of)
        for one in rebuild.of:
            if one.renewal is rebuild:
                one.renewal = None
        at = next((at for at, one in enumerate(self.segments) if one is rebuild.of[0]), -1)
        if not is_current or rebuild.blocks is None or self.segments[at : at + len(rebuild.of)] != rebuild.of:
            return False
        made = rebuild.finished()
        self._set_segments([*self.segments[:at], *made, *self.segments[at + len(rebuild.of) :]])
        for old in rebuild.of:
            for name in old.noted:
                self.segment_of(name).forget(name)
                if name in old.changed:
                    self.segment_of(name).put(name, old.changed[name])
            for values in old.missing:
                self.segment_of(self.name_of(values)).missing.add(values)
        return True

    # Questions

    @property
    def complete(self) -> bool:
        """Whether every partition of the table is held, or known to be missing."""
        return all(one.complete for one in self.segments)

    @property
    def has_complete(self) -> bool:
        """Whether any segment is complete."""
        return any(one.complete for one in self.segments)

    @property
    def missing(self) -> set[Values]:
        """Values that an event named and that have not been read again yet."""
        if len(self.segments) == 1:
            return self.segments[0].missing
        return set().union(*(one.missing for one in self.segments))

    @property
    def whole(self) -> bool:
        """Whether every partition of the table is held now."""
        return all(one.complete and not one.missing for one in self.segments)

    def find(self, values: Sequence[str]) -> Partition | None:
        """The partition with these values, if held."""
        return self.find_name(self.name_of(values))

    def find_name(self, name: str) -> Partition | None:
        """The partition of this name, if held."""
        return self.segment_of(name).find_name(name)

    def names(self) -> list[str]:
        """Names ascending by code point."""
        return self.all().names()

    def all(self) -> SelectedPartitions:
        """All partitions that are held."""
        return SelectedPartitions.of(one.all() for one in self.segments)

    def select(self, choose: Callable[[Segment], SegmentRows]) -> SelectedPartitions:
        """The selected rows of each segment."""
        return SelectedPartitions.of(choose(one) for one in self.segments)

    def select_names(self, names: RequestedNames) -> SelectedPartitions:
        """The partitions of these names, without unknown ones and duplicates."""
        return SelectedPartitions.of(
            segment.select_names(some, names.rows_in(segment.block))
            for segment, some in names.in_segments(self.segments)
        )

    @property
    def has_unweighed_readings(self) -> bool:
        """Whether filters have made more of it than it was weighed with."""
        return any(one.has_unweighed_readings for one in self.segments)

    def memory_bytes(self) -> int:
        """Bytes held."""
        return sum(one.memory_bytes() for one in self.segments)


def builder_of_pages(keys: Sequence[Key], pages: Iterable[PartitionRows], max_bytes: int | None = None) -> BlockBuilder:
    """All rows of the pages. Raises as `PartitionSet.from_pages`."""
    builder = BlockBuilder(keys)
    for page in pages:
        builder.add_rows(page)
        if max_bytes is not None and builder.least_bytes > max_bytes:
            raise SetTooLargeError(f"more than {max_bytes} bytes after {len(builder)} partitions")
    return builder


def segments_of(
    keys: tuple[Key, ...], builder: BlockBuilder, *, complete: bool, covered: NameRange = EVERY_NAME
) -> list[Segment]:
    """What was added to a builder, all of it within a range, as segments of the usual size; at least one."""
    return [
        Segment(keys, block.name(0) if at else covered.first, block, complete=complete)
        for at, block in enumerate(builder.build_apart(segments.SEGMENT_PARTITIONS))
    ]


@lru_cache(maxsize=64)
def _empty_block(keys: tuple[Key, ...]) -> PartitionBlock:
    return BlockBuilder(keys).build()
