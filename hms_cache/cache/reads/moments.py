"""Whether the reads that one reply is made of showed one moment (P1)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Seen:
    """Positions of memory at which the reads of a call were answered; None: by the database, at a moment of its own."""

    __slots__ = ("_is_one", "_position", "_reads")

    def __init__(self) -> None:
        self._reads = 0
        self._position: int | None = None
        self._is_one = True

    def note(self, position: int | None) -> None:
        """A read was answered there."""
        if self._reads and (position is None or position != self._position):
            self._is_one = False
        self._reads += 1
        self._position = position

    @property
    def is_one(self) -> bool:
        """Whether all showed one moment: all of memory is true at one position."""
        return self._is_one


class Moments(threading.local):
    """What the call that runs on this thread has seen, if that is watched."""

    def __init__(self) -> None:
        self.seen: Seen | None = None

    @contextmanager
    def watched(self) -> Iterator[Seen]:
        """Within it reads of this thread are noted. Not nestable."""
        self.seen = seen = Seen()
        try:
            yield seen
        finally:
            self.seen = None

    def note(self, position: int | None) -> None:
        """A read was answered at this position of memory; None: by the database."""
        if self.seen is not None:
            self.seen.note(position)
