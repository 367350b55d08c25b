"""The callers that caused events, from the audit logs of servers with ``server.audit_format = "json"``.

The notification log rarely contains the user. A line of an audit log contains the user and the events that the call
logged.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hms_cache.jobs.sources.fields import LONG, STRING, TIME, fields

CALLERS = StructType(
    [
        *fields(LONG, "event_id"),
        *fields(TIME, "called_at"),
        # The name used by the client, or the one from its authentication.
        *fields(STRING, "caller"),
        # The authenticated name; null without authentication.
        *fields(STRING, "caller_principal"),
        *fields(STRING, "caller_address", "method"),
    ]
)
"""A row per event. `called_at`: when the line was written; null if lines have no time."""

FAR_S = 3_600
"""A line written longer than this before or after its event belongs to another log with the same ids, such as the one
before a database was restored from a backup. Between an event and its line are a few minutes at most."""

_LINE = "time DOUBLE, logger STRING, message STRING"
_CALL = "ugi STRING, ip STRING, principal STRING, method STRING, events ARRAY<ARRAY<BIGINT>>"
_AUDIT_LOGGER = "hms_cache.audit"


def callers(spark: SparkSession, paths: Sequence[str], first: int, last: int) -> DataFrame:
    """Rows of `CALLERS` for the events from `first` to `last` that the logs contain.

    :param paths: files, directories or patterns of Spark. Lines may be those of ``log.format = "json"``, from which
      those of the audit logger are taken, or messages of the audit logger only. All other lines are ignored.
    """
    text = spark.read.text(list(paths))
    line = F.from_json("value", _LINE)
    parsed = text.select(line.alias("line"), "value").select(
        F.timestamp_seconds("line.time").alias("called_at"),
        F.when(F.col("line.logger") == _AUDIT_LOGGER, F.col("line.message"))
        .when(F.col("line.logger").isNull() & F.col("line.message").isNull(), F.col("value"))
        .alias("call"),
    )
    calls = parsed.select("called_at", F.from_json("call", _CALL).alias("call")).select(
        "called_at", "call.*", F.explode("call.events").alias("range")
    )
    # Restricted to the requested range: the content of a line must not determine the amount of memory.
    begin, end = F.greatest(F.col("range")[0], F.lit(first)), F.least(F.col("range")[1], F.lit(last))
    rows = calls.where(begin <= end).select(
        F.explode(F.sequence(begin, end)).alias("event_id"),
        "called_at",
        F.col("ugi").alias("caller"),
        F.col("principal").alias("caller_principal"),
        F.col("ip").alias("caller_address"),
        "method",
    )
    caller = F.struct(*CALLERS.names[1:])
    return (
        rows.groupBy("event_id")
        .agg(F.max_by(caller, "called_at").alias("newest"), F.first(caller).alias("any"))
        .select("event_id", F.coalesce("newest", "any").alias("found"))
        .select("event_id", "found.*")
    )


def with_callers(history: DataFrame, known: DataFrame) -> DataFrame:
    """The history with the columns of `CALLERS` from the rows of `known`, null if there is no row."""
    columns = [name for name in CALLERS.names if name not in ("event_id", "called_at")]
    distance_s = F.abs(F.unix_timestamp("called_at") - F.unix_timestamp("event_time"))
    is_near = F.col("called_at").isNull() | (distance_s <= FAR_S)
    joined = history.drop(*columns).join(known, "event_id", "left")
    found = joined.withColumns({name: F.when(is_near, F.col(name)) for name in columns})
    return found.select(history.columns)
