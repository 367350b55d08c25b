"""Numbers of rows, files and bytes as parameters: Hive's for tables and partitions, and Spark's for tables.

Hive's names are those of `StatsSetupConst`, written as by its ANALYZE. Trino reads them as well, and ignores column
statistics without a number of rows. Spark's are those of `HiveExternalCatalog.statsToProperties` and
`CatalogColumnStat.toMap` (4.1): it only uses the column statistics of a table that are stored there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from hms_cache.jobs.frame.key_values import java_float_text
from hms_cache.jobs.statistics.data_files import RECORDED, SAMPLED, Figures, Mark
from hms_cache.jobs.statistics.totals import Totals, TotalsOfColumns
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, values_of
from hms_cache.store.rows.parameters import (
    accurate_columns,
    remove_columns_from_accuracy,
    set_basic_statistics_accurate,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

SPARK = "spark.sql.statistics."
_SPARK_COLUMN = f"{SPARK}colStats."
_SPARK_VERSION = "2"

_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8, "date": 4}
_DEFAULT_LENGTHS = {StatisticsKind.STRING: 20, StatisticsKind.BINARY: 100}
"""For a column without values."""

DECIMAL_PLACES = 4
"""Decimal places of a double in Hive's MySQL tables: `double(53,4)`."""

_EPOCH = date(1970, 1, 1)
_GREGORIAN_SINCE = (date(1582, 10, 15) - _EPOCH).days


def basic_statistics(
    parameters: dict[str, str],
    rows: int,
    figures: Figures,
    columns: Iterable[ColumnStatisticsObj],
    sample: str | None = None,
    reading: str = "",
) -> dict[str, str]:
    """The parameters with the counts, which are marked as accurate. With a `sample` they are estimates and not marked,
    so Hive answers no query from them.

    :param reading: `reading_of` the table.
    """
    written = {name: value for name, value in parameters.items() if name != SAMPLED}
    written |= {
        "numRows": str(rows),
        "rawDataSize": str(raw_data_bytes(rows, columns)),
        "numFiles": str(figures.files),
        "totalSize": str(figures.bytes),
    }
    if sample is not None:
        written[SAMPLED] = sample
    set_basic_statistics_accurate(written, sample is None)
    remove_columns_from_accuracy(written, not_answerable(columns))
    written[RECORDED] = str(Mark(figures, rows, reading, len(accurate_columns(written))))
    return written


def not_answerable(columns: Iterable[ColumnStatisticsObj]) -> frozenset[str]:
    """Columns whose statistics Hive may use for planning, but not to answer queries.

    For values whose bound cannot be written, such as infinity and NaN, Hive would answer NULL for the bound. A bound
    with more than four decimal places is truncated in Hive's tables in MySQL and MariaDB. A day before 1582-10-15 is
    different in Hive, because of its calendar, than in Arrow and Spark.
    """
    found = set()
    for column in columns:
        values = values_of(column)
        if (
            values.kind is StatisticsKind.DOUBLE
            and values.distinct
            and not all(map(_is_kept, (values.low, values.high)))
        ):
            found.add(column.colName)
        if values.kind is StatisticsKind.DATE and isinstance(values.low, int) and values.low < _GREGORIAN_SINCE:
            found.add(column.colName)
    return frozenset(found)


def _is_kept(bound: object) -> bool:
    return isinstance(bound, int | float) and round(bound, DECIMAL_PLACES) == bound


def raw_data_bytes(rows: int, columns: Iterable[ColumnStatisticsObj]) -> int:
    """Size of the rows without encoding and compression: fixed widths, and texts by their average length."""
    width = 0.0
    for column in columns:
        values = values_of(column)
        type_name = column.colType.partition("(")[0]
        width += values.average_length if values.kind.has_lengths else _WIDTHS.get(type_name, 8)
    return round(rows * width)


def spark_statistics(
    parameters: dict[str, str],
    rows: int | None,
    total_bytes: int,
    columns: Iterable[ColumnStatisticsObj],
    totals: TotalsOfColumns,
) -> dict[str, str]:
    """The parameters with Spark's statistics of the table and of these columns instead of existing ones.

    :param rows: None: not counted; only the size is written. Spark's statistics cannot be marked as estimates.
    """
    written = {name: value for name, value in parameters.items() if not name.startswith(SPARK)}
    written[f"{SPARK}totalSize"] = str(total_bytes)
    if rows is None:
        return written
    written[f"{SPARK}numRows"] = str(rows)
    for column in columns:
        values = values_of(column)
        total = totals.of(column.colName)
        length, longest = _lengths(column.colType, values, total)
        low, high = _bounds(column.colType, values, total)
        figures = {
            "version": _SPARK_VERSION,
            "distinctCount": str(_distinct(values, total)),
            "nullCount": str(values.nulls),
            "avgLen": str(length),
            "maxLen": str(longest),
            "min": low,
            "max": high,
        }
        for name, value in figures.items():
            if value is not None:
                written[f"{_SPARK_COLUMN}{column.colName}.{name}"] = value
    return written


def _distinct(values: ColumnValues, total: Totals) -> int:
    if values.kind is StatisticsKind.BOOLEAN:
        return (values.trues > 0) + (values.falses > 0)
    # Hive does not count the distinct values of a binary column: there are at most as many as values.
    return values.distinct if values.kind.has_distinct_values else total.present


def _lengths(hive_type: str, values: ColumnValues, total: Totals) -> tuple[int, int]:
    """Spark uses the size of its own form of a value, for a text or binary the length of the value; nulls do not
    count."""
    name, _, arguments = hive_type.partition("(")
    if values.kind.has_lengths:
        if not total.present:
            return _DEFAULT_LENGTHS[values.kind], _DEFAULT_LENGTHS[values.kind]
        if name == "char":
            filled = int(arguments.rstrip(") "))
            return filled, filled
        return -(-total.length_sum // total.present), values.maximum_length
    if name == "decimal":
        size = 8 if int(arguments.split(",")[0].rstrip(") ") or 10) <= 18 else 16
    else:
        size = _WIDTHS.get(name, 8)
    return size, size


def _bounds(hive_type: str, values: ColumnValues, total: Totals) -> tuple[str | None, str | None]:
    if values.kind is StatisticsKind.BOOLEAN:
        found = [text for text, count in (("false", values.falses), ("true", values.trues)) if count]
        return (found[0], found[-1]) if found else (None, None)
    if values.kind is StatisticsKind.TIMESTAMP:
        return _timestamp(total.low_us), _timestamp(total.high_us)
    if values.kind.has_lengths:
        return None, None
    return _bound(hive_type, values.kind, values.low), _bound(hive_type, values.kind, values.high)


def _timestamp(since_epoch_us: int | None) -> str | None:
    if since_epoch_us is None:
        return None
    try:
        # Spark requires four digits for a year; C's `strftime` does not pad.
        return (datetime(1970, 1, 1) + timedelta(microseconds=since_epoch_us)).isoformat(" ", "microseconds")
    except OverflowError:
        return None  # a year outside of Python's range


def _bound(hive_type: str, kind: StatisticsKind, bound: object) -> str | None:
    if bound is None:
        return None
    if kind is StatisticsKind.DATE:
        try:
            return (_EPOCH + timedelta(days=int(str(bound)))).isoformat()
        except OverflowError:
            return None
    if kind is StatisticsKind.DECIMAL:
        return f"{bound:f}"
    if kind is StatisticsKind.DOUBLE:
        return java_float_text(float(str(bound)), single=hive_type == "float")
    return str(bound)
