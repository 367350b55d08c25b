"""The order in which the database sorts names and values of partitions, and comparison by code point.

Memory sorts texts by code point. If the database selects a range of names by another order, an incomplete range would
count as complete. SQLite sorts by code point, PostgreSQL with the collation "C". On MySQL and MariaDB the order depends
on the column's collation (`TextOrder`), which is not always that of Hive's script.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Text

from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.dialects import SqlFunction
from hms_cache.store.engine.features import TextOrder
from hms_cache.store.schema import PARTITIONS


class _ByCodePoint(SqlFunction[str]):
    """A text compared by code point, whatever the collation of its column is. MySQL cannot use an index for it."""

    name = "by_code_point"
    type = Text()
    inherit_cache = True
    sql = "{0}"
    sql_on_mysql = "(CONVERT({0} USING utf8mb4) COLLATE utf8mb4_bin)"
    sql_on_postgresql = '({0} COLLATE "C")'


def in_order_of_ascii(connection: Connection, column: ColumnElement[str], of: Column[Any]) -> ColumnElement[str]:
    """The column (or its alias) in a form that the database compares with ASCII texts by code point."""
    is_other = features_of(connection).order_of(of) is TextOrder.OTHER
    return _ByCodePoint(column) if is_other or connection.dialect.name == "postgresql" else column


class NameOrder(Enum):
    """An order in which the database can sort the names of a table's partitions."""

    OF_INDEX = "the column's, which is that of code points"
    OF_INDEX_FOR_ASCII = "the column's, which is that of code points where a name is compared with one of ASCII"
    OF_POSTGRESQL = "that of code points, on PostgreSQL"
    WITHOUT_INDEX = "that of code points, on MySQL, whatever the column's is"

    @property
    def column(self) -> ColumnElement[str]:
        """The name as an expression to compare and sort by."""
        return _COLUMNS[self]

    def holds_for(self, *texts: str | None) -> bool:
        """Whether comparisons with these texts give the same result as by code point."""
        return self is not NameOrder.OF_INDEX_FOR_ASCII or all(text is None or text.isascii() for text in texts)


_NAME: Final = PARTITIONS.c.PART_NAME
_COLUMNS: Final[dict[NameOrder, ColumnElement[str]]] = {
    NameOrder.OF_INDEX: _NAME,
    NameOrder.OF_INDEX_FOR_ASCII: _NAME,
    NameOrder.OF_POSTGRESQL: _ByCodePoint(_NAME),
    NameOrder.WITHOUT_INDEX: _ByCodePoint(_NAME),
}


def name_orders(connection: Connection) -> tuple[NameOrder, ...]:
    """Orders to try one after the other: first that of an index, if it can be used. The last one is always correct."""
    if connection.dialect.name == "postgresql":
        return (NameOrder.OF_POSTGRESQL,)
    match features_of(connection).order_of(_NAME):
        case TextOrder.CODE_POINTS:
            return (NameOrder.OF_INDEX,)
        case TextOrder.ASCII:
            return (NameOrder.OF_INDEX_FOR_ASCII, NameOrder.WITHOUT_INDEX)
        case TextOrder.OTHER:
            return (NameOrder.WITHOUT_INDEX,)
