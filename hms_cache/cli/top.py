"""``hms-cache top``: a live view of a running server."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_cache.cli.management_port import management_option, reading_token_option, request_json, token_of
from hms_cache.cli.options import Number
from hms_cache.cli.terminal import plain_console, shown
from hms_cache.errors import HmsCacheError
from hms_cache.values import frozen

if TYPE_CHECKING:
    from rich.console import Group

#: Number of methods and operations shown, for the height of a terminal.
_MAX_METHODS = 12
_MAX_OPERATIONS = 5
_MAX_LOADS = 5

#: Each kind of name in the tables of loads, with the key of its list in the page of operations.
_LOADS = (("user", "users"), ("address", "addresses"), ("table", "tables"))
_COUNTS = ("busy_s", "calls", "loads", "sent_bytes", "reads")


@frozen
class Reading:
    """The state of all workers at one moment. ``problem`` is the reason why some did not answer."""

    at_s: float
    statuses: tuple[Mapping[str, Any], ...]
    running: tuple[Mapping[str, Any], ...]
    problem: str = ""
    thread_pools: tuple[Mapping[str, Any], ...] = ()
    operations: tuple[Mapping[str, Any], ...] = ()
    """The pages of operations, one per worker."""

    def calls(self) -> dict[str, int]:
        """Number of calls of all workers, by method."""
        counts: dict[str, int] = {}
        for status in self.statuses:
            for call in status["calls"]:
                counts[call["method"]] = counts.get(call["method"], 0) + call["count"]
        return counts

    def reads(self) -> dict[str, int]:
        """Number of reads of all workers, by outcome."""
        counts: dict[str, int] = {}
        for status in self.statuses:
            for outcome, count in status["cache"]["reads"].items():
                counts[outcome] = counts.get(outcome, 0) + count
        return counts

    def loads(self, of: str) -> dict[str, dict[str, float]]:
        """Sums over all workers for each user, address or table, as selected by `of`."""
        sums: dict[str, dict[str, float]] = {}
        for page in self.operations:
            for row in page[of]:
                found = sums.setdefault(row["name"], dict.fromkeys(_COUNTS, 0.0))
                for count in _COUNTS:
                    found[count] += row.get(count, 0)
        return sums

    def mean_s(self, method: str) -> float:
        """Mean duration of the method's decoded calls since the start."""
        found = [call for status in self.statuses for call in status["calls"] if call["method"] == method]
        count = sum(call["decoded"] for call in found)
        return sum(call["mean_s"] * call["decoded"] for call in found if call["decoded"]) / count if count else 0.0


def read_sample(management: str, token: str | None = None) -> Reading:
    """Asks every worker. Raises ``HmsCacheError`` if the first one does not answer."""
    first = request_json(f"{management}/status", "cache", token=token)
    statuses, problems = [first], []
    operations = request_json(f"{management}/operations", "running", token=token)
    pages = [operations]
    for worker in range(first["workers"]):
        if worker == first["worker"]:
            continue
        try:
            statuses.append(request_json(f"{management}/status?worker={worker}", "cache", token=token))
            pages.append(request_json(f"{management}/operations?worker={worker}", "running", token=token))
        except HmsCacheError as error:
            problems.append(str(error))
    statuses.sort(key=lambda status: status["worker"])
    running = tuple(one for page in pages for one in page["running"])
    thread_pools = tuple(one for page in pages for one in page["thread_pools"])
    return Reading(time.monotonic(), tuple(statuses), running, "; ".join(problems), thread_pools, tuple(pages))


