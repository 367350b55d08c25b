"""Events on their way into the notification log, and who hears of commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of NOTIFICATION_LOG, but for its ids and time, which the commit gives it.

    Names are lower-case; None where Hive writes none (``table`` of a database event, all three of ``OPEN_TXN``).
    ``message`` is encoded as ``message_format`` says (``json-0.2`` or ``gzip(json-2.0)``).
    """

    event_type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str
    message_format: str


class CommitListener(Protocol):
    """Who wants to know of this server's own commits. Called by the writing thread, before the write returns."""

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        """The write is in the database; its events end at ``last_event_id`` (None: it had none)."""
        ...

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        """The connection broke during COMMIT: these events may exist, or not."""
        ...
