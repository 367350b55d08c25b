"""Limits how long a write waits for a file system while it holds locks of the database.

A write calls its file systems as it proceeds. A slow one would keep the write's locks, on SQLite those of all writers.
So an operation that takes longer than `max_wait_s` is left to its thread, and `StillWaiting` ends the attempt: the
transaction is rolled back, the result is waited for without locks, and the write runs again and finds the result. The
new transaction decides by the current state of the database; only the file operation is not repeated. If that operation
is a change, earlier results are kept as well: repeated, they would already show the change.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

MOVE_WAITS = 4
"""Factor by which a rename on this machine, and operations after it, may exceed the usual wait while a write holds
locks: they cannot be left to the next attempt, since the row of the renamed object must stay locked meanwhile."""


class Answer(Protocol):
    """An operation that a thread runs, see `deadlines.FileThreads`."""

    changes_files: bool
    """Whether it created something that the write has to undo if it fails. Then its result is returned only once."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it ends within this time."""
        ...

    def give_up(self) -> None:
        """The result is not needed any more: the operation is undone as soon as it has ended."""
        ...


class PendingChange(Protocol):
    """A change that all attempts of a write share: made once, and settled or undone when the write ends."""

    def close(self) -> None:
        """The write has ended. Never raises."""
        ...


class StillWaiting(Exception):
    """A file system did not respond while the write held locks: roll back, wait, and run again.

    Raised for `run_write`; work must not catch it.
    """

    def __init__(self, answer: Answer, timeout_s: float) -> None:
        super().__init__("a file system does not answer soon; the write is to be run again without its locks")
        self._answer = answer
        self._timeout_s = timeout_s

    def wait(self) -> None:
        """Waits for the result up to its time limit. The next attempt gets the result or the error."""
        self._answer.wait(self._timeout_s)


class FileWaits:
    """The slow operations of one write, over all its attempts. Belongs to the write's thread."""

    def __init__(self) -> None:
        self.holds_locks = False
        self.has_moved = False
        """Whether this attempt has moved a directory. The move is settled or undone when the attempt ends."""

        self._rounds = 0
        self._kept: dict[Hashable, Answer] = {}
        self._held: dict[Hashable, PendingChange] = {}
        self._given: dict[Hashable, Answer] = {}
        """Results of this attempt that did not take long."""

    def max_wait_s(self, first_s: float) -> float:
        """Maximum wait for one operation in this attempt: twice that of the previous one, so that the write eventually
        ends."""
        return float(first_s * 2**self._rounds)

    def keep(self, key: Hashable, answer: Answer) -> None:
        """Keeps the operation for the next attempt."""
        if answer.changes_files:
            self._kept.update(self._given)
        self._kept[key] = answer
        self._rounds += 1

    def kept(self, key: Hashable) -> Answer | None:
        """The operation of an earlier attempt, or None."""
        found = self._kept.get(key)
        if found is not None and found.changes_files:
            del self._kept[key]
        return found

    def given(self, key: Hashable, answer: Answer) -> None:
        """Records a result."""
        if not answer.changes_files:
            self._given[key] = answer

    def hold(self, key: Hashable, change: PendingChange) -> None:
        """Keeps a change for the next attempts that a rollback of this one does not undo."""
        self._held[key] = change

    def held(self, key: Hashable) -> PendingChange | None:
        """The change of an earlier attempt, or of this one."""
        return self._held.get(key)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Context for the part of an attempt that holds locks."""
        self._given.clear()
        self.has_moved = False
        self.holds_locks = True
        try:
            yield
        finally:
            self.holds_locks = False

    def close(self) -> None:
        """Undoes operations that were kept for an attempt that was not made."""
        for answer in self._kept.values():
            answer.give_up()
        self._kept.clear()
        for change in self._held.values():
            change.close()
        self._held.clear()


_current = threading.local()


def current_waits() -> FileWaits | None:
    """The waits of the write that this thread runs, or None."""
    found: FileWaits | None = getattr(_current, "waits", None)
    return found


@contextmanager
def waits_of_a_write() -> Iterator[FileWaits]:
    """Context for all attempts of one write."""
    before, waits = current_waits(), FileWaits()
    _current.waits = waits
    try:
        yield waits
    finally:
        _current.waits = before
        waits.close()
