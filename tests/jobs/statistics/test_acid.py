"""Which directories of a transactional table a snapshot sees: a history of writes and compactions, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from hms_cache.jobs.statistics.acid import AcidDirectory, Snapshot, state_of
from hms_cache.jobs.statistics.data_files import ORIGINAL_FILES, UNKNOWN_DELTA_FILES, FigureLister, Layout
from hms_cache.jobs.statistics.rows.acid_rows import _NAME, _OF_HIVE, _in_schema, _prefixed
from hms_cache.txn import LONG_MAX, ValidTxnList, ValidWriteIdList

EVERYTHING = Snapshot(ValidTxnList(100).to_text(), ValidWriteIdList.of("d.t", 100).to_text(), True)


def seen_by(write_ids: ValidWriteIdList, open_transactions: tuple[int, ...] = ()) -> Snapshot:
    minimum = min(open_transactions, default=LONG_MAX)
    return Snapshot(ValidTxnList(1000, open_transactions, 0, minimum).to_text(), write_ids.to_text(), True)


def test_names() -> None:
    assert AcidDirectory.parse("base_0000005_v0000012") == ("base_0000005_v0000012", "base", 0, 5, -1, 12)
    assert AcidDirectory.parse("delta_1_1_0000") == ("delta_1_1_0000", "delta", 1, 1, 0, 0)
    assert AcidDirectory.parse("delete_delta_2_7_v9") == ("delete_delta_2_7_v9", "delete_delta", 2, 7, -1, 9)
    for other in ("000000_0", "base_1_2", "delta_1", "xdelta_1_1", "delta_a_1", "day=1"):
        assert AcidDirectory.parse(other) is None


def test_what_hive_reads() -> None:
    """Cases of Hive's `TestAcidUtils`."""
    names = ["base_5", "base_10", "base_49", "base_100", "delta_29_29", "delta_25_30", "delta_45_47", "delta_101_110"]
    names += ["delta_41_52", "delta_50_105"]
    ids = ValidWriteIdList.of("t", 102)
    state = state_of(names, seen_by(ids))
    assert state.rows == ("base_100", "delta_50_105")
    below = state_of([*names, "delta_106_107"], seen_by(ValidWriteIdList.of("t", 60)))
    assert below.rows == ("base_49", "delta_41_52", "delta_50_105")
    # Statements of one transaction; then the result of a compaction.
    several = ["delta_1_1_0", "delta_1_1_1", "delete_delta_2_2_0", "delta_2_2_0"]
    assert state_of(several, EVERYTHING).rows == ("delta_1_1_0", "delta_1_1_1", "delta_2_2_0")
    assert state_of(several, EVERYTHING).deletes == ("delete_delta_2_2_0",)
    assert state_of([*several, "delta_1_2_v7", "delete_delta_1_2_v7"], EVERYTHING).rows == ("delta_1_2_v7",)
    unseen = seen_by(ValidWriteIdList.of("t", 100), (7,))
    assert state_of([*several, "delta_1_2_v7", "base_2_v7"], unseen).rows == state_of(several, EVERYTHING).rows
    # A base of INSERT OVERWRITE counts if its write id does, one of a compaction if nothing below it is open.
    assert not state_of(["base_5"], seen_by(ValidWriteIdList.of("t", 9, open_ids=[5]))).has_base
    assert state_of(["base_5"], seen_by(ValidWriteIdList.of("t", 9, open_ids=[3]))).has_base
    assert not state_of(["base_5_v2"], seen_by(ValidWriteIdList.of("t", 9, open_ids=[3]))).has_base
    aborted = ValidWriteIdList.of("t", 9, aborted_ids=[5])
    assert not state_of(["base_5"], seen_by(aborted)).has_base
    assert state_of(["base_5"], seen_by(aborted), compacted=["base_5"]).has_base
    # A delta of several transactions, one of which is open.
    assert state_of(["delta_1_4"], seen_by(ValidWriteIdList.of("t", 9, open_ids=[2]))).hidden == (2,)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], ValidWriteIdList, set[int]]:
    """Directories, a snapshot, and the write ids whose rows it sees: each write adds a row, or overwrites all."""
    count = draw(st.integers(1, 12))
    fates = draw(st.lists(st.sampled_from("ccccoa"), min_size=count, max_size=count))
    ids = ValidWriteIdList.of(
        "t",
        count,
        [number for number, fate in enumerate(fates, 1) if fate == "o"],
        [number for number, fate in enumerate(fates, 1) if fate == "a"],
    )
    names, rows = [], set()
    for number in range(1, count + 1):
        overwrites = draw(st.integers(0, 5)) == 0
        names.append(f"base_{number}" if overwrites else f"delta_{number}_{number}_0000")
        if ids.is_valid(number):
            rows = {number} if overwrites else rows | {number}
    # Compactions of all settled writes, from the last base on; a later one never ends before an earlier one.
    base, last = 0, 1
    for turn in range(draw(st.integers(0, 3))):
        last = draw(st.integers(last, count))
        within = range(base + 1, last + 1)
        if "o" in fates[:last] or any(f"base_{number}" in names for number in range(1, last + 1)):
            continue
        if draw(st.booleans()):
            names.append(f"base_{last}_v{5 + turn}")
            base = max(base, last)
        elif any(ids.is_valid(number) for number in within):
            names.append(f"delta_{base + 1}_{last}_v{5 + turn}")
    return names, ids, rows


