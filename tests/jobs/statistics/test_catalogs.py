"""Tables of two catalogs with the same names: each is read, written and reported under its own catalog."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.files.definition import JOB as FILES
from hms_cache.jobs.sources.metastore_reader import MetastoreReader, in_catalog
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Catalog,
    CreateCatalogRequest,
    Database,
    Partition,
    Table,
)
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess, remote
from tests.jobs.statistics.catalog import run_job, run_statistics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(290)]

FORMATS = ("parquet", "orc", "textfile")


def run_files(spark: Any, **options: Any) -> dict[str, Any]:
    return run_job(spark, FILES, False, options)


class TwoCatalogs:
    """`hive.d` and `c2.d` with the same tables; those of `c2` have other rows, and partitions that `hive` has not."""

    def __init__(self, spark: SparkProcess, uri: str, root: Path) -> None:
        self.client = MetastoreClient(uri)
        self._root = root
        self._spark = spark
        spark.sql("create database d")
        for kind in FORMATS:
            spark.sql(
                f"create external table d.p_{kind} (a int, t string) partitioned by (day string, n int) "
                f"stored as {kind} location 'file:{root}/hive/p_{kind}'"
            )
            spark.sql(
                f"create external table d.u_{kind} (a int, t string) stored as {kind} "
                f"location 'file:{root}/hive/u_{kind}'"
            )
            spark.sql(f"insert into d.p_{kind} values (1, 'x', 'b c', 1), (2, 'yy', 'b c', 1), (3, null, 'd', 2)")
            spark.sql(f"insert into d.u_{kind} values (5, 'five')")
        self.client.call("create_catalog", CreateCatalogRequest(Catalog(name="c2", locationUri=f"file:{root}/c2")))
        database = Database(name="d", catalogName="c2", locationUri=f"file:{root}/c2/d", parameters={})
        self.client.call("create_database", database)

    def second(self) -> None:
        """Creates the tables of `c2`, from files that Spark writes elsewhere."""
        for kind in FORMATS:
            for name, keys in ((f"p_{kind}", "partitioned by (day string, n int)"), (f"u_{kind}", "")):
                made = self._root / "c2" / name
                self._spark.sql(
                    f"create external table d.made (a int, t string) {keys} stored as {kind} location 'file:{made}'"
                )
                if keys:
                    # Two spellings of one number, and no value: rows that cannot be distinguished by a key.
                    rows = "(100, 'abc', 'e f', 1), (200, 'z', 'g', 7), (300, 'zz', 'g', null)"
                else:
                    rows = "(50, 'fifty'), (60, null)"
                self._spark.sql(f"insert into d.made values {rows}")
                table: Table = copy.deepcopy(self.client.call("get_table", "d", "made"))
                parts: list[Partition] = self.client.call("get_partitions", "d", "made", -1) if keys else []
                self._spark.sql("drop table d.made")
                table.catName, table.tableName = "c2", name
                table.parameters = {"EXTERNAL": "TRUE"}
                self.client.call("create_table", table)
                for part in parts:
                    part.catName, part.tableName, part.parameters = "c2", name, {}
                if parts:
                    self.client.call("add_partitions", parts)

    def parameters(self, catalog: str, table: str) -> dict[str | None, dict[str, str]]:
        """Of a table, and of its partitions by name."""
        database = in_catalog(catalog, "d")
        found: dict[str | None, dict[str, str]] = {
            None: dict(self.client.call("get_table", database, table).parameters or {})
        }
        for one in self.client.call("get_partitions", database, table, -1) if table.startswith("p_") else ():
            found["/".join(one.values)] = dict(one.parameters or {})
        return found


@pytest.mark.soak
@pytest.mark.parametrize(
    "database_kind", ["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long])]
)
def test_each_table_is_done_in_its_catalog(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, database_kind: str
) -> None:
    server = start_server(database_kind, **{"catalog.statistics_sketches": "true"})
    spark.session(remote(tmp_path, server.uri))
    lake = TwoCatalogs(spark, server.uri, tmp_path)
    lake.second()
    before = {f"{kind}_{form}": lake.parameters("hive", f"{kind}_{form}") for kind in "pu" for form in FORMATS}

    # Of one catalog only.
    report = spark.call(run_statistics, metastore=server.uri, tables=("c2.*.*",))
    assert report["exit_status"] == 0, report
    assert {row[0] for row in report["tables"]["Plan"]} == {f"c2.d.{kind}_{form}" for kind in "pu" for form in FORMATS}
    assert report["summary"]["rows read"] == 3 * (3 + 2)
    for name, parameters in before.items():
        assert lake.parameters("hive", name) == parameters, "the other catalog's table of that name is left alone"
    for form in FORMATS:
        found = lake.parameters("c2", f"p_{form}")
        rows = {name: one["numRows"] for name, one in found.items() if name is not None}
        assert rows == {"e f/1": "1", "g/7": "1", "g/__HIVE_DEFAULT_PARTITION__": "1"}
        assert found[None]["spark.sql.statistics.numRows"] == "3"
        assert lake.parameters("c2", f"u_{form}")[None]["numRows"] == "2"
        assert high(server.uri, f"p_{form}") == 300 and high(server.uri, f"u_{form}") == 60

    # Of all of them: finished ones are not computed again, the others are.
    report = spark.call(run_statistics, metastore=server.uri)
    assert report["exit_status"] == 0, report
    assert {row[0] for row in report["tables"]["Plan"]} == {f"d.{kind}_{form}" for kind in "pu" for form in FORMATS}
    for form in FORMATS:
        assert lake.parameters("hive", f"p_{form}")[None]["spark.sql.statistics.numRows"] == "3"
        assert high(server.uri, f"p_{form}", "hive") == 3
    assert spark.call(run_statistics, metastore=server.uri)["tables"]["Plan"] == []

    # Histograms, and what changed in the second catalog.
    shutil.rmtree(tmp_path / "c2" / "p_orc" / "day=g" / "n=7")
    report = spark.call(run_statistics, metastore=server.uri, histograms=True)
    assert report["exit_status"] == 0, report
    assert [(row[0], row[5]) for row in report["tables"]["Plan"]] == [("c2.d.p_orc", 1)]
    assert lake.parameters("c2", "p_orc")["g/7"]["numRows"] == "0"
    assert any("histogram" in name for name in lake.parameters("c2", "p_orc")[None])
    lake.client.close()


def high(uri: str, table: str, catalog: str = "c2") -> int:
    """The greatest `a` in the statistics of a table as a whole."""
    reader = MetastoreReader(uri)
    try:
        [struct] = reader.tables(catalog, "d", [table])
        [found] = reader.table_statistics(struct, "hive")
    finally:
        reader.close()
    return next(int(one.statsData.longStats.highValue) for one in found.statsObj if one.colName == "a")


@pytest.mark.soak
def test_files_of_every_catalog(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> None:
    """Each difference is reported, stored and repaired under the catalog of its table."""
    server = start_server("sqlite")
    spark.session(remote(tmp_path, server.uri))
    lake = TwoCatalogs(spark, server.uri, tmp_path)
    lake.second()
    shutil.rmtree(tmp_path / "c2" / "p_orc" / "day=g" / "n=7")
    shutil.copytree(tmp_path / "c2" / "p_orc" / "day=e f", tmp_path / "c2" / "p_orc" / "day=new")
    options = {"metastore": server.uri, "output": str(tmp_path / "kept"), "tables": ("c2.*.*", "*.*")}
    report = spark.call(run_files, **options)
    differences = [row[:5] for row in report["tables"]["Differences"] if row[3] != "outdated"]
    assert differences == [
        ["c2", "d", "p_orc", "missing", "day=g/n=7"],
        ["c2", "d", "p_orc", "unregistered", "day=new/n=1"],
    ]
    assert report["summary"]["tables"] == 4 * len(FORMATS)
    again = spark.call(run_files, **options, repair="all")
    assert again["summary"]["directories written"] == 0, "nothing changed since"
    assert again["tables"]["Plan"] == [["c2.d.p_orc", 1, 1]]
    reader = MetastoreReader(server.uri)
    try:
        names = reader.partition_names(TableName("c2", "d", "p_orc"))
        assert "day=new/n=1" in names and "day=g/n=7" not in names
        assert reader.partition_names(TableName("hive", "d", "p_orc")) == ["day=b c/n=1", "day=d/n=2"]
    finally:
        reader.close()
    lake.client.close()
