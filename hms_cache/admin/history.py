"""Samples of the last hour, for charts without an external monitoring system."""

from __future__ import annotations

import threading
from collections import deque

from hms_cache.admin.health import DatabaseProbe
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.status import last_log_end
from hms_cache.metrics import quantile_s
from hms_cache.metrics.sharded import DURATION_BOUNDS_S
from hms_cache.values import frozen

SAMPLE_INTERVAL_S = 10.0

#: An hour: about 100 KB.
KEPT_SAMPLES = 360


@frozen
class Sample:
    """Values of one interval. ``hit_rate`` is None without reads, and ``p99_s`` without decoded calls."""

    at_s: float
    calls_per_s: float
    hit_rate: float | None
    p99_s: float | None
    cache_bytes: int
    resident_bytes: int
    events_per_s: float
    lag: int


@frozen
class _Totals:
    at_s: float
    calls: float
    reads: float
    hits: float
    durations: tuple[int, ...]
    events: float


class History:
    """The samples, the oldest first. ``_lock`` guards them; the totals belong to the sampling thread."""

    def __init__(self, sources: AdminSources, probe: DatabaseProbe) -> None:
        self._sources = sources
        self._probe = probe
        self._lock = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)
        self._before = _totals(sources)

    def sample(self) -> None:
        """Takes a sample. To be called every :data:`SAMPLE_INTERVAL_S` by one thread. Waits for the probe, up to some
        seconds."""
        self._probe.error()
        before, now = self._before, _totals(self._sources)
        self._before = now
        seconds = max(now.at_s - before.at_s, 0.001)
        reads = now.reads - before.reads
        old = before.durations or (0,) * len(now.durations)
        counts = [new - earlier for new, earlier in zip(now.durations, old, strict=True)]
        poller, cache = self._sources.poller, self._sources.cache
        p99_s = quantile_s(counts, 0.99) if sum(counts) > 0 else None
        sample = Sample(
            at_s=self._sources.clock.epoch_s(),
            calls_per_s=max(0.0, now.calls - before.calls) / seconds,
            hit_rate=(now.hits - before.hits) / reads if reads > 0 else None,
            p99_s=None if p99_s == float("inf") else p99_s,
            cache_bytes=cache.shared.weight if cache is not None else 0,
            resident_bytes=resident_bytes(self._sources),
            events_per_s=max(0.0, now.events - before.events) / seconds,
            lag=max(0, last_log_end(self._sources, self._probe) - poller.statistics().position) if poller else 0,
        )
        with self._lock:
            self._samples.append(sample)

    def samples(self) -> tuple[Sample, ...]:
        """The kept samples."""
        with self._lock:
            return tuple(self._samples)


def resident_bytes(sources: AdminSources) -> int:
    """Resident memory of this process; 0 if the system does not tell."""
    return int(sources.metrics.registry.get_sample_value("process_resident_memory_bytes") or 0)


def _totals(sources: AdminSources) -> _Totals:
    reads = sources.metrics.cache.reads.values()
    durations: list[int] = []
    for counts, _ in sources.metrics.server.call_duration.totals().values():
        durations = [one + other for one, other in zip(durations or [0] * len(counts), counts, strict=True)]
    return _Totals(
        at_s=sources.clock.monotonic_s(),
        calls=sum(sources.metrics.server.calls.values().values()),
        reads=sum(reads.values()),
        hits=sum(count for (_, outcome), count in reads.items() if outcome == "hit"),
        durations=tuple(durations) or (0,) * (len(DURATION_BOUNDS_S) + 1),
        events=sources.metrics.events.received.value(),
    )
