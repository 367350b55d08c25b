"""A view for each question about a history: what changed on a table, who did it, how often, which are churned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_cache.jobs.history.tables import read_history
from hms_cache.jobs.history.transform import churn


def _who() -> Column:
    """The caller of the audit log; else whom the event names."""
    return F.coalesce("caller", "actor").alias("actor")


def changes(history: DataFrame) -> DataFrame:
    """What changed on each table and database, when and by whom, the newest first."""
    columns = [
        "event_time",
        "catalog",
        "database",
        "table",
        "change",
        "old_name",
        _who(),
        "method",
        "partitions",
        "files",
    ]
    return history.where(F.col("database").isNotNull()).select("event_id", *columns).orderBy(F.desc("event_id"))


def actors(history: DataFrame) -> DataFrame:
    """Who changed which table, how often and when last; `actor` is null where neither log says."""
    return (
        history.where(F.col("table").isNotNull())
        .withColumn("actor", _who())
        .groupBy("actor", "catalog", "database", "table")
        .agg(F.count("*").alias("events"), F.max("event_time").alias("last_event_time"))
        .orderBy(F.desc("events"), "actor", "catalog", "database", "table")
    )


def daily(history: DataFrame) -> DataFrame:
    """How often each table was changed, by day and kind of change."""
    return (
        history.where(F.col("table").isNotNull())
        .groupBy("day", "catalog", "database", "table", "change")
        .agg(F.count("*").alias("events"))
        .orderBy("day", "catalog", "database", "table", "change")
    )


VIEWS = {"history_changes": changes, "history_actors": actors, "history_daily": daily, "history_churn": churn}
"""By name. `history` is the table itself."""


def create_views(spark: SparkSession, output: str, file_format: str = "parquet") -> None:
    """Makes the temporary views `history` and those of `VIEWS` over the history in this directory or Iceberg table."""
    history = read_history(spark, output, file_format)
    history.createOrReplaceTempView("history")
    for name, view in VIEWS.items():
        view(history).createOrReplaceTempView(name)
