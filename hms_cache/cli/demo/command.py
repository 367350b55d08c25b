"""The command: starts the server, runs Spark, shows results and calls, and stops everything."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import click

from hms_cache.errors import HmsCacheError, StartupError

#: Time limit of the whole session. On one slow core, it takes about two minutes.
SESSION_TIMEOUT_S = 900.0


@click.group(invoke_without_command=True)
@click.option("--database", metavar="URL", help="Work on this database instead of a temporary SQLite one.")
@click.pass_context
def demo(context: click.Context, *, database: str | None) -> None:
    """Start a metastore, let a PySpark session use it, and show the calls that it received."""
    if context.invoked_subcommand is None:
        with _scratch() as directory:
            _run(directory, database)


@demo.command()
@click.pass_context
def ha(context: click.Context) -> None:
    """Kill two servers of one database in turn, while a PySpark session that knows both keeps working."""
    from rich.console import Console

    from hms_cache.cli.demo.ha import run_ha

    database: str | None = context.parent.params["database"] if context.parent else None
    with _scratch() as directory:
        run_ha(directory, database or _embedded(directory), Console(highlight=False))


@demo.command()
@click.pass_context
def secure(context: click.Context) -> None:
    """Start a KDC and a server with Kerberos and a policy, and show what PySpark with a keytab is allowed to do."""
    from rich.console import Console

    from hms_cache.cli.demo.secure import run_secure

    console = Console(highlight=False)
    database: str | None = context.parent.params["database"] if context.parent else None

    def session(scratch: Path, script: str, *arguments: str, environment: Mapping[str, str]) -> list[Any]:
        return _session(scratch, console, script, *arguments, environment=environment)

    with _scratch() as directory:
        run_secure(directory, database or _embedded(directory), console, session)


@contextmanager
def _scratch() -> Iterator[Path]:
    """Creates a directory for all files of the demo, which is deleted at the end."""
    if util.find_spec("pyspark") is None:
        raise StartupError("the demo needs PySpark", remedy="Install it: pip install 'hms-cache[demo]'")
    with tempfile.TemporaryDirectory(prefix="hms-cache-demo-") as directory:
        yield Path(directory)


def _embedded(scratch: Path) -> str:
    return f"sqlite:///{scratch / 'hms-cache.db'}"


def _run(scratch: Path, database: str | None) -> None:
    from rich.console import Console

    from hms_cache.app.service import Service
    from hms_cache.config import load

    console = Console(highlight=False)
    configuration = load(
        command_line={
            "server.port": 0,
            "admin.port": 0,
            "database.url": database or _embedded(scratch),
            "warehouse.directory": str(scratch / "warehouse"),
            "log.level": "warning",
        },
        environment={},
    )
    service = Service(configuration)
    uri = service.start()
    try:
        console.print(f"metastore up at [bold]{uri}[/bold] on {'SQLite' if database is None else 'the given database'}")
        steps = _session(scratch, console, "spark_script", uri, str(scratch / "warehouse"))
        calls = service.calls_by_method()
        reads = service.reads_by_outcome()
    finally:
        service.stop()
    _show_counts(console, "calls that the metastore received", "method", calls)
    _show_counts(console, "how reads were answered", "outcome", reads)
    console.print(f"[green]done[/green]: {len(steps)} steps, {sum(calls.values())} metastore calls, everything stopped")


def _session(
    scratch: Path, console: Any, script: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> list[Mapping[str, Any]]:
    """Runs the script and prints each step when it is finished. If it fails, raises an exception with the end of
    Spark's log."""
    from hms_cache.cli.demo.spark_process import log_tail, start_spark

    steps: list[Mapping[str, Any]] = []
    with start_spark(scratch, script, *arguments, environment=environment) as spark:
        assert spark.stdout is not None
        try:
            for line in spark.stdout:
                if line.startswith("{"):
                    steps.append(json.loads(line))
                    _show_step(console, steps[-1])
            status = spark.wait(SESSION_TIMEOUT_S)
        except BaseException:
            spark.kill()
            raise
    if status != 0:
        raise HmsCacheError(f"the Spark session ended with status {status}:\n{log_tail(scratch)}")
    return steps


def _show_step(console: Any, step: Mapping[str, Any]) -> None:
    console.print(f"[cyan]{step['seconds']:6.2f} s[/cyan]  {step['step']}")
    if step["statement"]:
        console.print(f"          [dim]{step['statement']}[/dim]", soft_wrap=True)
    for row in step["rows"]:
        console.print(f"          {' | '.join(row)}", markup=False)
    if step.get("refused"):
        console.print(f"          {step['refused']}", markup=False, style="yellow", soft_wrap=True)


def _show_counts(console: Any, title: str, heading: str, counts: Mapping[str, int]) -> None:
    from rich.table import Table

    table = Table(heading, "count", title=title)
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(name, str(count))
    console.print(table)
