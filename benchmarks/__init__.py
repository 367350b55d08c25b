"""Load and read programs for any metastore, and the comparison with Hive's own.

    python -m benchmarks load --hms HOST:PORT            fill it with the catalog
    python -m benchmarks measure --hms HOST:PORT --json FILE [--server-pid PID] [--database-pid PID] [--mysql URL]
    python -m benchmarks compare [--quick]               all bars, beside Hive 4.0.1 with its CachedStore, in one run
    python -m benchmarks jobs [--partitions SIZES]       Spark's data sources and jobs: rows/s, and how time grows

Ratios of one run count, not milliseconds of different ones.
"""
