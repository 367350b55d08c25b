"""A poller's counters as plain values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hms_cache.clock import Clock
from hms_cache.notifications.events import EventHeader
from hms_cache.values import frozen

_TICK_S = 5.0
# Number of the last failed events that are kept with their reasons, for a page; their count is separate.
_REMEMBERED_FAILURES = 50
# Number of runs from which quantiles are computed: at one per second a quarter of an hour, 10 KB.
_REMEMBERED_DURATIONS = 1000


class MovingRate:
    """Events per second, exponentially weighted over a window as Unix load averages are (ticks of 5 s).

    Not thread-safe; the poller's lock guards it.
    """

    def __init__(self, window_s: float, clock: Clock) -> None:
        self._keep = math.exp(-_TICK_S / window_s)
        self._clock = clock
        self._ticked_at_s = clock.monotonic_s()
        self._counted = 0
        self._rate: float | None = None

    def add(self, count: int) -> None:
        self._tick()
        self._counted += count

    def per_second(self) -> float:
        """The rate at the last full tick; 0 before the first."""
        self._tick()
        return self._rate or 0.0

    def _tick(self) -> None:
        ticks = int((self._clock.monotonic_s() - self._ticked_at_s) / _TICK_S)
        if ticks <= 0:
            return
        self._ticked_at_s += ticks * _TICK_S
        now = self._counted / _TICK_S
        self._counted = 0
        self._rate = now if self._rate is None else self._rate * self._keep + now * (1 - self._keep)
        self._rate *= self._keep ** (ticks - 1)


@frozen
class Durations:
    """Durations of a kind of work in seconds: over all runs, and quantiles of the last thousand."""

    runs: int = 0
    min_s: float = 0.0
    mean_s: float = 0.0
    median_s: float = 0.0
    p95_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0
    last_s: float = 0.0


class RecordedDurations:
    """Collects `Durations`; exact over all runs except the quantiles. Guarded by the poller's lock."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_REMEMBERED_DURATIONS)
        self._runs = 0
        self._total_s = 0.0
        self._min_s = math.inf
        self._max_s = 0.0

    def add(self, seconds: float) -> None:
        """Adds one run."""
        self._last.append(seconds)
        self._runs += 1
        self._total_s += seconds
        self._min_s = min(self._min_s, seconds)
        self._max_s = max(self._max_s, seconds)

    def summary(self) -> Durations:
        """The current values."""
        if not self._last:
            return Durations()
        ordered = sorted(self._last)
        median_s, p95_s, p99_s = (ordered[math.ceil(len(ordered) * part) - 1] for part in (0.5, 0.95, 0.99))
        mean_s = self._total_s / self._runs
        return Durations(self._runs, self._min_s, mean_s, median_s, p95_s, p99_s, self._max_s, self._last[-1])


@frozen
class Batch:
    """The events that are being applied now."""

    first_event_id: int
    last_event_id: int
    events: int
    began_at_s: float
    """Epoch seconds."""


class EventFailure(NamedTuple):
    """An event that could not be decoded or applied, and how it was handled."""

    header: EventHeader
    reason: str
    at_s: float


class PollerStatistics(NamedTuple):
    """The values at one moment. Rates are received events per second over 1, 5 and 15 minutes."""

    position: int
    head_event_id: int
    pending_events: int
    seconds_since_current: float
    received: int
    applied: int
    skipped: Mapping[str, int]
    failed: int
    failures: tuple[EventFailure, ...]
    resyncs: int
    fetch_failures: int
    consecutive_fetch_failures: int
    last_fetch_error: str
    fetch_durations: Durations
    apply_durations: Durations
    batch_durations: Durations
    current_batch: Batch | None
    newest_event_delay_s: float
    rate_1_minute: float
    rate_5_minutes: float
    rate_15_minutes: float


@dataclass(slots=True)
class PollerCounters:
    """The data of ``PollerStatistics``; guarded by the poller's lock."""

    clock: Clock
    received: int = 0
    applied: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    failures: deque[EventFailure] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_FAILURES))
    resyncs: int = 0
    fetch_failures: int = 0
    consecutive_fetch_failures: int = 0
    last_fetch_error: str = ""
    fetch_durations: RecordedDurations = field(default_factory=RecordedDurations)
    apply_durations: RecordedDurations = field(default_factory=RecordedDurations)
    batch_durations: RecordedDurations = field(default_factory=RecordedDurations)
    """Durations of reading and applying a batch."""
    current_batch: Batch | None = None
    newest_event_delay_s: float = 0.0
    rates: tuple[MovingRate, MovingRate, MovingRate] = field(init=False)

    def __post_init__(self) -> None:
        self.rates = (MovingRate(60, self.clock), MovingRate(300, self.clock), MovingRate(900, self.clock))

    def snapshot(self, position: int, head_event_id: int, current_at_s: float | None) -> PollerStatistics:
        """``current_at_s``: monotonic time at which the poller was last known to be at the log's end, if ever."""
        age_s = math.inf if current_at_s is None else max(0.0, self.clock.monotonic_s() - current_at_s)
        return PollerStatistics(
            position=position,
            head_event_id=head_event_id,
            pending_events=max(0, head_event_id - position),
            seconds_since_current=age_s,
            received=self.received,
            applied=self.applied,
            skipped=dict(self.skipped),
            failed=self.failed,
            failures=tuple(self.failures),
            resyncs=self.resyncs,
            fetch_failures=self.fetch_failures,
            consecutive_fetch_failures=self.consecutive_fetch_failures,
            last_fetch_error=self.last_fetch_error,
            fetch_durations=self.fetch_durations.summary(),
            apply_durations=self.apply_durations.summary(),
            batch_durations=self.batch_durations.summary(),
            current_batch=self.current_batch,
            newest_event_delay_s=self.newest_event_delay_s,
            rate_1_minute=self.rates[0].per_second(),
            rate_5_minutes=self.rates[1].per_second(),
            rate_15_minutes=self.rates[2].per_second(),
        )
