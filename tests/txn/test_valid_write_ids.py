"""`ValidWriteIdList`: text forms, order, cover test and the rules that follow the event log."""

import csv
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.call_context import call_context
from hms_cache.txn import LONG_MAX, IdListFormatError, RangeAnswer, ValidWriteIdList, WriteIdGapTooLargeError
from hms_cache.txn.valid_write_ids import parsed_write_ids

M = str(LONG_MAX)
VECTORS = list(csv.DictReader((Path(__file__).parent / "write_id_vectors.tsv").open(), delimiter="\t"))
FRESHER_STALER = {"EQUIVALENT": 0, "FRESHER": 1, "STALER": -1}


def parse(text: str) -> ValidWriteIdList:
    return ValidWriteIdList.parse(text.replace("M", M))


def valid_set(write_ids: ValidWriteIdList) -> set[int]:
    return {write_id for write_id in range(1, write_ids.high_watermark + 1) if write_id not in write_ids.invalid}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["number"])
def test_vectors_of_hives_classes(vector: dict[str, str]) -> None:
    first, second = ValidWriteIdList.parse(vector["first"]), ValidWriteIdList.parse(vector["second"])
    if vector["compare"] == "error":
        with pytest.raises(ValueError, match="without a table name"):
            first.compare(second)
        assert first.is_no_list
        assert not first.covers(second)
        return
    if vector["compare"].startswith("n/a"):
        assert first.compare(second) == int(vector["compare"].removeprefix("n/a (").removesuffix(")"))
        assert not first.covers(second)
    else:
        assert first.compare(second) == FRESHER_STALER[vector["compare"]]
        assert second.compare(first) == -FRESHER_STALER[vector["compare"]]
        assert first.covers(second) is (vector["first_covers_second"] == "true")
    assert (first.compare(second) == 0) is (vector["equivalent"] == "true")


def test_all_vectors_are_there() -> None:
    assert [int(vector["number"]) for vector in VECTORS] == list(range(1, 59))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("t1:1:M::", "t1:1:M::"),
        ("d.t:11:4:4,6,10:2,8", "d.t:11:4:4,6,10:2,8"),
        ("d.t:5:M", "d.t:5:M::"),
        ("d.t:5:M:", "d.t:5:M::"),
        ("d.t:5:3:3", "d.t:5:3:3:"),
        ("d.t:5:3:3:", "d.t:5:3:3:"),
        ("d.t:5:3:3::", "d.t:5:3:3:"),
        ("d.t:5:3:3:4:extra", "d.t:5:3:3:4"),
        ("d.t:5:3:4,3:5,1", "d.t:5:3:3,4:1,5"),
        ("d.t:5:3:3,3:", "d.t:5:3:3,3:"),
        ("d.t:5:3:9:", "d.t:5:3:9:"),
        ("d.t:5:3:3,:", "d.t:5:3:3:"),
        ("", "null:M:M::"),
        ("null:5:M::", "null:5:M::"),
        ("NULL:5:M::", "null:5:M::"),
        (":5:3:3:", ":5:3:3:"),
        ("cat.d.t:5:3:3:", "cat.d.t:5:3:3:"),
        ("d.t:-1:3::", "d.t:-1:3::"),
        ("D.T:5:M::", "D.T:5:M::"),
        ("d.t:5:M::3", "d.t:5:M::3"),
        ("d.t:5:3::3", "d.t:5:3::3"),
        ("d.t:9:2:2-7:8", "d.t:9:2:2,3,4,5,6,7:8"),
        ("d.t:9:2:5-3,2:", "d.t:9:2:2:"),
    ],
)
def test_parse_and_print(text: str, printed: str) -> None:
    write_ids = parse(text)
    assert write_ids.to_text() == printed.replace("M", M)
    assert ValidWriteIdList.parse(write_ids.to_text()) == write_ids or write_ids.table_name is None


@pytest.mark.parametrize(
    "text",
    [
        *("d.t:5:3:,3:", "d.t:5:3:3, 4:", "d.t:5::3:", "d.t:x:3::", "d.t:5", "d.t", "d.t:5:3:3,,4:", "d.t:5:3:1_0:"),
        *("d.t:9223372036854775808:3::", "d.t:5:3:1-9223372036854775807:", "d.t:5:3:-3:x"),
    ],
)
def test_text_that_hive_refuses(text: str) -> None:
    with pytest.raises(IdListFormatError):
        ValidWriteIdList.parse(text)


def test_ranges_are_printed_only_when_asked_for() -> None:
    write_ids = parse("d.t:20:1:1-5,7-10:11,12,13,14,15")
    assert write_ids.to_text() == "d.t:20:1:1,2,3,4,5,7,8,9,10:11,12,13,14,15"
    assert write_ids.to_text(ranges=True) == "d.t:20:1:1-5,7,8,9,10:11-15"
    assert parse(write_ids.to_text(ranges=True)) == write_ids


