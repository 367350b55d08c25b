"""``hms-cache status`` and ``hms-cache events …``: queries and commands to a running server through its management
port."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from hms_cache.cli.management_port import (
    acting_options,
    management_option,
    reading_token_option,
    request_json,
    token_of,
)
from hms_cache.cli.terminal import shown
from hms_cache.errors import HmsCacheError


@click.command()
@management_option
@reading_token_option
@click.option("--worker", type=click.IntRange(min=0), help="Worker to ask, if the server has several.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="The whole status as JSON.")
def status(*, management: str, token_file: Path | None, worker: int | None, as_json: bool) -> None:
    """Show the state of a running server: cache, events, leases, calls."""
    url = f"{management}/status" + ("" if worker is None else f"?worker={worker}")
    answer = request_json(url, "cache", token=token_of(token_file))
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    cache, events = answer["cache"], answer["events"]
    click.echo(f"{answer['uri']}  version {answer['version']}  up {answer['uptime_s']:.0f} s")
    if answer["workers"] > 1:
        click.echo(f"worker       {answer['worker']} of 0 to {answer['workers'] - 1}")
    click.echo(f"connections  {answer['connections']}")
    for port in answer["ports"] if len(answer["ports"]) > 1 else ():
        click.echo(f"  {port['uri']}  authentication: {port['authentication']}, connections: {port['connections']}")
    if answer["accepted_insecure"]:
        click.echo(f"insecure     accepted without the protection of {', '.join(answer['accepted_insecure'])}")
    if cache["enabled"]:
        rate = "no reads yet" if cache["hit_rate"] is None else f"{cache['hit_rate']:.1%} of reads from memory"
        click.echo(f"cache        {cache['tables']} tables, {cache['bytes']} of {cache['budget_bytes']} bytes, {rate}")
        for outcome, count in cache["reads"].items():
            click.echo(f"  {outcome:<20} {count}")
    else:
        click.echo(f"cache        off: {shown(cache['off_reason'])}")
    if events is not None:
        why = shown(events["reason"])
        click.echo(f"events       {events['status']} ({why}), at {events['position']}, {events['lag']} behind")
    lease = answer["lease"]
    if lease is not None:
        state = shown(lease["alarm"]) or ("held" if lease["held"] else "not held")
        click.echo(
            f"lease        {state}, {lease['revocations']} revocations, {lease['waits']} writes waited,"
            f" {lease['acknowledgements_given']} acknowledgements given, {lease['acknowledgements_received']} received"
        )
        for member in lease["members"]:
            standing = "this server" if member["is_self"] else "connected" if member["connected"] else "not connected"
            click.echo(f"  {member['address']:<28} {standing}, {member['state']}")
        for one in lease["reasons"][:5]:
            at = datetime.fromtimestamp(one["at_s"], UTC).isoformat(timespec="seconds")
            click.echo(f"  {at} {shown(one['reason'])}")
    for call in answer["calls"][:15]:
        mean = f"mean {call['mean_s'] * 1000:.3f} ms of {call['decoded']} decoded" if call["decoded"] else ""
        click.echo(f"  {call['method']:<44} {call['count']:>8}  {mean}".rstrip())


@click.group()
def events() -> None:
    """Control how a running server follows the notification log. Needs the server's admin token."""


def _command(name: str, management: str, token_file: Path, as_json: bool, query: str = "") -> None:
    answer = request_json(f"{management}/events/{name}{query}", "status", token=token_of(token_file), post=True)
    workers = answer.get("workers", {})
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif not workers:
        click.echo(f"{answer['status']}: {shown(answer['reason'])}")
    else:
        for worker, result in workers.items():
            click.echo(f"worker {worker}: {result['status']}: {shown(result['reason'])}")
    failed = [worker for worker, result in workers.items() if not result["ok"]]
    if failed:
        raise HmsCacheError(f"not executed by worker {', '.join(failed)}")


def _plain(name: str, help_text: str) -> None:
    @events.command(name, help=help_text)
    @acting_options
    def command(*, as_json: bool, management: str, token_file: Path) -> None:
        _command(name, management, token_file, as_json)


def _with_event(name: str, help_text: str) -> None:
    @events.command(name, help=help_text)
    @click.argument("event_id", type=click.IntRange(min=0))
    @acting_options
    def command(*, event_id: int, as_json: bool, management: str, token_file: Path) -> None:
        _command(name, management, token_file, as_json, f"?event_id={event_id}")


_plain("pause", "Stop reading the log. Reads of objects with newer events are answered by the database.")
_plain("resume", "Continue where pause stopped.")
_plain("resync", "Drop everything in memory and continue at the end of the log.")
_with_event("seek", "Drop everything in memory and continue after this event.")
_with_event("skip", "Do not decode this event when it is next. All objects that it may concern are dropped.")
