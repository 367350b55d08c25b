"""After any operations, a set of partitions holds the same bytes as a dictionary of them would."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from hms_cache.cache.memory_files import MemoryFiles
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.partitions.block_builder import BlockBuilder
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.rebuild import Rebuild
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.cache.partitions.selection import SelectionError, select_partitions
from hms_cache.expressions import KeyColumns, bind, evaluate, parse_filter
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues, ByValues
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition
from hms_cache.wire import encode_struct
from hms_cache.wire.partition_parts import decode_partition, encode_partition
from hms_cache.wire.splicing import list_header, text_header
from tests.cache.blocks.partitions import KEYS, all_values, name_of, ordinary, page, partition, partitions
from tests.cache.blocks.sharing import share

FILTERS = ('dt = "2024-01-01"', "hr > 1", 'dt != "2024-01-02" and hr <= 10', 'dt like "%a%" or hr = 2', "")


def by_name(held: Sequence[Partition]) -> dict[str, Partition]:
    return {name_of(one.values): one for one in held}


def elements(selected: SelectedPartitions) -> bytes:
    return b"".join(selected.encoded_structs().binary_pieces())


def expected_list(chosen: Sequence[Partition]) -> bytes:
    return list_header(12, len(chosen), compact=False) + b"".join(encode_struct(one) for one in chosen)


def check_selection(selected: SelectedPartitions, model: dict[str, Partition], names: Sequence[str]) -> None:
    """Exactly the partitions of these names are selected, in each form of an answer."""
    assert selected.names() == list(names)
    assert elements(selected) == expected_list([model[name] for name in names])
    encoded = list_header(11, len(names), compact=False) + b"".join(
        text_header(len(n.encode()), compact=False) + n.encode() for n in names
    )
    assert b"".join(selected.encoded_names().binary_pieces()) == encoded
    assert [encode_struct(one) for one in selected.structs()] == [encode_struct(model[name]) for name in names]
    assert selected.values() == [model[name].values for name in names]
    firsts = list(dict.fromkeys((model[name].values[1],) for name in names))
    assert selected.distinct_values([1]) == firsts


def check(held: PartitionSet, model: dict[str, Partition]) -> None:
    names = sorted(model)
    assert len(held) == len(model)
    assert held.names() == names
    check_selection(held.all(), model, names)
    for name in names:
        found = held.find_name(name)
        assert found is not None
        assert encode_struct(found) == encode_struct(model[name])
    for count in (1, 2):
        check_selection(select_partitions(held, AllPartitions(), count).partitions, model, names[:count])
    wanted = [*names[::2], "dt=nowhere/hr=1", *names[:1]]
    check_selection(select_partitions(held, ByNames(tuple(wanted)), -1).partitions, model, names[::2])
    for text in FILTERS:
        rows = [model[name].values for name in names]
        mask = (
            evaluate(bind(parse_filter(text), KEYS), KeyColumns.from_values(KEYS, rows)) if text else [True] * len(rows)
        )
        chosen = [name for name, hit in zip(names, mask, strict=True) if hit]
        check_selection(select_partitions(held, ByFilter(text), -1).partitions, model, chosen)
    for value in ("2", DEFAULT_PARTITION_VALUE):
        chosen = [name for name in names if name_of(["x", model[name].values[1]]) == name_of(["x", value])]
        check_selection(select_partitions(held, ByPartialValues(("", value)), -1).partitions, model, chosen)


@settings(max_examples=60, deadline=None)
@given(held=st.lists(partitions(), max_size=12))
def test_a_block_holds_any_partitions(held: list[Partition]) -> None:
    model = by_name(held)
    whole = PartitionSet(KEYS, held, complete=True)
    check(whole, model)
    travelled = pickle.loads(pickle.dumps(whole))  # as in the process that reads for the prewarm
    check(travelled, model)
    assert travelled.memory_bytes() == whole.memory_bytes()


class Changes(RuleBasedStateMachine):
    """Changes in any order, with new blocks built in between."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, Partition] = {}
        self.missing: set[tuple[str, ...]] = set()
        self.held = PartitionSet(KEYS, (), complete=True)
        self.rebuild: Rebuild | None = None
        self.earlier: list[tuple[SelectedPartitions, bytes]] = []
        self.smallest_bytes = shared_blocks.SMALLEST_BYTES
        shared_blocks.SMALLEST_BYTES = 0  # type: ignore[misc]
        self.directory = TemporaryDirectory()
        self.workers = [MemoryFiles(Path(self.directory.name), 100) for _ in range(2)]

    def teardown(self) -> None:
        shared_blocks.SMALLEST_BYTES = self.smallest_bytes  # type: ignore[misc]
        self.directory.cleanup()

    @rule(target=known, values=all_values)
    def know(self, values: tuple[str, str]) -> tuple[str, str]:
        return values

    @rule(held=st.lists(partitions(), max_size=5))
    def start_anew(self, held: list[Partition]) -> None:
        self.model = by_name(held)
        self.missing = set()
        self.held = PartitionSet(KEYS, held, complete=True)
        self.rebuild = None

    @rule(values=known, data=st.data())
    def put(self, values: tuple[str, str], data: st.DataObject) -> None:
        one = data.draw(partitions(values=values))
        self.held.put([one])
        self.model[name_of(values)] = one
        self.missing.discard(values)

    @rule(chosen=st.lists(known, min_size=1, max_size=3))
    def lose(self, chosen: list[tuple[str, str]]) -> None:
        self.held.mark_missing(chosen)
        for values in chosen:
            self.model.pop(name_of(values), None)
            self.missing.add(values)

    @rule(chosen=st.lists(known, min_size=1, max_size=3, unique=True), data=st.data())
    def find_again(self, chosen: list[tuple[str, str]], data: st.DataObject) -> None:
        found = [data.draw(partitions(values=values)) for values in chosen if data.draw(st.booleans())]
        self.held.fill(chosen, found)
        self.missing.difference_update(chosen)
        self.model.update(by_name(found))

    @rule()
    def begin_rebuild(self) -> None:
        self.rebuild = self.held.begin_rebuild()

    @rule()
    def finish_rebuild(self) -> None:
        if self.rebuild is not None:
            self.rebuild.run()
            self.held.finish_rebuild(self.rebuild)
            assert not self.held.finish_rebuild(self.rebuild), "the same block twice"
        self.rebuild = None

    @rule(by=st.integers(0, 1))
    def share(self, by: int) -> None:
        share(self.held, self.workers[by])

    @rule()
    def remember_an_answer(self) -> None:
        selected = self.held.all()
        self.earlier.append((selected, elements(selected)))

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        check(self.held, self.model)
        assert self.held.missing == self.missing
        assert self.held.whole == (not self.missing)

    @invariant()
    def answers_stay_as_they_were(self) -> None:
        for selected, expected in self.earlier:
            assert elements(selected) == expected


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_an_event_of_other_keys_empties_the_set() -> None:
    held = PartitionSet(KEYS, ordinary(5), complete=True)
    held.begin_rebuild()
    held.mark_missing([("2024-01-01",)])
    assert (len(held), held.complete, held.missing) == (0, False, set())
    assert held.all().names() == []


