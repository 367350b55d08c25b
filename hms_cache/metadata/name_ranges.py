"""Ranges of the names of a table's partitions.

Names are compared by code point here. Databases that pad texts with blanks sort differently if one name continues
another with blanks or control characters; so a range begins only at a name for which both orders agree
(`may_begin_range`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class NameRange(NamedTuple):
    """Names from `first` on and below `end` (None: unlimited)."""

    first: str
    end: str | None

    def holds(self, name: str) -> bool:
        """Whether the name is in the range."""
        return self.first <= name and (self.end is None or name < self.end)


EVERY_NAME = NameRange("", None)


def only(name: str) -> NameRange:
    """The range of one name."""
    return NameRange(name, name + "\0")


def beginning_with(text: str) -> NameRange:
    """The names that begin with the text."""
    if not text:
        return EVERY_NAME
    last = ord(text[-1])
    # The next code point, except surrogates, which UTF-8 cannot represent.
    following = 0xE000 if last == 0xD7FF else last + 1
    return NameRange(text, text[:-1] + chr(following) if following < 0x110000 else None)


def may_begin_range(name: str) -> bool:
    """Whether a range may begin at this name."""
    return bool(name) and min(name) >= " " and name[-1] > " "


def range_beginning(text: str) -> str:
    """The longest prefix of the text at which a range may begin; empty if there is none."""
    while text and not may_begin_range(text):
        text = text[:-1]
    return text


def bound_below(first: str) -> str:
    """A lower bound of the names in a range that begins at `first`, valid in any database's order; few other names are
    above it.

    A name that continues `first` with a control character is before it if texts are padded with blanks.
    """
    if not first:
        return ""
    before = chr(ord(first[-1]) - 1)
    return f"{first[:-1]}{before}~~~~~~~~" if before.isprintable() else first[:-1]


def split_positions(count: int, most: int, name_at: Callable[[int], str]) -> list[int]:
    """Positions at which `count` sorted names are cut into ranges of about `most`: the position of each range's first
    name.

    A last range of less than a quarter of that is merged with the previous one.
    """
    cuts = [0]
    at = most
    while count - at > most // 4:
        while at < count and not may_begin_range(name_at(at)):
            at += 1
        if at >= count:
            break
        cuts.append(at)
        at += most
    return cuts
