"""``hms-cache flush|refresh|warm|sync|verify``: commands to a running server through its management port.

Exit status: 0 if every worker has executed the command; 1 if it was refused, not finished in time, found differences,
or did not reach a worker; 2 for an invalid command line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from hms_cache.cli.management_port import acting_options, request_lines, token_of
from hms_cache.cli.terminal import plain_console, shown
from hms_cache.errors import HmsCacheError

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(value: str) -> float:
    """Converts ``30s``, ``500ms``, ``2m``, or a number of seconds, to seconds. Raises BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 30s, 500ms or 2m")
    return float(found[1]) * _UNITS_S[found[2] or ""]


_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_NAMES = re.compile(r"(?:(?:`(?:[^`]|``)+`|[^.`]+)(?:\.(?!\Z)|\Z)){1,3}")


def named(name: str | None, partition: str | None) -> dict[str, str]:
    """Converts `database`, `database.table` or `catalog.database.table` to the parameters of the query.

    A name that contains a dot must be quoted with backquotes, as in SQL; a backquote in it is doubled.
    """
    if name and _NAMES.fullmatch(name) is None:
        raise click.BadParameter(
            f"{name!r} is not DATABASE, DATABASE.TABLE or CATALOG.DATABASE.TABLE; quote a name that contains a dot with"
            " backquotes: 'sales.`a.b`'"
        )
    parts = [plain or quoted.replace("``", "`") for quoted, plain in _PART.findall(name or "")]
    if len(parts) == 3:
        query = dict(zip(("catalog", "database", "table"), parts, strict=True))
    else:
        query = dict(zip(("database", "table"), parts, strict=False))
    if partition:
        query["partition"] = partition
    return query


def _run_command(command: str, query: dict[str, Any], management: str, token_file: Path, as_json: bool) -> None:
    """Sends the command and shows its progress. Ends the program with the command's exit status if it failed."""
    given = {name: value for name, value in query.items() if value is not None}
    url = f"{management}/commands/{command}" + (f"?{urlencode(given, errors='surrogateescape')}" if given else "")
    lines = request_lines(url, token=token_of(token_file))
    if as_json:
        finished = _echo_json(lines)
    elif sys.stderr.isatty():
        finished = _show_progress(command, lines)
    else:
        finished = _show_results(lines)
    if finished is None:
        raise HmsCacheError("the server ended before the command did")
    if finished["unreached"]:
        left_out = ", ".join(map(str, finished["unreached"]))
        click.echo(f"hms-cache: not reached: worker {left_out}", err=True)
    if not finished["ok"]:
        sys.exit(1)


def _echo_json(lines: Iterator[Any]) -> Any:
    """Prints the result of each worker and the summary as one JSON object. Returns the summary."""
    workers, finished = {}, None
    for line in lines:
        finished = line.get("finished", finished)
        if "result" in line or "unreached" in line:
            workers[str(line["worker"])] = line.get("result") or {"ok": False, "unreached": line["unreached"]}
    if finished is not None:
        click.echo(json.dumps(finished | {"workers": workers}, indent=2))
    return finished


def _show_results(lines: Iterator[Any]) -> Any:
    finished = None
    results = []
    for line in lines:
        finished = line.get("finished", finished)
        if "result" in line or "unreached" in line:
            results.append(line)
    for line in sorted(results, key=lambda one: int(one["worker"])):
        place = f"worker {line['worker']}: " if len(results) > 1 else ""
        if "unreached" in line:
            click.echo(f"{place}not reached: {shown(line['unreached'])}")
            continue
        result = line["result"]
        click.echo(f"{place}{shown(result['summary'])}")
        for detail in result["details"]:
            click.echo(f"  {shown(detail)}")
    return finished


def _show_progress(command: str, lines: Iterator[Any]) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    kept = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=plain_console(stderr=True), transient=True) as progress:
        tasks: dict[int, Any] = {}
        for line in lines:
            if "progress" not in line:
                kept.append(line)
                continue
            worker, now = line["worker"], line["progress"]
            if worker not in tasks:
                label = command if worker == 0 else f"{command} (worker {worker})"
                tasks[worker] = progress.add_task(label, total=None, note="")
            progress.update(tasks[worker], completed=now["done"], total=now["total"], note=shown(now["note"]))
    return _show_results(iter(kept))


_subject_argument = click.argument("subject", required=False, metavar="[DATABASE[.TABLE]]")
_partition_argument = click.argument("partition", required=False, metavar="[PARTITION]")


def _memory_command(name: str, help_text: str) -> click.Command:
    @click.command(name, help=help_text)
    @_subject_argument
    @_partition_argument
    @acting_options
    def command(
        *, subject: str | None, partition: str | None, as_json: bool, management: str, token_file: Path
    ) -> None:
        _run_command(name, named(subject, partition), management, token_file, as_json)

    return command


flush = _memory_command(
    "flush",
    "Drop cached objects: everything, a database, a table, or a partition (KEY=VALUE/KEY=VALUE) of"
    " it. The next read loads them from the database.",
)
refresh = _memory_command(
    "refresh",
    "Drop cached objects and read them from the database again. For everything, or for a database:"
    " what was cached. A table or a partition is read even if it was not cached.",
)
warm = _memory_command(
    "warm", "Load what is not cached yet, tables with their partitions, until the memory budget is nearly full."
)


@click.command()
@_subject_argument
@click.option("--wait", type=duration, default="30s", show_default=True, help="How long to wait: 30s, 500ms, 2m.")
@click.option("--event", "event_id", type=click.IntRange(min=0), help="Wait for this event instead of the last one.")
@acting_options
def sync(
    *, subject: str | None, wait: float, event_id: int | None, as_json: bool, management: str, token_file: Path
) -> None:
    """Wait until the server has applied all present events, or those up to a given one.

    Afterwards the cache shows everything that was committed before the command, whatever cache.max_staleness_ms is.
    Exit status 1 if that takes longer than --wait.
    """
    query = named(subject, None) | {"wait_s": wait, "event_id": event_id}
    _run_command("sync", query, management, token_file, as_json)


@click.command()
@_subject_argument
@click.option("--sample", type=click.IntRange(min=1), help="Compare a random sample of this many tables and databases.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the random selection, to select the same again.")
@acting_options
def verify(
    *, subject: str | None, sample: int | None, seed: int | None, as_json: bool, management: str, token_file: Path
) -> None:
    """Compare everything in the cache with the database, including statistics and encoded replies.

    Changes nothing. Exit status 1 if there is a difference.
    """
    _run_command("verify", named(subject, None) | {"sample": sample, "seed": seed}, management, token_file, as_json)


COMMANDS: tuple[click.Command, ...] = (flush, refresh, warm, sync, verify)
