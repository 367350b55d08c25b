"""Transactional tables that Hive 4.0.1's engine wrote, deleted from and updated: the job writes the same as Hive's own
ANALYZE, and Hive answers queries from it correctly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.sources.metastore_reader import CAPABILITIES
from hms_cache.jobs.statistics.data_files import NESTED_FILES
from hms_cache.metadata.statistics_values import ColumnValues, values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import GetTableRequest, PartitionsStatsRequest, TableStatsRequest
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
        report = self.report(**options)
        assert report["exit_status"] == 0, report["tables"]["Failures"]
        return report

    def report(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._spark.call(run_statistics, metastore=self.uri, tables=("d.*",), **options)
        return found

    def plan(self, report: dict[str, Any]) -> dict[str, int]:
        return {row[0]: row[5] for row in report["tables"]["Plan"]}

    def statistics(self, table: str, names: Sequence[str] = ("a", "t", "n", "d", "x")) -> Found:
        struct = self.client.call("get_table_req", GetTableRequest("d", table, CAPABILITIES)).table
        if not struct.partitionKeys:
            stats = self.client.call(
                "get_table_statistics_req", TableStatsRequest("d", table, list(names), engine="hive")
            )
            return {None: (dict(struct.parameters), {one.colName: values_of(one) for one in stats.tableStats})}
        parts = self.client.call("get_partitions", "d", table, -1)
        units = [f"p={one.values[0]}" for one in parts]
        stats = self.client.call(
            "get_partitions_statistics_req", PartitionsStatsRequest("d", table, list(names), units, engine="hive")
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
    """The differences between two results for a table."""
    found = []
    for unit in theirs.keys() | ours.keys():
        (mine, my_columns), (other, columns) = ours[unit], theirs[unit]
        for name in ("numRows", "numFiles", "totalSize") if of_files else ("numRows",):
            if mine.get(name) != other.get(name):
                found.append(f"{unit}: {name} {mine.get(name)}, by Hive {other.get(name)}")
        for name, values in columns.items():
            own = my_columns[name]
            if values.nulls == int(other["numRows"]):
                # Hive counts one value where there is none; its `HyperLogLog` never returns 0. Ours is 0, as in Spark
                # and Trino.
                values.distinct = 0
            for figure in ("low", "high", "nulls", "distinct", "maximum_length"):
                if getattr(own, figure) != getattr(values, figure):
                    found.append(f"{unit}.{name}: {figure} {getattr(own, figure)}, by Hive {getattr(values, figure)}")
            if own.average_length != pytest.approx(values.average_length, abs=1e-3):
                found.append(f"{unit}.{name}: {own.average_length}, by Hive {values.average_length}")
    return found


def test_hive_answers_as_it_reads(lake: Lake, tmp_path: Path) -> None:
    """What Spark, Arrow and Hive might read differently: renamed ORC columns, days before 1582, infinite numbers, NaN
    and numbers of more decimal places than the database stores, files in directories of a UNION ALL. No answer from
    statistics differs from the rows."""
    place = f"stored as orc location 'file:{tmp_path}/ext"
    columns = "a int, b int, d date, e date, x double, y double, z double"
    infinite, no_number = (f"cast('{text}' as double)" for text in ("Infinity", "NaN"))
    values = f"select 1, 100, date '0001-01-01', date '2024-01-01', {infinite}, 0.00001, {no_number}"
    more = "select 2, 200, date '2024-02-01', date '2024-03-01', 0.5, 2.5, 3.5"
    for name, kind in (("of_acid", FULL), ("of_inserts", INSERT_ONLY), ("external_one", None)):
        what = f"external table d.{name} ({columns}) {place}/{name}'" if kind is None else ""
        lake.told(f"create {what or f'table d.{name} ({columns}) stored as orc {kind}'}")
        lake.told(f"insert into d.{name} {values}")
        lake.told(f"insert into d.{name} {more}")
        # The names of the first two columns are swapped now.
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            lake.told(f"alter table d.{name} change {old} {new} int")
        lake.told(f"insert into d.{name} select 3, 300, date '2023-01-01', null, -1.5, null, 2.5")
    lake.told("delete from d.of_acid where b = 2")
    lake.told("set hive.merge.tezfiles=false")
    lake.told(f"create external table d.united ({columns}) {place}/united'")
    lake.told(f"insert into d.united {values} union all {more}")
    lake.told(f"create external table d.headed ({columns}) row format delimited fields terminated by ','")
    lake.told("alter table d.headed set tblproperties('skip.header.line.count'='1')")
    lake.told(f"insert into d.headed {more}")

    report = lake.report(all=True)
    is_nested = any(path.parent.name.startswith("HIVE_UNION_SUBDIR") for path in (tmp_path / "ext/united").rglob("*"))
    assert is_nested
    assert [(row[0], row[2]) for row in report["tables"]["Failures"]] == [("d.united", NESTED_FILES)]
    assert any(row[0] == "d.headed" and "not rows" in row[1] for row in report["tables"]["Notes"])
    assert lake.statistics("of_acid", ["a", "b"])[None][1]["a"].high == 300

    # Otherwise, the second answer would be the first one, cached by Hive.
    lake.told("set hive.query.results.cache.enabled=false")
    queries = [f"min({name}), max({name}), count({name})" for name in ("a", "b", "d", "e", "x", "y", "z")]
    for table in ("of_acid", "of_inserts", "external_one", "united", "headed"):
        for what in ("count(*)", *queries):
            query = f"select {what} from d.{table}"
            if "(z)" in what and table != "headed":
                # What Hive finds depends on the order of the rows; a NaN that comes first remains.
                lake.told("set hive.compute.query.using.stats=true")
                assert "TableScan" in "\n".join(lake.told(f"explain {query}")), query
                continue
            found = []
            for use in ("true", "false"):
                lake.told(f"set hive.compute.query.using.stats={use}")
                found.append(lake.told(query)[-1])
            assert found[0] == found[1], (query, found)
    lake.told("set hive.compute.query.using.stats=true")
    # Exact claims are answered without a task.
    for table in ("of_acid", "of_inserts", "external_one"):
        assert answers(lake, table)[1], f"{table}: Hive reads"


def answers(lake: Lake, table: str) -> tuple[list[str], bool]:
    """Hive's answer, and whether it was given without reading."""
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
    # Nothing that Hive collected automatically counts.
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

    # Changes are detected, and only they are read.
    lake.told("delete from d.acid where a = 30")
    lake.told(insert("ins_p", ROWS[:1], 2))
    lake.told(f"insert overwrite table d.ins {insert('x', ROWS[3:], None).partition('d.x ')[2]}")
    assert lake.plan(lake.run()) == {"d.acid": 1, "d.ins": 1, "d.ins_p": 1}
    assert answers(lake, "acid") == (["2\t1\t2"], True)
    assert answers(lake, "ins") == (["1\t4\t4"], True)
    assert answers(lake, "ins_p") == (["5\t1\t30"], True)
    assert lake.statistics("ins_p")["p=2"][0]["numRows"] == "3"
    assert lake.plan(lake.run()) == {}
