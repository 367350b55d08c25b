"""``hms-cache jobs NAME …``: jobs on the catalog, with any Spark."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_cache.cli.options import Number
from hms_cache.cli.terminal import plain_console, shown

if TYPE_CHECKING:
    from hms_cache.jobs.frame import Job, JobResult, Option


class _Jobs(click.Group):
    """The jobs of the registry; each becomes a command when it is first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from hms_cache.jobs.registry import JOBS

        return sorted([*JOBS, _run_plan.name or ""])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from hms_cache.jobs.registry import JOBS

        if cmd_name in (_run_plan.name, _step.name):
            return _run_plan if cmd_name == _run_plan.name else _step
        job = JOBS.get(cmd_name)
        return None if job is None else _command(job)


@click.command("run")
@click.option("--plan", "plan_file", required=True, type=click.Path(path_type=Path), help="The plan, a TOML file.")
@click.option("--only", multiple=True, metavar="STEP", help="Only this step; may be given several times.")
@click.option("--summary", type=click.Path(path_type=Path), help="File for the summary as JSON.")
@click.option("--metrics", type=click.Path(path_type=Path), help="File for Prometheus' textfile collector, NAME.prom.")
@click.option("--dry-run", is_flag=True, help="Each job reads and counts, but changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON on standard output.")
def _run_plan(
    *, plan_file: Path, only: tuple[str, ...], summary: Path | None, metrics: Path | None, dry_run: bool, as_json: bool
) -> None:
    """Run the jobs of a plan in order, unattended.

    Each job has a process, a time limit and a lease on its tables. If another run is working on one of them, the job
    waits for the time in its lease_wait, and is then skipped. Jobs that need a failed job are not run.

    Exit status: 0 all done; 1 a job failed or took too long; 2 the plan is invalid; 3 a job reported something that
    needs attention, or was not run.
    """
    from hms_cache.errors import ConfigurationError
    from hms_cache.jobs.schedule.execution import run_plan
    from hms_cache.jobs.schedule.plan import chosen, read_plan
    from hms_cache.jobs.schedule.report import summary_of, write_metrics, write_summary

    signal.signal(signal.SIGTERM, _interrupt)
    whole = read_plan(plan_file)
    plan = chosen(whole, only)
    for path in filter(None, (summary, metrics)):
        if not os.access(path.parent, os.W_OK):  # report it now, not after the jobs
            why = f"{path.parent} is not a directory in which this user may create files"
            raise ConfigurationError(f"{path} cannot be written: {why}")
    results = run_plan(plan, dry_run=dry_run, progress=lambda line: click.echo(line, err=True))
    values = summary_of(plan, results, dry_run=dry_run)
    is_reported = summary is None or _is_written(summary, partial(write_summary, summary, values))
    if metrics is not None and not dry_run:
        is_reported &= _is_written(metrics, partial(write_metrics, metrics, whole, results))
    if as_json:
        click.echo(json.dumps(values, indent=2, default=str))
    sys.exit(values["exit_status"] if is_reported else 1)


def _is_written(path: Path, write: Callable[[], None]) -> bool:
    """Writes the file. Returns False, after printing the reason, if that fails."""
    try:
        write()
    except OSError as error:
        click.echo(f"{path} cannot be written: {error.strerror or error}", err=True)
        return False
    return True


def _interrupt(*_: object) -> None:
    """Handles SIGTERM like Ctrl-C: the running step is stopped, and its lease released."""
    raise KeyboardInterrupt


@click.command("step", hidden=True)
@click.argument("order", type=click.Path(path_type=Path))
def _step(order: Path) -> None:
    """Run one step of a plan, in the process that `run` started for it."""
    from hms_cache.jobs.schedule.step import run_step

    sys.exit(run_step(order))


@click.command(cls=_Jobs)
def jobs() -> None:
    """Run jobs on the catalog, most of them with Spark. JOB --help describes each.

    Exit status: 0 done; 1 the job failed; 2 its options are invalid; 3 it found something that needs attention.
    """


