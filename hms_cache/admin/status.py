"""The state of the server as values, for ``/status`` and ``/jsonmetrics``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hms_cache.admin.health import DatabaseProbe
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.metrics import quantile_s
from hms_cache.metrics.ports import PortState
from hms_cache.metrics.sharded import DURATION_BOUNDS_S
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.store.members.members import MemberRow
from hms_cache.values import frozen

#: Statuses that have another name in Impala, with which its administrators are familiar.
IMPALA_STATUS = {PollerStatus.NEEDS_RESYNC: "NEEDS_INVALIDATE"}


@frozen
class CallStatus:
    """Calls of one method. Times are those of decoded calls, None if there are none."""

    method: str
    count: int
    decoded: int
    """The other calls were answered without decoding, in microseconds, and are not timed."""
    mean_s: float | None
    p50_s: float | None
    p99_s: float | None


@frozen
class EventStatus:
    """The state of the poller."""

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


@frozen
class CacheStatus:
    """The contents of the cache, and how reads were answered."""

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
    """By the source of the answer: `hit`, `miss` (after a load), or the reason why the database answered."""
    hit_rate: float | None


@frozen
class MemberStatus:
    """A member of the set, as last read from the database."""

    member: str
    address: str
    is_self: bool
    connected: bool
    state: str
    """`lease`: it may have one; `revoked`: the rest of its lease is still valid; `no lease`: it writes, and uses the
    position check for reads; `fenced`: its writes do not commit before it has joined again."""
    lease_s: float


@frozen
class LeaseReason:
    """Why this server had no lease from this time on."""

    at_s: float
    """Seconds since 1970."""
    reason: str


@frozen
class LeaseStatus:
    """Exact reads by lease."""

    held: bool
    held_for_tables: bool
    """Whether the lease applies to reads of single tables that are not being written."""
    remaining_s: float
    open_writes: int
    alarm: str
    """Why reads use the position check permanently; empty: they do not."""
    next_lease_request_in_s: float
    """Seconds until it asks for another lease after a revocation; 0: it has one, or is asking."""
    waits: int
    revocations: int
    acknowledgements_given: int
    acknowledgements_received: int
    members: tuple[MemberStatus, ...]
    reasons: tuple[LeaseReason, ...]
    """The latest first."""


@frozen
class ServerStatus:
    """The whole state at one moment."""

    version: str
    uri: str
    worker: int
    """The index of this process among the workers, from 0."""
    workers: int
    uptime_s: float
    connections: int
    ports: tuple[PortState, ...]
    """Ports for clients, the main one first."""
    accepted_insecure: tuple[str, ...]
    """Requested protection that is not provided: keys of site files, parameters of the database's URL."""
    calls: tuple[CallStatus, ...]
    cache: CacheStatus
    events: EventStatus | None
    lease: LeaseStatus | None
    """None under `cache.exactness = check`."""

    def as_json(self) -> dict[str, Any]:
        """The reply of ``/status`` as plain values."""
        return asdict(self)


def server_status(sources: AdminSources, siblings: Siblings, probe: DatabaseProbe) -> ServerStatus:
    """The current status. Cheap: reads counters, holds no lock for long, does not wait for the database."""
    return ServerStatus(
        version=sources.version,
        uri=sources.uri,
        worker=siblings.own_index,
        workers=siblings.count,
        uptime_s=round(sources.clock.epoch_s() - sources.started_at_s, 3),
        connections=int(_sample(sources, "hms_cache_connections")),
        ports=sources.ports(),
        accepted_insecure=tuple(one.name for one in sources.configuration.accepted_insecure),
        calls=_calls(sources),
        cache=cache_status(sources),
        events=event_status(sources, probe),
        lease=lease_status(sources),
    )


def _sample(sources: AdminSources, name: str) -> float:
    return sources.metrics.registry.get_sample_value(name) or 0.0


def _calls(sources: AdminSources) -> tuple[CallStatus, ...]:
    counted: dict[str, int] = {}
    for (method, _outcome), count in sources.metrics.server.calls.values().items():
        counted[method] = counted.get(method, 0) + int(count)
    timed = sources.metrics.server.call_duration.totals()
    found = []
    for method, count in counted.items():
        counts, sum_s = timed.get((method,), ([], 0.0))
        decoded = sum(counts)
        times = (sum_s / decoded, *_quantiles_s(counts)) if decoded else (None, None, None)
        found.append(CallStatus(method, max(count, decoded), decoded, *times))
    return tuple(sorted(found, key=lambda call: (-call.count, call.method)))


