"""How a session of Spark reads many small files: settings that hold while the job runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN_COST_BYTES = 64 << 10
"""What Spark adds to each file's size when it packs files into tasks of 128 MB. With its own 4 MB a task is 32 files,
and every task of Python begins with a tenth of a second of its own; with this, some 2,000."""

LISTING_TASKS_PER_CORE = 4
"""Spark lists directories in a task each, up to 10,000: some ms for what takes a tenth of that."""


@contextmanager
def many_small_files(spark: SparkSession) -> Iterator[None]:
    """Few tasks for many directories and files, in this session; settings that it has of its own win."""
    wanted = {
        "spark.sql.files.openCostInBytes": str(OPEN_COST_BYTES),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(
            LISTING_TASKS_PER_CORE * spark.sparkContext.defaultParallelism
        ),
    }
    chosen = {key: value for key, value in wanted.items() if spark.conf.get(key, None) is None}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in chosen:
            spark.conf.unset(key)
