"""Which parts of the schema a database has: databases made by Hive 3.1 or 4.1 are used without changes.

The definitions here are those of 4.0. Older and newer databases lack some tables and columns; code that uses one of
these checks `SchemaFeatures` first. It is read once per server, and changes only when an operator upgrades the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, literal, null, select

from hms_cache.store.engine.inspection import TableShape, inspect_tables
from hms_cache.store.schema import (
    LATER_METADATA,
    METADATA,
    MIN_HISTORY_WRITE_ID,
    PART_COL_STATS,
    PARTITION_KEY_VALS,
    PARTITIONS,
    TAB_COL_STATS,
    TBLS,
    TXN_LOCK_TBL,
    VERSION,
)
from hms_cache.values import frozen

_COLUMNS: Final = {name: tuple(column.name for column in table.columns) for name, table in METADATA.tables.items()}
"""Names only: each worker of a server reads them, and definitions would take memory in each worker."""


class TextOrder(Enum):
    """How the database sorts the texts of a column."""

    CODE_POINTS = "by code point"

    ASCII = "by code point where one of the two is of ASCII"
    """MySQL's ``latin1_bin`` sorts by the bytes of code page 1252, in which the euro sign precedes letters with
    accents."""

    OTHER = "otherwise"
    """MySQL's linguistic collations: case-insensitive, and with special rules for punctuation."""


_ORDERED: Final = (PARTITIONS.c.PART_NAME, PARTITION_KEY_VALS.c.PART_KEY_VAL)
"""Columns that are searched by ranges."""

_LISTED: Final = (TAB_COL_STATS.c.COLUMN_NAME, PART_COL_STATS.c.COLUMN_NAME)
"""Columns that are compared with lists of names. One name that cannot be compared would hide the others."""


def order_of_collation(collation: str) -> TextOrder:
    """The order of one of MySQL's collations."""
    if not collation.lower().endswith("_bin"):
        return TextOrder.OTHER
    return TextOrder.CODE_POINTS if collation.lower().startswith(("utf8", "ascii")) else TextOrder.ASCII


