"""Presto's Hive connector: partitions, which of them are read, buckets and statistics."""

from __future__ import annotations

import threading

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine
from tests.clients.trino.test_hive_partitions import CONDITIONS, EXPECTED, ROWS, partitions

pytestmark = MARKS


@pytest.fixture
def table(presto: Session, schema: str) -> str:
    """A table with keys of three types."""
    name = f"hive.{schema}.p"
    presto.execute(
        f"CREATE TABLE {name} (v bigint, s varchar, i integer, d date)"
        " WITH (format = 'PARQUET', partitioned_by = ARRAY['s', 'i', 'd'])"
    )
    assert presto.changed(f"INSERT INTO {name} {ROWS}") == 24
    return name


def test_partitions_are_found_by_conditions(presto: Session, table: str) -> None:
    for condition, holds in CONDITIONS:
        expected = sorted(x for x, s, i, d in EXPECTED if holds(s, i, d))
        assert presto.column(f"SELECT v FROM {table} WHERE {condition} ORDER BY v") == expected, condition
        named = sorted([s, i, d] for _, s, i, d in EXPECTED if holds(s, i, d))
        assert partitions(presto, table, condition) == named, condition


def test_partitions_are_deleted_written_again_and_renamed_with_their_table(presto: Session, table: str) -> None:
    presto.execute(f"DELETE FROM {table} WHERE s = 's0'")
    assert len(partitions(presto, table)) == 16
    presto.execute(f"INSERT INTO {table} VALUES (100, 's0', 9, DATE '2024-05-01'), (101, 's1', 1, DATE '2024-02-01')")
    assert len(partitions(presto, table)) == 17
    assert presto.value(f"SELECT count(*) FROM {table} WHERE s = 's1' AND i = 1 AND d = DATE '2024-02-01'") == 2
    presto.execute(f"ALTER TABLE {table} ADD COLUMN w varchar")
    presto.execute(f"INSERT INTO {table} (v, w, s, i, d) VALUES (102, 'w', 's9', 1, DATE '2024-02-01')")
    assert presto.rows(f"SELECT v, w FROM {table} WHERE v > 99 ORDER BY 1") == [[100, None], [101, None], [102, "w"]]
    presto.execute(f"ALTER TABLE {table} RENAME TO {table}2")
    assert len(partitions(presto, f"{table}2")) == 18
    presto.execute(f"DELETE FROM {table}2")
    assert partitions(presto, f"{table}2") == []


def test_overwriting_partitions(engine: Engine, table: str) -> None:
    session = engine.session()
    session.properties["hive.insert_existing_partitions_behavior"] = "OVERWRITE"
    session.execute(f"INSERT INTO {table} VALUES (100, 's1', 1, DATE '2024-02-01')")
    assert session.column(f"SELECT v FROM {table} WHERE s = 's1' AND i = 1 AND d = DATE '2024-02-01'") == [100]
    session.properties["hive.insert_existing_partitions_behavior"] = "ERROR"
    with pytest.raises(QueryFailed):
        session.execute(f"INSERT INTO {table} VALUES (101, 's1', 1, DATE '2024-02-01')")
    assert len(partitions(session, table)) == 24


def test_procedures(presto: Session, schema: str) -> None:
    table = f"hive.{schema}.q"
    presto.execute(f"CREATE TABLE {table} (v bigint, d varchar) WITH (partitioned_by = ARRAY['d'])")
    for value in ("a", "it''s", "50%/x=y"):
        presto.execute(f"CALL hive.system.create_empty_partition('{schema}', 'q', ARRAY['d'], ARRAY['{value}'])")
    assert partitions_of(presto, schema) == ["50%/x=y", "a", "it's"]
    with pytest.raises(QueryFailed, match="already exists"):
        presto.execute(f"CALL hive.system.create_empty_partition('{schema}', 'q', ARRAY['d'], ARRAY['a'])")
    presto.execute(f"CALL hive.system.sync_partition_metadata('{schema}', 'q', 'FULL')")
    assert partitions_of(presto, schema) == ["50%/x=y", "a", "it's"]
    presto.execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, NULL)")
    assert presto.rows(f"SELECT v, d FROM {table} ORDER BY v") == [[1, "a"], [2, None]]
    assert presto.column(f"SELECT v FROM {table} WHERE d IS NULL") == [2]


