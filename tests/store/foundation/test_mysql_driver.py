"""Texts in statements to MariaDB: escaped as the driver does it, and read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.converters import escape_string
from sqlalchemy import bindparam, text

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.mysql_driver import LONG_TEXT_CHARACTERS, MySqlConnection, escaped

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
