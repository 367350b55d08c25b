"""Delta Lake, Apache Hudi and Apache Paimon in Spark 3.5: what they store in the metastore about their tables.

Their catalogs and Hudi's Hive sync use it in ways of their own. None of their calls may meet an internal error of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import ShowLocksRequest

from tests.clients.conftest import ServerStarter
from tests.clients.spark.formats import DELTA, HUDI, JARS, PAIMON, SPARK
from tests.clients.spark.releases import pyspark
from tests.clients.spark.session import SparkProcess, remote
from tests.clients.trino.engines import Engine
from tests.protocol.releases import jar
from tests.servers import ServerProcess, metastore_client

pytestmark = [
    *[getattr(pytest.mark, name) for name in ("soak", "long", "java", "spark")],
    pytest.mark.timeout(1800),
]

Start = Callable[[dict[str, str]], ServerProcess]


@pytest.fixture
def spark_3(tmp_path: Path) -> Iterator[SparkProcess]:
    """Each test has its own JVM: after one with Hudi's sync, Hudi's writes of the next session connect to what has
    ended with the former."""
    directory = tmp_path / "spark3"
    directory.mkdir()
    process = SparkProcess(directory, tuple(map(jar, JARS)), pyspark(SPARK))
    yield process
    process.close()


@pytest.fixture
def start(spark_3: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> Iterator[Start]:
    """Starts a server, and a session of Spark with these settings on it."""
    started = []

    def start(conf: dict[str, str]) -> ServerProcess:
        server = start_server("sqlite", **{"warehouse.directory": f"file:{tmp_path}/warehouse"})
        started.append(server)
        spark_3.session(remote(tmp_path, server.uri) | {k: v.replace("{uri}", server.uri) for k, v in conf.items()})
        return server

    yield start
    for server in started:
        assert Engine.refused_calls(server) == []
        assert " ERROR " not in server.log


def test_delta_lake(spark_3: SparkProcess, start: Start, tmp_path: Path) -> None:
    server = start(DELTA)
    for statement in (
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id BIGINT, v STRING COMMENT 'the value', p STRING) USING delta PARTITIONED BY (p)"
        " COMMENT 'of delta' TBLPROPERTIES ('Owner.Team'='Data')",
        "INSERT INTO t VALUES (1,'a','x'),(2,'b','y')",
        "INSERT OVERWRITE t PARTITION (p='x') VALUES (3,'c')",
        "MERGE INTO t USING (SELECT 2L id, 'm' v, 'y' p) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        "ALTER TABLE t ADD COLUMNS (extra DOUBLE COMMENT 'more', st STRUCT<a: INT, B: ARRAY<STRING>>)",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode'='name',"
        " 'delta.minReaderVersion'='2', 'delta.minWriterVersion'='5')",
        "ALTER TABLE t RENAME COLUMN extra TO More",
        "ALTER TABLE t DROP COLUMN More",
        f"CREATE TABLE e (id INT) USING delta LOCATION '{tmp_path}/e'",
        f"CREATE OR REPLACE TABLE e USING delta LOCATION '{tmp_path}/e' AS SELECT 7 AS other",
        "ALTER TABLE e RENAME TO e2",
        "CREATE TABLE par (id INT, p INT) USING parquet PARTITIONED BY (p)",
        "INSERT INTO par VALUES (1,1),(2,2)",
        "CONVERT TO DELTA d.par",
    ):
        spark_3.sql(statement)
    assert sorted(spark_3.sql("SELECT id, v, p FROM t")) == [["2", "m", "y"], ["3", "c", "x"]]
    assert spark_3.sql("SELECT * FROM e2") == [["7"]]
    assert sorted(spark_3.sql("SELECT * FROM par")) == [["1", "1"], ["2", "2"]]
    with metastore_client(server.port) as client:
        tables = {name: client.get_table("d", name) for name in client.get_all_tables("d")}
    assert {name: table.tableType for name, table in tables.items()} == {
        "t": "MANAGED_TABLE",
        "e2": "EXTERNAL_TABLE",
        "par": "MANAGED_TABLE",
    }
    assert {table.parameters["spark.sql.sources.provider"].lower() for table in tables.values()} == {"delta"}
    spark_3.sql("DROP TABLE e2")
    spark_3.sql(f"CREATE TABLE e3 USING delta LOCATION '{tmp_path}/e'")
    assert spark_3.sql("SELECT * FROM e3") == [["7"]]
    spark_3.sql("DROP DATABASE d CASCADE")
    assert spark_3.sql("SHOW DATABASES") == [["default"]]


def test_hudi(spark_3: SparkProcess, start: Start, tmp_path: Path) -> None:
    server = start(HUDI)
    for statement in (
        "CREATE DATABASE h",
        "USE h",
        "SET hoodie.metadata.enable=false",
        "SET hoodie.upsert.shuffle.parallelism=1",
        "CREATE TABLE cow (id INT, name STRING COMMENT 'who', ts BIGINT, dt STRING) USING hudi"
        " TBLPROPERTIES (type='cow', primaryKey='id', preCombineField='ts') PARTITIONED BY (dt)",
        "INSERT INTO cow VALUES (1,'a',10,'2024-01-01'),(2,'b',10,'2024-01-02'),(3,'c',10,'2024-01-03')",
        "UPDATE cow SET name='z' WHERE id=1",
        "ALTER TABLE cow ADD COLUMNS (extra DOUBLE)",
        "ALTER TABLE cow DROP PARTITION (dt='2024-01-03')",
        "ALTER TABLE cow RENAME TO cow2",
        f"CREATE TABLE mor (id INT, name STRING, ts BIGINT) USING hudi LOCATION '{tmp_path}/mor'"
        " TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='ts')",
        "INSERT INTO mor VALUES (1,'a',1)",
        "UPDATE mor SET name='b' WHERE id=1",
        "ANALYZE TABLE cow2 COMPUTE STATISTICS",
    ):
        spark_3.sql(statement)
    assert sorted(spark_3.sql("SELECT id, name FROM cow2")) == [["1", "z"], ["2", "b"]]
    assert spark_3.sql("SELECT id, name FROM mor_rt") == [["1", "b"]]
    with metastore_client(server.port) as client:
        assert sorted(client.get_all_tables("h")) == ["cow2", "mor", "mor_ro", "mor_rt"]
        assert sorted(client.get_partition_names("h", "cow2", -1)) == ["dt=2024-01-01", "dt=2024-01-02"]
        assert "last_commit_time_sync" in client.get_table("h", "mor_rt").parameters
    spark_3.sql("DROP DATABASE h CASCADE")


def write_of_hudi(
    spark: Any, path: str, uri: str, rows: list[list[Any]], schema: str, more: dict[str, str], mode: str = "append"
) -> None:
    """A write from Spark with its Hive sync over the metastore's protocol."""
    prefix = "hoodie.datasource.hive_sync."
    options = {
        "hoodie.table.name": "synced",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "dt",
        "hoodie.metadata.enable": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.delete.shuffle.parallelism": "1",
        f"{prefix}enable": "true",
        f"{prefix}mode": "hms",
        f"{prefix}metastore.uris": uri,
        f"{prefix}database": "hs",
        f"{prefix}table": "synced",
        f"{prefix}partition_fields": "dt",
        f"{prefix}partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
        f"{prefix}filter_pushdown_enabled": "true",
        f"{prefix}sync_comment": "true",
        f"{prefix}table_properties": "Some.Key=Value",
    }
    data = spark.createDataFrame([tuple(row) for row in rows], schema)
    data.write.format("hudi").options(**(options | more)).mode(mode).save(path)


