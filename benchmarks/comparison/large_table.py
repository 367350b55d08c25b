"""A table with very many partitions in memory, in a separate process: filters, memory, changes."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.comparison.context import Comparison
from benchmarks.processes import resident_bytes

TIMEOUT_S = 240
REPETITIONS = 20


def measure_large_table(comparison: Comparison) -> None:
    """Judges the bar on filters over a million partitions, and measures the memory of such a table."""
    count = comparison.sizes.large_table
    ran = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.comparison.large_table import main; main({count})"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=Path(__file__).resolve().parent.parent.parent,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr[-500:])
    found = json.loads(ran.stdout)
    comparison.results.bar(
        f"filter on a table of {count:,} partitions, 10 answers",
        "< 10 ms of server time",
        f"{found['filter_ms']:.2f} ms (the first of all {found['first_filter_ms']:.1f} ms)",
        found["filter_ms"] < 10,
    )
    comparison.results.sections.append(
        (
            f"A table of {count:,} partitions in memory",
            ["what", "measured"],
            [
                ["filter, 10 answers", f"{found['filter_ms']:.2f} ms CPU"],
                ["count by a filter that says nothing of the first key", f"{found['other_key_ms']:.2f} ms CPU"],
                ["by partial values, 24 answers", f"{found['partial_ms']:.2f} ms CPU"],
                ["by 24 names", f"{found['names_ms']:.2f} ms CPU"],
                ["one partition changed, then read", f"{found['change_ms']:.2f} ms CPU"],
                ["resident growth per partition", f"{found['growth'] / count:.0f} bytes"],
                ["charged to the memory budget per partition", f"{found['charged'] / count:.0f} bytes"],
            ],
        )
    )


def main(count: int) -> None:
    """Prints the figures as JSON."""
    from hms_cache.cache.partitions.partition_set import PartitionSet
    from hms_cache.cache.partitions.selection import narrowed, select_partitions
    from hms_cache.cache.warming.process_memory import give_back_freed_memory
    from hms_cache.store.contract.partitions import ByFilter, ByNames, ByPartialValues, PartitionSelection
    from tests.cache.blocks.partitions import KEYS, ordinary, page, partition

    def pages(many: int) -> PartitionSet:
        return PartitionSet.from_pages(KEYS, (page(first, 5_000) for first in range(0, many, 5_000)), complete=True)

    small = pages(5_000)
    del small
    gc.collect()
    own = resident_bytes(_self())
    held = pages(count)
    gc.collect()
    give_back_freed_memory()
    growth = resident_bytes(_self()) - own
    day = [*ordinary(24 * 100)][-24:]

    def asking(selection: PartitionSelection) -> Callable[[], object]:
        def ask() -> bytes:
            found = select_partitions(narrowed(held, selection), selection, -1).partitions
            return b"".join(found.encoded_structs().binary_pieces())

        return ask

    by_filter = asking(ByFilter(f'dt = "{day[0].values[0]}" and hr >= 14'))
    started = time.process_time()
    by_filter()
    first_ms = (time.process_time() - started) * 1000
    changed = partition(day[3].values, number=77)

    def change() -> None:
        held.mark_missing([tuple(day[3].values)])
        held.fill([*held.missing], [changed])
        asking(ByNames((held.name_of(day[3].values),)))()

    def count_other() -> int:
        return len(select_partitions(held, ByFilter("hr = 3"), -1).partitions)

    figures = {
        "growth": growth,
        "charged": held.memory_bytes(),
        "first_filter_ms": first_ms,
        "filter_ms": _median_ms(by_filter),
        "other_key_ms": _median_ms(count_other),
        "partial_ms": _median_ms(asking(ByPartialValues((day[0].values[0], "")))),
        "names_ms": _median_ms(asking(ByNames(tuple(held.name_of(one.values) for one in day)))),
        "change_ms": _median_ms(change),
    }
    print(json.dumps(figures))


def _median_ms(ask: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        ask()
        spent.append((time.process_time() - started) * 1000)
    return sorted(spent)[REPETITIONS // 2]


def _self() -> int:
    import os

    return os.getpid()
