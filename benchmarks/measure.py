"""Measures the reads of one metastore: calls/s, latencies, CPU per call, statements per call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.catalog import CatalogPlan
from benchmarks.client import connect, has_get_table
from benchmarks.generator import GeneratorProcess
from benchmarks.operations import read_operations
from benchmarks.processes import cpu_seconds

Row = dict[str, Any]


def measure_reads(
    address: str,
    plan: CatalogPlan,
    *,
    clients: Sequence[int],
    seconds: float,
    server_pid: int | None = None,
    database_pid: int | None = None,
    statements: Callable[[], int] | None = None,
    names: Sequence[str] | None = None,
    report: Callable[[str], None] = print,
) -> list[Row]:
    """Returns a row per operation and number of clients."""
    client = connect(address)
    operations = read_operations(plan, plain_get_table=has_get_table(client))
    rows: list[Row] = []
    generator = GeneratorProcess()
    for operation in operations:
        if names and not any(operation.name.startswith(name) for name in names):
            continue
        generator.run(address, operation, 1, min(1.0, seconds))  # warm
        for count in clients:
            before = (cpu_seconds(server_pid), cpu_seconds(database_pid), statements() if statements else 0)
            load = generator.run(address, operation, count, seconds)
            after = (cpu_seconds(server_pid), cpu_seconds(database_pid), statements() if statements else 0)
            calls = load.calls
            row: Row = {
                "operation": operation.name,
                "clients": count,
                "calls_per_second": load.calls_per_second,
                "p50_us": load.p50_s * 1e6,
                "p95_us": load.p95_s * 1e6,
                "p99_us": load.p99_s * 1e6,
                "server_cpu_us": (after[0] - before[0]) / calls * 1e6,
                "database_cpu_us": (after[1] - before[1]) / calls * 1e6,
                "statements": (after[2] - before[2]) / calls if statements else None,
            }
            rows.append(row)
            report(
                f"{operation.name:34s} {count:3d} clients {row['calls_per_second']:10.0f}/s  p50 {row['p50_us']:8.0f} "
                f"p99 {row['p99_us']:8.0f} us  cpu {row['server_cpu_us']:8.1f} + {row['database_cpu_us']:7.1f} us"
            )
    generator.close()
    return rows
