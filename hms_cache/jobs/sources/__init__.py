"""Data sources for Spark: ``hms_catalog`` and ``hms_events``. Importing this imports PySpark."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

SOURCES: tuple[type[DataSource], ...] = ()


def register(spark: SparkSession) -> None:
    """Make the sources known to this session, for ``spark.read.format(…)`` and SQL."""
    for source in SOURCES:
        spark.dataSource.register(source)
