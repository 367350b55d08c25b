"""Definition of the job ``statistics`` for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_cache.jobs.frame import AUTH, DATABASE, METASTORE, TABLES, Job, Option


def spark_settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Settings with which Spark reads the tables through the same metastore."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": str(options["metastore"]),
    }


JOB = Job(
    name="statistics",
    summary="Compute column statistics of tables and partitions, and write them to the metastore.",
    description=(
        "Works on tables and partitions whose files are no longer those from which their statistics were computed "
        "(by number, name, size, modification time, entity tag), whoever wrote them, and on those without statistics "
        "of a column. Writes what ANALYZE of Hive and of Spark write: numbers of rows, files and bytes, column "
        "statistics, and Spark's statistics of tables. Nothing is written for objects that changed meanwhile. "
        "Distinct values are kept as bit vectors that Hive reads and merges. Also give --database if the metastore "
        "does not return bit vectors: those of a table are merged from its partitions'. Transactional tables of ORC "
        "and Parquet are read and written in a transaction. Tables of formats that keep statistics themselves "
        "(Iceberg, Delta Lake, Hudi) are skipped and reported. Exit status 3 if something failed."
    ),
    main="hms_cache.jobs.statistics.main:main",
    options=(
        Option("metastore", METASTORE.help, required=True, metavar=METASTORE.metavar),
        AUTH,
        DATABASE,
        TABLES,
        Option("state", "File that keeps how far the notification log is followed, for the plan.", metavar="FILE"),
        Option("all", "All partitions, even those with current statistics.", kind=bool),
        Option(
            "max_bytes",
            "Read at most this much of files (500GB); the rest is left for the next run. One partition is always read.",
            metavar="SIZE",
        ),
        Option(
            "sample_above",
            "If the files of a partition or table are larger than this (1TB), read only this much of them:"
            " the results are estimates, are marked as such, and Hive and Spark do not take them as exact."
            " Parquet and ORC only.",
            metavar="SIZE",
        ),
        Option("partitions_only", "Write no statistics of partitioned tables as a whole.", kind=bool),
        Option(
            "histograms",
            "Also compute Spark's histograms for tables: each table is read completely two more times.",
            kind=bool,
        ),
        Option("engine", "Engine whose statistics they are: readers may distinguish several.", default="hive"),
        Option(
            "batch_partitions",
            "Maximum number of partitions in one call; fewer if they have more than eight columns.",
            kind=int,
            default=500,
            minimum=1,
        ),
        Option("writers", "Number of calls at the same time for one table.", kind=int, default=4, minimum=1),
        Option("tables_at_once", "Number of tables to work on at the same time.", kind=int, default=2, minimum=1),
    ),
    spark_settings=spark_settings,
)
