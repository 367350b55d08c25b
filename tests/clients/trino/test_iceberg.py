"""Trino's Iceberg connector with Hive's metastore as its catalog, and tables used by other connectors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clients.trino.coordinator import QueryFailed, Row, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS

WRITERS = 3
ROUNDS = 8


@pytest.fixture
def table(trino: Session, schema: str) -> str:
    """A partitioned table of three rows, written by two inserts."""
    name = f"iceberg.{schema}.t"
    trino.execute(
        f"CREATE TABLE {name} (a bigint, b varchar, d date, c integer) WITH (partitioning = ARRAY['b', 'month(d)'])"
    )
    assert (
        trino.changed(f"INSERT INTO {name} VALUES (1, 'x', DATE '2024-01-05', 1), (2, 'y', DATE '2024-02-05', 2)") == 2
    )
    assert trino.changed(f"INSERT INTO {name} VALUES (3, 'x', NULL, NULL)") == 1
    return name


def rows(session: Session, table: str, columns: str = "a, b, c") -> list[Row]:
    return session.rows(f"SELECT {columns} FROM {table} ORDER BY 1")


def count(session: Session, table: str, part: str) -> int:
    catalog, schema, name = table.split(".")
    number: int = session.value(f'SELECT count(*) FROM {catalog}.{schema}."{name}${part}"')
    return number


def test_rows_are_inserted_updated_merged_and_deleted(trino: Session, table: str) -> None:
    assert rows(trino, table) == [[1, "x", 1], [2, "y", 2], [3, "x", None]]
    assert trino.column(f"SELECT a FROM {table} WHERE b = 'x' AND d IS NULL") == [3]
    assert trino.changed(f"UPDATE {table} SET c = 5 WHERE a = 1") == 1
    assert trino.changed(f"DELETE FROM {table} WHERE a = 2") == 1
    merge = f"MERGE INTO {table} t USING (VALUES (1, 'm'), (9, 'n')) AS s(a, b) ON t.a = s.a"
    insert = "WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, NULL, 7)"
    assert trino.changed(f"{merge} WHEN MATCHED THEN UPDATE SET b = s.b {insert}") == 2
    assert rows(trino, table) == [[1, "m", 5], [3, "x", None], [9, "n", 7]]
    # One snapshot of the table's creation, one for each of five statements.
    assert count(trino, table, "snapshots") == 6
    assert count(trino, table, "history") == 6
    first = trino.column('SELECT snapshot_id FROM {}.{}."{}$snapshots" ORDER BY committed_at'.format(*table.split(".")))
    assert trino.value(f"SELECT count(*) FROM {table} FOR VERSION AS OF {first[2]}") == 3
    trino.execute(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot({first[1]})")
    assert rows(trino, table) == [[1, "x", 1], [2, "y", 2]]


def test_tables_evolve(trino: Session, table: str) -> None:
    trino.execute(f"ALTER TABLE {table} ADD COLUMN e varchar COMMENT 'more'")
    trino.execute(f"ALTER TABLE {table} RENAME COLUMN c TO number")
    trino.execute(f"ALTER TABLE {table} ALTER COLUMN number SET DATA TYPE bigint")
    trino.execute(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['bucket(a, 4)']")
    assert trino.changed(f"INSERT INTO {table} VALUES (4, 'z', NULL, 5000000000, 'e')") == 1
    trino.execute(f"ALTER TABLE {table} DROP COLUMN e")
    assert rows(trino, table, "a, b, number") == [[1, "x", 1], [2, "y", 2], [3, "x", None], [4, "z", 5000000000]]
    assert [row[:2] for row in trino.rows(f"DESCRIBE {table}")] == [
        ["a", "bigint"],
        ["b", "varchar"],
        ["d", "date"],
        ["number", "bigint"],
    ]
    assert "partitioning = ARRAY['bucket(a, 4)']" in trino.value(f"SHOW CREATE TABLE {table}")
    # As in Hive by default: dropping a column in the middle moves the others to positions of other types.
    trino.execute(f"ALTER TABLE {table} ADD COLUMN f date")
    trino.execute(f"ALTER TABLE {table} ADD COLUMN g bigint")
    with pytest.raises(QueryFailed, match="types incompatible with the existing columns"):
        trino.execute(f"ALTER TABLE {table} DROP COLUMN f")
    assert len(rows(trino, table, "a, b, number")) == 4


def test_tables_are_kept_in_order(trino: Session, table: str) -> None:
    trino.execute(f"DELETE FROM {table} WHERE a = 1")
    trino.execute(f"INSERT INTO {table} VALUES (6, 'x', NULL, 6)")
    expected = rows(trino, table)
    trino.execute(f"ALTER TABLE {table} EXECUTE optimize")
    assert rows(trino, table) == expected
    trino.execute(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    trino.execute(f"ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert count(trino, table, "snapshots") == 1
    assert rows(trino, table) == expected
    trino.execute(f"ANALYZE {table}")
    statistics = trino.rows(f"SHOW STATS FOR {table}")
    assert statistics[0] == ["a", None, 3.0, 0.0, None, "2", "6"]
    assert statistics[-1][4] == 3.0
    trino.execute(f"ALTER TABLE {table} EXECUTE drop_extended_stats")
    assert trino.rows(f"SHOW STATS FOR {table}")[0] == ["a", None, None, 0.0, None, "2", "6"]


def test_tables_are_renamed_replaced_registered_and_dropped(trino: Session, table: str) -> None:
    catalog, schema, _ = table.split(".")
    trino.execute(f"ALTER TABLE {table} RENAME TO {table}2")
    with pytest.raises(QueryFailed, match="does not exist"):
        trino.execute(f"SELECT * FROM {table}")
    assert len(rows(trino, f"{table}2")) == 3
    with pytest.raises(QueryFailed, match="already exists"):
        trino.execute(f"CREATE TABLE {table}2 (x integer)")
    location = str(trino.value(f"SHOW CREATE TABLE {table}2")).split("location = '")[1].split("'")[0]
    trino.execute(f"CALL iceberg.system.unregister_table('{schema}', 't2')")
    assert trino.column(f"SHOW TABLES FROM {catalog}.{schema}") == []
    trino.execute(f"CALL iceberg.system.register_table('{schema}', 't3', '{location}')")
    assert trino.changed(f"INSERT INTO {table}3 VALUES (4, 'q', NULL, 4)") == 1
    assert len(rows(trino, f"{table}3")) == 4
    trino.execute(f"DROP TABLE {table}3")
    assert trino.changed(f"CREATE OR REPLACE TABLE {table} AS SELECT 1 AS x") == 1
    assert trino.changed(f"CREATE OR REPLACE TABLE {table} AS SELECT 'new' AS y") == 1
    assert rows(trino, table, "*") == [["new"]]
    trino.execute(f"DROP TABLE {table}")
    assert trino.column(f"SHOW TABLES FROM {catalog}.{schema}") == []


def test_views_and_materialized_views(trino: Session, table: str) -> None:
    catalog, schema, _ = table.split(".")
    place = f"{catalog}.{schema}"
    trino.execute(
        f"CREATE MATERIALIZED VIEW {place}.mv COMMENT 'мат' AS SELECT b, count(*) AS n FROM {table} GROUP BY b"
    )
    views = (
        "SELECT name, freshness, comment FROM system.metadata.materialized_views"
        f" WHERE catalog_name = 'iceberg' AND schema_name = '{schema}'"
    )
    assert trino.rows(views) == [["mv", "STALE", "мат"]]
    assert rows(trino, f"{place}.mv", "*") == [["x", 2], ["y", 1]]
    assert trino.changed(f"REFRESH MATERIALIZED VIEW {place}.mv") == 2
    assert trino.rows(views) == [["mv", "FRESH", "мат"]]
    trino.execute(f"INSERT INTO {table} VALUES (4, 'y', NULL, 4)")
    assert trino.rows(views)[0][1] == "STALE"
    trino.execute(f"ALTER MATERIALIZED VIEW {place}.mv RENAME TO {place}.mv2")
    trino.execute(f"REFRESH MATERIALIZED VIEW {place}.mv2")
    assert rows(trino, f"{place}.mv2", "*") == [["x", 2], ["y", 2]]
    trino.execute(f"CREATE VIEW {place}.v COMMENT 'вид' AS SELECT a FROM {table}")
    trino.execute(f"CREATE OR REPLACE VIEW {place}.v AS SELECT a, b FROM {table} WHERE b = 'y'")
    trino.execute(f"ALTER VIEW {place}.v RENAME TO {place}.v2")
    assert rows(trino, f"{place}.v2", "a") == [[2], [4]]
    assert sorted(trino.column(f"SHOW TABLES FROM {place}")) == ["mv2", "t", "v2"]
    kinds = f"SELECT table_name, table_type FROM iceberg.information_schema.tables WHERE table_schema = '{schema}'"
    assert sorted(trino.rows(kinds)) == [["mv2", "BASE TABLE"], ["t", "BASE TABLE"], ["v2", "VIEW"]]
    assert trino.column(f"SELECT table_name FROM iceberg.system.iceberg_tables WHERE table_schema = '{schema}'") == [
        "t"
    ]
    trino.execute(f"DROP VIEW {place}.v2")
    trino.execute(f"DROP MATERIALIZED VIEW {place}.mv2")
    trino.execute(f"DROP TABLE {table}")
    trino.execute(f"DROP SCHEMA {place}")


def test_comments(trino: Session, table: str) -> None:
    schema = table.split(".")[1]
    trino.execute(f"COMMENT ON TABLE {table} IS 'ñ 1'")
    trino.execute(f"COMMENT ON COLUMN {table}.b IS '列 🙂'")
    assert trino.rows(f"DESCRIBE {table}")[1] == ["b", "varchar", "", "列 🙂"]
    comments = (
        "SELECT comment FROM system.metadata.table_comments"
        f" WHERE catalog_name = 'iceberg' AND schema_name = '{schema}'"
    )
    assert trino.column(comments) == ["ñ 1"]


def test_tables_of_hive_migrate(trino: Session, schema: str) -> None:
    old, new = f"hive.{schema}.m", f"iceberg.{schema}.m"
    trino.execute(f"CREATE TABLE {old} (a bigint, p varchar) WITH (format = 'PARQUET', partitioned_by = ARRAY['p'])")
    trino.execute(f"INSERT INTO {old} VALUES (1, 'p1'), (2, 'p2')")
    trino.execute(f"CALL iceberg.system.migrate('{schema}', 'm')")
    assert rows(trino, new, "*") == [[1, "p1"], [2, "p2"]]
    trino.execute(f"INSERT INTO {new} VALUES (3, 'p1')")
    assert trino.changed(f"DELETE FROM {new} WHERE a = 1") == 1
    assert trino.column(f"SELECT a FROM {new} WHERE p = 'p1'") == [3]
    with pytest.raises(QueryFailed, match="Cannot query Iceberg table"):
        trino.execute(f"SELECT * FROM {old}")
    trino.execute(f"CREATE TABLE hive.{schema}.src (a bigint) WITH (format = 'ORC')")
    trino.execute(f"INSERT INTO hive.{schema}.src VALUES 7")
    trino.execute(f"CREATE TABLE iceberg.{schema}.dst (a bigint) WITH (format = 'ORC')")
    trino.execute(
        f"ALTER TABLE iceberg.{schema}.dst EXECUTE add_files_from_table(schema_name => '{schema}', table_name => 'src')"
    )
    assert rows(trino, f"iceberg.{schema}.dst", "*") == [[7]]


def test_several_writers_lose_nothing(engine: Engine, trino: Session, schema: str) -> None:
    table = f"iceberg.{schema}.shared"
    trino.execute(f"CREATE TABLE {table} (writer integer, round integer)")

    def write(writer: int) -> int:
        session = engine.session(f"writer{writer}")
        return sum(session.changed(f"INSERT INTO {table} VALUES ({writer}, {number})") or 0 for number in range(ROUNDS))

    with ThreadPoolExecutor(WRITERS) as pool:
        assert list(pool.map(write, range(WRITERS))) == [ROUNDS] * WRITERS
    assert trino.rows(f"SELECT writer, round FROM {table} ORDER BY 1, 2") == [
        [writer, number] for writer in range(WRITERS) for number in range(ROUNDS)
    ]
    assert count(trino, table, "snapshots") == 1 + WRITERS * ROUNDS


def test_delta_tables_are_made_listed_and_registered(trino: Session, schema: str) -> None:
    # Without inserts: Trino writes no second version of a Delta table to a local file system.
    place = f"delta.{schema}"
    trino.execute(f"CREATE TABLE {place}.d COMMENT 'дельта' AS SELECT 1 AS a, 'x' AS b")
    trino.execute(f"CREATE VIEW {place}.v AS SELECT a FROM {place}.d")
    assert trino.rows(f"SELECT * FROM {place}.d") == [[1, "x"]]
    assert trino.rows(f"SELECT * FROM {place}.v") == [[1]]
    assert sorted(trino.column(f"SHOW TABLES FROM {place}")) == ["d", "v"]
    location = str(trino.value(f"SHOW CREATE TABLE {place}.d")).split("location = '")[1].split("'")[0]
    trino.execute(f"CALL delta.system.unregister_table('{schema}', 'd')")
    assert trino.column(f"SHOW TABLES FROM {place}") == ["v"]
    trino.execute(f"CALL delta.system.register_table('{schema}', 'back', '{location}')")
    assert trino.rows(f"SELECT * FROM {place}.back") == [[1, "x"]]
    with pytest.raises(QueryFailed, match="Cannot query Delta Lake table"):
        trino.execute(f"SELECT * FROM hive.{schema}.back")
    trino.execute(f"DROP SCHEMA {place} CASCADE")
