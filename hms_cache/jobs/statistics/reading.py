"""The rows of a table's partitions, read by Spark, each with the number of its partition.

Parquet and ORC are read by directory (`rows.file_index`). Other formats are read as tables of the session, or, for a
catalog other than the default one, by a plan built here (`rows.hive_relation`); then a row's keys identify its
partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hms_cache.batches import batches
from hms_cache.jobs.statistics.acid import is_insert_only
from hms_cache.jobs.statistics.columns import StatisticsColumn, decimal_size
from hms_cache.jobs.statistics.data_files import Sample, UnitFiles
from hms_cache.jobs.statistics.rows.acid_rows import rows_not_deleted
from hms_cache.jobs.statistics.rows.file_index import (
    NUMBER,
    format_of,
    reads_files,
    rows_of_directories,
    schema_of,
    spark_type,
)
from hms_cache.jobs.statistics.rows.hive_relation import rows_of_partitions
from hms_cache.jobs.statistics.rows.listed_files import Listed, require_listed_of_reading
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import name_of_table
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE, values_of_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITIONS_OF_A_SCAN = 500
"""Maximum number of partitions named in a read that does not include all: Spark turns them into one filter."""

DIRECTORIES_OF_A_READING = 20_000
"""Number of partitions read together by directory: Spark holds their files, some 1 KB each, while it reads them."""

PLACE = ("name", "location", "files", "sample_bytes", "all_bytes")
"""Columns of `partition_numbers` that describe a partition."""

READ_BESIDE = 0.05
"""Fraction of unneeded bytes up to which everything is read: one read without a filter is faster than several."""


def _whole(hive_type: str, text: str) -> int:
    limit = 1 << _BITS[hive_type] - 1
    if not -limit <= int(text) < limit:
        raise ValueError(text)
    return int(text)


def _fraction(hive_type: str, text: str) -> object:
    value = float(text)
    if hive_type == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    return "NaN" if value != value else value  # one value in Spark, but not in Python


def _decimal(hive_type: str, text: str) -> Decimal:
    digits, scale = decimal_size(hive_type)
    value = Decimal(text)
    if value != value.quantize(Decimal(1).scaleb(-scale), context=Context(prec=digits)):
        raise ValueError(text)
    return value


def _date(_hive_type: str, text: str) -> date:
    year, month, day = map(int, text.split("-"))
    return date(year, month, day)


def _timestamp(_hive_type: str, text: str) -> datetime:
    return datetime.fromisoformat(text)


def _truth(_hive_type: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_VALUES: Mapping[str, Callable[[str, str], object]] = {
    **dict.fromkeys(_BITS, _whole),
    **dict.fromkeys(("float", "double"), _fraction),
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "boolean": _truth,
}
"""For the types of partition keys that allow several spellings of a value. Raise ValueError or ArithmeticError for a
text that is invalid for the type, which Spark reads as null."""


@frozen
class PartitionBatch:
    """Partitions that are read together; `names` is None for a table without partitions."""

    names: tuple[str, ...] | None
    is_whole: bool = True
    """Whether it includes all partitions of the table, so that no filter is needed."""

    sample: Sample | None = None
    """The files to read; None: all. Only for a single partition, or a table without partitions."""


def portions(
    chosen: Sequence[str] | None,
    names: Sequence[str] | None,
    files: Mapping[str | None, UnitFiles],
    *,
    by_directory: bool = False,
) -> list[PartitionBatch]:
    """Divides the partitions into portions: a single one if few bytes of the table need not be read.

    :param names: of all partitions; None, like `chosen`, for a table without them.
    :param by_directory: whether partitions that are not chosen are not read, independent of the portion.
    """
    if chosen is None or names is None:
        return [PartitionBatch(None, sample=files[None].sample)]
    sampled = [name for name in chosen if files[name].sample is not None]
    if sampled:
        whole = [name for name in chosen if files[name].sample is None]
        alone = [PartitionBatch((name,), is_whole=False, sample=files[name].sample) for name in sampled]
        return (portions(whole, names, files, by_directory=by_directory) if whole else []) + alone
    if by_directory:
        return [PartitionBatch(tuple(some)) for some in batches(chosen, DIRECTORIES_OF_A_READING)]
    beside = set(names).difference(chosen)
    if _bytes(beside, files) <= READ_BESIDE * _bytes(chosen, files):
        return [PartitionBatch(tuple(chosen), is_whole=True)]
    return [PartitionBatch(tuple(some), is_whole=False) for some in batches(chosen, PARTITIONS_OF_A_SCAN)]


def _bytes(names: Iterable[str | None], files: Mapping[str | None, UnitFiles]) -> int:
    found = (files[name].figures for name in names if name in files)
    return sum(figures.bytes for figures in found if figures is not None)


def unreadable_partitions(table: Table, names: Sequence[str]) -> list[str]:
    """Partitions that Spark cannot distinguish or read: several spellings of one value, or an invalid value."""
    typed = {
        index: partial(_VALUES[kind], key.type.lower())
        for index, key in enumerate(table.partitionKeys)
        if (kind := key.type.lower().partition("(")[0].strip()) in _VALUES
    }
    if not typed:
        return []
    by_values: dict[tuple[object, ...], list[str]] = {}
    unreadable = []
    for name in names:
        texts = values_of_name(name)
        values: list[object] = list(texts)
        try:
            for index, value_of in typed.items():
                if texts[index] == DEFAULT_PARTITION_VALUE:
                    continue
                if "_" in texts[index]:  # Python accepts it in numbers
                    raise ValueError(name)
                values[index] = value_of(texts[index])
        except (ValueError, ArithmeticError):
            unreadable.append(name)
            continue
        by_values.setdefault(tuple(values), []).append(name)
    return unreadable + [name for alike in by_values.values() if len(alike) > 1 for name in alike]


def partition_numbers(
    spark: SparkSession, table: Table, names: Sequence[str] | None, files: Mapping[str | None, UnitFiles]
) -> DataFrame:
    """Returns ``partition`` (int), ``name``, ``location`` and ``files`` (`data_files.Figures`), for a sample
    ``sample_bytes`` and ``all_bytes``, and ``k0``, ``k1``, … with the types of the partition keys.

    A table without partitions has number 0 and no name.
    """
    keys = table.partitionKeys or ()
    fields = [
        *("partition int", "name string", "location string", "files string", "sample_bytes bigint", "all_bytes bigint"),
        *(f"k{index} string" for index in range(len(keys))),
    ]

    def place(unit: str | None) -> tuple[object, ...]:
        found = files[unit]
        of_sample = (None, None) if found.sample is None else (found.sample.bytes, _bytes([unit], files))
        return (found.location, str(found.figures), *of_sample)

    rows: list[tuple[object, ...]] = [(0, None, *place(None))] if names is None else []
    if names is not None:
        rows = [(number, name, *place(name), *map(_value, values_of_name(name))) for number, name in enumerate(names)]
    schema = StructType.fromDDL(", ".join(fields))
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, to_arrow_schema(schema), strict=True)]
    # From Arrow columns Spark creates a local relation, without Python tasks.
    texts = spark.createDataFrame(pa.table(arrays, schema.names), schema)
    typed = [texts[f"k{index}"].try_cast(_key_type(key.type)).alias(f"k{index}") for index, key in enumerate(keys)]
    return texts.select("partition", *PLACE, *typed)


def _value(text: str) -> str | None:
    return None if text == DEFAULT_PARTITION_VALUE else text


def _key_type(hive_type: str) -> str:
    return "string" if hive_type.lower().startswith(("char", "varchar")) else hive_type


def _session_reads(table: Table) -> bool:
    """Whether the table is in the session's catalog."""
    return (table.catName or DEFAULT_CATALOG) == DEFAULT_CATALOG


