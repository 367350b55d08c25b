"""Counts and durations, for Prometheus and for the pages.

>>> from hms_cache.metrics import Metrics
>>> metrics = Metrics()
>>> metrics.server.observe_call("get_table", "ok", 0.00003)
>>> metrics.server.calls.value(("get_table", "ok"))
1
"""

from hms_cache.metrics.registry import Metrics
from hms_cache.metrics.sharded import DurationFamily, TallyFamily, quantile_s

__all__ = ["DurationFamily", "Metrics", "TallyFamily", "quantile_s"]
