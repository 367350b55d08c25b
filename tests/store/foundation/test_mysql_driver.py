"""Texts in statements to MariaDB: escaped as by the driver, and read back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.converters import escape_string
from sqlalchemy import Connection, bindparam, text
from sqlalchemy.exc import DataError

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.drivers.mysql_driver import LONG_TEXT_CHARACTERS, MySqlConnection, escaped
from hms_cache.store.engine.work_units import run_read, run_write
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

ON_MARIADB = pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)

SPECIAL = "\\\"'\0\n\r\032%_`;-- é✓𝄞"
TEXTS = st.text(st.sampled_from(SPECIAL) | st.characters(codec="utf-8"), max_size=3 * LONG_TEXT_CHARACTERS)


@given(TEXTS)
def test_as_the_driver_escapes(value: str) -> None:
    assert escaped(value) == escape_string(value)


@pytest.mark.parametrize("length", [LONG_TEXT_CHARACTERS - 1, LONG_TEXT_CHARACTERS, 10 * LONG_TEXT_CHARACTERS])
@pytest.mark.parametrize("character", SPECIAL)
def test_every_special_character_in_short_and_long_texts(character: str, length: int) -> None:
    value = character * length
    assert escaped(value) == escape_string(value)


@ON_MARIADB
@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"])
def test_read_back_as_written(initialized_database: Database, mode: str) -> None:
    values = [SPECIAL, 50 * SPECIAL, 100 * "\\", 100 * "\\'", 100 * '"', "\\" + 100 * "x", "' OR '1'='1' -- " * 10]
    with initialized_database.check_engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, MySqlConnection)
        connection.execute(text("SET SESSION sql_mode = :mode"), {"mode": mode})
        try:
            for value in values:
                found = connection.execute(text("SELECT :value").bindparams(bindparam("value")), {"value": value})
                assert found.scalar_one() == value
        finally:
            connection.execute(text("SET SESSION sql_mode = DEFAULT"))


@ON_MARIADB
def test_what_the_server_does_not_take_is_refused_and_the_connection_stays(initialized_database: Database) -> None:
    """Otherwise it would be cut off in the middle, like in an outage of the database."""
    with initialized_database.check_engine.connect() as connection:
        number = connection.execute(text("SELECT CONNECTION_ID()")).scalar_one()
        limit = connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
        statement = text("SELECT LENGTH(:value)").bindparams(bindparam("value"))
        overhead = len("SELECT LENGTH('')") + 1
        longest = limit - overhead - 1
        assert connection.execute(statement, {"value": "x" * longest}).scalar_one() == longest
        for value in ("x" * limit, "\N{GREEK SMALL LETTER ALPHA}" * (limit // 2), "'" * (limit // 2), "x" * 3 * limit):
            with pytest.raises(DataError, match="max_allowed_packet"):
                connection.execute(statement, {"value": value})
            assert connection.execute(text("SELECT CONNECTION_ID()")).scalar_one() == number


@ON_MARIADB
def test_a_client_is_told_of_what_the_server_does_not_take(initialized_database: Database) -> None:
    def work(connection: Connection) -> object:
        statement = text("SELECT LENGTH(:value)").bindparams(bindparam("value"))
        return connection.execute(statement, {"value": "x" * (32 << 20)}).scalar_one()

    with pytest.raises(MetaException, match="max_allowed_packet"):
        run_read(initialized_database, work)
    with pytest.raises(MetaException, match="max_allowed_packet"):
        run_write(initialized_database, lambda transaction: work(transaction.connection))
