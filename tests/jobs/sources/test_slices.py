"""Partitions combined into what one task reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName, packed
from hms_cache.jobs.sources.options import SliceSize

_RANGES = st.lists(
    st.builds(
        PartitionRange,
        table=st.builds(TableName, st.just("hive"), st.just("d"), st.text("abc", min_size=1, max_size=3)),
        ids=st.none() | st.just((1, 9)),
        count=st.integers(1, 120),
    ),
    max_size=40,
)


@given(_RANGES, st.integers(1, 100), st.integers(1, 8))
def test_each_range_is_in_one_slice_and_none_is_too_large(
    ranges: list[PartitionRange], partitions: int, tables: int
) -> None:
    slices = list(packed(ranges, SliceSize(tables, partitions)))
    assert sorted((one for part in slices for one in part), key=str) == sorted(ranges, key=str)
    for part in slices:
        assert len(part) == 1 or all(one.is_whole for one in part)
        assert len(part) == 1 or (len(part) <= tables and sum(one.count for one in part) <= partitions)


def test_tables_of_middling_size_are_read_in_parallel() -> None:
    ranges = [PartitionRange(TableName("hive", "d", f"t{number}"), count=10_000) for number in range(10)]
    assert [len(part) for part in packed(ranges, SliceSize(500, 20_000))] == [2, 2, 2, 2, 2]
    small = [PartitionRange(TableName("hive", "d", f"t{number}"), count=3) for number in range(10)]
    assert [len(part) for part in packed(small, SliceSize(4, 20_000))] == [4, 4, 2]
