"""Runs ``history``: a streaming query up to the log's end as it was at the start.

Each batch is written into directories of its own, ``day=…/batch=N``, and replaces what is there: a batch that is run
again after a failure leaves the same rows, for every reader of the files. What a batch holds is decided before it is
written, in the checkpoint beside the table (``_checkpoint``), so that a restart goes on where the run before ended.
After the last batch the files of days that are over are merged: see `compaction`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_cache.errors import HmsCacheError
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.history.compaction import Compacted, compact, delete_days, journals, recover
from hms_cache.jobs.history.files import Files
from hms_cache.jobs.history.transform import HISTORY_TABLE, churn, transform
from hms_cache.jobs.sources.event_range import EventLogError
from hms_cache.jobs.sources.origin import Origin

CHECKPOINT = "_checkpoint"
"""Beside the directories of days; readers of the table pass over names that begin with an underscore."""


def main(run: JobRun) -> JobResult:
    """Bring the history up to the log's end. Raises EventLogError where the log does not go on from it."""
    options = run.options
    origin, output = Origin.of_options(options), str(options["output"]).rstrip("/")
    with origin.following() as log:
        last_event_id = log.head().last_event_id
    files = Files(run.spark, output)
    with run.progress.step("Looking at the history"):
        if not run.dry_run:
            recover(files)
        before = _last_kept(run.spark, output)
    if before is not None and not files.exists(CHECKPOINT):
        raise HmsCacheError(
            f"{output} holds events up to {before} and no {CHECKPOINT}, which tells where to go on: put it back, or "
            "begin another history elsewhere"
        )
    start = str(options["start"]) if before is None else str(before)
    source = origin.options | {"start": start, "end": str(last_event_id)}
    if run.dry_run:
        with run.progress.step("Counting events"):
            events = run.spark.read.format("hms_events").options(**source, message="none").load().count()
        return JobResult({"events to add": events, "last event": last_event_id, "kept up to": before})
    source["max_events_per_batch"] = str(options["batch_events"])
    with run.progress.step("Adding events"):
        _follow(run.spark, source, output, keep_messages=bool(options["keep_messages"]))
    done = Compacted()
    if options["target_mib"]:
        with run.progress.step("Merging files"):
            done = compact(run.spark, files, int(options["target_mib"]) << 20)
    with run.progress.step("Counting changes"):
        result = _report(run, output, before, last_event_id)
    if options["keep_days"]:
        done.days_deleted = delete_days(files, int(options["keep_days"]))
    kept = {
        "days merged": done.days,
        "files merged": done.files_before,
        "files they are now": done.files_after,
        "days deleted": done.days_deleted,
    }
    return replace(result, summary={**result.summary, **kept})


def _follow(spark: SparkSession, source: dict[str, str], output: str, *, keep_messages: bool) -> None:
    events = spark.readStream.format("hms_events").options(**source).load()
    query = (
        transform(events, keep_messages=keep_messages)
        .writeStream.foreachBatch(partial(_write_batch, output=output))
        .option("checkpointLocation", f"{output}/{CHECKPOINT}")
        .start()
    )
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        raise _explained(error) from error
    finally:
        query.stop()


def _write_batch(batch: DataFrame, batch_id: int, *, output: str) -> None:
    """One file for each day of the batch, in the order of events."""
    (
        batch.withColumn("batch", F.lit(batch_id))
        .repartition("day")
        .sortWithinPartitions("event_id")
        .write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .partitionBy("day", "batch")
        .parquet(output)
    )


def _explained(error: StreamingQueryException) -> HmsCacheError:
    """The reason in the log's words if that is what it is, without the traces of two languages."""
    text = str(error)
    name = f"{EventLogError.__name__}: "
    if name in text:
        return EventLogError(text.partition(name)[2].splitlines()[0])
    return HmsCacheError(f"the history could not be written: {text}")


def read_history(spark: SparkSession, output: str) -> DataFrame:
    """The table in this directory, rows of `HISTORY_TABLE`; none if there is nothing yet.

    Columns that a file lacks, of a release that did not write them, are null. A day whose files are just being merged
    is read from the merged ones.
    """
    files = Files(spark, output)
    if not any(name.startswith("day=") for name in files.directories()):
        stored = spark.createDataFrame([], HISTORY_TABLE)
    else:
        stored = spark.read.schema(HISTORY_TABLE).parquet(output)
    for journal in journals(files):
        places = [f"{journal.staging}/{name}" for name in journal.new]
        places = [place if files.exists(place) else journal.target(place.rpartition("/")[2]) for place in places]
        merged = spark.read.schema(HISTORY_TABLE).parquet(*(f"{output}/{place}" for place in places))
        merged = merged.withColumns(
            {"day": F.lit(journal.day).cast("date"), "batch": F.lit(journal.batch).cast("long")}
        )
        stored = stored.where(~F.col("day").eqNullSafe(F.lit(journal.day).cast("date"))).unionByName(merged)
    return stored


def _last_kept(spark: SparkSession, output: str) -> int | None:
    last: int | None = read_history(spark, output).agg(F.max("event_id")).collect()[0][0]
    return last


def _report(run: JobRun, output: str, before: int | None, last_event_id: int) -> JobResult:
    history = read_history(run.spark, output)
    added = history if before is None else history.where(F.col("event_id") > before)
    counts = added.agg(F.count("*"), F.count_distinct("day"), F.count_distinct("batch")).collect()[0]
    shown = churn(history).limit(int(run.options["churn_rows"])).collect()
    columns = ("table", "events", "alterations", "writes", "partitions added", "partitions dropped", "last event")
    rows = [
        (
            f"{row['catalog'] or '?'}.{row['database']}.{row['table']}",
            row["events"],
            row["alterations"],
            row["writes"],
            row["partitions_added"],
            row["partitions_dropped"],
            row["last_event_time"],
        )
        for row in shown
    ]
    summary = {
        "events added": counts[0],
        "days": counts[1],
        "batches": counts[2],
        "last event": last_event_id,
        "events in all": history.count(),
    }
    return JobResult(summary, [ResultTable("Most changed tables", columns, rows)] if rows else [])
