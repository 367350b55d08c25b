"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")

_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)\s*(.*)")
"""First line of a region in `smaps`: its beginning and end, and the file's number and name."""


def cpu_seconds(pid: int | None) -> float:
    """Returns the user and system time of a process and its ended children; 0 for None."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Resident set size."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def with_children(pid: int) -> list[int]:
    """Returns a process and all its descendants."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                found.extend(map(int, (task / "children").read_text().split()))
    return found


def proportional_bytes(pids: list[int]) -> int:
    """Returns the memory that processes take together. Shared pages count once (the sum of their PSS), and so does each
    memory file with all its contents, whether or not a process has read them yet."""
    own_kib, files = 0, {}
    for pid in pids:
        is_memory = False
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            if (region := _REGION.match(line)) is not None:
                is_memory = region[4].startswith("/memfd:")
                if is_memory:
                    files[region[3]] = int(region[2], 16) - int(region[1], 16)
            elif line.startswith("Pss:") and not is_memory:
                own_kib += int(line.split()[1])
    return 1024 * own_kib + sum(files.values())
