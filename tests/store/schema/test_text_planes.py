"""Texts with characters that columns of MySQL do not have: another text is sent in their place."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql.err import OperationalError
from sqlalchemy.exc import DataError

from hms_cache.store.engine.dialects import is_uncomparable, without_values_on_mysql
from hms_cache.store.schema.text_planes import comparable_parameters

ZHE, FACE = "\N{CYRILLIC SMALL LETTER ZHE}", "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "statement", ["SELECT x WHERE a = %(a)s AND b IN (%(b)s, %(c)s)", "DELETE FROM t WHERE a = %(a)s"]
)
def test_texts_of_the_plane_are_replaced_and_no_others(statement: str) -> None:
    given: dict[str, Any] = {"a": ZHE, "b": FACE, "c": "é", "d": 7}
    beyond_basic = comparable_parameters(statement, given, 2)
    beyond_latin1 = comparable_parameters(statement, given, 1)
    assert beyond_basic is not None and beyond_latin1 is not None
    assert {name for name in given if beyond_basic[name] != given[name]} == {"b"}
    assert {name for name in given if beyond_latin1[name] != given[name]} == {"a", "b"}
    assert beyond_latin1["a"].isascii()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT x WHERE a > %(a)s",
        "SELECT x WHERE a <= %(a)s",
        "SELECT x WHERE a BETWEEN %(b)s AND %(a)s",
        "INSERT INTO t VALUES (%(a)s)",
        "UPDATE t SET a = %(a)s WHERE b = %(b)s",
    ],
)
def test_what_is_ordered_by_or_written_is_left(statement: str) -> None:
    assert comparable_parameters(statement, {"a": ZHE, "b": "x"}, 1) is None


def test_nothing_is_done_where_no_text_is_the_reason() -> None:
    assert comparable_parameters("SELECT x WHERE a = %(a)s", {"a": "é"}, 1) is None
    assert comparable_parameters("SELECT 1", None, 1) is None


@pytest.mark.parametrize(
    ("number", "text_of_server"),
    [
        (1267, "Illegal mix of collations (latin1_bin,IMPLICIT) and (utf8mb4_general_ci,COERCIBLE) for operation '='"),
        (3854, "Cannot convert string '\\xE6\\x97\\xA5...' from utf8mb4 to latin1"),
        (3988, "Conversion from collation utf8mb4_0900_ai_ci into latin1_swedish_ci impossible for parameter"),
    ],
)
def test_the_errors_of_both_databases_are_known_and_show_no_value(number: int, text_of_server: str) -> None:
    """The last two are MySQL's (`tests/newer_servers`)."""
    assert is_uncomparable(DataError("SELECT", None, OperationalError(number, text_of_server)))
    assert "xE6" not in without_values_on_mysql(number, text_of_server)


def test_columns_that_do_not_fit_together_are_an_error_and_not_an_empty_answer() -> None:
    """MariaDB 11.8 raised it for a read of a table on Hive's schema, which then had no parameters and no keys."""
    error = OperationalError(1271, "Illegal mix of collations for operation 'UNION'")
    assert not is_uncomparable(DataError("SELECT", None, error))
    assert is_uncomparable(
        DataError("SELECT", None, OperationalError(1271, "Illegal mix of collations for operation 'IN'"))
    )
