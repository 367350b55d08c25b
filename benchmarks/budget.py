"""Reads a table of which a tenth fits into the budget: hit ratio compared with a simulation, and memory of the process.

Each reader reads one day at a time, the newest days most often (Zipf). The simulation is an LRU cache with the same
budget and segments of the same size. It gets the same requests and is filled at once, so it is the best that segments
can reach.
"""

from __future__ import annotations

import random
import re
import socket
import time
import urllib.request
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

from benchmarks.client import connect
from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import resident_bytes
from benchmarks.scale import DATABASE, HOURS, TABLE, day_of
from hms_cache.cache.partitions.segment import SEGMENT_PARTITIONS
from hms_cache.cache.warming.background_loads import BYTES_A_PARTITION, MAX_WINDOWS, TABLE_SHARE

EXPONENT: Final = 1.1
"""Exponent of the distribution: the newest day gets some 7 % of the reads."""

PAUSE_S: Final = 0.005
"""Pause between two reads. It gives the background loads time, as if the readers also did other work."""

ALLOWED_POINTS: Final = 5.0
ALLOWED_FACTOR: Final = 1.2
ALLOWED_BYTES: Final = 150 * 2**20
"""The bars: maximum distance from the simulation in points; maximum resident bytes, as a multiple of the budget plus a
constant."""


@dataclass(frozen=True, slots=True)
class Run:
    """The results. Ratios in percent, of the second half of the reads."""

    partitions: int
    budget_bytes: int
    reads: int
    hit_ratio: float
    simulated: float
    resident_bytes: int
    p50_ms: float
    p99_ms: float

    @property
    def is_met(self) -> bool:
        """Whether both bars hold."""
        return (
            self.hit_ratio >= self.simulated - ALLOWED_POINTS
            and self.resident_bytes <= ALLOWED_FACTOR * self.budget_bytes + ALLOWED_BYTES
        )


def days(partitions: int, reads: int, seed: int = 19) -> Iterator[int]:
    """Returns the numbers of the days to read, distributed by age (Zipf)."""
    chance = random.Random(seed)
    count = max(1, partitions // HOURS)
    weights = list(accumulate(1 / (age + 1) ** EXPONENT for age in range(count)))
    for _ in range(reads):
        yield count - 1 - bisect_left(weights, chance.random() * weights[-1])


def segment_partitions(budget_bytes: int) -> int:
    """Returns the number of partitions per segment under this budget."""
    return min(SEGMENT_PARTITIONS, budget_bytes // TABLE_SHARE // MAX_WINDOWS // BYTES_A_PARTITION)


def budget_for(partitions: int, share: float) -> int:
    """Returns the bytes that hold this share of a table, at least the setting's minimum."""
    return max(2**20, int(share * partitions * BYTES_A_PARTITION))


def simulate(partitions: int, budget_bytes: int, reads: int) -> float:
    """Returns the percentage of the second half of the reads that an LRU cache of segments answers."""
    size = segment_partitions(budget_bytes)
    most = max(1, budget_bytes // (size * BYTES_A_PARTITION))
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for number, day in enumerate(days(partitions, reads)):
        segment = day * HOURS // size
        if segment in held:
            held.move_to_end(segment)
            hits += number >= reads // 2
        else:
            held[segment] = None
            if len(held) > most:
                held.popitem(last=False)
    return 100 * hits / (reads - reads // 2)


def measure(
    url: str, directory: Path, partitions: int, budget_bytes: int, reads: int, report: Callable[[str], None]
) -> Run:
    """Runs one client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metastore = OwnMetastore(
        url,
        directory / "budget",
        CACHE__WARM="off",
        CACHE__BUDGET_BYTES=str(budget_bytes),
        ADMIN__ENABLED="true",
        ADMIN__PORT=str(port),
    )
    client = connect(metastore.start())
    try:
        client.get_table(DATABASE, TABLE)
        before = outcomes(port)
        milliseconds: list[float] = []
        for number, day in enumerate(days(partitions, reads)):
            if number == reads // 2:
                before, milliseconds = outcomes(port), []
            filter_text = f'dt = "{day_of(day * HOURS)}"'
            started_s = time.perf_counter()
            found = client.get_partitions_by_filter(DATABASE, TABLE, filter_text, -1)
            milliseconds.append((time.perf_counter() - started_s) * 1000)
            if not found:
                raise RuntimeError(f"no partitions with {filter_text}")
            time.sleep(PAUSE_S)
            if number % 1000 == 999:
                report(f"{number + 1} reads, {resident_bytes(metastore.pid) >> 20} MiB")
        hits, others = (now - then for now, then in zip(outcomes(port), before, strict=True))
        resident = resident_bytes(metastore.pid)
    finally:
        metastore.stop()
    milliseconds.sort()
    return Run(
        partitions,
        budget_bytes,
        reads,
        100 * hits / max(1, hits + others),
        simulate(partitions, budget_bytes, reads),
        resident,
        milliseconds[len(milliseconds) // 2],
        milliseconds[len(milliseconds) * 99 // 100],
    )


def outcomes(port: int) -> tuple[float, float]:
    """Returns the number of reads of partitions from memory, including kept replies, and of all others."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r'cache_reads_total\{kind="(?:partitions|reply)",outcome="(\w+)"\} (\S+)', text)
    hits = sum(float(count) for outcome, count in found if outcome == "hit")
    return hits, sum(float(count) for outcome, count in found) - hits


def render(run: Run) -> str:
    """Returns the evidence page."""
    bar = f"{ALLOWED_POINTS:.0f} points below the simulation: {run.simulated - ALLOWED_POINTS:.1f} %"
    allowed = ALLOWED_FACTOR * run.budget_bytes + ALLOWED_BYTES
    return "\n".join(
        [
            f"{run.partitions:,} partitions, a budget of {run.budget_bytes >> 20} MiB, {run.reads:,} reads of a day.",
            "",
            "| what | measured | bar |",
            "|---|---|---|",
            f"| hit ratio | {run.hit_ratio:.1f} % | {bar} |",
            f"| resident | {run.resident_bytes >> 20} MiB | {int(allowed) >> 20} MiB |",
            f"| p50, p99 of a read | {run.p50_ms:.1f}, {run.p99_ms:.1f} ms | |",
        ]
    )
