"""What is merged from partitions for Spark's statistics of their table."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.statistics.parameters import spark_statistics
from hms_cache.jobs.statistics.totals import Totals, TotalsOfColumns
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, statistics_of

US = 1_000_000


def text_column(lengths: list[int], nulls: int) -> ColumnValues:
    rows = len(lengths) + nulls
    average = sum(lengths) / rows if rows else 0.0
    return ColumnValues(StatisticsKind.STRING, nulls, average_length=average, maximum_length=max(lengths, default=0))


@given(st.lists(st.tuples(st.lists(st.integers(0, 2**31), max_size=40), st.integers(0, 40)), max_size=20))
def test_lengths_add_up_exactly(partitions: list[tuple[list[int], int]]) -> None:
    """Although statistics only contain averages, and are stored as text in between."""
    one, other = TotalsOfColumns(), TotalsOfColumns()
    for number, (lengths, nulls) in enumerate(partitions):
        statistics = statistics_of("t", "string", text_column(lengths, nulls))
        (one, other)[number % 2].add([statistics], len(lengths) + nulls)
    one.add_encoded(other.encoded())
    found = one.of("t")
    assert found.length_sum == sum(sum(lengths) for lengths, _ in partitions)
    assert found.present == sum(len(lengths) for lengths, _ in partitions)


def test_moments_to_the_microsecond_where_they_are_known() -> None:
    totals = TotalsOfColumns()
    moments = [statistics_of("m", "timestamp", ColumnValues(StatisticsKind.TIMESTAMP, low=-7, high=9))]
    totals.add(moments, 3, {"m": (-6_999_999, 9_000_001)})
    assert totals.of("m") == Totals(3, 0, -6_999_999, 9_000_001)
    # For stored values, only the whole second is known: no value may be outside.
    totals.add(moments, 3)
    assert totals.of("m") == Totals(6, 0, -7 * US, 10 * US - 1)
    totals.add([statistics_of("m", "timestamp", ColumnValues(StatisticsKind.TIMESTAMP, nulls=2))], 2)
    assert totals.of("m") == Totals(6, 0, -7 * US, 10 * US - 1)
    assert totals.of("other") == Totals()


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(1, 1, 1), "0001-01-01 00:00:00.000000"),
        (datetime(987, 6, 5, 4, 3, 2, 1), "0987-06-05 04:03:02.000001"),
        (datetime(2024, 2, 29, 23, 59, 59, 999_999), "2024-02-29 23:59:59.999999"),
        (datetime(9999, 12, 31), "9999-12-31 00:00:00.000000"),
    ],
)
def test_years_of_moments_have_four_digits(moment: datetime, text: str) -> None:
    """Spark refuses to read others, and with them each query that is planned by cost."""
    since_epoch = moment - datetime(1970, 1, 1)
    moment_us = since_epoch // timedelta(microseconds=1)
    seconds = moment_us // US
    column = statistics_of(
        "m", "timestamp", ColumnValues(StatisticsKind.TIMESTAMP, distinct=1, low=seconds, high=seconds)
    )
    totals = TotalsOfColumns()
    totals.add([column], 1, {"m": (moment_us, moment_us)})
    found = spark_statistics({}, 1, 10, [column], totals)
    assert [found[f"spark.sql.statistics.colStats.m.{end}"] for end in ("min", "max")] == [text, text]
