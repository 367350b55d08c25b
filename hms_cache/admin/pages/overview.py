"""``/``: hit rate by reason, calls, latency, memory."""

from __future__ import annotations

import math

from hms_cache.admin.health import readiness
from hms_cache.admin.history import Sample, resident_bytes
from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.status import CacheStatus, CallStatus, ServerStatus, server_status
from hms_cache.cache.reads.reasons import Reason
from hms_cache.metrics import quantile_s
from hms_cache.values import frozen

MAX_METHODS = 30

MEANINGS = {
    Reason.HIT: "answered from memory",
    Reason.MISS: "answered from memory after a load",
    Reason.BEHIND_EVENTS: "events could not be applied in time: paused, in error, or too slow",
    Reason.STALE_WRITE_IDS: "the request's write ids are newer than those in memory",
    Reason.WRONG_TABLE_ID: "the request names another table id than the one in memory",
    Reason.NOT_CACHED: "partitions of a large table that are not in memory, names of a large database that change all"
    " the time, or a client that does not load into memory",
    Reason.INCOMPLETE: "what is needed changed while it was loaded, or is too large",
    Reason.EXCLUDED: "excluded from the cache by settings, properties or kind",
    Reason.UNSUPPORTED_FIELD: "the request asks for something that is not cached",
    Reason.CORRUPT: "the entry could not be read; it was dropped",
    Reason.DISABLED: "the cache is switched off",
}


@frozen
class OutcomeShare:
    """Number of reads with this outcome."""

    outcome: str
    meaning: str
    reads: int
    share: float


@frozen
class Latency:
    """Latency of all decoded calls since the start: upper bounds of the histogram's buckets; None without calls."""

    mean_s: float | None
    p50_s: float | None
    p99_s: float | None


@frozen
class Overview:
    """The page."""

    ready: bool
    readiness: str
    server: ServerStatus
    outcomes: tuple[OutcomeShare, ...]
    latency: Latency
    calls: int
    calls_per_s: float | None
    """In the last sampling interval."""
    calls_in_flight: int
    resident_bytes: int
    history: tuple[Sample, ...]

    @property
    def cache(self) -> CacheStatus:
        """Shortcut for the template."""
        return self.server.cache

    @property
    def methods(self) -> tuple[CallStatus, ...]:
        """The methods with the most calls."""
        return self.server.calls[:MAX_METHODS]


def overview(context: PageContext) -> Overview:
    """The page with the current state."""
    sources = context.sources
    ready = readiness(sources, context.probe)
    status = server_status(sources, context.siblings, context.probe)
    total = sum(status.cache.reads.values())
    outcomes = tuple(
        OutcomeShare(outcome, MEANINGS.get(Reason(outcome), ""), count, count / total if total else 0.0)
        for outcome, count in sorted(status.cache.reads.items(), key=lambda one: -one[1])
    )
    samples = context.history.samples()
    return Overview(
        ready=ready.ready,
        readiness=ready.text,
        server=status,
        outcomes=outcomes,
        latency=_latency(context),
        calls=int(sum(sources.metrics.server.calls.values().values())),
        calls_per_s=samples[-1].calls_per_s if samples else None,
        calls_in_flight=int(sources.metrics.registry.get_sample_value("hms_cache_calls_in_flight") or 0),
        resident_bytes=resident_bytes(sources),
        history=samples,
    )


def _latency(context: PageContext) -> Latency:
    totals = list(context.sources.metrics.server.call_duration.totals().values())
    merged = [sum(column) for column in zip(*(counts for counts, _ in totals), strict=True)]
    count = sum(merged)
    if not count:
        return Latency(None, None, None)
    p50_s, p99_s = quantile_s(merged, 0.5), quantile_s(merged, 0.99)
    return Latency(
        sum(sum_s for _, sum_s in totals) / count,
        None if math.isinf(p50_s) else p50_s,
        None if math.isinf(p99_s) else p99_s,
    )