def test_hudis_sync_and_locks(spark_3: SparkProcess, start: Start, tmp_path: Path) -> None:
    server = start(HUDI)
    first, second = "id int, name string, ts long, dt string", "id int, name string, ts long, extra double, dt string"

    def write(rows: list[list[Any]], schema: str, mode: str = "append", **more: str) -> None:
        options = {f"hoodie.{name.replace('__', '.')}": value for name, value in more.items()}
        where = {"path": f"file:{tmp_path}/synced", "uri": server.uri}
        spark_3.call(write_of_hudi, rows=rows, schema=schema, more=options, mode=mode, **where)

    write([[1, "a", 1, "p1"], [2, "b", 1, "p2"]], first, "overwrite")
    write([[3, "c", 1, "p3"], [1, "z", 2, "p1"]], first)
    write([[4, "d", 1, 1.5, "p3"]], second)
    drop = {"datasource__write__operation": "delete_partition", "datasource__write__partitions__to__delete": "p1"}
    write([[1, "", 1, 1.5, "p1"]], second, **drop)
    write(
        [[5, "e", 1, 1.5, "p4"]],
        second,
        write__concurrency__mode="optimistic_concurrency_control",
        cleaner__policy__failed__writes="LAZY",
        write__lock__provider="org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        write__lock__hivemetastore__database="hs",
        write__lock__hivemetastore__table="synced",
        write__lock__hivemetastore__uris=server.uri,
    )
    with metastore_client(server.port) as client:
        assert {tuple(p.values): p.sd.location for p in client.get_partitions("hs", "synced", -1)} == {
            (name,): f"file:{tmp_path}/synced/{name}" for name in ("p2", "p3", "p4")
        }
        table = client.get_table("hs", "synced")
        assert [column.name for column in table.sd.cols][-1] == "extra"
        assert [column.name for column in client.get_partition("hs", "synced", ["p2"]).sd.cols][-1] == "extra"
        assert table.parameters["Some.Key"] == "Value"
        assert client.getCounters()["lock"] and client.getCounters()["unlock"]
    assert spark_3.sql("SELECT id, extra FROM hs.synced WHERE dt = 'p4'") == [["5", "1.5"]]


