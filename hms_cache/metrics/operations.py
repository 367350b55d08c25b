"""What the server is doing and did last that somebody asked for: administrators' commands, and calls that change the
catalog. For the page of operations; counts and durations of all calls are metrics.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Literal

from hms_cache.clock import Clock, SystemClock
from hms_cache.values import frozen

#: Finished operations that are remembered: some screens full, about 100 KB.
REMEMBERED_OPERATIONS = 200

#: Longest subject, and longest outcome, that is kept: a call may name thousands of partitions, and an error name what a
#: client sent, however long.
_LONGEST_SUBJECT = 300

Kind = Literal["command", "call"]


@frozen
class StartedOperation:
    """What is known of an operation from its start."""

    identifier: int
    kind: Kind
    name: str
    subject: str
    who: str
    started_at_s: float
    """Epoch seconds."""


@dataclass(slots=True, eq=False)
class Operation:
    """One operation on its way. Its own thread writes `done`, `total` and `note`; others only read them."""

    start: StartedOperation
    began_s: float
    """Of the monotonic clock."""
    done: int = 0
    total: int | None = None
    note: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for the outcome any more; long work looks at it between its steps."""


@frozen
class FinishedOperation(StartedOperation):
    """What is remembered of an operation. ``outcome`` is `ok` or what went wrong."""

    duration_s: float
    outcome: str


@frozen
class RunningOperation(StartedOperation):
    """What is seen of an operation on its way. ``total`` is None while nobody knows it."""

    running_s: float
    done: int
    total: int | None
    note: str


class Operations:
    """The register. ``_lock`` guards everything below it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._running: dict[int, Operation] = {}
        self._last: deque[FinishedOperation] = deque(maxlen=REMEMBERED_OPERATIONS)

    def begin(self, kind: Kind, name: str, subject: str, who: str) -> Operation:
        """Register one that starts now; give it to :meth:`end`, in ``finally``."""
        start = StartedOperation(next(self._ids), kind, name, subject[:_LONGEST_SUBJECT], who, self._clock.epoch_s())
        operation = Operation(start, self._clock.monotonic_s())
        with self._lock:
            self._running[operation.start.identifier] = operation
        return operation

    def end(self, operation: Operation, outcome: str) -> None:
        """It is over, one way or the other. A second end of the same operation does nothing."""
        duration_s = self._clock.monotonic_s() - operation.began_s
        finished = FinishedOperation(
            **asdict(operation.start), duration_s=duration_s, outcome=outcome[:_LONGEST_SUBJECT]
        )
        with self._lock:
            if self._running.pop(operation.start.identifier, None) is not None:
                self._last.append(finished)

    def running(self) -> list[RunningOperation]:
        """Those on their way, the oldest first."""
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
        """How many commands are on their way."""
        with self._lock:
            return sum(one.start.kind == "command" for one in self._running.values())

    def last(self) -> list[FinishedOperation]:
        """Those that ended, the latest first."""
        with self._lock:
            return list(reversed(self._last))
