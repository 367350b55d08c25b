"""From the rows of a table to the column statistics of its partitions, in one reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from hms_cache.jobs.statistics.columns import StatisticsColumn, value_of
from hms_cache.jobs.statistics.partials import reducer
from hms_cache.jobs.statistics.sketches import merged_data
from hms_cache.metadata.statistics_sketches import written_count
from hms_cache.metadata.statistics_values import Bound, ColumnValues, StatisticsKind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_LONG = LongType()

LARGEST_BOUND = 1e49
"""A double from here on is no bound that is written: Hive's schema for MySQL keeps 49 digits, and no infinity."""

COLUMN = StructType(
    [
        StructField("column", StringType(), False),
        StructField("type", StringType(), False),
        StructField("kind", StringType(), False),
        StructField("nulls", _LONG, False),
        StructField("distinct", _LONG, False),
        # Of long, date (days since 1970) and timestamp (seconds since 1970).
        StructField("low_long", _LONG),
        StructField("high_long", _LONG),
        StructField("low_double", DoubleType()),
        StructField("high_double", DoubleType()),
        # As texts: each column has a scale of its own.
        StructField("low_decimal", StringType()),
        StructField("high_decimal", StringType()),
        StructField("average_length", DoubleType()),
        StructField("maximum_length", _LONG),
        StructField("trues", _LONG),
        StructField("falses", _LONG),
        StructField("bit_vector", BinaryType()),
    ]
)
"""Statistics of a column; `kind` is a name of `StatisticsKind`, and decides which of the figures there are."""

STATISTICS = StructType(
    [
        StructField("partition", IntegerType(), False),
        StructField("rows", _LONG, False),
        StructField("columns", ArrayType(COLUMN, False), False),
    ]
)
"""What `transform` answers: one row for each partition."""


def transform(
    rows: DataFrame, columns: Sequence[StatisticsColumn], partitions: DataFrame | None = None, tasks: int = 1
) -> DataFrame:
    """Column statistics by partition (`STATISTICS`).

    `rows`: ``partition`` (int), then ``c0``, ``c1``, … in the order of `columns`, of whatever type Spark reads them as.
    Figures are those of Hive: lengths of texts in characters, of binaries in bytes, their average over all rows with 0
    for a null; bounds without NaN, and none where they would be infinite. `partitions`: a ``partition`` each, which get
    statistics although they may have no rows. `tasks`: how many put partial rows together, and answer.
    """
    values = rows.select(_values(rows, columns))
    partial_schema = _partial_schema(values, columns)
    partials = values.mapInArrow(reducer(columns, to_arrow_schema(partial_schema)), partial_schema)
    if partitions is not None:
        no_rows = partitions.select("partition", f.lit(0).cast("bigint").alias("rows"))
        partials = partials.unionByName(no_rows, allowMissingColumns=True)
    # As many as said: Spark by itself takes one, since partial rows are small, or 200.
    merged = partials.repartition(tasks, "partition").groupBy("partition").agg(*_aggregates(columns))
    return merged.mapInArrow(_finisher(columns), STATISTICS)


def _values(rows: DataFrame, columns: Sequence[StatisticsColumn]) -> list[Column]:
    selected = [rows["partition"]]
    for index, column in enumerate(columns):
        value = value_of(rows[f"c{index}"], column.kind)
        selected.append(value.alias(f"v{index}"))
        if column.kind is StatisticsKind.DECIMAL:
            # Hive hashes the nearest double.
            selected.append(value.cast("double").alias(f"h{index}"))
    return selected


def _partial_schema(values: DataFrame, columns: Sequence[StatisticsColumn]) -> StructType:
    fields = [StructField("partition", IntegerType()), StructField("rows", _LONG)]
    for index, column in enumerate(columns):
        figures: dict[str, DataType] = {"nulls": _LONG}
        if column.kind is StatisticsKind.BOOLEAN:
            figures["trues"] = _LONG
        if column.kind.has_lengths:
            figures |= {"length_sum": _LONG, "length_max": _LONG}
        if column.kind.has_bounds:
            bound = values.schema[f"v{index}"].dataType
            figures |= {"low": bound, "high": bound}
        if column.kind.has_distinct_values:
            figures["sketch"] = BinaryType()
        fields += [StructField(f"{name}{index}", kind) for name, kind in figures.items()]
    return StructType(fields)


