"""Partial statistics: one row for each partition among some rows, computed with Arrow and NumPy.

The rows read by a task are reduced here before anything is shuffled. Counts are summed up, bounds and lengths have
extremes, sketches are merged, so Spark combines partial rows with its own aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from hms_cache.jobs.statistics.columns import StatisticsColumn, decimal_size
from hms_cache.jobs.statistics.hashes import Hashes, hash_bytes, hash_doubles, hash_longs
from hms_cache.jobs.statistics.sketches import sketches_of_groups
from hms_cache.metadata.statistics_values import StatisticsKind

ROWS_OF_A_PARTIAL = 200_000
"""Number of rows collected before they are reduced: more rows mean fewer partial rows to shuffle, but some ten MB of
values per column."""

BYTES_OF_A_PARTIAL = 64 << 20
"""The same limit in bytes, for wide rows: a task holds a few times that."""

_LONG = LongType()

ReduceBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def partial_schema(columns: Sequence[StatisticsColumn]) -> StructType:
    """Schema of a partial row: ``partition`` and ``rows``, and figures with the number of their column."""
    fields = [StructField("partition", IntegerType()), StructField("rows", _LONG)]
    for index, column in enumerate(columns):
        figures: dict[str, DataType] = {"nulls": _LONG}
        if column.kind is StatisticsKind.BOOLEAN:
            figures["trues"] = _LONG
        if column.kind.has_lengths:
            figures |= {"length_sum": _LONG, "length_max": _LONG}
        if column.kind.has_bounds:
            bound = _bound_type(column)
            figures |= {"low": bound, "high": bound}
        if column.kind.has_distinct_values:
            figures["sketch"] = BinaryType()
        fields += [StructField(f"{name}{index}", kind) for name, kind in figures.items()]
    return StructType(fields)


def _bound_type(column: StatisticsColumn) -> DataType:
    if column.kind is StatisticsKind.DECIMAL:
        return DecimalType(*decimal_size(column.type))
    return DoubleType() if column.kind is StatisticsKind.DOUBLE else _LONG


def reducer(columns: Sequence[StatisticsColumn], schema: pa.Schema) -> ReduceBatches:
    """A function for `mapInArrow`: takes batches of ``partition, v0, v1, …`` (and ``h…``), returns partial rows of this
    schema."""

    def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for gathered in _portions(batches):
            yield from partial_rows(gathered, columns, schema).to_batches()

    return reduce


def _portions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_OF_A_PARTIAL or size >= BYTES_OF_A_PARTIAL:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def partial_rows(rows: pa.Table, columns: Sequence[StatisticsColumn], schema: pa.Schema) -> pa.Table:
    """One row per partition among the rows."""
    partitions, groups = np.unique(rows["partition"].to_numpy(), return_inverse=True)
    grouping = _Grouping(groups.astype(np.int64), len(partitions))
    found: dict[str, Any] = {
        "partition": partitions,
        "rows": np.bincount(grouping.groups, minlength=grouping.count),
    }
    for index, column in enumerate(columns):
        values = _one_array(rows[f"v{index}"])
        hashed = _one_array(rows[f"h{index}"]) if column.kind is StatisticsKind.DECIMAL else values
        for name, figures in _figures(grouping, column.kind, values, hashed).items():
            found[f"{name}{index}"] = figures
    return pa.table(
        [pa.array(found[field.name]).cast(field.type) for field in schema],
        schema=schema,
    )


class _Grouping:
    """Rows with the number of their group."""

    def __init__(self, groups: npt.NDArray[np.int64], count: int) -> None:
        self.groups = groups
        self.count = count

    def aggregates(self, **aggregations: tuple[pa.Array, str]) -> dict[str, Any]:
        """An aggregate of each array, by group; null if a group has no value."""
        table = pa.table({"group": self.groups} | {name: values for name, (values, _) in aggregations.items()})
        grouped = table.group_by("group", use_threads=False).aggregate(
            [(name, function) for name, (_, function) in aggregations.items()]
        )
        grouped = grouped.sort_by("group").combine_chunks()
        return {name: _one_array(grouped[f"{name}_{function}"]) for name, (_, function) in aggregations.items()}


def _figures(grouping: _Grouping, kind: StatisticsKind, values: pa.Array, hashed: pa.Array) -> dict[str, Any]:
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    figures: dict[str, Any] = {"nulls": np.bincount(grouping.groups[is_null], minlength=grouping.count)}
    if kind is StatisticsKind.BOOLEAN:
        return figures | grouping.aggregates(trues=(values.cast(pa.int64()), "sum"))
    if kind.has_lengths:
        length_of = pc.utf8_length if kind is StatisticsKind.STRING else pc.binary_length
        lengths = length_of(values).cast(pa.int64())
        figures |= grouping.aggregates(length_sum=(lengths, "sum"), length_max=(lengths, "max"))
    if kind.has_bounds:
        lows, highs = _doubles(values) if kind is StatisticsKind.DOUBLE else (values, values)
        figures |= grouping.aggregates(low=(lows, "min"), high=(highs, "max"))
    if kind.has_distinct_values:
        present = ~is_null
        # Hive counts seconds.
        is_timestamp = kind is StatisticsKind.TIMESTAMP
        hashes = hash_longs(hashed.drop_null().to_numpy() // 1_000_000) if is_timestamp else _hashes(hashed, present)
        figures["sketch"] = sketches_of_groups(grouping.groups[present], hashes, grouping.count)
    return figures


def _doubles(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Candidates for the lowest and for the highest value. NaN is greater than all numbers, as in Java's order and
    Spark's; here it is represented by infinity, which is not written as a bound either."""
    is_nan = pc.is_nan(values)
    return tuple(pc.if_else(is_nan, pa.scalar(one, pa.float64()), values) for one in (None, float("inf")))


def _hashes(values: pa.Array, present: npt.NDArray[np.bool_]) -> Hashes:
    if pa.types.is_floating(values.type):
        return hash_doubles(values.drop_null().to_numpy(zero_copy_only=False))
    if pa.types.is_integer(values.type):
        return hash_longs(values.drop_null().to_numpy(zero_copy_only=False))
    texts = values.cast(pa.large_binary())
    _, offset_buffer, data_buffer = texts.buffers()
    if offset_buffer is None or data_buffer is None:
        return hash_bytes(np.empty(0, np.uint8), *(np.zeros(int(present.sum()), np.int64) for _ in range(2)))
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = offsets[:-1][present], np.diff(offsets)[present]
    return hash_bytes(np.frombuffer(data_buffer, np.uint8), starts, lengths)


def _one_array(column: Any) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], column.type)
    return combined
