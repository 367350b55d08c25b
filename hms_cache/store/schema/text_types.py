"""Types of text columns, by the number of bytes per character on MySQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, String, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import MYSQL_DIALECTS


class LimitedText(String):
    """Text with a maximum number of characters, also on SQLite, which would store any length in a ``VARCHAR``."""


@compiles(LimitedText, "sqlite")
def _limited_on_sqlite(element: LimitedText, compiler: Any, **keywords: Any) -> str:
    text: str = compiler.visit_VARCHAR(element, **keywords)
    of = keywords.get("type_expression")
    if not isinstance(of, Column):  # of an expression
        return text
    return f"{text} CHECK (length({compiler.dialect.identifier_preparer.format_column(of)}) <= {element.length})"


def string(length: int) -> TypeEngine[str]:
    """Text of at most ``length`` characters, case-sensitive, any Unicode characters (``utf8mb4`` on MySQL)."""
    return LimitedText(length)


def plane_string(length: int) -> TypeEngine[str]:
    """Like :func:`string`, but on MySQL limited to Unicode's basic plane (``utf8mb3``).

    Only for columns of unique keys that would exceed InnoDB's limit of 3072 bytes with four bytes per character. The
    database refuses other characters; it does not replace them.
    """
    return LimitedText(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb3", collation="utf8mb3_bin"), *MYSQL_DIALECTS
    )


def latin1_string(length: int) -> TypeEngine[str]:
    """Like :func:`string`, but on MySQL with one byte per character, as in Hive (``latin1``).

    Only for ASCII (principal types, privileges, identifiers) in unique keys that would otherwise exceed 3072 bytes.
    """
    return LimitedText(length).with_variant(
        mysql.VARCHAR(length, charset="latin1", collation="latin1_bin"), *MYSQL_DIALECTS
    )


#: Usual lengths: users and databases; tables and keys; columns and partitions; everything longer.
STRING_128 = string(128)
STRING_256 = string(256)
STRING_767 = string(767)
STRING_4000 = string(4000)
#: Principal types and privileges.
LATIN1_128 = latin1_string(128)


def united_text(length: int | None = None) -> TypeEngine[str]:
    """For a CAST of numbers or NULL that a UNION combines with text columns.

    On MySQL it is latin1, which is converted to the column's character set. Without one, the CAST has the default
    collation of utf8mb4, and MariaDB since 11.5 refuses to combine that with the latin1 columns of Hive's schema.
    """
    plain: TypeEngine[str] = Text() if length is None else String(length)
    return plain.with_variant(mysql.VARCHAR(length, charset="latin1"), *MYSQL_DIALECTS)
