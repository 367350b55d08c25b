"""What the call that this thread is answering has done so far: for the slow-call log, and to mark its log lines."""

from __future__ import annotations

import itertools
import threading
import time

_numbers = itertools.count(1)

#: Reasons kept of one call; a call makes few reads, but for some bulk ones.
_MOST_REASONS = 16

#: Ranges of events kept of one call: each takes a transaction of its own that another server's came between.
_MOST_EVENTS = 1_000


class CallTrace(threading.local):
    """One per thread. Costs less than a microsecond a call, so it is always on."""

    def __init__(self) -> None:
        self.connection = 0
        self.user = ""
        self.address = ""
        """Of the client whose call it is."""
        self.call = 0
        """The number of the call in this process; 0: this thread answers none."""
        self.reads: list[str] = []
        """How each of its reads was answered: ``table: miss``."""
        self.statements = 0
        self.database_s = 0.0
        self.failure = ""
        """What it raised."""
        self.loads = 0
        """Loads into the cache that it ran."""
        self.events: list[tuple[int, int]] = []
        """First and last of the events that it logged, by transaction; those that follow each other as one."""
        self._sent_s = 0.0

    def begin(self, connection: int, user: str = "", address: str = "") -> None:
        """The thread begins a call of this connection."""
        self.connection = connection
        self.user = user
        self.address = address
        self.loads = 0
        self.call = next(_numbers)
        self.statements = 0
        self.database_s = 0.0
        self.failure = ""
        if self.reads:
            self.reads.clear()
        if self.events:
            self.events.clear()

    def end(self) -> None:
        """It is answered."""
        self.call = 0

    def note_read(self, kind: str, reason: str) -> None:
        """A read was answered in this way."""
        if len(self.reads) < _MOST_REASONS:
            self.reads.append(f"{kind}: {reason}")

    def note_events(self, first: int, last: int) -> None:
        """A transaction of it was committed with these events."""
        if not self.call:
            return
        if self.events and self.events[-1][1] == first - 1:
            first = self.events.pop()[0]
        if len(self.events) < _MOST_EVENTS:
            self.events.append((first, last))

    def statement_sent(self) -> None:
        """A statement goes to the database."""
        self.statements += 1
        self._sent_s = time.perf_counter()

    def statement_answered(self) -> None:
        """It came back. One that failed is counted, and its time is not."""
        self.database_s += time.perf_counter() - self._sent_s

    @property
    def identifier(self) -> str:
        """``CONNECTION.CALL``; empty when the thread answers no call."""
        return f"{self.connection}.{self.call}" if self.call else ""

    def explained(self) -> str:
        """Where its time went."""
        reads = ", ".join(self.reads) or "no read"
        return f"{self.statements} statements took {self.database_s:.3f} s; {reads}"


#: The trace of whatever thread asks.
call_trace = CallTrace()
