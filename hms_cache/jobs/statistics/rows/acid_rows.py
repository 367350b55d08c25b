"""Rows of transactional tables that support deletes: the added rows without the deleted ones.

A file has Hive's columns in addition to the row: whether it was added or deleted, and the write id, writer (`bucket`)
and number of the addition, which identify the row within its partition. Sources: `OrcRecordUpdater`,
`VectorizedOrcAcidRowBatchReader` (Hive 4.0.1).

Spark's workers read the files with Arrow: Java's ORC library treats a file with these columns as one with those of the
row (`SchemaEvolution`), so Spark's own reader never sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hms_cache.jobs.files.directories import DirectoryLister
from hms_cache.jobs.statistics.rows.file_index import NUMBER
from hms_cache.store.warehouse.locations import Location

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_ROW, _WRITER, _OPERATION = "row", "currentTransaction", "operation"
_NAME = ["originalTransaction", "bucket", "rowId"]
_DELETE = 2

_OF_HIVE = StructType(
    [
        StructField(NUMBER, IntegerType(), False),
        StructField(_OPERATION, IntegerType()),
        StructField(_NAME[0], LongType()),
        StructField(_NAME[1], IntegerType()),
        StructField(_NAME[2], LongType()),
        StructField(_WRITER, LongType()),
    ]
)
_DIRECTORIES = StructType([StructField(NUMBER, IntegerType(), False), StructField("location", StringType(), False)])

Directories = Sequence[tuple[int, str]]
"""Locations, each with the number of its partition."""


def rows_not_deleted(
    spark: SparkSession,
    columns: StructType,
    added: Directories,
    deleted: Directories,
    hidden: Mapping[int, Sequence[int]],
) -> DataFrame:
    """The remaining rows of a table with these columns, except those of complex types, with the number of their
    partition in `NUMBER`.

    :param hidden: by that number, write ids whose rows are ignored.
    """
    from pyspark.sql import functions as f

    complex_types = (ArrayType, MapType, StructType)
    positions = [index for index, field in enumerate(columns) if not isinstance(field.dataType, complex_types)]
    plain = StructType([columns[index] for index in positions])
    left = _seen(_events(spark, added, plain, positions), hidden).where(f"{_OPERATION} <> {_DELETE}")
    if deleted:
        gone = _seen(_events(spark, deleted, StructType([]), []), hidden).where(f"{_OPERATION} = {_DELETE}")
        left = left.join(gone.select(NUMBER, *_NAME), [NUMBER, *_NAME], "left_anti")
    values = [f.col(f"`{_prefixed(field.name)}`").cast(field.dataType).alias(field.name) for field in plain]
    return left.select(NUMBER, *values)


def _prefixed(name: str) -> str:
    """Name of a column of the row, which may otherwise equal one of Hive's."""
    return f"{_ROW} {name}"


def _seen(events: DataFrame, hidden: Mapping[int, Sequence[int]]) -> DataFrame:
    from pyspark.sql import functions as f

    for number, write_ids in hidden.items():
        events = events.where((f.col(NUMBER) != number) | ~f.col(_WRITER).isin(list(write_ids)))
    return events


def _events(spark: SparkSession, directories: Directories, columns: StructType, positions: Sequence[int]) -> DataFrame:
    """The events in the directories' files, with these columns of rows, which are at these positions."""
    # Hive's timestamps have no time zone, and Arrow reads them as such.
    as_read = [TimestampNTZType() if isinstance(field.dataType, TimestampType) else field.dataType for field in columns]
    fields = [StructField(_prefixed(field.name), kind) for field, kind in zip(columns, as_read, strict=True)]
    schema = StructType([*_OF_HIVE.fields, *fields])
    places = spark.createDataFrame(list(directories), _DIRECTORIES)
    places = places.repartition(max(1, min(len(directories), 4 * spark.sparkContext.defaultParallelism)))
    return places.mapInArrow(_reader(columns.names, positions, schema), schema)


def _reader(
    columns: Sequence[str], positions: Sequence[int], schema: StructType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow_schema: Any = to_arrow_schema(schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lister = DirectoryLister()
        for batch in batches:
            for place in batch.to_pylist():
                for stripe in _stripes(lister, Location.parse(place["location"]), bool(columns)):
                    yield from _in_schema(stripe, place[NUMBER], columns, positions, arrow_schema).to_batches()

    return read


def _stripes(lister: DirectoryLister, location: Location, with_rows: bool) -> Iterator[pa.Table]:
    """The content of the files in a directory, in parts of some MB."""
    import pyarrow as pa
    from pyarrow import orc

    column_names = [_OPERATION, *_NAME, _WRITER] + ([_ROW] if with_rows else [])
    for path, _ in lister.data_files(location):
        file_system, opened = lister.open(Location(location.scheme, location.authority, path))
        with file_system.open(opened, "rb") as file:
            found = orc.ORCFile(pa.PythonFile(file, mode="r"))
            for number in range(found.nstripes):
                yield pa.Table.from_batches([found.read_stripe(number, columns=column_names)])


def _in_schema(
    stripe: pa.Table, partition: int, columns: Sequence[str], positions: Sequence[int], schema: pa.Schema
) -> pa.Table:
    """Hive matches columns of a row by position, even after a column was renamed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = stripe.num_rows
    arrays: list[Any] = [pa.array([partition] * count, pa.int32())]
    arrays += [stripe[name].cast(schema.field(name).type) for name in (_OPERATION, *_NAME, _WRITER)]
    if columns:
        row = stripe[_ROW].combine_chunks()
        for name, position in zip(columns, positions, strict=True):
            kind = schema.field(_prefixed(name)).type
            if position >= row.type.num_fields:  # the file is older than the column
                arrays.append(pa.nulls(count, kind))
            else:
                # Spark supports at most microseconds; a number out of range is an error.
                arrays.append(pc.cast(pc.struct_field(row, position), kind, safe=not pa.types.is_timestamp(kind)))
    return pa.Table.from_arrays(arrays, schema=schema)
