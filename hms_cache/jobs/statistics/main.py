"""The job ``statistics``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import to_arrow_schema
from thrift.Thrift import TException

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.config.quantities import parse_size_bytes
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.sources.scope import TABLE_COLUMNS, TableScope, shown_name
from hms_cache.jobs.statistics import data_files, missing_statistics, plan, table_level
from hms_cache.jobs.statistics.changes import Changes, PositionFile, changes_since, current_position
from hms_cache.jobs.statistics.computing import Computation, compute_small, target_of
from hms_cache.jobs.statistics.data_files import SAMPLED, UnitFiles
from hms_cache.jobs.statistics.histograms import histograms
from hms_cache.jobs.statistics.missing_statistics import PARTITIONS_OF_A_SLICE, SLICES
from hms_cache.jobs.statistics.parameters import not_answerable, spark_statistics
from hms_cache.jobs.statistics.plan import PLAN_COLUMNS, TableWork, limit_work, tables_in, was_computed
from hms_cache.jobs.statistics.reading import (
    reads_files_directly,
    unreadable_partitions,
    whole_table,
)
from hms_cache.jobs.statistics.recording import record_table
from hms_cache.jobs.statistics.rows.file_index import reads_files
from hms_cache.jobs.statistics.rows.listed_files import OtherFiles
from hms_cache.jobs.statistics.rows.small_files import SessionReading
from hms_cache.jobs.statistics.session import reading_tables
from hms_cache.jobs.statistics.totals import TotalsOfColumns
from hms_cache.jobs.statistics.transaction import Transaction
from hms_cache.jobs.statistics.withdrawing import withdraw, withdraw_of_table
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.statistics_values import ColumnValues, statistics_of
from hms_cache.store.rows.parameters import (
    accurate_columns,
    remove_columns_from_accuracy,
    set_basic_statistics_accurate,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats

TABLES_TOGETHER, UNITS_TOGETHER = 100, 2_000
"""Maximum number of tables, and of partitions, that one Spark job reads if their files are small: a job takes at least
some 0.2 s. After a failure, each table is tried separately."""

_STATE_WRITTEN_EVERY_S = 10.0
_DAY_S = 86_400

_FAILED = 3
_FAILURES_SHOWN = 20


_TABLES, _PARTITIONS, _ROWS = "tables computed", "partitions written", "rows read"
_MERGED, _ESTIMATED = "partitioned tables merged", "tables with estimates"


@dataclass(slots=True)
class _Done:
    """Results of a run so far."""

    counts: Counter[str] = field(default_factory=Counter)
    """Keyed by the labels of the summary."""
    postponed: int = 0
    failures: list[tuple[str, str | None, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def add(self, part: _Done) -> None:
        """Adds the results of a table."""
        self.counts.update(part.counts)
        self.failures += part.failures
        self.notes += part.notes


def main(run: JobRun) -> JobResult:
    """Plans, and unless it is a dry run computes and writes, table by table.

    Raises ConfigurationError, MetastoreUnavailableError. Failures of single tables are reported at the end.
    """
    metastore = run.metastores
    max_bytes = _size(run, "max_bytes")
    scope = TableScope(tuple(pattern.lower() for pattern in run.options["tables"]))
    file = PositionFile(run.options["state"]) if run.options["state"] else None
    positions = file.read() if file else {}
    # Taken before anything is read: later events are left to the next run.
    with run.progress.step("Looking for changes"), Origin(metastore=metastore).following() as log:
        here = current_position(log)
        work, left_out = tables_in(metastore, scope)
        known = {one.name: positions[one.name] for one in work if one.name in positions}
        changes = changes_since(log, known) if known and not run.options["all"] else {}
    _choose(run, work, changes)
    night = int(time.time() // _DAY_S)
    postponed = limit_work(work, max_bytes, night) if max_bytes is not None else 0
    planned = ResultTable("Plan", PLAN_COLUMNS, [one.plan_row() for one in work if one.has_work])
    done = _Done(postponed=postponed, notes=[(shown_name(name_of_table(table)), why) for table, why in left_out])
    if not run.dry_run:
        for table in (table for table, _ in left_out if was_computed(table)):
            try:
                withdraw_of_table(run, table)
            except (TException, OutcomeUnknownError) as error:
                done.failures.append((shown_name(name_of_table(table)), None, reason_of(error)))
        with reading_tables(run.spark):
            written_s = time.monotonic()
            for one, part in _each(run, work):
                done.add(part)
                if not one.postponed and not part.failures:
                    positions[one.name] = here
                if file is not None and time.monotonic() > written_s + _STATE_WRITTEN_EVERY_S:
                    file.write(positions)
                    written_s = time.monotonic()
        if file is not None:
            file.write(positions)
    return _report(run, work, planned, done)


def _size(run: JobRun, option: str) -> int | None:
    text = run.options[option]
    try:
        return None if text is None else parse_size_bytes(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from error


def _choose(run: JobRun, work: list[TableWork], changes: dict[TableName, Changes]) -> None:
    lacking_of: dict[TableName, set[str | None]] = {}
    files_of: dict[TableName, dict[str | None, UnitFiles]] = {}
    if work:
        with run.progress.step("Looking at files"):
            sample_bytes = _size(run, "sample_above")
            for row in data_files.transform(_slices(run, work), run.metastores, sample_bytes).collect():
                files_of.setdefault(_owner(row), {})[row["partition"]] = data_files.unit_files(row)
    if work and not run.options["all"]:
        with run.progress.step("Looking for partitions without statistics"):
            slices = _slices(run, work)
            for row in missing_statistics.transform(slices, run.metastores, run.options["engine"]).collect():
                lacking_of.setdefault(_owner(row), set()).add(row["partition"])
    for one in work:
        if one.names and not reads_files(run.spark, one.table):
            one.unreadable = frozenset(unreadable_partitions(one.table, one.names))
        files = files_of.get(one.name, {})
        if any(found.sample is not None for found in files.values()) and not reads_files_directly(run.spark, one.table):
            files = {unit: found._replace(sample=None) for unit, found in files.items()}
        one.choose(
            everything=run.options["all"],
            changes=changes.get(one.name),
            lacking=lacking_of.get(one.name, set()),
            files=files,
        )


def _owner(row: Row) -> TableName:
    return TableName(*(row[name] for name in TABLE_COLUMNS))


def _slices(run: JobRun, work: Iterable[TableWork], *, chosen: bool = False) -> DataFrame:
    rows = _slice_rows(work, chosen=chosen)
    slices = run.spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(SLICES)), SLICES)
    return slices.repartition(max(1, min(len(rows), run.options["writers"])))


def _slice_rows(work: Iterable[TableWork], *, chosen: bool = False) -> list[dict[str, object]]:
    """Slices (`missing_statistics.SLICES`) with all partitions, or with only the chosen ones."""
    rows: list[dict[str, object]] = []
    for one in work:
        columns = [column.name for column in one.columns]
        snapshot = None if one.snapshot is None else one.snapshot._asdict()
        some: dict[str, object] = {**one.name._asdict(), "columns": columns, "snapshot": snapshot}
        some["partitions_in_all"] = len(one.names or ())
        if one.names is None:
            rows.append(some | {"partitions": None})
            continue
        names = one.chosen if chosen else one.names
        for batch in batches(names, PARTITIONS_OF_A_SLICE):
            rows.append(some | {"partitions": batch})
    return rows


def _each(run: JobRun, work: Sequence[TableWork]) -> Iterator[tuple[TableWork, _Done]]:
    """Yields each table when it is finished. Several are processed at a time: while the metastore stores the statistics
    of one, Spark reads the next."""
    with ExitStack() as stack:
        having = sum(one.has_work for one in work)
        if having:
            stack.enter_context(run.progress.step(f"Statistics of {having} tables"))
        pool = ThreadPoolExecutor(run.options["tables_at_once"], "statistics")
        # If one fails permanently, as with an unavailable metastore, waiting tables are not started.
        stack.callback(lambda: pool.shutdown(cancel_futures=True))
        session = SessionReading.of(run.spark)
        groups = list(_together(run, work, session))
        # The metastore changes one table at a time: cores that work on different tables do not wait for each other. The
        # last group uses cores as they become free.
        all_cores = run.spark.sparkContext.defaultParallelism
        cores = max(1, all_cores // run.options["tables_at_once"])
        futures = [pool.submit(_work_on_some, run, some, all_cores if some is groups[-1] else cores) for some in groups]
        for future in futures:
            yield from future.result()


_Works = list[tuple[TableWork, Computation]]


def _together(run: JobRun, work: Iterable[TableWork], session: SessionReading) -> Iterator[_Works]:
    """Groups of tables: each table that Spark has to read is a group of its own; the others are grouped for one Spark
    job."""
    some: _Works = []
    units = 0
    for one in work:
        computation = Computation(run, one, session)
        if one.snapshot is not None or computation.needs_spark:
            yield [(one, computation)]
            continue
        if some and (len(some) >= TABLES_TOGETHER or units + computation.small_units > UNITS_TOGETHER):
            yield some
            some, units = [], 0
        some.append((one, computation))
        units += computation.small_units
    if some:
        yield some


def _work_on_some(run: JobRun, some: _Works, cores: int) -> list[tuple[TableWork, _Done]]:
    small = [computation for _, computation in some if computation.small_units]
    if len(small) > 1:
        # Errors occur again when the tables are tried separately, and are then reported with the table.
        with suppress(PySparkException, Py4JJavaError, OutcomeUnknownError):
            compute_small(run, small, cores)
    return [(one, _work_on(run, one, computation, cores)) for one, computation in some]


def _work_on(run: JobRun, one: TableWork, computation: Computation, cores: int) -> _Done:
    done = _Done()
    label = one.label
    if one.unreadable:
        done.notes.append((label, f"{len(one.unreadable)} partitions left out: Spark reads others' values as theirs"))
    done.failures += ((label, unit, problem) for unit, problem in one.unlisted)
    failures = len(done.failures)
    if one.has_work:
        began_s = time.monotonic()
        try:
            with ExitStack() as stack:
                if one.snapshot is not None:
                    _begin(run, one, done, stack.enter_context(Transaction(run.metastores, one.table)))
                    computation = computation.begun_again()
                _write(run, one, computation, done, cores)
            if one.sampled:
                what = "" if one.names is None else f" of {len(one.sampled)} partitions"
                done.notes.append((label, f"statistics{what} are estimated from a sample (--sample-above)"))
                done.counts[_ESTIMATED] += 1
        except (PySparkException, Py4JJavaError, TException, OutcomeUnknownError, OtherFiles) as error:
            done.failures.append((label, None, reason_of(error)))
        what = f", {len(done.failures) - failures} failures" if len(done.failures) > failures else ""
        run.progress.note(f"{label}: {done.counts[_ROWS]:,} rows{what}, {time.monotonic() - began_s:.1f} s")
    _withdraw_outdated(run, one, done)
    if one.postponed:
        done.notes.append((label, f"{one.postponed} to compute are left for the next run (--max-bytes)"))
    return done


def _withdraw_outdated(run: JobRun, one: TableWork, done: _Done) -> None:
    """Withdraws claims of exact statistics for outdated units that this run did not process or failed to process: Hive
    must not answer queries from statistics known to be outdated."""
    if one.snapshot is not None:  # statistics from before a writing transaction are invalid anyway
        return
    failed = {unit for _, unit, _ in done.failures}
    chosen: set[str | None] = {None} if one.is_chosen else set(one.chosen)
    units = [unit for unit in one.outdated() if unit not in chosen or unit in failed or None in failed]
    if not units:
        return
    what = "" if one.names is None else f" of {len(units)} partitions"
    done.notes.append((one.label, f"statistics{what} are outdated, and no longer marked as exact"))
    try:
        withdraw(run, one.table, {unit: one.files[unit] for unit in units})
    except (TException, OutcomeUnknownError) as error:
        done.failures.append((one.label, None, reason_of(error)))


def _begin(run: JobRun, one: TableWork, done: _Done, transaction: Transaction) -> None:
    """Checks the chosen units of a transactional table again, as visible to the transaction."""
    one.snapshot, one.write_id = transaction.snapshot, transaction.write_id
    chosen = data_files.transform(_slices(run, [one], chosen=True), run.metastores)
    found = {row["partition"]: data_files.unit_files(row) for row in chosen.collect()}
    one.files = {**one.files, **found}
    done.failures += ((one.label, unit, each.problem) for unit, each in found.items() if each.problem is not None)
    readable = {unit for unit, each in found.items() if each.problem is None}
    one.chosen = [name for name in one.chosen if name in readable]
    one.is_chosen = one.is_chosen and None in readable


def _write(run: JobRun, one: TableWork, found: Computation, done: _Done, cores: int) -> None:
    if one.chosen or one.is_chosen:
        done.counts[_TABLES] += 1
        found.compute(cores)
        done.counts[_PARTITIONS], done.counts[_ROWS] = found.partitions, found.rows
        done.failures += found.failures
    is_whole = not one.postponed and not done.failures
    if one.names is not None and not run.options["partitions_only"] and is_whole:
        _merge(run, one, done, found.together(), found.totals, done.counts[_ROWS])
    if run.options["histograms"] and is_whole and not done.failures and not one.sampled:
        _add_histograms(run, one, done)


def _merge(
    run: JobRun,
    one: TableWork,
    done: _Done,
    written_now: Sequence[AggrStats],
    totals: TotalsOfColumns,
    rows_now: int,
) -> None:
    """Writes statistics of the table as a whole, if all partitions have statistics. Those written by this run are not
    read again."""
    label = one.label
    count = len(one.names or ())
    if not count:
        statistics = [statistics_of(column.name, column.type, ColumnValues(column.kind)) for column in one.columns]
    elif written_now and all(each.partsFound == count for each in written_now):
        statistics = [column for each in written_now for column in each.colStats]
    else:
        stored, totals = _stored(run, one)
        if stored.partsFound < count:
            found = stored.partsFound
            done.notes.append((label, f"none of the table as a whole: only {found} partitions have statistics"))
            return
        statistics = list(stored.colStats)
    bounds = table_level.without_sketch(statistics)
    if bounds and count:
        done.notes.append(
            (label, "distinct values of the table as a whole are lower bounds: give --database to merge bit vectors")
        )
    target = target_of(run, one)
    rows = _rows_of_all(one, rows_now) if not one.sampled else None
    not_claimed = not_answerable(statistics)

    def change(parameters: Mapping[str, str]) -> dict[str, str]:
        found = dict(parameters) | {plan.MERGED: one.digest()}
        found.pop(SAMPLED, None)
        remove_columns_from_accuracy(found, not_claimed)
        if one.sampled:
            found[SAMPLED] = f"{len(one.sampled)} of {len(one.names or ())} partitions"
            set_basic_statistics_accurate(found, False)
        total = sum(unit.figures.bytes for unit in one.files.values() if unit.figures is not None)
        return found if rows is None and not one.sampled else spark_statistics(found, rows, total, statistics, totals)

    def is_done(found: Mapping[str, str]) -> bool:
        return found.get(plan.MERGED) == one.digest() and accurate_columns(found).isdisjoint(not_claimed)

    with MetastoreClient(target.metastore) as client:
        target.write(client, [target.statistics(None, statistics)])
        reason = record_table(client, one.table, change, is_done, target.write_id, target.valid_write_ids)
    if reason is not None:
        done.failures.append((label, None, reason))
    done.counts[_MERGED] += 1


def _add_histograms(run: JobRun, one: TableWork, done: _Done) -> None:
    """Adds histograms after the table's statistics, because rewriting these includes existing histograms."""
    has_files = any(unit.has_files for unit in one.files.values())
    rows = whole_table(run.spark, one.table, one.names, one.files) if has_files else None
    found = histograms(run.spark, rows, one.columns) if rows is not None else {}
    if not found:
        return
    with MetastoreClient(run.metastores) as client:
        reason = record_table(
            client,
            one.table,
            lambda parameters: {**parameters, **found},
            lambda parameters: found.items() <= parameters.items(),
            *(one.write_id, None if one.snapshot is None else one.snapshot.write_ids),
        )
    if reason is not None:
        done.failures.append((one.label, None, reason))


