r"""What the pattern of LIKE matches.

Hive disagrees with itself. Hive 2.3 and 3.1 hand LIKE to DataNucleus, for which the pattern is a Java regular
expression (`2024.*`): that is what Spark sends. Hive 4 puts the same text into SQL (`LIKE '2024.*' ESCAPE '\'`), where
only `%` and `_` are wildcards, and so answers Spark with nothing. Hive's serialized expressions mean SQL patterns.

`filter_pattern` makes both kinds of client right: `%`, `_` and their escapes `\%`, `\_` always mean what SQL says; a
pattern that holds `.*` is an expression, in which `.*` is any text and `.` any character. All other characters of
regular expressions stand for themselves, as in DataNucleus and because Spark does not escape the user's text. A client
that keeps its filter (Spark does) can only get too much, never too little.

Matching takes time proportional to text times pattern, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum


class _Wildcard(Enum):
    ONE = "_"
    MANY = "%"


@dataclass(frozen=True)
class LikePattern:
    """A compiled pattern; `prefix` is the literal text that every match begins with."""

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
    return _compile(text, _tokens(text, expression=False))


def filter_pattern(text: str) -> LikePattern:
    """A pattern of a filter text: SQL's wildcards, and where `.*` occurs also `.*` and `.`."""
    return _compile(text, _tokens(text, expression=".*" in text))


def expression_pattern(text: str) -> LikePattern:
    """A pattern of DataNucleus, as filters of tables always are: `.*` and `.` are wildcards, `%` and `_` are not."""
    return _compile(text, _tokens(text, expression=True, sql=False))


def _tokens(text: str, expression: bool, sql: bool = True) -> Iterator[str | _Wildcard]:
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


def _compile(text: str, tokens: Iterator[str | _Wildcard]) -> LikePattern:
    segments: list[list[str | _Wildcard]] = [[]]
    for token in tokens:
        if token is _Wildcard.MANY:
            segments.append([])
        else:
            segments[-1].append(token)
    prefix = ""
    for token in segments[0]:
        if not isinstance(token, str):
            break
        prefix += token
    return LikePattern(text, prefix, tuple((_segment(segment), len(segment)) for segment in segments))


def _segment(tokens: list[str | _Wildcard]) -> re.Pattern[str]:
    return re.compile("".join(re.escape(t) if isinstance(t, str) else "." for t in tokens), re.DOTALL)