@given(histories(), st.randoms())
def test_each_row_is_seen_once(history: tuple[list[str], ValidWriteIdList, set[int]], chance) -> None:  # type: ignore[no-untyped-def]
    names, ids, wanted = history
    chance.shuffle(names)
    state = state_of(names, seen_by(ids))
    found: list[int] = []
    for name in state.rows:
        one = AcidDirectory.parse(name)
        assert one is not None
        if one.kind == "base" and not one.visible_from:
            found.append(one.last)
            continue
        found += [number for number in range(max(one.first, 1), one.last + 1) if ids.is_valid(number)]
    assert sorted(found) == sorted(wanted)


def test_files_that_are_counted(tmp_path: Path) -> None:
    """Of the visible directories; a table that cannot be read gives the reason."""
    lister, here = FigureLister(), f"file:{tmp_path}"
    assert lister.seen(f"{here}/gone", EVERYTHING) == ((0, 0, 0, ""), None, Layout(()))
    for name in (
        "delta_1_1_0000/bucket_00000_0",
        "delta_9_9_0000/bucket_00000_0",
        "delete_delta_2_2_0000/bucket_00001",
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
        (tmp_path / name).with_name("_orc_acid_version").write_text("2")
    snapshot = seen_by(ValidWriteIdList.of("d.t", 9, open_ids=[9]))
    figures, problem, layout = lister.seen(here, snapshot)
    assert figures is not None and (figures.files, problem) == (2, None)
    assert layout == Layout((f"{here}/delta_1_1_0000",), (f"{here}/delete_delta_2_2_0000",))
    # The transaction ends: other figures, without a change of files.
    later, _, _ = lister.seen(here, seen_by(ValidWriteIdList.of("d.t", 9)))
    assert later is not None and later.files == 3 and later.digest != figures.digest
    # Rows of a delta of several transactions become visible.
    (tmp_path / "delta_10_12").mkdir()
    (tmp_path / "delta_10_12" / "bucket_00000").write_text("")
    before, _, partly = lister.seen(here, seen_by(ValidWriteIdList.of("d.t", 12, open_ids=[11])))
    after, _, _ = lister.seen(here, seen_by(ValidWriteIdList.of("d.t", 12)))
    assert partly is not None and partly.hidden == (11,)
    assert before is not None and after is not None and before[:3] == after[:3] and before.digest != after.digest
    (tmp_path / "delta_1_1_0000" / "bucket_00000_0_flush_length").write_text("")
    assert lister.seen(here, snapshot) == (None, UNKNOWN_DELTA_FILES, None)
    assert lister.seen(here, snapshot._replace(is_full=False))[1] is None
    (tmp_path / "000000_0").write_text("")
    assert lister.seen(here, snapshot) == (None, ORIGINAL_FILES, None)


def test_columns_of_a_row_are_told_by_their_position() -> None:
    """As in Hive, also after a column was renamed; what an older file lacks is null, what does not fit is a failure."""
    kinds = StructType(
        [StructField("id", IntegerType()), StructField("name", StringType()), StructField("n", LongType())]
    )
    fields = [StructField(_prefixed(field.name), field.dataType) for field in kinds]
    schema: Any = to_arrow_schema(StructType([*_OF_HIVE.fields, *fields]))

    def read(rows: pa.Array, positions: list[int]) -> list[list[Any]]:
        count = len(rows)
        of_hive = {name: pa.array([0] * count) for name in ("operation", *_NAME, "currentTransaction")}
        found = _in_schema(pa.table({**of_hive, "row": rows}), 7, kinds.names, positions, schema)
        return [found[_prefixed(name)].to_pylist() for name in kinds.names]

    swapped = pa.array([{"name": 1, "id": "x"}, {"name": 2, "id": "y"}])
    assert read(swapped, [0, 1, 2]) == [[1, 2], ["x", "y"], [None, None]]
    # A column of a complex type is between them, and is not read.
    between = pa.array([{"_col0": 1, "_col1": [5], "_col2": "x", "_col3": 9}])
    assert read(between, [0, 2, 3]) == [[1], ["x"], [9]]
    with pytest.raises(pa.ArrowInvalid):
        read(pa.array([{"id": 2**40, "name": "x", "n": 1}]), [0, 1, 2])
