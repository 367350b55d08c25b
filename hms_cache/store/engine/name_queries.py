"""Names by pattern: SQL lets at least the matching ones through, Python decides and orders."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, or_

from hms_cache.metadata.names import LIKE_ESCAPE, name_pattern

_LONGEST_CHARACTERS: Final = 10_000
"""Of a pattern for LIKE: SQLite refuses those of 50,000 bytes. Half of it may be escapes, and no name has 5,000."""


def may_match(column: ColumnElement[Any], pattern: str | None) -> list[ColumnElement[bool]]:
    """Conditions that every (lower-case) name which matches the pattern meets; none when all names match.

    Raises MetaException for a pattern of too many alternatives.
    """
    if pattern is None or pattern in ("*", ".*"):
        return []
    patterns = name_pattern(pattern).like_patterns
    if patterns is None:
        return []
    can_match = [text for text in patterns if len(text) - text.count("%") <= _LONGEST_CHARACTERS]
    likes = [column.like(text, escape=LIKE_ESCAPE) for text in can_match]
    # A pattern of no alternative at all ("", "|"), or of too long ones, matches nothing.
    return [or_(*likes)] if likes else [column.is_(None) & column.is_not(None)]
