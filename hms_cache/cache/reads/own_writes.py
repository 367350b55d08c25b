"""This server's own writes raise the floor of its reads (P4)."""

from __future__ import annotations

from hms_cache.cache.freshness import Freshness
from hms_cache.store.engine.events import EventRow


class OwnWrites:
    """Informed of every commit before its write is answered, by the writing thread. A `CommitListener` of the
    database."""

    def __init__(self, freshness: Freshness) -> None:
        self._freshness = freshness

    def committed(self, events: tuple[EventRow, ...], last_event_id: int | None) -> None:
        """No later read on this server, with any `max_staleness`, may show less than this write."""
        if last_event_id is not None:
            self._freshness.raise_floor(last_event_id)

    def outcome_unknown(self, events: tuple[EventRow, ...]) -> None:
        """The write may have been committed: the next read needs a position check."""
        self._freshness.require_check()
