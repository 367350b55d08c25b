"""Texts that columns of MySQL have no characters for, and comparisons with them.

Hive's own script keeps most names in latin1, and some of our columns have Unicode's basic plane only. MySQL answers a
comparison of such a column with a text of further characters by an error (`dialects.is_uncomparable`), also where that
text is one of a list. No such text is in the column: elsewhere the answer is that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Row, Select
from sqlalchemy.exc import DataError

from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.dialects import is_uncomparable
from hms_cache.store.schema.text_planes import plane_of


def possible_names(connection: Connection, names: Iterable[str], column: Column[Any] | None = None) -> list[str]:
    """Those of the names that columns of names have the characters for: this column, or those of names in general."""
    features = features_of(connection)
    if not (features.single_byte_text if column is None else features.is_single_byte(column)):
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
