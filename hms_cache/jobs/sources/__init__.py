"""Data sources for Spark: ``hms_catalog`` and ``hms_events``. `register` adds them to a session.

Importing the package does not import PySpark, because the readers are used without Spark, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting for filter push-down to Python sources, which is off by default. A source that accepts filters does
not run without it."""


def register(spark: SparkSession) -> None:
    """Registers the sources in this session, for ``spark.read.format(…)`` and SQL.

    If the option `auth` is missing, they authenticate like the session's own client of the metastore, by the session's
    settings at the time of this call.
    """
    from hms_cache.jobs.frame.session_keys import session_auth
    from hms_cache.jobs.sources.catalog import HmsCatalogSource
    from hms_cache.jobs.sources.events import HmsEventsSource

    auth = session_auth(spark)
    for source in (HmsCatalogSource, HmsEventsSource):
        # Spark plans a source in another process without access to the session, so the class carries the setting.
        known = type(source.__name__, (source,), {"session_auth": auth}) if auth else source
        spark.dataSource.register(known)
    spark.conf.set(PUSH_DOWN, "true")
