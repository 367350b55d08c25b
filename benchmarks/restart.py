"""Compares a start with a cache dump and one with the full prewarm: time until the first hit, and until all is cached.

One client reads a table's definition some hundred times a second, during the start and afterwards, to show how much
longer a read takes during the load.
"""

from __future__ import annotations

import copy
import re
import socket
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.client import connect
from benchmarks.cloning import copy_partitions
from benchmarks.own_metastore import OwnMetastore
from benchmarks.scale import DATABASE, TABLE, day_of, fill

MAX_WAIT_S: Final = 1800.0

BYTES_A_PARTITION: Final = 300
"""Budget per partition: one and a half times what a partition takes."""

READ_PAUSE_S: Final = 0.005
AFTERWARDS_S: Final = 10.0
"""The reads continue for this long after all is cached."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start. Times in seconds since the process started; memory in bytes."""

    name: str
    ready_s: float
    first_hit_s: float
    whole_s: float
    resident_bytes: int
    p99_during_s: float
    """The 99th percentile of reads from memory while the rest is loaded; 0 if that took no time."""
    p99_afterwards_s: float


def fill_tables(url: str, directory: Path, tables: int, partitions: int, report: Callable[[str], None]) -> None:
    """Creates this many tables with this many partitions each."""
    fill(url, directory, partitions, report)
    metastore = OwnMetastore(url, directory / "tables", CACHE__ENABLED="false")
    client = connect(metastore.start())
    names = [f"{TABLE}_{number}" for number in range(1, tables)]
    try:
        model = client.get_table(DATABASE, TABLE)
        for name in names:
            one = copy.deepcopy(model)
            one.tableName, one.sd.location = name, None
            client.create_table(one)
    finally:
        metastore.stop()
    for number in range(0, len(names), 10):
        copy_partitions(url, DATABASE, TABLE, names[number : number + 10])
    report(f"{tables} tables")


def measure(url: str, directory: Path, partitions: int, report: Callable[[str], None]) -> tuple[list[Start], int]:
    """Returns (a start with the prewarm, which writes the dump; one with the dump), and the bytes of the dump.

    :param partitions: the number of all partitions.
    """
    settings = {
        "CACHE__BUDGET_BYTES": str(max(1 << 30, partitions * BYTES_A_PARTITION)),
        "CACHE__DUMP_FILE": str(directory / "dump"),
        "CACHE__DUMP_BYTES_PER_S": "1 GiB",
    }
    cold = OwnMetastore(url, directory / "cold", CACHE__WARM="full", **settings)
    first = _start(cold, "full prewarm", "warmed up")
    report(str(first))
    began_s = time.monotonic()
    cold.stop()
    if cold.log.rfind("a dump of") <= cold.log.find("warmed up"):
        raise RuntimeError("the server wrote no dump when it stopped")
    size = (directory / "dump").stat().st_size
    report(f"a dump of {size} bytes; the server stopped in {time.monotonic() - began_s:.1f} s")
    warm = OwnMetastore(url, directory / "warm", CACHE__WARM="off", **settings)
    second = _start(warm, "cache dump", "the dump is read:")
    report(str(second))
    warm.stop()
    return [first, second], size


def _start(metastore: OwnMetastore, name: str, done: str) -> Start:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metastore.set(ADMIN__ENABLED="true", ADMIN__PORT=str(port))
    began_s = time.monotonic()
    client = connect(metastore.start())
    ready_s = time.monotonic() - began_s

    def has_hit() -> bool:
        client.get_partition(DATABASE, TABLE, [day_of(0), "1"])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return re.search(rb'cache_reads_total\{kind="partition",outcome="hit"\} [1-9]', answer.read()) is not None

    with _reading(metastore.address) as took_s:
        _wait(has_hit)
        first_hit_s = time.monotonic() - began_s
        took_s.clear()
        _wait(lambda: done in metastore.log)
        during_s = took_s.copy()
    whole_s = metastore.seconds_until(done, began_s)
    resident_bytes = _resident_bytes(metastore.pid)
    with _reading(metastore.address) as took_s:
        time.sleep(AFTERWARDS_S)
    return Start(name, ready_s, first_hit_s, whole_s, resident_bytes, _p99_s(during_s), _p99_s(took_s))


@contextmanager
def _reading(address: str) -> Iterator[list[float]]:
    """Reads the table's definition continuously; yields the duration of each read."""
    took_s: list[float] = []
    is_over = threading.Event()
    client = connect(address)

    def read() -> None:
        while not is_over.wait(READ_PAUSE_S):
            began_s = time.perf_counter()
            client.get_table(DATABASE, TABLE)
            took_s.append(time.perf_counter() - began_s)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield took_s
    finally:
        is_over.set()
        thread.join()


def _p99_s(took_s: list[float]) -> float:
    return statistics.quantiles(took_s, n=100, method="inclusive")[98] if len(took_s) > 1 else 0.0


def _wait(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + MAX_WAIT_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise TimeoutError("it takes too long")
        time.sleep(0.02)


def _resident_bytes(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}" if seconds else ""


def render(starts: list[Start], size: int, tables: int, partitions: int) -> str:
    """Returns the rows of the evidence page."""
    rows = [
        f"| {one.name} | {one.ready_s:.1f} | {one.first_hit_s:.1f} | {one.whole_s:.1f} | {one.resident_bytes >> 20} | "
        f"{_ms(one.p99_during_s)} | {_ms(one.p99_afterwards_s)} |"
        for one in starts
    ]
    return "\n".join(
        [
            f"{tables} tables, {tables * partitions:,} partitions; the dump has {size >> 20} MiB.",
            "",
            "| start with | ready, s | first partition from memory, s | all of it, s | resident, MiB |"
            " p99 of a read meanwhile, ms | afterwards, ms |",
            "|---|---|---|---|---|---|---|",
            *rows,
        ]
    )
