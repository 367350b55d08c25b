"""Java's expressions: what they match, what is refused, and how many steps they take."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.patterns import java_regex as module
from hms_cache.patterns.java_regex import JavaRegex, JavaRegexError


@pytest.mark.parametrize(
    ("expression", "text", "matches"),
    [
        ("", "", True),
        ("[a-z]*", "abc", True),
        ("[a-z]*", "ab1", False),
        (r"[\x20-\x7E&&[^,]]*", "a b", True),  # of Hive's manual
        (r"[\x20-\x7E&&[^,]]*", "a,b", False),
        (r"[\x20-\x7E&&[^,]]*", "é", False),
        ("[a-d[x-z]]+", "ay", True),
        ("[a-z&&[def]&&[^e]]", "d", True),
        ("[a-z&&[def]&&[^e]]", "e", False),
        ("[^a-z&&[b]]", "b", False),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("(?i)MiX[a-c]", "mixB", True),
        ("(?i)É", "é", False),
        ("a(?i)b|c", "aB", True),
        ("a(?i:b)c", "aBC", False),
        (r"\Qa.b*\E+", "a.b**", True),
        (r"\d{4}-\d{2}", "2024-01", True),
        (r"\d", "٣", False),
        (r"\p{L}+", "äß", True),
        (r"\P{Lu}", "A", False),
        (r"\p{Alpha}", "ä", False),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("^a$", "a", True),
        ("a^b", "ab", False),
        ("(a|b)?c{2,3}", "accc", True),
        ("(a|b)?c{2,3}", "ac", False),
        ("a{2}{3}", "aaaaaa", True),
        ("(?<name>x)(?:y)", "xy", True),
        (r"\u00e9\x{1F600}\011", "é😀\t", True),
        ("a*?b+?", "aab", True),
        ("()*", "", True),
    ],
)
def test_as_in_java(expression: str, text: str, matches: bool) -> None:
    assert JavaRegex(expression).matches(text) is matches


@pytest.mark.parametrize(
    "expression",
    [
        *(r"(a)\1", "(?=a)a", "(?<!a)b", "(?>a)", "a*+", r"\bx", r"\G", "(", ")", "[", "[a", "a{2", "a{3,2}", "*a"),
        *("\\", r"\p{Klingon}", r"\x1", "[z-a]", "(?x)a", "(" * 200 + ")" * 200, "a{999999999}", "(a{99}){99}"),
        *("((((){999}){999}){999}){999}", "a" * 1_001, "[" * 300, r"\k<a>", r"\p{L", "(?"),
    ],
)
def test_what_is_not_understood_is_refused(expression: str) -> None:
    with pytest.raises(JavaRegexError):
        JavaRegex(expression)


@pytest.mark.parametrize(
    "expression", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){20}b", "(x+x+)+y", "a?" * 40 + "a{40}b"]
)
def test_what_makes_others_backtrack(expression: str) -> None:
    assert not JavaRegex(expression).matches("a" * 5_000)


def test_steps_are_limited(put_in_force: Callable[..., None]) -> None:
    put_in_force(regex_steps=2_000)
    expression = JavaRegex("(.{0,30}){0,30}y")
    with pytest.raises(JavaRegexError, match="steps"):
        expression.matches("".join(chr(300 + number) for number in range(1_000)))


def test_memory_is_limited() -> None:
    expression = JavaRegex("(.*a.{9}){3}")
    for number in range(3_000):
        expression.matches(f"{number:b}".replace("1", "a").replace("0", chr(300 + number)))
        assert sum(map(len, expression._following.values())) <= module.MAX_REMEMBERED
        assert len(expression._accepting) <= module.MAX_REMEMBERED / 10 + 1


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """In the part that Java and Python have in common."""
    atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\.", r"\n", "^", "$", r"\w"])
    nodes = st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: "(?:" + "|".join(parts) + ")"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}"])).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=8,
    )
    return draw(nodes)


@given(expression=expressions(), text=st.text("ab.\n", max_size=8))
def test_as_python_where_both_agree(expression: str, text: str) -> None:
    plain = expression.replace("$", r"\Z")
    assert JavaRegex(expression).matches(text) is (re.fullmatch(plain, text) is not None)


@given(expression=st.text("ab()[]{}|*+?^$.-&\\QEpL,0129", max_size=25), text=st.text("ab\n", max_size=10))
def test_any_text_is_an_expression_or_refused(expression: str, text: str) -> None:
    try:
        compiled = JavaRegex(expression)
    except JavaRegexError:
        return
    compiled.matches(text)