_FILE_NAME = "_metadata.file_name"


def reads_files_directly(spark: SparkSession, table: Table) -> bool:
    """Whether Spark can read selected files of the table: true for formats that it reads itself (Parquet, ORC), false
    for those that it reads through Hive's classes."""
    if reads_files(spark, table) or not _session_reads(table):
        return reads_files(spark, table)
    spark.catalog.refreshTable(f"`{table.dbName}`.`{table.tableName}`")
    try:
        spark.table(f"`{table.dbName}`.`{table.tableName}`").select(_FILE_NAME)
    except AnalysisException:
        return False
    return True


def no_rows(spark: SparkSession, columns: Sequence[StatisticsColumn]) -> DataFrame:
    """The result of `rows_of` for a table without files: in an object store its directory disappears with the last
    file, and Spark refuses to read a directory that does not exist."""
    types = (spark_type(column.type) for column in columns)
    fields = ["partition int", *(f"c{index} {name}" for index, name in enumerate(types))]
    return spark.createDataFrame([], StructType.fromDDL(", ".join(fields)))


def rows_of(
    spark: SparkSession,
    table: Table,
    columns: Sequence[StatisticsColumn],
    portion: PartitionBatch,
    numbers: DataFrame,
    files: Mapping[str | None, UnitFiles],
) -> DataFrame:
    """Returns ``partition``, then ``c0``, ``c1``, … for `transform`. Raises OtherFiles.

    :param numbers: `partition_numbers` of the portion.
    """
    from pyspark.sql import functions as f

    units: Sequence[str | None] = [None] if portion.names is None else portion.names
    found = [files[unit] for unit in units]
    if not any(one.has_files for one in found):
        return no_rows(spark, columns)
    by_directory = reads_files(spark, table)
    if by_directory:
        rows = _rows_of_directories(spark, table, found)
    else:
        rows = _rows_of_table(spark, table, units, files)
        if portion.names is not None and not portion.is_whole:
            rows = rows.where(_names_filter(rows, table, portion.names))
        directories = [(number, one.location) for number, one in enumerate(found)]
        in_all = _bytes(files if portion.is_whole else units, files)
        require_listed_of_reading(spark, rows, directories, _listed(enumerate(found)), in_all)
    if portion.sample is not None:
        # Spark opens no other files: it knows the names from its listing.
        rows = rows.where(f.col(_FILE_NAME).isin(list(portion.sample.names)))
    if by_directory:
        return rows.select(f.col(NUMBER).alias("partition"), *_values(rows, columns))
    values = _values(rows, columns)
    if portion.names is None:
        return rows.select(f.lit(0).cast("int").alias("partition"), *values)
    keys = [_key_value(rows[f"`{key.name}`"], key.type) for key in table.partitionKeys]
    small = f.broadcast(numbers.drop(*PLACE))
    condition = f.lit(True)
    for index, key in enumerate(keys):
        condition = condition & key.eqNullSafe(small[f"k{index}"])
    return rows.join(small, condition).select(small["partition"], *values)