@frozen
class SchemaFeatures:
    """Differences from `METADATA`."""

    version: str | None
    """``VERSION.SCHEMA_VERSION``; None without such a row. If there are several rows, which Hive's own server refuses,
    the oldest."""

    missing_tables: frozenset[str] = frozenset()
    """Tables of `METADATA` and `LATER_METADATA` that are missing."""

    missing_columns: frozenset[tuple[str, str]] = frozenset()
    """(table, column) that are missing in existing tables."""

    generated_columns: frozenset[tuple[str, str]] = frozenset()
    """Columns that the database generates and that an INSERT must not name, although in 4.0 they are plain."""

    folded_tables: frozenset[str] = frozenset()
    """Tables in lower case: Hive 3.1's PostgreSQL script did not quote those of transactions and locks."""

    single_byte_text: bool = False
    """MySQL only: names are stored in ``latin1``. The database refuses other text (in the strict mode used here)."""

    single_byte_columns: frozenset[tuple[str, str]] = frozenset()
    """MySQL only: (table, column) of `_LISTED` that are ``latin1``, regardless of other columns: sites with Chinese
    column names convert some of Hive's columns and leave the others."""

    text_orders: frozenset[tuple[str, str, TextOrder]] = frozenset()
    """MySQL only: (table, column, order) of columns that are not sorted by code point. Sites with Chinese values
    convert Hive's columns to ``utf8``, which changes the collation."""

    def is_single_byte(self, column: Column[Any]) -> bool:
        """Whether this column of `_LISTED` can only store characters of ``latin1``."""
        return (column.table.name, column.name) in self.single_byte_columns

    def order_of(self, column: Column[Any]) -> TextOrder:
        """How the database sorts the texts of this column of `_ORDERED`."""
        for table, name, order in self.text_orders:
            if (table, name) == (column.table.name, column.name):
                return order
        return TextOrder.CODE_POINTS

    def has(self, element: Table | Column[Any]) -> bool:
        """Whether the database has this table or column."""
        if isinstance(element, Table):
            return element.name not in self.missing_tables
        table: str = element.table.name
        return table not in self.missing_tables and (table, element.name) not in self.missing_columns

    def column(self, column: Column[Any], default: Any = None) -> ColumnElement[Any]:
        """The column for a SELECT list; if the database lacks it, ``default`` under its name."""
        if self.has(column):
            return column
        return (null() if default is None else literal(default, column.type)).label(column.name)

    def writable(self, table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
        """``values`` without columns that the database lacks or generates itself."""
        if not self.missing_columns and not self.generated_columns:
            return dict(values)
        left_out = self.missing_columns | self.generated_columns
        return {name: value for name, value in values.items() if (table.name, name) not in left_out}

    @property
    def has_min_history_write_id(self) -> bool:
        """Exists since 4.0.0-beta-1."""
        return self.has(MIN_HISTORY_WRITE_ID)

    @property
    def has_write_ids_of_tables(self) -> bool:
        """``TBLS.WRITE_ID`` and ``PARTITIONS.WRITE_ID`` exist since 4.0."""
        return self.has(TBLS.c.WRITE_ID)

    @property
    def has_transaction_lock_table(self) -> bool:
        """``TXN_LOCK_TBL`` with self-numbered ``TXNS`` exists since 4.0; before, NEXT_TXN_ID was the counter.

        An upgrade writes the version last: a table of 4.0 in a schema of 3 means that an upgrade was interrupted.
        """
        return self.has(TXN_LOCK_TBL) and not (self.version or "").startswith("3.")


def read_features(connection: Connection) -> SchemaFeatures:
    """Compares the database with `METADATA`; a few catalog queries. ``version`` is None if there is no schema."""
    return features_of(connection, inspect_tables(connection))


def features_of(connection: Connection, tables: Mapping[str, TableShape]) -> SchemaFeatures:
    """Like :func:`read_features`, for tables that have been inspected already."""
    folded = {name for name in _COLUMNS if name not in tables and name.lower() in tables}
    present = {name: tables[name] for name in _COLUMNS if name in tables}
    missing_columns = {
        (name, column) for name, shape in present.items() for column in _COLUMNS[name] if column not in shape.columns
    }
    generated = {
        (name, column.name)
        for name, shape in present.items()
        for column in shape.columns.values()
        if column.generated and column.name in _COLUMNS[name] and not METADATA.tables[name].c[column.name].autoincrement
    }
    names = present.get(TBLS.name)
    collation = names.columns["TBL_NAME"].collation if names and "TBL_NAME" in names.columns else None
    first = select(VERSION.c.SCHEMA_VERSION).order_by(VERSION.c.VER_ID).limit(1)
    version = connection.execute(first).scalar() if VERSION.name in present else None
    return SchemaFeatures(
        version=version,
        missing_tables=frozenset((METADATA.tables.keys() | LATER_METADATA.tables.keys()) - tables.keys()),
        missing_columns=frozenset(missing_columns),
        generated_columns=frozenset(generated),
        folded_tables=frozenset(folded),
        single_byte_text=bool(collation and collation.startswith("latin1")),
        single_byte_columns=frozenset(
            (table, name) for table, name, collation in _collations(present, _LISTED) if collation.startswith("latin1")
        ),
        text_orders=frozenset(
            (table, name, order)
            for table, name, collation in _collations(present, _ORDERED)
            if (order := order_of_collation(collation)) is not TextOrder.CODE_POINTS
        ),
    )


def _collations(tables: Mapping[str, TableShape], columns: Iterable[Column[Any]]) -> Iterator[tuple[str, str, str]]:
    """(table, column, collation) of those columns that have a collation."""
    for column in columns:
        shape = tables.get(column.table.name)
        found = shape.columns.get(column.name) if shape is not None else None
        if found is not None and found.collation is not None:
            yield column.table.name, column.name, found.collation
