"""Trino's Hive connector: schemas, tables, columns, views, functions and lists of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.trino.coordinator import QueryFailed, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS

#: Column type to a literal of it and the JSON that Trino writes for it.
VALUES: dict[str, tuple[str, object]] = {
    "tinyint": ("TINYINT '-1'", -1),
    "smallint": ("SMALLINT '32767'", 32767),
    "integer": ("-2147483648", -2147483648),
    "bigint": ("9007199254740993", 9007199254740993),
    "real": ("REAL '1.5'", 1.5),
    "double": ("DOUBLE '2.5'", 2.5),
    "decimal(20,4)": ("DECIMAL '-1234567890123456.7891'", "-1234567890123456.7891"),
    "boolean": ("true", True),
    "char(5)": ("'ab'", "ab   "),
    "varchar(20)": ("'bounded'", "bounded"),
    "varchar": ("'текст 文 🙂'", "текст 文 🙂"),
    "varbinary": ("X'00ff'", "AP8="),
    "date": ("DATE '1960-02-29'", "1960-02-29"),
    "timestamp(3)": ("TIMESTAMP '2024-02-29 12:34:56.789'", "2024-02-29 12:34:56.789"),
    "array(integer)": ("ARRAY[1, NULL]", [1, None]),
    "map(varchar, bigint)": ("MAP(ARRAY['k'], ARRAY[9])", {"k": 9}),
    "row(x integer, y array(varchar))": ("ROW(7, ARRAY['z'])", [7, ["z"]]),
}


@pytest.fixture
def comment(engine: Engine) -> str:
    """A comment in any language. Hive's own tables for MySQL only store latin-1."""
    return "ñ it's" if engine.metastore is None else "Таблица 表 ñ 🙂 it's"


def refused(session: Session, statement: str) -> str:
    """The code of the error with which Trino refuses it."""
    with pytest.raises(QueryFailed) as caught:
        session.execute(statement)
    return caught.value.name


def test_schemas(trino: Session, schema: str, tmp_path: Path) -> None:
    assert refused(trino, f"CREATE SCHEMA hive.{schema}") == "SCHEMA_ALREADY_EXISTS"
    trino.execute(f"CREATE SCHEMA IF NOT EXISTS hive.{schema}")
    assert refused(trino, f"SHOW TABLES FROM hive.{schema}_none") == "SCHEMA_NOT_FOUND"
    second = f"{schema}_placed"
    trino.execute(f"CREATE SCHEMA hive.{second} WITH (location = 'file:{tmp_path}/Placed')")
    assert f"location = 'file:{tmp_path}/Placed'" in trino.value(f"SHOW CREATE SCHEMA hive.{second}")
    names = trino.column("SHOW SCHEMAS FROM hive")
    assert {schema, second, "default"} <= set(names)
    listed = trino.column(
        f"SELECT schema_name FROM hive.information_schema.schemata WHERE schema_name LIKE '{schema}%'"
    )
    assert sorted(listed) == [schema, second]
    trino.execute(f"CREATE TABLE hive.{second}.t (a bigint)")
    assert (tmp_path / "Placed" / "t").is_dir()
    assert refused(trino, f"DROP SCHEMA hive.{second}") == "SCHEMA_NOT_EMPTY"
    trino.execute(f"CREATE VIEW hive.{second}.v AS SELECT a FROM hive.{second}.t")
    trino.execute(f"DROP SCHEMA hive.{second} CASCADE")
    assert second not in trino.column("SHOW SCHEMAS FROM hive")
    assert not (tmp_path / "Placed" / "t").exists()
    assert refused(trino, f"DROP SCHEMA hive.{second}") == "SCHEMA_NOT_FOUND"
    trino.execute(f"DROP SCHEMA IF EXISTS hive.{second}")


STORAGE_FORMATS = ("ORC", "PARQUET", "AVRO", "RCBINARY", "RCTEXT", "SEQUENCEFILE", "TEXTFILE", "JSON")
#: Avro has no small integers, and Trino reads binaries in JSON as text.
LEFT_OUT: dict[str, set[str]] = {"AVRO": {"tinyint", "smallint"}, "JSON": {"varbinary"}}


