"""Data sources for Spark: ``hms_catalog`` and ``hms_events``. `register` makes them known to a session.

Importing the package imports no PySpark: readers are used without Spark, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark's switch for filters in Python sources, off by default; a source that can take filters does not run without."""


def register(spark: SparkSession) -> None:
    """Make the sources known to this session, for ``spark.read.format(…)`` and SQL."""
    from hms_cache.jobs.sources.catalog import HmsCatalogSource
    from hms_cache.jobs.sources.events import HmsEventsSource

    for source in (HmsCatalogSource, HmsEventsSource):
        spark.dataSource.register(source)
    spark.conf.set(PUSH_DOWN, "true")
