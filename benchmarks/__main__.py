"""`python -m benchmarks …`: see the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.budget import budget_for
from benchmarks.budget import measure as measure_budget
from benchmarks.budget import render as render_budget
from benchmarks.catalog import CatalogPlan
from benchmarks.catalog_changes import CHANGES
from benchmarks.changing_table import measure as measure_changing
from benchmarks.changing_table import render as render_changing
from benchmarks.cold_crowd import measure as measure_crowd
from benchmarks.cold_crowd import render as render_crowd
from benchmarks.comparison.run import FULL, PLAN, QUICK, SMALL_PLAN, run
from benchmarks.cycles import Cycle, Figures, measure_cycles, ratio_table, report_table
from benchmarks.distant import fill as fill_distant
from benchmarks.distant import measure as measure_distant
from benchmarks.distant import render as render_distant
from benchmarks.iceberg import COMMITS, lost_commits
from benchmarks.java_metastore import (
    LOG_LISTENER,
    VERSION,
    JavaMetastore,
    fetch,
    load_schema,
    log_listener,
    statement_counter,
    statements,
)
from benchmarks.jobs.command import jobs
from benchmarks.jobs.repair import repair
from benchmarks.large_replies import measure as measure_large_replies
from benchmarks.large_replies import render as render_large_replies
from benchmarks.load import load
from benchmarks.measure import measure_reads
from benchmarks.names import fill as fill_names
from benchmarks.names import measure as measure_names
from benchmarks.names import render as render_names
from benchmarks.own_database import own_database
from benchmarks.own_metastore import OwnMetastore
from benchmarks.report import own_table, revision, titled_table
from benchmarks.restart import fill_tables
from benchmarks.restart import measure as measure_restart
from benchmarks.restart import render as render_restart
from benchmarks.scale import fill, render
from benchmarks.scale import measure as measure_scale
from benchmarks.security import TITLES as SECURITY_TITLES
from benchmarks.security import measure as measure_security
from benchmarks.transactions import LOCKS, TRANSACTIONS, statements_per_call, with_password
from benchmarks.worker_memory import FIGURES
from benchmarks.worker_memory import measure as measure_worker_memory
from benchmarks.worker_memory import render as render_worker_memory

if TYPE_CHECKING:
    from tests.databases import DatabaseServer

NAMES_REPORT = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "names.md"
SCALE_REPORT = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "scale.md"
REPORT = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "benchmarks.md"


OWN, JAVA, JAVA_THAT_LOGS = "this project", f"Hive {VERSION}, which logs nothing", f"Hive {VERSION}, which logs changes"


@click.group()
def main() -> None:
    """Load and measure metastores."""


main.add_command(jobs)
main.add_command(repair)


def _plan(databases: int, tables: int, large: int) -> CatalogPlan:
    return CatalogPlan(databases, tables, large)


@main.command("load")
@click.option("--hms", required=True, help="HOST:PORT")
@click.option("--databases", default=10, show_default=True)
@click.option("--tables", default=50, show_default=True, help="tables per database")
@click.option("--large", default=10_000, show_default=True, help="partitions of the largest table")
def load_command(hms: str, databases: int, tables: int, large: int) -> None:
    """Fill a metastore with the catalog."""
    click.echo(json.dumps(load(hms, _plan(databases, tables, large), click.echo)))


@main.command()
@click.option("--hms", required=True, help="HOST:PORT")
@click.option("--databases", default=10)
@click.option("--tables", default=50)
@click.option("--large", default=10_000)
@click.option("--clients", default="1,4,16", show_default=True)
@click.option("--seconds", default=2.0, show_default=True)
@click.option("--server-pid", type=int)
@click.option("--database-pid", type=int)
@click.option("--mysql", help="URL of the MariaDB server, for statements per call")
@click.option("--only", multiple=True, help="operations whose names begin so")
@click.option("--json", "file", type=click.Path(path_type=Path))
def measure(
    hms: str,
    databases: int,
    tables: int,
    large: int,
    clients: str,
    seconds: float,
    server_pid: int | None,
    database_pid: int | None,
    mysql: str | None,
    only: tuple[str, ...],
    file: Path | None,
) -> None:
    """Measure the reads of one metastore that holds the catalog."""
    counter = statement_counter(mysql) if mysql else None
    rows = measure_reads(
        hms,
        _plan(databases, tables, large),
        clients=[int(one) for one in clients.split(",")],
        seconds=seconds,
        server_pid=server_pid,
        database_pid=database_pid,
        statements=(lambda: statements(counter)) if counter else None,
        names=only or None,
        report=click.echo,
    )
    if file is not None:
        file.write_text(json.dumps(rows, indent=1))
    click.echo(own_table(rows, hms))


@main.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--requests", default=1000, show_default=True, help="of each server in each round")
def security(rounds: int, requests: int) -> None:
    """What TLS, Kerberos and authorization cost a hot get_table."""
    costs = measure_security(rounds, requests, lambda line: click.echo(line, err=True))
    click.echo("\n".join(titled_table(SECURITY_TITLES, costs.rows)))
    for name, share in costs.policy_shares:
        click.echo(f"With a policy, of the rate without: {name} {share:.0%}")


@main.command()
@click.option("--quick", is_flag=True, help="fewer numbers of clients, shorter: some 5 minutes instead of 13")
@click.option("--small", is_flag=True, help="a catalog of a tenth, to try the program out")
@click.option("--part", "parts", multiple=True, help="only parts whose names hold this word")
@click.option("--out", type=click.Path(path_type=Path), default=REPORT, show_default=True, help="Markdown file")
def compare(quick: bool, small: bool, parts: tuple[str, ...], out: Path) -> None:
    """All bars: this server beside Hive 4.0.1 with its CachedStore, on one MariaDB, in one run."""
    command = " ".join(
        [
            "python -m benchmarks compare",
            *["--quick"] * quick,
            *["--small"] * small,
            *[f"--part {part!r}" for part in parts],
        ]
    )
    complete = run(QUICK if quick else FULL, SMALL_PLAN if small else PLAN, command, out, click.echo, parts)
    if not complete:
        raise SystemExit(1)


@main.command()
@click.option("--hms", help="HOST:PORT of a metastore; without it ours is started on a MariaDB of its own")
@click.option("--mysql", help="URL of that metastore's MariaDB server, for statements per call")
@click.option("--clients", default="1,4,16,64", show_default=True)
@click.option("--seconds", default=3.0, show_default=True)
def transactions(hms: str | None, mysql: str | None, clients: str, seconds: float) -> None:
    """Cycles per second of open, allocate, commit, with statements per call; and of lock, check_lock, unlock."""
    counts = [int(one) for one in clients.split(",")]
    _compare_cycles((TRANSACTIONS, LOCKS), counts, seconds, hms, mysql)


@main.command()
@click.option("--hms", help="HOST:PORT of a metastore; without it ours is started on a MariaDB of its own")
@click.option("--clients", default="1,16", show_default=True)
@click.option("--seconds", default=3.0, show_default=True)
def changes(hms: str | None, clients: str, seconds: float) -> None:
    """Changes of the catalog per second: tables created and dropped, altered, partitions added and dropped."""
    _compare_cycles(CHANGES, [int(one) for one in clients.split(",")], seconds, hms, logs=True)


@main.command()
@click.option("--hms", help="HOST:PORT of a metastore; without it ours is started on a MariaDB of its own")
@click.option("--clients", default="8", show_default=True)
@click.option("--seconds", default=3.0, show_default=True)
def iceberg(hms: str | None, clients: str, seconds: float) -> None:
    """Iceberg commits per second, with locks and without, each writer on its own table and all on one; none is lost."""
    _compare_cycles(COMMITS, [int(one) for one in clients.split(",")], seconds, hms, logs=True)


def _compare_cycles(
    cycles: Sequence[Cycle],
    counts: list[int],
    seconds: float,
    hms: str | None,
    mysql: str | None = None,
    *,
    logs: bool = False,
) -> None:
    """:param logs: also measures Hive's metastore with a listener that logs each change, as this server does."""
    if hms is not None:
        for cycle, figures in zip(cycles, _measure(cycles, hms, counts, seconds, mysql), strict=True):
            click.echo(f"## {cycle.name}\n\n{report_table(*figures, cycle)}\n")
        return
    with own_database() as (server, directory):
        found = _own_and_java(server, directory, cycles, counts, seconds, logs=logs)
    own = found.pop(OWN)
    for number, cycle in enumerate(cycles):
        click.echo(f"## {cycle.name}: {OWN}\n\n{report_table(*own[number], cycle)}\n")
        for name, theirs in found.items():
            click.echo(f"## {cycle.name}: {name}\n\n{report_table(*theirs[number], cycle)}\n")
            click.echo(f"## {cycle.name}: compared with {name}\n\n{ratio_table(own[number], theirs[number])}\n")


