"""Events on their way into the notification log, and who hears of commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Connection

from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.direct_statements import Statement

__all__ = ["AnnouncedWrite", "CommitListener", "EventRow", "WriteGuard"]


class CommitListener(Protocol):
    """Who wants to know of this server's own commits. Called by the writing thread, before the write returns."""

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        """The write is in the database; its events end at ``last_event_id`` (None: it had none)."""
        ...

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        """The connection broke during COMMIT: these events may exist, or not."""
        ...


class AnnouncedWrite(Protocol):
    """A write that others were told of. Called by the writing thread; after one end the other ends do nothing."""

    def statements_under_lock(self, connection: Connection) -> Sequence[Statement]:
        """What `before_commit` wants to know, for the packet that takes the lock of NOTIFICATION_SEQUENCE: executed
        after it, in the write's transaction on this connection. On MySQL and MariaDB."""
        ...

    def before_commit(self, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """In the write's transaction, under the lock of NOTIFICATION_SEQUENCE; nothing but rows of the log is written
        after it, with COMMIT.

        :param answers: to `statements_under_lock`, if they were executed.
        :raises RetryableConflict: the transaction must not be committed; it may be run again.
        """
        ...

    def committed(self, first: int, last: int) -> None:
        """It is in the database, with the events from ``first`` to ``last``."""
        ...

    def abandoned(self) -> None:
        """It was rolled back."""
        ...

    def outcome_unknown(self) -> None:
        """The connection broke during COMMIT."""
        ...


class WriteGuard(Protocol):
    """Who has to agree before a write commits whose events may change what is answered from memory."""

    is_acknowledged: bool
    """Whether others acknowledge each write, and answer fewer reads from memory until it ends: then it is announced,
    and takes the lock of NOTIFICATION_SEQUENCE, as late as can be."""

    def ready(self) -> None:
        """Before each write, with no connection taken: waits until writes can be announced.

        :raises DatabaseUnavailable: not in time.
        """
        ...

    def announces(self, events: Sequence[EventRow]) -> bool:
        """Whether `begin` is to be called for a write with these events. False for none."""
        ...

    def begin(self, events: Sequence[EventRow]) -> AnnouncedWrite:
        """A write comes to its events, which are all that it will have: they are written next. Does not wait.

        :raises RetryableConflict: it has to be run again.
        """
        ...
