"""Running and recent operations that users requested: administrators' commands, and calls that change the catalog.

They are shown on the page of operations. Counts and durations of all calls are metrics.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Literal

from hms_cache.clock import Clock, SystemClock
from hms_cache.values import frozen

#: Number of finished operations that are kept: a few screens, about 100 KB.
REMEMBERED_OPERATIONS = 200

#: Maximum length of a subject or an outcome: a call may name thousands of partitions, and an error may contain long
#: texts from a client.
_LONGEST_SUBJECT = 300

Kind = Literal["command", "call"]


@frozen
class StartedOperation:
    """The facts about an operation that are known when it starts."""

    identifier: int
    kind: Kind
    name: str
    subject: str
    requested_by: str
    started_at_s: float
    """Epoch seconds."""


@dataclass(slots=True, eq=False)
class Operation:
    """A running operation. Its own thread writes `done`, `total` and `note`; other threads only read them."""

    start: StartedOperation
    began_s: float
    """Start on the monotonic clock."""
    done: int = 0
    total: int | None = None
    note: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the result is no longer needed. Long operations check it between their steps."""


@frozen
class FinishedOperation(StartedOperation):
    """A finished operation. ``outcome`` is `ok` or the error."""

    duration_s: float
    outcome: str


@frozen
class RunningOperation(StartedOperation):
    """The progress of a running operation. ``total`` is None if it is not known yet."""

    running_s: float
    done: int
    total: int | None
    note: str


class Operations:
    """The register of operations. ``_lock`` guards the attributes below it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._running: dict[int, Operation] = {}
        self._last: deque[FinishedOperation] = deque(maxlen=REMEMBERED_OPERATIONS)

    def begin(self, kind: Kind, name: str, subject: str, requested_by: str) -> Operation:
        """Registers an operation that starts now. Pass it to :meth:`end` in ``finally``."""
        start = StartedOperation(
            next(self._ids), kind, name, subject[:_LONGEST_SUBJECT], requested_by, self._clock.epoch_s()
        )
        operation = Operation(start, self._clock.monotonic_s())
        with self._lock:
            self._running[operation.start.identifier] = operation
        return operation

    def end(self, operation: Operation, outcome: str) -> None:
        """Registers the end of an operation, successful or not. Does nothing if it was called before."""
        duration_s = self._clock.monotonic_s() - operation.began_s
        finished = FinishedOperation(
            **asdict(operation.start), duration_s=duration_s, outcome=outcome[:_LONGEST_SUBJECT]
        )
        with self._lock:
            if self._running.pop(operation.start.identifier, None) is not None:
                self._last.append(finished)

    def running(self) -> list[RunningOperation]:
        """Returns the running operations, the oldest first."""
        with self._lock:
            running = list(self._running.values())
        now_s = self._clock.monotonic_s()
        return [
            RunningOperation(
                **asdict(one.start),
                running_s=max(0.0, now_s - one.began_s),
                done=one.done,
                total=one.total,
                note=one.note,
            )
            for one in running
        ]

    def running_commands(self) -> int:
        """Returns the number of running commands."""
        with self._lock:
            return sum(one.start.kind == "command" for one in self._running.values())

    def last(self) -> list[FinishedOperation]:
        """Returns the finished operations, the latest first."""
        with self._lock:
            return list(reversed(self._last))
