"""Which columns of a table get statistics, and what Spark computes of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hms_cache.batches import batches
from hms_cache.metadata.statistics_values import StatisticsKind, kind_of_type
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql import Column

COLUMNS_OF_A_PASS = 100
"""Columns computed in one reading of a table: some ten aggregates each, as many as one plan of Spark bears well."""


@frozen
class StatisticsColumn:
    """A column that Hive keeps statistics of. `name` in lower case, `type` in Hive's words."""

    name: str
    type: str
    kind: StatisticsKind


def statistics_columns(table: Table) -> list[StatisticsColumn]:
    """The table's columns whose types Hive has statistics for, without partition keys, in their order."""
    found = []
    for field in (table.sd.cols if table.sd is not None else None) or ():
        kind = kind_of_type(field.type)
        if kind is not None:
            found.append(StatisticsColumn(field.name.lower(), field.type.lower(), kind))
    return found


def passes(columns: Sequence[StatisticsColumn]) -> list[list[StatisticsColumn]]:
    """The columns in the portions that one reading of the table takes."""
    return [list(some) for some in batches(columns, COLUMNS_OF_A_PASS)]


def decimal_size(hive_type: str) -> tuple[int, int]:
    """Precision and scale of a type such as ``decimal(10,2)``."""
    found = _DECIMAL.fullmatch(hive_type)
    digits, scale = found.groups() if found else (None, None)
    return int(digits or 10), int(scale or 0)


_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)


_HALVES = {"tinyint": 1 << 7, "smallint": 1 << 15}
"""How many negative numbers a type has: files may have more, of a column that was wider once."""


def value_of(column: Column, of: StatisticsColumn) -> Column:
    """A column's values as they are compared and hashed: numbers as long or double, dates as days, timestamps as
    microseconds of their wall clock in the session's time zone (Hive's timestamps have none).

    A number that is too large for its column is NULL, as it is to Hive, which answers from statistics.
    """
    from pyspark.sql import functions as f

    kind = of.kind
    if kind is StatisticsKind.LONG:
        number = column.cast("bigint")
        half = _HALVES.get(of.type)
        return number if half is None else f.when(number.between(-half, half - 1), number)
    if kind is StatisticsKind.DOUBLE:
        return column.cast("double")
    if kind is StatisticsKind.STRING:
        # Spark fills up what Hive cuts off.
        return f.rtrim(column.cast("string")) if of.type.startswith("char") else column.cast("string")
    if kind is StatisticsKind.DATE:
        return f.unix_date(column).cast("bigint")
    if kind is StatisticsKind.TIMESTAMP:
        return f.unix_micros(f.from_utc_timestamp(column.cast("timestamp"), f.current_timezone()))
    return column
