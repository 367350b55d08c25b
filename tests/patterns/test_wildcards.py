"""Wildcards match what a backtracking matcher would match, with a bounded number of steps."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.config.sections import LimitsSettings
from hms_cache.metadata.names import NamePattern, matching_names
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

tokens = st.lists(st.one_of(st.sampled_from("abAäİ"), st.sampled_from(Wildcard)), max_size=8)
texts = st.text("abABäİi", max_size=10)


@given(pattern=tokens, text=texts)
def test_as_a_regular_expression(pattern: list[str | Wildcard], text: str) -> None:
    expression = "".join({Wildcard.ONE: ".", Wildcard.MANY: ".*"}.get(token, token) for token in pattern)  # type: ignore[call-overload]
    compiled = WildcardPattern(pattern)
    assert compiled.matches(text) is (re.fullmatch(expression, text, re.DOTALL) is not None)
    assert not compiled.matches(text) or text.startswith(compiled.prefix)


@given(pattern=tokens, text=texts)
def test_any_case(pattern: list[str | Wildcard], text: str) -> None:
    def swapped(one: str) -> str:
        return "".join(other if len(other := character.swapcase()) == 1 else character for character in one)

    expected = WildcardPattern(pattern, any_case=True).matches(text)
    assert WildcardPattern(pattern, any_case=True).matches(swapped(text)) is expected
    others = [token if isinstance(token, Wildcard) else swapped(token) for token in pattern]
    assert WildcardPattern(others, any_case=True).matches(text) is expected


listed = st.lists(st.text("abABäİi_\0", max_size=6), max_size=8)


@given(pattern=tokens, many=listed, any_case=st.booleans())
def test_many_texts_are_selected_as_one_by_one(pattern: list[str | Wildcard], many: list[str], any_case: bool) -> None:
    compiled = WildcardPattern(pattern, any_case=any_case)
    assert compiled.select(many) == [text for text in many if compiled.matches(text)]


@given(pattern=st.text("abA*.|ä ", max_size=8), many=listed)
def test_many_names_are_selected_as_one_by_one(pattern: str, many: list[str]) -> None:
    compiled = NamePattern(pattern)
    assert compiled.select(many) == [name for name in many if compiled.matches(name)]
    assert matching_names(many, pattern) == sorted(compiled.select(many) if pattern != "*" else many)


@pytest.mark.parametrize("wildcards", [[Wildcard.MANY], [Wildcard.ONE, Wildcard.MANY], [Wildcard.MANY, Wildcard.ONE]])
def test_many_wildcards_on_a_long_text(wildcards: list[Wildcard]) -> None:
    pattern: list[str | Wildcard] = [*(["a", *wildcards] * 2_000), "b"]
    assert not WildcardPattern(pattern).matches("a" * 4_000 + "c" + "a" * 4_000)
    assert WildcardPattern(pattern).matches("a" * 8_000 + "b")


alternatives = st.text("ab*.|_% ", max_size=10)


@given(pattern=alternatives, names=st.lists(st.text("abAB_%", min_size=1, max_size=6), unique=True, max_size=8))
def test_names(pattern: str, names: list[str]) -> None:
    parts = [part.strip() for part in pattern.split("|") if part.strip()]
    expressions = [re.escape(part).replace(r"\*", ".*").replace(r"\.", ".") for part in parts]
    matching = [name for name in names if any(re.fullmatch(one, name, re.IGNORECASE) for one in expressions)]
    assert matching_names(names, pattern) == sorted(matching)
    for name in matching:
        assert _any_like(NamePattern(pattern).like_patterns, name.lower())


def _any_like(patterns: tuple[str, ...] | None, name: str) -> bool:
    """What the database would accept."""
    from hms_cache.expressions.like_pattern import sql_pattern

    return patterns is None or any(sql_pattern(pattern).matches(name) for pattern in patterns)


def test_the_database_is_asked_for_two_wildcards_at_most() -> None:
    assert NamePattern("*a*a*a*a*b").like_patterns == ("%a%",)
    assert NamePattern("*orders*|x").like_patterns == ("x", "%orders%")
    assert all(one.count("%") <= 2 for one in NamePattern("a*b*c|**d**|*").like_patterns or ())


def test_alternatives_are_counted() -> None:
    many = "|".join(f"t{number}" for number in range(10_000))
    assert matching_names(["t9999", "x"], many) == ["t9999"]
    assert NamePattern(many).like_patterns is None, "the database would be given 10,000 conditions"
    with pytest.raises(MetaException, match="alternatives with wildcards"):
        NamePattern("|".join(f"t{number}*" for number in range(LimitsSettings().name_pattern_alternatives + 1)))
