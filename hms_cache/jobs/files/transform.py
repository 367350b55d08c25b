"""Differences between catalog and file system, and what each table costs a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructType

from hms_cache.jobs.files.directories import EMPTY, MISSING, ORPHAN, OUTDATED, PARTITION, UNREADABLE, UNREGISTERED
from hms_cache.jobs.files.listing import FOUND
from hms_cache.jobs.sources.fields import LONG, STRING, TIME, fields, required
from hms_cache.jobs.sources.scope import TABLE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DIFFERENCES = StructType(
    [
        *required(STRING, *TABLE_COLUMNS),
        # missing: a partition without its directory; empty: a directory without files; unregistered: a directory with
        # files that belongs to no partition; orphan: a directory without data of any table that is not named as a
        # partition, or whose partition is elsewhere; outdated: numbers of files or bytes differ from the catalog's;
        # unreadable: it could not be listed.
        *required(STRING, "kind"),
        *fields(STRING, "partition"),
        *required(STRING, "location"),
        *fields(STRING, "problem"),
    ]
)

DIRECTORIES = StructType(
    [
        *DIFFERENCES.fields,
        *fields(LONG, "files", "bytes", "small_files", "blocks"),
        # Number of directory levels above the deepest file.
        *fields(LONG, "depth"),
        *fields(TIME, "newest_file_at"),
        # From the catalog's parameters.
        *fields(LONG, "recorded_files", "recorded_bytes"),
    ]
)

PARTITION_BYTES, COLUMN_BYTES, FILE_BYTES, BLOCK_BYTES = 2048, 400, 500, 150
"""Impala's rule of thumb for the memory of its catalog: per partition, per partition and column (with incremental
statistics), per file, per block."""


OK = "ok"
"""The kind of a directory without a difference."""


def unknown_directories(listed: DataFrame, found: DataFrame) -> DataFrame:
    """The directories below tables (`listing.FOUND`) that belong to no partition of the catalog (`listing.LISTED`).

    One named as a partition is unregistered, or empty if it has no files; an orphan if that partition is elsewhere.
    """
    owner = list(TABLE_COLUMNS)
    known = listed.where(listed["partition"].isNotNull())
    # If not all partitions of a table could be read, its unregistered directories are unknown.
    unread = listed.where(listed["location"] == "").select(*owner).distinct()
    unknown = found.join(unread, owner, "left_anti")
    unknown = unknown.join(known.select(*owner, "place"), [*owner, "place"], "left_anti")
    names = known.select(*owner, "partition", f.lit(True).alias("is_known")).distinct()
    marked = unknown.join(names, [*owner, "partition"], "left")
    kind = (
        f.when(marked["kind"] != PARTITION, marked["kind"])
        .when(marked["is_known"].isNotNull(), ORPHAN)
        .when(marked["files"] > 0, UNREGISTERED)
        .otherwise(EMPTY)
    )
    return marked.withColumn("kind", kind).select(*FOUND.names)


def without_data(unknown: DataFrame, listed: DataFrame, roots: DataFrame) -> DataFrame:
    """Those of the directories (`unknown_directories`) that neither contain data of a table nor are inside of such
    data, which nobody may delete. For unregistered ones, only data of their own table counts, because its rows would be
    read twice: two tables may have the same partitions.

    :param roots: the tables with partitions (`listing.ROOTS`).
    :param listed: all other places.
    """
    owner = list(TABLE_COLUMNS)
    # A missing directory has no data; an unreadable one may have some.
    may_be_there = listed["exists"] | listed["problem"].isNotNull()
    data = listed.where((listed["place"] != "") & may_be_there).select(*owner, "place")
    holding = data.unionByName(roots.select(*owner, "place")).withColumn("place", f.explode(_at_and_above("place")))
    inside = unknown.select("place").distinct().withColumn("above", f.explode(_at_and_above("place")))
    inside = inside.join(data.withColumnRenamed("place", "above"), "above").select(*owner, "place")
    in_use = holding.unionByName(inside).join(unknown.select("place").distinct(), "place", "left_semi").distinct()
    of_own = in_use.withColumn("is_own", f.lit(True))
    of_any = in_use.select("place").distinct().withColumn("is_in_use", f.lit(True))
    judged = unknown.join(of_own, [*owner, "place"], "left").join(of_any, "place", "left")
    is_free = (
        f.when(judged["kind"] == UNREGISTERED, judged["is_own"].isNull())
        .when(judged["kind"].isin(ORPHAN, EMPTY), judged["is_in_use"].isNull())
        .otherwise(True)
    )
    return judged.where(is_free).select(*FOUND.names)


def _at_and_above(place: str) -> Column:
    """A directory and all its parents."""
    names = f.split(place, "/")
    return f.transform(f.sequence(f.lit(1), f.size(names)), lambda count: f.concat_ws("/", f.slice(names, 1, count)))


def directories(listed: DataFrame, unknown: DataFrame) -> DataFrame:
    """A row (`DIRECTORIES`) for each of the catalog's places (`listing.LISTED`), and for each other directory
    (`unknown_directories`)."""
    outdated = (listed["recorded_files"] != listed["files"]) | (listed["recorded_bytes"] != listed["bytes"])
    kind = (
        f.when(listed["problem"].isNotNull(), UNREADABLE)
        .when(~listed["exists"], MISSING)
        .when(listed["files"] == 0, EMPTY)
        .when(outdated, OUTDATED)
        .otherwise(OK)
    )
    of_files = unknown.where(unknown["kind"].isin(ORPHAN, UNREGISTERED, EMPTY, UNREADABLE))
    both = listed.withColumn("kind", kind).unionByName(of_files, allowMissingColumns=True)
    newest = f.when(both["newest_us"] > 0, f.timestamp_micros("newest_us"))
    return both.withColumn("newest_file_at", newest).select(*DIRECTORIES.names)


def differences(found: DataFrame) -> DataFrame:
    """Those of all directories (`DIRECTORIES`) that differ from the catalog (`DIFFERENCES`)."""
    return found.where(found["kind"] != OK).select(*DIFFERENCES.names)


def sizes(listed: DataFrame, tables: DataFrame) -> DataFrame:
    """Per table: partitions, files, bytes, and the cost for a catalog: by the rule of thumb, and as encoded bytes.

    :param tables: `TABLE_COLUMNS`, ``columns`` (their number), ``encoded_bytes``. A table without partition keys counts
      as one partition, as it does in Impala.
    """
    of_places = (
        listed.where(listed["problem"].isNull() | listed["partition"].isNotNull())
        .groupBy(*TABLE_COLUMNS)
        .agg(
            f.count("*").alias("partitions"),
            f.sum("files").alias("files"),
            f.sum("bytes").alias("bytes"),
            f.sum("small_files").alias("small_files"),
            f.sum("blocks").alias("blocks"),
            f.sum(f.when(listed["partition"].isNotNull(), listed["encoded_bytes"]).otherwise(0)).alias("of_partitions"),
        )
    )
    counted = tables.join(of_places, list(TABLE_COLUMNS), "left").na.fill(0)
    rule = (
        counted["partitions"] * PARTITION_BYTES
        + counted["partitions"] * counted["columns"] * COLUMN_BYTES
        + counted["files"] * FILE_BYTES
        + counted["blocks"] * BLOCK_BYTES
    )
    return counted.select(
        *TABLE_COLUMNS,
        "partitions",
        "columns",
        "files",
        "bytes",
        "small_files",
        "blocks",
        rule.cast(LongType()).alias("rule_bytes"),
        (counted["encoded_bytes"] + counted["of_partitions"]).alias("encoded_bytes"),
    )
