"""Transactional tables that Hive 4.0.1's engine wrote, deleted from and updated: what the job writes of them is what
Hive's own ANALYZE writes, and Hive answers queries from it rightly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.metadata.statistics_values import ColumnValues, values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import PartitionsStatsRequest, TableStatsRequest
from tests.clients.conftest import ServerStarter
from tests.clients.hive import engine
from tests.clients.spark.session import SparkProcess, remote
from tests.jobs.statistics.catalog import run_statistics

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.mariadb,
    pytest.mark.soak,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

COLUMNS = "a int, t string, n decimal(9,2), d date, x double"
INSERT_ONLY = "tblproperties('transactional'='true','transactional_properties'='insert_only')"
FULL = "tblproperties('transactional'='true')"
TABLES = {
    "ins": f"({COLUMNS}) stored as parquet {INSERT_ONLY}",
    "ins_p": f"({COLUMNS}) partitioned by (p int) stored as orc {INSERT_ONLY}",
    "acid": f"({COLUMNS}) stored as orc {FULL}",
    "acid_p": f"({COLUMNS}) partitioned by (p int) stored as orc {FULL}",
}
ROWS = (
    (1, "x", "1.25", "2024-01-01", 0.5),
    (2, "yy", "2.50", "2024-02-01", 1.5),
    (30, None, None, None, None),
    (4, "four", "-7.00", "1999-12-31", -3.25),
)
Found = dict[str | None, tuple[dict[str, str], dict[str, ColumnValues]]]


def insert(table: str, rows: Any, partition: int | None) -> str:
    def literal(value: object) -> str:
        return "null" if value is None else repr(value)

    more = () if partition is None else (partition,)
    values = ", ".join("(" + ", ".join(map(literal, (*row, *more))) + ")" for row in rows)
    return f"insert into d.{table} values {values}"


class Lake:
    """A server, Hive and Spark on it, and the four tables."""

    def __init__(self, uri: str, hive: engine.Session, spark: SparkProcess) -> None:
        self.uri = uri
        self.hive = hive
        self.client = MetastoreClient(uri)
        self._spark = spark

    def told(self, statement: str) -> list[str]:
        printed = self.hive.execute(statement)
        assert not any(line.startswith(("FAILED", "Error")) for line in printed), (statement, printed[-20:])
        return printed

    def run(self, **options: Any) -> dict[str, Any]:
        report: dict[str, Any] = self._spark.call(run_statistics, metastore=self.uri, tables=("d.*",), **options)
        assert report["exit_status"] == 0, report["tables"]["Failures"]
        return report

    def plan(self, report: dict[str, Any]) -> dict[str, int]:
        return {row[0]: row[5] for row in report["tables"]["Plan"]}

    def statistics(self, table: str) -> Found:
        names = ["a", "t", "n", "d", "x"]
        struct = self.client.call("get_table", "d", table)
        if not struct.partitionKeys:
            stats = self.client.call("get_table_statistics_req", TableStatsRequest("d", table, names, engine="hive"))
            return {None: (dict(struct.parameters), {one.colName: values_of(one) for one in stats.tableStats})}
        parts = self.client.call("get_partitions", "d", table, -1)
        units = [f"p={one.values[0]}" for one in parts]
        stats = self.client.call(
            "get_partitions_statistics_req", PartitionsStatsRequest("d", table, names, units, engine="hive")
        ).partStats
        return {
            unit: (dict(one.parameters), {each.colName: values_of(each) for each in stats[unit]})
            for unit, one in zip(units, parts, strict=True)
        }


@pytest.fixture
def lake(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> Iterator[Lake]:
    server = start_server(
        "mariadb",
        **{
            "warehouse.directory": f"file:{tmp_path}/wh",
            "warehouse.external_directory": f"file:{tmp_path}/ext",
            "catalog.users_in_admin_role": "root",
        },
    )
    hive = engine.Session(server.uri, tmp_path / "hive", tmp_path)
    spark.session(remote(tmp_path / "spark", server.uri))
    one = Lake(server.uri, hive, spark)
    try:
        one.told("create database d")
        one.told("set hive.compute.query.using.stats=true")
        one.told("set hive.fetch.task.conversion=more")
        for name, definition in TABLES.items():
            one.told(f"create table d.{name} {definition}")
        yield one
    finally:
        hive.close()
        one.client.close()


def wrong(ours: Found, theirs: Found, *, of_files: bool) -> list[str]:
    """What differs of two accounts of a table."""
    found = []
    for unit in theirs.keys() | ours.keys():
        (mine, my_columns), (other, columns) = ours[unit], theirs[unit]
        for name in ("numRows", "numFiles", "totalSize") if of_files else ("numRows",):
            if mine.get(name) != other.get(name):
                found.append(f"{unit}: {name} {mine.get(name)}, by Hive {other.get(name)}")
        for name, values in columns.items():
            own = my_columns[name]
            if values.nulls == int(other["numRows"]):
                # Hive counts one value where there is none; its `HyperLogLog` never answers 0. Ours says 0, as Spark
                # and Trino do.
                values.distinct = 0
            for figure in ("low", "high", "nulls", "distinct", "maximum_length"):
                if getattr(own, figure) != getattr(values, figure):
                    found.append(f"{unit}.{name}: {figure} {getattr(own, figure)}, by Hive {getattr(values, figure)}")
            if own.average_length != pytest.approx(values.average_length, abs=1e-3):
                found.append(f"{unit}.{name}: {own.average_length}, by Hive {values.average_length}")
    return found


def answers(lake: Lake, table: str) -> tuple[list[str], bool]:
    """What Hive answers, and whether it did so without reading."""
    query = f"select count(*), min(a), max(a) from d.{table}"
    explained = "\n".join(lake.told(f"explain {query}"))
    return lake.told(query)[-1:], not re.search(r"\bTez\b\s*$", explained, re.MULTILINE)


def test_what_hive_wrote(lake: Lake) -> None:
    for table in TABLES:
        first, second = (1, 2) if table.endswith("_p") else (None, None)
        lake.told(insert(table, ROWS[:2], first))
        lake.told(insert(table, ROWS[2:], second))
    for table in ("acid", "acid_p"):
        lake.told(f"update d.{table} set t = 'longer than before', n = 99.5 where a = 1")
        lake.told(f"delete from d.{table} where a = 4")
    # Nothing that Hive gathered by the way counts.
    assert lake.plan(lake.run(all=True)) == {"d.acid": 1, "d.acid_p": 2, "d.ins": 1, "d.ins_p": 2}
    ours = {table: lake.statistics(table) for table in TABLES}
    assert ours["acid"][None][0]["numRows"] == "3"
    assert ours["acid_p"]["p=2"][0]["numRows"] == "1" and ours["acid_p"]["p=2"][1]["a"].high == 30
    for table in TABLES:
        rows, high = ("3", "30") if table.startswith("acid") else ("4", "30")
        printed, is_told = answers(lake, table)
        assert printed == [f"{rows}\t1\t{high}"], table
        assert is_told, f"{table}: Hive reads"
    assert lake.plan(lake.run()) == {}
    for table in TABLES:
        lake.told(f"analyze table d.{table} compute statistics")
        lake.told(f"analyze table d.{table} compute statistics for columns")
        assert wrong(ours[table], lake.statistics(table), of_files=table.startswith("ins")) == [], table

    # What changes is noticed, and only that is read.
    lake.told("delete from d.acid where a = 30")
    lake.told(insert("ins_p", ROWS[:1], 2))
    lake.told(f"insert overwrite table d.ins {insert('x', ROWS[3:], None).partition('d.x ')[2]}")
    assert lake.plan(lake.run()) == {"d.acid": 1, "d.ins": 1, "d.ins_p": 1}
    assert answers(lake, "acid") == (["2\t1\t2"], True)
    assert answers(lake, "ins") == (["1\t4\t4"], True)
    assert answers(lake, "ins_p") == (["5\t1\t30"], True)
    assert lake.statistics("ins_p")["p=2"][0]["numRows"] == "3"
    assert lake.plan(lake.run()) == {}
