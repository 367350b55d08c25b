"""Reads values of Parquet and ORC files in the form used by `transform`, if Arrow reads exactly what Spark would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from hms_cache.jobs.statistics.columns import StatisticsColumn, decimal_size
from hms_cache.metadata.statistics_values import StatisticsKind

BYTES_OF_A_BATCH = 64 << 20
"""Maximum decoded size of one column in a batch, if all values had the maximum length: a file with many repetitions of
one text decodes to many times its own size."""

ROWS_OF_A_BATCH = 65_536

_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_CALENDAR_SINCE = b"3.1.0"
"""Earlier versions of Spark wrote old dates and times in the Julian calendar, and read them accordingly."""

_EXACT_DIGITS = 15
"""Numbers with at most this many digits, and powers of ten up to 22, are exact doubles, so their quotient is the
nearest double."""


class DeferredToSpark(Exception):
    """It is not certain that Spark would read the same from this file."""


class ParquetRows:
    """Reads Parquet files."""

    def __init__(self, columns: Sequence[StatisticsColumn]) -> None:
        self._columns = columns
        self._has_dates_or_timestamps = any(column.kind in _DATES_AND_TIMESTAMPS for column in columns)
        self._last: tuple[pa.Schema, list[str]] | None = None
        """The schema of the previous file, and the columns to read: most files of a table have the same schema."""

    def batches(self, content: bytes) -> Iterator[pa.RecordBatch]:
        """The columns that the file has, for `values_of`. Raises DeferredToSpark, ArrowException, OSError."""
        file = parquet.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        metadata, schema = file.metadata, file.schema_arrow
        if self._has_dates_or_timestamps:
            metadata_values = metadata.metadata or {}
            is_old = metadata_values.get(_VERSION, _CALENDAR_SINCE) < _CALENDAR_SINCE
            if is_old or any(key in metadata_values for key in _LEGACY):
                raise DeferredToSpark
        if self._last is not None and self._last[0].equals(schema):
            column_names = self._last[1]
        else:
            column_names = self._column_names(file, schema)
        rows = metadata.num_rows
        if not column_names:
            for start in range(0, rows, ROWS_OF_A_BATCH):
                yield pa.RecordBatch.from_arrays([pa.nulls(min(ROWS_OF_A_BATCH, rows - start))], [_NO_COLUMN])
            return
        yield from file.iter_batches(_rows_of_a_batch(metadata), columns=column_names, use_threads=False)

    def _column_names(self, file: parquet.ParquetFile, schema: pa.Schema) -> list[str]:
        names = _names(schema)
        has_local = False
        for column in self._columns:
            if column.name in names:
                found = schema.field(names[column.name]).type
                is_local = pa.types.is_timestamp(found) and found.tz is None
                # 96-bit timestamps in UTC have no time zone either.
                if is_local and not _is_int96(file, names[column.name]):
                    raise DeferredToSpark
                if not _is_read(column, found):
                    raise DeferredToSpark
                has_local = has_local or is_local
        column_names = [names[column.name] for column in self._columns if column.name in names]
        # Those of 96 and of 64 bits have the same Arrow type.
        self._last = None if has_local else (schema, column_names)
        return column_names


class OrcRows:
    """Reads ORC files that have the table's columns in its order: Hive matches them by position
    (`orc.force.positional.evolution`). Files with timestamps are not read, because their calendar is unknown."""

    def __init__(self, columns: Sequence[StatisticsColumn], names: Sequence[str]) -> None:
        """:param names: all columns of the table, in lower case."""
        self._columns = columns
        self._all = list(names)

    def batches(self, content: bytes) -> Iterator[pa.RecordBatch]:
        """See `ParquetRows.batches`."""
        file = orc.ORCFile(pa.BufferReader(content))
        schema = file.schema
        names = _names(schema)
        if list(names) != self._all:
            raise DeferredToSpark
        for column in self._columns:
            if column.kind in _DATES_AND_TIMESTAMPS or not _is_read(column, schema.field(names[column.name]).type):
                raise DeferredToSpark
        column_names = [names[column.name] for column in self._columns]
        for number in range(file.nstripes):
            yield file.read_stripe(number, columns=column_names)


_NO_COLUMN = ""
"""For a file without any of the table's columns."""