def partitions_of(session: Session, schema: str) -> list[str]:
    return session.column(f'SELECT d FROM hive.{schema}."q$partitions" ORDER BY 1')


def test_buckets(presto: Session, schema: str) -> None:
    table = f"hive.{schema}.b"
    presto.execute(
        f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['d'], bucketed_by = ARRAY['a'], bucket_count = 3,"
        " sorted_by = ARRAY['b DESC'])"
        " AS SELECT * FROM (VALUES (1, 'x', 'p'), (2, 'y', 'p'), (3, 'z', 'q')) AS t (a, b, d)"
    )
    shown = presto.value(f"SHOW CREATE TABLE {table}")
    assert "bucket_count = 3" in shown and "ARRAY['b DESC']" in shown
    assert presto.column(f'SELECT DISTINCT "$bucket" % 3 FROM {table} WHERE a = 2') == [2]
    presto.execute(f"INSERT INTO {table} VALUES (4, 'w', 'r')")
    assert presto.column(f"SELECT b FROM {table} WHERE a IN (2, 4) ORDER BY 1") == ["w", "y"]


def test_statistics(presto: Session, table: str) -> None:
    stored = {row[0]: row[1:] for row in presto.rows(f"SHOW STATS FOR {table}")}
    assert stored[None][3] == 24.0
    presto.execute(f"ANALYZE {table}")
    stored = {row[0]: row[1:] for row in presto.rows(f"SHOW STATS FOR {table}")}
    assert stored["v"][2] == 0.0 and stored["v"][4:6] == ["0", "23"]
    of_one = {row[0]: row[1:] for row in presto.rows(f"SHOW STATS FOR (SELECT * FROM {table} WHERE s = 's1')")}
    assert of_one[None][3] == 8.0 and of_one["v"][4:6] == ["1", "22"]
    presto.execute(f"INSERT INTO {table} VALUES (1000, 's1', 1, DATE '2024-02-01')")
    presto.execute(f"ANALYZE {table} WITH (partitions = ARRAY[ARRAY['s1', '1', '2024-02-01']])")
    after = {row[0]: row[1:] for row in presto.rows(f"SHOW STATS FOR {table}")}
    assert after[None][3] == 25.0 and after["v"][4:6] == ["0", "1000"]


def test_statistics_of_a_table_without_partitions(presto: Session, schema: str) -> None:
    table = f"hive.{schema}.u"
    presto.execute(
        f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 'x', DATE '2024-01-01', 1.5E0, true),"
        " (NULL, 'yyy', NULL, 2.5E0, false)) AS t (a, b, c, e, f)"
    )
    presto.execute(f"ANALYZE {table}")
    stored = {row[0]: row[1:] for row in presto.rows(f"SHOW STATS FOR {table}")}
    assert stored[None][3] == 2.0
    assert stored["a"][1:3] == [1.0, 0.5] and stored["a"][4:6] == ["1", "1"]
    assert stored["c"][4:6] == ["2024-01-01", "2024-01-01"]
    assert stored["e"][4:6] == ["1.5", "2.5"]
    assert stored["b"][0] == 4.0 and stored["f"][1] == 2.0


def test_writers_beside_each_other(engine: Engine, schema: str) -> None:
    """Each INSERT adds a partition of its own, and figures to the table."""
    table = f"hive.{schema}.w"
    engine.session().execute(f"CREATE TABLE {table} (v bigint, d varchar) WITH (partitioned_by = ARRAY['d'])")
    failed: list[BaseException] = []

    def write(writer: int) -> None:
        session = engine.session()
        try:
            for number in range(3):
                session.execute(f"INSERT INTO {table} VALUES ({number}, '{writer}-{number}')")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert engine.session().value(f"SELECT count(*) FROM {table}") == 12
