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
    """Make the sources known to this session, for ``spark.read.format(…)`` and SQL.

    Where the option `auth` is not given they authenticate as this session's own client of the metastore would, by its
    settings as they are now.
    """
    from hms_cache.jobs.frame.session_keys import session_auth
    from hms_cache.jobs.sources.catalog import HmsCatalogSource
    from hms_cache.jobs.sources.events import HmsEventsSource

    auth = session_auth(spark)
    for source in (HmsCatalogSource, HmsEventsSource):
        # Spark plans a source in another process, which sees nothing of the session: the class brings it along.
        known = type(source.__name__, (source,), {"session_auth": auth}) if auth else source
        spark.dataSource.register(known)
    spark.conf.set(PUSH_DOWN, "true")