def _quantiles_s(counts: Sequence[int]) -> tuple[float, float]:
    """Median and 99th percentile as upper bounds of their buckets; the highest bound represents all higher values."""
    highest_s = DURATION_BOUNDS_S[-1]
    return min(quantile_s(counts, 0.5), highest_s), min(quantile_s(counts, 0.99), highest_s)


def cache_status(sources: AdminSources) -> CacheStatus:
    """The current contents of the cache, and how reads were answered since the start."""
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
        position_checks=int(sources.metrics.cache.checks.value()),
        reads=dict(sorted(reads.items())),
        hit_rate=round(reads.get("hit", 0) / total, 4) if total else None,
    )


def lease_status(sources: AdminSources) -> LeaseStatus | None:
    """This server's lease and the members of its set; None without leases."""
    membership = sources.membership
    if membership is None:
        return None
    view, connected = membership.state.view(), set(membership.transport.connected())
    return LeaseStatus(
        held=sources.cache is not None and sources.cache.freshness.holds_lease(),
        held_for_tables=view.answers_other_tables,
        remaining_s=round(view.lease_remaining_s, 3),
        open_writes=view.intents,
        alarm=view.alarm,
        next_lease_request_in_s=round(membership.next_lease_request_in_s, 3),
        waits=membership.writes.waits,
        revocations=membership.writes.revocations.count,
        acknowledgements_given=membership.acknowledgements,
        acknowledgements_received=membership.writes.acknowledgements,
        members=tuple(
            MemberStatus(
                row.member,
                row.address,
                row.member == membership.member,
                row.member in connected,
                _state_of(row),
                row.lease_ms / 1000,
            )
            for row in membership.rows
        ),
        reasons=tuple(LeaseReason(at_s, reason) for at_s, reason in reversed(membership.reasons.copy())),
    )


def _state_of(row: MemberRow) -> str:
    if row.is_fenced:
        return "fenced"
    if not row.lease_ms:
        return "no lease"
    return "revoked" if row.is_revoked else "lease"


def last_log_end(sources: AdminSources, probe: DatabaseProbe) -> int:
    """The last event's id, as far as the poller or the probe knows it; the probe continues if the poller stops."""
    return max(sources.poller.statistics().head_event_id if sources.poller is not None else 0, probe.log_end)


def event_status(sources: AdminSources, probe: DatabaseProbe) -> EventStatus | None:
    """The state of the poller; None without a cache. If the poller does not run, the log's end is that of the probe."""
    if sources.poller is None:
        return None
    probe.last_error()
    report, numbers = sources.poller.status_report(), sources.poller.statistics()
    log_end = last_log_end(sources, probe)
    age_s = numbers.seconds_since_current
    return EventStatus(
        status=report.status.value,
        reason=report.reason,
        since_s=report.since_s,
        position=numbers.position,
        log_end=log_end,
        lag=max(0, log_end - numbers.position),
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


def impala_metrics(sources: AdminSources, probe: DatabaseProbe) -> dict[str, float | int | str]:
    """The event processor's metrics, with the names in Impala's documentation."""
    if sources.poller is None:
        return {"events-processor.status": PollerStatus.DISABLED.value}
    events = event_status(sources, probe)
    assert events is not None
    report, numbers = sources.poller.status_report(), sources.poller.statistics()
    # In Impala's documentation, the first is the time to fetch and to process a batch.
    batch, apply = numbers.batch_durations, numbers.apply_durations
    return {
        "events-processor.status": IMPALA_STATUS.get(report.status, report.status.value),
        "events-processor.events-received": numbers.received,
        "events-processor.events-skipped": sum(numbers.skipped.values()),
        "events-processor.events-received-1min-rate": numbers.rate_1_minute,
        "events-processor.events-received-5min-rate": numbers.rate_5_minutes,
        "events-processor.events-received-15min-rate": numbers.rate_15_minutes,
        "events-processor.avg-events-fetch-duration": batch.mean_s,
        "events-processor.avg-events-process-duration": apply.mean_s,
        "events-processor.last-synced-event-id": numbers.position,
        "events-processor.latest-event-id": events.log_end,
        "events-processor.pending-events": events.lag,
    }
