"""``hms-cache jobs NAME …``: work over the catalog, on any Spark."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hms_cache.jobs.frame import Job, JobResult, Option


class _Jobs(click.Group):
    """The jobs of the registry, made into commands when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from hms_cache.jobs.registry import JOBS

        return sorted(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from hms_cache.jobs.registry import JOBS

        job = JOBS.get(cmd_name)
        return None if job is None else _command(job)


@click.command(cls=_Jobs)
def jobs() -> None:
    """Run work over the catalog on Spark: JOB --help for each.

    Exit status: 0 done; 1 the job failed; 2 its options cannot be used; 3 it found what somebody must look at.
    """


def _command(job: Job) -> click.Command:
    parameters: list[click.Parameter] = [_option(option) for option in job.options]
    if job.needs_spark:
        parameters += [
            click.Option(["--master"], metavar="URL", help="Spark master. [default: spark-submit's, else local[*]]"),
            click.Option(["--conf"], metavar="KEY=VALUE", multiple=True, help="Any setting of Spark; may be repeated."),
        ]
    parameters += [
        click.Option(["--dry-run"], is_flag=True, help="Read and count as always; change nothing, tell what would be."),
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
    from rich.console import Console

    from hms_cache.jobs.frame.progress import terminal_progress

    with _session(job, options, master, conf) as spark:
        if as_json:
            result = job.run(spark, options, dry_run=dry_run)
        else:
            with terminal_progress(Console(stderr=True), spark) as progress:
                result = job.run(spark, options, dry_run=dry_run, progress=progress)
    if as_json:
        click.echo(json.dumps(_as_json(result, dry_run), indent=2, default=str))
    else:
        _show(job, result, dry_run)
    sys.exit(result.exit_status)


def _session(
    job: Job, options: dict[str, Any], master: str | None, conf: dict[str, str]
) -> AbstractContextManager[Any | None]:
    from hms_cache.jobs.frame.session import job_session

    if not job.needs_spark:
        return nullcontext()
    needed = job.spark_settings(options) if job.spark_settings is not None else {}
    return job_session(job.name, master, {**needed, **conf})


def _as_json(result: JobResult, dry_run: bool) -> dict[str, Any]:
    tables = {
        table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in result.tables
    }
    return {"dry_run": dry_run, "summary": dict(result.summary), "tables": tables}


def _show(job: Job, result: JobResult, dry_run: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for part in result.tables:
        shown = Table(*map(str, part.columns), title=part.title)
        for row in part.rows:
            shown.add_row(*("" if cell is None else str(cell) for cell in row))
        console.print(shown, markup=False)
    summary = Table(show_header=False, title=f"{job.name}, dry run: nothing was changed" if dry_run else job.name)
    for name, value in result.summary.items():
        summary.add_row(str(name), f"{value:,}" if isinstance(value, int) else str(value))
    console.print(summary, markup=False)
