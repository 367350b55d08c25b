"""Views on a history: changes of a table, who made them, how often, and tables with the most changes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_cache.jobs.history.tables import read_history
from hms_cache.jobs.history.transform import churn


def _caller_or_actor() -> Column:
    """The caller from the audit log; otherwise the user named by the event."""
    return F.coalesce("caller", "actor").alias("actor")


def changes(history: DataFrame) -> DataFrame:
    """Changes of each table and database, with time and user, newest first."""
    columns = [
        "event_time",
        "catalog",
        "database",
        "table",
        "change",
        "old_name",
        _caller_or_actor(),
        "method",
        "partitions",
        "files",
    ]
    return history.where(F.col("database").isNotNull()).select("event_id", *columns).orderBy(F.desc("event_id"))


def actors(history: DataFrame) -> DataFrame:
    """Users who changed a table, with number and last time; `actor` is null if neither log contains it."""
    return (
        history.where(F.col("table").isNotNull())
        .withColumn("actor", _caller_or_actor())
        .groupBy("actor", "catalog", "database", "table")
        .agg(F.count("*").alias("events"), F.max("event_time").alias("last_event_time"))
        .orderBy(F.desc("events"), "actor", "catalog", "database", "table")
    )


def daily(history: DataFrame) -> DataFrame:
    """Number of changes of each table, by day and kind of change."""
    return (
        history.where(F.col("table").isNotNull())
        .groupBy("day", "catalog", "database", "table", "change")
        .agg(F.count("*").alias("events"))
        .orderBy("day", "catalog", "database", "table", "change")
    )


VIEWS = {"history_changes": changes, "history_actors": actors, "history_daily": daily, "history_churn": churn}
"""By name. `history` is the table itself."""


def create_views(spark: SparkSession, output: str, file_format: str = "parquet") -> None:
    """Creates the temporary views `history` and those of `VIEWS` for the history in this directory or Iceberg table."""
    history = read_history(spark, output, file_format)
    history.createOrReplaceTempView("history")
    for name, view in VIEWS.items():
        view(history).createOrReplaceTempView(name)
