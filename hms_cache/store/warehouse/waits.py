"""How long a write waits for a file system: not long while it holds locks of the database.

A write asks its file systems as it goes. One that does not answer soon would keep the write's locks, on SQLite those of
all writers. So a question that takes longer than `patience_s` is left to its thread, and `StillWaiting` ends the
attempt: the transaction is rolled back, the answer is waited for without any lock, and the write is run again and finds
the answer. The transaction decides anew by what the database holds then; only the file system is not asked twice.
When what was left is a change, the answers before it are kept with it: asked again, they would tell of that change.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

MOVE_WAITS = 4
"""How many times the usual wait a rename on this machine may take, and what is asked after it, while a write holds
locks: these cannot be left to the next attempt, as the row of what is renamed must stay locked meanwhile."""


class Answer(Protocol):
    """What a thread finds out or does, see `deadlines.FileThreads`."""

    changes_files: bool
    """Whether it made something, which the write has to undo if it fails: then it is given out once."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it is there within the time."""
        ...

    def give_up(self) -> None:
        """Nobody asks for it any more: what it changed is undone, as soon as it is done."""
        ...


class Held(Protocol):
    """A change that all attempts of a write share: made once, and settled or undone when the write has ended."""

    def close(self) -> None:
        """The write has ended; never raises."""
        ...


class StillWaiting(Exception):
    """A file system has not answered while the write held locks: to be rolled back, waited for, and run again.

    Meant for `run_write`: work lets it pass.
    """

    def __init__(self, answer: Answer, timeout_s: float) -> None:
        super().__init__("a file system does not answer soon; the write is to be run again without its locks")
        self._answer = answer
        self._timeout_s = timeout_s

    def wait(self) -> None:
        """Waits for the answer, up to its time limit. The next attempt finds it, or the error."""
        self._answer.wait(self._timeout_s)


class FileWaits:
    """The questions of one write that took long, over its attempts. Belongs to the write's thread."""

    def __init__(self) -> None:
        self.holds_locks = False
        self.has_moved = False
        """Whether this attempt has moved a directory: it ends with this attempt, one way or the other."""

        self._rounds = 0
        self._kept: dict[Hashable, Answer] = {}
        self._held: dict[Hashable, Held] = {}
        self._given: dict[Hashable, Answer] = {}
        """What this attempt has found out, without waiting long."""

    def patience_s(self, first_s: float) -> float:
        """How long this attempt waits for one answer: twice as long as the one before, so that it comes to an end."""
        return float(first_s * 2**self._rounds)

    def keep(self, question: Hashable, answer: Answer) -> None:
        """Has the next attempt find it."""
        if answer.changes_files:
            self._kept.update(self._given)
        self._kept[question] = answer
        self._rounds += 1

    def kept(self, question: Hashable) -> Answer | None:
        """What an earlier attempt asked."""
        found = self._kept.get(question)
        if found is not None and found.changes_files:
            del self._kept[question]
        return found

    def given(self, question: Hashable, answer: Answer) -> None:
        """Notes what was found out."""
        if not answer.changes_files:
            self._given[question] = answer

    def hold(self, question: Hashable, change: Held) -> None:
        """Has the next attempts find a change that a rollback of this one leaves."""
        self._held[question] = change

    def held(self, question: Hashable) -> Held | None:
        """What an earlier attempt, or this one, has changed."""
        return self._held.get(question)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Around the part of an attempt that holds locks."""
        self._given.clear()
        self.has_moved = False
        self.holds_locks = True
        try:
            yield
        finally:
            self.holds_locks = False

    def close(self) -> None:
        """Undoes what was done for an attempt that did not come."""
        for answer in self._kept.values():
            answer.give_up()
        self._kept.clear()
        for change in self._held.values():
            change.close()
        self._held.clear()


_current = threading.local()


def current_waits() -> FileWaits | None:
    """Those of the write that this thread runs."""
    found: FileWaits | None = getattr(_current, "waits", None)
    return found


@contextmanager
def waits_of_a_write() -> Iterator[FileWaits]:
    """Around all attempts of one write."""
    before, waits = current_waits(), FileWaits()
    _current.waits = waits
    try:
        yield waits
    finally:
        _current.waits = before
        waits.close()
