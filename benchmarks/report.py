"""Figures as a Markdown table with ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def own_table(rows: Sequence[Row], label: str) -> str:
    """The figures of one server."""
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
