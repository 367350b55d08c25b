"""The columns of a table: types that Hive accepts, and permitted changes of a column's type.

Facts: `ColumnType`, `MetaStoreServerUtils.validateColumnType`, `DefaultIncompatibleTableChangeHandler` (Hive 4.0.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Table

TYPE_FROM_DESERIALIZER = "<derived from deserializer>"
"""The type of columns that only the serde knows."""

_STRINGS = frozenset({"string", "varchar", "char"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
_CAST_ORDER = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "decimal": 5, "float": 6, "double": 7}
_PRIMITIVES = (
    _STRINGS | _TIMES | _CAST_ORDER.keys() | {"void", "boolean", "binary", "interval_year_month", "interval_day_time"}
)
_ALL = _PRIMITIVES | {"array", "map", "struct", "uniontype", "columns", "columns.types", "column.name.delimiter"}
_ALTERNATIVES = {"integer": "int", "numeric": "decimal"}
_FIRST_TOKEN = re.compile(r"\w+|\W+", re.ASCII)
_NO_WORD = re.compile(r"\W", re.ASCII)


def column_names(table: Table) -> list[str]:
    """Names of a table's columns, without its partition keys."""
    return [] if table.sd is None else [column.name for column in table.sd.cols or ()]


def invalid_type(columns: Iterable[FieldSchema] | None) -> str | None:
    """`type: …` of the first column whose type Hive does not support; None if all are valid.

    Only the beginning of the type's text is checked, as in Hive.
    """
    for column in columns or ():
        if column.type == TYPE_FROM_DESERIALIZER:
            continue
        token = _FIRST_TOKEN.match(column.type or "")
        if token is None or token.group() not in _ALL:
            return f"type: {column.type}"
    return None


def type_name(type_text: str) -> str:
    """The type without its parameters: `decimal(10,2)` is `decimal`, `struct<a:int>` is `struct`."""
    name = _NO_WORD.split(type_text.lower(), maxsplit=1)[0]
    return _ALTERNATIVES.get(name, name)


def are_compatible(old: str, new: str) -> bool:
    """Whether data written as `old` can be read as `new`; both in the format of `type_name`."""
    if old == new:
        return True
    if old not in _PRIMITIVES or new not in _PRIMITIVES:
        return False
    if old in _STRINGS and new in _STRINGS:
        return True
    if old in _CAST_ORDER and new in _CAST_ORDER:
        return _CAST_ORDER[old] < _CAST_ORDER[new]
    return old == "void" or ((old in _TIMES or old in _CAST_ORDER) and new in _STRINGS)


def incompatible_columns(old: Sequence[FieldSchema], new: Sequence[FieldSchema]) -> list[str]:
    """New names of columns, compared by position, that could no longer be read. A column without a type may get any."""
    return [
        str(after.name)
        for before, after in zip(old, new, strict=False)
        if before.type is not None and not are_compatible(type_name(before.type), type_name(after.type))
    ]


def are_same_columns(old: Sequence[FieldSchema] | None, new: Sequence[FieldSchema] | None) -> bool:
    """Whether names (case-insensitive), types and comments are equal, in order."""

    def key(columns: Sequence[FieldSchema] | None) -> list[tuple[str, str | None, str | None]]:
        return [(column.name.lower(), column.type, column.comment) for column in columns or ()]

    return key(old) == key(new)


def is_column_prefix(old: Sequence[FieldSchema], new: Sequence[FieldSchema]) -> bool:
    """Whether the new columns begin with the old ones."""
    return len(old) <= len(new) and are_same_columns(old, new[: len(old)])


def are_columns_included(old: Sequence[FieldSchema], new: Sequence[FieldSchema]) -> bool:
    """Whether every old column is among the new ones with the same type, regardless of order and comments."""
    types = {column.name.lower(): (column.type or "").lower() for column in new}
    return all(types.get(column.name.lower()) == (column.type or "").lower() for column in old)
