"""CPU time of Spark: of this process and its descendants, without the servers that it started."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLES_EVERY_S = 0.5
"""Sampling interval; the use of a process in its last half second is lost."""


class SparkProcessorTime:
    """Samples from the beginning, because Python's workers start and end, and their time is not part of any final
    sum."""

    def __init__(self, others: Collection[int]) -> None:
        """:param others: children of this process that do not belong to Spark."""
        self._others = frozenset(others)
        self._lock = threading.Lock()
        self._spent: dict[tuple[int, str], float] = {}
        """Seconds by process id and start time, as of the last sample."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        """User and system time so far."""
        with self._lock:
            self._look()
            return sum(self._spent.values())

    def stop(self) -> None:
        """Stops sampling."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLES_EVERY_S):
            with self._lock:
                self._look()

    def _look(self) -> None:
        fields: dict[int, list[str]] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields[int(status.parent.name)] = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended
        for process, found in fields.items():
            key = (process, found[19])
            # A worker whose parent ended first has another parent since.
            if key in self._spent or self._is_below(process, fields):
                self._spent[key] = sum(map(int, found[11:13])) / _TICKS

    def _is_below(self, process: int, fields: dict[int, list[str]]) -> bool:
        while process != os.getpid():
            if process in self._others or process not in fields:
                return False
            process = int(fields[process][1])
        return True


def children(process: int) -> list[int]:
    """Returns the running children of this process."""
    return [int(one) for tasks in Path(f"/proc/{process}/task").glob("*/children") for one in tasks.read_text().split()]
