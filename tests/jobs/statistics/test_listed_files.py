"""Rows are those of the listed files, however Spark reads a table; otherwise, there is no row count.

Spark lists directories itself, with its own drivers, settings and options, and treats what it does not see as missing.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import SparkSession

from hms_cache.client import MetastoreClient
from hms_cache.jobs.statistics.rows.listed_files import OTHER_FILES
from hms_cache.store.rows.parameters import are_basic_statistics_accurate
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess, remote
from tests.jobs.month import hadoop_aws
from tests.jobs.statistics.catalog import run_statistics
from tests.moto_server import ObjectStore, object_store

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(290)]


def tables_of_files(spark: SparkSession, *, elsewhere: str) -> None:
    """Which Spark reads with its own reader, and through Hive's classes."""
    spark.sql("create database d")
    for name, how in {
        "plain": "using parquet",
        "copied": "using orc",
        "hidden": "using parquet",
        "chosen": "using parquet options (pathGlobFilter '*.parquet')",
        "moved": "using parquet",
        "lines": "stored as textfile",
        "copied_lines": "stored as textfile",
    }.items():
        spark.sql(f"create table d.{name} (a string, b int) {how}")
        spark.sql(f"insert into d.{name} values ('x', 1), ('y', 2)")
    spark.sql("create table d.csv (a string, b int) using csv")
    spark.sql("create table d.lists (a array<string>) stored as parquet")
    for name, how in {
        "parted": "using parquet",
        "parted_orc": "using orc",
        "parted_lines": "stored as textfile",
    }.items():
        columns, keys = _split(how)
        spark.sql(f"create table d.{name} ({columns}) {how} partitioned by ({keys})")
        spark.sql(f"insert into d.{name} select concat('{'x' * 500}', id), id % 3 + 1 from range(300)")
    spark.sql(f"create table d.external (a string, b int) using parquet location '{elsewhere}'")
    spark.sql("insert into d.external values ('x', 1)")


def _split(how: str) -> tuple[str, str]:
    """Columns and keys, as Spark's tables, and those of Hive's, are created with them."""
    return ("a string, p int", "p") if how.startswith("using") else ("a string", "p int")


def add_partition(spark: SparkSession, *, tables: list[str]) -> None:
    for table in tables:
        spark.sql(f"insert into {table} values ('z', 4)")


def test_what_spark_does_not_see_is_not_claimed_to_be_no_rows(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path
) -> None:
    server = start_server("sqlite", **{"warehouse.files": "leave"})
    spark.session(remote(tmp_path, server.uri))
    spark.call(tables_of_files, elsewhere=f"file:{tmp_path / 'elsewhere'}")
    parted = ["parted", "parted_orc", "parted_lines"]
    with MetastoreClient(server.uri) as client:

        def place(table: str) -> Path:
            found: Table = client.call("get_table", "d", table)
            return Path(found.sd.location.removeprefix("file:"))

        def rows() -> dict[str, str | None]:
            """Row counts claimed as exact, by table or partition."""
            known = set(client.call("get_all_tables", "d")) - {"csv", "lists", *parted}
            found = {name: client.call("get_table", "d", name) for name in known}
            for name in parted:
                for one in client.call("get_partitions", "d", name, -1):
                    found[f"{name}/{one.values[0]}"] = one
            return {
                name: one.parameters.get("numRows") if are_basic_statistics_accurate(one.parameters) else None
                for name, one in found.items()
            }

        def copy_in(directory: Path, name: str) -> None:
            [one] = (file for file in directory.iterdir() if file.is_file() and file.name[0] not in "._")
            shutil.copyfile(one, directory / name)

        for table in ("copied", "copied_lines"):
            copy_in(place(table), "x._COPYING_")
        copy_in(place("hidden"), "_a=1.parquet")
        copy_in(place("chosen"), "x.lines")
        for table in parted:
            copy_in(place(table) / "p=2", "x._COPYING_")
        # Hive's ALTER TABLE … SET LOCATION: Spark still reads the location in its own property.
        moved = client.call("get_table", "d", "moved")
        shutil.copytree(place("moved"), tmp_path / "moved")
        copy_in(tmp_path / "moved", "x.parquet")
        moved.sd.location = f"file:{tmp_path / 'moved'}"
        client.call("alter_table", "d", "moved", moved)

        report = spark.call(run_statistics, metastore=server.uri)
        failed = {(row[0].rpartition(".")[2], row[1]): row[2] for row in report["tables"]["Failures"]}
        others = {(name, None) for name in ("copied", "copied_lines", "hidden", "chosen", "moved")}
        others |= {(name, "p=2") for name in parted}
        assert failed == dict.fromkeys(others, OTHER_FILES)
        # Omitted files are reported.
        assert {row[0] for row in report["tables"]["Notes"] if "left out" in row[1]} == {"d.csv", "d.lists"}
        exact: dict[str, str | None] = dict.fromkeys(("plain", "lines"), "2") | {"external": "1"}
        exact |= {f"{name}/{value}": "100" for name in parted for value in ("1", "3")}
        nothing = dict.fromkeys((name for name, _ in others if name not in parted), None)
        nothing |= {f"{name}/2": None for name in parted}
        assert rows() == exact | nothing

        # With a filter: nothing of the rest is read.
        spark.call(add_partition, tables=[f"d.{name}" for name in parted])
        report = spark.call(run_statistics, metastore=server.uri)
        failed = {(row[0].rpartition(".")[2], row[1]): row[2] for row in report["tables"]["Failures"]}
        assert failed == dict.fromkeys(others, OTHER_FILES)
        exact |= {f"{name}/4": "1" for name in parted}
        assert rows() == exact | nothing

        for file in [one for table in parted for one in place(table).rglob("x._COPYING_")]:
            file.unlink()
        for table, name in (("copied", "x._COPYING_"), ("copied_lines", "x._COPYING_"), ("hidden", "_a=1.parquet")):
            (place(table) / name).unlink()
        (place("chosen") / "x.lines").unlink()
        moved = client.call("get_table", "d", "moved")
        moved.sd.serdeInfo.parameters["path"] = moved.sd.location
        client.call("alter_table", "d", "moved", moved)
        # If nothing was omitted, it has its rows: the option selects all remaining files.
        report = spark.call(run_statistics, metastore=server.uri)
        assert report["exit_status"] == 0, report
        exact |= dict.fromkeys(("copied", "copied_lines", "hidden", "chosen"), "2") | {"moved": "4"}
        assert rows() == exact | {f"{name}/2": "100" for name in parted}


