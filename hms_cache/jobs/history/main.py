"""Runs ``history``: a streaming query up to the log's end at the time of the start.

The content of a batch is recorded in the checkpoint before it is written, so a restart continues after the previous
run; a batch that is repeated after a failure results in the same rows (`tables`). After the last batch, the files of
past days are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hms_cache.errors import HmsCacheError
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.history.callers import callers, with_callers
from hms_cache.jobs.history.compaction import Compacted
from hms_cache.jobs.history.tables import HistoryTable, history_table
from hms_cache.jobs.history.transform import churn, transform
from hms_cache.jobs.sources import events_with_tokens
from hms_cache.jobs.sources.event_range import EventLogError
from hms_cache.jobs.sources.origin import Origin


def main(run: JobRun) -> JobResult:
    """Updates the history to the log's end. Raises EventLogError if the log does not continue it."""
    options = run.options
    place = {name: str(options[name]) for name in ("metastore", "database") if options[name]}
    if "metastore" in place and run.auth:
        place["auth"] = run.auth
    origin = Origin.of_options(place)
    with events_with_tokens(run.spark, origin.metastore):
        return _updated(run, place, origin)


def _updated(run: JobRun, place: Mapping[str, str], origin: Origin) -> JobResult:
    options, output = run.options, str(run.options["output"]).rstrip("/")
    with origin.following() as log:
        last_event_id = log.head().last_event_id
    table = history_table(run.spark, output, options["format"], options["checkpoint"])
    with run.progress.step("Reading the history"):
        if not run.dry_run:
            table.prepare()
        before: int | None = table.read().agg(F.max("event_id")).collect()[0][0]
    if before is not None and not table.has_checkpoint():
        raise HmsCacheError(
            f"{output} contains events up to {before}, but its checkpoint {table.checkpoint} is missing: restore it, "
            "or begin another history elsewhere"
        )
    start = str(options["start"]) if before is None else str(before)
    source = {**place, "start": start, "end": str(last_event_id)}
    if run.dry_run:
        with run.progress.step("Counting events"):
            events = run.spark.read.format("hms_events").options(**source, message="none").load().count()
        return JobResult({"events to add": events, "last event": last_event_id, "stored up to": before})
    source["max_events_per_batch"] = str(options["batch_events"])
    known_callers = None
    if options["audit"]:
        known_callers = callers(run.spark, options["audit"], (before or 0) + 1, last_event_id).persist()
    with run.progress.step("Adding events"):
        _follow(run.spark, source, table, known_callers, keep_messages=bool(options["keep_messages"]))
    if known_callers is not None:
        known_callers.unpersist()
    done = Compacted()
    if options["target_mib"]:
        with run.progress.step("Merging files"):
            done = table.merge(int(options["target_mib"]) << 20)
    with run.progress.step("Counting changes"):
        result = _report(run, table, before, last_event_id)
    if options["keep_days"]:
        done.days_deleted = table.delete_days(int(options["keep_days"]))
    kept = {
        "days merged": done.days,
        "files merged": done.files_before,
        "files after merging": done.files_after,
        "days deleted": done.days_deleted,
    }
    return replace(result, summary={**result.summary, **kept})


_LATE_WORKER = "Python worker failed to connect back"
"""Spark's message for a worker that has not connected ten seconds after its start; this limit is not configurable."""

_STARTS = 3


def _follow(
    spark: SparkSession,
    source: dict[str, str],
    table: HistoryTable,
    known_callers: DataFrame | None,
    *,
    keep_messages: bool,
) -> None:
    """Runs the query; continues from its checkpoint if a worker starts too late, as on a machine that is busy with
    other jobs."""
    for start in range(1, _STARTS + 1):
        events = spark.readStream.format("hms_events").options(**source).load()
        query = (
            transform(events, keep_messages=keep_messages)
            .writeStream.foreachBatch(partial(_write_batch, table=table, known_callers=known_callers))
            .option("checkpointLocation", table.checkpoint)
            .start()
        )
        try:
            query.processAllAvailable()
            return
        except StreamingQueryException as error:
            if start == _STARTS or _LATE_WORKER not in str(error):
                raise _explained(error) from error
        finally:
            query.stop()


def _write_batch(batch: DataFrame, batch_id: int, *, table: HistoryTable, known_callers: DataFrame | None) -> None:
    table.add(
        (batch if known_callers is None else with_callers(batch, known_callers)).withColumn(
            "batch", F.lit(batch_id).cast("long")
        )
    )


def _explained(error: StreamingQueryException) -> HmsCacheError:
    """The message of an EventLogError if that is the cause, without the traces of two languages."""
    text = str(error)
    name = f"{EventLogError.__name__}: "
    if name in text:
        return EventLogError(text.partition(name)[2].splitlines()[0])
    return HmsCacheError(f"the history could not be written: {text}")


def _report(run: JobRun, table: HistoryTable, before: int | None, last_event_id: int) -> JobResult:
    history = table.read()
    added = history if before is None else history.where(F.col("event_id") > before)
    counts = added.agg(F.count("*"), F.count_distinct("day"), F.count_distinct("batch"), F.count("caller")).collect()[0]
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
    if run.options["audit"]:
        summary["events with a caller"] = counts[3]
    return JobResult(summary, [ResultTable("Most changed tables", columns, rows)] if rows else [])
