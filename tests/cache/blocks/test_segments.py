"""Segments that are evicted, loaded, split and merged in any order: the answers of a set are those of the table.

The model is the table. A selection reads the segments that it may touch. If all of these are complete and nothing of it
is missing, the answer must be the table's, byte for byte; otherwise there is no answer.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hms_cache.cache.memory_files import MemoryFiles
from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.partitions.block_builder import BlockBuilder
from hms_cache.cache.partitions.partition_set import PartitionSet, segments_of
from hms_cache.cache.partitions.rebuild import Rebuild
from hms_cache.cache.partitions.selection import PreparedSelection, missing_of, narrowed, select_partitions
from hms_cache.expressions import KeyColumns, bind, evaluate, parse_filter
from hms_cache.metadata.name_ranges import (
    EVERY_NAME,
    NameRange,
    beginning_with,
    may_begin_range,
    only,
    split_positions,
)
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionSelection,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire import encode_struct
from tests.cache.blocks.partitions import KEYS, name_of, ordinary, partition
from tests.cache.blocks.sharing import share

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03", "a b", "ü/%=", "__HIVE_DEFAULT_PARTITION__")
HOURS = ("1", "2", "10", "3 ")
ALL_VALUES = [(day, hour) for day in DAYS for hour in HOURS]
values_of_some = st.lists(st.sampled_from(ALL_VALUES), min_size=1, max_size=5, unique=True)

SELECTIONS: list[PartitionSelection] = [
    AllPartitions(),
    *(ByValues(one) for one in ALL_VALUES[::5]),
    *(ByNames(tuple(name_of(one) for one in ALL_VALUES[at :: at + 2])) for at in range(4)),
    *(ByPartialValues((day, "")) for day in DAYS),
    ByPartialValues(("", "10")),
    ByPartialValues(("2024-01-02", "2")),
    *(ByFilter(f'dt = "{day}"') for day in DAYS[:4]),
    ByFilter('dt = "2024-01-02" and hr = 10'),
    ByFilter('dt in ("2024-01-01", "2024-01-03") and hr > 1'),
    ByFilter('dt >= "2024-01-02" and hr != 2'),
    ByFilter('dt = "2024-01-01" or hr = 2'),
]


def selected_names(table: dict[str, Partition], selection: PartitionSelection) -> list[str]:
    """What the table contains of it, computed without segments."""
    names = sorted(table)
    match selection:
        case ByNames(wanted):
            return [name for name in names if name in wanted]
        case ByValues(values):
            return [name for name in names if name == name_of(values)]
        case ByPartialValues(values):
            alike = name_of(values).split("/")
            return [
                name
                for name in names
                if all(not v or part == wanted for v, part, wanted in zip(values, name.split("/"), alike, strict=True))
            ]
        case ByFilter(text):
            rows = [table[name].values for name in names]
            mask = evaluate(bind(parse_filter(text), KEYS), KeyColumns.from_values(KEYS, rows))
            return [name for name, hit in zip(names, mask, strict=True) if hit]
    return names


def read(table: dict[str, Partition], covered: NameRange) -> list[segments.Segment]:
    """Segments as built by a load of the range."""
    builder = BlockBuilder(KEYS)
    builder.add_structs(one for name, one in table.items() if covered.holds(name))
    return segments_of(KEYS, builder, complete=True, covered=covered)


def check_layout(held: PartitionSet) -> None:
    """Each name is in exactly one segment, and the contents of a segment are in its range."""
    firsts = [one.first for one in held.segments]
    assert firsts[0] == ""
    assert firsts == sorted(set(firsts))
    for one in held.segments:
        covered = held.range_of(one)
        assert all(covered.holds(name) for name in one.all().names())
        assert all(covered.holds(name_of(values)) for values in one.missing)
        assert all(held.segment_of(name) is one for name in one.all().names())


class Layouts(RuleBasedStateMachine):
    """One table, one set, segments of three."""

    def __init__(self) -> None:
        super().__init__()
        self.size = segments.SEGMENT_PARTITIONS
        segments.SEGMENT_PARTITIONS = 3
        self.table: dict[str, Partition] = {}
        self.held = PartitionSet(KEYS, (), complete=True)
        self.rebuild: Rebuild | None = None
        self.requested = [PreparedSelection(one) for one in SELECTIONS if isinstance(one, ByNames)]
        """What calls ask for that began some changes ago."""
        self.smallest_bytes = shared_blocks.SMALLEST_BYTES
        shared_blocks.SMALLEST_BYTES = 0  # type: ignore[misc]
        self.directory = TemporaryDirectory()
        self.files = MemoryFiles(Path(self.directory.name), 100)

    def teardown(self) -> None:
        segments.SEGMENT_PARTITIONS = self.size
        shared_blocks.SMALLEST_BYTES = self.smallest_bytes  # type: ignore[misc]
        self.directory.cleanup()

    @rule(chosen=values_of_some, number=st.integers(0, 3))
    def add_or_alter(self, chosen: list[tuple[str, str]], number: int) -> None:
        for one in chosen:
            self.table[name_of(one)] = partition(one, number)
        self.held.mark_missing(chosen)

    @rule(chosen=values_of_some)
    def drop(self, chosen: list[tuple[str, str]]) -> None:
        for one in chosen:
            self.table.pop(name_of(one), None)
        self.held.mark_missing(chosen)

    @rule(chosen=values_of_some)
    def read_single_ones(self, chosen: list[tuple[str, str]]) -> None:
        self.held.fill(chosen, [self.table[name_of(one)] for one in chosen if name_of(one) in self.table])

    @rule()
    def read_the_missing(self) -> None:
        missing = sorted(self.held.missing)
        self.held.fill(missing, [self.table[name_of(one)] for one in missing if name_of(one) in self.table])

    @rule()
    def load_all(self) -> None:
        self.held = PartitionSet(KEYS, self.table.values(), complete=True)

    @precondition(lambda self: self.held.is_segmented)
    @rule(at=st.integers(0, 30))
    def evict(self, at: int) -> None:
        self.held.evict(self.held.segments[at % len(self.held.segments)])

    @rule(at=st.integers(0, 30))
    def load_what_a_gap_covers(self, at: int) -> None:
        segment = self.held.segments[at % len(self.held.segments)]
        covered = self.held.range_of(segment)
        assert self.held.place(covered, read(self.table, covered))

    @rule(first=st.sampled_from(ALL_VALUES), end=st.sampled_from(ALL_VALUES))
    def load_a_range(self, first: tuple[str, str], end: tuple[str, str]) -> None:
        low, high = sorted((name_of(first), name_of(end)))
        if low < high:
            covered = NameRange(low, high)
            self.held.place(covered, read(self.table, covered))

    @rule(at=st.integers(0, 30))
    def begin_rebuild(self, at: int) -> None:
        self.rebuild = self.held.begin_rebuild(self.held.segments[at % len(self.held.segments)])

    @rule()
    def finish_rebuild(self) -> None:
        if self.rebuild is not None:
            self.rebuild.run()
            self.held.finish_rebuild(self.rebuild)
            assert not self.held.finish_rebuild(self.rebuild), "the same blocks twice"
        self.rebuild = None

    @rule()
    def travel(self) -> None:
        """As a cache dump does."""
        self.held = PartitionSet.from_parts(self.held.parts())
        self.rebuild = None

    @rule(at=st.integers(0, 3))
    def call(self, at: int) -> None:
        """Looks up its names now, and selects from the partitions later."""
        self.requested[at] = PreparedSelection(self.requested[at].selection)
        self.requested[at].names.find_rows(self.held.segments)

    @rule()
    def share(self) -> None:
        share(self.held, self.files)

    @invariant()
    def each_name_has_one_place(self) -> None:
        check_layout(self.held)

    @invariant()
    def what_is_answered_is_what_the_table_has(self) -> None:
        for one in (*SELECTIONS, *self.requested):
            selection = one.selection if isinstance(one, PreparedSelection) else one
            touched = narrowed(self.held, one)
            if not touched.complete or missing_of(touched, one):
                continue
            names = selected_names(self.table, selection)
            found = select_partitions(touched, one, -1).partitions
            assert found.names() == names, selection
            assert [encode_struct(one) for one in found.structs()] == [encode_struct(self.table[n]) for n in names]
        for values in ALL_VALUES:
            name = name_of(values)
            segment = self.held.segment_of(name)
            found_one = self.held.find(values)
            if found_one is not None:
                assert encode_struct(found_one) == encode_struct(self.table[name])
            elif segment.complete and values not in segment.missing:
                assert name not in self.table


TestLayouts = Layouts.TestCase
TestLayouts.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


@pytest.fixture
def of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_PARTITIONS", 3)


@pytest.mark.usefixtures("of_three")
def test_a_change_makes_the_block_of_its_segment_anew_and_no_other() -> None:
    held = PartitionSet(KEYS, ordinary(30), complete=True)
    blocks = [one.block for one in held.segments]
    assert len(blocks) == 10
    rebuild = held.begin_rebuild(held.segments[4])
    rebuild.run()
    assert held.finish_rebuild(rebuild)
    assert [at for at, one in enumerate(held.segments) if one.block is not blocks[at]] == [4]


@pytest.mark.usefixtures("of_three")
def test_a_segment_that_grows_is_cut_and_one_that_shrinks_is_joined() -> None:
    chance = random.Random(7)
    some = [*ordinary(40)]
    held = PartitionSet(KEYS, some[:3], complete=True)
    assert len(held.segments) == 1
    held.put(some)
    rebuild = held.begin_rebuild()
    rebuild.run()
    assert held.finish_rebuild(rebuild)
    assert [len(one) for one in held.segments] == [3] * 13 + [1]
    check_layout(held)
    gone = chance.sample(some, 36)
    for one in gone:
        held.mark_missing([tuple(one.values)])
        held.fill([tuple(one.values)], ())
    for _ in range(20):
        rebuild = held.begin_rebuild(min(held.segments, key=len))
        rebuild.run()
        assert held.finish_rebuild(rebuild)
    assert len(held) == 4
    assert 2 <= len(held.segments) <= 4
    check_layout(held)


@pytest.mark.usefixtures("of_three")
def test_the_segment_that_was_read_the_longest_ago_is_the_oldest() -> None:
    held = PartitionSet(KEYS, ordinary(30), complete=True)
    for at, one in enumerate(held.segments):
        one.last_read = float((at * 7) % 10 + 1)
    order = []
    while (oldest := held.oldest) is not None:
        order.append(oldest.last_read)
        held.evict(oldest)
        check_layout(held)
    assert order == sorted(order)
    assert (len(held), held.complete, len(held.segments)) == (0, False, 1)


def reach(held: PartitionSet, selection: PartitionSelection) -> int:
    return len(narrowed(held, selection).segments)


@pytest.mark.usefixtures("of_three")
def test_a_selection_touches_the_segments_of_its_names() -> None:
    held = PartitionSet(KEYS, (partition(one) for one in ALL_VALUES), complete=True)
    assert len(held.segments) == 6, "none begins at a name with a blank at its end"
    assert reach(held, AllPartitions()) == 6
    assert reach(held, ByValues(ALL_VALUES[0])) == 1
    assert reach(held, ByNames((name_of(ALL_VALUES[0]), name_of(ALL_VALUES[9]), "zz"))) == 3
    assert reach(held, ByPartialValues(("2024-01-02", ""))) <= 3
    assert reach(held, ByFilter('dt = "2024-01-02" and hr > 1')) <= 3
    assert reach(held, ByFilter("hr > 1")) == 6


def test_cuts_are_at_names_whose_order_databases_agree_on() -> None:
    names = ["a", "a ", "a\x01", "b ", "c", "d"]
    assert [may_begin_range(name) for name in names] == [True, False, False, False, True, True]
    assert split_positions(len(names), 1, names.__getitem__) == [0, 4, 5]
    assert split_positions(len(names), 2, names.__getitem__) == [0, 4]
    assert split_positions(100, 40, lambda at: f"{at:03d}") == [0, 40, 80]
    assert split_positions(88, 40, lambda at: f"{at:03d}") == [0, 40]
    assert split_positions(0, 40, lambda at: "") == [0]


@pytest.mark.parametrize("text", ["", "a", "dt=1/", "\ud7ff", "\U0010ffff", "a\U0010ffff"])
def test_the_range_of_a_beginning_has_what_begins_so(text: str) -> None:
    covered = beginning_with(text)
    for name in (text, text + "\0", text + "x", text + "\U0010ffff"):
        assert covered.holds(name)
    for name in (text[:-1] + "!", "zzz", text[:-1]):
        assert covered.holds(name) is (name.startswith(text) or (covered.end is None and name >= text))
    assert only("a").holds("a")
    assert not only("a").holds("a\x01")
    assert EVERY_NAME.holds("")
