"""Renders figures as a Markdown table with ratios."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@cache
def revision() -> str:
    """Returns the measured commit, with `-dirty` if the tree differs, as of the first call; every page of evidence
    contains it. So the pages that a run writes do not make the tree dirty."""
    git = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(git, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()


def titled_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table of texts."""
    return [f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *rows)]


def own_table(rows: Sequence[Row], label: str) -> str:
    """Returns the figures of one server."""
    lines = [
        f"### {label}",
        "",
        "| operation | clients | calls/s | p50 µs | p95 µs | p99 µs | server CPU µs | database CPU µs | statements |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        statements = f"{row['statements']:.2f}" if row["statements"] is not None else ""
        lines.append(
            f"| {row['operation']} | {row['clients']} | {row['calls_per_second']:,.0f} | {row['p50_us']:,.0f} "
            f"| {row['p95_us']:,.0f} | {row['p99_us']:,.0f} | {row['server_cpu_us']:,.1f} "
            f"| {row['database_cpu_us']:,.1f} | {statements} |"
        )
    return "\n".join(lines) + "\n"