def test_rows_of_the_store_make_the_same_block_as_structs() -> None:
    pages = [page(first, 50) for first in (150, 0, 50, 100)]
    from_rows = PartitionSet.from_pages(KEYS, pages, complete=True)
    check(from_rows, by_name([*ordinary(200)]))
    assert from_rows.whole


def test_rows_without_descriptor_and_with_empty_values() -> None:
    rows = page(0, 4)
    rows.template_numbers[1] = rows.locations[1] = None
    rows.locations[2] = None
    rows.names[3] = "dt=__HIVE_DEFAULT_PARTITION__/hr=3"
    rows.empty_values = {3: {0: ""}}
    held = PartitionSet.from_pages(KEYS, [rows], complete=True)
    model = [*ordinary(4)]
    model[1].sd = None
    model[2].sd.location = None
    model[3].values = ["", "3"]
    check(held, by_name(model))


def test_ordinary_partitions_share_one_template_and_little_is_their_own() -> None:
    held = PartitionSet.from_pages(KEYS, [page(0, 5_000)], complete=True)
    wire = len(encode_partition(partition(("2024-01-01", "1"))))
    assert len(held.segments[0].block.parts.templates) == 1
    assert held.memory_bytes() / 5_000 < min(150, 0.15 * wire)


def test_changes_outgrow_a_block_and_a_new_one_has_as_few_templates() -> None:
    held = PartitionSet(KEYS, ordinary(1_000), complete=True)
    changed = [partition(one.values, number=99) for one in [*ordinary(1_000)][::5]]
    assert not held.is_outgrown
    held.put(changed)
    assert held.is_outgrown
    rebuild = held.begin_rebuild()
    assert not held.is_outgrown, "one at a time"
    rebuild.run()
    assert held.finish_rebuild(rebuild)
    assert not held.is_outgrown
    assert len(held.segments[0].block.parts.templates) == 1
    check(held, {**by_name([*ordinary(1_000)]), **by_name(changed)})


def test_partitions_of_too_many_kinds_are_kept_whole(monkeypatch: Any) -> None:
    monkeypatch.setattr("hms_cache.cache.partitions.block_builder.MAX_KINDS", 3)
    held = []
    for number in range(8):
        one = partition((f"d{number}", "1"))
        one.sd.cols = one.sd.cols[:number]
        held.append(one)
    made = PartitionSet(KEYS, held, complete=True)
    check(made, by_name(held))
    assert len(made.segments[0].block.parts.templates) <= 4


def test_values_of_another_number_are_refused() -> None:
    held = PartitionSet(KEYS, ordinary(3), complete=True)
    for selection in (ByValues(("1",)), ByPartialValues(("1", "2", "3"))):
        try:
            select_partitions(held, selection, -1)
        except SelectionError:
            continue
        raise AssertionError(selection)


@settings(max_examples=100, deadline=None)
@given(one=partitions())
def test_what_is_decoded_encodes_to_the_same_bytes(one: Partition) -> None:
    assert encode_partition(decode_partition(encode_partition(one))) == encode_partition(one)


def test_an_empty_builder_makes_an_empty_block() -> None:
    block = BlockBuilder(KEYS).build()
    assert (len(block), block.find("dt=1/hr=2"), block.names(block.every_row)) == (0, None, [])


def test_names_with_equal_hashes_are_told_apart(monkeypatch: Any) -> None:
    for module in ("block", "block_builder"):
        monkeypatch.setattr(f"hms_cache.cache.partitions.{module}.name_hash", lambda name: len(name) % 2)
    held = PartitionSet(KEYS, ordinary(60), complete=True)
    check(held, by_name([*ordinary(60)]))
    assert held.find_name("dt=1900-01-01/hr=99") is None