def _aggregates(columns: Sequence[StatisticsColumn]) -> list[Column]:
    wanted = [f.sum("rows").alias("rows")]
    for index, column in enumerate(columns):
        wanted.append(f.sum(f"nulls{index}").alias(f"nulls{index}"))
        if column.kind is StatisticsKind.BOOLEAN:
            wanted.append(f.sum(f"trues{index}").alias(f"trues{index}"))
        if column.kind.has_lengths:
            wanted.append(f.sum(f"length_sum{index}").alias(f"length_sum{index}"))
            wanted.append(f.max(f"length_max{index}").alias(f"length_max{index}"))
        if column.kind.has_bounds:
            low, high = f.min(f"low{index}"), f.max(f"high{index}")
            if column.kind is StatisticsKind.DECIMAL:
                low, high = low.cast("string"), high.cast("string")
            wanted += [low.alias(f"low{index}"), high.alias(f"high{index}")]
        if column.kind.has_distinct_values:
            wanted.append(f.collect_list(f"sketch{index}").alias(f"sketch{index}"))
    return wanted


def _finisher(columns: Sequence[StatisticsColumn]) -> Any:
    import pyarrow

    schema = to_arrow_schema(STATISTICS)

    def finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                {
                    "partition": row["partition"],
                    "rows": row["rows"],
                    "columns": [_column_row(row, index, column) for index, column in enumerate(columns)],
                }
                for row in batch.to_pylist()
            ]
            yield pyarrow.RecordBatch.from_pylist(rows, schema)

    return finish


def _column_row(row: dict[str, Any], index: int, column: StatisticsColumn) -> dict[str, Any]:
    kind, count, nulls = column.kind, row["rows"], row[f"nulls{index}"] or 0
    figures: dict[str, Any] = {
        "column": column.name,
        "type": column.type,
        "kind": kind.name.lower(),
        "nulls": nulls,
        "distinct": 0,
    }
    if kind is StatisticsKind.BOOLEAN:
        trues = row[f"trues{index}"] or 0
        figures |= {"trues": trues, "falses": count - nulls - trues}
    if kind.has_lengths:
        figures["average_length"] = (row[f"length_sum{index}"] or 0) / max(count, 1)
        figures["maximum_length"] = row[f"length_max{index}"] or 0
    if kind.has_bounds:
        end = {StatisticsKind.DOUBLE: "double", StatisticsKind.DECIMAL: "decimal"}.get(kind, "long")
        for name in ("low", "high"):
            bound = row[f"{name}{index}"]
            is_kept = kind is not StatisticsKind.DOUBLE or bound is None or abs(bound) < LARGEST_BOUND
            figures[f"{name}_{end}"] = bound if is_kept else None
    if kind.has_distinct_values:
        data = merged_data(row[f"sketch{index}"])
        # An empty sketch counts one value.
        figures["distinct"] = written_count(data) if nulls < count else 0
        figures["bit_vector"] = data
    return figures


def column_values(row: Any) -> ColumnValues:
    """The values in a row of `COLUMN`, as a mapping or Spark's `Row`."""
    from decimal import Decimal

    kind = StatisticsKind[row["kind"].upper()]

    def bound(end: str) -> Bound | None:
        if kind is StatisticsKind.DECIMAL:
            text = row[f"{end}_decimal"]
            return None if text is None else Decimal(text)
        value: Bound | None = row[f"{end}_double" if kind is StatisticsKind.DOUBLE else f"{end}_long"]
        return value

    bit_vector = row["bit_vector"]
    return ColumnValues(
        kind,
        nulls=row["nulls"],
        distinct=row["distinct"],
        low=bound("low") if kind.has_bounds else None,
        high=bound("high") if kind.has_bounds else None,
        average_length=row["average_length"] or 0.0,
        maximum_length=row["maximum_length"] or 0,
        trues=row["trues"] or 0,
        falses=row["falses"] or 0,
        bit_vector=None if bit_vector is None else bytes(bit_vector),
    )
