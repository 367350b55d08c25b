"""Events on their way into the notification log, and who hears of commits."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from hms_cache.notifications.events import EventRow

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

    def before_commit(self, connection: Connection) -> None:
        """The last before COMMIT, in the write's transaction, under the lock of NOTIFICATION_SEQUENCE.

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
    """Who has to agree before a write that logs events commits."""

    def ready(self) -> None:
        """Before each write, with no connection taken: waits until writes can be announced.

        :raises DatabaseUnavailable: not in time.
        """
        ...

    def begin(self) -> AnnouncedWrite:
        """A write comes to its events: they are written next. Does not wait.

        :raises RetryableConflict: it has to be run again.
        """
        ...
