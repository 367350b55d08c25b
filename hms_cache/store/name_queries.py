"""Names by pattern: SQL lets at least the matching ones through, Python decides and orders."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, or_

from hms_cache.store.names import LIKE_ESCAPE, like_patterns


def may_match(column: ColumnElement[Any], pattern: str | None) -> list[ColumnElement[bool]]:
    """Conditions that every (lower-case) name which matches the pattern meets; none when all names match."""
    if pattern is None or pattern in ("*", ".*"):
        return []
    likes = [column.like(text, escape=LIKE_ESCAPE) for text in like_patterns(pattern)]
    # A pattern of no alternative at all ("", "|") matches nothing.
    return [or_(*likes)] if likes else [column.is_(None) & column.is_not(None)]
