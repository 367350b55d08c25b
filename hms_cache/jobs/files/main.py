"""The job ``files``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.Thrift import TException
from thrift.TSerialization import serialize

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, Metastores
from hms_cache.jobs.files import listing
from hms_cache.jobs.files.definition import MEBIBYTE
from hms_cache.jobs.files.directories import MISSING, OUTDATED, UNREGISTERED, canonical, place_of
from hms_cache.jobs.files.repair import Outcome, Repair, repair_table
from hms_cache.jobs.files.results import Results
from hms_cache.jobs.files.transform import (
    DIFFERENCES,
    OK,
    differences,
    directories,
    sizes,
    unknown_directories,
    without_data,
)
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.frame.own_partitions import refusal
from hms_cache.jobs.sources.catalog_reader import tables_within
from hms_cache.jobs.sources.fields import LONG, STRING, required
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TABLE_COLUMNS, TableScope, shown_name
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

PARTITIONS_OF_A_SLICE = 1_000
"""Number of partitions read in one call: a few MB."""

DIRECTORIES_OF_A_PART = 200
"""Number of directories per task: listing them takes longer than starting a task."""

_FOUND_DIFFERENCES = 3
_WITH_FILES = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE", "MATERIALIZED_VIEW"})
_TABLES = StructType(
    [
        *required(STRING, *TABLE_COLUMNS),
        *required(LONG, "columns", "encoded_bytes"),
    ]
)
_PROTOCOL = TBinaryProtocolAcceleratedFactory()


def main(run: JobRun) -> JobResult:
    """Lists, compares, stores the results and reports; then repairs as requested, unless there are too many repairs or
    this is a dry run. A table that cannot be read becomes a row; the others are processed.

    Raises MetastoreUnavailableError.
    """
    options = run.options
    started_at = datetime.now(UTC)
    scope = TableScope(tuple(one.lower() for one in options["tables"]))
    with run.progress.step("Reading the catalog"):
        tables, failures = _tables(run.metastores, scope)
        places, roots, parts = _frames(run, tables, failures)
    at_once = min(parts, run.spark.sparkContext.defaultParallelism)
    listing_options = listing.ListingOptions(
        options["small_file_mib"] * MEBIBYTE, options["block_mib"] * MEBIBYTE, options["requests_per_s"] / at_once
    )
    with run.progress.step("Listing directories"):
        found = listing.directories_below(roots, parts, listing_options).cache()
        listed = listing.transform(places, found, parts, listing_options).cache()
        unknown = unknown_directories(listed, found).cache()
        every = directories(listed, without_data(unknown, listed, roots)).cache()
        differing = differences(every)
        by_kind = {row["kind"]: row["count"] for row in every.groupBy("kind").count().collect()}
        counts = {kind: count for kind, count in by_kind.items() if kind != OK}
        rootless = {TableName(*row) for row in listing.missing_roots(found).collect()}
    with run.progress.step("Adding up"):
        report = sizes(listed, _table_rows(run, tables)).orderBy(f.desc("rule_bytes"), *TABLE_COLUMNS)
        by_table = [tuple(row) for row in report.limit(options["shown"]).collect()]
        totals = report.agg(*(f.sum(name).alias(name) for name in _SUMMED)).collect()[0].asDict()
        shown = [
            tuple(row)
            for row in differing.orderBy("kind", *TABLE_COLUMNS, "location").limit(options["shown"]).collect()
        ]
    summary: dict[str, object] = {"tables": len(tables)} | {
        name.replace("_", " "): totals[name] or 0 for name in _SUMMED
    }
    summary |= {f"{kind} directories": counts[kind] for kind in sorted(counts)}
    if options["output"] and not run.dry_run:
        with run.progress.step("Keeping what was found"):
            results = Results(run.spark, options["output"], options["format"])
            name, written = results.add(
                every,
                report,
                scope=scope,
                started_at=started_at,
                counts=(len(tables), sum(by_kind.values()), sum(counts.values())),
                full_every=options["full_every"],
            )
        summary |= {"run": name, "directories written": written}
    reports = [
        ResultTable("Tables", report.columns, by_table),
        ResultTable("Differences", DIFFERENCES.names, shown),
    ]
    remaining = sum(count for kind, count in counts.items() if kind != OUTDATED)
    if options["repair"] != "none":
        remaining -= _repair(run, tables, differing, rootless, summary, reports)
    for frame in (every, unknown, listed, found):
        frame.unpersist()
    return JobResult(summary, reports, _FOUND_DIFFERENCES if remaining else 0)


_SUMMED = ("partitions", "files", "bytes", "small_files", "blocks", "rule_bytes", "encoded_bytes")


_Tables = Sequence[tuple[Table, list[str] | None]]
"""The tables with files, each with the names of its partitions; None without partition keys."""


def _tables(metastore: Metastores, scope: TableScope) -> tuple[_Tables, list[dict[str, Any]]]:
    """The tables, and rows of `listing.PLACES` for those that could not be read."""
    found: list[tuple[Table, list[str] | None]] = []
    failures: list[dict[str, Any]] = []
    reader = MetastoreReader(metastore, fills_cache=False)
    try:
        for table in tables_within(reader, scope):
            if table.tableType not in _WITH_FILES or table.sd is None or not table.sd.location:
                continue
            try:
                found.append((table, reader.partition_names(_name(table)) if table.partitionKeys else None))
            except TException as error:
                failures.append(listing.failed_row(_name(table), error))
    finally:
        reader.close()
    return found, failures


def _frames(run: JobRun, tables: _Tables, failures: Iterable[dict[str, Any]]) -> tuple[DataFrame, DataFrame, int]:
    """The locations of data (`listing.PLACES`), the partitioned tables (`listing.ROOTS`), and the number of parts to
    list the directories in."""
    slices, roots = [], []
    plain = [tuple(row[column] for column in listing.PLACES.names) for row in failures]
    for table, names in tables:
        name = _name(table)
        if names is None:
            row = listing.place_row(name, None, table.sd.location, table, table.parameters)
            plain.append(tuple(row[column] for column in listing.PLACES.names))
            continue
        location = canonical(table.sd.location)
        keys, types = [key.name for key in table.partitionKeys], [key.type for key in table.partitionKeys]
        roots.append((*name, location, place_of(location), keys, types))
        slices += [(*name, some) for some in batches(names, PARTITIONS_OF_A_SLICE)]
    directories = len(plain) + sum(len(some[-1]) for some in slices)
    parts = min(run.options["slices"], directories // DIRECTORIES_OF_A_PART + 1)
    cut = run.spark.createDataFrame(slices, listing.SLICES).repartition(max(1, min(parts, len(slices))))
    places = listing.places_of(cut, run.metastores)
    places = places.unionByName(run.spark.createDataFrame(plain, listing.PLACES)).repartition(parts)
    below = run.spark.createDataFrame(roots, listing.ROOTS).repartition(max(1, min(parts, len(roots))))
    return places, below, parts


def _table_rows(run: JobRun, tables: _Tables) -> DataFrame:
    rows = [(*_name(table), len(table.sd.cols or ()), len(serialize(table, _PROTOCOL))) for table, _ in tables]
    return run.spark.createDataFrame(rows, _TABLES)


def _repair(
    run: JobRun,
    tables: _Tables,
    differing: DataFrame,
    rootless: set[TableName],
    summary: dict[str, object],
    reports: list[ResultTable],
) -> int:
    """Plans and executes the repairs. Returns the number of differences that are resolved."""
    refused = {_name(table): reason for table, _ in tables if (reason := refusal(table)) is not None}
    kinds = {"add": [UNREGISTERED], "drop": [MISSING], "all": [UNREGISTERED, MISSING]}[run.options["repair"]]
    limit = run.options["limit"]
    rows = differing.where(differing["kind"].isin(kinds) & differing["partition"].isNotNull())
    # A missing table directory may be on a missing file system: then missing partitions below it prove nothing.
    rooted = [str(table) for table in rootless]
    rows = rows.where((rows["kind"] != MISSING) | ~f.concat_ws(".", *TABLE_COLUMNS).isin(rooted))
    by_table: dict[TableName, list[Repair]] = {}
    left_alone = run.spark.createDataFrame([tuple(table) for table in refused], StructType(_TABLES.fields[:3]))
    touched = rows.join(left_alone, list(TABLE_COLUMNS), "left_semi").select(*TABLE_COLUMNS).distinct().collect()
    rows = rows.join(left_alone, list(TABLE_COLUMNS), "left_anti")
    # If a partition has two directories, such as `A=1` and `a=1`, only the user can choose.
    full_name = [*TABLE_COLUMNS, "partition"]
    twice = rows.where(rows["kind"] == UNREGISTERED).groupBy(*full_name).count().where("count > 1").select(*full_name)
    rows = rows.join(twice, full_name, "left_anti")
    rows = rows.orderBy(*TABLE_COLUMNS, "partition").limit(limit + 1)
    notes = [(shown_name(one), f"left alone: {refused[one]}") for one in sorted(TableName(*row) for row in touched)]
    notes += [
        (shown_name(TableName(*row[:-1])), f"{row[-1]}: there are several directories, and none is added")
        for row in twice.orderBy(*full_name).limit(run.options["shown"]).collect()
    ]
    for row in rows.collect():
        owner = TableName(*(row[name] for name in TABLE_COLUMNS))
        action = "add" if row["kind"] == UNREGISTERED else "drop"
        by_table.setdefault(owner, []).append(Repair(action, row["partition"], row["location"]))
    for table in sorted(rootless):
        notes.append((shown_name(table), "its own directory does not exist: no partition of it is dropped"))
    planned = [repair for repairs in by_table.values() for repair in repairs]
    plan = [_plan_row(owner, repairs) for owner, repairs in sorted(by_table.items())]
    reports.append(ResultTable("Plan", ("table", "to add", "to drop"), plan))
    for name, to_add, to_drop in plan:
        run.progress.note(f"{name}: {to_add} partitions to add, {to_drop} to drop")
    done = Outcome()
    if len(planned) > limit:
        notes.append(("", f"more than {limit} partitions to add and drop (--limit): nothing was changed"))
    elif not run.dry_run:
        with run.progress.step("Repairing"), MetastoreClient(run.metastores) as client:
            for owner, repairs in sorted(by_table.items()):
                outcome = repair_table(client, owner, repairs, run.options["batch_partitions"])
                done.added, done.dropped = done.added + outcome.added, done.dropped + outcome.dropped
                done.unchanged += outcome.unchanged
                notes += [(shown_name(owner), failure) for failure in outcome.failures]
    if not run.dry_run:
        summary |= {"added": done.added, "dropped": done.dropped, "unchanged": done.unchanged}
    if notes:
        reports.append(ResultTable("Notes", ("table", "note"), notes))
    return done.added + done.dropped


def _name(table: Table) -> TableName:
    return table_name(table.catName, table.dbName, table.tableName)


def _plan_row(owner: TableName, repairs: list[Repair]) -> tuple[Any, ...]:
    to_add = sum(1 for repair in repairs if repair.action == "add")
    return (shown_name(owner), to_add, len(repairs) - to_add)
