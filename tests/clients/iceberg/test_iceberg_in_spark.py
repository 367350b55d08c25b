"""Iceberg's runtime in Spark, with the catalog in our metastore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException

from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess, remote
from tests.servers import ServerProcess, metastore_client

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.timeout(1200),
    pytest.mark.usefixtures("iceberg_jar"),
]

IN_SOAKS = [pytest.mark.soak, pytest.mark.short]
DATABASES = [pytest.param("sqlite", marks=IN_SOAKS), pytest.param("mariadb", marks=[pytest.mark.mariadb, *IN_SOAKS])]
ROUNDS = [pytest.param(4, marks=IN_SOAKS), pytest.param(200, marks=[pytest.mark.soak, pytest.mark.long])]


def begin(spark: SparkProcess, server: ServerProcess, scratch: Path) -> None:
    """A session whose catalog ``ice`` is Iceberg's, in this metastore."""
    spark.session(
        remote(scratch, server.uri)
        | {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hive",
            "spark.sql.catalog.ice.uri": server.uri,
            "spark.sql.catalog.ice.warehouse": f"file://{scratch / 'warehouse'}",
            "spark.sql.catalog.ice.cache-enabled": "false",
            "spark.sql.catalog.ice.clients": "1",
        }
    )


@pytest.mark.parametrize("kind", DATABASES)
def test_a_tables_life(spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, kind: str) -> None:
    server = start_server(kind)
    begin(spark, server, tmp_path)
    sql = spark.sql
    sql("CREATE NAMESPACE ice.shop COMMENT 'all orders'")
    sql("CREATE TABLE ice.shop.orders (id BIGINT, country STRING) USING iceberg PARTITIONED BY (country)")
    sql("INSERT INTO ice.shop.orders VALUES (1, 'nl'), (2, 'de')")
    sql("INSERT INTO ice.shop.orders VALUES (3, 'nl')")
    assert sql("SELECT id FROM ice.shop.orders WHERE country = 'nl' ORDER BY id") == [["1"], ["3"]]
    first = sql("SELECT snapshot_id FROM ice.shop.orders.snapshots ORDER BY committed_at")[0][0]

    sql("ALTER TABLE ice.shop.orders ADD COLUMN note STRING")
    sql("ALTER TABLE ice.shop.orders RENAME COLUMN id TO number")
    sql("ALTER TABLE ice.shop.orders ADD PARTITION FIELD bucket(4, number)")
    sql("ALTER TABLE ice.shop.orders SET TBLPROPERTIES ('colour'='red')")
    sql("INSERT OVERWRITE ice.shop.orders SELECT number + 10, country, 'n' FROM ice.shop.orders WHERE number < 3")
    sql("UPDATE ice.shop.orders SET note = 'm' WHERE number = 11")
    sql("DELETE FROM ice.shop.orders WHERE number = 12")
    assert sql("SELECT * FROM ice.shop.orders") == [["11", "nl", "m"]]
    assert sql(f"SELECT id FROM ice.shop.orders VERSION AS OF {first} ORDER BY id") == [["1"], ["2"]]
    assert ["colour", "red"] in sql("SHOW TBLPROPERTIES ice.shop.orders")

    sql("ALTER TABLE ice.shop.orders RENAME TO ice.shop.sales")
    sql("CREATE VIEW ice.shop.dutch AS SELECT number FROM ice.shop.sales WHERE country = 'nl'")
    assert sql("SELECT * FROM ice.shop.dutch") == [["11"]]
    assert sql("SHOW TABLES IN ice.shop") == [["shop", "sales", "False"]]
    assert [row[1] for row in sql("SHOW VIEWS IN ice.shop")] == ["dutch"]
    with metastore_client(server.port) as client:
        assert sorted(client.get_all_tables("shop")) == ["dutch", "sales"]
        stored = client.get_table("shop", "sales")
        assert (stored.tableType, stored.parameters["table_type"]) == ("EXTERNAL_TABLE", "ICEBERG")
        assert [column.name for column in stored.sd.cols] == ["number", "country", "note"]

    seen_by_python = HiveCatalog("ours", uri=server.uri).load_table("shop.sales")
    assert seen_by_python.scan().to_arrow().to_pylist() == [{"number": 11, "country": "nl", "note": "m"}]

    sql("DROP VIEW ice.shop.dutch")
    sql("DROP TABLE ice.shop.sales PURGE")
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))
    sql("DROP NAMESPACE ice.shop")
    assert sql("SHOW NAMESPACES IN ice") == [["default"]]


