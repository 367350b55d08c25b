"""The PySpark session of the demo, run in a separate process. Prints a JSON object per step.

Arguments: the metastore's URI and the warehouse directory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

STEPS: tuple[tuple[str, str], ...] = (
    ("create a database", "CREATE DATABASE shop COMMENT 'the demo'"),
    (
        "create a partitioned table",
        "CREATE TABLE shop.orders (id INT, customer STRING, amount DECIMAL(10,2))"
        " PARTITIONED BY (day STRING, country STRING) STORED AS PARQUET",
    ),
    (
        "insert into one partition",
        "INSERT INTO shop.orders PARTITION (day = '2026-01-01', country = 'nl')"
        " VALUES (1, 'Ada', 12.50), (2, 'Bob', 7.00)",
    ),
    (
        "insert into several partitions",
        "INSERT INTO shop.orders VALUES (3, 'Cem', 99.90, '2026-01-01', 'tr'), (4, 'Dee', 3.20, '2026-01-02', 'nl'),"
        " (5, 'Eve', 41.00, '2026-01-03', 'de')",
    ),
    ("list partitions", "SHOW PARTITIONS shop.orders"),
    ("read with a filter", "SELECT id, customer, amount FROM shop.orders WHERE day > '2026-01-01' AND country = 'nl'"),
    (
        "count by country",
        "SELECT country, count(*) AS orders, sum(amount) AS amount FROM shop.orders GROUP BY country ORDER BY 1",
    ),
    ("add a column", "ALTER TABLE shop.orders ADD COLUMNS (note STRING)"),
    ("drop a partition", "ALTER TABLE shop.orders DROP PARTITION (day = '2026-01-03', country = 'de')"),
    ("analyze", "ANALYZE TABLE shop.orders COMPUTE STATISTICS FOR COLUMNS id, customer"),
    ("create a view", "CREATE VIEW shop.dutch AS SELECT * FROM shop.orders WHERE country = 'nl'"),
    ("read the view", "SELECT id, customer, note FROM shop.dutch ORDER BY id"),
    ("rename the table", "ALTER TABLE shop.orders RENAME TO shop.sales"),
    ("list tables", "SHOW TABLES IN shop"),
    ("drop everything", "DROP DATABASE shop CASCADE"),
    ("list databases", "SHOW DATABASES"),
)


def start_session(uri: str, warehouse: str, more: Mapping[str, str] | None = None) -> SparkSession:
    """Starts a small local session on the metastore at ``uri``; `more`: further configuration."""
    builder: Any = SparkSession.builder
    for name, value in (more or {}).items():
        builder = builder.config(name, value)
    session: SparkSession = (
        builder.master("local[2]")
        .appName("hms-cache demo")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    return session


def run(report: Callable[[dict[str, Any]], None], uri: str, warehouse: str) -> None:
    """Runs all steps in order.

    :param report: called for each step with title, statement, seconds and rows.
    """
    started = time.perf_counter()
    spark = start_session(uri, warehouse)
    report({"step": "start Spark", "statement": "", "seconds": time.perf_counter() - started, "rows": []})
    for step, statement in STEPS:
        started = time.perf_counter()
        rows = [[str(value) for value in row] for row in spark.sql(statement).collect()]
        report({"step": step, "statement": statement, "seconds": time.perf_counter() - started, "rows": rows})
    spark.stop()


if __name__ == "__main__":
    run(lambda step: print(json.dumps(step), flush=True), sys.argv[1], sys.argv[2])
