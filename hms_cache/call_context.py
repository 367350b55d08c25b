"""The call that a thread is answering: what it did so far, and what its reads were answered from.

There is one object per thread, which each call resets when it begins. It is used by the slow-call log, to mark log
lines, for stored answers, and for reads that must show one position (P1) or that a write depends on.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

FILL_CACHE = "hms-cache.fill.cache"
"""The variable of a connection (`setMetaConf`) with which a client asks (`false`) that its reads do not load anything
into memory."""

_numbers = itertools.count(1)

#: Number of reads recorded per call. Most calls make few; only some bulk calls make more.
_MAX_REASONS = 16

#: Number of ranges of events recorded per call. There are several ranges if the call used several transactions and
#: another server committed between them.
_MAX_EVENTS = 1_000


class Versioned(Protocol):
    """An entry of the cache."""

    version: int


class Source:
    """The source of a call's answer."""

    __slots__ = ("entry", "follows_other_tables", "is_pure", "is_trusted", "kind", "version")

    def __init__(self) -> None:
        self.entry: Versioned | None = None
        self.version = 0
        self.kind = ""
        self.is_pure = True
        """Whether all reads so far were answered from `entry` alone."""
        self.follows_other_tables = False
        """Whether something read from `entry` may change with other tables, as constraints do."""
        self.is_trusted = True
        """Whether every read may be answered from `entry` without a position check (`write_id_reads`)."""

    def begin(self) -> None:
        """Resets the source at the start of a call."""
        self.entry, self.is_pure, self.follows_other_tables, self.is_trusted = None, True, False, True

    def from_entry(
        self, entry: Versioned, kind: str, *, follows_other_tables: bool = False, is_trusted: bool = False
    ) -> None:
        """Records that a read was answered from this entry. The caller holds the cache's lock."""
        self.follows_other_tables |= follows_other_tables
        self.is_trusted &= is_trusted
        if self.entry is None:
            self.entry, self.version, self.kind = entry, entry.version, kind
        elif self.entry is not entry or self.version != entry.version:
            self.is_pure = False

    def from_elsewhere(self) -> None:
        """Records that a read was answered by the store, or from more than a single entry."""
        self.is_pure = False


class AppliedPosition(NamedTuple):
    """The position of the cache, with its history."""

    generation: int
    """Number of the history: the same position may stand for other events in another history."""
    position: int


class AnswerPositions:
    """The positions at which the reads of a call were answered; None for the database, whose position is unknown."""

    __slots__ = ("_at", "_is_one", "_reads")

    def __init__(self) -> None:
        self._reads = 0
        self._at: AppliedPosition | None = None
        self._is_one = True

    def note(self, at: AppliedPosition | None) -> None:
        """Records that a read was answered at this position."""
        if self._reads and (at is None or at != self._at):
            self._is_one = False
        self._reads += 1
        self._at = at

    @property
    def is_one(self) -> bool:
        """Whether all reads were answered at one position of one history."""
        return self._is_one


class CallContext(threading.local):
    """The state of the call that a thread is answering. It takes less than a microsecond per call, so it is always
    on."""

    def __init__(self) -> None:
        self.connection = 0
        self.user = ""
        self.address = ""
        """Address of the client."""
        self.call = 0
        """The number of the call in this process; 0 if the thread is not answering a call."""
        self.reads: list[str] = []
        """How each of its reads was answered, such as ``table: miss``."""
        self.statements = 0
        self.database_s = 0.0
        self.failure = ""
        """The exception that it raised."""
        self.loads = 0
        """Number of loads that it ran."""
        self.events: list[tuple[int, int]] = []
        """First and last event ids that it wrote to the log, per transaction; adjacent ranges are merged."""
        self._sent_s = 0.0
        self.source = Source()
        self.seen: AnswerPositions | None = None
        """The positions of its reads, inside :meth:`watched`."""
        self.fills_cache = True
        """Whether its reads may load objects into memory. False for a job that reads everything once: such reads are
        answered from what is in memory already, or by the database."""
        self.serves_a_write = False
        """Whether the reads belong to a write: see `for_write`."""
        self.long_list: tuple[str, Any] | None = None
        """A text of its request that is decoded several times, and its decoded form, if that is too large to be cached
        beyond the call."""

    def begin(self, connection: int, user: str = "", address: str = "", *, fills_cache: bool = True) -> None:
        """Starts a call of this connection."""
        self.connection = connection
        self.fills_cache = fills_cache
        self.user = user
        self.address = address
        self.loads = 0
        self.call = next(_numbers)
        self.statements = 0
        self.database_s = 0.0
        self.failure = ""
        self.long_list = None
        self.source.begin()
        if self.reads:
            self.reads.clear()
        if self.events:
            self.events.clear()

    def end(self) -> None:
        """Ends the call, and releases the entry from which it was answered."""
        self.call = 0
        self.fills_cache = True
        self.long_list = None
        self.source.entry = None

    def record_read(self, kind: str, reason: str) -> None:
        """Records how a read was answered."""
        if len(self.reads) < _MAX_REASONS:
            self.reads.append(f"{kind}: {reason}")

    @contextmanager
    def watched(self) -> Iterator[AnswerPositions]:
        """Records the positions of this thread's reads inside the block. It cannot be nested."""
        self.seen = seen = AnswerPositions()
        try:
            yield seen
        finally:
            self.seen = None

    def record_position(self, at: AppliedPosition | None) -> None:
        """Records that a read was answered from memory at this position; None: by the database."""
        if self.seen is not None:
            self.seen.note(at)

    def record_events(self, first: int, last: int) -> None:
        """Records that a transaction of the call was committed with these events."""
        if not self.call:
            return
        if self.events and self.events[-1][1] == first - 1:
            first = self.events.pop()[0]
        if len(self.events) < _MAX_EVENTS:
            self.events.append((first, last))

    def statement_sent(self) -> None:
        """Counts a statement that is being sent to the database."""
        self.statements += 1
        self._sent_s = time.perf_counter()

    def statement_answered(self) -> None:
        """Adds the time of a statement that returned. Statements that fail are counted, but their time is not added."""
        self.database_s += time.perf_counter() - self._sent_s

    @property
    def identifier(self) -> str:
        """``CONNECTION.CALL``; empty if the thread is not answering a call."""
        return f"{self.connection}.{self.call}" if self.call else ""

    def explained(self) -> str:
        """Describes, for the log, how the call spent its time."""
        reads = ", ".join(self.reads) or "no read"
        return f"{self.statements} statements took {self.database_s:.3f} s; {reads}"


#: The context of the current thread.
call_context = CallContext()


def for_write(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a write. Its reads are at least as new as its arrival, even if `max_staleness` allows other reads to be
    older.

    An appended partition takes its columns from the table, and a drop by expressions takes its names from the
    partitions. A stale read would therefore be written to the catalog, and stay there.
    """

    @functools.wraps(function)
    def proving(*arguments: P.args, **options: P.kwargs) -> T:
        before, call_context.serves_a_write = call_context.serves_a_write, True
        try:
            return function(*arguments, **options)
        finally:
            call_context.serves_a_write = before

    return proving
