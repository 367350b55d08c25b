"""Counts differences. A pure function of a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def transform(differences: DataFrame) -> DataFrame:
    """A row per server, from rows of `hms_differences`: numbers of compared, different and undecided objects."""
    different_object = F.struct("catalog", "database", "table", "partition", "kind")
    return (
        differences.groupBy("server")
        .agg(
            F.coalesce(F.sum("compared"), F.lit(0)).alias("compared"),
            F.count_distinct(F.when(F.col("outcome") == "different", different_object)).alias("different"),
            F.count_distinct(F.when(F.col("outcome") == "undecided", different_object)).alias("undecided"),
        )
        .orderBy("server")
    )
