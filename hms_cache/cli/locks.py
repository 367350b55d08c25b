"""``hms-cache locks list|release``: the locks in a running server's database, through its management port."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hms_cache.cli.management_port import (
    acting_options,
    management_option,
    reading_token_option,
    request_json,
    token_of,
)
from hms_cache.cli.terminal import shown


@click.group()
def locks() -> None:
    """Show the owners of locks, and release locks whose owner is gone."""


@locks.command("list")
@click.option("--dead", "only_dead", is_flag=True, help="Only locks whose owner has sent no heartbeat in time.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@management_option
@reading_token_option
def list_locks(*, only_dead: bool, as_json: bool, management: str, token_file: Path | None) -> None:
    """List locks: id, owner, host, locked object, type, state, age, last heartbeat."""
    answer = request_json(f"{management}/locks?format=json", "locks", token=token_of(token_file))
    if only_dead:
        answer["locks"] = [one for one in answer["locks"] if one["is_dead"]]
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    rows = [("ID", "OWNER", "HOST", "LOCKED", "TYPE", "STATE", "HELD", "HEARTBEAT", ""), *map(_row, answer["locks"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if not answer["is_complete"]:
        click.echo(f"hms-cache: only the first {len(answer['locks'])} locks are shown", err=True)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    held = "" if one["held_s"] is None else f"{one['held_s']:.0f} s"
    remark = "dead" if one["is_dead"] else ""
    if one["txn_id"]:
        remark = f"{remark} transaction {one['txn_id']}".strip()
    heartbeat = f"{one['heartbeat_age_s']:.0f} s ago"
    return (
        *(shown(one[of]) for of in ("lock_id", "owner", "host", "table", "lock_type", "state")),
        *(held, heartbeat, remark),
    )


@locks.command("release")
@click.argument("lock_id", type=click.IntRange(min=1))
@click.option("--force", is_flag=True, help="Even if the owner sent a heartbeat within the time-out.")
@acting_options
def release(*, lock_id: int, force: bool, as_json: bool, management: str, token_file: Path) -> None:
    """Release a lock whose owner is gone. Needs the server's admin token.

    Exit status 1 if there is no such lock, if its owner is alive, or if it belongs to a transaction.
    """
    query = f"lock_id={lock_id}" + ("&force=true" if force else "")
    answer = request_json(f"{management}/locks/release?{query}", "released", token=token_of(token_file), post=True)
    click.echo(json.dumps(answer, indent=2) if as_json else f"released {lock_id}")
