"""Rows of Parquet and ORC files by the directories that they lie in: each with the number of its directory.

When Spark reads a table of its session's catalog, it asks the metastore for partitions, of the default catalog only,
and tells their rows apart by the values of the keys. Here it is told the directories instead, each with a number
(`PartitionSpec` of an `InMemoryFileIndex`), and reads these and no others, whatever catalog the table is in and however
its keys are spelled. The classes are those that Spark (4.1) reads such tables with itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from hms_cache.jobs.statistics.rows.listed_files import (
    SOURCES,
    Listed,
    file_index,
    package,
    qualified_paths,
    require_listed,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = "_number_of_directory"
"""The column that Spark takes of the directory; no column of a table is named so."""

_FORMATS = {"parquet": "parquet.ParquetFileFormat", "orc": "orc.OrcFileFormat"}
_OF_SETTINGS = "spark.sql.hive.convertMetastore"


def format_of(table: Table) -> str | None:
    """The format of a table whose files Spark reads by itself; None where it does so through Hive's classes, or by
    options that the table has for it."""
    provider = (table.parameters or {}).get("spark.sql.sources.provider", "hive").lower()
    serde = table.sd.serdeInfo if table.sd is not None else None
    library = (serde.serializationLib or "").lower() if serde is not None else ""
    if provider != "hive":
        return None
    return next((name for name in _FORMATS if name in library), None)


def reads_files(spark: SparkSession, table: Table) -> bool:
    """Whether `rows_of_directories` reads the table as the session's own reading would."""
    name = format_of(table)
    return name is not None and spark.conf.get(f"{_OF_SETTINGS}{name.capitalize()}", "true") == "true"


def schema_of(table: Table) -> StructType:
    """The table's columns as Spark has them. Raises ParseException for a type that it does not know.

    In Parquet small integers are read in the width that their files have: of a number that is too large for its column,
    Spark would keep the lower bits.
    """
    widened = dict.fromkeys(("tinyint", "smallint"), "int") if format_of(table) == "parquet" else {}
    names = ("`" + field.name.lower().replace("`", "``") + "`" for field in table.sd.cols or ())
    types = (widened.get(field.type.lower(), spark_type(field.type)) for field in table.sd.cols or ())
    return StructType.fromDDL(", ".join(map(" ".join, zip(names, types, strict=True))))


_TEXTS = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)")


def spark_type(hive_type: str) -> str:
    """As files are read: texts of a limited length are texts, and moments have one type."""
    return _TEXTS.sub("string", hive_type.lower()).replace("timestamp with local time zone", "timestamp")


def rows_of_directories(
    spark: SparkSession,
    file_format: str,
    columns: StructType,
    directories: Sequence[tuple[int, str]],
    listed: Mapping[int, Listed] | None = None,
) -> DataFrame:
    """The rows of all data files in the directories, not below them, with the number of their directory in `NUMBER`.

    A directory that does not exist has none: so `listed` says by number what is in them. Raises OtherFiles if Spark
    sees something else, Py4JJavaError where one cannot be listed.
    """
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    sources = package(jvm, SOURCES)
    numbers = _rows(spark, [number for number, _ in directories])
    partitions = jvm.java.util.ArrayList()
    places = list(qualified_paths(spark, directories))
    partition_path = sources.PartitionPath
    for row, (_, place) in zip(numbers, places, strict=True):
        partitions.add(partition_path(row, place))
    of_directory = _java_schema(jvm, StructType([StructField(NUMBER, IntegerType())]))
    specification = sources.PartitionSpec(of_directory, jvm.PythonUtils.toSeq(partitions))
    index = file_index(spark, [place for _, place in places], specification)
    if listed is not None:
        require_listed(index, listed, lambda: places)
    relation = sources.HadoopFsRelation(
        index,
        of_directory,
        _java_schema(jvm, columns),
        jvm.scala.Option.empty(),
        package(jvm, f"{SOURCES}.{_FORMATS[file_format]}")(),
        jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _rows(spark: SparkSession, numbers: Sequence[int]) -> Any:
    """As many rows of Spark's own form, made in one call."""
    schema = StructType([StructField(NUMBER, IntegerType())])
    frame = spark.createDataFrame(pa.table([pa.array(numbers, pa.int32())], [NUMBER]), schema)
    plan: Any = frame
    return plan._jdf.queryExecution().executedPlan().executeCollect()


def _java_schema(jvm: Any, schema: StructType) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