def rates(before: Mapping[str, float], now: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Returns increases per second; 0 for a count that has fallen because its server was restarted."""
    return {name: max(0, count - before.get(name, 0)) / seconds for name, count in now.items()}


@click.command()
@click.option(
    "--interval", type=Number(min=0.2, max=86_400), default=1.0, show_default=True, help="Seconds between readings."
)
@click.option("--once", is_flag=True, help="Show the difference of two readings once, without a live view.")
@management_option
@reading_token_option
def top(*, interval: float, once: bool, management: str, token_file: Path | None) -> None:
    """Watch a running server: reads and calls a second, memory, events, operations. Ctrl-C ends it."""
    from rich.live import Live

    console = plain_console()
    token = token_of(token_file)
    before = read_sample(management, token)
    time.sleep(interval)
    if once or not sys.stdout.isatty():
        console.print(screen(before, read_sample(management, token)))
        return
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                try:
                    now = read_sample(management, token)
                    live.update(screen(before, now), refresh=True)
                    before = now
                except HmsCacheError as error:
                    live.update(f"{shown(error)}\nretrying", refresh=True)
                time.sleep(interval)
    except KeyboardInterrupt:
        return


def screen(before: Reading, now: Reading) -> Group:
    """Returns the contents of the screen."""
    from rich.console import Group
    from rich.text import Text

    seconds = max(now.at_s - before.at_s, 0.001)
    first = now.statuses[0]
    reads = rates(before.reads(), now.reads(), seconds)
    total = sum(reads.values())
    share = f"{reads.get('hit', 0) / total:.1%} from memory" if total else "no reads"
    head = (
        f"{first['uri']}  version {first['version']}  up {first['uptime_s']:.0f} s"
        f"  connections {sum(status['connections'] for status in now.statuses)}"
    )
    lines: list[Any] = [Text(head, style="bold")]
    if now.problem:
        lines.append(Text(shown(now.problem), style="red"))
    lines.append(Text(f"reads {total:,.0f}/s, {share}"))
    lines += [_workers(now.statuses), _outcomes(reads), _methods(rates(before.calls(), now.calls(), seconds), now)]
    lines.append(_thread_pools(now.thread_pools))
    lines += [_loads(of, before.loads(name), now.loads(name), seconds) for of, name in _LOADS]
    if now.running:
        lines.append(_operations(now.running))
    return Group(*lines)


def _table(title: str, *columns: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0)
    return table


def _workers(statuses: Iterable[Mapping[str, Any]]) -> Any:
    table = _table("", "worker", "tables", "held", "of", "loads", "checks", "events", "at", "behind", "ev/s")
    for status in statuses:
        cache, events = status["cache"], status["events"]
        followed = ("off", "", "", "")
        if events is not None:
            rate = f"{events['received_per_s_1min']:.1f}"
            followed = (events["status"], str(events["position"]), str(events["lag"]), rate)
        table.add_row(
            str(status["worker"]),
            f"{cache['tables']:,}",
            f"{cache['bytes'] / 1048576:,.1f} MiB",
            f"{cache['budget_bytes'] / 1048576:,.0f} MiB",
            f"{cache['loads']:,}",
            f"{cache['position_checks']:,}",
            *followed,
        )
    return table


def _outcomes(reads: Mapping[str, float]) -> Any:
    table = _table("reads", "outcome", "per second")
    for outcome, rate in sorted(reads.items(), key=lambda one: -one[1]):
        table.add_row(outcome, f"{rate:,.1f}")
    return table


def _methods(calls: Mapping[str, float], now: Reading) -> Any:
    table = _table("calls", "method", "per second", "mean of the decoded")
    for method, rate in sorted(calls.items(), key=lambda one: (-one[1], one[0]))[:_MAX_METHODS]:
        table.add_row(method, f"{rate:,.1f}", f"{now.mean_s(method) * 1000:.3f} ms")
    return table


def _thread_pools(thread_pools: Iterable[Mapping[str, Any]]) -> Any:
    """Sums over all workers, by pool."""
    table = _table("thread pools", "pool", "running", "waiting", "longest wait", "stuck", "refused")
    of_pool: dict[str, list[Mapping[str, Any]]] = {}
    for one in thread_pools:
        of_pool.setdefault(one["pool"], []).append(one)
    for pool, found in of_pool.items():
        longest_s = max(one["oldest_wait_s"] for one in found)
        sums = {name: sum(one[name] for one in found) for name in ("running", "waiting", "stuck", "refused")}
        counts = [f"{sums[name]:,}" for name in ("running", "waiting", "stuck", "refused")]
        table.add_row(pool, *counts[:2], f"{longest_s * 1000:.0f} ms", *counts[2:])
    return table


def _loads(
    of: str, before: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]], seconds: float
) -> Any:
    """The names with the most time between the readings; then those with the most sent bytes, or the most reads."""
    last = "reads/s" if of == "table" else "sent/s"
    table = _table(f"load by {of}", of, "busy", "calls/s", "loads/s", last)
    found = {name: rates(before.get(name, dict.fromkeys(counts, 0.0)), counts, seconds) for name, counts in now.items()}
    ranked = sorted(found.items(), key=lambda one: (-one[1]["busy_s"], -one[1]["sent_bytes"], -one[1]["reads"], one[0]))
    for name, rate in ranked[:_MAX_LOADS]:
        last_rate = f"{rate['reads']:,.1f}" if of == "table" else f"{rate['sent_bytes'] / 1024:,.1f} KiB"
        table.add_row(shown(name), f"{rate['busy_s']:.1%}", f"{rate['calls']:,.1f}", f"{rate['loads']:,.1f}", last_rate)
    return table


def _operations(running: Iterable[Mapping[str, Any]]) -> Any:
    table = _table("running", "operation", "about", "requested by", "for", "progress")
    for one in list(running)[:_MAX_OPERATIONS]:
        progress = f"{one['done']} of {one['total']}" if one["total"] is not None else ""
        table.add_row(
            *(shown(one[of]) for of in ("name", "subject", "requested_by")), f"{one['running_s']:.1f} s", progress
        )
    return table
