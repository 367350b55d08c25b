"""The columns of a table that get statistics, and the values that Spark computes for each."""

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
"""Number of columns computed in one pass over a table: with some ten aggregates per column, this is what a Spark plan
can handle."""


@frozen
class StatisticsColumn:
    """A column with statistics in Hive. `name` is in lower case, `type` is Hive's."""

    name: str
    type: str
    kind: StatisticsKind


def statistics_columns(table: Table) -> list[StatisticsColumn]:
    """The table's columns whose types have statistics in Hive, without partition keys, in order."""
    found = []
    for field in (table.sd.cols if table.sd is not None else None) or ():
        kind = kind_of_type(field.type)
        if kind is not None:
            found.append(StatisticsColumn(field.name.lower(), field.type.lower(), kind))
    return found


def passes(columns: Sequence[StatisticsColumn]) -> list[list[StatisticsColumn]]:
    """Divides the columns into passes over the table."""
    return [list(some) for some in batches(columns, COLUMNS_OF_A_PASS)]


def decimal_size(hive_type: str) -> tuple[int, int]:
    """Precision and scale of a type such as ``decimal(10,2)``."""
    found = _DECIMAL.fullmatch(hive_type)
    digits, scale = found.groups() if found else (None, None)
    return int(digits or 10), int(scale or 0)


_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)


_HALVES = {"tinyint": 1 << 7, "smallint": 1 << 15}
"""Number of negative values of a type. Files may contain values outside of it if the column once had a wider type."""


def value_of(column: Column, of: StatisticsColumn) -> Column:
    """A column's values in the form in which they are compared and hashed: numbers as long or double, dates as days,
    timestamps as microseconds of the wall clock in the session's time zone (Hive's timestamps have none).

    A number that is too large for its column is NULL, as in Hive, which answers queries from statistics.
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
        # Spark pads what Hive truncates.
        return f.rtrim(column.cast("string")) if of.type.startswith("char") else column.cast("string")
    if kind is StatisticsKind.DATE:
        return f.unix_date(column).cast("bigint")
    if kind is StatisticsKind.TIMESTAMP:
        return f.unix_micros(f.from_utc_timestamp(column.cast("timestamp"), f.current_timezone()))
    return column
