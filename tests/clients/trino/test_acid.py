"""Trino's Hive connector: transactional tables."""

from __future__ import annotations

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS

pytestmark = MARKS


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_rows_are_inserted_updated_merged_and_deleted(trino: Session, schema: str, partitioned: bool) -> None:
    table = f"hive.{schema}.acid"
    way = "format = 'ORC', transactional = true" + (", partitioned_by = ARRAY['p']" if partitioned else "")
    trino.execute(f"CREATE TABLE {table} (a bigint, b varchar, p varchar) WITH ({way})")
    assert "transactional = true" in trino.value(f"SHOW CREATE TABLE {table}")
    assert trino.changed(f"INSERT INTO {table} VALUES (1, 'x', 'p1'), (2, 'y', 'p1'), (3, 'z', 'p2')") == 3
    assert trino.changed(f"DELETE FROM {table} WHERE a = 2") == 1
    assert trino.changed(f"UPDATE {table} SET b = 'q' WHERE a = 3") == 1
    assert trino.changed(f"UPDATE {table} SET b = 'none' WHERE a = 77") == 0
    merge = f"MERGE INTO {table} t USING (VALUES (1, 'm'), (9, 'n')) AS s(a, b) ON t.a = s.a"
    update, insert = "WHEN MATCHED THEN UPDATE SET b = s.b", "WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, 'p3')"
    assert trino.changed(f"{merge} {update} {insert}") == 2
    everything = f"SELECT * FROM {table} ORDER BY a"
    rows = [[1, "m", "p1"], [3, "q", "p2"], [9, "n", "p3"]]
    assert trino.rows(everything) == rows
    with pytest.raises(QueryFailed, match="Division by zero"):
        trino.execute(f"INSERT INTO {table} SELECT 1 / (a - 1), 'x', 'p1' FROM {table}")
    assert trino.rows(everything) == rows
    assert trino.changed(f"{merge} WHEN MATCHED THEN DELETE") == 2
    assert trino.rows(everything) == [[3, "q", "p2"]]
    assert trino.rows(f"SELECT * FROM {table} WHERE p = 'p2'") == [[3, "q", "p2"]]
    assert trino.changed(f"DELETE FROM {table}") == 1
    assert trino.rows(everything) == []


def test_statistics(trino: Session, schema: str) -> None:
    table = f"hive.{schema}.acid"
    trino.execute(f"CREATE TABLE {table} (a bigint) WITH (transactional = true)")
    trino.execute(f"INSERT INTO {table} VALUES 1, 2, 2")
    trino.execute(f"ANALYZE {table}")
    assert trino.rows(f"SHOW STATS FOR {table}") == [
        ["a", None, 2.0, 0.0, None, "1", "2"],
        [None, None, None, None, 3.0, None, None],
    ]
    # Trino deletes statistics that an insert outdates; Hive 4 refuses this for transactional tables.
    with pytest.raises(QueryFailed, match="replace table parameters"):
        trino.execute(f"INSERT INTO {table} VALUES 7")
    assert trino.rows(f"SELECT count(*), sum(a) FROM {table}") == [[3, 5]]


def test_tables_are_made_from_queries_altered_and_dropped(trino: Session, schema: str) -> None:
    table = f"hive.{schema}.made"
    assert trino.changed(f"CREATE TABLE {table} WITH (transactional = true) AS SELECT 1 AS a") == 1
    assert trino.changed(f"INSERT INTO {table} VALUES 2, 3") == 2
    trino.execute(f"ALTER TABLE {table} ADD COLUMN b varchar")
    assert trino.changed(f"INSERT INTO {table} VALUES (4, 'four')") == 1
    trino.execute(f"COMMENT ON TABLE {table} IS 'of four rows'")
    assert trino.rows(f"SELECT * FROM {table} ORDER BY a") == [[1, None], [2, None], [3, None], [4, "four"]]
    trino.execute(f"DROP TABLE {table}")
    assert trino.column(f"SHOW TABLES FROM hive.{schema}") == []
    # A table of the same name starts again.
    trino.execute(f"CREATE TABLE {table} (a integer) WITH (transactional = true)")
    assert trino.rows(f"SELECT * FROM {table}") == []
    assert trino.changed(f"INSERT INTO {table} VALUES 5") == 1
    assert trino.changed(f"UPDATE {table} SET a = 6") == 1
    assert trino.rows(f"SELECT * FROM {table}") == [[6]]


def test_every_statement_is_seen_by_the_next(trino: Session, schema: str) -> None:
    table = f"hive.{schema}.t"
    trino.execute(f"CREATE TABLE {table} (a integer) WITH (transactional = true)")
    for number in range(12):
        trino.execute(f"INSERT INTO {table} VALUES {number}")
        assert trino.value(f"SELECT count(*) FROM {table}") == number + 1
    for number in range(0, 12, 3):
        trino.execute(f"DELETE FROM {table} WHERE a = {number}")
    assert trino.column(f"SELECT a FROM {table} ORDER BY a") == [1, 2, 4, 5, 7, 8, 10, 11]
