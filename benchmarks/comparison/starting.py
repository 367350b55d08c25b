"""Starts: duration of the prewarm, answers meanwhile, and memory of the process afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.client import connect
from benchmarks.comparison.context import READY_TIMEOUT_S, Comparison
from benchmarks.java_metastore import JavaMetastore
from benchmarks.operations import Operation
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import resident_bytes

SLICE_S = 0.4
AFTERWARDS_SLICES = 4
WARM_UP_TIMEOUT_S = 400.0
"""The prewarm pauses while clients send calls without a pause: some 130 s, and more if a large table is read while they
are busiest."""


def first_answer_s(address: str) -> float:
    """Waits for the first answer. Returns the seconds from now. Raises RuntimeError if none arrives."""
    started = time.monotonic()
    client = connect(address)
    client._iprot.trans._TBufferedTransport__trans.setTimeout(READY_TIMEOUT_S * 1000)
    client.get_all_databases()
    return time.monotonic() - started


def warm_up(comparison: Comparison, server: OwnMetastore, operation: Operation) -> float:
    """Waits until a server that was just started with `cache.warm = full` is warm; reads while it warms up."""
    first_s = first_answer_s(server.address)
    started, deadline = time.monotonic() - first_s, time.monotonic() + WARM_UP_TIMEOUT_S
    during: list[float] = []
    warm_s = 0.0
    while not warm_s and time.monotonic() < deadline:
        during.append(_p99_s(comparison, server, operation))
        if "warmed up" in server.log:
            warm_s = server.seconds_until("warmed up", started)
    if not warm_s:
        raise RuntimeError("the prewarm did not end")
    after = [_p99_s(comparison, server, operation) for _ in range(AFTERWARDS_SLICES)]
    results = comparison.results
    while_warming, warm = sum(during) / len(during), sum(after) / len(after)
    results.bar(
        "answers during the prewarm",
        "the first within 1 s; p99 of `get_table` ≤ 2 × that of the warm server",
        f"first after {first_s * 1000:,.0f} ms; p99 {while_warming * 1e6:,.0f} µs, warm {warm * 1e6:,.0f} µs "
        f"({while_warming / warm:.1f} ×)",
        first_s <= 1.0 and while_warming <= 2 * warm,
    )
    return warm_s


def _p99_s(comparison: Comparison, server: OwnMetastore, operation: Operation) -> float:
    return comparison.generator.run(server.address, operation, 4, SLICE_S).p99_s


def prewarm_undisturbed(comparison: Comparison) -> tuple[float, int]:
    """(seconds from listening to warm, resident bytes), of a start without clients."""
    with comparison.own("own-warm", CACHE__WARM="full") as server:
        started = time.monotonic()
        _wait(lambda: "warmed up" in server.log)
        seconds = server.seconds_until("warmed up", started)
        time.sleep(0.5)  # what the load needed is given back
        return seconds, resident_bytes(server.pid)


def memory(comparison: Comparison, warm_bytes: int) -> None:
    """Returns the resident bytes of a partition and of a table, from the difference between servers with more and fewer
    of them."""
    tables, partitions = comparison.plan.size()
    # Only after a prewarm is the memory given back that the start needed: names are the least there is to warm.
    with comparison.own("own-cold", CACHE__WARM="names") as server:
        wait_until_warm(server)
        time.sleep(0.5)
        cold = resident_bytes(server.pid)
    with comparison.own("own-tables", CACHE__WARM="full", CACHE__EXCLUDE="bench_00.*") as server:
        _wait(lambda: "warmed up" in server.log)
        time.sleep(0.5)
        with_tables = resident_bytes(server.pid)
    small = tables - comparison.plan.tables - 3 - comparison.plan.copies_1000 - comparison.plan.copies_100
    per_table = (with_tables - cold) / max(1, small)
    per_partition = (warm_bytes - cold) / partitions
    comparison.results.bar(
        f"memory of {tables:,} tables and {partitions:,} partitions",
        "≤ 250 bytes of resident growth per partition, tables included; process ≤ 200 MB warm",
        f"{per_partition:,.0f} bytes per partition; process {warm_bytes / 1e6:,.0f} MB",
        per_partition <= 250 and warm_bytes <= 200e6,
    )
    comparison.results.sections.append(
        (
            "Memory of our server",
            ["server", "resident MB", "growth"],
            [
                ["names only", f"{cold / 1e6:,.1f}", ""],
                [
                    f"{small:,} tables without partitions",
                    f"{with_tables / 1e6:,.1f}",
                    f"{per_table:,.0f} bytes per table",
                ],
                [
                    f"{tables:,} tables and {partitions:,} partitions",
                    f"{warm_bytes / 1e6:,.1f}",
                    f"{(warm_bytes - with_tables) / partitions:,.0f} bytes per partition, "
                    f"{per_partition:,.0f} with the tables",
                ],
            ],
        )
    )


def java_prewarm_s(server: JavaMetastore) -> float:
    """Waits until Hive's CachedStore is warm. Returns the seconds since it listens."""
    started = time.monotonic()
    first_answer_s(server.address)
    _wait(lambda: "CachedStore initialized" in server.log or "Time taken in prewarming" in server.log)
    return time.monotonic() - started


def wait_until_warm(server: OwnMetastore) -> None:
    """Waits until a server that was started with `cache.warm = full` is warm."""
    _wait(lambda: "warmed up" in server.log)


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not reached():
        if time.monotonic() > deadline:
            raise RuntimeError("the prewarm did not end")
        time.sleep(0.05)
