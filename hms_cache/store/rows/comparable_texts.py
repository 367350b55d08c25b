"""Texts that columns of MySQL have no characters for, and comparisons with them.

Hive's own script keeps most names in latin1, and some of our columns have Unicode's basic plane only. MySQL answers a
comparison of such a column with a text of further characters by an error (`dialects.is_uncomparable`), also where that
text is one of a list. No such text is in the column: elsewhere the answer is that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select
from sqlalchemy.exc import DataError

from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.dialects import is_uncomparable

_WITHOUT_PRINT = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))
"""Bytes that code page 1252 leaves open. MySQL takes them for the control characters of these numbers."""

_LATIN1 = frozenset(_WITHOUT_PRINT.decode("latin-1")).union(
    bytes(set(range(256)).difference(_WITHOUT_PRINT)).decode("cp1252")
)
"""The characters of MySQL's ``latin1``."""


def plane_of(text: str) -> int:
    """Which columns of MySQL have all its characters: 0 for all, 1 for those of ``utf8mb3``, 2 for ``utf8mb4`` only."""
    if text.isascii() or _LATIN1.issuperset(text):
        return 0
    return 1 if max(text) <= "\uffff" else 2


def possible_names(connection: Connection, names: Iterable[str]) -> list[str]:
    """Those of the names that columns of names have the characters for."""
    if not features_of(connection).single_byte_text:
        return list(names)
    return [name for name in names if plane_of(name) == 0]


def comparable_rows(
    connection: Connection, statement: Select[Any], parameters: Mapping[str, Any]
) -> Sequence[Row[Any]]:
    """The rows of a statement that compares stored texts with given ones; none where they cannot be compared."""
    try:
        return connection.execute(statement, dict(parameters)).all()
    except DataError as error:
        if not is_uncomparable(error):
            raise
        return []
