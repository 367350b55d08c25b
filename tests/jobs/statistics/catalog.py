"""A table with columns of all types that Hive has statistics for, and their statistics by plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from hms_cache.jobs.frame import Job
from hms_cache.jobs.statistics.definition import JOB
from hms_cache.jobs.statistics.rows import small_files
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind

COLUMNS = {
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "big": "bigint",
    "single": "float",
    "ratio": "double",
    "amount": "decimal(12,3)",
    "huge": "decimal(38,10)",
    "text": "string",
    "code": "varchar(20)",
    "raw": "binary",
    "day": "date",
    "moment": "timestamp",
}
_NULLS = 0.1
_SPECIAL_TEXTS = ("", "é", "日本語", "x" * 40, "𝛂𝛃")


def rows_of_partition(number: int, count: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """Returns rows, always the same; every third partition has a column without any value."""
    chance = random.Random(f"{seed}/{number}")
    rows = []
    for _ in range(count):
        # Hive's schema for MySQL keeps four decimal places of a bound.
        ratios = [chance.randrange(-(10**10), 10**10) / 16, float("nan"), -0.0]
        if number % 4 == 1:
            ratios += [float("inf"), -1e60]
        row: list[Any] = [
            chance.random() < 0.4,
            chance.randrange(-128, 128),
            chance.randrange(-300, 300),
            chance.randrange(-(2**31), 2**31),
            chance.randrange(-(2**63), 2**63),
            float(chance.randrange(-1000, 1000)) / 8,
            chance.choice(ratios),
            Decimal(chance.randrange(-(10**12), 10**12)).scaleb(-3),
            Decimal(chance.randrange(-(10**37), 10**37)).scaleb(-10),
            chance.choice([*_SPECIAL_TEXTS, str(chance.random())]),
            f"code {chance.randrange(50)}",
            bytes(chance.randrange(256) for _ in range(chance.randrange(30))),
            date.fromordinal(chance.randrange(date(1950, 1, 1).toordinal(), date(2050, 1, 1).toordinal())),
            datetime.fromtimestamp(chance.randrange(-(10**9), 2 * 10**9) + 0.5, UTC).replace(tzinfo=None),
        ]
        rows.append(tuple(None if chance.random() < _NULLS else value for value in row))
    if number % 3 == 2:
        empty = number % len(COLUMNS)
        rows = [(*row[:empty], None, *row[empty + 1 :]) for row in rows]
    return rows


@dataclass(frozen=True)
class Expected:
    """The statistics that must be exact, and the number of distinct values, which is estimated."""

    values: ColumnValues
    distinct: int


def expected(column: str, values: Sequence[Any]) -> Expected:
    """The statistics of a column with these values."""
    kind = _kind(COLUMNS[column])
    present = [value for value in values if value is not None]
    found = ColumnValues(kind, nulls=len(values) - len(present))
    if kind is StatisticsKind.BOOLEAN:
        found.trues, found.falses = present.count(True), present.count(False)
        return Expected(found, 0)
    if kind.has_lengths:
        lengths = [len(value) for value in present]
        found.maximum_length = max(lengths, default=0)
        found.average_length = sum(lengths) / len(values) if values else 0.0
    comparable = [_comparable(kind, value) for value in present]
    if kind.has_bounds:
        ordered = [one for one in comparable if one == one]
        found.low = _bound(min(ordered, default=None))
        # NaN is greater than all numbers to Hive and Spark, and cannot be written.
        found.high = _bound(max(ordered, default=None)) if len(ordered) == len(comparable) else None
    distinct = len({repr(one) for one in comparable}) if kind.has_distinct_values else 0
    return Expected(found, distinct)


def _bound(value: Any) -> Any:
    return None if isinstance(value, float) and abs(value) >= 1e49 else value


def _kind(column_type: str) -> StatisticsKind:
    if column_type in ("tinyint", "smallint", "int", "bigint"):
        return StatisticsKind.LONG
    if column_type in ("float", "double"):
        return StatisticsKind.DOUBLE
    if column_type in ("string", "varchar(20)"):
        return StatisticsKind.STRING
    return StatisticsKind[column_type.partition("(")[0].upper()]


def _comparable(kind: StatisticsKind, value: Any) -> Any:
    if kind is StatisticsKind.DATE:
        return (value - date(1970, 1, 1)).days
    if kind is StatisticsKind.TIMESTAMP:
        return int((value.replace(microsecond=0) - datetime(1970, 1, 1)).total_seconds())
    return value


# ---- in Spark's process


def create(spark: SparkSession, table: str, partitions: int, rows: int, file_format: str = "parquet") -> None:
    """A table with this many partitions by `region` and `bucket`; one of them is that of no region."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) PARTITIONED BY (region string, bucket int) STORED AS {file_format}")
    _insert(spark, table, list(range(partitions)), rows, seed=0)


def keys(number: int) -> tuple[str | None, int]:
    """The partition values of a partition."""
    return (None if number == 1 else f"r {number % 7}/ü", number)


def append(spark: SparkSession, table: str, numbers: list[int], rows: int, seed: int = 0) -> None:
    """Adds rows to these partitions in a way that notifies the metastore: otherwise Spark only adds files."""
    spark.conf.set("spark.sql.hive.convertInsertingPartitionedTable", "false")
    _insert(spark, table, numbers, rows, seed)
    spark.conf.unset("spark.sql.hive.convertInsertingPartitionedTable")


def _insert(spark: SparkSession, table: str, numbers: list[int], rows: int, seed: int) -> None:
    schema = spark.table(table).schema
    content = [(*row, *keys(number)) for number in numbers for row in rows_of_partition(number, rows, seed)]
    frame = spark.createDataFrame(content, schema)
    frame.repartition(2, "bucket").write.insertInto(table)


def create_plain(spark: SparkSession, table: str, rows: int) -> None:
    """The same columns without partitions."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) STORED AS orc")
    frame = spark.createDataFrame(rows_of_partition(0, rows), spark.table(table).schema)
    frame.coalesce(1).write.insertInto(table)


def run_statistics(
    spark: SparkSession, dry_run: bool = False, read_by_spark: bool = False, **options: Any
) -> dict[str, Any]:
    """The job's report. `read_by_spark`: also small files."""
    with patch.object(small_files, "UNIT_BYTES", -1 if read_by_spark else small_files.UNIT_BYTES):
        return run_job(spark, JOB, dry_run, options)


def run_job(spark: SparkSession, job: Job, dry_run: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Summary, tables by title, exit status."""
    result = job.run(spark, options, dry_run=dry_run)
    tables = {table.title: [list(map(_plain, row)) for row in table.rows] for table in result.tables}
    return {"summary": dict(result.summary), "tables": tables, "exit_status": result.exit_status}


def _plain(cell: object) -> object:
    return cell if isinstance(cell, int | float | str) or cell is None else str(cell)
