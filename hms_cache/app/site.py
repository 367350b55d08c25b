"""What handlers may know about the server they run in: its configuration under Hive's names, and its counters."""

from __future__ import annotations

from hms_cache.config import Configuration, HiveValues
from hms_cache.metrics import Metrics


class Site:
    """The ``site`` of the handlers' stores."""

    def __init__(self, configuration: Configuration, metrics: Metrics) -> None:
        self._values = HiveValues(configuration)
        self._metrics = metrics

    def config_value(self, name: str) -> str | None:
        """The value in force under Hive's name, None when nobody knows the name."""
        return self._values.get(name)

    def counters(self) -> dict[str, int]:
        """What fb303's ``getCounters`` answers: calls by method, and ``cache_reads.<outcome>``."""
        outcomes = {f"cache_reads.{outcome}": count for outcome, count in self.reads_by_outcome().items()}
        return dict(sorted((self.calls_by_method() | outcomes).items()))

    def calls_by_method(self) -> dict[str, int]:
        """How often each method was called since the start."""
        calls: dict[str, int] = {}
        for (method, _outcome), count in self._metrics.server.calls.values().items():
            calls[method] = calls.get(method, 0) + int(count)
        return calls

    def reads_by_outcome(self) -> dict[str, int]:
        """How many reads were answered from memory (`hit`; `miss` after a load), or why the database answered."""
        outcomes: dict[str, int] = {}
        for (_kind, outcome), count in self._metrics.cache.reads.values().items():
            outcomes[outcome] = outcomes.get(outcome, 0) + int(count)
        return outcomes