def test_values_of_all_types_come_back(engine: Engine, trino: Session, schema: str) -> None:
    # Trino cannot read the statistics of timestamps that Hive 4.0.1 returns.
    unreadable = {"timestamp(3)"} if engine.metastore is None else set()
    for storage in STORAGE_FORMATS:
        left_out = unreadable | LEFT_OUT.get(storage, set())
        values = {name: value for name, value in VALUES.items() if name not in left_out}
        columns = ", ".join(f"c{number} {type_name}" for number, type_name in enumerate(values))
        table = f"hive.{schema}.{storage}"
        trino.execute(f"CREATE TABLE {table} ({columns}) WITH (format = '{storage}')")
        described = trino.rows(f"DESCRIBE {table}")
        assert [row[1] for row in described] == list(values)
        trino.execute(f"INSERT INTO {table} VALUES ({', '.join(literal for literal, _ in values.values())})")
        trino.execute(f"INSERT INTO {table} (c0) VALUES (NULL)")
        assert trino.rows(f"SELECT * FROM {table} WHERE c2 IS NOT NULL") == [[value for _, value in values.values()]]
        assert trino.rows(f"SELECT * FROM {table} WHERE c2 IS NULL") == [[None] * len(values)]
        trino.execute(f"CREATE TABLE {table}2 WITH (format = '{storage}') AS SELECT * FROM {table}")
        assert trino.rows(f"DESCRIBE {table}2") == described
        assert trino.value(f"SELECT count(*) FROM {table}2") == 2


def test_columns_and_comments(trino: Session, schema: str, comment: str) -> None:
    written = comment.replace("'", "''")
    table = f"hive.{schema}.t"
    trino.execute(
        f"CREATE TABLE {table} (a integer COMMENT '{written}', b varchar) COMMENT '{written}' WITH (format = 'ORC')"
    )
    trino.execute(f"INSERT INTO {table} VALUES (1, 'x')")
    assert trino.rows(f"DESCRIBE {table}") == [["a", "integer", "", comment], ["b", "varchar", "", ""]]
    trino.execute(f"COMMENT ON COLUMN {table}.b IS 'second {written}'")
    trino.execute(f"COMMENT ON COLUMN {table}.a IS NULL")
    trino.execute(f"ALTER TABLE {table} ADD COLUMN c varchar COMMENT '{written}'")
    trino.execute(f"ALTER TABLE {table} RENAME COLUMN a TO number")
    assert refused(trino, f"ALTER TABLE {table} ADD COLUMN c bigint") == "COLUMN_ALREADY_EXISTS"
    trino.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS c bigint")
    # ORC's columns are identified by their position.
    assert trino.rows(f"SELECT number, b, c FROM {table}") == [[1, "x", None]]
    assert trino.rows(f"DESCRIBE {table}") == [
        ["number", "integer", "", ""],
        ["b", "varchar", "", f"second {comment}"],
        ["c", "varchar", "", comment],
    ]
    trino.execute(f"ALTER TABLE {table} DROP COLUMN c")
    assert trino.column(f"DESCRIBE {table}") == ["number", "b"]
    comments = (
        f"SELECT comment FROM system.metadata.table_comments WHERE catalog_name = 'hive' AND schema_name = '{schema}'"
    )
    assert trino.column(comments) == [comment]
    trino.execute(f"COMMENT ON TABLE {table} IS NULL")
    assert trino.column(comments) == [None]
    # Hive refuses what would make old files be read as another type: dropping a column in the middle moves the others.
    trino.execute(f"CREATE TABLE {table}2 (a varchar, b bigint)")
    with pytest.raises(QueryFailed, match="types incompatible with the existing columns"):
        trino.execute(f"ALTER TABLE {table}2 ADD COLUMN c date")
        trino.execute(f"ALTER TABLE {table}2 DROP COLUMN b")


