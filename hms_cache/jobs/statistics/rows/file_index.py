"""Rows of Parquet and ORC files by the directories that they lie in: each with the number of its directory.

When Spark reads a table of its session's catalog, it asks the metastore for partitions, of the default catalog only,
and tells their rows apart by the values of the keys. Here it is told the directories instead, each with a number
(`PartitionSpec` of an `InMemoryFileIndex`), and reads these and no others, whatever catalog the table is in and however
its keys are spelled. The classes are those that Spark (4.1) reads such tables with itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from hms_cache.thrift_gen.hive_metastore.ttypes import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = "_number_of_directory"
"""The column that Spark takes of the directory; no column of a table is named so."""

_FORMATS = {"parquet": "parquet.ParquetFileFormat", "orc": "orc.OrcFileFormat"}
_SOURCES = "org.apache.spark.sql.execution.datasources"
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


class OtherFiles(Exception):
    """Spark sees other files in directories than were listed."""

    def __init__(self, numbers: Collection[int]) -> None:
        """`numbers` of the directories."""
        super().__init__(OTHER_FILES)
        self.numbers = frozenset(numbers)


OTHER_FILES = (
    "Spark sees other files in it than were listed: they changed meanwhile, have names that Spark passes over and Hive"
    " does not or the other way round, or its settings lead to another store"
)


class Listed(NamedTuple):
    """Data files as they were listed."""

    files: int
    bytes: int


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
    hadoop = session.sessionState().newHadoopConf()
    sources = _package(jvm, _SOURCES)
    path, partition_path = jvm.org.apache.hadoop.fs.Path, sources.PartitionPath
    numbers = _rows(spark, [number for number, _ in directories])
    partitions, roots = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for row, (_, directory) in zip(numbers, directories, strict=True):
        place = _qualified(path(_with_root(directory)), directory, hadoop)
        partitions.add(partition_path(row, place))
        roots.add(place)
    to_seq, no_options = jvm.PythonUtils.toSeq, jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    of_directory = _java_schema(jvm, StructType([StructField(NUMBER, IntegerType())]))
    index = sources.InMemoryFileIndex(
        session,
        to_seq(roots),
        no_options,
        jvm.scala.Option.empty(),
        getattr(getattr(sources, "NoopCache$"), "MODULE$"),
        jvm.scala.Option.apply(sources.PartitionSpec(of_directory, to_seq(partitions))),
        jvm.scala.Option.empty(),
    )
    if listed is not None and index.sizeInBytes() != sum(one.bytes for one in listed.values()):
        places = [(number, str(place.toUri())) for (number, _), place in zip(directories, roots, strict=True)]
        _require_listed(list(index.inputFiles()), places, listed)
    relation = sources.HadoopFsRelation(
        index,
        of_directory,
        _java_schema(jvm, columns),
        jvm.scala.Option.empty(),
        _package(jvm, f"{_SOURCES}.{_FORMATS[file_format]}")(),
        no_options,
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _require_listed(seen: Sequence[str], places: Sequence[tuple[int, str]], listed: Mapping[int, Listed]) -> None:
    """Raises OtherFiles unless so many of these files (as URIs) are read of the places' directories."""
    read: dict[str, int] = {}
    for file in map(_plain, seen):
        above, _, name = file.rpartition("/")
        # What Spark passes over: `PartitioningAwareFileIndex.isDataPath`.
        if not name.startswith(".") and not (name.startswith("_") and "=" not in name):
            read[above] = read.get(above, 0) + 1
    found = dict.fromkeys(listed, 0)
    for number, place in places:
        found[number] = found.get(number, 0) + read.get(_plain(place).rstrip("/"), 0)
    others = [number for number, files in found.items() if files != listed[number].files]
    if others:
        raise OtherFiles(others)


def _plain(uri: str) -> str:
    """One of the spellings of a place on this machine."""
    return _LOCAL.sub("file:/", uri)


def _with_root(location: str) -> str:
    """As Hadoop has the root of a bucket: without the slash a path is one below the user's directory."""
    return f"{location}/" if _BUCKET.fullmatch(location) else location


_BUCKET = re.compile(r"[a-z0-9]+://[^/]+")
_LOCAL = re.compile(r"\Afile:/+")


def _package(jvm: Any, name: str) -> Any:
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


def _rows(spark: SparkSession, numbers: Sequence[int]) -> Any:
    """As many rows of Spark's own form, made in one call."""
    schema = StructType([StructField(NUMBER, IntegerType())])
    frame = spark.createDataFrame(pa.table([pa.array(numbers, pa.int32())], [NUMBER]), schema)
    plan: Any = frame
    return plan._jdf.queryExecution().executedPlan().executeCollect()


def _java_schema(jvm: Any, schema: StructType) -> Any:
    return jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())


_NEEDS_NOTHING = re.compile(r"file:/|[a-z0-9]+://[^/]")


def _qualified(place: Any, location: str, hadoop: Any) -> Any:
    """With the scheme and authority that Spark's listing will tell it with."""
    if _NEEDS_NOTHING.match(location):
        return place
    file_system = place.getFileSystem(hadoop)
    return place.makeQualified(file_system.getUri(), file_system.getWorkingDirectory())
