"""What drivers raise on a server that is not a primary, or is shutting down: an outage, and the connection is
closed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pymysql
import pytest

from hms_cache.store.engine.dialects import classify
from hms_cache.store.engine.errors import DatabaseUnavailable

psycopg = pytest.importorskip("psycopg")

READ_ONLY = "The MariaDB server is running with the --read-only option so it cannot execute this statement"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (1290, READ_ONLY),
        (1290, READ_ONLY.replace("--read-only", "--super-read-only")),
        (1836, "Running in read-only mode"),
        (1047, "WSREP has not yet prepared node for application use"),
        (1180, "Error while appending streaming replication fragment"),
    ],
)
def test_mysql_says_that_it_is_not_the_primary(code: int, text: str) -> None:
    found = classify("mysql", pymysql.err.OperationalError(code, text))
    assert isinstance(found, DatabaseUnavailable)
    assert found.connection_lost


def test_another_option_that_prevents_a_statement_is_no_outage() -> None:
    text = READ_ONLY.replace("--read-only", "--secure-file-priv")
    assert classify("mysql", pymysql.err.OperationalError(1290, text)) is None


@pytest.mark.parametrize("state", ["25006", "57P01", "57P02", "57P03", "57P04", "57P05"])
def test_postgresql_says_that_it_is_not_the_primary_or_goes_away(state: str) -> None:
    found = classify("postgresql", psycopg.errors.lookup(state)("no"))
    assert isinstance(found, DatabaseUnavailable)
    assert found.connection_lost


@pytest.mark.parametrize("option", ["mode=ro", "immutable=1"])
def test_sqlite_says_that_its_file_cannot_be_written(tmp_path: Path, option: str) -> None:
    """Its file system has become read-only; a connection that was opened then stays so."""
    path = tmp_path / "some.db"
    sqlite3.connect(path).execute("CREATE TABLE one (number INTEGER)").connection.close()
    connection = sqlite3.connect(f"{path.as_uri()}?{option}", uri=True)
    with pytest.raises(sqlite3.OperationalError) as refused:
        connection.execute("INSERT INTO one VALUES (1)")
    connection.close()
    found = classify("sqlite", refused.value)
    assert isinstance(found, DatabaseUnavailable)
    assert found.connection_lost
