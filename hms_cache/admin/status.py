"""The state of the server as values, for ``/status`` and ``/jsonmetrics``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.metrics import quantile_s
from hms_cache.notifications.poller_status import PollerStatus

#: Our names of the statuses in Impala's words, under which its administrators know them.
IMPALA_STATUS = {PollerStatus.NEEDS_RESYNC: "NEEDS_INVALIDATE"}


@dataclass(frozen=True, slots=True)
class CallStatus:
    """Calls of one method."""

    method: str
    count: int
    mean_s: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class EventStatus:
    """How this server follows the notification log."""

    status: str
    reason: str
    since_s: float
    position: int
    log_end: int
    lag: int
    seconds_since_current: float | None
    received: int
    applied: int
    skipped: Mapping[str, int]
    failed: int
    resyncs: int
    last_fetch_error: str
    received_per_s_1min: float
    received_per_s_5min: float
    received_per_s_15min: float


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """What is held, and how reads were answered."""

    enabled: bool
    off_reason: str
    tables: int
    databases: int
    bytes: int
    budget_bytes: int
    evictions: int
    loads: int
    position_checks: int
    reads: Mapping[str, int]
    hit_rate: float | None


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Everything, at one moment."""

    version: str
    uri: str
    worker: int
    """Which of the server's processes this is, from 0."""
    workers: int
    uptime_s: float
    connections: int
    calls: tuple[CallStatus, ...]
    cache: CacheStatus
    events: EventStatus | None

    def as_json(self) -> dict[str, Any]:
        """Plain values: what ``/status`` answers."""
        return asdict(self)


def server_status(sources: AdminSources, siblings: Siblings) -> ServerStatus:
    """The status now. Cheap: reads counters, takes no lock for long, asks no database."""
    return ServerStatus(
        version=sources.version,
        uri=sources.uri,
        worker=siblings.own_index,
        workers=siblings.count,
        uptime_s=round(sources.clock.epoch_s() - sources.started_at_s, 3),
        connections=int(_sample(sources, "hms_cache_connections")),
        calls=_calls(sources),
        cache=_cache(sources),
        events=_events(sources),
    )


def _sample(sources: AdminSources, name: str) -> float:
    return sources.metrics.registry.get_sample_value(name) or 0.0


def _calls(sources: AdminSources) -> tuple[CallStatus, ...]:
    found = []
    for (method,), (counts, sum_s) in sources.metrics.server.call_duration.totals().items():
        count = sum(counts)
        if count:
            found.append(CallStatus(method, count, sum_s / count, quantile_s(counts, 0.5), quantile_s(counts, 0.99)))
    return tuple(sorted(found, key=lambda call: (-call.count, call.method)))


def _cache(sources: AdminSources) -> CacheStatus:
    reads: dict[str, int] = {}
    for (_kind, outcome), count in sources.metrics.cache.reads.values().items():
        reads[outcome] = reads.get(outcome, 0) + int(count)
    total = sum(reads.values())
    cache = sources.cache
    return CacheStatus(
        enabled=cache is not None,
        off_reason=sources.cache_off_reason,
        tables=len(cache.shared.tables) if cache else 0,
        databases=len(cache.shared.databases) if cache else 0,
        bytes=cache.shared.weight if cache else 0,
        budget_bytes=cache.shared.budget_bytes if cache else 0,
        evictions=cache.shared.evictions if cache else 0,
        loads=cache.loader.loads if cache else 0,
        position_checks=cache.check.checks if cache else 0,
        reads=dict(sorted(reads.items())),
        hit_rate=round(reads.get("hit", 0) / total, 4) if total else None,
    )


def _events(sources: AdminSources) -> EventStatus | None:
    if sources.poller is None:
        return None
    report, numbers = sources.poller.status_report(), sources.poller.statistics()
    age_s = numbers.seconds_since_current
    return EventStatus(
        status=report.status.value,
        reason=report.reason,
        since_s=report.since_s,
        position=numbers.position,
        log_end=numbers.head_event_id,
        lag=numbers.pending_events,
        seconds_since_current=None if math.isinf(age_s) else round(age_s, 3),
        received=numbers.received,
        applied=numbers.applied,
        skipped=dict(sorted(numbers.skipped.items())),
        failed=numbers.failed,
        resyncs=numbers.resyncs,
        last_fetch_error=numbers.last_fetch_error,
        received_per_s_1min=numbers.rate_1_minute,
        received_per_s_5min=numbers.rate_5_minutes,
        received_per_s_15min=numbers.rate_15_minutes,
    )


def impala_metrics(sources: AdminSources) -> dict[str, float | int | str]:
    """The event processor's metrics under the names that Impala's documentation gives them."""
    if sources.poller is None:
        return {"events-processor.status": PollerStatus.DISABLED.value}
    report, numbers = sources.poller.status_report(), sources.poller.statistics()
    fetch, apply = numbers.fetch_durations, numbers.apply_durations
    return {
        "events-processor.status": IMPALA_STATUS.get(report.status, report.status.value),
        "events-processor.events-received": numbers.received,
        "events-processor.events-skipped": sum(numbers.skipped.values()),
        "events-processor.events-received-1min-rate": numbers.rate_1_minute,
        "events-processor.events-received-5min-rate": numbers.rate_5_minutes,
        "events-processor.events-received-15min-rate": numbers.rate_15_minutes,
        "events-processor.avg-events-fetch-duration": fetch.total_s / fetch.runs if fetch.runs else 0.0,
        "events-processor.avg-events-process-duration": apply.total_s / apply.runs if apply.runs else 0.0,
        "events-processor.last-synced-event-id": numbers.position,
        "events-processor.latest-event-id": numbers.head_event_id,
        "events-processor.pending-events": numbers.pending_events,
    }
