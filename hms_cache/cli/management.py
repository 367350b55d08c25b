"""``hms-cache status`` and ``hms-cache events …``: a running server asked and commanded over its management port."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hms_cache.errors import HmsCacheError

Command = TypeVar("Command", bound=Callable[..., Any])

_TIMEOUT_S = 30.0

_address = click.option(
    "--management",
    metavar="URL",
    envvar="HMS_CACHE_MANAGEMENT",
    default="http://127.0.0.1:9085",
    show_default=True,
    help="The server's management port.",
)


def _ask(url: str, *, token: str | None = None, post: bool = False) -> Any:
    """The decoded JSON answer. Raises ``HmsCacheError`` with the server's words when it says no."""
    request = urllib.request.Request(url, method="POST" if post else "GET")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise HmsCacheError(error.read().decode(errors="replace").strip()) from error
    except OSError as error:
        raise HmsCacheError(f"no answer from {url}: {getattr(error, 'reason', error)}") from error


@click.command()
@_address
@click.option("--json", "as_json", is_flag=True, help="The whole status as JSON.")
def status(*, management: str, as_json: bool) -> None:
    """Show what a running server does: cache, events, calls."""
    answer = _ask(f"{management}/status")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    cache, events = answer["cache"], answer["events"]
    click.echo(f"{answer['uri']}  version {answer['version']}  up {answer['uptime_s']:.0f} s")
    click.echo(f"connections  {answer['connections']}")
    if cache["enabled"]:
        rate = "no reads yet" if cache["hit_rate"] is None else f"{cache['hit_rate']:.1%} of reads from memory"
        click.echo(f"cache        {cache['tables']} tables, {cache['bytes']} of {cache['budget_bytes']} bytes, {rate}")
        for outcome, count in cache["reads"].items():
            click.echo(f"  {outcome:<20} {count}")
    else:
        click.echo(f"cache        off: {cache['off_reason']}")
    if events is not None:
        click.echo(
            f"events       {events['status']} ({events['reason']}), at {events['position']}, {events['lag']} behind"
        )
    for call in answer["calls"][:15]:
        click.echo(f"  {call['method']:<44} {call['count']:>8}  mean {call['mean_s'] * 1000:.3f} ms")


@click.group()
def events() -> None:
    """Command how a running server follows the notification log. Needs the server's admin token."""


def _token_option(command: Command) -> Command:
    return click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HMS_CACHE_TOKEN_FILE",
        required=True,
        help="File whose first line is the token.",
    )(command)


def _command(name: str, management: str, token_file: Path, query: str = "") -> None:
    lines = token_file.read_text(encoding="utf-8").splitlines()
    answer = _ask(f"{management}/events/{name}{query}", token=lines[0].strip() if lines else "", post=True)
    click.echo(f"{answer['status']}: {answer['reason']}")


def _plain(name: str, help_text: str) -> None:
    @events.command(name, help=help_text)
    @_address
    @_token_option
    def command(*, management: str, token_file: Path) -> None:
        _command(name, management, token_file)


def _with_event(name: str, help_text: str) -> None:
    @events.command(name, help=help_text)
    @click.argument("event_id", type=click.IntRange(min=0))
    @_address
    @_token_option
    def command(*, event_id: int, management: str, token_file: Path) -> None:
        _command(name, management, token_file, f"?event_id={event_id}")


_plain("pause", "Stop reading the log; what newer events concern is answered from the database.")
_plain("resume", "Go on where pause stopped.")
_plain("resync", "Drop everything and go on at the end of the log.")
_with_event("seek", "Drop everything and go on after this event.")
_with_event("skip", "Do not decode this event when its turn comes; what it may concern is dropped.")
