"""Calls of several kinds in one transaction whose statements share packets, for MySQL and MariaDB.

Of each kind the calls are a `Part`. The first packet has what locks and reads for all of them, the second what they
write, with the ids of their events, and the third the rows of the log and COMMIT: however many calls there are, three
round trips, and two where nothing is to be locked before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from hms_cache.store.engine.direct_statements import Statement
from hms_cache.store.engine.work_units import WriteTransaction


class Part(Protocol):
    """Calls of one kind. Its methods are called once each, in this order."""

    @property
    def further_events(self) -> int:
        """How many events `outcomes` appends."""
        ...

    def locking(self) -> Sequence[Statement]:
        """What is locked, and read under these locks."""
        ...

    def writing(self, found: Sequence[Any]) -> Sequence[Statement]:
        """What is written, given what was answered to `locking`. Here the part may execute statements of its own,
        for calls that need more, and append events."""
        ...

    def outcomes(self, written: Sequence[Any]) -> Sequence[Any]:
        """Of each call, given what was answered to `writing`. Executes nothing: the ids of events are taken."""
        ...


def carry_out_parts(transaction: WriteTransaction, parts: Sequence[Part]) -> list[Sequence[Any]]:
    """The outcomes of each part. Their locks are taken in the order of the parts, and what they write is written so.

    Without events the last packet has COMMIT, too: calls without events do no harm if they are carried out twice.
    """
    found = _sent([part.locking() for part in parts], transaction.execute_directly)
    writing = [part.writing(answers) for part, answers in zip(parts, found, strict=True)]
    count = len(transaction.events) + sum(part.further_events for part in parts)
    execute: Callable[[Sequence[Statement]], list[Any]] = transaction.execute_and_commit
    if count:
        execute = partial(transaction.execute_and_take_event_ids, count=count)
    written = _sent(writing, execute)
    return [part.outcomes(answers) for part, answers in zip(parts, written, strict=True)]


def _sent(
    statements: Sequence[Sequence[Statement]], execute: Callable[[Sequence[Statement]], list[Any]]
) -> list[Sequence[Any]]:
    """Those of all parts as one packet; what was answered to those of each."""
    together = [one for of_part in statements for one in of_part]
    answers = execute(together) if together else []
    found: list[Sequence[Any]] = []
    start = 0
    for of_part in statements:
        found.append(answers[start : start + len(of_part)])
        start += len(of_part)
    return found
