"""Comparisons with texts that columns of MySQL cannot represent.

Hive's script stores most names in latin1, and some columns have only Unicode's basic plane. If MySQL compares such a
column with a text that contains other characters, it raises an error (`dialects.is_uncomparable`), even if the text is
one in a list. No row can contain such a text, and other databases simply find none.
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
    """The names that `column` can represent; None: that columns of names in general can represent."""
    features = features_of(connection)
    if not (features.single_byte_text if column is None else features.is_single_byte(column)):
        return list(names)
    return [name for name in names if plane_of(name) == 0]


def comparable_rows(
    connection: Connection, statement: Select[Any], parameters: Mapping[str, Any]
) -> Sequence[Row[Any]]:
    """The rows of a statement that compares stored texts with given ones; empty if they cannot be compared."""
    try:
        return connection.execute(statement, dict(parameters)).all()
    except DataError as error:
        if not is_uncomparable(error):
            raise
        return []
