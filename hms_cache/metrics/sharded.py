"""Counters and histograms that any thread can increase at almost no cost.

prometheus-client takes a lock and looks up labels for each call, which takes several microseconds: too much for a call
that is answered in ten. Here, each thread counts in a dictionary of its own, without a lock, and a scrape adds up the
dictionaries of all threads. Counts are exact, because no thread writes to the shard of another one. Shards of threads
that have ended are merged, so no count is lost, and memory does not grow with the number of threads.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

#: Upper bounds in seconds: from a hot answer (tens of microseconds) to the time-out of Hive's clients.
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
"""Up to this number of shards, threads that have ended are not looked for."""


class _ShardedFamily(Collector, Generic[S]):
    """A family of metrics with one shard per thread: a dictionary by label values."""

    def __init__(self, name: str, documentation: str, label_names: Sequence[str] = ()) -> None:
        self.name = name
        self.documentation = documentation
        self.label_names = tuple(label_names)
        self._local = threading.local()
        self._lock = threading.Lock()
        """Guards the attributes below. Each dictionary in ``_shards`` is written only by its thread."""
        self._shards: list[tuple[threading.Thread, dict[Labels, S]]] = []
        self._of_ended: dict[Labels, S] = {}
        """Counts of threads that have ended. This dictionary is never changed, only replaced."""
        self._join_at_count = _FEW_SHARDS
        """Number of shards at which threads that have ended are looked for."""

    def _sum(self, shards: Iterable[Mapping[Labels, S]]) -> dict[Labels, S]:
        """Returns the sums of all shards, as new values."""
        raise NotImplementedError

    def _new_shard(self) -> dict[Labels, S]:
        shard: dict[Labels, S] = {}
        self._local.shard = shard
        with self._lock:
            if len(self._shards) >= self._join_at_count:
                self._join_ended()
            self._shards.append((threading.current_thread(), shard))
        return shard

    def _join_ended(self) -> None:
        """Merges the shards of threads that have ended, and write no more. The caller holds the lock."""
        alive: list[tuple[threading.Thread, dict[Labels, S]]] = []
        ended = [self._of_ended]
        for thread, shard in self._shards:
            if thread.is_alive():
                alive.append((thread, shard))
            else:
                ended.append(shard)
        self._shards, self._of_ended = alive, self._sum(ended)
        # Twice as many, so that each shard is examined only a few times.
        self._join_at_count = max(_FEW_SHARDS, 2 * len(alive))

    def _totals(self) -> dict[Labels, S]:
        """Returns the sums of all threads, as new values."""
        with self._lock:
            shards, of_ended = [shard for _, shard in self._shards], self._of_ended
        # Copies, each made by one C call, because the owner may add keys meanwhile.
        return self._sum([of_ended, *(shard.copy() for shard in shards)])


class TallyFamily(_ShardedFamily[float]):
    """A counter with labels. ``name`` ends in ``_total``."""

    def __init__(self, name: str, documentation: str, label_names: Sequence[str] = ()) -> None:
        super().__init__(name, documentation, label_names)
        self._sources: list[Callable[[], Mapping[Labels, float]]] = []

    def include(self, source: Callable[[], Mapping[Labels, float]]) -> None:
        """Adds counts that are stored elsewhere and read by `source` during a scrape; they must never decrease."""
        self._sources.append(source)

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        """Increases the count of these label values, in the order of ``label_names``."""
        try:
            shard: dict[Labels, float] = self._local.shard
        except AttributeError:
            shard = self._new_shard()
        shard[labels] = shard.get(labels, 0) + amount

    def value(self, labels: Labels = ()) -> float:
        """Returns the count of these label values in all threads."""
        return self.values().get(labels, 0)

    def values(self) -> dict[Labels, float]:
        """Returns all counts by label values."""
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
    """A counter whose number is stored elsewhere and read by a function during a scrape. ``name`` ends in
    ``_total``."""

    def __init__(self, name: str, documentation: str) -> None:
        self.name = name
        self.documentation = documentation
        self._function: Callable[[], float] = lambda: 0.0

    def set_function(self, function: Callable[[], float]) -> None:
        """Sets the function that returns the number, which must never decrease."""
        self._function = function

    def value(self) -> float:
        """Returns the current number."""
        return self._function()

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(self.name.removesuffix("_total"), self.documentation)
        family.add_metric((), self.value())
        yield family


class _Durations:
    """Observations of one thread for one set of label values. The last count is that of observations above all
    bounds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(DURATION_BOUNDS_S) + 1)
        self.sum_s = 0.0


class DurationFamily(_ShardedFamily[_Durations]):
    """A histogram of seconds with labels. ``name`` ends in ``_seconds``."""

    def observe(self, seconds: float, labels: Labels = ()) -> None:
        """Counts one duration with these label values, in the order of ``label_names``."""
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
        """Returns by label values: (observations per bucket, the last one above all bounds; their sum in seconds)."""
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
    """Returns the bound of :data:`DURATION_BOUNDS_S` below which ``fraction`` of the observations are: 0 without
    observations, inf above all bounds."""
    rank = fraction * sum(counts)
    if rank == 0:
        return 0.0
    seen = 0
    for bound, count in zip((*DURATION_BOUNDS_S, float("inf")), counts, strict=True):
        seen += count
        if seen >= rank:
            return bound
    return float("inf")
