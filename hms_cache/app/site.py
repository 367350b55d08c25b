"""What handlers may read about their server: its configuration under Hive's names, and its counters."""

from __future__ import annotations

from hms_cache.config import Configuration, HiveValues
from hms_cache.metrics import Metrics


class Site:
    """The ``site`` of the handlers' stores."""

    def __init__(self, configuration: Configuration, metrics: Metrics) -> None:
        self._values = HiveValues(configuration)
        self._metrics = metrics

    def config_value(self, name: str) -> str | None:
        """The value in force under Hive's name; None if the name is unknown."""
        return self._values.get(name)

    def counters(self) -> dict[str, int]:
        """The result of fb303's ``getCounters``: calls by method, and ``cache_reads.<outcome>``."""
        outcomes = {f"cache_reads.{outcome}": count for outcome, count in self.reads_by_outcome().items()}
        return dict(sorted((self.calls_by_method() | outcomes).items()))

    def calls_by_method(self) -> dict[str, int]:
        """Number of calls by method since the start."""
        calls: dict[str, int] = {}
        for (method, _outcome), count in self._metrics.server.calls.values().items():
            calls[method] = calls.get(method, 0) + int(count)
        return calls

    def reads_by_outcome(self) -> dict[str, int]:
        """Number of reads answered from memory (`hit`; `miss` after a load), or by the reason why the database
        answered."""
        outcomes: dict[str, int] = {}
        for (_kind, outcome), count in self._metrics.cache.reads.values().items():
            outcomes[outcome] = outcomes.get(outcome, 0) + int(count)
        return outcomes
