"""The job ``repair``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from thrift.Thrift import TException

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient
from hms_cache.jobs.frame import JobResult, JobRun, ResultTable
from hms_cache.jobs.frame.own_partitions import refusal
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.repair.catalog_partitions import CatalogPartitions, PartitionsOfDatabase, PartitionsOfMetastore
from hms_cache.jobs.repair.directories import Directories
from hms_cache.jobs.repair.plan import (
    ADD,
    DROP,
    EXPIRE,
    Scope,
    TablePlan,
    is_discovered,
    plan_table,
)
from hms_cache.jobs.repair.plan_file import Batch, PlanFile
from hms_cache.jobs.repair.writing import Outcome, RepairWriter
from hms_cache.jobs.sources.catalog_reader import tables_within
from hms_cache.jobs.sources.database_reader import DatabaseReader
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TableScope, shown_name
from hms_cache.metadata.object_names import table_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

_SOMETHING_LEFT = 3
_WITH_FILES = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE"})
_DONE = {ADD: "added", DROP: "dropped", EXPIRE: "expired"}

#: Options that determine a plan: a plan made with other values is not executed.
_PLANNED_BY = ("metastore", "tables", "mode", "discover", "retention", "drop_limit", "batch_partitions")


def main(run: JobRun) -> JobResult:
    """Plans each table, then writes the batches; or continues a plan left by a killed run.

    An error with one table becomes a row, and the next table is processed. Raises MetastoreUnavailableError,
    DatabaseUnavailable, ConfigurationError.
    """
    options = run.options
    state = None if options["state"] is None else Path(options["state"])
    planned_by = {name: options[name] for name in _PLANNED_BY}
    file = PlanFile(state, planned_by | {"tables": list(options["tables"])})
    directories = Directories(options["requests_per_s"])
    summary: dict[str, object] = {}
    reports: list[ResultTable] = []
    left = 0
    with ThreadPoolExecutor(options["threads"], "repair") as pool:
        if not run.dry_run and file.load():
            run.progress.note("Going on with the plan of a run that did not end")
            summary["resumed"] = True
        else:
            left = _plan(run, directories, pool, file, summary, reports)
        if not run.dry_run:
            outcome = _write(run, directories, pool, file)
            file.finish()
            summary |= {_DONE[action]: count for action, count in outcome.done.items()}
            summary |= {"unchanged": outcome.unchanged, "failures": len(outcome.failures)}
            if outcome.uncertain:
                summary["done by this or another run"] = outcome.uncertain
            left += len(outcome.failures)
            failures = outcome.failures[: options["shown"]]
            reports.append(ResultTable("Failures", ("table", "partition", "reason"), failures))
    return JobResult(summary, reports, _SOMETHING_LEFT if left else 0)


def _plan(
    run: JobRun,
    directories: Directories,
    pool: ThreadPoolExecutor,
    file: PlanFile,
    summary: dict[str, object],
    reports: list[ResultTable],
) -> int:
    """Fills the plan and the reports. Returns the number of findings that this run does not repair."""
    options = run.options
    scope = Scope(options["mode"] != "drop", options["mode"] != "add", options["retention"])
    plans: list[TablePlan] = []
    notes: list[tuple[str, str, str, str]] = []
    with ExitStack() as stack:
        reader = stack.enter_context(closing(MetastoreReader(run.metastores, fills_cache=False)))
        known: CatalogPartitions = PartitionsOfMetastore(reader)
        if options["database"]:
            known = PartitionsOfDatabase(reader, stack.enter_context(closing(DatabaseReader(options["database"]))))
        with run.progress.step("Comparing directories with the catalog"):
            for table in _tables(reader, TableScope(tuple(one.lower() for one in options["tables"]))):
                if options["discover"] and not is_discovered(table):
                    continue
                reason = refusal(table)
                if reason is not None:
                    notes.append((_name(table), "left alone", table.sd.location, reason))
                    continue
                try:
                    plan = plan_table(table, known, directories, pool, scope)
                except (TException, OSError) as error:
                    notes.append((_name(table), "failed", table.sd.location, reason_of(error)))
                    continue
                plans.append(_within(plan, options["drop_limit"]))
                notes += [(_name(table), *note) for note in plan.notes]
    rows = [(_name(plan.table), plan.known, plan.found, *(map(len, plan.changes.values()))) for plan in plans]
    to_change = sum(len(changes) for plan in plans for changes in plan.changes.values())
    summary |= {
        "tables": len(plans),
        "listings": sum(plan.listings for plan in plans),
        "directories": sum(plan.found for plan in plans),
        "partitions": sum(plan.known for plan in plans),
        "notes": len(notes),
    }
    shown = options["shown"]
    reports.append(ResultTable("Plan", _PLAN_COLUMNS, [row for row in rows if any(row[3:])]))
    reports.append(ResultTable("Partitions", ("table", "action", "partition", "location"), _first(plans, shown)))
    reports.append(ResultTable("Notes", ("table", "kind", "location", "note"), notes[:shown]))
    file.plan(list(_batches(plans, options["batch_partitions"])) if not run.dry_run else [])
    refused = sum(1 for note in notes if note[1] != "left alone")
    return refused + (to_change if run.dry_run else 0)


_PLAN_COLUMNS = ("table", "partitions", "directories", "to add", "to drop", "to expire")


def _tables(reader: MetastoreReader, scope: TableScope) -> Iterator[Table]:
    """The partitioned tables with files."""
    for table in tables_within(reader, scope):
        has_location = table.sd is not None and bool(table.sd.location)
        if table.partitionKeys and table.tableType in _WITH_FILES and has_location:
            yield table


def _within(plan: TablePlan, drop_limit: int) -> TablePlan:
    """Removes the drops from a plan with too many: a moved tree cannot be distinguished from a deleted one."""
    drops = len(plan.changes[DROP]) + len(plan.changes[EXPIRE])
    if drops > drop_limit:
        plan.changes |= {DROP: [], EXPIRE: []}
        note = f"{drops} partitions to drop, more than {drop_limit} (--drop-limit): none is dropped"
        plan.notes.append(("too many", plan.table.sd.location, note))
    return plan


def _batches(plans: list[TablePlan], size: int) -> Iterator[Batch]:
    for plan in plans:
        table = plan.table
        for action, changes in plan.changes.items():
            for some in batches(changes, size):
                yield Batch(table.catName, table.dbName, table.tableName, action, tuple(some))


def _first(plans: list[TablePlan], shown: int) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    for plan in plans:
        for action, changes in plan.changes.items():
            rows += [(_name(plan.table), action, *change) for change in changes[: shown - len(rows)]]
    return rows


def _write(run: JobRun, directories: Directories, pool: ThreadPoolExecutor, file: PlanFile) -> Outcome:
    metastores = run.metastores
    with (
        run.progress.step("Writing"),
        MetastoreClient(metastores) as client,
        closing(MetastoreReader(metastores, fills_cache=False)) as reader,
    ):
        writer = RepairWriter(client, PartitionsOfMetastore(reader), directories, pool)
        for batch in file.remaining():
            writer.write(batch)
    return writer.outcome


def _name(table: Table) -> str:
    return shown_name(table_name(table.catName, table.dbName, table.tableName))
