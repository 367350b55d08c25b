"""Merged statistics: compared with Hive's own aggregators, by hand, and by properties.

`hive_aggregates.tsv` was printed by `MetaStoreServerUtils.aggrPartitionStats` of Hive 4.0.1: column type, requested
partitions, density function, tuner, statistics (partition:struct, …), the aggregate. Structs are TBinaryProtocol in
Base64.
"""

from __future__ import annotations

import base64
import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.TSerialization import deserialize

from hms_cache.metadata.statistics_merge import AggregationRules, aggregate, histogram_size, merge_into_new
from hms_cache.metadata.statistics_sketches import HyperLogLog
from hms_cache.metadata.statistics_values import (
    ColumnValues,
    StatisticsKind,
    decimal_of,
    decimal_struct,
    kind_of_type,
    statistics_of,
    values_of,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj, InvalidObjectException

VECTORS = [line.split("\t") for line in Path(__file__).with_name("hive_aggregates.tsv").read_text().splitlines()]
TYPES = {
    StatisticsKind.BOOLEAN: "boolean",
    StatisticsKind.LONG: "int",
    StatisticsKind.DOUBLE: "double",
    StatisticsKind.STRING: "string",
    StatisticsKind.BINARY: "binary",
    StatisticsKind.DECIMAL: "decimal(10,2)",
    StatisticsKind.DATE: "date",
    StatisticsKind.TIMESTAMP: "timestamp",
}


def decoded(text: str) -> ColumnStatisticsObj:
    return deserialize(ColumnStatisticsObj(), base64.b64decode(text), protocol_factory=TBinaryProtocolFactory())


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{index}-{row[0]}" for index, row in enumerate(VECTORS)])
def test_aggregates_with_sketches_are_hives(vector: list[str]) -> None:
    kind, count, density, tuner, encoded, expected = vector
    names = [f"p={index}" for index in range(int(count))]
    pairs = [part.split(":") for part in encoded.strip(",").split(",")]
    statistics = [(f"p={index}", decoded(text)) for index, text in pairs]
    rules = AggregationRules(sketches=True, density_function=density == "true", distinct_tuner=float(tuner))
    [found] = aggregate(names, statistics, ["c"], rules).colStats
    ours, theirs = values_of(found), values_of(decoded(expected))
    # the first partition's sketch in Hive's answer, the merged one in ours
    ours.bit_vector = theirs.bit_vector = None
    if kind == "string" and 1 < len(statistics) < len(names):
        # Hive extrapolates average lengths instead of the longest
        ours.maximum_length = theirs.maximum_length
    for field in dataclasses.fields(ColumnValues):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if isinstance(mine, float | Decimal):
            assert float(mine) == pytest.approx(float(other)), field.name
        else:
            assert mine == other, field.name


def longs(low: int | None, high: int | None, nulls: int = 0, distinct: int = 1, **more: Any) -> ColumnStatisticsObj:
    return statistics_of("c", "bigint", ColumnValues(StatisticsKind.LONG, nulls, distinct, low, high, **more))


def strings(average: float, longest: int, distinct: int) -> ColumnStatisticsObj:
    values = ColumnValues(StatisticsKind.STRING, 1, distinct, average_length=average, maximum_length=longest)
    return statistics_of("c", "string", values)


def aggregated(
    statistics: dict[int, ColumnStatisticsObj], count: int, rules: AggregationRules | None = None
) -> ColumnValues:
    names = [f"p={index}" for index in range(count)]
    pairs = [(names[index], one) for index, one in statistics.items()]
    [found] = aggregate(names, pairs, ["c"], rules or AggregationRules()).colStats
    return values_of(found)


def test_all_partitions_known() -> None:
    found = aggregated({0: longs(0, 10, 1, 3), 1: longs(-5, 4, 2, 9), 2: longs(7, 99, 4, 2)}, 3)
    assert (found.low, found.high, found.nulls, found.distinct) == (-5, 99, 7, 9)


def test_the_tuner_moves_between_the_bounds() -> None:
    parts = {0: longs(0, 1000, 0, 10), 1: longs(0, 1000, 0, 30)}
    assert aggregated(parts, 2, AggregationRules(distinct_tuner=0.5)).distinct == 35
    assert aggregated(parts, 2, AggregationRules(distinct_tuner=1.0)).distinct == 40


def test_whole_numbers_have_no_more_values_than_their_range() -> None:
    assert aggregated({0: longs(1, 3, 0, 50)}, 1).distinct == 3


def test_the_density_function() -> None:
    parts = {0: longs(0, 100, 0, 10), 1: longs(100, 200, 0, 10)}
    assert aggregated(parts, 2, AggregationRules(density_function=True)).distinct == 20


def test_missing_partitions_are_extrapolated_along_a_line() -> None:
    """Values rise by 10 per partition: the first of 5 would begin at 0, the last end at 50."""
    parts = {1: longs(10, 20, 3, 5), 3: longs(30, 40, 5, 7)}
    found = aggregated(parts, 5)
    assert (found.low, found.high) == (0, 50)
    assert found.nulls == 8 // 2 * 5
    assert found.distinct == 8


def test_falling_values_are_extrapolated_to_the_other_side() -> None:
    parts = {0: longs(30, 40, 0, 7), 2: longs(10, 20, 0, 5)}
    found = aggregated(parts, 4)
    assert (found.low, found.high) == (0, 40)


def test_lengths_are_extrapolated() -> None:
    found = aggregated({0: strings(2.0, 10, 4), 1: strings(3.0, 20, 6)}, 3)
    assert (found.average_length, found.maximum_length, found.distinct, found.nulls) == (4.0, 30, 8, 3)


def test_one_known_partition_is_taken_as_it_is() -> None:
    found = aggregated({2: longs(10, 20, 3, 5)}, 9)
    assert (found.low, found.high, found.nulls, found.distinct) == (10, 20, 3, 5)


def test_partitions_count_as_found_with_all_columns() -> None:
    other = ColumnStatisticsObj("other", "bigint", longs(1, 2).statsData)
    pairs = [
        ("p=0", longs(1, 2)),
        ("p=0", other),
        ("p=1", longs(1, 2)),
        ("p=9", longs(0, 0)),
        ("p=1", strings(1, 1, 1)),
    ]
    answer = aggregate(["p=0", "p=1", "p=2"], pairs, ["C", "other"], AggregationRules())
    assert answer.partsFound == 1
    assert [(one.colName, one.colType) for one in answer.colStats] == [
        ("c", "bigint"),
        ("c", "string"),
        ("other", "bigint"),
    ]
    assert aggregate(["p=0"], [], ["c"], AggregationRules()).colStats == []


def test_values_unknown_somewhere_stay_unknown_when_extrapolated() -> None:
    found = aggregated({0: longs(None, None), 1: longs(1, 2)}, 3)
    assert (found.low, found.high) == (None, None)
    found = aggregated({0: longs(None, None), 1: longs(1, 2)}, 2)
    assert (found.low, found.high) == (1, 2)


def kll(size: int) -> bytes:
    return bytes([5, 1, 15, 0, 200, 0, 8, 0]) + size.to_bytes(8, "little") + b"rest"


def test_the_largest_histogram_is_kept() -> None:
    assert [
        histogram_size(data) for data in (b"", bytes([2, 1, 15, 1, 0, 0, 0, 0]), bytes([2, 2, 15, 4] + [0] * 8), kll(7))
    ] == [
        0,
        0,
        1,
        7,
    ]
    parts = {0: longs(0, 1, histogram=kll(3)), 1: longs(0, 1, histogram=kll(9)), 2: longs(0, 1)}
    assert aggregated(parts, 3, AggregationRules(histograms=True)).histogram == kll(9)
    assert aggregated(parts, 3).histogram is None


def sketch(first: int, last: int) -> bytes:
    made = HyperLogLog()
    made.sparse = {value * 7919: 1 for value in range(first, last)}
    return made.serialized()


def test_new_statistics_take_the_old_ones_in() -> None:
    new = longs(5, 10, 1, 4, bit_vector=sketch(0, 60))
    old = longs(-5, 7, 2, 3, bit_vector=sketch(30, 100))
    merged = values_of(merge_into_new(new, old))
    assert (merged.low, merged.high, merged.nulls, merged.distinct) == (-5, 10, 3, 100)
    assert merged.bit_vector == sketch(0, 100)
    without = values_of(merge_into_new(longs(5, 10, 1, 4), old))
    assert (without.distinct, without.bit_vector) == (70, sketch(30, 100))
    plain = values_of(merge_into_new(longs(None, None, 1, 4), longs(1, 2, 0, 9)))
    assert (plain.low, plain.high, plain.distinct, plain.bit_vector) == (1, 2, 9, None)
    with pytest.raises(InvalidObjectException, match="are of another type than those stored"):
        merge_into_new(longs(1, 2), strings(1.0, 1, 1))


counts = st.integers(0, 1 << 40)
bounds: dict[StatisticsKind, st.SearchStrategy[Any]] = {
    StatisticsKind.LONG: st.integers(-(1 << 62), 1 << 62),
    StatisticsKind.DATE: st.integers(-10000, 100000),
    StatisticsKind.TIMESTAMP: st.integers(-(1 << 40), 1 << 40),
    StatisticsKind.DOUBLE: st.floats(-1e12, 1e12),
    StatisticsKind.DECIMAL: st.decimals(-(10**12), 10**12, places=2),
}


@st.composite
def column_values(draw: st.DrawFn) -> ColumnValues:
    kind = draw(st.sampled_from(StatisticsKind))
    values = ColumnValues(kind, nulls=draw(counts))
    if kind is StatisticsKind.BOOLEAN:
        values.trues, values.falses = draw(counts), draw(counts)
    if kind.has_lengths:
        values.average_length, values.maximum_length = draw(st.floats(0, 1e6)), draw(counts)
    if kind.has_distinct_values:
        values.distinct = draw(counts)
        values.bit_vector = draw(st.none() | st.binary(min_size=1, max_size=8))
    if kind.has_bounds:
        values.low, values.high = draw(st.none() | bounds[kind]), draw(st.none() | bounds[kind])
        values.histogram = draw(st.none() | st.binary(min_size=1, max_size=8))
    return values


@given(column_values())
def test_values_survive_their_struct(values: ColumnValues) -> None:
    assert kind_of_type(TYPES[values.kind]) is values.kind
    assert values_of(statistics_of("c", TYPES[values.kind], values)) == values


@given(st.lists(column_values(), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
def test_aggregation_never_fails(values: list[ColumnValues], missing: int, sketches: bool) -> None:
    count = len(values) + missing
    names = [f"p={index}" for index in range(count)]
    pairs = [(names[index], statistics_of("c", TYPES[one.kind], one)) for index, one in enumerate(values)]
    rules = AggregationRules(sketches=sketches, density_function=True)
    answer = aggregate(names, pairs, ["c"], rules)
    assert {values_of(one).kind for one in answer.colStats} == {one.kind for one in values}
    assert answer.partsFound == len(values)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_survive_their_struct(number: Decimal) -> None:
    struct = decimal_struct(number)
    assert decimal_of(struct) == number
    unscaled = int.from_bytes(struct.unscaled, "big", signed=True)
    shorter = len(struct.unscaled) - 1
    if shorter:
        with pytest.raises(OverflowError):
            unscaled.to_bytes(shorter, "big", signed=True)