def whole_table(
    spark: SparkSession, table: Table, names: Sequence[str] | None, files: Mapping[str | None, UnitFiles]
) -> DataFrame:
    """All rows of a table, with its columns under their names. The table must have files."""
    units: Sequence[str | None] = [None] if names is None else names
    if not reads_files(spark, table):
        return _rows_of_table(spark, table, units, files)
    return _rows_of_directories(spark, table, [files[unit] for unit in units if unit in files])


def _rows_of_directories(spark: SparkSession, table: Table, units: Sequence[UnitFiles]) -> DataFrame:
    """The rows of the units, each with its unit's number in `NUMBER`."""
    file_format = format_of(table)
    assert file_format is not None
    plain = [(number, one.location) for number, one in enumerate(units) if one.has_files and one.layout is None]
    layouts = [(number, one.layout) for number, one in enumerate(units) if one.layout is not None]
    places = [(number, directory) for number, layout in layouts for directory in layout.rows]
    columns = schema_of(table)
    if not layouts or is_insert_only(table):
        having = {number for number, _ in plain + places}
        listed = _listed((number, one) for number, one in enumerate(units) if number in having)
        return rows_of_directories(spark, file_format, columns, plain + places, listed)
    deletes = [(number, directory) for number, layout in layouts for directory in layout.deletes]
    hidden = {number: layout.hidden for number, layout in layouts if layout.hidden}
    return rows_not_deleted(spark, columns, places, deletes, hidden)


def _listed(units: Iterable[tuple[int, UnitFiles]]) -> dict[int, Listed]:
    known = ((number, one.figures) for number, one in units)
    return {number: Listed(found.files, found.bytes) for number, found in known if found is not None}


def _rows_of_table(
    spark: SparkSession, table: Table, units: Sequence[str | None], files: Mapping[str | None, UnitFiles]
) -> DataFrame:
    """At least the rows of these partitions, with the keys."""
    if _session_reads(table):
        known_as = f"`{table.dbName}`.`{table.tableName}`"
        # A session caches the list of files; the table may have changed.
        spark.catalog.refreshTable(known_as)
        return spark.table(known_as)
    having = (unit for unit in units if unit is not None and unit in files and files[unit].has_files)
    places = {unit: files[unit].location for unit in having}
    name = name_of_table(table)
    return rows_of_partitions(spark, table, name, places if table.partitionKeys else None)


def _values(rows: DataFrame, columns: Sequence[StatisticsColumn]) -> list[Column]:
    return [rows[f"`{column.name}`"].alias(f"c{index}") for index, column in enumerate(columns)]


def _key_value(column: Column, hive_type: str) -> Column:
    """Null for the default partition: in tables that Spark reads through Hive's classes, a text key has the name of the
    directory."""
    from pyspark.sql import functions as f

    return f.nullif(column, f.lit(DEFAULT_PARTITION_VALUE)) if _key_type(hive_type) == "string" else column


def _names_filter(rows: DataFrame, table: Table, names: Sequence[str]) -> Column:
    """Selects at least the named partitions, in a form that Spark passes to the metastore: values of one key, grouped
    by those of the others."""
    from pyspark.sql import functions as f

    keys = table.partitionKeys
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        *others, last = values_of_name(name)
        groups.setdefault(tuple(others), []).append(last)
    chosen = []
    for prefix, lasts in groups.items():
        condition = _is_one_of(rows, keys[-1].name, keys[-1].type, lasts)
        for key, value in zip(keys, prefix, strict=False):
            condition = _is_one_of(rows, key.name, key.type, [value]) & condition
        chosen.append(condition)
    # A balanced tree: Spark's recursion uses a stack frame per level.
    while len(chosen) > 1:
        chosen = [
            chosen[index] if index + 1 == len(chosen) else chosen[index] | chosen[index + 1]
            for index in range(0, len(chosen), 2)
        ]
    return chosen[0] if chosen else f.lit(False)


def _is_one_of(rows: DataFrame, key: str, hive_type: str, values: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    column = rows[f"`{key}`"]
    present = [f.lit(value).cast(_key_type(hive_type)) for value in values if value != DEFAULT_PARTITION_VALUE]
    condition = column.isin(present) if present else f.lit(False)
    if len(present) == len(values):
        return condition
    no_value = column.isNull()
    if _key_type(hive_type) == "string":
        no_value = no_value | (column == DEFAULT_PARTITION_VALUE)
    return condition | no_value