def _own_and_java(
    server: DatabaseServer,
    directory: Path,
    cycles: Sequence[Cycle],
    counts: list[int],
    seconds: float,
    *,
    logs: bool,
) -> dict[str, list[Figures]]:
    """Measures the servers one after the other, each with its own database on one database server.

    Hive's metastore is measured in its default mode, without an event listener: it then logs no events, and has less
    work than this server. With `logs`, it is also measured with a listener, which every cache of Hive's needs.
    """
    measured: dict[str, list[Figures]] = {}
    for number, name in enumerate((OWN, JAVA, JAVA_THAT_LOGS) if logs else (OWN, JAVA)):
        url = with_password(server.create_database())
        load_schema(fetch(), url)
        place = directory / f"metastore{number}"
        place.mkdir()
        # Statements of a poller or a housekeeper would be counted as the calls'.
        metastore: OwnMetastore | JavaMetastore
        if name == OWN:
            quiet = {"EVENTS__POLL_INTERVAL_S": "3600", "TRANSACTIONS__HOUSEKEEPING_INTERVAL_S": "3600"}
            metastore = OwnMetastore(url, place, **quiet)
        elif name == JAVA:
            metastore = JavaMetastore(url, place, cached=False)
        else:
            listener = [log_listener(place)]
            metastore = JavaMetastore(url, place, cached=False, properties=LOG_LISTENER, classes=listener)
        try:
            address = metastore.start()
            processes = {"server": metastore.pid, "database": server.process_id}
            measured[name] = _measure(cycles, address, counts, seconds, url, processes)
        finally:
            metastore.stop()
    return measured


