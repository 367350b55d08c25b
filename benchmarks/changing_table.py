"""Measures reads of a large table in memory that another server changes each second.

Each reader reads a day by filter, pauses, and continues. First nothing is written. Then one client of a second server
on the same database adds a partition and alters a parameter of the table each second.
"""

from __future__ import annotations

import copy
import itertools
import socket
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.budget import outcomes
from benchmarks.client import connect
from benchmarks.day_readers import reading
from benchmarks.own_metastore import OwnMetastore
from benchmarks.restart import BYTES_A_PARTITION
from benchmarks.scale import DATABASE, HOURS, TABLE, day_of

MAX_WAIT_S: Final = 600.0
RETRY_PAUSE_S: Final = 0.03
WRITE_INTERVAL_S: Final = 1.0

NOBODY, ONE_WRITER = "nobody writes", "one writer"
MAX_P99_MS: Final = 10.0
LEAST_SHARE: Final = 0.95
"""The bars while the writer runs."""


@dataclass(frozen=True, slots=True)
class Round:
    """What the readers measured."""

    moment: str
    took_ms: Sequence[float]
    from_memory: float
    """The share of reads answered from memory."""
    writes: int

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the reads."""
        return statistics.quantiles(self.took_ms, n=100, method="inclusive")[98]


def measure(url: str, directory: Path, partitions: int, *, readers: int, seconds: float) -> list[Round]:
    """Measures both rounds on one server that holds the table."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    budget_bytes = max(1 << 30, partitions * BYTES_A_PARTITION)
    read = OwnMetastore(
        url,
        directory / "read",
        CACHE__WARM="full",
        CACHE__BUDGET_BYTES=str(budget_bytes),
        ADMIN__ENABLED="true",
        ADMIN__PORT=str(port),
    )
    write = OwnMetastore(url, directory / "write", CACHE__ENABLED="false")
    try:
        address, other = read.start(), write.start()
        end_s = time.monotonic() + MAX_WAIT_S
        while "warmed up" not in read.log:
            if time.monotonic() > end_s:
                raise TimeoutError("the prewarm takes too long")
            time.sleep(0.1)
        _read(address, readers, partitions, 1.0)
        rounds = []
        for moment in (NOBODY, ONE_WRITER):
            before = outcomes(port)
            with _writing(other if moment == ONE_WRITER else None, partitions) as writes:
                took_ms = _read(address, readers, partitions, seconds)
            after = outcomes(port)
            hits, others = (now - then for now, then in zip(after, before, strict=True))
            rounds.append(Round(moment, took_ms, hits / (hits + others), len(writes)))
        return rounds
    finally:
        read.stop()
        write.stop()


@contextmanager
def _writing(address: str | None, partitions: int) -> Iterator[list[float]]:
    """One client adds a partition and alters the table each second; yields the times of its writes."""
    writes: list[float] = []
    if address is None:
        yield writes
        return
    ending = threading.Event()

    def write() -> None:
        client = connect(address)
        model = client.get_partition(DATABASE, TABLE, [day_of(0), "0"])
        location = client.get_table(DATABASE, TABLE).sd.location
        due_s = time.monotonic()
        for number in itertools.count(partitions):
            one = copy.deepcopy(model)
            one.values = [day_of(number), str(number % HOURS)]
            one.sd.location = f"{location}/dt={one.values[0]}/hour={one.values[1]}"
            client.add_partition(one)
            table = client.get_table(DATABASE, TABLE)
            table.parameters["changed"] = str(number)
            client.alter_table(DATABASE, TABLE, table)
            writes.append(time.monotonic())
            due_s += WRITE_INTERVAL_S
            if ending.wait(max(0.0, due_s - time.monotonic())):
                return

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield writes
    finally:
        ending.set()
        thread.join()


def _read(address: str, readers: int, partitions: int, seconds: float) -> list[float]:
    """Returns the milliseconds of each read."""
    with reading(address, readers, partitions, rest_s=RETRY_PAUSE_S) as took_ms:
        time.sleep(seconds)
    return took_ms()


def render(rounds: Sequence[Round]) -> str:
    """Returns a table with a row for each round."""
    lines = ["| | writes | reads | from memory | p50, ms | p95, ms | p99, ms |", "|---|---|---|---|---|---|---|"]
    for one in rounds:
        cuts = statistics.quantiles(one.took_ms, n=100, method="inclusive")
        share = f"{one.from_memory:.1%}"
        lines.append(
            f"| {one.moment} | {one.writes} | {len(one.took_ms):,} | {share} |"
            f" {cuts[49]:.1f} | {cuts[94]:.1f} | {cuts[98]:.1f} |"
        )
    beside = rounds[-1]
    is_met = beside.p99_ms < MAX_P99_MS and beside.from_memory >= LEAST_SHARE
    bars = f"p99 below {MAX_P99_MS:g} ms, {LEAST_SHARE:.0%} from memory"
    return "\n".join([*lines, "", f"Bars beside the writer: {bars}: {'met' if is_met else '**not met**'}."])
