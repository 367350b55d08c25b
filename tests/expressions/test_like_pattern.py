"""Patterns match as in SQL and as Spark expects, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.expressions.like_pattern import expression_pattern, filter_pattern, hive_pattern, sql_pattern
from tests.expressions.reference import _like


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%", "abc", True),
        ("a%", "ba", False),
        ("a_c", "abc", True),
        (r"a\_c", "abc", False),
        (r"a\_c", "a_c", True),
        (r"100\%", "100%", True),
        ("a.c", "abc", True),
        (r"a\.c", "abc", False),
        (r"a\.c", "a.c", True),
        (r"a\b.*", r"a\bc", True),
        ("a.*", "abc", True),
        ("a.b.*", "axb", True),
        (r"a\.b.*", "axb", False),
        ("(x+.*", "(x+1", True),
        (".*", "", True),
        ("%a%b%", "xxaxxbxx", True),
        ("%ab%ba%", "aba", False),
        ("", "", True),
        ("", "a", False),
        ("%", "line\nbreak", True),
    ],
)
def test_filter_patterns(pattern: str, text: str, matches: bool) -> None:
    assert filter_pattern(pattern).matches(text) is matches


def test_the_three_languages_differ() -> None:
    assert sql_pattern("a.*").matches("a.*")
    assert not sql_pattern("a.*").matches("ab")
    assert expression_pattern("a_.").matches("a_x")
    assert not expression_pattern("a_.").matches("abx")
    assert sql_pattern("2024-01%").prefix == "2024-01"
    assert sql_pattern("_2024%").prefix == ""
    assert filter_pattern("20.*").prefix == "20"


def test_a_backslash_in_hives_like_escapes_wildcards_alone() -> None:
    for pattern, text in ((r"a\\b", r"a\\b"), (r"a\\%", r"a\%"), (r"a\_", "a_"), (r"a\%b%", "a%bc"), ("a\\", "a\\")):
        assert hive_pattern(pattern).matches(text), (pattern, text)
    for pattern, text in ((r"a\\b", r"a\b"), (r"a\\%", r"a\bc"), (r"a\_", "ab"), (r"a\\%", r"a\\%")):
        assert not hive_pattern(pattern).matches(text), (pattern, text)


@settings(deadline=None)
@given(st.text(alphabet="ab%_\\", max_size=8), st.text(alphabet="ab%_\\", max_size=8))
def test_hives_like_equals_its_regular_expression(pattern: str, text: str) -> None:
    """`UDFLike.likePatternToRegExp`, piece by piece."""
    pieces = re.findall(r"\\[%_]|.", pattern)
    wild = {"%": ".*?", "_": "."}
    regex = "".join(wild.get(piece) or re.escape(piece[-1]) for piece in pieces)
    assert hive_pattern(pattern).matches(text) is (re.fullmatch(regex, text, re.DOTALL) is not None)


def test_case_may_be_declared_irrelevant() -> None:
    assert expression_pattern("(?i).*").matches("")
    assert expression_pattern("(?i)Orders_.*").matches("oRDERS_1")
    assert not expression_pattern("(?i)Orders_.*").matches("orders1")
    assert filter_pattern("(?i)nL%").matches("NLX")
    assert filter_pattern("(?i)nL%").prefix == ""
    assert sql_pattern("(?i)%").matches("(?i)x")
    assert not sql_pattern("(?i)%").matches("x")


@settings(deadline=None)
@given(st.text(alphabet="ab%_.*\\", max_size=8), st.text(alphabet="ab%_.*\\", max_size=8))
def test_matching_equals_the_plain_matcher(pattern: str, text: str) -> None:
    compiled = filter_pattern(pattern)
    assert compiled.matches(text) == _like(text, pattern)
    if compiled.matches(text):
        assert text.startswith(compiled.prefix)


def test_many_wildcards_do_not_explode() -> None:
    assert not sql_pattern("%a" * 200 + "b%").matches("a" * 4_000)
