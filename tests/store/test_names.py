"""Name rules."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, String, create_engine, literal, select

from hms_cache.metadata.names import (
    is_valid_name,
    matching_names,
    name_pattern,
    normalize_identifier,
    table_directory_name,
)
from hms_cache.metadata.object_names import DatabaseName, TableName, database_name, function_name, table_name
from hms_cache.store.engine.text_conditions import may_match


@pytest.mark.parametrize(
    ("name", "plain", "special"),
    [
        ("abc_1", True, True),
        ("a b", False, True),
        ("a/b.c@d#e", False, True),
        ("ä", False, False),
        ("a\\b", False, False),
        ("", False, False),
        (" ", False, False),
        ("  ", False, False),
        (None, False, False),
        ("a\n", False, False),
    ],
)
def test_valid_names(name: str | None, plain: bool, special: bool) -> None:
    assert is_valid_name(name, special_characters=False) is plain
    assert is_valid_name(name) is special


def test_normalized() -> None:
    assert normalize_identifier("  A b ") == normalize_identifier("\x00\tA b\n\x1f") == "a b"
    # What remains after Java's `trim` (`StringUtils.normalizeIdentifier`).
    assert normalize_identifier("A\u3000") == "a\u3000"
    assert normalize_identifier("\xa0A\x85") == "\xa0a\x85"
    assert table_directory_name("A.b c") == "a-46-b-32-c"


def test_patterns_are_cached_and_dots_match_anything() -> None:
    assert name_pattern("a*") is name_pattern("a*")
    assert matching_names(["b", "a"], None) == ["a", "b"]
    assert matching_names(["ab", "abc", "a"], "a.*") == ["ab", "abc"]


_WORD = st.text("ab_%\\.[", max_size=5)
_PATTERN = st.lists(st.text("ab_%\\.[*", max_size=5), max_size=3).map("|".join)


@given(pattern=_PATTERN, names=st.lists(_WORD, max_size=8))
def test_sql_lets_every_match_through(pattern: str, names: list[str]) -> None:
    """What Python selects is part of what the database returns."""
    matches = matching_names(names, pattern)
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        for name in matches:
            column = literal(name)
            conditions = may_match(column, pattern)
            assert connection.execute(select(literal(1)).where(*conditions)).scalar() == 1, (name, pattern)


@given(text=st.text("abc", max_size=6))
def test_names_without_wildcards_match_themselves_only(text: str) -> None:
    names = ["a", "ab", "abc", text]
    assert set(matching_names(names, text)) == ({text} if text else set())


def test_columns_are_what_is_compared() -> None:
    assert may_match(Column("n", String), None) == []
    assert re.search("LIKE", str(may_match(Column("n", String), "a*")[0]))


def test_a_name_remembers_how_it_was_spelled() -> None:
    name = table_name("HIVE", "Db", " T")
    assert name == TableName("hive", "db", "t") and hash(name) == hash(TableName("hive", "db", "t"))
    assert (str(name), str(name.as_sent), str(name.in_database.as_sent)) == ("hive.db.t", "HIVE.Db. T", "HIVE.Db")
    assert type(name.as_stored) is TableName and name.as_stored.as_sent == name.as_stored == name
    assert pickle.loads(pickle.dumps(name)).as_sent == name.as_sent
    assert name._replace(table="other").as_sent == TableName("hive", "db", "other"), "another name"
    database = database_name(None, "Db")
    assert (database, database.as_sent) == (DatabaseName("hive", "db"), DatabaseName("hive", "Db"))
    assert type(database.as_stored) is DatabaseName
    assert function_name(None, "d", "F").as_sent == ("hive", "d", "F")
    for same in (table_name(None, "d", "t"), database_name("", "d"), function_name("hive", "d", "f")):
        assert same.as_sent is same, "most names are sent as they are stored"