def _measure(
    cycles: Sequence[Cycle],
    hms: str,
    counts: list[int],
    seconds: float,
    mysql: str | None,
    processes: Mapping[str, int] | None = None,
) -> list[Figures]:
    """Measures each cycle, after an equally long run of it that does not count, because Java compiles code that runs
    often. Raises RuntimeError if an Iceberg commit was lost."""
    found: list[Figures] = []
    for cycle in cycles:
        per_call: dict[str, float] = {}
        if mysql and cycle is TRANSACTIONS:
            per_call = statements_per_call(hms, partial(statements, statement_counter(mysql)))
        measure_cycles(hms, max(counts), seconds, cycle)
        found.append(([measure_cycles(hms, count, seconds, cycle, processes) for count in counts], per_call))
    if cycles is COMMITS and (lost := lost_commits(hms)):
        raise RuntimeError(f"commits were acknowledged and are not in their tables: {lost}")
    return found


@main.command()
@click.option("--partitions", default=100_000, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=SCALE_REPORT, show_default=True, help="Markdown file")
def scale(partitions: int, out: Path) -> None:
    """Cold reads of one large table, compared with the same calls without a cache, on a separate MariaDB."""
    with own_database(partitions=partitions) as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo)
        cells = measure_scale(url, directory, partitions, click.echo)
    command = f"python -m benchmarks scale --partitions {partitions}"
    out.write_text(render(cells, partitions, command, revision()))
    if not all(cell.is_met for cell in cells):
        raise SystemExit(1)


@main.command()
@click.option("--kind", type=click.Choice(["mariadb", "postgresql"]), default="mariadb", show_default=True)
@click.option(
    "--beside", type=click.Path(path_type=Path, exists=True), help="the command hms-cache of another revision"
)
def distant(kind: str, beside: Path | None) -> None:
    """Cold reads with the database 0, 1, 5 and 20 ms away, on a separate database server."""
    programs = {"this": None} if beside is None else {"the other": beside, "this": None}
    cells = []
    with own_database(kind) as (server, directory):
        url = server.initialized_database()
        fill_distant(url, directory)
        for cell in measure_distant(url, directory, programs):
            click.echo(f"{cell.way}, {cell.call}, {cell.program}, {cell.delay_ms:g} ms: {cell.took_ms:.1f} ms")
            cells.append(cell)
    click.echo(render_distant(cells))


@main.command()
@click.option("--partitions", default=100_000, show_default=True)
@click.option("--readers", default=50, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=4.0, show_default=True, help="of each round, quiet and beside the readers")
@click.option(
    "--beside", type=click.Path(path_type=Path, exists=True), help="the command hms-cache of another revision"
)
def crowd(partitions: int, readers: int, rounds: int, seconds: float, beside: Path | None) -> None:
    """Transactions beside cold readers of one large table, on a separate MariaDB."""
    programs = {"this": None} if beside is None else {"the other": beside, "this": None}
    with own_database() as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo)
        found = list(
            measure_crowd(
                url,
                directory,
                partitions,
                programs,
                readers=readers,
                rounds=rounds,
                seconds=seconds,
                database_process=server.process_id,
            )
        )
    click.echo(render_crowd(found))


