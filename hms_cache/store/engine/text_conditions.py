"""Conditions on texts: the very same text, and names that match a pattern.

MySQL and MariaDB take texts for the same that are not. They ignore trailing blanks in all columns of texts, and case
and accents in those to which Hive's script gives no binary collation: nearly all of transactions, locks, compactions,
resource plans, procedures and scheduled queries. To Hive `p=a`, `p=A`, `p=á` and `p=a ` are four partitions.

Names of catalogs, databases and tables need none of this: they are stored in lower case and without blanks around them
and consist of ASCII, and a catalog is asked for by nothing else (`normalize_catalog`). Columns are asked for as clients
spell them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Boolean, ColumnElement, LargeBinary, String, func, or_
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from hms_cache.metadata.names import LIKE_ESCAPE, name_pattern
from hms_cache.store.engine.dialects import SqlFunction
from hms_cache.store.schema.column_types import MYSQL_DIALECTS


def same_text(column: ColumnElement[Any], value: ColumnElement[Any] | str | None) -> ColumnElement[bool]:
    """Whether the column has exactly this text, or, of None, none; an index on the column serves it."""
    return column.is_(None) if value is None else _SameText(column, value)


def one_of_texts(column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
    """Whether the column has exactly one of these texts; no index on this column serves it on MySQL."""
    return _Bytes(column).in_(values)


def begins_with(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Whether the column's text begins with exactly this one: LIKE alone ignores case on SQLite."""
    return column.startswith(text, autoescape=True) & (func.substr(column, 1, len(text)) == text)


_BYTES = "CAST(CONVERT({} USING utf8mb4) AS BINARY)"
"""On MySQL. In one character set: a value comes in that of the connection."""


class _SameText(SqlFunction[bool]):
    name = "same_text"
    type = Boolean()
    inherit_cache = True
    sql = "({0} = {1})"
    sql_on_mysql = f"({{0}} = {{1}} AND {_BYTES.format('{0}')} = {_BYTES.format('{1}')})"

    def self_group(self, against: Any = None) -> _SameText:
        # Without this, `= 1` would be put after it where a database has no booleans, which no index serves.
        return self


class _Text(TypeDecorator[str]):
    """A text that MySQL gets as the bytes of its UTF-8 form."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return LargeBinary() if dialect.name in MYSQL_DIALECTS else String()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return value.encode() if value is not None and dialect.name in MYSQL_DIALECTS else value


class _Bytes(SqlFunction[str]):
    name = "bytes_of_text"
    type = _Text()
    inherit_cache = True
    sql = "{0}"
    sql_on_mysql = _BYTES.format("{0}")


class ExactText(SqlFunction[Any]):
    """What tells a text from any other one where GROUP BY of the text alone does not; to be grouped by besides it.

    MySQL and MariaDB compare by the collation, and no further than some `max_sort_length` bytes.
    """

    name = "exact_text"
    inherit_cache = True
    sql = "{0}"
    sql_on_mysql = "sha2({0}, 256)"


# Patterns

_LONGEST_CHARACTERS: Final = 10_000
"""Of a pattern for LIKE: SQLite refuses those of 50,000 bytes. Half of it may be escapes, and no name has 5,000."""


def may_match(column: ColumnElement[Any], pattern: str | None) -> list[ColumnElement[bool]]:
    """Conditions that every (lower-case) name which matches the pattern meets; none when all names match.

    Others may meet them, too: Python decides and orders. Raises MetaException for a pattern of too many alternatives.
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