# ---- two stores of objects


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ObjectStore, ObjectStore]]:
    """The endpoint in the environment, and another one."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven for fetching Hadoop's S3A")
    (tmp_path / "other").mkdir()
    with object_store(tmp_path) as made, object_store(tmp_path / "other") as other:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "any")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield made, other


HOW = {
    "own": "using parquet",
    "parquet": "stored as parquet",
    "orc": "stored as orc",
    "lines": "row format delimited fields terminated by ',' stored as textfile",
}
ROWS = {"1": 3, "2": 5}
"""By partition."""


def tables_of_objects(spark: SparkSession) -> None:
    spark.sql("create database d location 's3a://lake/w'")
    for name, how in HOW.items():
        external = "" if name == "own" else "external"
        spark.sql(f"create {external} table d.{name} (a string) {how} location 's3a://lake/w/{name}'")
        columns, keys = _split(how)
        place = f"location 's3a://lake/w/{name}_p'"
        spark.sql(f"create {external} table d.{name}_p ({columns}) {how} partitioned by ({keys}) {place}")
        for value in ROWS:
            spark.sql(f"alter table d.{name}_p add partition (p={value})")


def _content(table: str, rows: int) -> bytes:
    """A file with this many rows."""
    values, file = pa.table({"a": [f"{number:09}" for number in range(rows)]}), io.BytesIO()
    if table in ("own", "parquet"):
        parquet.write_table(values, file)
    elif table == "orc":
        orc.write_table(values, file)
    else:
        file.write(b"x\n" * rows)
    return file.getvalue()


def _fill(store: ObjectStore, more: int = 0) -> None:
    """Each table and partition has one file; with this many rows too many."""
    store.make_bucket("lake")
    for table in HOW:
        store.write("lake", f"w/{table}/f", _content(table, ROWS["1"] + more))
        for value, rows in ROWS.items():
            store.write("lake", f"w/{table}_p/p={value}/f", _content(table, rows + more))


@pytest.mark.parametrize("read_by_spark", [True, False])
def test_a_store_that_spark_takes_for_another(
    start_server: ServerStarter, stores: tuple[ObjectStore, ObjectStore], tmp_path: Path, read_by_spark: bool
) -> None:
    """Its bucket exists: it is empty, or a copy with other rows."""
    store, other = stores
    _fill(store)
    other.make_bucket("lake")
    server = start_server("sqlite", **{"warehouse.files": "leave"})
    read_here = set() if read_by_spark else {"parquet", "orc"}  # without Spark, from where they were listed
    spark = SparkProcess(tmp_path, tuple(hadoop_aws.fetch()))
    s3a = "spark.hadoop.fs.s3a"
    conf = remote(tmp_path, server.uri) | {
        f"{s3a}.path.style.access": "true",
        f"{s3a}.access.key": "any",
        f"{s3a}.secret.key": "any",
        f"{s3a}.endpoint.region": "us-east-1",
        f"{s3a}.attempts.maximum": "1",
        f"{s3a}.impl.disable.cache": "true",  # the second session has another endpoint
    }
    try:
        with MetastoreClient(server.uri) as client:

            def rows() -> dict[str, str]:
                """Row counts, by table or partition; none where there are none."""
                found = {name: client.call("get_table", "d", name) for name in HOW}
                for name in HOW:
                    for one in client.call("get_partitions", "d", f"{name}_p", -1):
                        found[f"{name}/{one.values[0]}"] = one
                return {name: one.parameters["numRows"] for name, one in found.items() if "numRows" in one.parameters}

            right = {name: str(ROWS["1"]) for name in HOW}
            right |= {f"{name}/{value}": str(count) for name in HOW for value, count in ROWS.items()}
            spark.session(conf | {f"{s3a}.endpoint": other.endpoint})
            spark.call(tables_of_objects)
            for _ in ("an empty bucket", "a copy with other rows"):
                report = spark.call(run_statistics, metastore=server.uri, read_by_spark=read_by_spark)
                reasons = {row[2] for row in report["tables"]["Failures"]}
                assert (report["exit_status"], reasons) == (3, {OTHER_FILES}), report
                assert rows() == {name: count for name, count in right.items() if name.partition("/")[0] in read_here}
                _fill(other, more=1)
            spark.session(conf | {f"{s3a}.endpoint": store.endpoint})
            report = spark.call(run_statistics, metastore=server.uri, read_by_spark=read_by_spark)
            assert report["exit_status"] == 0, report
            assert rows() == right, report
    finally:
        spark.close()