def test_empty_text_and_none_are_no_list() -> None:
    for text in ("", None, "null:5:9::", f"d.t:{M}:{M}::"):
        assert ValidWriteIdList.parse(text).is_no_list
    assert not parse("d.t:5:M::").is_no_list


def test_questions_about_ids() -> None:
    write_ids = parse("d.t:5:3:3:4")
    assert [write_ids.is_valid(write_id) for write_id in (3, 4, 5, 6, 0)] == [False, False, True, False, True]
    assert [write_ids.is_aborted(write_id) for write_id in (3, 4, 5)] == [False, True, False]
    assert write_ids.min_open_write_id == 3
    assert parse("d.t:5:M::3").min_open_write_id is None
    assert (write_ids.open_ids, write_ids.aborted_ids) == ((3,), (4,))


@pytest.mark.parametrize(
    ("text", "first", "last", "answer"),
    [
        ("d.t:5:3:3:4", 1, 2, RangeAnswer.ALL),
        ("d.t:5:3:3:4", 3, 4, RangeAnswer.NONE),
        ("d.t:5:3:3:4", 1, 3, RangeAnswer.SOME),
        ("d.t:5:3:3:4", 6, 9, RangeAnswer.NONE),
        ("d.t:5:3:3:4", 5, 6, RangeAnswer.SOME),
        ("d.t:5:M::", 4, 6, RangeAnswer.SOME),
    ],
)
def test_range_valid(text: str, first: int, last: int, answer: RangeAnswer) -> None:
    assert parse(text).is_range_valid(first, last) is answer


def test_valid_base_needs_everything_below_it_closed() -> None:
    write_ids = parse("d.t:9:4:4:2")
    assert [write_ids.is_valid_base(write_id) for write_id in (3, 4, 9)] == [True, False, False]
    assert [parse("d.t:9:M::").is_valid_base(write_id) for write_id in (9, 10)] == [True, False]


def all_lists(highest: int) -> list[ValidWriteIdList]:
    """Each list with a high-water mark of at most `highest`; ids are open or, for odd ids, aborted."""
    lists = []
    for mark in range(highest + 1):
        for size in range(mark + 1):
            for invalid in itertools.combinations(range(1, mark + 1), size):
                open_ids = [write_id for write_id in invalid if write_id % 2 == 0]
                lists.append(ValidWriteIdList.of("d.t", mark, open_ids, set(invalid) - set(open_ids)))
    return lists


def test_order_and_cover_equal_their_definitions_for_every_small_list() -> None:
    lists = [(write_ids, valid_set(write_ids)) for write_ids in all_lists(6)]
    assert len(lists) == 127
    for (first, first_valid), (second, second_valid) in itertools.product(lists, lists):
        different = first_valid ^ second_valid
        expected = 0 if not different else 1 if min(different) in first_valid else -1
        assert first.compare(second) == expected, (first, second)
        assert first.covers(second) is (second_valid <= first_valid), (first, second)


def test_raising_equals_its_definition_for_every_small_list() -> None:
    for write_ids in all_lists(6):
        valid = valid_set(write_ids)
        for write_id in range(1, 9):
            allocated = write_ids.after_allocate(write_id)
            assert valid_set(allocated) == valid - {write_id}
            assert allocated.high_watermark == max(write_ids.high_watermark, write_id)
            committed = write_ids.after_commit(write_id)
            assert valid_set(committed) == valid | {write_id}
            assert committed.high_watermark == max(write_ids.high_watermark, write_id)
            for raised in (allocated, committed):
                assert list(raised.invalid) == sorted(set(raised.invalid))
                assert raised.min_open == min(raised.open_ids, default=LONG_MAX)


def test_raising_examples() -> None:
    tag = parse("d.t:11:7:7,8:")
    assert str(tag.after_commit(13)) == "d.t:13:7:7,8,12:"
    assert str(tag.after_allocate(13)) == "d.t:13:7:7,8,12,13:"
    assert tag.after_allocate(13).compare(tag) == 0
    assert str(tag.after_allocate(12).after_commit(8)) == "d.t:12:7:7,12:"
    assert str(parse("d.t:11:8:8:7").after_commit(8)) == f"d.t:11:{M}::7"


def test_removing_an_id_keeps_the_marks_of_the_others() -> None:
    tag = parse("d.t:10:4:4,6:5")
    assert str(tag.after_commit(5)) == "d.t:10:4:4,6:"
    assert str(tag.after_commit(4)) == "d.t:10:6:6:5"


def test_a_gap_too_wide_to_list_is_an_error() -> None:
    with pytest.raises(WriteIdGapTooLargeError):
        parse("d.t:1:M::").after_commit(10_000_000)


def test_cover_of_lists_far_apart_is_quick() -> None:
    assert not parse("d.t:5:M::").covers(parse(f"d.t:{LONG_MAX - 1}:M::"))
    assert parse(f"d.t:{LONG_MAX - 1}:M::").covers(parse("d.t:5:3:3:"))


