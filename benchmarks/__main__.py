"""`python -m benchmarks …`: see the package."""

from __future__ import annotations

import json
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks.catalog import CatalogPlan
from benchmarks.java_metastore import (
    JavaMetastore,
    fetch,
    load_schema,
    server_process_id,
    statement_counter,
    statements,
)
from benchmarks.load import load
from benchmarks.measure import measure_reads
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import resident_bytes
from benchmarks.report import compare_table, own_table
from benchmarks.transactions import measure_cycles, report_table, statements_per_call


@click.group()
def main() -> None:
    """Load and measure metastores."""


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
@click.option("--databases", default=10)
@click.option("--tables", default=50)
@click.option("--large", default=10_000)
@click.option("--clients", default="1,4,16,64", show_default=True)
@click.option("--seconds", default=2.0, show_default=True)
@click.option("--only", multiple=True)
@click.option("--out", type=click.Path(path_type=Path), help="Markdown file")
def compare(
    databases: int, tables: int, large: int, clients: str, seconds: float, only: tuple[str, ...], out: Path | None
) -> None:
    """Ours at max_staleness 0 and 500 ms beside Hive 4.0.1 with its CachedStore, on one MariaDB, in one run."""
    from tests.databases import start_server

    plan = _plan(databases, tables, large)
    counts = [int(one) for one in clients.split(",")]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        server = start_server("mariadb", directory)
        try:
            sections = _compare(server, plan, counts, seconds, only, directory)
        finally:
            server.stop()
    text = (
        f"# Reads beside Hive 4.0.1\n\n`python -m benchmarks compare --clients {clients} --seconds {seconds:g} "
        f"--databases {databases} --tables {tables} --large {large}`, {datetime.now(UTC):%Y-%m-%d}, "
        f"{platform.machine()}, one machine for clients, servers and database; CPU is of server and database.\n\n"
        + "\n".join(sections)
    )
    click.echo(text)
    if out is not None:
        out.write_text(text)


def _compare(  # type: ignore[no-untyped-def]
    server, plan: CatalogPlan, counts: list[int], seconds: float, only: tuple[str, ...], directory: Path
) -> list[str]:
    url = server.create_database()
    load_schema(fetch(), url)
    database_pid = server_process_id(url)
    options = {"clients": counts, "seconds": seconds, "database_pid": database_pid, "names": only or None}
    sections = []
    own = OwnMetastore(url, directory / "own")
    load(own.start(), plan, click.echo)
    rows_zero = measure_reads(own.address, plan, server_pid=own.pid, report=click.echo, **options)
    memory = resident_bytes(own.pid)
    own.stop()
    relaxed = OwnMetastore(url, directory / "own-500", CACHE__MAX_STALENESS_MS="500")
    rows_relaxed = measure_reads(relaxed.start(), plan, server_pid=relaxed.pid, report=click.echo, **options)
    relaxed.stop()
    java = JavaMetastore(url, directory / "java", cached=True)
    rows_java = measure_reads(java.start(), plan, server_pid=java.pid, report=click.echo, **options)
    java_memory = resident_bytes(java.pid)
    java.stop()
    sections.append(compare_table(rows_zero, rows_java, "max_staleness 0"))
    sections.append(compare_table(rows_relaxed, rows_java, "max_staleness 500 ms"))
    sections.append(
        f"Resident memory after the reads: ours {memory / 1e6:,.0f} MB, Java {java_memory / 1e6:,.0f} MB.\n"
    )
    return sections


@main.command()
@click.option("--hms", help="HOST:PORT of a metastore; without it ours is started on a MariaDB of its own")
@click.option("--mysql", help="URL of that metastore's MariaDB server, for statements per call")
@click.option("--clients", default="1,4,16", show_default=True)
@click.option("--seconds", default=3.0, show_default=True)
def transactions(hms: str | None, mysql: str | None, clients: str, seconds: float) -> None:
    """Cycles of open, allocate a write id, commit per second, and statements per call."""
    counts = [int(one) for one in clients.split(",")]
    if hms is not None:
        click.echo(_measure_transactions(hms, mysql, counts, seconds))
        return
    from tests.databases import start_server

    with tempfile.TemporaryDirectory() as temporary:
        server = start_server("mariadb", Path(temporary))
        try:
            url = server.create_database()
            load_schema(fetch(), url)
            # Statements of the poller would be counted as the calls'.
            own = OwnMetastore(url, Path(temporary) / "own", EVENTS__POLL_INTERVAL_S="3600")
            try:
                click.echo(_measure_transactions(own.start(), url, counts, seconds))
            finally:
                own.stop()
        finally:
            server.stop()


def _measure_transactions(hms: str, mysql: str | None, counts: list[int], seconds: float) -> str:
    per_call: dict[str, float] = {}
    if mysql:
        counter = statement_counter(mysql)
        per_call = statements_per_call(hms, lambda: statements(counter))
    return report_table([measure_cycles(hms, count, seconds) for count in counts], per_call)


if __name__ == "__main__":
    main()
