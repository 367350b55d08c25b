"""How a session of Spark reads tables and many small files: settings that hold while the job runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN_COST_BYTES = 16 << 10
"""What Spark adds to each file's size when it packs files into tasks of 128 MB. With its own 4 MB a task is 32 files,
and every task of Python begins with a tenth of a second of its own; with this, some 8,000, if that leaves one for each
core."""

LISTING_TASKS_PER_CORE = 4
"""Spark lists directories in a task each, up to 10,000: some ms for what takes a tenth of that."""


_AS_HIVE_READS = {
    # Else Spark fails where Hive has a null: at the partition of no value of a number key, in a table that it reads
    # through Hive's classes.
    "spark.sql.ansi.enabled": "false",
    # Hive tells columns of ORC by their position, also after one was renamed.
    "orc.force.positional.evolution": "true",
    # What cannot be read is no empty file.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


@contextmanager
def reading_tables(spark: SparkSession) -> Iterator[None]:
    """Rows as Hive has them; and few tasks for many directories and files, in this session, unless it has settings of
    its own for these."""
    wanted = {
        "spark.sql.files.openCostInBytes": str(OPEN_COST_BYTES),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(
            LISTING_TASKS_PER_CORE * spark.sparkContext.defaultParallelism
        ),
    }
    chosen = {key: value for key, value in wanted.items() if spark.conf.get(key, None) is None} | _AS_HIVE_READS
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
