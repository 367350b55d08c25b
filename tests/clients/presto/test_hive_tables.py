"""Presto's Hive connector: schemas, tables, columns, views, materialized views and lists of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS

pytestmark = MARKS

#: Column type to a literal of it and the JSON that Presto writes for it: a text for nested values.
VALUES: dict[str, tuple[str, object]] = {
    "tinyint": ("TINYINT '-1'", -1),
    "smallint": ("SMALLINT '32767'", 32767),
    "integer": ("INTEGER '-2147483648'", -2147483648),
    "bigint": ("BIGINT '9007199254740993'", 9007199254740993),
    "real": ("REAL '1.5'", 1.5),
    "double": ("DOUBLE '2.5'", 2.5),
    "decimal(20,4)": ("DECIMAL '-1234567890123456.7891'", "-1234567890123456.7891"),
    "boolean": ("true", True),
    "char(5)": ("CAST('ab' AS char(5))", "ab   "),
    "varchar(20)": ("'bounded'", "bounded"),
    "varchar": ("'текст 文 🙂'", "текст 文 🙂"),
    "varbinary": ("X'00ff'", "AP8="),
    "date": ("DATE '1960-02-29'", "1960-02-29"),
    "timestamp": ("TIMESTAMP '2024-02-29 12:34:56.789'", "2024-02-29 12:34:56.789"),
    "array(integer)": ("ARRAY[1, NULL]", "[ 1, null ]"),
    "map(varchar, bigint)": ("MAP(ARRAY['k'], ARRAY[9])", '{\n  "k" : 9\n}'),
    'row("x" integer, "y" array(varchar))': ("ROW(7, ARRAY['z'])", '[ 7, "[ \\"z\\" ]" ]'),
}
STORAGE_FORMATS = ("ORC", "PARQUET", "AVRO", "RCBINARY", "RCTEXT", "SEQUENCEFILE", "TEXTFILE", "JSON")
#: Avro has no small integers, and Presto reads binaries in JSON as text.
LEFT_OUT: dict[str, set[str]] = {"AVRO": {"tinyint", "smallint"}, "JSON": {"varbinary"}}


def test_schemas(presto: Session, schema: str, tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match="already exists"):
        presto.execute(f"CREATE SCHEMA hive.{schema}")
    presto.execute(f"CREATE SCHEMA IF NOT EXISTS hive.{schema}")
    second = f"{schema}_placed"
    presto.execute(f"CREATE SCHEMA hive.{second} WITH (location = 'file:{tmp_path}/Placed')")
    assert {schema, second, "default"} <= set(presto.column("SHOW SCHEMAS FROM hive"))
    presto.execute(f"CREATE TABLE hive.{second}.t (a bigint)")
    assert (tmp_path / "Placed" / "t").is_dir()
    with pytest.raises(QueryFailed, match="not empty"):
        presto.execute(f"DROP SCHEMA hive.{second}")
    presto.execute(f"DROP TABLE hive.{second}.t")
    assert not (tmp_path / "Placed" / "t").exists()
    presto.execute(f"DROP SCHEMA hive.{second}")
    assert second not in presto.column("SHOW SCHEMAS FROM hive")
    with pytest.raises(QueryFailed, match="does not exist"):
        presto.execute(f"DROP SCHEMA hive.{second}")
    presto.execute(f"DROP SCHEMA IF EXISTS hive.{second}")


def test_values_of_all_types_come_back(presto: Session, schema: str) -> None:
    for storage in STORAGE_FORMATS:
        values = {name: value for name, value in VALUES.items() if name not in LEFT_OUT.get(storage, set())}
        columns = ", ".join(f"c{number} {type_name}" for number, type_name in enumerate(values))
        table = f"hive.{schema}.{storage}"
        presto.execute(f"CREATE TABLE {table} ({columns}) WITH (format = '{storage}')")
        described = presto.rows(f"DESCRIBE {table}")
        assert [row[1] for row in described] == list(values)
        presto.execute(f"INSERT INTO {table} VALUES ({', '.join(literal for literal, _ in values.values())})")
        presto.execute(f"INSERT INTO {table} (c0) VALUES (NULL)")
        assert presto.rows(f"SELECT * FROM {table} WHERE c2 IS NOT NULL") == [[value for _, value in values.values()]]
        assert presto.rows(f"SELECT * FROM {table} WHERE c2 IS NULL") == [[None] * len(values)]
        presto.execute(f"CREATE TABLE {table}2 WITH (format = '{storage}') AS SELECT * FROM {table}")
        assert presto.rows(f"DESCRIBE {table}2") == described
        assert presto.value(f"SELECT count(*) FROM {table}2") == 2


def test_tables_and_columns_change(presto: Session, schema: str) -> None:
    table = f"hive.{schema}.t"
    presto.execute(
        f"CREATE TABLE {table} (a integer COMMENT 'it''s', b varchar) COMMENT 'of all' WITH (format = 'ORC')"
    )
    with pytest.raises(QueryFailed, match="already exists"):
        presto.execute(f"CREATE TABLE {table} (a integer)")
    presto.execute(f"INSERT INTO {table} VALUES (1, 'x')")
    presto.execute(f"ALTER TABLE {table} ADD COLUMN c varchar COMMENT 'third'")
    presto.execute(f"ALTER TABLE {table} RENAME COLUMN a TO number")
    with pytest.raises(QueryFailed, match="already exists"):
        presto.execute(f"ALTER TABLE {table} ADD COLUMN c bigint")
    # ORC's columns are identified by their position.
    assert presto.rows(f"SELECT number, b, c FROM {table}") == [[1, "x", None]]
    assert presto.rows(f"DESCRIBE {table}") == [
        ["number", "integer", "", "it's"],
        ["b", "varchar", "", ""],
        ["c", "varchar", "", "third"],
    ]
    presto.execute(f"ALTER TABLE {table} DROP COLUMN c")
    assert "COMMENT 'of all'" in presto.value(f"SHOW CREATE TABLE {table}")
    presto.execute(f"ALTER TABLE {table} RENAME TO hive.{schema}.renamed")
    assert presto.column(f"SHOW TABLES FROM hive.{schema}") == ["renamed"]
    assert presto.rows(f"SELECT * FROM hive.{schema}.renamed") == [[1, "x"]]
    with pytest.raises(QueryFailed, match="does not exist"):
        presto.execute(f"SELECT * FROM {table}")
    presto.execute(f"DROP TABLE hive.{schema}.renamed")
    presto.execute(f"DROP TABLE IF EXISTS hive.{schema}.renamed")
    assert presto.column(f"SHOW TABLES FROM hive.{schema}") == []


def test_external_tables_keep_their_files(presto: Session, schema: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one").write_text("1\tx\n2\ty\n")
    table = f"hive.{schema}.outside"
    presto.execute(
        f"CREATE TABLE {table} (line varchar) WITH (format = 'TEXTFILE', external_location = 'file:{tmp_path}/files')"
    )
    assert presto.value(f"SELECT count(*) FROM {table}") == 2
    presto.execute(f"INSERT INTO {table} VALUES 'three'")
    presto.execute(f"DROP TABLE {table}")
    assert len(list((tmp_path / "files").glob("[!.]*"))) == 2


def test_views(presto: Session, schema: str) -> None:
    table, view = f"hive.{schema}.t", f"hive.{schema}.v"
    presto.execute(f"CREATE TABLE {table} AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS t (a, b)")
    presto.execute(f"CREATE VIEW {view} AS SELECT a FROM {table}")
    with pytest.raises(QueryFailed, match="already exists"):
        presto.execute(f"CREATE VIEW {view} AS SELECT b FROM {table}")
    assert presto.column(f"SELECT a FROM {view} ORDER BY 1") == [1, 2]
    presto.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT b FROM {table}")
    assert presto.column(f"SELECT * FROM {view} ORDER BY 1") == ["x", "y"]
    listed = presto.rows(
        f"SELECT table_name, table_type FROM hive.information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
    )
    assert listed == [["t", "BASE TABLE"], ["v", "VIEW"]]
    assert presto.column(f"SELECT table_name FROM hive.information_schema.views WHERE table_schema = '{schema}'") == [
        "v"
    ]
    columns = presto.rows(
        "SELECT table_name, column_name, data_type FROM hive.information_schema.columns"
        f" WHERE table_schema = '{schema}' ORDER BY 1, 2"
    )
    assert columns == [["t", "a", "integer"], ["t", "b", "varchar(1)"], ["v", "b", "varchar(1)"]]
    presto.execute(f"DROP VIEW {view}")
    assert presto.column(f"SHOW TABLES FROM hive.{schema}") == ["t"]


def test_materialized_views_are_refreshed(presto: Session, schema: str) -> None:
    """Presto looks for partitions of the view's tables that the view does not have."""
    table, view = f"hive.{schema}.t", f"hive.{schema}.m"
    presto.execute(
        f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['d'])"
        " AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS t (a, d)"
    )
    presto.execute(f"CREATE MATERIALIZED VIEW {view} WITH (partitioned_by = ARRAY['d']) AS SELECT a, d FROM {table}")
    assert presto.changed(f"REFRESH MATERIALIZED VIEW {view} WHERE d = 'x'") == 1
    assert presto.rows(f'SELECT * FROM hive.{schema}."m$partitions"') == [["x"]]
    presto.execute(f"INSERT INTO {table} VALUES (3, 'x'), (4, 'z')")
    assert presto.column(f"SELECT a FROM {view} ORDER BY 1") == [1, 2, 4]
    assert presto.changed(f"REFRESH MATERIALIZED VIEW {view} WHERE d = 'x'") == 2
    assert presto.column(f"SELECT a FROM {view} ORDER BY 1") == [1, 2, 3, 4]
    presto.execute(f"DROP MATERIALIZED VIEW {view}")
    assert presto.column(f"SHOW TABLES FROM hive.{schema}") == ["t"]
