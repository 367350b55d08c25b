"""Types of text columns, by how many bytes a character takes on MySQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, String
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine

from hms_cache.store.schema.column_types import MYSQL_DIALECTS


class LimitedText(String):
    """Text of at most so many characters, on SQLite too: it stores any length in a ``VARCHAR``."""


@compiles(LimitedText, "sqlite")
def _limited_on_sqlite(element: LimitedText, compiler: Any, **keywords: Any) -> str:
    text: str = compiler.visit_VARCHAR(element, **keywords)
    of = keywords.get("type_expression")
    if not isinstance(of, Column):  # of an expression
        return text
    return f"{text} CHECK (length({compiler.dialect.identifier_preparer.format_column(of)}) <= {element.length})"


def string(length: int) -> TypeEngine[str]:
    """Text of at most ``length`` characters, case-sensitive, any Unicode (``utf8mb4`` on MySQL)."""
    return LimitedText(length)


def plane_string(length: int) -> TypeEngine[str]:
    """As :func:`string`, on MySQL limited to Unicode's basic plane (``utf8mb3``).

    Only for the members of unique keys that would pass InnoDB's limit of 3072 bytes a key with four bytes a character.
    The database refuses a character beyond the plane; it does not replace it.
    """
    return LimitedText(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb3", collation="utf8mb3_bin"), *MYSQL_DIALECTS
    )


def word_string(length: int) -> TypeEngine[str]:
    """As :func:`string`, on MySQL in one byte a character, as Hive has it (``latin1``).

    Only for ASCII (principal types, privileges, identifiers) in unique keys that would pass 3072 bytes otherwise.
    """
    return LimitedText(length).with_variant(
        mysql.VARCHAR(length, charset="latin1", collation="latin1_bin"), *MYSQL_DIALECTS
    )


#: The usual lengths: users and databases; tables and keys; columns and partitions; everything longer.
STRING_128 = string(128)
STRING_256 = string(256)
STRING_767 = string(767)
STRING_4000 = string(4000)
#: Principal types and privileges.
WORD_128 = word_string(128)
