"""Interfaces for events that are about to be logged, and for observers of commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Connection

from hms_cache.notifications.events import EventRow
from hms_cache.store.engine.direct_statements import Statement

__all__ = ["AnnouncedWrite", "CommitListener", "EventRow", "WriteGuard"]


class CommitListener(Protocol):
    """Observes this server's own commits. Called by the writing thread, before the write returns."""

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        """The write is committed; its last event is ``last_event_id`` (None: it logged none)."""
        ...

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        """The connection broke during COMMIT: these events may or may not exist."""
        ...


class AnnouncedWrite(Protocol):
    """A write that was announced to others. Called by the writing thread. After one of the three outcomes, further ones
    have no effect."""

    def statements_under_lock(self, connection: Connection) -> Sequence[Statement]:
        """Statements whose results `before_commit` needs, sent in the packet that locks NOTIFICATION_SEQUENCE: executed
        after it, in the write's transaction on this connection. On MySQL and MariaDB."""
        ...

    def before_commit(self, connection: Connection, answers: Sequence[Any] | None = None) -> None:
        """Called in the write's transaction while NOTIFICATION_SEQUENCE is locked. After it, only rows of the log are
        written, and COMMIT.

        :param answers: results of `statements_under_lock`, if they were executed.
        :raises RetryableConflict: the transaction must not be committed; it may be run again.
        """
        ...

    def committed(self, first: int, last: int) -> None:
        """The write is committed, with the events from ``first`` to ``last``."""
        ...

    def abandoned(self) -> None:
        """The write was rolled back."""
        ...

    def outcome_unknown(self) -> None:
        """The connection broke during COMMIT."""
        ...


class WriteGuard(Protocol):
    """Must agree before a write commits whose events may change what memory answers."""

    is_acknowledged: bool
    """Whether others acknowledge each write, and answer fewer reads from memory until it ends. If so, writes are
    announced, and take the lock of NOTIFICATION_SEQUENCE, as late as possible."""

    def ready(self) -> None:
        """Called before each write, without a connection: waits until writes can be announced.

        :raises DatabaseUnavailable: this took too long.
        """
        ...

    def announces(self, events: Sequence[EventRow]) -> bool:
        """Whether `begin` has to be called for a write with these events. False without events."""
        ...

    def begin(self, events: Sequence[EventRow]) -> AnnouncedWrite:
        """Announces a write that is about to log these events, which are all of its events. Does not wait.

        :raises RetryableConflict: it has to be run again.
        """
        ...
