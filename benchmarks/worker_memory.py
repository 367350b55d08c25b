"""Memory of a server's workers together, compared with a server of one process; shared pages count once."""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.own_metastore import OwnMetastore
from benchmarks.processes import proportional_bytes, with_children
from benchmarks.restart import BYTES_A_PARTITION

MAX_WAIT_S: Final = 1800.0

SETTLED_S: Final = 10.0
"""Pause after the last worker is warm: partitions are put into shared memory, and freed memory is returned."""

FIGURES: Final = ("numFiles", "numRows", "rawDataSize", "totalSize", "transient_lastDdlTime")
"""Parameters that differ between partitions, as with statistics."""

ALLOWED_FACTOR: Final = 1.4
"""The bar for four workers, as a multiple of one process's memory."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one server in bytes: with an empty cache, and with all objects cached."""

    name: str
    empty: int
    warm: int


def measure(url: str, directory: Path, partitions: int, workers: int, report: Callable[[str], None]) -> list[Memory]:
    """Measures a server of one process, one with workers that share memory, and one with workers that do not."""
    plans = [
        ("one process", {}),
        (f"{workers} workers", {"SERVER__WORKERS": str(workers)}),
        (
            f"{workers} workers that share nothing",
            {"SERVER__WORKERS": str(workers), "SERVER__WORKERS_SHARE_MEMORY": "false"},
        ),
    ]
    found = []
    for name, settings in plans:
        empty = _measure(url, directory / "empty", settings | {"CACHE__WARM": "off"}, "", 0)
        budget = {"CACHE__WARM": "full", "CACHE__BUDGET_BYTES": str(max(1 << 30, partitions * BYTES_A_PARTITION))}
        count = int(settings.get("SERVER__WORKERS", "1"))
        found.append(Memory(name, empty, _measure(url, directory / "warm", settings | budget, "warmed up", count)))
        report(str(found[-1]))
    return found


def _measure(url: str, directory: Path, settings: dict[str, str], done: str, times: int) -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    metastore = OwnMetastore(url, directory, ADMIN__ENABLED="true", ADMIN__PORT=str(port), **settings)
    metastore.start()
    try:
        end_s = time.monotonic() + MAX_WAIT_S
        while done and metastore.log.count(done) < times:
            if time.monotonic() > end_s:
                raise TimeoutError("it takes too long")
            time.sleep(0.2)
        time.sleep(SETTLED_S)
        if done:
            _check_that_all_is_held(port)
        return proportional_bytes(with_children(metastore.pid))
    finally:
        metastore.stop()


def _check_that_all_is_held(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    held = [float(one) for one in re.findall(r"^hms_cache_cache_bytes\S* (\S+)$", text, re.MULTILINE)]
    if not held or min(held) < 0.99 * max(held):
        raise RuntimeError(f"not every worker holds all: {held}")


def render(found: list[Memory], partitions: int) -> str:
    """Returns the evidence page."""
    one = found[0].warm
    rows = [f"| {each.name} | {each.empty >> 20} | {each.warm >> 20} | {each.warm / one:.2f} |" for each in found]
    return "\n".join(
        [
            f"{partitions:,} partitions; bar: {ALLOWED_FACTOR} times one process.",
            "",
            "| server | nothing held, MiB | all held, MiB | times one process |",
            "|---|---|---|---|",
            *rows,
        ]
    )
