"""The job ``statistics``, as the command line shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_cache.jobs.frame import DATABASE, METASTORE, TABLES, Job, Option


def spark_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Spark reads the tables through the same metastore."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": str(options["metastore"]),
    }


JOB = Job(
    name="statistics",
    summary="Compute column statistics of tables and partitions, and write them to the metastore.",
    description=(
        "Works on tables and partitions whose files are others than those that their statistics were computed from "
        "(number, name, size, modification, entity tag), whoever wrote them, and on those that lack statistics of a "
        "column. Writes what ANALYZE of Hive and of Spark write: numbers of rows, files and bytes, column statistics, "
        "and Spark's of tables. Nothing is written of what changed meanwhile. Distinct values are kept as bit vectors "
        "that Hive reads and merges. Give --database too where the metastore does not answer bit vectors: those of a "
        "table are merged from its partitions'. Transactional tables of ORC and Parquet are read and written in a "
        "transaction. Tables of formats that keep statistics themselves (Iceberg, Delta Lake, Hudi) are left out, and "
        "named. Exit status 3 if something failed."
    ),
    main="hms_cache.jobs.statistics.main:main",
    options=(
        Option(
            "metastore",
            METASTORE.help,
            required=True,
            metavar=METASTORE.metavar,
        ),
        DATABASE,
        TABLES,
        Option("state", "File that keeps how far the notification log is followed, for the plan.", metavar="FILE"),
        Option("all", "Every partition, whatever statistics there are.", kind=bool),
        Option(
            "max_bytes",
            "Read at most so much of files (500GB); the rest is left for the next run. One partition is always read.",
            metavar="SIZE",
        ),
        Option(
            "sample_above",
            "Of a partition or table whose files are larger (1TB), read only so much of them: what is written is "
            "estimated, marked, and nothing that Hive or Spark take as exact. Parquet and ORC only.",
            metavar="SIZE",
        ),
        Option("partitions_only", "Write none of partitioned tables as a whole.", kind=bool),
        Option(
            "histograms",
            "Histograms of Spark's for the tables that are computed: each of them is read whole, twice more.",
            kind=bool,
        ),
        Option("engine", "Whose statistics they are, for readers that keep several kinds apart.", default="hive"),
        Option(
            "batch_partitions",
            "Partitions of one call at most; fewer where they have more than eight columns.",
            kind=int,
            default=500,
            minimum=1,
        ),
        Option("writers", "Calls at the same time, for one table.", kind=int, default=4, minimum=1),
        Option("tables_at_once", "Tables that are worked on at the same time.", kind=int, default=2, minimum=1),
    ),
    spark_settings=spark_settings,
)
