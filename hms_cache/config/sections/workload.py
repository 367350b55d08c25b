"""Workload management and scheduled queries."""

from __future__ import annotations

from hms_cache.config.quantities import Seconds, unless_negative
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting


class WorkloadSettings(Section):
    """Resource plans and scheduled queries of HiveServer2."""

    default_pool_size: int = hive_setting(4, "wm.default.pool.size", unit="queries", ge=0)
    """Number of parallel queries in the pool of a new resource plan; 0: it has no pool."""
    scheduled_queries: bool = setting(True, site_keys=metastore_keys("scheduled.queries.enabled"))
    """Whether this server stores scheduled queries and hands them out."""
    scheduled_query_timeout_s: Seconds = setting(
        120.0,
        reason="Hive's default; HiveServer2 reports every minute.",
        site_keys=(
            "metastore.scheduled.queries.execution.timeout",
            "hive.metastore.scheduled.queries.progress.timeout",
        ),
        gt=0,
    )
    """An execution that has not reported its progress for this long is marked as timed out."""
    scheduled_query_maintenance_interval_s: Seconds = setting(
        60.0,
        reason="Hive's default.",
        site_keys=(
            "metastore.scheduled.queries.execution.maint.task.frequency",
            "hive.metastore.scheduled.queries.execution.clean.frequency",
        ),
        gt=0,
    )
    """Time between two runs that mark executions as timed out and delete old ones. inf: one run, after the start."""
    scheduled_query_retention_s: Seconds = hive_setting(30 * 86400.0, "scheduled.queries.execution.max.age", gt=0)
    """Executions older than this are deleted; inf: never."""
    scheduled_query_disable_count: int = setting(
        0, unit="failures", reason="Hive's default.", site_keys=("metastore.scheduled.queries.autodisable.count",), ge=0
    )
    """Number of consecutive failures after which a scheduled query is disabled. 0: it is never disabled."""
    scheduled_query_skips: int = setting(
        0,
        unit="failures",
        reason="Hive's default.",
        site_keys=("metastore.scheduled.queries.skip.opportunities.after.failures",),
        ge=0,
    )
    """After n consecutive failures, n being at most this number, a scheduled query skips its next n - 1 executions. 0:
    it skips none."""
    runtime_statistics_retention_s: Seconds = setting(
        3 * 86400.0,
        reason="Hive's default.",
        site_keys=(*metastore_keys("runtime.stats.max.age"), "runtime.stats.max.age"),
        from_site=unless_negative,
        ge=0,
    )
    """Age at which statistics of operators that HiveServer2 reported for queries (add_runtime_stats) are deleted; inf:
    never."""
    replication_metrics_retention_s: Seconds = hive_setting(
        7 * 86400.0, "repl.metrics.max.age", from_site=unless_negative, ge=0
    )
    """Time since the start of an execution after which its replication metrics (add_replication_metrics) are deleted;
    inf: never."""
