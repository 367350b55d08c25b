r"""What the pattern of LIKE matches.

For a filter text, Hive 2.3, 3.1 and 4 on MySQL hand LIKE to DataNucleus, with a Java regular expression (`2024.*`), as
Spark sends it; 4 first turns `%` into `.*` and `_` into `.`. Hive 4 on PostgreSQL puts the text into SQL instead
(`LIKE '2024.*' ESCAPE '\'`), where dots are dots, and so answers Spark with nothing. `filter_pattern` is the former:
`.*` and `%` are any text, `.` and `_` any character, a backslash takes the meaning of one of these (or of itself) away,
and `(?i)` in front makes case irrelevant (so Hive 4.1's client asks for tables by name).
All else that is special in regular expressions stands for itself, as in DataNucleus. Only here a backslash before an
ordinary character is one too, because Spark does not escape the user's text: a client that keeps its filter, as Spark
does, can get too much and never too little.

Hive's serialized expressions mean SQL patterns (`sql_pattern`), filters of tables DataNucleus's (`expression_pattern`).

Matching takes time proportional to text times pattern, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

_ANY_CASE = "(?i)"


class _Wildcard(Enum):
    ONE = "_"
    MANY = "%"


@dataclass(frozen=True)
class LikePattern:
    """A compiled pattern; `prefix` is a literal text that every match begins with."""

    text: str
    prefix: str
    _segments: tuple[tuple[re.Pattern[str], int], ...] = field(repr=False, compare=False)

    def matches(self, text: str) -> bool:
        """Whether the pattern covers the whole text."""
        first, first_length = self._segments[0]
        if len(self._segments) == 1:
            return len(text) == first_length and first.match(text) is not None
        last, last_length = self._segments[-1]
        end = len(text) - last_length
        if end < first_length or not first.match(text):
            return False
        position = first_length
        for segment, length in self._segments[1:-1]:
            found = segment.search(text, position, end)
            if not found:
                return False
            position = found.start() + length
        return position <= end and last.match(text, end) is not None


def sql_pattern(text: str) -> LikePattern:
    r"""A pattern of SQL: `%` any text, `_` any character, `\` before one of them (or itself) takes its meaning away."""
    return _compile(text, _tokens(text, expression=False, sql=True))


def filter_pattern(text: str) -> LikePattern:
    """A pattern of a filter text: `.*` and `%`, `.` and `_`, backslashes before them, `(?i)` in front."""
    return _compile_expression(text, sql=True)


def expression_pattern(text: str) -> LikePattern:
    """A pattern of DataNucleus, as filters of tables always are: `.*` and `.` are wildcards, `%` and `_` are not."""
    return _compile_expression(text, sql=False)


def _compile_expression(text: str, sql: bool) -> LikePattern:
    pattern = text.removeprefix(_ANY_CASE)
    tokens = _tokens(pattern, expression=True, sql=sql)
    return _compile(text, tokens, re.IGNORECASE if pattern != text else re.NOFLAG)


def _tokens(text: str, expression: bool, sql: bool) -> Iterator[str | _Wildcard]:
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
            yield _Wildcard.MANY
        elif sql and character == "_":
            yield _Wildcard.ONE
        elif expression and character == ".":
            if following == "*":
                position += 1
                yield _Wildcard.MANY
            else:
                yield _Wildcard.ONE
        else:
            yield character


def _compile(text: str, tokens: Iterator[str | _Wildcard], flags: re.RegexFlag = re.NOFLAG) -> LikePattern:
    segments: list[list[str | _Wildcard]] = [[]]
    for token in tokens:
        if token is _Wildcard.MANY:
            segments.append([])
        else:
            segments[-1].append(token)
    prefix = ""
    for token in segments[0]:
        if not isinstance(token, str) or flags:
            break
        prefix += token
    return LikePattern(text, prefix, tuple((_segment(segment, flags), len(segment)) for segment in segments))


def _segment(tokens: list[str | _Wildcard], flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile("".join(re.escape(t) if isinstance(t, str) else "." for t in tokens), re.DOTALL | flags)