def _is_int96(file: parquet.ParquetFile, path: str) -> bool:
    columns = map(file.schema.column, range(len(file.schema)))
    return any(one.path == path and one.physical_type == "INT96" for one in columns)


_DATES_AND_TIMESTAMPS = frozenset({StatisticsKind.DATE, StatisticsKind.TIMESTAMP})


def _names(schema: pa.Schema) -> dict[str, str]:
    """Names of columns in the file, by lower-case name, because Spark is case-insensitive."""
    found = {name.lower(): name for name in schema.names}
    if len(found) < len(schema.names):
        raise DeferredToSpark
    return found


def _rows_of_a_batch(metadata: Any) -> int:
    longest = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        longest = max(longest, *(group.column(index).total_uncompressed_size for index in range(group.num_columns)))
    return max(1, min(ROWS_OF_A_BATCH, BYTES_OF_A_BATCH // longest))


_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
}
_OF_BYTES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _is_read(column: StatisticsColumn, found: pa.DataType) -> bool:
    """Whether a column with this type in a file can be read without conversion."""
    if column.kind.has_lengths:
        return found in _OF_BYTES
    if column.kind is StatisticsKind.DECIMAL:
        return bool(found == pa.decimal128(*decimal_size(column.type)))
    if column.kind is StatisticsKind.TIMESTAMP:
        return pa.types.is_timestamp(found) and found.unit in ("us", "ms")
    return bool(found == _TYPES.get(column.type))


def values_of(rows: pa.Table, columns: Sequence[StatisticsColumn]) -> pa.Table:
    """``v0``, ``v1``, …, and for decimals ``h…``, of rows with one schema; null for missing columns."""
    found = {name.lower(): _one_array(rows.column(index)) for index, name in enumerate(rows.schema.names)}
    arrays: dict[str, pa.Array] = {}
    for index, column in enumerate(columns):
        values = found.get(column.name)
        if values is None:
            arrays[f"v{index}"] = pa.nulls(rows.num_rows, value_type(column))
        else:
            arrays[f"v{index}"] = _CONVERT[column.kind](values, column)
        if column.kind is StatisticsKind.DECIMAL:
            arrays[f"h{index}"] = _nearest_doubles(arrays[f"v{index}"], column)
    return pa.table(arrays)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def value_type(column: StatisticsColumn) -> pa.DataType:
    """The Arrow type of the values that `transform` reduces."""
    if column.kind is StatisticsKind.DECIMAL:
        return pa.decimal128(*decimal_size(column.type))
    return _VALUE_TYPES.get(column.kind, pa.int64())


_VALUE_TYPES = {
    StatisticsKind.BOOLEAN: pa.bool_(),
    StatisticsKind.DOUBLE: pa.float64(),
    StatisticsKind.STRING: pa.string(),
    StatisticsKind.BINARY: pa.binary(),
}


def _cast(values: pa.Array, column: StatisticsColumn) -> pa.Array:
    column_names = value_type(column)
    return (
        values
        if values.type == column_names
        else pc.cast(values, options=pc.CastOptions(column_names, allow_invalid_utf8=True))
    )


_Convert = Callable[[pa.Array, StatisticsColumn], pa.Array]
_CONVERT: dict[StatisticsKind, _Convert] = dict.fromkeys(StatisticsKind, _cast) | {
    StatisticsKind.DATE: lambda values, _: values.cast(pa.int32()).cast(pa.int64()),
    StatisticsKind.TIMESTAMP: lambda values, _: values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()),
}


def _nearest_doubles(values: pa.Array, column: StatisticsColumn) -> pa.Array:
    """Converts decimals like `BigDecimal.doubleValue`."""
    digits, scale = decimal_size(column.type)
    if digits > _EXACT_DIGITS:
        return pa.array([None if value is None else float(value) for value in values.to_pylist()], pa.float64())
    # The lower half of the 16 bytes contains numbers with so few digits, including the sign.
    data = values.buffers()[1]
    numbers = np.zeros(0, np.int64) if data is None else np.frombuffer(data, np.int64)[::2]
    unscaled = numbers[values.offset : values.offset + len(values)]
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.where(is_null, 0, unscaled) / 10.0**scale, mask=is_null)
