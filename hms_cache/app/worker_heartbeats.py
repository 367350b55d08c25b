"""Detects workers that hang: each increments a counter once a second on the event loop that serves all its clients.

The counters are in memory that all processes map, so that a worker that is completely blocked is detected, too.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

BEAT_INTERVAL_S: Final = 1.0

_CHECKS_PER_TIMEOUT: Final = 10
"""Number of checks within the time after which a worker counts as hanging."""

_NUMBER_BYTES: Final = 8
_STOPPED: Final = frozenset("Tt")
"""States of a process that was stopped by a signal or a debugger."""


class Heartbeats:
    """The shared memory. Created by the parent; each worker takes its `slot` after the fork and writes no other."""

    def __init__(self, count: int) -> None:
        self._numbers = memoryview(mmap.mmap(-1, count * _NUMBER_BYTES)).cast("q")

    def slot(self, index: int) -> Heartbeat:
        """The counter of one worker, reset."""
        return Heartbeat(self._numbers, index)

    def beats(self, index: int) -> int:
        """The worker's counter; 0: it has not started yet, or is stopping, which may take long."""
        return self._numbers[index]


class Heartbeat:
    """The counter of one worker."""

    def __init__(self, numbers: memoryview[int], index: int) -> None:
        self._numbers = numbers
        self._index = index
        self._is_over = False
        numbers[index] = 0

    def beat(self) -> None:
        """Called on the event loop."""
        if not self._is_over:
            self._numbers[self._index] += 1

    def end(self) -> None:
        """Ends counting when the worker stops."""
        self._is_over = True
        self._numbers[self._index] = 0


class HangWatch:
    """Measures how long each process has been silent, by time that has also passed for the observer.

    A machine that was suspended or overloaded does not make workers count as hanging.
    """

    def __init__(self, timeout_s: float, is_stopped: Callable[[int], bool]) -> None:
        self._timeout_s = timeout_s
        self._is_stopped = is_stopped
        self.interval_s = max(timeout_s / _CHECKS_PER_TIMEOUT, BEAT_INTERVAL_S)
        """Interval between checks."""
        self._checked_s: float | None = None
        self._seen: dict[int, tuple[int, float]] = {}
        """By process id: its counter, and how long it has not changed."""

    def hanging(self, now_s: float, beats: Mapping[int, int]) -> list[int]:
        """The processes that hang. `beats`: the counter of each process."""
        passed_s = 0.0 if self._checked_s is None else min(now_s - self._checked_s, 1.5 * self.interval_s)
        self._checked_s = now_s
        seen: dict[int, tuple[int, float]] = {}
        for process, count in beats.items():
            before, silent_s = self._seen.get(process, (0, 0.0))
            is_silent = count > 0 and count == before and not self._is_stopped(process)
            seen[process] = count, silent_s + passed_s if is_silent else 0.0
        self._seen = seen
        return [process for process, (_, silent_s) in seen.items() if silent_s >= self._timeout_s]


def is_stopped(process: int) -> bool:
    """Whether the process has been stopped by a signal or a debugger, as far as the system tells (Linux)."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # After the process name, which is in parentheses and may contain any characters.
    fields = status.rpartition(")")[2].split()
    return bool(fields) and fields[0] in _STOPPED
