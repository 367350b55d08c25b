"""Trino's Hive connector: partitions, which of them are read, and statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.trino.coordinator import QueryFailed, Row, Session
from tests.clients.trino.engines import MARKS, Engine

pytestmark = MARKS

#: 24 rows in 24 partitions: v from 0 to 23.
ROWS = (
    "SELECT x AS v, 's' || cast(x % 3 AS varchar) AS s, cast(x % 4 AS integer) AS i,"
    " DATE '2024-01-31' + INTERVAL '1' DAY * (x % 2) + INTERVAL '1' MONTH * (x / 12) AS d"
    " FROM UNNEST(sequence(0, 23)) AS t(x)"
)


def days(x: int) -> str:
    return [["2024-01-31", "2024-02-01"], ["2024-02-29", "2024-03-01"]][x // 12][x % 2]


EXPECTED = [(x, f"s{x % 3}", x % 4, days(x)) for x in range(24)]


@pytest.fixture
def table(trino: Session, schema: str) -> str:
    """A table with keys of three types."""
    name = f"hive.{schema}.p"
    trino.execute(
        f"CREATE TABLE {name} (v bigint, s varchar, i integer, d date)"
        " WITH (format = 'PARQUET', partitioned_by = ARRAY['s', 'i', 'd'])"
    )
    assert trino.changed(f"INSERT INTO {name} {ROWS}") == 24
    return name


def partitions(session: Session, table: str, condition: str = "true") -> list[Row]:
    catalog, schema, name = table.split(".")
    return session.rows(f'SELECT * FROM {catalog}.{schema}."{name}$partitions" WHERE {condition} ORDER BY 1, 2, 3')


CONDITIONS: list[tuple[str, Callable[[str, int, str], bool]]] = [
    ("true", lambda s, i, d: True),
    ("s = 's1'", lambda s, i, d: s == "s1"),
    ("s IN ('s0', 's2', 'none')", lambda s, i, d: s in ("s0", "s2")),
    ("s > 's0' AND s < 's2'", lambda s, i, d: s == "s1"),
    ("s LIKE '%1'", lambda s, i, d: s == "s1"),
    ("s <> 's1'", lambda s, i, d: s != "s1"),
    ("s IS NULL", lambda s, i, d: False),
    ("i = 2", lambda s, i, d: i == 2),
    ("i BETWEEN 1 AND 2", lambda s, i, d: 1 <= i <= 2),
    ("i > 1 OR i = 0", lambda s, i, d: i > 1 or i == 0),
    ("i % 2 = 1", lambda s, i, d: i % 2 == 1),
    ("d = DATE '2024-02-29'", lambda s, i, d: d == "2024-02-29"),
    ("d >= DATE '2024-02-01'", lambda s, i, d: d >= "2024-02-01"),
    ("d IN (DATE '2024-01-31', DATE '2024-03-01')", lambda s, i, d: d in ("2024-01-31", "2024-03-01")),
    ("month(d) = 2", lambda s, i, d: d[5:7] == "02"),
    ("s = 's2' AND i < 3 AND d < DATE '2024-02-02'", lambda s, i, d: s == "s2" and i < 3 and d < "2024-02-02"),
    ("s = 's2' OR d = DATE '2024-01-31'", lambda s, i, d: s == "s2" or d == "2024-01-31"),
]


def test_conditions_on_keys_select_partitions(trino: Session, table: str) -> None:
    for condition, is_expected in CONDITIONS:
        wanted = [list(row) for row in EXPECTED if is_expected(*row[1:])]
        assert sorted(trino.rows(f"SELECT * FROM {table} WHERE {condition}")) == wanted, condition
        assert partitions(trino, table, condition) == sorted(row[1:] for row in wanted), condition


def test_values_that_need_care_are_names_and_places_of_partitions(trino: Session, table: str) -> None:
    values: list[Row] = [
        [100, None, None, None],
        [101, "a/b=c d%", -7, "1969-12-31"],
        [102, "__x__:;'\"", 2147483647, "9999-12-31"],
        [103, "UPPER", 0, "0001-01-01"],
    ]
    literals = [
        "(100, NULL, NULL, NULL)",
        "(101, 'a/b=c d%', -7, DATE '1969-12-31')",
        "(102, '__x__:;''\"', 2147483647, DATE '9999-12-31')",
        "(103, 'UPPER', 0, DATE '0001-01-01')",
    ]
    assert trino.changed(f"INSERT INTO {table} VALUES {', '.join(literals)}") == 4
    assert sorted(trino.rows(f"SELECT * FROM {table} WHERE v >= 100")) == values
    assert trino.column(f"SELECT v FROM {table} WHERE s IS NULL AND i IS NULL AND d IS NULL") == [100]
    assert trino.column(f"SELECT v FROM {table} WHERE s = 'a/b=c d%'") == [101]
    assert trino.column(f"SELECT v FROM {table} WHERE s = '__x__:;''\"'") == [102]
    assert trino.column(f"SELECT v FROM {table} WHERE s = 'upper'") == []
    assert trino.column(f"SELECT v FROM {table} WHERE i < 0") == [101]
    assert trino.column(f"SELECT v FROM {table} WHERE d > DATE '5000-01-01'") == [102]
    assert trino.column(f"SELECT v FROM {table} WHERE d < DATE '1900-01-01'") == [103]
    for key in ("s IS NULL", "s = 'a/b=c d%'", "s = 'UPPER'"):
        trino.execute(f"DELETE FROM {table} WHERE {key}")
    assert trino.column(f"SELECT v FROM {table} WHERE v >= 100") == [102]


def test_inserts_add_to_partitions_or_replace_them(trino: Session, table: str) -> None:
    trino.execute(f"INSERT INTO {table} VALUES (50, 's0', 0, DATE '2024-01-31'), (51, 'new', 9, DATE '2024-01-31')")
    same = "s = 's0' AND i = 0 AND d = DATE '2024-01-31'"
    assert sorted(trino.column(f"SELECT v FROM {table} WHERE {same}")) == [0, 50]
    assert len(partitions(trino, table)) == 25
    trino.properties["hive.insert_existing_partitions_behavior"] = "OVERWRITE"
    trino.execute(f"INSERT INTO {table} VALUES (60, 's0', 0, DATE '2024-01-31')")
    assert trino.column(f"SELECT v FROM {table} WHERE {same}") == [60]
    assert len(partitions(trino, table)) == 25
    trino.properties["hive.insert_existing_partitions_behavior"] = "ERROR"
    with pytest.raises(QueryFailed, match="Cannot insert into an existing partition"):
        trino.execute(f"INSERT INTO {table} VALUES (61, 's0', 0, DATE '2024-01-31')")
    assert trino.value(f"SELECT count(*) FROM {table}") == 25


def test_deletes_drop_whole_partitions(trino: Session, table: str) -> None:
    trino.execute(f"DELETE FROM {table} WHERE s = 's0' AND i > 0")
    left = [list(row) for row in EXPECTED if not (row[1] == "s0" and row[2] > 0)]
    assert sorted(trino.rows(f"SELECT * FROM {table}")) == left
    assert partitions(trino, table) == sorted(row[1:] for row in left)
    trino.execute(f"DELETE FROM {table}")
    assert partitions(trino, table) == []


def test_many_partitions_at_once(trino: Session, schema: str) -> None:
    table = f"hive.{schema}.many"
    numbers = "SELECT x AS v, x AS p FROM UNNEST(sequence(1, 150)) AS t(x)"
    trino.execute(f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['p']) AS {numbers}")
    assert trino.changed(f"INSERT INTO {table} {numbers}") == 150
    assert trino.rows(f"SELECT count(*), sum(v), count(DISTINCT p) FROM {table}") == [[300, 2 * 11325, 150]]
    trino.execute(f"ANALYZE {table}")
    assert trino.rows(f"SHOW STATS FOR {table}")[-1][4] == 300
    trino.execute(f"DELETE FROM {table} WHERE p <= 100")
    assert trino.rows(f"SELECT count(*), min(p) FROM {table}") == [[100, 101]]


def test_procedures(trino: Session, table: str) -> None:
    schema = table.split(".")[1]
    keys, values = "ARRAY['s', 'i', 'd']", "ARRAY['proc', '1', '2024-05-05']"
    procedure = f"('{schema}', 'p', {keys}, {values})"
    trino.execute(f"CALL hive.system.create_empty_partition{procedure}")
    assert partitions(trino, table, "s = 'proc'") == [["proc", 1, "2024-05-05"]]
    with pytest.raises(QueryFailed, match="Partition already exists"):
        trino.execute(f"CALL hive.system.create_empty_partition{procedure}")
    trino.execute(f"INSERT INTO {table} VALUES (70, 'proc', 1, DATE '2024-05-05')")
    file = Path(trino.value(f"SELECT \"$path\" FROM {table} WHERE s = 'proc'").removeprefix("file:"))
    trino.execute(f"CALL hive.system.unregister_partition{procedure}")
    assert partitions(trino, table, "s = 'proc'") == []
    assert file.is_file()
    with pytest.raises(QueryFailed, match="does not exist"):
        trino.execute(f"CALL hive.system.unregister_partition{procedure}")
    trino.execute(f"CALL hive.system.register_partition{procedure}")
    assert trino.column(f"SELECT v FROM {table} WHERE s = 'proc'") == [70]
    trino.execute(f"CALL hive.system.unregister_partition{procedure}")
    trino.execute(f"CALL hive.system.sync_partition_metadata('{schema}', 'p', 'ADD')")
    assert trino.column(f"SELECT v FROM {table} WHERE s = 'proc'") == [70]
    file.unlink()
    for left in file.parent.iterdir():
        left.unlink()
    file.parent.rmdir()
    trino.execute(f"CALL hive.system.sync_partition_metadata('{schema}', 'p', 'DROP')")
    assert partitions(trino, table, "s = 'proc'") == []
    trino.execute(f"CALL hive.system.sync_partition_metadata('{schema}', 'p', 'FULL')")
    assert len(partitions(trino, table)) == 24


def test_columns_are_added_and_renamed_with_their_partitions(trino: Session, table: str) -> None:
    trino.execute(f"ALTER TABLE {table} ADD COLUMN w varchar")
    trino.execute(f"INSERT INTO {table} (v, w, s, i, d) VALUES (80, 'w', 's0', 0, DATE '2024-01-31')")
    assert sorted(trino.rows(f"SELECT v, w FROM {table} WHERE s = 's0' AND i = 0 AND d = DATE '2024-01-31'")) == [
        [0, None],
        [80, "w"],
    ]
    with pytest.raises(QueryFailed, match="Renaming partition columns is not supported"):
        trino.execute(f"ALTER TABLE {table} RENAME COLUMN s TO t")


COLUMNS: dict[str, str] = {
    "a": "bigint",
    "b": "varchar",
    "d": "date",
    "e": "decimal(10,2)",
    "f": "double",
    "g": "boolean",
    "h": "varbinary",
    "i": "char(3)",
    "j": "real",
    "k": "smallint",
    "l": "timestamp(3)",
}
STATISTICS_ROWS = (
    "(1, 'x', DATE '2020-01-01', DECIMAL '1.25', DOUBLE '1.5', true, X'01', 'a',"
    " REAL '1.5', SMALLINT '2', TIMESTAMP '2020-01-01 10:00:00')",
    f"({', '.join(['NULL'] * len(COLUMNS))})",
    "(-5, 'yyy', DATE '1960-05-05', DECIMAL '-99.25', DOUBLE '-1.5', false, X'0102',"
    " 'ccc', REAL '-1.5', SMALLINT '-2', TIMESTAMP '1960-05-05 10:00:00.5')",
    "(1, 'x', DATE '2020-01-01', DECIMAL '1.25', DOUBLE '1.5', true, X'01', 'a',"
    " REAL '1.5', SMALLINT '2', TIMESTAMP '2020-01-01 10:00:00')",
)
#: Column to its number of distinct values, least and greatest one, as Trino shows them: none of texts, and Trino
#: does not collect those of timestamps. A quarter of the rows is null.
STATISTICS: dict[str, tuple[float | None, str | None, str | None]] = {
    "a": (2.0, "-5", "1"),
    "b": (2.0, None, None),
    "d": (2.0, "1960-05-05", "2020-01-01"),
    "e": (2.0, "-99.25", "1.25"),
    "f": (2.0, "-1.5", "1.5"),
    "g": (2.0, None, None),
    "h": (None, None, None),
    "i": (2.0, None, None),
    "j": (2.0, "-1.5", "1.5"),
    "k": (2.0, "-2", "2"),
    "l": (2.0, None, None),
}


def statistics(session: Session, table: str) -> tuple[dict[str, tuple[object, ...]], float | None]:
    """Per column distinct values, least, greatest and share of nulls; and the number of rows."""
    rows = session.rows(f"SHOW STATS FOR {table}")
    return {row[0]: (row[2], row[5], row[6], row[3]) for row in rows[:-1]}, rows[-1][4]


@pytest.fixture
def columns(engine: Engine) -> dict[str, str]:
    """Hive 4.0.1 answers the statistics of timestamps in a form that Trino cannot read."""
    return {name: kind for name, kind in COLUMNS.items() if engine.metastore is not None or kind != "timestamp(3)"}


@pytest.mark.parametrize("partitioned", [False, True], ids=["table", "partitions"])
def test_statistics_are_written_read_and_dropped(
    trino: Session, schema: str, columns: dict[str, str], partitioned: bool
) -> None:
    table = f"hive.{schema}.st"
    key, way = (", p varchar", "WITH (partitioned_by = ARRAY['p'])") if partitioned else ("", "")
    declared = ", ".join(f"{name} {type_name}" for name, type_name in columns.items())
    trino.execute(f"CREATE TABLE {table} ({declared}{key}) {way}")
    value = ", 'one'" if partitioned else ""
    rows = f"SELECT {', '.join(columns)}{value} FROM (VALUES {', '.join(STATISTICS_ROWS)}) AS t({', '.join(COLUMNS)})"
    trino.execute(f"INSERT INTO {table} {rows}")
    expected = {name: (*values, 0.25) for name, values in STATISTICS.items() if name in columns}
    if partitioned:
        expected["p"] = (1.0, None, None, 0.0)
    # Written with the insert, dropped, and collected again.
    assert statistics(trino, table) == (expected, 4.0)
    trino.execute(f"CALL hive.system.drop_stats('{schema}', 'st')")
    dropped, count = statistics(trino, table)
    unknown = (None, None, None, None)
    assert {name: values for name, values in dropped.items() if name != "p"} == dict.fromkeys(columns, unknown)
    assert count is None
    trino.execute(f"ANALYZE {table}")
    assert statistics(trino, table) == (expected, 4.0)
    if partitioned:
        trino.execute(f"CALL hive.system.drop_stats('{schema}', 'st', ARRAY[ARRAY['one']])")
        trino.execute(f"ANALYZE {table} WITH (partitions = ARRAY[ARRAY['one']], columns = ARRAY['a', 'd'])")
        few, count = statistics(trino, table)
        assert few["a"] == expected["a"]
        assert few["d"] == expected["d"]
        assert few["b"] == unknown
        assert count == 4.0
