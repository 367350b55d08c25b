"""Keys of Hive's metastore client in a Spark session: from its settings and from Hadoop's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hms_cache.client.authentication.texts import text_of_hive_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = "core-default.xml"
"""Hadoop's file of default values: a value from it was not set by anybody."""


def session_auth(spark: SparkSession) -> str:
    """Returns how the session's own client would authenticate, as a text (see
    `hms_cache.client.authentication.texts`)."""
    return text_of_hive_keys(_keys(spark))


def _keys(spark: SparkSession) -> Callable[[str], str | None]:
    hadoop: Any = None
    try:
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    except Exception:  # Spark Connect has no JVM here, and raises different exceptions
        hadoop = None

    def key(name: str) -> str | None:
        if name.startswith("spark.") or hadoop is None:
            found = spark.conf.get(name if name.startswith("spark.") else f"spark.hadoop.{name}", None)
            return None if found is None else str(found)
        value = hadoop.get(name)
        sources = list(hadoop.getPropertySources(name) or ()) if value is not None else []
        return None if value is None or _DEFAULTS in sources[-1:] else str(value)

    return key
