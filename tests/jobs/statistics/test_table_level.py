"""Statistics merged one by one are those of all partitions at once."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from hms_cache.jobs.statistics.hashes import hash_doubles, hash_longs
from hms_cache.jobs.statistics.parameters import not_answerable
from hms_cache.jobs.statistics.sketches import sketches_of_groups
from hms_cache.jobs.statistics.table_level import PARTITIONS_PUT_TOGETHER, StatisticsMerger, merged
from hms_cache.metadata.statistics_sketches import HyperLogLog, written_count
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, statistics_of, values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

COLUMNS = ["number", "flag"]


def sketch(values: list[int]) -> bytes:
    [found] = sketches_of_groups(np.zeros(len(values), np.int64), hash_longs(np.array(values, np.int64)), 1)
    return found


def of_partition(values: list[int], nulls: int, trues: int) -> list[ColumnStatisticsObj]:
    data = sketch(values)
    number = ColumnValues(StatisticsKind.LONG, nulls, written_count(data), min(values), max(values), bit_vector=data)
    flag = ColumnValues(StatisticsKind.BOOLEAN, nulls, trues=trues, falses=len(values) - trues)
    return [statistics_of("number", "bigint", number), statistics_of("flag", "boolean", flag)]


@pytest.mark.parametrize("partitions", [1, PARTITIONS_PUT_TOGETHER, 2 * PARTITIONS_PUT_TOGETHER + 7])
@pytest.mark.parametrize("tasks", [1, 3])
def test_partitions_that_come_in_several_tasks(partitions: int, tasks: int) -> None:
    chance = random.Random(partitions)
    content = [[chance.randrange(-5_000, 5_000) for _ in range(20)] for _ in range(partitions)]
    togethers = [StatisticsMerger(COLUMNS) for _ in range(tasks)]
    for number, values in enumerate(content):
        togethers[number % tasks].add(f"p={number}", of_partition(values, number % 3, number % 20), 20 + number % 3)
    found = merged((one.encoded() for one in togethers), COLUMNS)
    assert found.partsFound == partitions
    flag, number_column = (values_of(one) for one in found.colStats)
    everything = [value for values in content for value in values]
    assert (number_column.low, number_column.high) == (min(everything), max(everything))
    nulls = sum(number % 3 for number in range(partitions))
    trues = sum(number % 20 for number in range(partitions))
    assert (flag.nulls, number_column.nulls) == (nulls, nulls)
    assert (flag.trues, flag.falses) == (trues, 20 * partitions - trues)
    assert number_column.bit_vector is not None
    at_once = HyperLogLog.read(sketch(everything))
    assert HyperLogLog.read(number_column.bit_vector).count() == at_once.count() == number_column.distinct


def test_a_task_that_wrote_nothing() -> None:
    wrote, idle = StatisticsMerger(COLUMNS), StatisticsMerger(COLUMNS)
    wrote.add("p=1", of_partition([1, 2, 3], 0, 1), 3)
    assert merged([wrote.encoded(), idle.encoded()], COLUMNS) == merged([wrote.encoded()], COLUMNS)
    assert merged([idle.encoded()], COLUMNS).partsFound == 0


def test_a_partition_without_a_column_is_not_found() -> None:
    together = StatisticsMerger(COLUMNS)
    together.add("p=1", of_partition([1], 0, 1), 1)
    together.add("p=2", of_partition([1], 0, 1)[:1], 1)
    assert merged([together.encoded()], COLUMNS).partsFound == 1


def doubles(low: float | None, high: float | None, values: list[float]) -> list[ColumnStatisticsObj]:
    [data] = sketches_of_groups(np.zeros(len(values), np.int64), hash_doubles(np.array(values, np.float64)), 1)
    distinct = written_count(data) if values else 0
    found = ColumnValues(StatisticsKind.DOUBLE, 0 if values else 1, distinct, low, high, bit_vector=data)
    return [statistics_of("d", "double", found)]


@pytest.mark.parametrize(
    ("other", "bounds"),
    [
        (doubles(None, None, []), (1.0, 5.0)),  # nulls only
        (doubles(-1.0, 2.0, [-1.0, 2.0]), (-1.0, 5.0)),
        (doubles(2.0, None, [2.0, math.inf]), (1.0, None)),
        (doubles(None, 2.0, [2.0, -math.inf]), (None, 5.0)),
        (doubles(None, None, [math.nan]), (None, None)),
    ],
)
def test_a_bound_that_is_not_written_is_none_of_the_table(
    other: list[ColumnStatisticsObj], bounds: tuple[float | None, float | None]
) -> None:
    """Otherwise, the highest value of a table with infinity in one partition would be that of the other partitions."""
    together = StatisticsMerger(["d"])
    together.add("p=1", doubles(1.0, 5.0, [1.0, 5.0]), 2)
    together.add("p=2", other, 2)
    [column] = merged([together.encoded(), StatisticsMerger(["d"]).encoded()], ["d"]).colStats
    assert (values_of(column).low, values_of(column).high) == bounds
    assert not_answerable([column]) == (frozenset({"d"}) if None in bounds else frozenset())
