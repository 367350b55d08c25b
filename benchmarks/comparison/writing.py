"""The report as Markdown, and its plots."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.comparison.plot import bar_plot
from benchmarks.comparison.reads import HOT_OPERATIONS, JAVA, OURS_0, OURS_500, ROUNDS
from benchmarks.comparison.results import Results, Row, cpu_us
from benchmarks.report import revision, titled_table

_PATH = re.compile(r"(?<![\w.])/[\w./-]{3,}")
"""Paths of the measuring machine, which the report must not contain."""

_VERDICTS = {True: "met", False: "**missed**", None: "not judged"}


def machine_facts(database_version: str) -> str:
    """Returns what the figures depend on; names of machines are left out."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines()
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()} "
        f"{platform.release().split('-')[0]}; Python {platform.python_version()}, uvloop {version('uvloop')}, "
        f"NumPy {version('numpy')}, thrift {version('thrift')}; MariaDB {database_version.split('-')[0]}; "
        f"{java[0] if java else 'Java of unknown version'}; Hive 4.0.1 from Maven Central, its log at WARN"
    )


def markdown(results: Results, command: str, facts: str, catalog: str, seconds: float, plots: Sequence[str]) -> str:
    """Returns the whole report."""
    met = sum(bar.passed is True for bar in results.bars)
    missed = sum(bar.passed is False for bar in results.bars)
    is_unchecked = len(results.bars) - met - missed
    lines = [
        "# Beside Hive 4.0.1 and its CachedStore",
        "",
        f"`{command}` at {revision()}, {datetime.now(UTC):%Y-%m-%d}, {seconds / 60:.1f} minutes. {facts}.",
        "",
        f"One machine for clients, servers and database, one run, one MariaDB server. Catalog: {catalog}. CPU per call "
        "is of server and database together; a ratio is Hive's CPU per call by ours, unless it says otherwise. Each "
        "client is one connection with one call in flight; replies are read, not decoded. Hive's cache runs in its "
        "default mode, without an event listener: then it writes no events, which spares it work that ours does. "
        f"{', '.join(HOT_OPERATIONS)}: all servers run at once and answer in turn, in {ROUNDS} rounds, and Hive's does "
        "not read its catalog anew meanwhile, which it does every minute; elsewhere one server runs after the other.",
        "",
        f"**{met} bars met, {missed} missed, {is_unchecked} not judged.**",
        "",
        "| bar | target | reached | |",
        "|---|---|---|---|",
        *[f"| {bar.what} | {bar.target} | {bar.reached} | {_VERDICTS[bar.passed]} |" for bar in results.bars],
        "",
        *[f"- {note}" for note in results.notes],
        "",
        *[f"![{name}]({name})\n" for name in plots],
        "## Cells",
        "",
        "| operation | server | clients | calls/s | p50 µs | p95 µs | p99 µs "
        "| CPU µs, server + database | statements |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        *[_cell(row) for row in sorted(results.rows, key=_order(results))],
        "",
    ]
    for title, titles, rows in results.sections:
        lines += [f"## {title}", "", *titled_table(titles, rows), ""]
    if results.failures:
        lines += ["## What failed", "", *[f"- {_PATH.sub('…', failure)}" for failure in results.failures], ""]
    return "\n".join(lines)


def _order(results: Results):  # type: ignore[no-untyped-def]
    known = list(dict.fromkeys(row["operation"] for row in results.rows))
    return lambda row: (known.index(row["operation"]), row["clients"], row["server"])


def _cell(row: Row) -> str:
    return (
        f"| {row['operation']} | {row['server']} | {row['clients']} | {row['calls_per_second']:,.0f} "
        f"| {row['p50_us']:,.0f} | {row['p95_us']:,.0f} | {row['p99_us']:,.0f} "
        f"| {row['server_cpu_us']:,.1f} + {row['database_cpu_us']:,.1f} | {row['statements']:.2f} |"
    )


def write(results: Results, text: str, file: Path) -> None:
    """Writes the report and its plots."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, plot in plots(results, file.stem).items():
        (file.parent / name).write_text(plot)
    file.write_text(text)


def plots(results: Results, stem: str) -> dict[str, str]:
    """Returns SVGs by file name: CPU per call at 4 clients, and answers per second of `get_table` by clients."""
    servers = (OURS_0, OURS_500, JAVA)
    groups = list(
        dict.fromkeys(row["operation"] for row in results.rows if row["clients"] == 4 and row["server"] == JAVA)
    )
    cpu: dict[str, dict[str, float]] = {server: {} for server in servers}
    rate: dict[str, dict[str, float]] = {server: {} for server in servers}
    for row in results.rows:
        if row["server"] in servers and row["clients"] == 4:
            cpu[row["server"]][row["operation"]] = cpu_us(row)
        if row["server"] in servers and row["operation"] in ("get_table", "get_partition"):
            rate[row["server"]][f"{row['operation']}, {row['clients']} clients"] = row["calls_per_second"]
    rated = list(dict.fromkeys(name for of in rate.values() for name in of))
    return {
        f"{stem}-cpu.svg": bar_plot("CPU per call, server and database, 4 clients (less is better)", "µs", groups, cpu),
        f"{stem}-rate.svg": bar_plot("Answers per second (more is better)", "/s", rated, rate),
    }