def test_paimon(spark_3: SparkProcess, start: Start, tmp_path: Path) -> None:
    ours = {"uri": "{uri}", "warehouse": f"file:{tmp_path}/warehouse"}
    server = start(PAIMON | {f"spark.sql.catalog.paimon.{name}": value for name, value in ours.items()})
    for statement in (
        "CREATE DATABASE paimon.d",
        "USE paimon.d",
        "CREATE TABLE t (id INT, name STRING COMMENT 'who', dt STRING) PARTITIONED BY (dt) COMMENT 'of Paimon'"
        " TBLPROPERTIES ('primary-key'='id,dt', 'bucket'='1', 'metastore.partitioned-table'='true',"
        " 'hive.Owner.Team'='Data')",
        "INSERT INTO t VALUES (1,'a','2024-01-01'),(2,'b','2024-01-02'),(3,'c','2024-01-03')",
        "INSERT INTO t VALUES (1,'z','2024-01-01')",
        "DELETE FROM t WHERE id = 3",
        "UPDATE t SET name = 'y' WHERE id = 2",
        "ALTER TABLE t ADD COLUMNS (extra DOUBLE COMMENT 'more', st STRUCT<a: INT, b: ARRAY<STRING>>)",
        "ALTER TABLE t RENAME COLUMN extra TO more",
        "ALTER TABLE t DROP COLUMN st",
        "ALTER TABLE t SET TBLPROPERTIES ('snapshot.num-retained.max'='20')",
        "ALTER TABLE t RENAME TO t2",
        "INSERT INTO t2 VALUES (4,'d','2024-01-04',1.5)",
        "CREATE TABLE tagged (id INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1',"
        " 'metastore.tag-to-partition'='dt', 'metastore.tag-to-partition.preview'='none')",
        "INSERT INTO tagged VALUES (1)",
        "CALL paimon.sys.create_tag(table => 'd.tagged', tag => '2024-01-01', snapshot => 1)",
        "INSERT INTO tagged VALUES (2)",
        "CALL paimon.sys.create_tag(table => 'd.tagged', tag => '2024-01-02', snapshot => 2)",
        "CALL paimon.sys.delete_tag(table => 'd.tagged', tag => '2024-01-01')",
    ):
        spark_3.sql(statement)
    assert sorted(spark_3.sql("SELECT id, name, more FROM t2")) == [
        ["1", "z", "None"],
        ["2", "y", "None"],
        ["4", "d", "1.5"],
    ]
    assert sorted(row[1] for row in spark_3.sql("SHOW TABLES")) == ["t2", "tagged"]
    with metastore_client(server.port) as client:
        assert sorted(client.get_all_tables("d")) == ["t2", "tagged"]
        assert client.get_partition_names("d", "t2", -1) == [f"dt=2024-01-0{day}" for day in (1, 2, 3, 4)]
        assert client.get_partition_names("d", "tagged", -1) == ["dt=2024-01-02"]
        table = client.get_table("d", "t2")
        assert [column.name for column in table.sd.cols] == ["id", "name", "more"]
        assert table.parameters["Owner.Team"] == "Data"
        assert client.getCounters()["lock"] and client.getCounters()["unlock"]
        assert client.show_locks(ShowLocksRequest()).locks == []
    spark_3.sql("DROP TABLE tagged")
    spark_3.sql("DROP DATABASE paimon.d CASCADE")
    assert spark_3.sql("SHOW DATABASES IN paimon") == [["default"]]
