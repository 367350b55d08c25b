"""Computes column statistics of a table's partitions from its rows, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from hms_cache.jobs.statistics.columns import StatisticsColumn, value_of
from hms_cache.jobs.statistics.partials import partial_schema, reducer
from hms_cache.jobs.statistics.sketches import merged_data
from hms_cache.metadata.statistics_sketches import written_count
from hms_cache.metadata.statistics_values import Bound, ColumnValues, StatisticsKind, statistics_of
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_US = 1_000_000

LARGEST_BOUND = 1e49
"""Doubles from here on are not written as bounds: Hive's schema for MySQL has 49 digits, and no infinity."""


def transform(
    rows: DataFrame, columns: Sequence[StatisticsColumn], partitions: DataFrame | None = None, tasks: int = 1
) -> DataFrame:
    """Data for column statistics, by partition: a row for `statistics_of_row` each.

    Figures are Hive's: lengths of texts in characters, of binaries in bytes, their average over all rows, with 0 for a
    null; no bound if it would be infinite or NaN, which is greater than all numbers.

    :param rows: ``partition`` (int), then ``c0``, ``c1``, … in the order of `columns`, in Spark's types.
    :param partitions: a ``partition`` each; these get statistics even without rows.
    :param tasks: number of tasks that combine partial rows and return the results.
    """
    values = rows.select(_values(rows, columns))
    schema = partial_schema(columns)
    partials = values.mapInArrow(reducer(columns, to_arrow_schema(schema)), schema)
    if partitions is not None:
        no_rows = partitions.select("partition", f.lit(0).cast("bigint").alias("rows"))
        partials = partials.unionByName(no_rows, allowMissingColumns=True)
    # Explicit: Spark would choose one task, because partial rows are small, or 200.
    return partials.repartition(tasks, "partition").groupBy("partition").agg(*_aggregates(columns))


def _values(rows: DataFrame, columns: Sequence[StatisticsColumn]) -> list[Column]:
    selected = [rows["partition"]]
    for index, column in enumerate(columns):
        value = value_of(rows[f"c{index}"], column)
        selected.append(value.alias(f"v{index}"))
        if column.kind is StatisticsKind.DECIMAL:
            # Hive hashes the nearest double.
            selected.append(value.cast("double").alias(f"h{index}"))
    return selected


def _aggregates(columns: Sequence[StatisticsColumn]) -> list[Column]:
    aggregates = [f.sum("rows").alias("rows")]
    for index, column in enumerate(columns):
        aggregates.append(f.sum(f"nulls{index}").alias(f"nulls{index}"))
        if column.kind is StatisticsKind.BOOLEAN:
            aggregates.append(f.sum(f"trues{index}").alias(f"trues{index}"))
        if column.kind.has_lengths:
            aggregates.append(f.sum(f"length_sum{index}").alias(f"length_sum{index}"))
            aggregates.append(f.max(f"length_max{index}").alias(f"length_max{index}"))
        if column.kind.has_bounds:
            low, high = f.min(f"low{index}"), f.max(f"high{index}")
            if column.kind is StatisticsKind.DECIMAL:
                low, high = low.cast("string"), high.cast("string")
            aggregates += [low.alias(f"low{index}"), high.alias(f"high{index}")]
        if column.kind.has_distinct_values:
            aggregates.append(f.collect_list(f"sketch{index}").alias(f"sketch{index}"))
    return aggregates


def estimated(row: dict[str, Any], factor: float) -> dict[str, Any]:
    """Scales the counts in a row of `transform` for a sample by this factor. Distinct values, bounds and the maximum
    length, which do not grow with the data, stay those of the sample."""
    counts = {"rows", *(name for name in row if name.startswith(("nulls", "trues", "length_sum")))}
    return {
        name: round(value * factor) if name in counts and value is not None else value for name, value in row.items()
    }


def statistics_of_row(row: dict[str, Any], columns: Sequence[StatisticsColumn]) -> list[ColumnStatisticsObj]:
    """Column statistics from a row of `transform`."""
    return [
        statistics_of(column.name, column.type, _column_values(row, index, column))
        for index, column in enumerate(columns)
    ]


def _column_values(row: dict[str, Any], index: int, column: StatisticsColumn) -> ColumnValues:
    kind, count = column.kind, row["rows"]
    found = ColumnValues(kind, nulls=row[f"nulls{index}"] or 0)
    if kind is StatisticsKind.BOOLEAN:
        found.trues = row[f"trues{index}"] or 0
        found.falses = count - found.nulls - found.trues
    if kind.has_lengths:
        found.average_length = (row[f"length_sum{index}"] or 0) / max(count, 1)
        found.maximum_length = row[f"length_max{index}"] or 0
    if kind.has_bounds:
        found.low, found.high = (_bound(kind, row[f"{end}{index}"]) for end in ("low", "high"))
    if kind.has_distinct_values:
        found.bit_vector = merged_data(row[f"sketch{index}"])
        # An empty sketch counts one value.
        found.distinct = written_count(found.bit_vector) if found.nulls < count else 0
    return found


def _bound(kind: StatisticsKind, found: Any) -> Bound | None:
    if found is None or (kind is StatisticsKind.DOUBLE and abs(found) >= LARGEST_BOUND):
        return None
    value: Bound = Decimal(found) if kind is StatisticsKind.DECIMAL else found
    return value // _US if kind is StatisticsKind.TIMESTAMP and isinstance(value, int) else value


def bounds_us_of_row(row: dict[str, Any], columns: Sequence[StatisticsColumn]) -> dict[str, tuple[int, int]]:
    """Lowest and highest values of timestamp columns, in microseconds; Hive's statistics have whole seconds."""
    return {
        column.name: (row[f"low{index}"], row[f"high{index}"])
        for index, column in enumerate(columns)
        if column.kind is StatisticsKind.TIMESTAMP and row[f"low{index}"] is not None
    }