def test_tables_are_renamed_with_their_data(trino: Session, schema: str) -> None:
    trino.execute(f"CREATE SCHEMA hive.{schema}_other")
    table = f"hive.{schema}.t"
    trino.execute(f"CREATE TABLE {table} (a bigint, p varchar) WITH (partitioned_by = ARRAY['p'])")
    trino.execute(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    trino.execute(f"ALTER TABLE {table} RENAME TO {table}_new")
    assert refused(trino, f"SELECT * FROM {table}") == "TABLE_NOT_FOUND"
    assert trino.rows(f"SELECT * FROM {table}_new ORDER BY a") == [[1, "x"], [2, "y"]]
    trino.execute(f"ALTER TABLE {table}_new RENAME TO hive.{schema}_other.moved")
    assert trino.column(f"SHOW TABLES FROM hive.{schema}") == []
    assert trino.column(f"SHOW TABLES FROM hive.{schema}_other") == ["moved"]
    assert trino.value(f"SELECT sum(a) FROM hive.{schema}_other.moved WHERE p = 'y'") == 2
    trino.execute(f"INSERT INTO hive.{schema}_other.moved VALUES (3, 'y'), (4, 'z')")
    assert trino.value(f"SELECT sum(a) FROM hive.{schema}_other.moved") == 10
    trino.execute(f"CREATE TABLE {table} (a bigint)")
    assert refused(trino, f"CREATE TABLE {table} (a bigint)") == "TABLE_ALREADY_EXISTS"
    trino.execute(f"CREATE TABLE {table}2 (a bigint)")
    assert refused(trino, f"ALTER TABLE {table} RENAME TO {table}2") == "TABLE_ALREADY_EXISTS"
    trino.execute(f"DROP TABLE {table}")
    assert refused(trino, f"DROP TABLE {table}") == "TABLE_NOT_FOUND"
    trino.execute(f"DROP TABLE IF EXISTS {table}")


def test_files_of_external_tables_stay_those_of_managed_ones_go(trino: Session, schema: str, tmp_path: Path) -> None:
    outside = tmp_path / "external table"
    outside.mkdir()
    (outside / "one.txt").write_text("1\x01a\n2\x01b\n")
    external = f"hive.{schema}.ext"
    place = f"external_location = 'file:{outside}', format = 'TEXTFILE'"
    trino.execute(f"CREATE TABLE {external} (a bigint, b varchar) WITH ({place})")
    assert trino.rows(f"SELECT * FROM {external} ORDER BY a") == [[1, "a"], [2, "b"]]
    assert f"external_location = 'file:{outside}'" in trino.value(f"SHOW CREATE TABLE {external}")
    trino.execute(f"INSERT INTO {external} VALUES (3, 'c')")
    assert trino.value(f"SELECT count(*) FROM {external}") == 3
    trino.execute(f"DROP TABLE {external}")
    assert len(list(outside.glob("[!.]*"))) == 2
    managed = f"hive.{schema}.man"
    trino.execute(f"CREATE TABLE {managed} AS SELECT 1 AS a")
    file = Path(trino.value(f'SELECT "$path" FROM {managed}').removeprefix("file:"))
    assert file.is_file()
    trino.execute(f"DROP TABLE {managed}")
    assert not file.parent.exists()


def test_buckets_and_properties(trino: Session, schema: str, comment: str) -> None:
    table = f"hive.{schema}.b"
    bucketing = "bucketed_by = ARRAY['a'], bucket_count = 4, sorted_by = ARRAY['b DESC'], bucketing_version = 2"
    written = comment.replace("'", "''")
    numbers = "SELECT x AS a, cast(x AS varchar) AS b FROM UNNEST(sequence(1, 40)) AS t(x)"
    trino.execute(f"CREATE TABLE {table} WITH ({bucketing}) AS {numbers}")
    assert trino.rows(f'SELECT count(*), count(DISTINCT "$bucket") FROM {table}') == [[40, 4]]
    assert trino.column(f"SELECT b FROM {table} WHERE a = 17") == ["17"]
    made = trino.value(f"SHOW CREATE TABLE {table}")
    for part in (
        "bucket_count = 4",
        "bucketed_by = ARRAY['a']",
        "sorted_by = ARRAY['b DESC']",
        "bucketing_version = 2",
    ):
        assert part in made
    trino.execute(f"CREATE TABLE {table}2 (LIKE {table} INCLUDING PROPERTIES)")
    assert trino.value(f"SHOW CREATE TABLE {table}2") == made.replace(f"{table} (", f"{table}2 (")
    trino.execute(
        f"CREATE TABLE {table}3 (a bigint) WITH (extra_properties = MAP(ARRAY['owner.team'], ARRAY['{written}']))"
    )
    assert trino.value(f'SELECT "owner.team" FROM hive.{schema}."b3$properties"') == comment
    trino.execute(f"DELETE FROM {table}")
    assert trino.value(f"SELECT count(*) FROM {table}") == 0


def test_views(trino: Session, schema: str, comment: str) -> None:
    written = comment.replace("'", "''")
    trino.execute(f"CREATE TABLE hive.{schema}.t AS SELECT 1 AS a, 'x' AS b")
    view = f"hive.{schema}.v"
    trino.execute(f"CREATE VIEW {view} COMMENT 'вид' AS SELECT a, b FROM hive.{schema}.t")
    assert trino.rows(f"SELECT * FROM {view}") == [[1, "x"]]
    assert refused(trino, f"CREATE VIEW {view} AS SELECT 1 AS x") == "TABLE_ALREADY_EXISTS"
    trino.execute(f"CREATE OR REPLACE VIEW {view} SECURITY INVOKER AS SELECT a + 1 AS n FROM hive.{schema}.t")
    trino.execute(f"COMMENT ON VIEW {view} IS 'ещё'")
    trino.execute(f"COMMENT ON COLUMN {view}.n IS '{written}'")
    assert trino.rows(f"DESCRIBE {view}") == [["n", "integer", "", comment]]
    assert trino.value(f"SHOW CREATE VIEW {view}").startswith(f"CREATE VIEW {view} COMMENT 'ещё' SECURITY INVOKER AS")
    trino.execute(f"ALTER VIEW {view} RENAME TO {view}2")
    assert trino.rows(f"SELECT * FROM {view}2") == [[2]]
    assert refused(trino, f"DROP TABLE {view}2") == "GENERIC_USER_ERROR"
    assert refused(trino, f"DROP VIEW hive.{schema}.t") == "GENERIC_USER_ERROR"
    views = f"SELECT table_name FROM hive.information_schema.views WHERE table_schema = '{schema}'"
    assert trino.column(views) == ["v2"]
    trino.execute(f"DROP VIEW {view}2")
    assert trino.column(views) == []


def test_functions(trino: Session, schema: str) -> None:
    function = f"hive.{schema}.plus"
    long_text = "я" * 3000
    trino.execute(f"CREATE FUNCTION {function}(x bigint) RETURNS bigint COMMENT 'прибавить' RETURN x + 1")
    trino.execute(f"CREATE FUNCTION {function}(x varchar) RETURNS varchar RETURN x || '{long_text}'")
    assert trino.rows(f"SELECT {function}(41), {function}('да')") == [[42, f"да{long_text}"]]
    assert refused(trino, f"CREATE FUNCTION {function}(x bigint) RETURNS bigint RETURN x") == "ALREADY_EXISTS"
    trino.execute(f"CREATE OR REPLACE FUNCTION {function}(x bigint) RETURNS bigint RETURN x + 2")
    assert trino.value(f"SELECT {function}(40)") == 42
    assert [row[:3] for row in trino.rows(f"SHOW FUNCTIONS FROM hive.{schema}")] == [
        ["plus", "bigint", "bigint"],
        ["plus", "varchar", "varchar"],
    ]
    trino.execute(f"DROP FUNCTION {function}(bigint)")
    assert refused(trino, f"DROP FUNCTION {function}(bigint)") == "NOT_FOUND"
    trino.execute(f"DROP FUNCTION IF EXISTS {function}(bigint)")
    assert refused(trino, f"SELECT {function}(BIGINT '1')") in {"FUNCTION_NOT_FOUND", "TYPE_MISMATCH"}
    trino.execute(f"DROP FUNCTION {function}(varchar)")
    assert trino.rows(f"SHOW FUNCTIONS FROM hive.{schema}") == []


def test_listings(trino: Session, schema: str) -> None:
    trino.execute(f"CREATE TABLE hive.{schema}.t (a bigint, p date) WITH (partitioned_by = ARRAY['p'])")
    trino.execute(f"CREATE TABLE hive.{schema}.t_2 (c varchar(7))")
    trino.execute(f"CREATE VIEW hive.{schema}.tv AS SELECT a FROM hive.{schema}.t")
    assert trino.rows(
        f"SELECT table_name, table_type FROM hive.information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
    ) == [["t", "BASE TABLE"], ["t_2", "BASE TABLE"], ["tv", "VIEW"]]
    columns = trino.rows(
        "SELECT table_name, column_name, ordinal_position, data_type"
        f" FROM hive.information_schema.columns WHERE table_schema = '{schema}'"
    )
    assert sorted(columns) == [
        ["t", "a", 1, "bigint"],
        ["t", "p", 2, "date"],
        ["t_2", "c", 1, "varchar(7)"],
        ["tv", "a", 1, "bigint"],
    ]
    assert trino.column(f"SHOW TABLES FROM hive.{schema} LIKE 't$_%' ESCAPE '$'") == ["t_2"]
    assert trino.rows(
        f"SELECT table_name, table_type FROM system.jdbc.tables WHERE table_cat = 'hive' AND table_schem = '{schema}'"
        " ORDER BY 1"
    ) == [["t", "TABLE"], ["t_2", "TABLE"], ["tv", "VIEW"]]
    assert sorted(
        trino.column(
            f"SELECT column_name FROM system.jdbc.columns WHERE table_cat = 'hive' AND table_schem = '{schema}'"
        )
    ) == ["a", "a", "c", "p"]
    assert trino.value(f"SELECT count(*) FROM hive.information_schema.tables WHERE table_schema = '{schema}_no'") == 0
