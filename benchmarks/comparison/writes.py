"""Bulk writes: partitions a hundred at a time."""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.catalog import partition, table
from benchmarks.client import connect
from benchmarks.comparison.context import Comparison
from benchmarks.java_metastore import statements
from benchmarks.processes import cpu_seconds
from hms_cache.thrift_gen.hive_metastore import ttypes

CALLS, WARM_CALLS, PARTITIONS_A_CALL = 12, 4, 100
DATABASE = "bench_13"


def measure_additions(comparison: Comparison, server: str, address: str, pid: int) -> None:
    """Measures `add_partitions` of 100 with one client; the first calls do not count."""
    client = connect(address)
    model = next(one for one in comparison.plan.tables_planned() if one.name == "part_large")
    name = "added_" + "".join(letter for letter in server.lower() if letter.isalnum())
    plan = replace(model, name=name, database=f"bench_{comparison.plan.databases - 1:02d}")
    client.create_table(table(plan))
    latencies: list[float] = []
    before = (0.0, 0.0, 0)
    for call in range(CALLS):
        if call == WARM_CALLS:
            before = (cpu_seconds(pid), cpu_seconds(comparison.database_pid), statements(comparison.counter))
        first = call * PARTITIONS_A_CALL
        parts = [partition(plan, number) for number in range(first, first + PARTITIONS_A_CALL)]
        request = ttypes.AddPartitionsRequest(
            dbName=plan.database, tblName=plan.name, parts=parts, ifNotExists=False, needResult=False
        )
        started = time.perf_counter()
        client.add_partitions_req(request)
        if call >= WARM_CALLS:
            latencies.append(time.perf_counter() - started)
    after = (cpu_seconds(pid), cpu_seconds(comparison.database_pid), statements(comparison.counter))
    latencies.sort()
    counted = len(latencies)
    comparison.results.rows.append(
        {
            "server": server,
            "operation": "add_partitions of 100",
            "clients": 1,
            "calls": counted,
            "calls_per_second": counted / sum(latencies),
            "p50_us": latencies[counted // 2] * 1e6,
            "p95_us": latencies[-1] * 1e6,
            "p99_us": latencies[-1] * 1e6,
            "server_cpu_us": (after[0] - before[0]) / counted * 1e6,
            "database_cpu_us": (after[1] - before[1]) / counted * 1e6,
            "statements": (after[2] - before[2] - 1) / counted,
        }
    )


def judge_additions(comparison: Comparison, ours: str, hive: str) -> None:
    """Judges the bar on `add_partitions`."""
    results = comparison.results
    own, java = results.cell(ours, "add_partitions of 100", 1), results.cell(hive, "add_partitions of 100", 1)
    if own is None or java is None:
        results.bar("add_partitions of 100", "≤ 40 statements, ≥ 3 ×", "not measured", None)
        return
    ratio = java["p50_us"] / own["p50_us"]
    results.bar(
        "add_partitions of 100",
        "≤ 40 statements, ≥ 3 × as fast as Hive (which writes no events in this run; ours does)",
        f"{own['statements']:.0f} statements (Hive {java['statements']:.0f}), {own['p50_us'] / 1000:.1f} ms "
        f"(Hive {java['p50_us'] / 1000:.1f} ms): {ratio:.1f} ×",
        own["statements"] <= 40 and ratio >= 3,
    )