def test_a_short_list_is_compared_with_a_long_one_id_by_id() -> None:
    tag = parse("d.t:1010:3:3,900:5")
    assert tag.covers(parse("d.t:1010:1:1-1000:"))
    assert not tag.covers(parse("d.t:1010:1:1-899,901-1010:"))
    assert parse("d.t:5:3:3:").covers(parse("d.t:1010:1:1-1010:"))
    assert not parse("d.t:5:3:3:").covers(parse("d.t:1010:1:1-9,11-1010:"))


def test_a_list_far_above_a_tag_is_not_covered_by_it() -> None:
    """All ids between may be open: this is not checked, since it only costs a read."""
    tag = parse("d.t:5:M::")
    assert tag.covers(parse("d.t:10005:6:6-10005:"))
    assert not tag.covers(parse("d.t:10006:6:6-10006:"))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that were read, unchanged."""
    seen: list[str] = []
    parse_text = ValidWriteIdList.parse

    def counted(text: str) -> ValidWriteIdList:
        seen.append(text)
        return parse_text(text)

    monkeypatch.setattr(ValidWriteIdList, "parse", counted)
    return seen


@pytest.mark.parametrize(
    "text",
    [
        "d.t:200000:1:1-150000:",
        "d.t:200000:1::1-150000",
        "d.t:200000:1:" + ",".join(f"{first}-{first + 4_999}" for first in range(1, 150_000, 5_000)),
        "d.t:9:1:1," + ",".join(["2"] * 150_000),
    ],
)
def test_a_long_list_is_read_once_for_a_call_and_not_kept_beyond(text: str, parsed: list[str]) -> None:
    """A request may check this for each of thousands of partitions."""
    call_context.begin(1)
    try:
        for _ in range(5):
            assert len(parsed_write_ids(text).invalid) == 150_000 or text.startswith("d.t:9:")
        in_the_call = len(parsed)
    finally:
        call_context.end()
    assert in_the_call <= 2
    assert call_context.long_list is None
    parsed_write_ids(text)
    assert len(parsed) == in_the_call + 1


def test_thrift_form_round_trip() -> None:
    write_ids = parse("d.t:30:4:4,6,10:2,8,11,12,13,14,15")
    answer = write_ids.to_thrift()
    assert answer.invalidWriteIds == [2, 4, 6, 8, 10, 11, 12, 13, 14, 15]
    assert answer.abortedBits == bytes([0b11101001, 0b11])
    assert answer.minOpenWriteId == 4
    assert ValidWriteIdList.from_thrift(answer) == write_ids
    assert parse("d.t:5:M::3").to_thrift().minOpenWriteId is None


lists_strategy = st.integers(0, 60).flatmap(
    lambda mark: st.builds(
        lambda open_ids, aborted_ids: ValidWriteIdList.of("db.tbl", mark, open_ids - aborted_ids, aborted_ids),
        st.frozensets(st.integers(1, max(mark, 1)).filter(lambda write_id: write_id <= mark))
        if mark
        else st.just(frozenset()),
        st.frozensets(st.integers(1, max(mark, 1))) if mark else st.just(frozenset()),
    )
)


@given(lists_strategy)
def test_any_list_survives_both_texts_and_the_wire(write_ids: ValidWriteIdList) -> None:
    assert ValidWriteIdList.parse(write_ids.to_text()) == write_ids
    assert ValidWriteIdList.parse(write_ids.to_text(ranges=True)) == write_ids
    assert ValidWriteIdList.from_thrift(write_ids.to_thrift()) == write_ids


@given(lists_strategy, lists_strategy)
def test_order_and_cover_equal_their_definitions(first: ValidWriteIdList, second: ValidWriteIdList) -> None:
    different = valid_set(first) ^ valid_set(second)
    expected = 0 if not different else 1 if min(different) in valid_set(first) else -1
    assert first.compare(second) == expected == -second.compare(first)
    assert first.covers(second) is (valid_set(second) <= valid_set(first))


@given(lists_strategy, st.lists(st.tuples(st.sampled_from(["allocate", "commit"]), st.integers(1, 80))))
def test_any_history_of_raises_keeps_the_valid_set(write_ids: ValidWriteIdList, history: list[tuple[str, int]]) -> None:
    valid = valid_set(write_ids)
    for action, write_id in history:
        write_ids = getattr(write_ids, f"after_{action}")(write_id)
        valid = valid | {write_id} if action == "commit" else valid - {write_id}
        assert valid_set(write_ids) == valid
        assert write_ids.min_open == min(write_ids.open_ids, default=LONG_MAX)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        write_ids = ValidWriteIdList.parse(text)
    except IdListFormatError:
        return
    assert ValidWriteIdList.parse(write_ids.to_text()).invalid == write_ids.invalid
