"""Settings of a Spark session for tables with many small files, in force while the job runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN_COST_BYTES = 16 << 10
"""Cost that Spark adds to each file's size when it packs files into tasks of 128 MB. With Spark's own 4 MB, a task has
32 files, and each Python task takes a tenth of a second to start; with this value, a task has some 8,000 files, unless
that would leave cores without a task."""

LISTING_TASKS_PER_CORE = 4
"""Spark lists each directory in a task of its own, up to 10,000 tasks: some ms for work that takes a tenth of that."""


_AS_HIVE_READS = {
    # Otherwise Spark raises an error where Hive has a null: for the default partition of a number key, in a table that
    # it reads through Hive's classes.
    "spark.sql.ansi.enabled": "false",
    # Hive matches ORC columns by position, even after a column was renamed.
    "orc.force.positional.evolution": "true",
    # A file that cannot be read must not count as empty.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


@contextmanager
def reading_tables(spark: SparkSession) -> Iterator[None]:
    """Makes the session read rows like Hive, and use few tasks for many directories and files, unless the session has
    settings of its own for these."""
    defaults = {
        "spark.sql.files.openCostInBytes": str(OPEN_COST_BYTES),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(
            LISTING_TASKS_PER_CORE * spark.sparkContext.defaultParallelism
        ),
    }
    chosen = {key: value for key, value in defaults.items() if spark.conf.get(key, None) is None} | _AS_HIVE_READS
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, own in before.items():
            if own is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, own)
