"""`ValidTxnList` and `ValidTxnWriteIdList`."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.thrift_gen.hive_metastore.ttypes import GetOpenTxnsResponse
from hms_cache.txn import LONG_MAX, IdListFormatError, ValidTxnList, ValidTxnWriteIdList, ValidWriteIdList

M = str(LONG_MAX)


def parse(text: str) -> ValidTxnList:
    return ValidTxnList.parse(text.replace("M", M))


@pytest.mark.parametrize(
    ("text", "with_ranges", "without"),
    [
        ("20:1:1,2,3,4,5,6:", "20:1:1-6:", "20:1:1,2,3,4,5,6:"),
        ("11:4:4,5,6,7,8,10:2,9", "11:4:4-8,10:2,9", "11:4:4,5,6,7,8,10:2,9"),
        ("11:4:4,5,6,7:", "11:4:4,5,6,7:", "11:4:4,5,6,7:"),
        ("20:M::1-10", "20:M::1-10", "20:M::1,2,3,4,5,6,7,8,9,10"),
        ("20:3:5-3,4:", "20:3:4:", "20:3:4:"),
        ("20:3:5,3:", "20:3:5,3:", "20:3:5,3:"),
        ("5:M", "5:M::", "5:M::"),
        ("5:M:", "5:M::", "5:M::"),
        ("", "M:M::", "M:M::"),
        ("9:1:1,3:1", "9:1:1,3:1", "9:1:1,3:1"),
    ],
)
def test_parse_and_print(text: str, with_ranges: str, without: str) -> None:
    txn_list = parse(text)
    assert txn_list.to_text(ranges=True) == with_ranges.replace("M", M)
    assert txn_list.to_text() == str(txn_list) == without.replace("M", M)


@pytest.mark.parametrize(
    "text", ["5", "x:1::", "5:x::", "5:1:a:", "5:1:,3:", "5:1:1-2-3:", "5:1:1-9223372036854775807:"]
)
def test_text_that_cannot_be_read(text: str) -> None:
    with pytest.raises(IdListFormatError):
        ValidTxnList.parse(text)


def test_validity() -> None:
    txn_list = parse("20:4:8,4:6")
    assert [txn_list.is_valid(txn_id) for txn_id in (1, 4, 5, 6, 8, 20, 21)] == [
        True,
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    assert [txn_list.is_aborted(txn_id) for txn_id in (4, 6)] == [False, True]
    assert list(txn_list.invalid_ids) == [4, 6, 8]


def test_removing_an_exception_keeps_the_marks_of_the_others() -> None:
    assert str(parse("10:4:4,6:5").without(5)) == "10:4:4,6:"
    assert str(parse("10:4:4,6:5").without(4)) == "10:6:6:5"


def test_snapshot_of_a_transaction_leaves_itself_out() -> None:
    response = GetOpenTxnsResponse(txn_high_water_mark=12, open_txns=[3, 5, 7, 9, 11], abortedBits=bytes([0b00010]))
    assert str(ValidTxnList.from_open_txns(response)) == "12:3:3,7,9,11:5"
    assert str(ValidTxnList.from_open_txns(response, 9)) == "9:3:3,7:5"
    assert str(ValidTxnList.from_open_txns(response, 3)) == f"3:{M}::"


def test_lists_of_a_transaction() -> None:
    text = f"5$d.t:3:{M}::$d.u:9:4:4:$d.t:4:{M}::"
    lists = ValidTxnWriteIdList.parse(text)
    assert lists.txn_id == 5
    assert set(lists.lists) == {"d.t", "d.u"}
    assert lists.for_table("D.T") == ValidWriteIdList.parse(f"d.t:4:{M}::")
    assert lists.for_table("d.x") is None
    assert ValidTxnWriteIdList.parse(lists.to_text()) == lists
    assert ValidTxnWriteIdList.parse("5").lists == ValidTxnWriteIdList.parse("5$").lists == {}
    assert ValidTxnWriteIdList.parse("").txn_id is None
    with pytest.raises(ValueError, match="no text"):
        ValidTxnWriteIdList.parse("").to_text()
    for wrong in ("x$", "$", f"x$d.t:3:{M}::", "5$d.t:3"):
        with pytest.raises(IdListFormatError):
            ValidTxnWriteIdList.parse(wrong)


MANY = 200_000


@pytest.mark.parametrize(
    "ids", [f"1-{MANY}:", f":1-{MANY}", f"{MANY}-{2 * MANY},1-{MANY - 2}:", ",".join(map(str, range(MANY)))]
)
def test_a_list_of_many_takes_little_memory(ids: str) -> None:
    """A client names a million transactions in a few characters, in as many calls as run at a time."""
    tracemalloc.start()
    try:
        txn_list = parse(f"{3 * MANY}:1:{ids}")
        assert not txn_list.is_valid(MANY - 2)
        assert txn_list.is_aborted(5) is ids.startswith(":")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 50 * MANY


def test_the_lists_of_a_transaction_have_one_limit() -> None:
    """Each may name as many ids by a range of a few characters: thousands of them took all memory."""
    text = "5" + "".join(f"$d.t{number}:9999:1:1-400:" for number in range(3))
    assert len(ValidTxnWriteIdList.parse(text, 1_200).lists) == 3
    for most in (400, 1_199):
        with pytest.raises(IdListFormatError, match="ids in one list"):
            ValidTxnWriteIdList.parse(text, most)
    with pytest.raises(IdListFormatError):
        ValidTxnWriteIdList.parse("5" + "$d.t:9:1:1:" * 3, 2)


def test_names_are_found_without_going_through_all_of_them() -> None:
    looked_at = [0]

    class Name(str):
        __slots__ = ()

        def lower(self) -> str:
            looked_at[0] += 1
            return super().lower()

    lists = {Name(f"D.T{number}"): ValidWriteIdList.parse(f"D.T{number}:1:{M}::") for number in range(100)}
    found = ValidTxnWriteIdList(5, lists)
    assert all(found.for_table(f"d.t{number}") is lists[Name(f"D.T{number}")] for number in range(100))
    assert looked_at == [100]


@given(st.integers(0, 500), st.dictionaries(st.integers(1, 500), st.booleans()))
def test_any_list_survives_both_texts(mark: int, exceptions: dict[int, bool]) -> None:
    ids = sorted(exceptions)
    open_ids = [txn_id for txn_id in ids if not exceptions[txn_id]]
    aborted_ids = [txn_id for txn_id in ids if exceptions[txn_id]]
    text = f"{mark}:{min(open_ids, default=LONG_MAX)}:{','.join(map(str, open_ids))}:{','.join(map(str, aborted_ids))}"
    txn_list = ValidTxnList.parse(text)
    assert txn_list.to_text() == text
    assert ValidTxnList.parse(txn_list.to_text(ranges=True)) == txn_list
    for txn_id in range(1, 520, 7):
        assert txn_list.is_valid(txn_id) is (txn_id <= mark and txn_id not in exceptions)
        assert txn_list.is_aborted(txn_id) is exceptions.get(txn_id, False)
