"""A database without disk space or memory for a statement: a temporary outage, on a connection that remains usable."""

from __future__ import annotations

import pymysql
import pytest

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import classify
from hms_cache.store.engine.errors import DatabaseUnavailable

psycopg = pytest.importorskip("psycopg")

_FULL: dict[str, tuple[str, ...]] = {
    "sqlite": (
        "CREATE TABLE room (text VARCHAR(1000))",
        "PRAGMA max_page_count = 1",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 100000)"
        " INSERT INTO room SELECT hex(zeroblob(500)) FROM r",
    ),
    "mysql": (
        "SET max_heap_table_size = 16384",
        "CREATE TEMPORARY TABLE room (text VARCHAR(1000)) ENGINE = MEMORY",
        *["INSERT INTO room VALUES (REPEAT('x', 1000))"] * 100,
    ),
    "postgresql": (
        "SET work_mem = '64kB'",
        "SET temp_file_limit = '64kB'",
        "SELECT count(*) FROM (SELECT repeat('x', 1000) FROM generate_series(1, 10000) AS n ORDER BY n) AS sorted",
    ),
}
"""Statements, the last of which finds no room."""

NO_SPACE = '(errno: 28 "No space left on device")'


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1021, f"Disk full (/tmp/#sql-temptable.MAI); waiting for someone to free some space... {NO_SPACE}"),
        (1114, "The table 'NOTIFICATION_LOG' is full"),
        (1030, 'Got error 28 "No space left on device" from storage engine InnoDB'),
        (1026, f"Error writing file '/var/lib/mysql/binlog.000007' {NO_SPACE}"),
        (3, f"Error writing file '/tmp/MYfd=23' {NO_SPACE}"),
        (1037, "Out of memory; restart server and try again (needed 65536 bytes)"),
        (1038, "Out of sort memory, consider increasing server sort buffer size"),
        (1041, "Out of memory."),
        (1135, "Can't create a new thread (errno 11)"),
        (1206, "The total number of locks exceeds the lock table size"),
    ],
)
def test_mysql_lacks_room(code: int, text: str) -> None:
    found = classify("mysql", pymysql.err.OperationalError(code, text))
    assert isinstance(found, DatabaseUnavailable)
    assert not found.connection_lost


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1030, 'Got error 168 "Unknown (generic) error from engine" from storage engine InnoDB'),
        (1026, "Error writing file '/x/28/y' (errno: 13 \"Permission denied\")"),
    ],
)
def test_another_error_of_files_is_no_outage(code: int, text: str) -> None:
    assert classify("mysql", pymysql.err.OperationalError(code, text)) is None


def test_postgresql_lacks_resources() -> None:
    """All that the driver knows of the class."""
    kinds = [one for one in vars(psycopg.errors).values() if str(getattr(one, "sqlstate", None)).startswith("53")]
    assert {one.sqlstate for one in kinds} >= {"53000", "53100", "53200", "53300", "53400"}
    for kind in (*kinds, psycopg.errors.lookup("58030")):
        found = classify("postgresql", kind("no"))
        assert isinstance(found, DatabaseUnavailable), kind
        assert not found.connection_lost


def test_a_statement_that_finds_no_room(empty_database: Database) -> None:
    """The connection still works; on SQLite, the next transaction does."""
    with empty_database.writing() as connection:
        kind = connection.dialect.name
        with pytest.raises(DatabaseUnavailable) as refused:
            for statement in _FULL["mysql" if kind == "mariadb" else kind]:
                connection.exec_driver_sql(statement)
        assert not refused.value.connection_lost
        connection.rollback()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
