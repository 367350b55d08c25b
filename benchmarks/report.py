"""Figures as a Markdown table with ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def compare_table(ours: Sequence[Row], java: Sequence[Row], label: str) -> str:
    """Ours beside Java's by operation and clients: answers/s, p99, server CPU per call, and the ratios."""
    by_key = {(row["operation"], row["clients"]): row for row in java}
    lines = [
        f"### {label}",
        "",
        "| operation | clients | ours/s | Java/s | × | ours p99 µs | Java p99 µs | ours CPU µs | Java CPU µs "
        "| × per CPU second |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in ours:
        other = by_key.get((row["operation"], row["clients"]))
        if other is None:
            continue
        own_cpu = row["server_cpu_us"] + row["database_cpu_us"]
        other_cpu = other["server_cpu_us"] + other["database_cpu_us"]
        faster = row["calls_per_second"] / other["calls_per_second"]
        cheaper = other_cpu / own_cpu if own_cpu else float("nan")
        lines.append(
            f"| {row['operation']} | {row['clients']} | {row['calls_per_second']:,.0f} "
            f"| {other['calls_per_second']:,.0f} | {faster:.1f} | {row['p99_us']:,.0f} | {other['p99_us']:,.0f} "
            f"| {own_cpu:,.1f} | {other_cpu:,.1f} | {cheaper:.1f} |"
        )
    return "\n".join(lines) + "\n"


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
