"""``/events``: how this server follows the notification log."""

from __future__ import annotations

from hms_cache.admin.history import Sample
from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.status import EventStatus, event_status
from hms_cache.notifications.poller_statistics import Durations
from hms_cache.values import frozen


@frozen
class DurationSummary:
    """In seconds; quantiles of the last thousand runs."""

    runs: int
    min_s: float
    mean_s: float
    median_s: float
    p95_s: float
    p99_s: float
    max_s: float
    last_s: float


@frozen
class BatchNow:
    """Events that are being applied."""

    first_event_id: int
    last_event_id: int
    events: int
    began_at_s: float


@frozen
class FailedEvent:
    """An event that could not be understood or applied; what it may concern was dropped."""

    event_id: int
    event_type: str
    subject: str
    reason: str
    at_s: float


@frozen
class Events:
    """The page; without a cache, ``off_reason`` says why there is nothing to show."""

    enabled: bool
    off_reason: str
    status: EventStatus | None
    database_error: str | None
    """Why the end of the log cannot be read now; None: it can."""
    fetch_failures: int
    consecutive_fetch_failures: int
    fetch: DurationSummary | None
    apply: DurationSummary | None
    current_batch: BatchNow | None
    newest_event_delay_s: float
    """Between the last applied event's own time and its application, by two machines' clocks."""
    last_errors: tuple[FailedEvent, ...]
    """The latest first."""
    history: tuple[Sample, ...]


def events(context: PageContext) -> Events:
    """As of now; waits for the probe of the database, a few seconds at most."""
    poller = context.sources.poller
    error = context.probe.error()
    if poller is None:
        reason = context.sources.cache_off_reason
        return Events(False, reason, None, error, 0, 0, None, None, None, 0.0, (), context.history.samples())
    numbers = poller.statistics()
    batch = numbers.current_batch
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
        fetch=_summary(numbers.fetch_durations),
        apply=_summary(numbers.apply_durations),
        current_batch=BatchNow(*batch) if batch is not None else None,
        newest_event_delay_s=numbers.newest_event_delay_s,
        last_errors=failures,
        history=context.history.samples(),
    )


def _summary(found: Durations) -> DurationSummary:
    return DurationSummary(
        runs=found.runs,
        min_s=found.shortest_s,
        mean_s=found.mean_s,
        median_s=found.median_s,
        p95_s=found.p95_s,
        p99_s=found.p99_s,
        max_s=found.longest_s,
        last_s=found.last_s,
    )
