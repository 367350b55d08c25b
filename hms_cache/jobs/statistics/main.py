"""The job ``statistics``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from thrift.Thrift import TException

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.config.quantities import parse_size_bytes
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.jobs.statistics import data_files, lacking, plan, table_level
from hms_cache.jobs.statistics.changes import Changes, Place, PlaceFile, changes_since, current_place
from hms_cache.jobs.statistics.columns import passes
from hms_cache.jobs.statistics.data_files import UnitFiles
from hms_cache.jobs.statistics.histograms import histograms
from hms_cache.jobs.statistics.lacking import PARTITIONS_OF_A_SLICE, SLICES
from hms_cache.jobs.statistics.parameters import spark_statistics
from hms_cache.jobs.statistics.plan import PLAN_COLUMNS, TableWork, limit_work, tables_in
from hms_cache.jobs.statistics.reading import no_rows, partition_numbers, portions, rows_of
from hms_cache.jobs.statistics.recording import record_table
from hms_cache.jobs.statistics.session import many_small_files
from hms_cache.jobs.statistics.transform import transform
from hms_cache.jobs.statistics.writing import Target, written
from hms_cache.metadata.object_names import TableName
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
    postponed: int = 0
    failures: list[tuple[str, str | None, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


def main(run: JobRun) -> JobResult:
    """Plans, and unless it is a dry run computes and writes, one table after the other.

    Raises ConfigurationError, MetastoreUnavailableError. What fails with one table is told at the end.
    """
    metastore = run.options["metastore"]
    max_bytes = _size(run.options["max_bytes"])
    scope = TableScope(tuple(pattern.lower() for pattern in run.options["tables"]))
    file = PlaceFile(run.options["state"]) if run.options["state"] else None
    places = file.read() if file else {}
    # Taken before anything is read: what happens from now on is for the next run.
    with run.progress.step("Looking for changes"), Origin(metastore=metastore).following() as log:
        here = current_place(log)
        work, left_out = tables_in(metastore, scope)
        known = {one.name: places[one.name] for one in work if one.name in places}
        changes = changes_since(log, known) if known and not run.options["all"] else {}
    _choose(run, work, changes)
    postponed = limit_work(work, max_bytes) if max_bytes is not None else 0
    planned = ResultTable("Plan", PLAN_COLUMNS, [one.plan_row() for one in work if one.has_work])
    done = _Done(postponed=postponed, notes=list(left_out))
    if not run.dry_run:
        with many_small_files(run.spark):
            for one in work:
                _work_on(run, one, done, file, places, here)
    return _report(run, work, planned, done)


def _size(text: str | None) -> int | None:
    try:
        return None if text is None else parse_size_bytes(text)
    except ValueError as error:
        raise ConfigurationError(f"max_bytes: {error}") from error


def _choose(run: JobRun, work: list[TableWork], changes: dict[TableName, Changes]) -> None:
    lacking_of: dict[tuple[str, str], set[str | None]] = {}
    files_of: dict[tuple[str, str], dict[str | None, UnitFiles]] = {}
    if work:
        with run.progress.step("Looking at files"):
            for row in data_files.transform(_slices(run, work), run.options["metastore"]).collect():
                units = files_of.setdefault((row["database"], row["table"]), {})
                units[row["partition"]] = data_files.unit_files(row)
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
            files=files_of.get((one.table.dbName, one.table.tableName), {}),
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
    done.failures += ((label, unit, problem) for unit, problem in one.unlisted)
    if one.has_work:
        try:
            with run.progress.step(f"Statistics of {label}"):
                rows_before = done.rows
                together = _compute(run, one, done)
                is_whole = not one.postponed and len(done.failures) == failures
                if one.names and not run.options["partitions_only"] and is_whole:
                    _merge(run, one, done, together, done.rows - rows_before)
                if run.options["histograms"] and is_whole and len(done.failures) == failures:
                    _add_histograms(run, one, done)
        except (PySparkException, Py4JJavaError, TException, OutcomeUnknownError) as error:
            done.failures.append((label, None, reason_of(error)))
    if one.postponed:
        done.notes.append((label, f"{one.postponed} to compute are left for the next run (--max-bytes)"))
    if file is not None and not one.postponed and len(done.failures) == failures:
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
    for portion in portions(None if one.names is None else one.chosen, one.names, one.files):
        for number, columns in enumerate(passes(one.columns)):
            numbers = partition_numbers(run.spark, one.table, portion.names, one.files)
            if one.has_files:
                rows = rows_of(run.spark, one.table, columns, portion, numbers)
            else:
                rows = no_rows(run.spark, columns)
            tasks = max(run.options["writers"], len(portion.names) // PARTITIONS_OF_A_TASK) if portion.names else 1
            statistics = transform(rows, columns, numbers, tasks).join(_broadcast(numbers), "partition")
            tasks_rows = statistics.coalesce(run.options["writers"])
            for outcome in written(tasks_rows, target, names[number], one.table).collect():
                if outcome["together"] is not None:
                    together[number].append(bytes(outcome["together"]))
                elif outcome["failure"] is not None:
                    done.failures.append((label, outcome["partition"], outcome["failure"]))
                elif number == len(names) - 1:
                    done.partitions += outcome["written"] if one.names is not None else 0
                    done.rows += outcome["rows"]
    return [table_level.merged(*each) for each in zip(together, names, strict=True)]


def _broadcast(numbers: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return f.broadcast(numbers.select("partition", "name", "location", "files"))


def _merge(run: JobRun, one: TableWork, done: _Done, written_now: Sequence[AggrStats], rows_now: int) -> None:
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
    rows = _rows_of_all(one, rows_now)

    def change(parameters: Mapping[str, str]) -> dict[str, str]:
        found = dict(parameters) | {plan.MERGED: one.digest()}
        total = sum(unit.figures.bytes for unit in one.files.values() if unit.figures is not None)
        return found if rows is None else spark_statistics(found, rows, total, statistics)

    with MetastoreClient(target.metastore) as client:
        target.write(client, [target.statistics(None, statistics)])
        reason = record_table(client, one.table, change, lambda found: found.get(plan.MERGED) == one.digest())
    if reason is not None:
        done.failures.append((label, None, reason))
    done.merged += 1


def _add_histograms(run: JobRun, one: TableWork, done: _Done) -> None:
    """After the table's statistics: those that are written anew take the histograms of before with them."""
    found = histograms(run.spark, one.table, one.columns) if one.has_files else {}
    if not found:
        return
    with MetastoreClient(run.options["metastore"]) as client:
        reason = record_table(
            client,
            one.table,
            lambda parameters: {**parameters, **found},
            lambda parameters: found.items() <= parameters.items(),
        )
    if reason is not None:
        done.failures.append((f"{one.table.dbName}.{one.table.tableName}", None, reason))


def _rows_of_all(one: TableWork, rows_now: int) -> int | None:
    """Rows of the table: those read now, and those that were recorded of the others. None if some are not known."""
    chosen = set(one.chosen)
    others = [one.files[name].rows if name in one.files else None for name in one.names or () if name not in chosen]
    return None if None in others else rows_now + sum(count for count in others if count is not None)


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
        options["metastore"],
        one.table.dbName,
        one.table.tableName,
        options["engine"],
        options["batch_partitions"],
        tuple(column.name for column in passes(one.columns)[-1]),
    )


def _report(run: JobRun, work: list[TableWork], planned: ResultTable, done: _Done) -> JobResult:
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
    if run.options["max_bytes"] is not None:
        summary["left for the next run"] = done.postponed
    tables = [planned]
    if done.notes:
        tables.append(ResultTable("Notes", ("table", "note"), done.notes))
    if done.failures:
        tables.append(
            ResultTable("Failures", ("table", "partition", "reason"), sorted(done.failures, key=str)[:_FAILURES_SHOWN])
        )
    return JobResult(summary, tables, _FAILED if done.failures else 0)
