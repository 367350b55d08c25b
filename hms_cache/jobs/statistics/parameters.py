"""Numbers of rows, files and bytes as parameters of tables and partitions: Hive's, and Spark's of tables.

Hive's names are those of `StatsSetupConst`, written as its ANALYZE does; Trino reads them as well, and takes no column
statistics without a number of rows. Spark's are those of `HiveExternalCatalog.statsToProperties` and
`CatalogColumnStat.toMap` (4.1): it plans by the column statistics of a table only if they stand there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from hms_cache.jobs.statistics.data_files import RECORDED, SAMPLED, Figures
from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, values_of
from hms_cache.store.rows.parameters import set_basic_statistics_accurate
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

SPARK = "spark.sql.statistics."
_SPARK_COLUMN = f"{SPARK}colStats."
_SPARK_VERSION = "2"

_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8, "date": 4}
_EPOCH = date(1970, 1, 1)


def basic_statistics(
    parameters: dict[str, str],
    rows: int,
    figures: Figures,
    columns: Iterable[ColumnStatisticsObj],
    sample: str | None = None,
) -> dict[str, str]:
    """The parameters with what was counted; they count as accurate from now on. With a `sample` they are estimates, and
    nothing counts as accurate: Hive answers no query from them."""
    written = {name: value for name, value in parameters.items() if name != SAMPLED}
    written |= {
        "numRows": str(rows),
        "rawDataSize": str(raw_data_bytes(rows, columns)),
        "numFiles": str(figures.files),
        "totalSize": str(figures.bytes),
        RECORDED: str(figures),
    }
    if sample is not None:
        written[SAMPLED] = sample
    set_basic_statistics_accurate(written, sample is None)
    return written


def raw_data_bytes(rows: int, columns: Iterable[ColumnStatisticsObj]) -> int:
    """What the rows take without encoding and compression: fixed widths, and texts by their average length."""
    width = 0.0
    for column in columns:
        values = values_of(column)
        type_name = column.colType.partition("(")[0]
        width += values.average_length if values.kind.has_lengths else _WIDTHS.get(type_name, 8)
    return round(rows * width)


def spark_statistics(
    parameters: dict[str, str], rows: int | None, total_bytes: int, columns: Iterable[ColumnStatisticsObj]
) -> dict[str, str]:
    """The parameters with Spark's statistics of the table and of these columns in place of those that were there.

    `rows` None: they were not counted, and only the size is written. Spark's have no mark that they are estimates.
    """
    written = {name: value for name, value in parameters.items() if not name.startswith(SPARK)}
    written[f"{SPARK}totalSize"] = str(total_bytes)
    if rows is None:
        return written
    written[f"{SPARK}numRows"] = str(rows)
    for column in columns:
        values = values_of(column)
        length, longest = _lengths(column.colType, values)
        figures = {
            "version": _SPARK_VERSION,
            "distinctCount": str(_distinct(values)),
            "nullCount": str(values.nulls),
            "avgLen": str(length),
            "maxLen": str(longest),
            "min": _bound(column.colType, values, values.low),
            "max": _bound(column.colType, values, values.high),
        }
        for name, value in figures.items():
            if value is not None:
                written[f"{_SPARK_COLUMN}{column.colName}.{name}"] = value
    return written


def _distinct(values: ColumnValues) -> int:
    if values.kind is StatisticsKind.BOOLEAN:
        return (values.trues > 0) + (values.falses > 0)
    return values.distinct


def _lengths(hive_type: str, values: ColumnValues) -> tuple[int, int]:
    """Spark takes the sizes of its own form of a value."""
    if values.kind.has_lengths:
        return -int(-values.average_length // 1), values.maximum_length
    name, _, arguments = hive_type.partition("(")
    if name == "decimal":
        size = 8 if int(arguments.split(",")[0].rstrip(") ") or 10) <= 18 else 16
    else:
        size = _WIDTHS.get(name, 8)
    return size, size


def _bound(hive_type: str, values: ColumnValues, bound: object) -> str | None:
    if values.kind is StatisticsKind.BOOLEAN:
        return None
    if bound is None or values.kind.has_lengths:
        return None
    try:
        if values.kind is StatisticsKind.DATE:
            return (_EPOCH + timedelta(days=int(str(bound)))).isoformat()
        if values.kind is StatisticsKind.TIMESTAMP:
            return datetime.fromtimestamp(int(str(bound)), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    except (OverflowError, ValueError):
        return None  # a year that Python has not
    if values.kind is StatisticsKind.DECIMAL:
        return f"{bound:f}"
    return str(bound)
