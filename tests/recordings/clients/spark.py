"""The statements for Spark, with its built-in client of Hive 2.3 and with that of 4.0.1."""

from __future__ import annotations

from pathlib import Path

from tests.clients.spark.hive_clients import hive_client
from tests.clients.spark.session import SparkProcess, remote

_MORE = (
    "CREATE DATABASE more",
    "CREATE TABLE more.src (id INT, v STRING) STORED AS ORC",
    "INSERT INTO more.src VALUES (1,'a'),(2,'b'),(3,NULL)",
    "CREATE TABLE more.low (id INT) STORED AS PARQUET",
    "CREATE TABLE more.high (id INT) PARTITIONED BY (v STRING) STORED AS PARQUET",
    "FROM more.src INSERT INTO more.low SELECT id WHERE id < 2"
    " INSERT OVERWRITE more.high PARTITION (v) SELECT id, v WHERE id >= 2",
    "ANALYZE TABLE more.src COMPUTE STATISTICS FOR ALL COLUMNS",
    "ANALYZE TABLE more.high PARTITION (v) COMPUTE STATISTICS",
    "ANALYZE TABLE more.high COMPUTE STATISTICS FOR COLUMNS id",
    "DESCRIBE EXTENDED more.src id",
    "EXPLAIN COST SELECT max(id) FROM more.src",
    "SELECT count(*), max(id) FROM more.src",
    "UPDATE more.src SET v = 'u' WHERE id = 1",
    "DELETE FROM more.src WHERE id = 1",
    "MERGE INTO more.src t USING more.low s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE more.high DROP PARTITION (v='b')",
    "DROP DATABASE more CASCADE",
)
"""Those that change rows are refused, after Spark has asked for the table. Its own tables have no such statements."""


def run(uri: str, root: Path, directory: Path) -> None:
    """All statements of the tests with Spark, and some more."""
    _run(uri, root, directory, {})


def run_with_client_of_hive_4(uri: str, root: Path, directory: Path) -> None:
    """The same through Hive 4.0.1's client."""
    _run(uri, root, directory, hive_client("4.0.1"))


def _run(uri: str, root: Path, directory: Path, settings: dict[str, str]) -> None:
    directory.mkdir(parents=True)
    process = SparkProcess(directory)
    try:
        conf = remote(directory, uri) | {"spark.sql.warehouse.dir": f"file:{root}/wh"}
        process.session(conf | settings)
        answers = process.steps(root)
        print(f"{len(answers)} statements, {sum('error' in answer for answer in answers)} refused")
        for statement in _MORE:
            answer = process._ask(do="sql", statement=statement)
            print(statement[:60], "->", str(answer.get("error", "done"))[:120])
    finally:
        process.close()
