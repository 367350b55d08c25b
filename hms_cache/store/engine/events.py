"""Events on their way into the notification log, and who hears of commits."""

from __future__ import annotations

from typing import Protocol

from hms_cache.notifications.events import EventRow

__all__ = ["CommitListener", "EventRow"]


class CommitListener(Protocol):
    """Who wants to know of this server's own commits. Called by the writing thread, before the write returns."""

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        """The write is in the database; its events end at ``last_event_id`` (None: it had none)."""
        ...

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        """The connection broke during COMMIT: these events may exist, or not."""
        ...
