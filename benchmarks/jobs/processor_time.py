"""CPU time of Spark: of this process and all below it, without the servers that it started."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def spark_cpu_seconds(others: Collection[int]) -> float:
    """User and system time so far, with that of processes that ended; `others`: children that are no part of it."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        process = int(status.parent.name)
        parents[process] = int(fields[1])
        own = os.getpid() == process
        # Of this process without its children: the servers of earlier steps are among them.
        spent[process] = sum(map(int, fields[11:13] if own else fields[11:15])) / _TICKS
    return sum(seconds for process, seconds in spent.items() if _is_below(process, os.getpid(), parents, others))


def children(process: int) -> list[int]:
    """Processes that this one has started and that run."""
    return [int(one) for tasks in Path(f"/proc/{process}/task").glob("*/children") for one in tasks.read_text().split()]


def _is_below(process: int, ancestor: int, parents: dict[int, int], others: Collection[int]) -> bool:
    while process != ancestor:
        if process in others or process not in parents:
            return False
        process = parents[process]
    return True
