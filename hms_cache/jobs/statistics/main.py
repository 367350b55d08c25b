"""The job ``statistics``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from thrift.Thrift import TException

from hms_cache.client import MetastoreClient
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.statistics import lacking, table_level
from hms_cache.jobs.statistics.changes import Changes, Place, PlaceFile, changes_since, current_place
from hms_cache.jobs.statistics.columns import passes
from hms_cache.jobs.statistics.lacking import PARTITIONS_OF_A_SLICE, SLICES
from hms_cache.jobs.statistics.plan import PLAN_COLUMNS, TableWork, tables_in
from hms_cache.jobs.statistics.reading import partition_numbers, portions, rows_of
from hms_cache.jobs.statistics.session import many_small_files
from hms_cache.jobs.statistics.transform import transform
from hms_cache.jobs.statistics.writing import Target, written
from hms_cache.notifications.scope import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats

PARTITIONS_OF_A_TASK = 10_000
"""Partitions put together in one task, where they are more than for one task of each writer: some ten MB a column."""

_FAILED = 3
_FAILURES_SHOWN = 20


@dataclass(slots=True)
class _Done:
    """What a run has done so far."""

    tables: int = 0
    partitions: int = 0
    rows: int = 0
    merged: int = 0
    failures: list[tuple[str, str | None, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


def main(run: JobRun) -> JobResult:
    """Plans, and unless it is a dry run computes and writes, one table after the other.

    Raises ConfigurationError, MetastoreUnavailableError. What fails with one table is told at the end.
    """
    metastore = run.options["metastore"]
    scope = TableScope(tuple(pattern.lower() for pattern in run.options["tables"]))
    file = PlaceFile(run.options["state"]) if run.options["state"] else None
    places = file.read() if file else {}
    # Taken before anything is read: what happens from now on is for the next run.
    with run.progress.step("Looking for changes"), Origin(metastore=metastore).following() as log:
        here = current_place(log)
        work = tables_in(metastore, scope)
        known = {one.name: places[one.name] for one in work if one.name in places}
        changes = changes_since(log, known) if known and not run.options["all"] else {}
    _choose(run, work, changes)
    plan = ResultTable("Plan", PLAN_COLUMNS, [one.plan_row() for one in work if one.has_work])
    done = _Done()
    if not run.dry_run:
        with many_small_files(run.spark):
            for one in work:
                _work_on(run, one, done, file, places, here)
    return _report(run, work, plan, done)


def _choose(run: JobRun, work: list[TableWork], changes: dict[TableName, Changes]) -> None:
    lacking_of: dict[tuple[str, str], set[str | None]] = {}
    if work and not run.options["all"]:
        with run.progress.step("Looking for partitions without statistics"):
            slices = _slices(run, work)
            for row in lacking.transform(slices, run.options["metastore"], run.options["engine"]).collect():
                lacking_of.setdefault((row["database"], row["table"]), set()).add(row["partition"])
    for one in work:
        one.choose(
            everything=run.options["all"],
            changes=changes.get(one.name),
            lacking=lacking_of.get((one.table.dbName, one.table.tableName), set()),
        )


def _slices(run: JobRun, work: Iterable[TableWork]) -> DataFrame:
    rows: list[dict[str, object]] = []
    for one in work:
        columns = [column.name for column in one.columns]
        some: dict[str, object] = {"database": one.table.dbName, "table": one.table.tableName, "columns": columns}
        if one.names is None:
            rows.append(some | {"partitions": None})
            continue
        for start in range(0, len(one.names), PARTITIONS_OF_A_SLICE):
            rows.append(some | {"partitions": one.names[start : start + PARTITIONS_OF_A_SLICE]})
    slices = run.spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(SLICES)), SLICES)
    return slices.repartition(max(1, min(len(rows), run.options["writers"])))


def _work_on(
    run: JobRun, one: TableWork, done: _Done, file: PlaceFile | None, places: dict[TableName, Place], here: Place
) -> None:
    failures = len(done.failures)
    label = f"{one.table.dbName}.{one.table.tableName}"
    if one.unreadable:
        done.notes.append((label, f"{len(one.unreadable)} partitions left out: Spark reads others' values as theirs"))
    if one.has_work:
        try:
            with run.progress.step(f"Statistics of {label}"):
                together = _compute(run, one, done)
                if one.names and not run.options["partitions_only"]:
                    _merge(run, one, done, together)
        except (PySparkException, TException) as error:
            text = str(getattr(error, "message", None) or error)
            done.failures.append((label, None, text.strip().splitlines()[0] if text.strip() else type(error).__name__))
    if file is not None and len(done.failures) == failures:
        places[one.name] = here
        file.write(places)


def _compute(run: JobRun, one: TableWork, done: _Done) -> list[AggrStats]:
    """Statistics of all that was written together, for each pass over the columns."""
    if not one.chosen and not one.is_chosen:
        return []
    done.tables += 1
    target = _target(run, one)
    label = f"{one.table.dbName}.{one.table.tableName}"
    names = [[column.name for column in columns] for columns in passes(one.columns)]
    together: list[list[bytes]] = [[] for _ in names]
    for portion in portions(None if one.names is None else one.chosen, len(one.names or ())):
        for number, columns in enumerate(passes(one.columns)):
            numbers = partition_numbers(run.spark, one.table, portion.names)
            rows = rows_of(run.spark, one.table, columns, portion, numbers)
            tasks = max(run.options["writers"], len(portion.names) // PARTITIONS_OF_A_TASK) if portion.names else 1
            statistics = transform(rows, columns, numbers, tasks).join(_broadcast(numbers), "partition")
            for outcome in written(statistics.coalesce(run.options["writers"]), target, names[number]).collect():
                if outcome["together"] is not None:
                    together[number].append(bytes(outcome["together"]))
                elif outcome["failure"] is not None:
                    done.failures.append((label, outcome["partition"], outcome["failure"]))
                elif number == 0:
                    done.partitions += outcome["written"] if one.names is not None else 0
                    done.rows += outcome["rows"]
    return [table_level.merged(*each) for each in zip(together, names, strict=True)]


def _broadcast(numbers: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return f.broadcast(numbers.select("partition", "name"))


def _merge(run: JobRun, one: TableWork, done: _Done, written_now: Sequence[AggrStats]) -> None:
    """Statistics of the table as a whole, if all partitions have theirs. What this run wrote is not read again."""
    label = f"{one.table.dbName}.{one.table.tableName}"
    count = len(one.names or ())
    if written_now and all(each.partsFound == count for each in written_now):
        statistics = [column for each in written_now for column in each.colStats]
    else:
        stored = _stored(run, one)
        if stored.partsFound < count:
            found = stored.partsFound
            done.notes.append((label, f"none of the table as a whole: only {found} partitions have statistics"))
            return
        statistics = list(stored.colStats)
    bounds = table_level.without_sketch(statistics)
    if bounds:
        done.notes.append(
            (label, "distinct values of the table as a whole are lower bounds: give --database to merge bit vectors")
        )
    target = _target(run, one)
    with MetastoreClient(target.metastore) as client:
        target.write(client, [target.statistics(None, statistics)])
    done.merged += 1


def _stored(run: JobRun, one: TableWork) -> AggrStats:
    """Statistics of all partitions together, as they are stored."""
    database = run.options["database"]
    origin = Origin(database=database) if database else Origin(metastore=run.options["metastore"])
    partials = table_level.transform(_slices(run, [one]), origin, run.options["engine"]).collect()
    columns = [column.name for column in one.columns]
    return table_level.merged((bytes(row["statistics"]) for row in partials), columns)


def _target(run: JobRun, one: TableWork) -> Target:
    options = run.options
    return Target(
        options["metastore"], one.table.dbName, one.table.tableName, options["engine"], options["batch_partitions"]
    )


def _report(run: JobRun, work: list[TableWork], plan: ResultTable, done: _Done) -> JobResult:
    summary: dict[str, object] = {"tables looked at": len(work)}
    if run.dry_run:
        summary["tables to compute"] = sum(1 for one in work if one.chosen or one.is_chosen)
        summary["partitions to compute"] = sum(len(one.chosen) for one in work)
    else:
        summary["tables computed"] = done.tables
        summary["partitions written"] = done.partitions
        summary["rows read"] = done.rows
        summary["partitioned tables merged"] = done.merged
        summary["failures"] = len(done.failures)
    tables = [plan]
    if done.notes:
        tables.append(ResultTable("Notes", ("table", "note"), done.notes))
    if done.failures:
        tables.append(
            ResultTable("Failures", ("table", "partition", "reason"), sorted(done.failures, key=str)[:_FAILURES_SHOWN])
        )
    return JobResult(summary, tables, _FAILED if done.failures else 0)