@main.command()
@click.option("--partitions", default=1_000_000, show_default=True)
@click.option("--readers", default=16, show_default=True)
@click.option("--seconds", default=25.0, show_default=True, help="of each round, with a writer and without")
def changing(partitions: int, readers: int, seconds: float) -> None:
    """Reads of a large table that another server changes each second, on a separate MariaDB."""
    with own_database(partitions=partitions) as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo)
        rounds = measure_changing(url, directory, partitions, readers=readers, seconds=seconds)
    click.echo(render_changing(rounds))


@main.command("large-replies")
@click.option("--partitions", default=60_000, show_default=True)
@click.option("--clients", default=48, show_default=True)
@click.option("--seconds", default=20.0, show_default=True)
@click.option("--cached", is_flag=True, help="the table is held in memory; else it is excluded from the cache")
def large_replies(partitions: int, clients: int, seconds: float, cached: bool) -> None:
    """A small read beside clients that read a whole large table, on a separate MariaDB."""
    with own_database() as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo)
        found = list(
            measure_large_replies(url, directory, clients=clients, seconds=seconds, is_cached=cached, report=click.echo)
        )
    click.echo(render_large_replies(found))


@main.command()
@click.option("--partitions", default=1_000_000, show_default=True)
@click.option("--share", default=0.1, show_default=True, help="of the table that the budget holds")
@click.option("--reads", default=20_000, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="the table is appended to this file")
def budget(partitions: int, share: float, reads: int, out: Path | None) -> None:
    """Reads of a table that fits only partly into the budget, on a separate MariaDB."""
    budget_bytes = budget_for(partitions, share)
    with own_database(partitions=partitions) as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo)
        run = measure_budget(url, directory, partitions, budget_bytes, reads, click.echo)
    text = render_budget(run)
    click.echo(text)
    if out is not None:
        command = (
            f"`python -m benchmarks budget --partitions {partitions} --share {share} --reads {reads}` at {revision()}: "
        )
        out.write_text(f"{out.read_text() if out.exists() else ''}\n{command}{text}\n")
    if not run.is_met:
        raise SystemExit(1)


@main.command()
@click.option("--tables", default=10, show_default=True)
@click.option("--partitions", default=100_000, show_default=True, help="of each table")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="the table is appended to this file")
def restart(tables: int, partitions: int, out: Path | None) -> None:
    """A start with a cache dump compared with one with the full prewarm, on a separate MariaDB."""
    with own_database(partitions=tables * partitions) as (server, directory):
        url = server.initialized_database()
        fill_tables(url, directory, tables, partitions, click.echo)
        starts, size = measure_restart(url, directory, tables * partitions, click.echo)
    text = render_restart(starts, size, tables, partitions)
    click.echo(text)
    if out is not None:
        command = f"`python -m benchmarks restart --tables {tables} --partitions {partitions}` at {revision()}: "
        out.write_text(f"{out.read_text() if out.exists() else ''}\n{command}{text}\n")


@main.command()
@click.option("--partitions", default=1_000_000, show_default=True)
@click.option("--workers", default=4, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="the table is appended to this file")
def workers(partitions: int, workers: int, out: Path | None) -> None:
    """Memory of several workers compared with that of one process, on a separate MariaDB."""
    with own_database(partitions=partitions) as (server, directory):
        url = server.initialized_database()
        fill(url, directory, partitions, click.echo, FIGURES)
        found = measure_worker_memory(url, directory, partitions, workers, click.echo)
    text = render_worker_memory(found, partitions)
    click.echo(text)
    if out is not None:
        command = f"`python -m benchmarks workers --partitions {partitions} --workers {workers}` at {revision()}: "
        out.write_text(f"{out.read_text() if out.exists() else ''}\n{command}{text}\n")


@main.command()
@click.option("--tables", default=50_000, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=NAMES_REPORT, show_default=False)
def names(tables: int, out: Path) -> None:
    """Lists of the tables of one large database, on a separate MariaDB."""
    with own_database() as (server, directory):
        url = server.initialized_database()
        fill_names(url, directory, tables)
        cells = measure_names(url, directory, click.echo)
    out.write_text(render_names(cells, tables, f"python -m benchmarks names --tables {tables}", revision()))


if __name__ == "__main__":
    main()
