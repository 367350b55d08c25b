"""Sketches of distinct values compared with those that Hive's own classes wrote and counted.

`hive_sketches.tsv` was printed by `HyperLogLog` and `FMSketch` of Hive 4.0.1 over random longs: kind, size (or
precision, or the two indexes merged), estimate, serialized form in Base64.
"""

from __future__ import annotations

import base64
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.metadata.statistics_sketches import (
    FmSketch,
    HyperLogLog,
    SketchError,
    empty_like,
    merged_at_once,
    read_sketch,
)

ROWS = [line.split("\t") for line in Path(__file__).with_name("hive_sketches.tsv").read_text().splitlines()]
SINGLE = [(int(row[1]), int(row[2]), base64.b64decode(row[3])) for row in ROWS if row[0] == "hll"]
MERGED = [(int(row[1]), int(row[2]), int(row[3])) for row in ROWS if row[0] == "merge"]
LARGER = [(int(row[1]), int(row[2]), base64.b64decode(row[3])) for row in ROWS if row[0] == "squash"]
FLAJOLET_MARTIN = [(int(row[1]), int(row[2]), base64.b64decode(row[3])) for row in ROWS if row[0] == "fm"]


@pytest.mark.parametrize(("size", "expected", "data"), SINGLE)
def test_a_sketch_counts_as_in_hive(size: int, expected: int, data: bytes) -> None:
    sketch = HyperLogLog.read(data)
    assert sketch.count() == expected
    again = HyperLogLog.read(sketch.serialized())
    assert (again.count(), again.sparse) == (expected, sketch.sparse)
    if sketch.dense is not None:
        assert sketch.serialized() == data


def test_merged_sketches_count_as_in_hive() -> None:
    for first, second, expected in MERGED:
        merged = empty_like(HyperLogLog.read(SINGLE[first][2]))
        for index in (first, second):
            merged.merge(HyperLogLog.read(SINGLE[index][2]))
        assert merged.count() == expected, (first, second)


@pytest.mark.parametrize(("precision", "expected", "data"), LARGER)
def test_larger_sketches_are_folded_as_in_hive(precision: int, expected: int, data: bytes) -> None:
    merged = HyperLogLog()
    larger = HyperLogLog.read(data)
    assert larger.precision == precision
    assert merged.can_merge(larger)
    assert not larger.can_merge(merged)
    merged.merge(larger)
    assert merged.count() == expected


@pytest.mark.parametrize(("size", "expected", "data"), FLAJOLET_MARTIN)
def test_flajolet_martin_sketches(size: int, expected: int, data: bytes) -> None:
    sketch = FmSketch.read(data)
    assert sketch.count() == expected
    assert sketch.serialized() == data
    merged = empty_like(sketch)
    merged.merge(sketch)
    merged.merge(sketch)
    assert merged.serialized() == data


def test_sketches_of_different_kinds_do_not_merge() -> None:
    hyper, flajolet = HyperLogLog.read(SINGLE[3][2]), FmSketch.read(FLAJOLET_MARTIN[2][2])
    assert not hyper.can_merge(flajolet)
    assert not flajolet.can_merge(hyper)
    assert not flajolet.can_merge(FmSketch([0]))
    with pytest.raises(SketchError):
        hyper.merge(flajolet)
    with pytest.raises(SketchError):
        flajolet.merge(hyper)


@given(st.binary(max_size=40), st.sampled_from([b"", b"HLL", b"FM", b"HLL\xa0", b"HLL\xa5", b"FM\x02\x00"]))
def test_broken_sketches_are_none(data: bytes, prefix: bytes) -> None:
    found = read_sketch(prefix + data)
    if found is not None:
        assert found.count() >= 0
        assert read_sketch(found.serialized()) is not None


@given(st.sampled_from(SINGLE), st.integers(0, 60))
def test_sketches_cut_short_are_none_or_smaller(sample: tuple[int, int, bytes], cut: int) -> None:
    found = read_sketch(sample[2][:cut])
    assert found is None or cut >= 6


def one_after_the_other(vectors: list[bytes]) -> HyperLogLog:
    merged = HyperLogLog()
    for data in vectors:
        merged.merge(HyperLogLog.read(data))
    return merged


@given(st.lists(st.sampled_from([data for _, _, data in SINGLE]), max_size=30))
def test_many_merged_at_once(vectors: list[bytes]) -> None:
    """Sparse ones, dense ones, and sparse ones that become dense together."""
    found, wanted = merged_at_once(vectors), one_after_the_other(vectors)
    assert found is not None
    assert (found.sparse, found.serialized(), found.count()) == (wanted.sparse, wanted.serialized(), wanted.count())


@given(st.lists(st.dictionaries(st.integers(0, 2**25 - 1), st.integers(1, 40), max_size=60), max_size=8))
def test_entries_merged_at_once(contents: list[dict[int, int]]) -> None:
    vectors = []
    for content in contents:
        sketch = HyperLogLog()
        sketch.sparse = dict(content)
        vectors.append(sketch.serialized())
    found, wanted = merged_at_once(vectors), one_after_the_other(vectors)
    assert found is not None
    assert (found.sparse, found.serialized()) == (wanted.sparse, wanted.serialized())


@pytest.mark.parametrize("other", [b"", b"HLL", b"FM\1\0aaaa", *(data[:-1] for _, _, data in SINGLE[:3])])
def test_what_cannot_be_merged_at_once(other: bytes) -> None:
    assert merged_at_once([SINGLE[0][2], other]) is None


def test_larger_ones_are_merged_one_by_one() -> None:
    assert merged_at_once([LARGER[0][2]]) is None


ENTRIES = 2_000_000


def full_of_entries() -> bytes:
    """A sparse sketch with an entry for each byte."""
    number = ENTRIES
    size = bytearray()
    while number > 0x7F:
        size.append(0x80 | (number & 0x7F))
        number >>= 7
    size.append(number)
    return b"HLL" + bytes([10 << 4, 1]) + bytes(size) + b"\x41" * ENTRIES


DENSE = next(data for _, _, data in SINGLE if data[3] & 7)


@pytest.mark.parametrize("data", [full_of_entries(), DENSE + bytes(ENTRIES)], ids=["sparse", "dense"])
@pytest.mark.parametrize("read", [read_sketch, lambda data: merged_at_once([data, DENSE])], ids=["one", "many"])
def test_a_sketch_takes_no_more_memory_than_its_registers(data: bytes, read: Callable[[bytes], object]) -> None:
    """A byte may be an entry, which takes some hundred bytes: a writer of statistics could fill the memory."""
    tracemalloc.start()
    try:
        read(data)
        _, max_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max_bytes < 2 * ENTRIES + 1_000_000
