"""Counters and histograms that cost next to nothing to raise, from any thread.

prometheus-client takes a lock and finds its child by labels on each call, several microseconds in all: too much for a
call that is answered in ten. Here every thread counts into a dictionary of its own, without a lock, and only a scrape
adds the threads up. Counts are exact: no thread writes into another's shard. Shards of threads that have ended are
added up in one, so nothing is forgotten, and nothing grows with threads that come and go.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

#: Upper bounds in seconds. From a hot answer (tens of microseconds) to the time-out of Hive's clients.
DURATION_BOUNDS_S: tuple[float, ...] = (
    0.000025,
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    10.0,
    60.0,
    600.0,
)

Labels = tuple[str, ...]
S = TypeVar("S")


_FEW_SHARDS = 32
"""Up to which it is not looked whose threads have ended."""


class _ShardedFamily(Collector, Generic[S]):
    """A family whose observations each thread keeps in a shard of its own, a dictionary by label values."""

    def __init__(self, name: str, documentation: str, label_names: Sequence[str] = ()) -> None:
        self.name = name
        self.documentation = documentation
        self.label_names = tuple(label_names)
        self._local = threading.local()
        self._lock = threading.Lock()
        """Guards what follows; a dictionary of ``_shards`` is written by its thread alone."""
        self._shards: list[tuple[threading.Thread, dict[Labels, S]]] = []
        self._of_ended: dict[Labels, S] = {}
        """What threads that have ended have counted. Never changed: another dictionary takes its place."""
        self._looked_at = _FEW_SHARDS
        """How many shards there may be until it is looked again whose threads have ended."""

    def _sum(self, shards: Iterable[Mapping[Labels, S]]) -> dict[Labels, S]:
        """All shards added up, in values of its own."""
        raise NotImplementedError

    def _new_shard(self) -> dict[Labels, S]:
        shard: dict[Labels, S] = {}
        self._local.shard = shard
        with self._lock:
            if len(self._shards) >= self._looked_at:
                self._join_ended()
            self._shards.append((threading.current_thread(), shard))
        return shard

    def _join_ended(self) -> None:
        """Under the lock. A thread that is not alive writes no more."""
        alive: list[tuple[threading.Thread, dict[Labels, S]]] = []
        ended = [self._of_ended]
        for thread, shard in self._shards:
            if thread.is_alive():
                alive.append((thread, shard))
            else:
                ended.append(shard)
        self._shards, self._of_ended = alive, self._sum(ended)
        # Twice as many, so that each shard is looked at a few times only.
        self._looked_at = max(_FEW_SHARDS, 2 * len(alive))

    def _totals(self) -> dict[Labels, S]:
        """Of all threads, in values of its own."""
        with self._lock:
            shards, of_ended = [shard for _, shard in self._shards], self._of_ended
        # Copies, each by one C call: the owner may add keys meanwhile.
        return self._sum([of_ended, *(shard.copy() for shard in shards)])


class TallyFamily(_ShardedFamily[float]):
    """A counter with labels. ``name`` ends in ``_total``."""

    def __init__(self, name: str, documentation: str, label_names: Sequence[str] = ()) -> None:
        super().__init__(name, documentation, label_names)
        self._sources: list[Callable[[], Mapping[Labels, float]]] = []

    def include(self, source: Callable[[], Mapping[Labels, float]]) -> None:
        """Add counts that their owner keeps, read at a scrape through `source`; they must never fall."""
        self._sources.append(source)

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        """Raise the count of these label values, in the order of ``label_names``."""
        try:
            shard: dict[Labels, float] = self._local.shard
        except AttributeError:
            shard = self._new_shard()
        shard[labels] = shard.get(labels, 0) + amount

    def value(self, labels: Labels = ()) -> float:
        """The count of these label values, over all threads."""
        return self.values().get(labels, 0)

    def values(self) -> dict[Labels, float]:
        """All counts by label values."""
        return self._sum([self._totals(), *(source() for source in self._sources)])

    def _sum(self, shards: Iterable[Mapping[Labels, float]]) -> dict[Labels, float]:
        totals: dict[Labels, float] = {}
        for shard in shards:
            for labels, count in shard.items():
                totals[labels] = totals.get(labels, 0) + count
        return totals

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(self.name.removesuffix("_total"), self.documentation, labels=self.label_names)
        totals = self.values()
        if not self.label_names:
            totals.setdefault((), 0)
        for labels, count in sorted(totals.items()):
            family.add_metric(labels, count)
        yield family


class CountFamily(Collector):
    """A counter whose number its owner keeps, read at a scrape through a function. ``name`` ends in ``_total``."""

    def __init__(self, name: str, documentation: str) -> None:
        self.name = name
        self.documentation = documentation
        self._function: Callable[[], float] = lambda: 0.0

    def set_function(self, function: Callable[[], float]) -> None:
        """Have the number read from here; it must never fall."""
        self._function = function

    def value(self) -> float:
        """The number now."""
        return self._function()

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(self.name.removesuffix("_total"), self.documentation)
        family.add_metric((), self.value())
        yield family


class _Durations:
    """Observations of one thread for one set of label values. The last count is of those above all bounds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(DURATION_BOUNDS_S) + 1)
        self.sum_s = 0.0


class DurationFamily(_ShardedFamily[_Durations]):
    """A histogram of seconds with labels. ``name`` ends in ``_seconds``."""

    def observe(self, seconds: float, labels: Labels = ()) -> None:
        """Count one duration under these label values, in the order of ``label_names``."""
        try:
            shard: dict[Labels, _Durations] = self._local.shard
        except AttributeError:
            shard = self._new_shard()
        durations = shard.get(labels)
        if durations is None:
            durations = shard[labels] = _Durations()
        durations.counts[bisect_left(DURATION_BOUNDS_S, seconds)] += 1
        durations.sum_s += seconds

    def totals(self) -> dict[Labels, tuple[list[int], float]]:
        """By label values: (observations per bucket, the last above all bounds; their sum in seconds)."""
        return {labels: (durations.counts, durations.sum_s) for labels, durations in self._totals().items()}

    def _sum(self, shards: Iterable[Mapping[Labels, _Durations]]) -> dict[Labels, _Durations]:
        totals: dict[Labels, _Durations] = {}
        for shard in shards:
            for labels, durations in shard.items():
                total = totals.get(labels)
                if total is None:
                    total = totals[labels] = _Durations()
                total.counts = [mine + theirs for mine, theirs in zip(total.counts, durations.counts, strict=True)]
                total.sum_s += durations.sum_s
        return totals

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self.name, self.documentation, labels=self.label_names)
        for labels, (counts, sum_s) in sorted(self.totals().items()):
            cumulative = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip((*map(repr, DURATION_BOUNDS_S), "+Inf"), counts, strict=True):
                cumulative += count
                buckets.append((bound, cumulative))
            family.add_metric(labels, buckets, sum_s)
        yield family


def quantile_s(counts: Sequence[int], fraction: float) -> float:
    """The bound of :data:`DURATION_BOUNDS_S` below which ``fraction`` of the observations lie; 0 without any, inf
    above all."""
    wanted = fraction * sum(counts)
    if wanted == 0:
        return 0.0
    seen = 0
    for bound, count in zip((*DURATION_BOUNDS_S, float("inf")), counts, strict=True):
        seen += count
        if seen >= wanted:
            return bound
    return float("inf")