def _rows_of_all(one: TableWork, rows_now: int) -> int | None:
    """Number of rows of the table: those read now, and the recorded ones of other partitions. None if some are
    unknown."""
    chosen = set(one.chosen)
    others = [one.files[name].rows if name in one.files else None for name in one.names or () if name not in chosen]
    return None if None in others else rows_now + sum(count for count in others if count is not None)


def _stored(run: JobRun, one: TableWork) -> tuple[AggrStats, TotalsOfColumns]:
    """The stored statistics of all partitions, merged."""
    database = run.options["database"]
    origin = Origin(database=database) if database else Origin(metastore=run.metastores)
    slices, engine = _slice_rows([one]), run.options["engine"]
    if len(slices) == 1:  # little data: faster without a Spark job
        partials = list(table_level.partials(slices, origin, engine))
    else:
        partials = [row.asDict() for row in table_level.transform(_slices(run, [one]), origin, engine).collect()]
    columns = [column.name for column in one.columns]
    totals = TotalsOfColumns()
    for row in partials:
        totals.add_encoded(row["totals"])
    return table_level.merged((bytes(row["statistics"]) for row in partials), columns), totals


def _report(run: JobRun, work: list[TableWork], planned: ResultTable, done: _Done) -> JobResult:
    summary: dict[str, object] = {"tables examined": len(work)}
    if run.dry_run:
        summary["tables to compute"] = sum(1 for one in work if one.chosen or one.is_chosen)
        summary["partitions to compute"] = sum(len(one.chosen) for one in work)
    else:
        estimated = () if run.options["sample_above"] is None else (_ESTIMATED,)
        summary |= {what: done.counts[what] for what in (_TABLES, _PARTITIONS, _ROWS, _MERGED, *estimated)}
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
