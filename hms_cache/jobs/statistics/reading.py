"""The rows of a table's partitions, as Spark reads them, each with the number of its partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hms_cache.jobs.statistics.columns import StatisticsColumn
from hms_cache.jobs.statistics.data_files import Sample, UnitFiles
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE, values_of_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PARTITIONS_OF_A_SCAN = 500
"""Partitions named in one reading, where not all are read: Spark turns them into one filter."""

PLACE = ("name", "location", "files", "sample_bytes", "all_bytes")
"""Columns of `partition_numbers` that say what a partition is."""

READ_BESIDE = 0.05
"""Bytes that need not be read, of those that must be, that are read all the same: one reading without a filter takes
less than many."""

_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class Portion:
    """Partitions that are read together; `names` is None for a table without partitions."""

    names: tuple[str, ...] | None
    is_whole: bool = True
    """Whether they are all of the table's, so that no filter is needed."""

    sample: Sample | None = None
    """What is read of it; None: all. Then it is one partition, or the table without partitions."""


def portions(
    chosen: Sequence[str] | None, names: Sequence[str] | None, files: Mapping[str | None, UnitFiles]
) -> list[Portion]:
    """The partitions in portions: all at once if what need not be read of the table is next to nothing.

    `names`: of all its partitions; None, as `chosen`, for a table without them.
    """
    if chosen is None or names is None:
        return [Portion(None, sample=files[None].sample)]
    sampled = [name for name in chosen if files[name].sample is not None]
    if sampled:
        whole = [name for name in chosen if files[name].sample is None]
        alone = [Portion((name,), is_whole=False, sample=files[name].sample) for name in sampled]
        return (portions(whole, names, files) if whole else []) + alone
    beside = set(names).difference(chosen)
    if _bytes(beside, files) <= READ_BESIDE * _bytes(chosen, files):
        return [Portion(tuple(chosen), is_whole=True)]
    starts = range(0, len(chosen), PARTITIONS_OF_A_SCAN)
    return [Portion(tuple(chosen[start : start + PARTITIONS_OF_A_SCAN]), is_whole=False) for start in starts]


def _bytes(names: Iterable[str | None], files: Mapping[str | None, UnitFiles]) -> int:
    found = (files[name].figures for name in names if name in files)
    return sum(figures.bytes for figures in found if figures is not None)


def unreadable_partitions(table: Table, names: Sequence[str]) -> list[str]:
    """Partitions that Spark cannot tell apart, or not read: several spellings of one number, or what is no number."""
    numeric = [index for index, key in enumerate(table.partitionKeys) if key.type.lower() in _WHOLE_NUMBERS]
    if not numeric:
        return []
    by_values: dict[tuple[str | int, ...], list[str]] = {}
    unreadable = []
    for name in names:
        values: list[str | int] = list(values_of_name(name))
        try:
            for index in numeric:
                if values[index] != DEFAULT_PARTITION_VALUE:
                    values[index] = int(values[index])
        except ValueError:
            unreadable.append(name)
            continue
        by_values.setdefault(tuple(values), []).append(name)
    return unreadable + [name for alike in by_values.values() if len(alike) > 1 for name in alike]


def partition_numbers(
    spark: SparkSession, table: Table, names: Sequence[str] | None, files: Mapping[str | None, UnitFiles]
) -> DataFrame:
    """``partition`` (int), ``name``, ``location`` and ``files`` (`data_files.Figures`), of a sample ``sample_bytes``
    and ``all_bytes``, and ``k0``, ``k1``, … of the types of the partition keys.

    A table without partitions is number 0, without a name.
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
    # Of Arrow's columns Spark makes a relation of the driver's, without tasks of Python.
    texts = spark.createDataFrame(pa.table(arrays, schema.names), schema)
    typed = [texts[f"k{index}"].try_cast(_key_type(key.type)).alias(f"k{index}") for index, key in enumerate(keys)]
    return texts.select("partition", *PLACE, *typed)


def _value(text: str) -> str | None:
    return None if text == DEFAULT_PARTITION_VALUE else text


def _key_type(hive_type: str) -> str:
    return "string" if hive_type.lower().startswith(("char", "varchar")) else hive_type


_FILE_NAME = "_metadata.file_name"


def knows_files(spark: SparkSession, table: Table) -> bool:
    """Whether Spark can be asked for the rows of some files: of formats that it reads itself (Parquet, ORC), and not of
    those that it reads through Hive's classes."""
    spark.catalog.refreshTable(f"`{table.dbName}`.`{table.tableName}`")
    try:
        spark.table(f"`{table.dbName}`.`{table.tableName}`").select(_FILE_NAME)
    except AnalysisException:
        return False
    return True


def no_rows(spark: SparkSession, columns: Sequence[StatisticsColumn]) -> DataFrame:
    """What `rows_of` answers of a table without files: in an object store its directory is gone with the last one, and
    Spark refuses to read what does not exist."""
    types = (_key_type(column.type).replace("timestamp with local time zone", "timestamp") for column in columns)
    fields = ["partition int", *(f"c{index} {name}" for index, name in enumerate(types))]
    return spark.createDataFrame([], StructType.fromDDL(", ".join(fields)))


def rows_of(
    spark: SparkSession, table: Table, columns: Sequence[StatisticsColumn], portion: Portion, numbers: DataFrame
) -> DataFrame:
    """``partition``, then ``c0``, ``c1``, … for `transform`. `numbers`: `partition_numbers` of the portion."""
    from pyspark.sql import functions as f

    name = f"`{table.dbName}`.`{table.tableName}`"
    # A session remembers files; those of a table that changed are others.
    spark.catalog.refreshTable(name)
    rows = spark.table(name)
    if portion.sample is not None:
        # Spark opens no other file: it knows their names from its listing.
        rows = rows.where(f.col(_FILE_NAME).isin(list(portion.sample.names)))
    values = [rows[f"`{column.name}`"].alias(f"c{index}") for index, column in enumerate(columns)]
    if portion.names is None:
        return rows.select(f.lit(0).cast("int").alias("partition"), *values)
    if not portion.is_whole:
        rows = rows.where(_names_filter(rows, table, portion.names))
    keys = [_key_value(rows[f"`{key.name}`"], key.type) for key in table.partitionKeys]
    small = f.broadcast(numbers.drop(*PLACE))
    condition = f.lit(True)
    for index, key in enumerate(keys):
        condition = condition & key.eqNullSafe(small[f"k{index}"])
    return rows.join(small, condition).select(small["partition"], *values)


def _key_value(column: Column, hive_type: str) -> Column:
    """Null for no value: in tables that Spark reads through Hive's classes, text is then the directory's."""
    from pyspark.sql import functions as f

    return f.nullif(column, f.lit(DEFAULT_PARTITION_VALUE)) if _key_type(hive_type) == "string" else column


def _names_filter(rows: DataFrame, table: Table, names: Sequence[str]) -> Column:
    """At least the named partitions, as Spark gives it to the metastore: values of a key, by those of the others."""
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
    # A balanced tree: Spark walks it with one stack frame for each level.
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
