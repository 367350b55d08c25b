"""Names by pattern: SQL lets at least the matching ones through, Python decides and orders."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, or_

from hms_cache.metadata.names import LIKE_ESCAPE, name_pattern


def may_match(column: ColumnElement[Any], pattern: str | None) -> list[ColumnElement[bool]]:
    """Conditions that every (lower-case) name which matches the pattern meets; none when all names match.

    Raises MetaException for a pattern of too many alternatives.
    """
    if pattern is None or pattern in ("*", ".*"):
        return []
    patterns = name_pattern(pattern).like_patterns
    if patterns is None:
        return []
    likes = [column.like(text, escape=LIKE_ESCAPE) for text in patterns]
    # A pattern of no alternative at all ("", "|") matches nothing.
    return [or_(*likes)] if likes else [column.is_(None) & column.is_not(None)]
