"""Presto's Iceberg connector with the metastore as its catalog."""

from __future__ import annotations

import threading

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS


@pytest.fixture
def table(presto: Session, schema: str) -> str:
    name = f"iceberg.{schema}.i"
    presto.execute(f"CREATE TABLE {name} (v bigint, d varchar) WITH (partitioning = ARRAY['d'])")
    return name


def test_rows_and_snapshots(presto: Session, schema: str, table: str) -> None:
    presto.execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    first = presto.value(f'SELECT snapshot_id FROM iceberg.{schema}."i$snapshots"')
    presto.execute(f"INSERT INTO {table} VALUES (3, 'a')")
    assert presto.column(f"SELECT v FROM {table} WHERE d = 'a' ORDER BY 1") == [1, 3]
    assert presto.column(f"SELECT v FROM {table} FOR VERSION AS OF {first} ORDER BY 1") == [1, 2]
    presto.execute(f"DELETE FROM {table} WHERE d = 'a'")
    assert presto.column(f"SELECT v FROM {table}") == [2]
    assert presto.value(f'SELECT count(*) FROM iceberg.{schema}."i$snapshots"') == 3
    presto.execute(f"CALL iceberg.system.rollback_to_snapshot('{schema}', 'i', {first})")
    assert presto.column(f"SELECT v FROM {table} ORDER BY 1") == [1, 2]


def test_columns_and_names_change(presto: Session, schema: str, table: str) -> None:
    presto.execute(f"INSERT INTO {table} VALUES (1, 'a')")
    presto.execute(f"ALTER TABLE {table} ADD COLUMN w varchar")
    presto.execute(f"ALTER TABLE {table} RENAME COLUMN v TO number")
    presto.execute(f"INSERT INTO {table} (number, d, w) VALUES (2, 'b', 'w')")
    assert presto.rows(f"SELECT number, w FROM {table} ORDER BY 1") == [[1, None], [2, "w"]]
    presto.execute(f"ALTER TABLE {table} DROP COLUMN w")
    presto.execute(f"ALTER TABLE {table} RENAME TO iceberg.{schema}.renamed")
    assert presto.column(f"SHOW TABLES FROM iceberg.{schema}") == ["renamed"]
    assert presto.rows(f"SELECT * FROM iceberg.{schema}.renamed ORDER BY 1") == [[1, "a"], [2, "b"]]
    presto.execute(f"CREATE VIEW iceberg.{schema}.seen AS SELECT number FROM iceberg.{schema}.renamed")
    assert presto.column(f"SELECT * FROM iceberg.{schema}.seen ORDER BY 1") == [1, 2]
    presto.execute(f"DROP VIEW iceberg.{schema}.seen")
    presto.execute(f"DROP TABLE iceberg.{schema}.renamed")
    assert presto.column(f"SHOW TABLES FROM iceberg.{schema}") == []


def test_the_hive_connector_refuses_its_tables(presto: Session, schema: str, table: str) -> None:
    with pytest.raises(QueryFailed):
        presto.execute(f"SELECT * FROM hive.{schema}.i")
    assert presto.column(f"SHOW TABLES FROM hive.{schema}") == ["i"]


def test_writers_beside_each_other(engine: Engine, table: str) -> None:
    """Each commit counts: a lock and a new parameter for each. Those that lose too often are told."""
    done: list[int] = []

    def write(writer: int) -> None:
        session = engine.session()
        for number in range(3):
            try:
                session.execute(f"INSERT INTO {table} VALUES ({writer * 10 + number}, 'x')")
            except QueryFailed as error:
                assert "commit" in str(error).lower(), error
            else:
                done.append(writer * 10 + number)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.session().column(f"SELECT v FROM {table} ORDER BY 1") == sorted(done)
    assert len(done) > 3
