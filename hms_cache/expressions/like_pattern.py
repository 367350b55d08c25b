r"""What the pattern of LIKE matches.

For a filter text, Hive 2.3, 3.1 and 4 on MySQL hand LIKE to DataNucleus, with a Java regular expression (`2024.*`), as
Spark sends it; 4 first turns `%` into `.*` and `_` into `.`. Hive 4 on PostgreSQL puts the text into SQL instead
(`LIKE '2024.*' ESCAPE '\'`), where dots are dots, and so answers Spark with nothing. `filter_pattern` is the former:
`.*` and `%` are any text, `.` and `_` any character, a backslash takes the meaning of one of these (or of itself) away,
and `(?i)` in front makes case irrelevant (so Hive 4.1's client asks for tables by name).
All else that is special in regular expressions stands for itself, as in DataNucleus. Only here a backslash before an
ordinary character is one too, because Spark does not escape the user's text: a client that keeps its filter, as Spark
does, can get too much and never too little.

Hive's serialized expressions mean the patterns of its own LIKE (`hive_pattern`), projections those of databases
(`sql_pattern`), filters of tables DataNucleus's (`expression_pattern`).

Matching takes time linear in the text (`WildcardPattern`), whatever the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.values import frozen

_ANY_CASE = "(?i)"


@frozen
class LikePattern:
    """A compiled pattern; `prefix` is a literal text with which every match begins."""

    text: str
    prefix: str
    _pattern: WildcardPattern = field(repr=False, compare=False)

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        return self._pattern.matches(text)


def sql_pattern(text: str) -> LikePattern:
    r"""A pattern of SQL: `%` any text, `_` any character; a `\` before one of them, or itself, makes it literal."""
    return _compiled(text, WildcardPattern(_tokens(text, expression=False, sql=True)))


def hive_pattern(text: str) -> LikePattern:
    r"""A pattern of Hive's LIKE: as `sql_pattern`, but a backslash escapes only `%` and `_`: `\\` is two of them.

    Source: `UDFLike`.
    """
    return _compiled(text, WildcardPattern(_tokens(text, expression=False, sql=True, escapable="%_")))


def filter_pattern(text: str) -> LikePattern:
    """A pattern in a filter text: `.*` and `%`, `.` and `_`, backslashes before them, `(?i)` in front."""
    return _compile_expression(text, sql=True)


def expression_pattern(text: str) -> LikePattern:
    """A pattern of DataNucleus, as in filters of tables: `.*` and `.` are wildcards, `%` and `_` are not."""
    return _compile_expression(text, sql=False)


def _compile_expression(text: str, sql: bool) -> LikePattern:
    pattern = text.removeprefix(_ANY_CASE)
    tokens = _tokens(pattern, expression=True, sql=sql)
    return _compiled(text, WildcardPattern(tokens, any_case=pattern != text))


def _compiled(text: str, pattern: WildcardPattern) -> LikePattern:
    return LikePattern(text, pattern.prefix, pattern)


def _tokens(text: str, expression: bool, sql: bool, escapable: str | None = None) -> Iterator[str | Wildcard]:
    if escapable is None:
        escapable = ("%_" if sql else "") + "\\" + (".*" if expression else "")
    position = 0
    while position < len(text):
        character = text[position]
        following = text[position + 1 : position + 2]
        position += 1
        if character == "\\" and following and following in escapable:
            position += 1
            yield following
        elif sql and character == "%":
            yield Wildcard.MANY
        elif sql and character == "_":
            yield Wildcard.ONE
        elif expression and character == ".":
            if following == "*":
                position += 1
                yield Wildcard.MANY
            else:
                yield Wildcard.ONE
        else:
            yield character
