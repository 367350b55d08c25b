"""Statistics with any figures that a client can send can be aggregated, merged and returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.metadata.statistics_merge import AggregationRules, aggregate, merge_into_new
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire.codec import encode_struct

COUNTS = st.one_of(st.sampled_from([0, 1, -1, 5, 2**62, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1))
OPTIONAL = st.none() | COUNTS
DOUBLES = st.none() | st.floats()
DECIMALS = st.none() | st.builds(ttypes.Decimal, scale=st.integers(-1000, 1000), unscaled=st.binary(max_size=64))
DAYS = st.none() | st.builds(ttypes.Date, COUNTS)
MOMENTS = st.none() | st.builds(ttypes.Timestamp, COUNTS)


def data(member: str, kind: Callable[..., Any], *figures: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda made: ttypes.ColumnStatisticsData(**{member: made}), st.builds(kind, *figures))


KINDS = {
    "bigint": data("longStats", ttypes.LongColumnStatsData, OPTIONAL, OPTIONAL, COUNTS, COUNTS),
    "double": data("doubleStats", ttypes.DoubleColumnStatsData, DOUBLES, DOUBLES, COUNTS, COUNTS),
    "decimal(38,0)": data("decimalStats", ttypes.DecimalColumnStatsData, DECIMALS, DECIMALS, COUNTS, COUNTS),
    "date": data("dateStats", ttypes.DateColumnStatsData, DAYS, DAYS, COUNTS, COUNTS),
    "timestamp": data("timestampStats", ttypes.TimestampColumnStatsData, MOMENTS, MOMENTS, COUNTS, COUNTS),
    "string": data("stringStats", ttypes.StringColumnStatsData, COUNTS, st.floats(), COUNTS, COUNTS),
    "binary": data("binaryStats", ttypes.BinaryColumnStatsData, COUNTS, st.floats(), COUNTS),
    "boolean": data("booleanStats", ttypes.BooleanColumnStatsData, COUNTS, COUNTS, COUNTS),
}
RULES = st.builds(AggregationRules, st.booleans(), st.just(False), st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
NAMES = [f"p={number}" for number in range(4)]


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=st.data(), rules=RULES)
def test_what_comes_of_any_figures_can_be_sent(kind: str, drawn: st.DataObject, rules: AggregationRules) -> None:
    known = drawn.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    found = [(name, ttypes.ColumnStatisticsObj("c", kind, drawn.draw(KINDS[kind]))) for name in sorted(known)]
    encode_struct(aggregate(NAMES, found, ["c"], rules))
    encode_struct(merge_into_new(found[0][1], found[-1][1]))


def test_the_largest_number_of_distinct_values() -> None:
    most = 2**63 - 1
    figures = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(-most - 1, most, most, most))
    found = [(name, ttypes.ColumnStatisticsObj("c", "bigint", figures)) for name in NAMES]
    [column] = aggregate(NAMES, found, ["c"], AggregationRules()).colStats
    stats = column.statsData.longStats
    assert (stats.numDVs, stats.numNulls, stats.lowValue, stats.highValue) == (most, most, -most - 1, most)
