"""Clients that repeat a cycle of calls concurrently: rates, times of calls, processor time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.client import connect
from benchmarks.processes import cpu_seconds

Figures = tuple[list[dict[str, float]], dict[str, float]]
"""`measure_cycles` for each number of clients, and statements per call."""

Note = Callable[[str, float], None]
"""Takes a call's name and its seconds."""


@dataclass(frozen=True)
class Cycle:
    """What every client repeats."""

    name: str
    calls: tuple[str, ...]
    run: Callable[[Any, int, Note], None]
    """Takes a client and its number."""
    prepare: Callable[[str, int], None]
    """Takes the address and the number of clients; creates what they need, which is not measured."""


def measure_cycles(
    address: str, clients: int, seconds: float, cycle: Cycle, processes: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Returns the cycles per second of all clients, the 50th and 99th percentile of each call in milliseconds, and the
    processor time of `processes` (ids by name) for a cycle.

    Raises the first exception of a client.
    """
    cycle.prepare(address, clients)
    times: dict[str, list[float]] = {call: [] for call in cycle.calls}
    failures: list[Exception] = []
    start = threading.Barrier(clients + 1)
    cycles = [0] * clients

    def run(number: int) -> None:
        try:
            client = connect(address)
            start.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                cycle.run(client, number, lambda call, took: times[call].append(took))
                cycles[number] += 1
        except Exception as error:
            failures.append(error)
            start.abort()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        start.wait()
    began = time.perf_counter()
    used_s = {name: cpu_seconds(process) for name, process in (processes or {}).items()}
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    used_s = {name: cpu_seconds(process) - used_s[name] for name, process in (processes or {}).items()}
    if failures:
        raise failures[0]
    figures = {"clients": float(clients), "cycles_per_second": sum(cycles) / took}
    figures |= {f"{name}_cpu_ms": 1000 * seconds / max(1, sum(cycles)) for name, seconds in used_s.items()}
    for call, samples in times.items():
        samples = samples or [0.0]
        samples.sort()
        figures[f"{call}_p50_ms"] = 1000 * samples[len(samples) // 2]
        figures[f"{call}_p99_ms"] = 1000 * samples[min(len(samples) - 1, len(samples) * 99 // 100)]
    return figures


def report_table(figures: list[dict[str, float]], statements: dict[str, float], cycle: Cycle) -> str:
    """Returns Markdown with a line per number of clients, and a line of statements."""
    processes = sorted({name for one in figures for name in one if name.endswith("_cpu_ms")}, reverse=True)
    head = ["clients", "cycles/s", *(f"{name.removesuffix('_cpu_ms')} CPU ms" for name in processes)]
    head += [*(f"{call} p50 / p99 ms" for call in cycle.calls)]
    lines = ["| " + " | ".join(head) + " |", "|" + " ---: |" * len(head)]
    for one in figures:
        cells = [f"{one['clients']:.0f}", f"{one['cycles_per_second']:,.0f}"]
        cells += [f"{one[name]:.2f}" for name in processes]
        cells += [f"{one[f'{call}_p50_ms']:.1f} / {one[f'{call}_p99_ms']:.1f}" for call in cycle.calls]
        lines.append("| " + " | ".join(cells) + " |")
    if statements:
        lines += ["", "SQL statements: " + ", ".join(f"{call} {count:.1f}" for call, count in statements.items())]
    return "\n".join(lines)


def ratio_table(own: Figures, other: Figures) -> str:
    """Returns Markdown: rates and their ratio; the other's processor time for a cycle, of metastore and database
    together, divided by this project's; and the statements of both."""
    lines = ["| clients | own cycles/s | other cycles/s | ratio | CPU ratio |", "|" + " ---: |" * 5]
    for mine, theirs in zip(own[0], other[0], strict=True):
        here, there = mine["cycles_per_second"], theirs["cycles_per_second"]
        used = [sum(value for name, value in one.items() if name.endswith("_cpu_ms")) for one in (mine, theirs)]
        processor = f"{used[1] / used[0]:.2f}" if used[0] else ""
        lines.append(f"| {mine['clients']:.0f} | {here:,.0f} | {there:,.0f} | {here / there:.2f} | {processor} |")
    if own[1]:
        lines += ["", "| SQL statements | own | other |", "| --- | ---: | ---: |"]
    lines += [f"| {call} | {count:.1f} | {other[1].get(call, 0):.1f} |" for call, count in own[1].items()]
    return "\n".join(lines)
