"""Conditions on texts: exact equality, and names that match a pattern.

MySQL and MariaDB consider different texts equal: they ignore trailing blanks in all text columns, and case and accents
in columns to which Hive's script gives no binary collation, which are nearly all columns of transactions, locks,
compactions, resource plans, procedures and scheduled queries. For Hive `p=a`, `p=A`, `p=á` and `p=a ` are four
partitions.

Names of catalogs, databases and tables need none of this: they are stored in lower case, without surrounding blanks, in
ASCII, and requests are normalized in the same way (`normalize_catalog`). Columns are looked up as clients spell them.
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
    """A condition: the column has exactly this text (None: is NULL). Can use an index on the column."""
    return column.is_(None) if value is None else _SameText(column, value)


def one_of_texts(column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
    """A condition: the column has exactly one of these texts. MySQL cannot use an index on the column."""
    return _Bytes(column).in_(values)


def begins_with(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """A condition: the text begins with exactly this one. LIKE alone is case-insensitive on SQLite."""
    return column.startswith(text, autoescape=True) & (func.substr(column, 1, len(text)) == text)


_BYTES = "CAST(CONVERT({} USING utf8mb4) AS BINARY)"
"""On MySQL. Converted to one character set, because a value has that of the connection."""


class _SameText(SqlFunction[bool]):
    name = "same_text"
    type = Boolean()
    inherit_cache = True
    sql = "({0} = {1})"
    sql_on_mysql = f"({{0}} = {{1}} AND {_BYTES.format('{0}')} = {_BYTES.format('{1}')})"

    def self_group(self, against: Any = None) -> _SameText:
        # Otherwise `= 1` would be appended on databases without booleans, which prevents the use of an index.
        return self


class _Text(TypeDecorator[str]):
    """A text that is sent to MySQL as its UTF-8 bytes."""

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
    """An additional GROUP BY key that separates texts which GROUP BY of the text alone would merge.

    MySQL and MariaDB compare by the collation, and only the first `max_sort_length` bytes.
    """

    name = "exact_text"
    inherit_cache = True
    sql = "{0}"
    sql_on_mysql = "sha2({0}, 256)"


# Patterns

_LONGEST_CHARACTERS: Final = 10_000
"""Maximum length of a pattern for LIKE: SQLite refuses 50,000 bytes. Half of it may be escapes, and no name has 5,000
characters."""


def may_match(column: ColumnElement[Any], pattern: str | None) -> list[ColumnElement[bool]]:
    """Conditions that every (lower-case) name matching the pattern meets; empty if all names match.

    Other names may meet them, too: the caller decides in Python. Raises MetaException if a pattern has too many
    alternatives.
    """
    if pattern is None or pattern in ("*", ".*"):
        return []
    patterns = name_pattern(pattern).like_patterns
    if patterns is None:
        return []
    can_match = [text for text in patterns if len(text) - text.count("%") <= _LONGEST_CHARACTERS]
    likes = [column.like(text, escape=LIKE_ESCAPE) for text in can_match]
    # A pattern without alternatives ("", "|"), or with only too long ones, matches nothing.
    return [or_(*likes)] if likes else [column.is_(None) & column.is_not(None)]
