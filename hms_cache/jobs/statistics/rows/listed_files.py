"""Checks that Spark finds the listed files, before it reads them.

Files are listed by fsspec's drivers. Spark lists directories again, with Hadoop's drivers and settings, and returns no
rows for a directory that it does not find. If its settings lead to another store, or a table has Spark options that
exclude files, the rows are not those of the files. The classes are those of Spark 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from hms_cache.batches import batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIRECTORIES_OF_A_LISTING = 20_000
"""Number of directories that Spark lists together, for a table that it reads through Hive's classes: some 1 KB per
file."""

OTHER_FILES = (
    "Spark sees other files in it than were listed: they changed meanwhile, have names that Spark passes over and Hive"
    " does not or the other way round, the table has options for Spark that leave some out, or its settings lead to"
    " another store"
)


class OtherFiles(Exception):
    """Spark finds other files in directories than were listed."""

    def __init__(self, numbers: Collection[int]) -> None:
        """:param numbers: of the directories."""
        super().__init__(OTHER_FILES)
        self.numbers = frozenset(numbers)


class Listed(NamedTuple):
    """Data files as they were listed."""

    files: int
    bytes: int


Places = Iterable[tuple[int, Any]]
"""Directories as qualified paths (`qualified_paths`), each with its number. Two may have the same number."""


def require_listed(
    index: Any, listed: Mapping[int, Listed], places: Callable[[], Places], bytes_in_all: int | None = None
) -> None:
    """Raises OtherFiles unless Spark's index (`PartitioningAwareFileIndex`) contains, in the `places` of each number,
    the listed files.

    :param bytes_in_all: size of all files in the index, if it contains more.
    """
    expected = sum(one.bytes for one in listed.values()) if bytes_in_all is None else bytes_in_all
    if index.sizeInBytes() == expected:
        return
    seen: dict[str, Listed] = {}
    for file in _each(index.allFiles()):
        above, _, name = _plain(file.getPath()).rpartition("/")
        # Files ignored by Spark: `PartitioningAwareFileIndex.isDataPath`.
        if not name.startswith(".") and not (name.startswith("_") and "=" not in name):
            files, size = seen.get(above, _NOTHING)
            seen[above] = Listed(files + 1, size + file.getLen())
    found = dict.fromkeys(listed, _NOTHING)
    for number, place in places():
        files, size = seen.get(_plain(place).rstrip("/"), _NOTHING)
        found[number] = Listed(found[number].files + files, found[number].bytes + size)
    others = [number for number, one in found.items() if one != listed[number]]
    if others:
        raise OtherFiles(others)


def require_listed_of_reading(
    spark: SparkSession,
    rows: DataFrame,
    directories: Sequence[tuple[int, str]],
    listed: Mapping[int, Listed],
    bytes_in_all: int,
) -> None:
    """The same for the files of a table that Spark is about to read for these rows, which include those of the
    `directories` (locations).

    :param bytes_in_all: size of all files of the table, or of those selected by a filter.
    """
    index = _index_of(spark, rows)
    if index is not None:
        require_listed(index, listed, lambda: qualified_paths(spark, directories), bytes_in_all)
        return
    # Hive's classes list each directory when they read it; there is no index to check.
    others: set[int] = set()
    for some in batches(directories, DIRECTORIES_OF_A_LISTING):
        places = list(qualified_paths(spark, some))
        index = file_index(spark, [place for _, place in places])
        try:
            require_listed(index, {number: listed[number] for number, _ in some}, partial(iter, places))
        except OtherFiles as error:
            others |= error.numbers
    if others:
        raise OtherFiles(others)


def file_index(spark: SparkSession, roots: Sequence[Any], partitions: Any = None) -> Any:
    """Spark's `InMemoryFileIndex` of directories (qualified paths). Raises Py4JJavaError if one cannot be listed; one
    that does not exist has no files.

    :param partitions: their `PartitionSpec`.
    """
    jvm: Any = spark._jvm
    to_seq, no_options = jvm.PythonUtils.toSeq, jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    sources = package(jvm, SOURCES)
    places = jvm.java.util.ArrayList()
    for root in roots:
        places.add(root)
    return sources.InMemoryFileIndex(
        spark._jsparkSession,
        to_seq(places),
        no_options,
        jvm.scala.Option.empty(),
        getattr(getattr(sources, "NoopCache$"), "MODULE$"),
        jvm.scala.Option.apply(partitions),
        jvm.scala.Option.empty(),
    )


SOURCES = "org.apache.spark.sql.execution.datasources"


def package(jvm: Any, name: str) -> Any:
    """A package, or class, of the JVM by its dotted name."""
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


def qualified_paths(spark: SparkSession, directories: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Locations as Hadoop paths, each with its number: with the scheme and authority that Spark's listing returns."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    hadoop = session.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path  # looked up once: each part of the name is a call
    for number, location in directories:
        # Hadoop requires the slash after a bucket: without it, the path would be relative to the user's directory.
        place = path(_with_root(location))
        if not _NEEDS_NOTHING.match(location):
            file_system = place.getFileSystem(hadoop)
            place = place.makeQualified(file_system.getUri(), file_system.getWorkingDirectory())
        yield number, place


def _with_root(location: str) -> str:
    return f"{location}/" if _BUCKET.fullmatch(location) else location


_BUCKET = re.compile(r"[a-z0-9]+://[^/]+")
_NEEDS_NOTHING = re.compile(r"file:/|[a-z0-9]+://[^/]")
_LOCAL = re.compile(r"\Afile:/+")
_NOTHING = Listed(0, 0)


def _plain(path: Any) -> str:
    """A canonical spelling of a local path."""
    return _LOCAL.sub("file:/", str(path.toUri()))


def _index_of(spark: SparkSession, rows: DataFrame) -> Any | None:
    """The index of files for a read of one table in a format that Spark reads itself; None if it is read through Hive's
    classes."""
    plan: Any = rows
    leaves = list(_each(plan._jdf.queryExecution().optimizedPlan().collectLeaves()))
    if len(leaves) != 1 or _class(leaves[0]) != "LogicalRelation" or _class(leaves[0].relation()) != "HadoopFsRelation":
        return None
    index = leaves[0].relation().location()
    if _class(index) != "CatalogFileIndex":
        return index
    # Includes all partitions, as there is no filter. Spark keeps the listing and does not repeat it.
    jvm: Any = spark._jvm
    return index.filterPartitions(jvm.PythonUtils.toSeq(jvm.java.util.ArrayList()))


def _each(of: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    iterator = of.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _class(of: Any) -> str:
    return str(of.getClass().getSimpleName())
