"""Runs ``verify``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as F

from hms_cache.client import Metastores
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.sources import with_tokens
from hms_cache.jobs.verify.source import HmsDifferencesSource
from hms_cache.jobs.verify.transform import transform

FOUND_DIFFERENCES = 3
"""The exit status of a successful run that found differences."""


def main(run: JobRun) -> JobResult:
    """Compares all servers with the database. Changes nothing; a dry run does not store differences."""
    options = run.options
    if not options["server"] or not options["database"]:
        raise ConfigurationError("verify needs at least one --server and the --database")
    started_at = datetime.now(UTC)
    sample_index = started_at.date().toordinal() if options["sample_index"] is None else options["sample_index"]
    servers = [Metastores.of_texts(server, run.auth) for server in options["server"]]
    run.spark.dataSource.register(with_tokens(HmsDifferencesSource, servers))
    source = {
        "servers": " ".join(options["server"]),
        "auth": run.auth,
        "database": options["database"],
        "tables": ",".join(options["tables"]),
        "rechecks": str(options["rechecks"]),
        "recheck_wait_s": str(options["recheck_wait_s"]),
        "sample": str(options["sample"]),
        "sample_index": str(sample_index),
    }
    with run.progress.step("Comparing"):
        # Used twice below; a second evaluation would be another comparison.
        found = run.spark.read.format("hms_differences").options(**source).load().persist()
        by_server = transform(found).collect()
    differences = found.where(F.col("outcome") != "compared").orderBy("outcome", "server", "database", "table")
    if options["output"] and not run.dry_run:
        name = f"{started_at:%Y%m%dT%H%M%S.%f}Z"
        rows = differences.drop("compared").withColumn("run", F.lit(name)).coalesce(1)
        rows.write.mode("append").partitionBy("run").parquet(options["output"])
    shown = differences.limit(int(options["shown"])).collect()
    found.unpersist()
    different = sum(row["different"] for row in by_server)
    tables = [
        ResultTable(
            "Servers",
            ("server", "objects compared", "different", "undecided"),
            [(row["server"], row["compared"], row["different"], row["undecided"]) for row in by_server],
        )
    ]
    if shown:
        columns = ("outcome", "server", "kind", "object", "field", "held", "stored", "at event")
        tables.append(ResultTable("Differences", columns, [_shown(row.asDict()) for row in shown]))
    summary = {
        "objects compared": sum(row["compared"] for row in by_server),
        "different": different,
        "undecided": sum(row["undecided"] for row in by_server),
    }
    if options["sample"] < 1:
        summary["sample_index"] = sample_index
    return JobResult(summary, tables, FOUND_DIFFERENCES if different else 0)


def _shown(row: dict[str, Any]) -> tuple[object, ...]:
    parts = [row["catalog"], row["database"], row["table"], row["partition"]]
    name = ".".join(part for part in parts if part)
    return row["outcome"], row["server"], row["kind"], name, row["field"], row["held"], row["stored"], row["event_id"]
