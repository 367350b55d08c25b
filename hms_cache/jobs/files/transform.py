"""What differs between catalog and file system, and what each table costs a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from hms_cache.jobs.files.directories import EMPTY, MISSING, ORPHAN, OUTDATED, PARTITION, UNREADABLE, UNREGISTERED
from hms_cache.jobs.files.listing import FOUND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DIFFERENCES = StructType(
    [
        StructField("database", StringType(), False),
        StructField("table", StringType(), False),
        # missing: a partition without its directory; empty: a directory without files; unregistered: a directory with
        # files that no partition has; orphan: one that is no partition's by its name, or whose partition lies
        # elsewhere; outdated: other numbers of files or bytes than the catalog's; unreadable: it could not be listed.
        StructField("kind", StringType(), False),
        StructField("partition", StringType()),
        StructField("location", StringType(), False),
        StructField("problem", StringType()),
    ]
)

PARTITION_BYTES, COLUMN_BYTES, FILE_BYTES, BLOCK_BYTES = 2048, 400, 500, 150
"""Impala's rule of thumb for what its catalog keeps: by partition, by partition and column (with incremental
statistics), by file, by block."""


def unknown_directories(listed: DataFrame, found: DataFrame) -> DataFrame:
    """Of the directories below tables (`listing.FOUND`) those that no partition of the catalog (`listing.LISTED`) has.

    One that is named as a partition which lies elsewhere is an orphan.
    """
    owner = ["database", "table"]
    known = listed.where(listed["partition"].isNotNull())
    unknown = found.join(known.select(*owner, "location"), [*owner, "location"], "left_anti")
    names = known.select(*owner, "partition", f.lit(True).alias("is_known"))
    marked = unknown.join(names, [*owner, "partition"], "left")
    is_elsewhere = (marked["kind"] == PARTITION) & marked["is_known"].isNotNull()
    return marked.withColumn("kind", f.when(is_elsewhere, ORPHAN).otherwise(marked["kind"])).select(*FOUND.names)


def differences(listed: DataFrame, unknown: DataFrame) -> DataFrame:
    """All differences (`DIFFERENCES`) of the catalog's places (`listing.LISTED`) and the directories that are none of
    them (`listing.looked_into`)."""
    kind = (
        f.when(listed["problem"].isNotNull(), UNREADABLE)
        .when(~listed["exists"], MISSING)
        .when(listed["files"] == 0, EMPTY)
        .when(
            (listed["recorded_files"] != listed["files"]) | (listed["recorded_bytes"] != listed["bytes"]),
            OUTDATED,
        )
    )
    of_catalog = listed.withColumn("kind", kind).where(f.col("kind").isNotNull()).select(*DIFFERENCES.names)
    of_files = unknown.where(unknown["kind"].isin(ORPHAN, UNREGISTERED, EMPTY, UNREADABLE))
    return of_catalog.unionByName(of_files.select(*DIFFERENCES.names))


def sizes(listed: DataFrame, tables: DataFrame) -> DataFrame:
    """By table: partitions, files, bytes, and what it costs a catalog: by the rule of thumb, and its bytes encoded.

    `tables`: ``database``, ``table``, ``columns`` (how many), ``encoded_bytes``. A table without partition keys counts
    as one partition, as it does in Impala.
    """
    of_places = listed.groupBy("database", "table").agg(
        f.count("*").alias("partitions"),
        f.sum("files").alias("files"),
        f.sum("bytes").alias("bytes"),
        f.sum("small_files").alias("small_files"),
        f.sum("blocks").alias("blocks"),
        f.sum(f.when(listed["partition"].isNotNull(), listed["encoded_bytes"]).otherwise(0)).alias("of_partitions"),
    )
    counted = tables.join(of_places, ["database", "table"], "left").na.fill(0)
    rule = (
        counted["partitions"] * PARTITION_BYTES
        + counted["partitions"] * counted["columns"] * COLUMN_BYTES
        + counted["files"] * FILE_BYTES
        + counted["blocks"] * BLOCK_BYTES
    )
    return counted.select(
        "database",
        "table",
        "partitions",
        "columns",
        "files",
        "bytes",
        "small_files",
        "blocks",
        rule.cast(LongType()).alias("rule_bytes"),
        (counted["encoded_bytes"] + counted["of_partitions"]).alias("encoded_bytes"),
    )
