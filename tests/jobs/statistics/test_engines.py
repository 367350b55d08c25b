"""Forty tables of all types, with and without partitions: what the job writes beside each engine's own ANALYZE.

``HMS_CACHE_STATISTICS_TABLES`` makes them fewer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import ServerStarter
from tests.clients.hive import engine as hive_engine
from tests.clients.spark.session import SparkProcess, remote
from tests.clients.trino.conftest import MARKS, EngineLookup
from tests.jobs.statistics.catalog import COLUMNS, rows_of_partition, run_statistics

pytestmark = [*MARKS, pytest.mark.spark, pytest.mark.timeout(6_000)]

TABLES = int(os.environ.get("HMS_CACHE_STATISTICS_TABLES", "40"))
ROWS = (0, 9, 60)
KEYS = ({}, {"p": "int"}, {"region": "string", "since": "date"})
"""Partition keys of every third table."""

ERROR = 0.1
"""Twice the error that Spark's estimates of distinct values have."""


@dataclass(frozen=True)
class Shape:
    """A table by its number."""

    number: int

    @property
    def name(self) -> str:
        return f"d.t{self.number:02d}"

    @property
    def columns(self) -> list[str]:
        """Four of all, others in each table."""
        names = list(COLUMNS)
        return [names[(self.number + 5 * step) % len(names)] for step in range(4)]

    @property
    def keys(self) -> dict[str, str]:
        return dict(KEYS[self.number % 3])

    @property
    def format(self) -> str:
        return ("parquet", "orc")[self.number // 3 % 2]

    @property
    def rows(self) -> int:
        return ROWS[self.number // 6 % 3]

    def values(self) -> list[tuple[Any, ...]]:
        """Without NaN and infinities: each engine takes them for bounds, or not, by rules of its own."""
        chosen = [list(COLUMNS).index(column) for column in self.columns]
        found = []
        for index, row in enumerate(rows_of_partition(4 * self.number, self.rows)):
            values = [None if isinstance(row[one], float) and row[one] != row[one] else row[one] for one in chosen]
            partition = ((), (index % 3,), (f"r{index % 2}", f"2024-01-0{1 + index % 2}"))[self.number % 3]
            found.append((*(0.0 if value == 0 and isinstance(value, float) else value for value in values), *partition))
        return found


SHAPES = [Shape(number) for number in range(TABLES)]


def create_all(spark: Any, shapes: Sequence[Shape]) -> None:
    """In Spark's process."""
    spark.sql("create database d")
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    for one in shapes:
        columns = ", ".join(f"{column} {COLUMNS[column]}" for column in one.columns)
        keys = ", ".join(f"{key} {kind}" for key, kind in one.keys.items())
        by = f" partitioned by ({keys})" if keys else ""
        spark.sql(f"create table {one.name} ({columns}){by} stored as {one.format}")
        types = [COLUMNS[column].replace("varchar(20)", "string") for column in one.columns]
        plain = [*types, *("int" if kind == "int" else "string" for kind in one.keys.values())]
        names = [*one.columns, *one.keys]
        if one.rows:
            frame = spark.createDataFrame(one.values(), ", ".join(map(" ".join, zip(names, plain, strict=True))))
            casts = [frame[name].cast(kind) for name, kind in zip(names, [*types, *one.keys.values()], strict=True)]
            frame.select(casts).coalesce(1).write.insertInto(one.name)


def described(spark: Any, shapes: Sequence[Shape]) -> dict[str, dict[str, Any]]:
    """In Spark's process: what it knows of each table and column."""
    found: dict[str, dict[str, Any]] = {}
    for one in shapes:
        spark.catalog.refreshTable(one.name)
        rows = {row[0]: row[1] for row in spark.sql(f"describe extended {one.name}").collect()}
        found[one.name] = {"table": rows.get("Statistics")}
        for column in one.columns:
            found[one.name][column] = {
                row[0]: row[1] for row in spark.sql(f"describe extended {one.name} {column}").collect()
            }
    return found


def analyzed(spark: Any, shapes: Sequence[Shape]) -> dict[str, dict[str, Any]]:
    """In Spark's process: the same after its own ANALYZE."""
    for one in shapes:
        spark.sql(f"analyze table {one.name} compute statistics for all columns")
    return described(spark, shapes)


def is_near(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= max(1, ERROR * theirs)


def of_trino(rows: list[list[Any]]) -> dict[Any, dict[str, Any]]:
    """By column, None for the table."""
    return {
        row[0]: dict(zip(("size", "distinct", "nulls", "rows", "low", "high"), row[1:7], strict=True)) for row in rows
    }


def test_trino_and_spark(engines: EngineLookup, spark: SparkProcess, tmp_path: Path) -> None:
    engine = engines("sqlite")
    assert engine.metastore is not None
    uri = engine.metastore.uri
    spark.session(remote(tmp_path, uri))
    spark.call(create_all, shapes=SHAPES)
    report = spark.call(run_statistics, metastore=uri, tables=("d.*",))
    assert report["exit_status"] == 0, report
    trino = engine.session()
    ours_of_trino = {one.name: of_trino(trino.rows(f"SHOW STATS FOR hive.{one.name}")) for one in SHAPES}
    ours_of_spark = spark.call(described, shapes=SHAPES)
    differences: list[tuple[object, ...]] = []
    theirs_of_spark = spark.call(analyzed, shapes=SHAPES)
    for one in SHAPES:
        ours, theirs = ours_of_spark[one.name], theirs_of_spark[one.name]
        if ours["table"] != theirs["table"]:
            differences.append(("spark", one.name, ours["table"], theirs["table"]))
        for column in one.columns:
            for figure, wanted in theirs[column].items():
                found = ours[column].get(figure)
                if figure == "distinct_count" and found is not None and is_near(float(found), float(wanted)):
                    continue
                # Of a table with partitions it is the longest average of one, as Hive merges them.
                if figure == "avg_col_len" and one.keys and found is not None and int(found) >= int(wanted):
                    continue
                if found != wanted:
                    differences.append(("spark", one.name, column, figure, found, wanted))

    for one in SHAPES:
        trino.execute(f"ANALYZE hive.{one.name}")
        theirs = of_trino(trino.rows(f"SHOW STATS FOR hive.{one.name}"))
        ours = ours_of_trino[one.name]
        for column, figures in theirs.items():
            for figure, wanted in figures.items():
                found = ours[column][figure]
                is_estimate = figure in ("distinct", "size") and found is not None and wanted is not None
                if found != wanted and not (is_estimate and is_near(found, wanted)):
                    differences.append(("trino", one.name, column, figure, found, wanted))
    assert differences == []


@pytest.mark.mariadb
def test_hive(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> None:
    """It answers from them without a task, and says what its own scan says."""
    server = start_server("mariadb", **{"catalog.statistics_sketches": "true"})
    spark.session(remote(tmp_path, server.uri))
    spark.call(create_all, shapes=SHAPES)
    assert spark.call(run_statistics, metastore=server.uri)["exit_status"] == 0
    bounded = {"tinyint", "smallint", "int", "bigint", "float", "double", "date"}
    queries = []
    for one in SHAPES:
        asked = ["count(*)"]
        for column in one.columns:
            if COLUMNS[column] in bounded:
                asked += [f"min({column})", f"max({column})"]
        queries.append(f"select '{one.name}', {', '.join(asked)} from {one.name};")
    script = "\n".join(queries)
    answers = {}
    for uses in ("true", "false"):
        setting = f"set hive.compute.query.using.stats={uses};\n"
        printed = hive_engine.run(setting + script, server.uri, tmp_path / f"hive-{uses}")
        answers[uses] = dict(re.findall(r"(d\.t\d\d)\t(.*)", "\n".join(printed)))
    assert answers["true"] == answers["false"] and len(answers["true"]) == len(SHAPES)
    plans = "\n".join(
        hive_engine.run(
            "set hive.compute.query.using.stats=true;\n" + "\n".join(f"explain {query}" for query in queries),
            server.uri,
            tmp_path / "hive-plans",
        )
    )
    assert "TableScan" not in plans and plans.count("Fetch Operator") == len(SHAPES)
