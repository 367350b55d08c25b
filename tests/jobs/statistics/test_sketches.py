"""Sketches of whole arrays compared with Hive's own class, value by value."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.statistics.hashes import Hashes, hash_bytes, hash_doubles, hash_longs
from hms_cache.jobs.statistics.sketches import merged_data, merged_sketch, sketches_of_groups
from hms_cache.metadata.statistics_sketches import HyperLogLog, SketchError, written_count
from tests.jobs.hive_sketches import hive_sketches

SIZES = (0, 1, 2, 7, 100, 152, 153, 154, 155, 300, 1_000, 5_000, 30_000)
_LONG = st.integers(-(2**63), 2**63 - 1)


def hashes_of_texts(texts: Sequence[bytes]) -> Hashes:
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.cumsum(lengths) - lengths
    return hash_bytes(np.frombuffer(b"".join(texts), np.uint8), starts, lengths)


def sketch_of(hashes: Hashes) -> bytes:
    [sketch] = sketches_of_groups(np.zeros(len(hashes), np.int64), hashes, 1)
    return sketch


def assert_same(ours: bytes, hives: bytes) -> None:
    """Equal, except for the order of a sparse sketch's entries."""
    mine, theirs = HyperLogLog.read(ours), HyperLogLog.read(hives)
    if theirs.sparse is None:
        assert ours == hives
    assert mine.sparse == theirs.sparse
    assert mine.count() == theirs.count()


@pytest.mark.java
def test_sketches_are_those_of_hive() -> None:
    """Also its estimates of ours, and of ours merged with its own."""
    chance = random.Random(4)
    requests: list[tuple[str, Sequence[object]]] = []
    ours: list[bytes] = []
    for size in SIZES:
        longs = [
            chance.randrange(-(2**63), 2**63) if chance.random() < 0.5 else chance.randrange(size) for _ in range(size)
        ]
        doubles = [chance.choice([chance.gauss(0, 1e9), float(chance.randrange(50)), 1e-300]) for _ in range(size)]
        decimals = [Decimal(chance.randrange(-(10**30), 10**30)).scaleb(-chance.randrange(18)) for _ in range(size)]
        texts = [
            ("é" * chance.randrange(4) + "x" * chance.randrange(40) + str(chance.random())).encode()
            for _ in range(size)
        ]
        requests += [("long", longs), ("double", doubles), ("decimal", decimals), ("text", texts)]
        ours += [
            sketch_of(hash_longs(np.array(longs, np.int64))),
            sketch_of(hash_doubles(np.array(doubles, np.float64))),
            sketch_of(hash_doubles(np.array([float(one) for one in decimals], np.float64))),
            sketch_of(hashes_of_texts(texts)),
        ]
    special = [0.0, -0.0, float("nan"), float("inf"), float("-inf")]
    requests.append(("double", [str(one).replace("inf", "Infinity").replace("nan", "NaN") for one in special]))
    ours.append(sketch_of(hash_doubles(np.array([*special, -float("nan")]))))
    # One start of Java for all: Hive's sketches of the values, ours read and written by it, and pairs of ours merged.
    pairs = list(zip(ours, ours[4:], strict=False))
    read = [("merge", [mine]) for mine in ours]
    answers = hive_sketches([*requests, *read, *(("merge", pair) for pair in pairs)])
    both = [merged_sketch(pair).serialized() for pair in pairs]
    for mine, (estimate, theirs) in zip([*ours, *ours, *both], answers, strict=True):
        assert_same(mine, theirs)
        assert HyperLogLog.read(mine).count() == max(1, estimate)


@given(st.lists(st.tuples(st.integers(0, 4), _LONG), max_size=400))
def test_groups_are_sketched_as_if_each_were_alone(rows: list[tuple[int, int]]) -> None:
    groups = np.array([group for group, _ in rows], np.int64)
    hashes = hash_longs(np.array([value for _, value in rows], np.int64))
    together = sketches_of_groups(groups, hashes, 5)
    assert together == [sketch_of(hashes[groups == group]) for group in range(5)]


@given(st.sets(_LONG, max_size=400))
def test_sketches_are_written_as_one_by_one(values: set[int]) -> None:
    """The bytes of many sketches, built at once, equal those that each sketch writes itself, including its estimate."""
    ours = sketch_of(hash_longs(np.array(sorted(values), np.int64)))
    read = HyperLogLog.read(ours)
    assert ours == read.serialized()
    assert written_count(ours) == read.count()
    assert merged_data([ours]) == merged_sketch([ours]).serialized() == ours


def test_what_is_no_sketch_has_no_estimate() -> None:
    with pytest.raises(SketchError):
        written_count(b"FM\x01\x00")


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=50))
def test_a_piece_is_hashed_as_if_it_were_alone(texts: list[bytes]) -> None:
    together = hashes_of_texts(texts)
    assert [int(one) for one in together] == [int(hashes_of_texts([text])[0]) for text in texts]


@given(_LONG)
def test_a_long_is_the_text_of_its_bytes(value: int) -> None:
    """The two ways of hashing agree where they meet."""
    assert hash_longs(np.array([value], np.int64)) == hashes_of_texts([struct.pack(">q", value)])


@given(st.lists(st.lists(_LONG, max_size=300), max_size=5))
def test_merging_is_sketching_together(parts: list[list[int]]) -> None:
    sketches = [sketch_of(hash_longs(np.array(part, np.int64))) for part in parts]
    together = sketch_of(hash_longs(np.array([value for part in parts for value in part], np.int64)))
    assert merged_sketch(sketches).serialized() == together


@pytest.mark.parametrize("distinct", [10, 150, 1_000, 20_000, 1_000_000])
def test_the_error_of_an_estimate(distinct: int) -> None:
    """1.04 / sqrt(1,024) is 3.25 %: four of it is the limit."""
    estimate = HyperLogLog.read(sketch_of(hash_longs(np.arange(distinct, dtype=np.int64)))).count()
    assert abs(estimate - distinct) <= 0.13 * distinct
