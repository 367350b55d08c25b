"""Trino plans by what `hms-cache jobs statistics` writes, as after its own ANALYZE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.spark.session import SparkProcess, remote
from tests.clients.trino.engines import MARKS, EngineLookup
from tests.jobs.statistics.catalog import run_statistics

pytestmark = [*MARKS, pytest.mark.spark]


def shown(rows: list[list[Any]]) -> dict[Any, list[Any]]:
    """By column, None for the row of the table: distinct values, part of nulls, rows, low and high."""
    return {row[0]: [row[2], row[3], row[4], row[5], row[6]] for row in rows}


def test_row_counts_and_distinct_values(engines: EngineLookup, spark: SparkProcess, tmp_path: Path) -> None:
    engine = engines("sqlite")
    assert engine.metastore is not None
    uri = engine.metastore.uri
    spark.session(remote(tmp_path, uri))
    spark.sql("create database of_spark")
    keys = "partitioned by (p int) stored as parquet"
    for name, rest, values in (
        ("plain", "stored as parquet", "(1, 'x', date'2024-01-01'), (2, 'y', null), (9, 'y', date'2024-03-01')"),
        ("parted", keys, "(1, 'x', date'2024-01-01', 1), (2, 'y', null, 1), (9, 'y', date'2024-03-01', 2)"),
    ):
        spark.sql(f"create table of_spark.{name} (a int, t string, day date) {rest}")
        spark.sql(f"insert into of_spark.{name} values {values}")
    report = spark.call(run_statistics, metastore=uri)
    assert report["exit_status"] == 0, report
    trino = engine.session()
    for name in ("plain", "parted"):
        table = f"hive.of_spark.{name}"
        ours = shown(trino.rows(f"SHOW STATS FOR {table}"))
        # For several partitions, Trino uses the largest number of distinct values.
        assert ours[None][2] == 3 and ours["a"][0] == (3 if name == "plain" else 2) and ours["t"][0] == 2
        assert "3 (" in str(trino.rows(f"EXPLAIN SELECT * FROM {table}")) or "rows: 3" in str(
            trino.rows(f"EXPLAIN SELECT * FROM {table}")
        )
        trino.execute(f"ANALYZE {table}")
        theirs = shown(trino.rows(f"SHOW STATS FOR {table}"))
        # Trino counts null as a value when it writes, and subtracts it when it reads; Hive does neither.
        assert theirs["day"][0] == (2 if name == "plain" else 1)
        theirs["day"][0] = ours["day"][0]
        assert ours == theirs
