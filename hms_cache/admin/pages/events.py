"""``/events``: the state of the poller."""

from __future__ import annotations

from hms_cache.admin.history import Sample
from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.status import EventStatus, event_status
from hms_cache.notifications.poller_statistics import Batch, Durations
from hms_cache.values import frozen


@frozen
class FailedEvent:
    """An event that could not be decoded or applied; everything that it may concern was dropped."""

    event_id: int
    event_type: str
    subject: str
    reason: str
    at_s: float


@frozen
class Events:
    """The page. Without a cache, ``off_reason`` is the reason."""

    enabled: bool
    off_reason: str
    status: EventStatus | None
    database_error: str | None
    """Why the end of the log cannot be read now; None if it can."""
    fetch_failures: int
    consecutive_fetch_failures: int
    fetch: Durations | None
    apply: Durations | None
    current_batch: Batch | None
    newest_event_delay_s: float
    """Time between the last applied event's own time and its application, by the clocks of two machines."""
    last_errors: tuple[FailedEvent, ...]
    """The latest first."""
    history: tuple[Sample, ...]


def events(context: PageContext) -> Events:
    """The page with the current state. Waits for the probe of the database, at most a few seconds."""
    poller = context.sources.poller
    error = context.probe.error()
    if poller is None:
        reason = context.sources.cache_off_reason
        return Events(False, reason, None, error, 0, 0, None, None, None, 0.0, (), context.history.samples())
    numbers = poller.statistics()
    failures = tuple(
        FailedEvent(
            failure.header.event_id,
            failure.header.event_type,
            ".".join(part for part in (failure.header.catalog, failure.header.database, failure.header.table) if part),
            failure.reason,
            failure.at_s,
        )
        for failure in reversed(numbers.failures)
    )
    return Events(
        enabled=True,
        off_reason="",
        status=event_status(context.sources, context.probe),
        database_error=error,
        fetch_failures=numbers.fetch_failures,
        consecutive_fetch_failures=numbers.consecutive_fetch_failures,
        fetch=numbers.fetch_durations,
        apply=numbers.apply_durations,
        current_batch=numbers.current_batch,
        newest_event_delay_s=numbers.newest_event_delay_s,
        last_errors=failures,
        history=context.history.samples(),
    )
