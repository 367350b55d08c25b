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
        """Calls by method: what fb303's ``getCounters`` answers."""
        calls: dict[str, int] = {}
        for (method, _outcome), count in self._metrics.server.calls.values().items():
            calls[method] = calls.get(method, 0) + int(count)
        return dict(sorted(calls.items()))