def _command(job: Job) -> click.Command:
    parameters: list[click.Parameter] = [_option(option) for option in job.options]
    if job.needs_spark:
        parameters += [
            click.Option(["--master"], metavar="URL", help="Spark master. [default: spark-submit's, else local[*]]"),
            click.Option(["--conf"], metavar="KEY=VALUE", multiple=True, help="Any setting of Spark; may be repeated."),
        ]
    parameters += [
        click.Option(["--dry-run"], is_flag=True, help="Only show what would be changed."),
        click.Option(["--json", "as_json"], is_flag=True, help="The report as JSON, without progress."),
    ]

    def callback(
        *, dry_run: bool, as_json: bool, master: str | None = None, conf: tuple[str, ...] = (), **options: Any
    ) -> None:
        _run(job, options, master=master, conf=_settings(conf), dry_run=dry_run, as_json=as_json)

    text = f"{job.summary}\n\n{job.description}" if job.description else job.summary
    return click.Command(job.name, params=parameters, callback=callback, help=text, short_help=job.summary)


def _option(option: Option) -> click.Option:
    name = "--" + option.name.replace("_", "-")
    if option.kind is bool:
        return click.Option([name, option.name], is_flag=True, help=option.help, default=bool(option.default))
    kind: Any = option.kind
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.kind is float:
        kind = Number()
    elif option.kind is int and option.minimum is not None:
        kind = click.IntRange(min=option.minimum)
    return click.Option(
        [name, option.name],
        type=kind,
        help=option.help,
        default=option.default,
        required=option.required,
        multiple=option.multiple,
        metavar=option.metavar,
        show_default=option.default is not None,
    )


def _settings(conf: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for assignment in conf:
        key, separator, value = assignment.partition("=")
        if not separator:
            raise click.BadParameter(f"{assignment!r} is not KEY=VALUE", param_hint="--conf")
        settings[key] = value
    return settings


def _run(
    job: Job, options: dict[str, Any], *, master: str | None, conf: dict[str, str], dry_run: bool, as_json: bool
) -> None:
    from hms_cache.cli.arguments import hide_secret_arguments, remember_secret_arguments
    from hms_cache.jobs.frame.progress import terminal_progress

    if options.get("database"):
        _require_url(options["database"])
    remember_secret_arguments(sys.argv)
    hide_secret_arguments()
    with _session(job, options, master, conf) as spark:
        if as_json:
            result = job.run(spark, options, dry_run=dry_run)
        else:
            with terminal_progress(plain_console(stderr=True), spark) as progress:
                result = job.run(spark, options, dry_run=dry_run, progress=progress)
    if as_json:
        click.echo(json.dumps(result.as_json(dry_run), indent=2, default=str))
    else:
        _show(job, result, dry_run)
    sys.exit(result.exit_status)


def _require_url(text: str) -> None:
    """Checks the URL before Spark starts, because its workers would show it in a stack trace. Raises
    ConfigurationError."""
    from hms_cache.config.database_url import sqlalchemy_url
    from hms_cache.errors import ConfigurationError

    try:
        sqlalchemy_url(text)
    except ValueError as error:
        raise ConfigurationError(f"--database: {error}") from error


def _session(
    job: Job, options: dict[str, Any], master: str | None, conf: dict[str, str]
) -> AbstractContextManager[Any | None]:
    from hms_cache.jobs.frame.session import job_session

    if not job.needs_spark:
        return nullcontext()
    needed = job.spark_settings(options) if job.spark_settings is not None else {}
    return job_session(job.name, master, {**needed, **conf})


def _show(job: Job, result: JobResult, dry_run: bool) -> None:
    from rich.table import Table

    console = plain_console()
    for part in result.tables:
        rows = Table(*map(str, part.columns), title=part.title)
        for row in part.rows:
            rows.add_row(*("" if cell is None else shown(cell) for cell in row))
        console.print(rows)
    summary = Table(show_header=False, title=f"{job.name}, dry run: nothing was changed" if dry_run else job.name)
    for name, value in result.summary.items():
        summary.add_row(str(name), f"{value:,}" if isinstance(value, int) else shown(value))
    console.print(summary)
