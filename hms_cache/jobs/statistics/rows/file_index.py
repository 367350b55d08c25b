"""Rows of Parquet and ORC files by directory, each with the number of its directory.

When Spark reads a table of the session's catalog, it asks the metastore for partitions, only in the default catalog,
and distinguishes their rows by the values of the keys. Here it receives the directories instead, each with a number
(`PartitionSpec` of an `InMemoryFileIndex`), and reads only these, independent of the table's catalog and of the
spelling of its keys. Spark (4.1) reads such tables with the same classes.
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
"""The column that Spark fills from the directory; no column of a table has this name."""

_FORMATS = {"parquet": "parquet.ParquetFileFormat", "orc": "orc.OrcFileFormat"}
_OF_SETTINGS = "spark.sql.hive.convertMetastore"


def format_of(table: Table) -> str | None:
    """The format of a table whose files Spark reads itself; None if it reads them through Hive's classes, or with
    options of the table."""
    provider = (table.parameters or {}).get("spark.sql.sources.provider", "hive").lower()
    serde = table.sd.serdeInfo if table.sd is not None else None
    library = (serde.serializationLib or "").lower() if serde is not None else ""
    if provider != "hive":
        return None
    return next((name for name in _FORMATS if name in library), None)


def reads_files(spark: SparkSession, table: Table) -> bool:
    """Whether `rows_of_directories` reads the table like the session's own reader."""
    name = format_of(table)
    return name is not None and spark.conf.get(f"{_OF_SETTINGS}{name.capitalize()}", "true") == "true"


def schema_of(table: Table) -> StructType:
    """The table's columns as Spark types. Raises ParseException for an unknown type.

    In Parquet, small integers are read in the width of the files: for a number that is too large for its column, Spark
    would keep the lower bits.
    """
    widened = dict.fromkeys(("tinyint", "smallint"), "int") if format_of(table) == "parquet" else {}
    names = ("`" + field.name.lower().replace("`", "``") + "`" for field in table.sd.cols or ())
    types = (widened.get(field.type.lower(), spark_type(field.type)) for field in table.sd.cols or ())
    return StructType.fromDDL(", ".join(map(" ".join, zip(names, types, strict=True))))


_TEXTS = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)")


def spark_type(hive_type: str) -> str:
    """The type in which files are read: texts with limited length are plain texts, and there is one type of
    timestamps."""
    return _TEXTS.sub("string", hive_type.lower()).replace("timestamp with local time zone", "timestamp")


def rows_of_directories(
    spark: SparkSession,
    file_format: str,
    columns: StructType,
    directories: Sequence[tuple[int, str]],
    listed: Mapping[int, Listed] | None = None,
) -> DataFrame:
    """The rows of all data files directly in the directories, with the number of their directory in `NUMBER`.

    A directory that does not exist has no rows for Spark; therefore `listed` contains the expected files by number.
    Raises OtherFiles if Spark finds other files, Py4JJavaError if a directory cannot be listed.
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
    """Rows in Spark's internal form, created in one call."""
    schema = StructType([StructField(NUMBER, IntegerType())])
    frame = spark.createDataFrame(pa.table([pa.array(numbers, pa.int32())], [NUMBER]), schema)
    plan: Any = frame
    return plan._jdf.queryExecution().executedPlan().executeCollect()


def _java_schema(jvm: Any, schema: StructType) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
