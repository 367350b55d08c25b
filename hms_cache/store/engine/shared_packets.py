"""Combines calls of several kinds in one transaction whose statements share packets, for MySQL and MariaDB.

The calls of each kind are a `Part`. The first packet has the locking reads of all parts, the second their writes with
the ids of their events, the third the rows of the log and COMMIT. Any number of calls takes three round trips, or two
if nothing has to be locked first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from hms_cache.store.engine.direct_statements import Statement
from hms_cache.store.engine.work_units import WriteTransaction


class Part(Protocol):
    """Calls of one kind. The methods are called once each, in this order."""

    @property
    def further_events(self) -> int:
        """Number of events that `outcomes` appends."""
        ...

    def locking(self) -> Sequence[Statement]:
        """Statements that lock rows, and that read while these are locked."""
        ...

    def writing(self, found: Sequence[Any]) -> Sequence[Statement]:
        """Statements that write, given the results of `locking`. Here the part may execute further statements for calls
        that need them, and append events."""
        ...

    def outcomes(self, written: Sequence[Any]) -> Sequence[Any]:
        """The outcome of each call, given the results of `writing`. Executes nothing: event ids have been taken."""
        ...


def execute_parts(transaction: WriteTransaction, parts: Sequence[Part]) -> list[Sequence[Any]]:
    """The outcomes of each part. Locks are taken, and rows written, in the order of the parts.

    Without events the last packet includes COMMIT: executing calls without events twice does no harm.
    """
    found = _sent([part.locking() for part in parts], transaction.execute_directly)
    writing = [part.writing(answers) for part, answers in zip(parts, found, strict=True)]
    count = len(transaction.events) + sum(part.further_events for part in parts)
    execute: Callable[[Sequence[Statement]], list[Any]] = transaction.execute_and_commit
    if count:
        execute = partial(transaction.execute_and_allocate_event_ids, count=count)
    written = _sent(writing, execute)
    return [part.outcomes(answers) for part, answers in zip(parts, written, strict=True)]


def _sent(
    statements: Sequence[Sequence[Statement]], execute: Callable[[Sequence[Statement]], list[Any]]
) -> list[Sequence[Any]]:
    """Sends the statements of all parts as one packet; returns the results per part."""
    together = [one for of_part in statements for one in of_part]
    answers = execute(together) if together else []
    found: list[Sequence[Any]] = []
    start = 0
    for of_part in statements:
        found.append(answers[start : start + len(of_part)])
        start += len(of_part)
    return found
