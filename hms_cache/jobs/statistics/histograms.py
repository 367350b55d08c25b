"""Histograms of columns, in the form in which Spark stores them with its own statistics of a table.

Spark computes and encodes them (`CommandUtils.computeColumnStats`, `CatalogColumnStat.toMap`, Spark 4.1):
`spark.sql.statistics.histogram.numBins` bins of equal height. Histograms of partitions cannot be merged, so the whole
table is read for them, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hms_cache.jobs.statistics.columns import StatisticsColumn
from hms_cache.jobs.statistics.parameters import SPARK
from hms_cache.metadata.statistics_values import StatisticsKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ENABLED = "spark.sql.statistics.histogram.enabled"
_KINDS = frozenset(
    {
        StatisticsKind.LONG,
        StatisticsKind.DOUBLE,
        StatisticsKind.DECIMAL,
        StatisticsKind.DATE,
        StatisticsKind.TIMESTAMP,
    }
)
"""Spark has no histograms of texts."""


def histograms(spark: SparkSession, rows: DataFrame, columns: Sequence[StatisticsColumn]) -> dict[str, str]:
    """Parameters with histograms of the columns, for a table with these rows; none for a column without a value.

    Raises Py4JJavaError or PySparkException if the table cannot be read.
    """
    names = [column.name for column in columns if column.kind in _KINDS]
    if not names:
        return {}
    jvm: Any = spark._jvm
    frame: Any = rows.select(*(f"`{name}`" for name in names))
    plan = frame._jdf.queryExecution().analyzed()
    before = spark.conf.get(_ENABLED, None)
    spark.conf.set(_ENABLED, "true")
    try:
        commands = getattr(getattr(jvm.org.apache.spark.sql.execution.command, "CommandUtils$"), "MODULE$")
        found = commands.computeColumnStats(spark._jsparkSession, plan, plan.output())._2().iterator()
    finally:
        if before is None:
            spark.conf.unset(_ENABLED)
        else:
            spark.conf.set(_ENABLED, before)
    parameters: dict[str, str] = {}
    while found.hasNext():
        pair = found.next()
        column = pair._1()
        entries = pair._2().toCatalogColumnStat(column.name(), column.dataType()).toMap(column.name()).iterator()
        while entries.hasNext():
            entry = entries.next()
            # Long histograms are split into several parameters, "histogram.part.0" and so on.
            if ".histogram" in entry._1().removeprefix(column.name()):
                parameters[f"{SPARK}colStats.{entry._1()}"] = entry._2()
    return parameters
