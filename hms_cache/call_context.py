"""The call that a thread is answering: what it has done so far, what its reads were answered from, and what they serve.

One object per thread, which a call takes over when it begins: for the slow-call log, to mark log lines, for answers
that are kept, and for reads that must show one position (P1) or need a proof.
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
"""The variable of a connection (`setMetaConf`) by which a client says that what it reads is not to be loaded into
memory: `false`."""

_numbers = itertools.count(1)

#: Reasons kept of one call; a call makes few reads, but for some bulk ones.
_MAX_REASONS = 16

#: Ranges of events kept of one call: each takes a transaction of its own that another server's came between.
_MAX_EVENTS = 1_000


class Versioned(Protocol):
    """An entry of the cache."""

    version: int


class Source:
    """What a call was answered from."""

    __slots__ = ("entry", "follows_other_tables", "is_pure", "is_trusted", "kind", "version")

    def __init__(self) -> None:
        self.entry: Versioned | None = None
        self.version = 0
        self.kind = ""
        self.is_pure = True
        """Whether everything so far came from `entry` alone."""
        self.follows_other_tables = False
        """Whether anything in `entry` that was read may change with other tables, as constraints do."""
        self.is_trusted = True
        """Whether every read may be answered from `entry` as it is without a position check (`write_id_reads`)."""

    def begin(self) -> None:
        """A call starts."""
        self.entry, self.is_pure, self.follows_other_tables, self.is_trusted = None, True, False, True

    def from_entry(
        self, entry: Versioned, kind: str, *, follows_other_tables: bool = False, is_trusted: bool = False
    ) -> None:
        """A read was answered from this entry. Under the cache's lock."""
        self.follows_other_tables |= follows_other_tables
        self.is_trusted &= is_trusted
        if self.entry is None:
            self.entry, self.version, self.kind = entry, entry.version, kind
        elif self.entry is not entry or self.version != entry.version:
            self.is_pure = False

    def from_elsewhere(self) -> None:
        """A read was answered by the store, or from what is no single entry."""
        self.is_pure = False


class AppliedPosition(NamedTuple):
    """The position of the cache, with its history."""

    generation: int
    """Number of the history, in each of which the same position may stand for other events."""
    position: int


class Seen:
    """The positions at which the reads of a call were answered; None: by the database, at an unknown position."""

    __slots__ = ("_at", "_is_one", "_reads")

    def __init__(self) -> None:
        self._reads = 0
        self._at: AppliedPosition | None = None
        self._is_one = True

    def note(self, at: AppliedPosition | None) -> None:
        """A read was answered at this position."""
        if self._reads and (at is None or at != self._at):
            self._is_one = False
        self._reads += 1
        self._at = at

    @property
    def is_one(self) -> bool:
        """Whether all reads were answered at one position of one history."""
        return self._is_one


class CallContext(threading.local):
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
        self.source = Source()
        self.seen: Seen | None = None
        """Where its reads were answered, if that is watched."""
        self.fills_cache = True
        """Whether what its reads need is loaded into memory. A job that looks at everything once leaves memory to
        others: it is answered from what is there, and by the database."""
        self.serves_a_write = False
        """Whether its reads are a write's: see `for_write`."""
        self.long_list: tuple[str, Any] | None = None
        """A text of its request that is read again and again, and what it says, where that is too large to be kept
        beyond the call."""

    def begin(self, connection: int, user: str = "", address: str = "", *, fills_cache: bool = True) -> None:
        """The thread begins a call of this connection."""
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
        """It is answered. A thread that answers no other keeps nothing of what it was answered from."""
        self.call = 0
        self.fills_cache = True
        self.long_list = None
        self.source.entry = None

    def note_read(self, kind: str, reason: str) -> None:
        """A read was answered in this way."""
        if len(self.reads) < _MAX_REASONS:
            self.reads.append(f"{kind}: {reason}")

    @contextmanager
    def watched(self) -> Iterator[Seen]:
        """Within it reads of this thread are noted. Not nestable."""
        self.seen = seen = Seen()
        try:
            yield seen
        finally:
            self.seen = None

    def note_position(self, at: AppliedPosition | None) -> None:
        """A read was answered from memory at this position; None: by the database."""
        if self.seen is not None:
            self.seen.note(at)

    def note_events(self, first: int, last: int) -> None:
        """A transaction of it was committed with these events."""
        if not self.call:
            return
        if self.events and self.events[-1][1] == first - 1:
            first = self.events.pop()[0]
        if len(self.events) < _MAX_EVENTS:
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


#: That of whatever thread asks.
call_context = CallContext()


def for_write(function: Callable[P, T]) -> Callable[P, T]:
    """A write: what it reads was committed when it arrived, or later, whatever `max_staleness` allows others.

    A partition that is appended takes its columns from the table, a drop by expressions takes its names from the
    partitions: what memory may answer to a reader for a while would become part of the catalog for good.
    """

    @functools.wraps(function)
    def proving(*arguments: P.args, **options: P.kwargs) -> T:
        before, call_context.serves_a_write = call_context.serves_a_write, True
        try:
            return function(*arguments, **options)
        finally:
            call_context.serves_a_write = before

    return proving