_WRITERS = """
import threading
from concurrent.futures import ThreadPoolExecutor

jvm = spark._jvm

def catalog(name, uri, warehouse):
    made = jvm.org.apache.iceberg.hive.HiveCatalog()
    made.setConf(spark._jsc.hadoopConfiguration())
    made.initialize(name, {"uri": uri, "warehouse": warehouse, "clients": "1"})
    return made

def load(catalog):
    return catalog.loadTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse("shop.orders"))

def prepare(table, round_number, writer):
    append = table.newAppend()
    append.set("round", str(round_number))
    append.set("writer", writer)
    snapshot = append.apply()
    base = table.operations().current()
    return base, jvm.org.apache.iceberg.TableMetadata.buildFrom(base).setBranchSnapshot(snapshot, "main").build()

# Not append.commit(): that reads the table once more, and rightly wins too when the other one has just committed.
def commit(table, base, changed):
    try:
        table.operations().commit(base, changed)
        return True
    except Exception as error:
        if "CommitFailedException" not in str(error):
            raise
        return False

def two_writers(uri, warehouse, rounds):
    together = threading.Barrier(2, timeout=120)

    def write(name):
        ours, won = catalog(name, uri, warehouse), []
        for round_number in range(rounds):
            together.wait()
            table = load(ours)
            prepared = prepare(table, round_number, name)
            together.wait()
            if commit(table, *prepared):
                won.append([str(round_number), name])
        return won

    with ThreadPoolExecutor(2) as pool:
        return [won for each in pool.map(write, ["a", "b"]) for won in each]
"""

_COMMITTED = "SELECT summary['round'], summary['writer'] FROM ice.shop.orders.snapshots ORDER BY committed_at"


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("kind", DATABASES)
def test_of_two_writers_without_locks_one_wins_each_round(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, kind: str, rounds: int
) -> None:
    """Only the metastore decides, by comparing the writer's expected value with the stored one when it alters."""
    server = start_server(kind)
    begin(spark, server, tmp_path)
    spark.sql("CREATE NAMESPACE ice.shop")
    spark.sql(
        "CREATE TABLE ice.shop.orders (id BIGINT) USING iceberg TBLPROPERTIES ("
        "'commit.retry.num-retries'='0', 'engine.hive.lock-enabled'='false')"
    )
    spark.python(_WRITERS)
    arguments = f"{server.uri!r}, {f'file://{tmp_path}/warehouse'!r}, {rounds}"
    won: list[list[str]] = spark.python(f"result = two_writers({arguments})")
    won.sort(key=lambda pair: int(pair[0]))
    assert [int(round_number) for round_number, _ in won] == list(range(rounds)), "one winner a round"
    assert spark.sql(_COMMITTED) == won
    assert "cmd=lock" not in server.log


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("kind", DATABASES)
def test_of_two_writers_with_locks_one_wins_each_round(
    spark: SparkProcess, start_server: ServerStarter, tmp_path: Path, kind: str, rounds: int
) -> None:
    """One of Iceberg's Java and one of PyIceberg: both take the metastore's lock around a commit.

    Two of Java's in one JVM would wait for a lock of their own before they request the metastore's.
    """
    server = start_server(kind)
    begin(spark, server, tmp_path)
    spark.sql("CREATE NAMESPACE ice.shop")
    spark.sql("CREATE TABLE ice.shop.orders (id BIGINT) USING iceberg TBLPROPERTIES ('commit.retry.num-retries'='0')")
    spark.python(_WRITERS)
    warehouse = f"file://{tmp_path}/warehouse"
    spark.python(f"ours = catalog('java', {server.uri!r}, {warehouse!r})")
    quickly = {"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.05", "lock-check-retries": "500"}
    python = HiveCatalog("python", uri=server.uri, warehouse=warehouse, **quickly)
    won: list[list[str]] = []
    for number in range(rounds):
        spark.python(f"table = load(ours); prepared = prepare(table, {number}, 'java')")
        table = python.load_table("shop.orders")
        spark.tell(do="python", source="result = commit(table, *prepared)")
        python_won = _append(table, number)
        java_won = spark.answer()
        assert python_won != java_won, f"round {number}: Python {python_won}, Java {java_won}"
        won.append([str(number), "java" if java_won else "python"])
    assert spark.sql(_COMMITTED) == won


def _append(table: Any, number: int) -> bool:
    """Whether this empty append of PyIceberg succeeded."""
    rows = table.schema().as_arrow().empty_table()
    try:
        table.append(rows, snapshot_properties={"round": str(number), "writer": "python"})
    except CommitFailedException:
        return False
    return True
