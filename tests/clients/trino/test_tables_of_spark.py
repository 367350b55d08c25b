"""Trino's Delta Lake and Hudi connectors on tables that Spark 3.5 has written and added to our metastore."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.spark.formats import DELTA, HUDI, JARS, SPARK
from tests.clients.spark.releases import pyspark
from tests.clients.spark.session import SparkProcess, remote
from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine, EngineLookup
from tests.protocol.releases import jar
from tests.servers import metastore_client

pytestmark = [*MARKS, pytest.mark.spark]

_NUMBERS = itertools.count(1)


@pytest.fixture
def engine(engines: EngineLookup) -> Iterator[Engine]:
    """Not with Hive's metastore: since 4.0.1, it lacks the calls of Spark's client."""
    found = engines("sqlite")
    yield found
    assert found.metastore is not None
    assert found.refused_calls(found.metastore) == []
    assert " ERROR " not in found.metastore.log


@pytest.fixture
def uri(engine: Engine) -> str:
    assert engine.metastore is not None
    return engine.metastore.uri


@pytest.fixture
def schema() -> str:
    """The name of a schema that does not exist yet."""
    return f"of_spark{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def spark_3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    process = SparkProcess(tmp_path_factory.mktemp("spark3"), tuple(map(jar, JARS)), pyspark(SPARK))
    yield process
    process.close()


def run(spark: SparkProcess, schema: str, *statements: str) -> None:
    for statement in (f"CREATE DATABASE IF NOT EXISTS {schema}", f"USE {schema}", *statements):
        spark.sql(statement)


def table_of(trino: Session, catalog: str, schema: str, name: str) -> dict[str, str]:
    """Columns and their types."""
    rows = trino.rows(
        f"SELECT column_name, data_type FROM {catalog}.information_schema.columns"
        f" WHERE table_schema = '{schema}' AND table_name = '{name}'"
    )
    return {row[0]: row[1] for row in rows}


def test_delta_tables(spark_3: SparkProcess, trino: Session, schema: str, uri: str, tmp_path: Path) -> None:
    spark_3.session(remote(tmp_path, uri) | DELTA)
    run(
        spark_3,
        schema,
        "CREATE TABLE t (id BIGINT, V STRING COMMENT 'the value', p DATE) USING delta PARTITIONED BY (p)"
        " COMMENT 'of delta'",
        "INSERT INTO t VALUES (1, 'a', DATE'2024-01-01'), (2, 'b', DATE'2024-01-02')",
        "MERGE INTO t USING (SELECT 2L id, 'm' V) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET V = s.V",
        f"CREATE TABLE e USING delta LOCATION '{tmp_path}/e' AS SELECT 1 AS One, named_struct('A', 1) AS s",
        "ALTER TABLE e SET TBLPROPERTIES ('delta.columnMapping.mode'='name',"
        " 'delta.minReaderVersion'='2', 'delta.minWriterVersion'='5')",
        "ALTER TABLE e RENAME COLUMN One TO Two",
        "ALTER TABLE e RENAME TO E2",
        "CREATE VIEW of_spark AS SELECT id, V FROM t WHERE id > 1",
    )
    place = f"delta.{schema}"
    assert sorted(trino.column(f"SHOW TABLES FROM {place}")) == ["e2", "of_spark", "t"]
    assert trino.rows(f"SELECT * FROM {place}.t ORDER BY id") == [[1, "a", "2024-01-01"], [2, "m", "2024-01-02"]]
    assert trino.rows(f"SELECT id FROM {place}.T WHERE p = DATE '2024-01-02'") == [[2]]
    assert trino.rows(f"SELECT two, s.a FROM {place}.e2") == [[1, 1]]
    assert table_of(trino, "delta", schema, "t") == {"id": "bigint", "v": "varchar", "p": "date"}

    # Trino's own schema and statistics in the metastore change nothing for Spark.
    trino.execute(f"ANALYZE {place}.t")
    kept = ["trino_last_transaction_version", "trino_metadata_schema_string"]
    with metastore_client(int(uri.rpartition(":")[2])) as client:
        while not set(kept) <= set((table := client.get_table(schema, "t")).parameters):
            pass
    assert table.parameters["spark.sql.sources.provider"] == "delta"
    spark_3.sql("ALTER TABLE t ADD COLUMNS (extra DOUBLE)")
    spark_3.sql("INSERT INTO t VALUES (3, 'c', DATE'2024-01-03', 1.5)")
    assert trino.rows(f"SELECT id, extra FROM {place}.t WHERE id = 3") == [[3, 1.5]]

    # Views: each engine has its own, and lists the other's.
    trino.execute(f"CREATE VIEW {place}.of_trino AS SELECT count(*) AS n FROM {place}.t")
    assert trino.rows(f"SELECT * FROM {place}.of_trino") == [[3]]
    assert trino.rows(f"SELECT * FROM lake.{schema}.of_spark ORDER BY 1") == [[2, "m"], [3, "c"]]
    assert {"of_spark", "of_trino"} == {row[1] for row in spark_3.sql("SHOW VIEWS")}

    # Out of the metastore and into it again, by either engine while the other observes.
    location = table.sd.location
    trino.execute(f"CALL delta.system.unregister_table('{schema}', 't')")
    assert "TABLE_OR_VIEW_NOT_FOUND" in str(spark_3.answer_to("SELECT * FROM t")["error"])
    trino.execute(f"CALL delta.system.register_table('{schema}', 't', '{location}')")
    spark_3.sql("REFRESH TABLE t")
    assert sorted(row[0] for row in spark_3.sql("SELECT id FROM t")) == ["1", "2", "3"]
    spark_3.sql("INSERT INTO t VALUES (4, 'd', DATE'2024-01-03', 2.5)")
    spark_3.sql("ALTER TABLE t RENAME TO u")
    assert trino.column(f"SELECT id FROM {place}.u ORDER BY 1") == [1, 2, 3, 4]
    with pytest.raises(QueryFailed, match="does not exist"):
        trino.execute(f"SELECT * FROM {place}.t")
    trino.execute(f"CREATE TABLE {place}.made COMMENT 'von Trino' AS SELECT 7 AS Seven, 'x' AS p")
    assert spark_3.sql("SELECT * FROM made") == [["7", "x"]]
    spark_3.sql("INSERT INTO made VALUES (8, 'y')")
    assert trino.rows(f"SELECT * FROM {place}.made ORDER BY 1") == [[7, "x"], [8, "y"]]
    trino.execute(f"ALTER TABLE {place}.e2 RENAME TO e3")
    assert spark_3.sql("SELECT Two FROM e3") == [["1"]]
    spark_3.sql("DROP VIEW of_spark")  # Trino drops it only for the catalog of Hive tables
    trino.execute(f"DROP SCHEMA {place} CASCADE")
    assert schema not in {row[0] for row in spark_3.sql("SHOW DATABASES")}


def test_hudi_tables(spark_3: SparkProcess, trino: Session, schema: str, uri: str, tmp_path: Path) -> None:
    spark_3.session(remote(tmp_path, uri) | HUDI)
    run(
        spark_3,
        schema,
        "SET hoodie.metadata.enable=false",
        "SET hoodie.upsert.shuffle.parallelism=1",
        "CREATE TABLE cow (id INT, name STRING COMMENT 'who', ts BIGINT, dt STRING) USING hudi"
        " TBLPROPERTIES (type='cow', primaryKey='id', preCombineField='ts') PARTITIONED BY (dt)",
        "INSERT INTO cow VALUES (1,'a',10,'2024-01-01'),(2,'b',10,'2024-01-02'),(3,'c',10,'2024-01-03')",
        "UPDATE cow SET name='z' WHERE id=1",
        "ALTER TABLE cow DROP PARTITION (dt='2024-01-03')",
        f"CREATE TABLE mor (id INT, name STRING, ts BIGINT) USING hudi LOCATION '{tmp_path}/mor'"
        " TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='ts')",
        "INSERT INTO mor VALUES (1,'a',1)",
    )
    assert sorted(trino.column(f"SHOW TABLES FROM hudi.{schema}")) == ["cow", "mor", "mor_ro", "mor_rt"]
    assert trino.rows(f"SELECT id, name, dt FROM hudi.{schema}.cow ORDER BY id") == [
        [1, "z", "2024-01-01"],
        [2, "b", "2024-01-02"],
    ]
    assert trino.rows(f"SELECT id FROM hudi.{schema}.COW WHERE dt > '2024-01-01'") == [[2]]
    assert trino.rows(f"SELECT id, name FROM hudi.{schema}.mor_ro") == [[1, "a"]]
    assert trino.rows(f"SELECT id, name FROM lake.{schema}.cow WHERE dt = '2024-01-02'") == [[2, "b"]]
    assert len(trino.rows(f'SELECT * FROM hudi.{schema}."cow$timeline"')) == 3
    spark_3.sql("ALTER TABLE cow ADD COLUMNS (extra DOUBLE)")
    spark_3.sql("INSERT INTO cow VALUES (4, 'd', 10, 1.5, '2024-01-04')")
    assert trino.rows(f"SELECT id, extra FROM hudi.{schema}.cow WHERE dt = '2024-01-04'") == [[4, 1.5]]
    spark_3.sql(f"DROP DATABASE {schema} CASCADE")
    assert schema not in trino.column("SHOW SCHEMAS FROM hudi")
