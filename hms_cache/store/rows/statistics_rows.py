"""Column statistics as rows of TAB_COL_STATS and PART_COL_STATS.

Hive's tables do not store which member of the union a client set: Hive returns the one that belongs to the column's
type. A client that writes timestamps as `longStats` (as all do that know the protocol before Hive 4) could not read
them back as `timestampStats`. So if the two differ, the member's field id is stored in NUM_TRUES, which is used for
booleans only and ignored for other types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlalchemy import Table

from hms_cache.metadata.statistics_values import ColumnValues, StatisticsKind, kind_of_type, statistics_of, values_of
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

_NAMES = (
    "COLUMN_NAME",
    "COLUMN_TYPE",
    "LONG_LOW_VALUE",
    "LONG_HIGH_VALUE",
    "DOUBLE_LOW_VALUE",
    "DOUBLE_HIGH_VALUE",
    "BIG_DECIMAL_LOW_VALUE",
    "BIG_DECIMAL_HIGH_VALUE",
    "NUM_NULLS",
    "NUM_DISTINCTS",
    "AVG_COL_LEN",
    "MAX_COL_LEN",
    "NUM_TRUES",
    "NUM_FALSES",
    "LAST_ANALYZED",
    "BIT_VECTOR",
    "HISTOGRAM",
)
LAST_ANALYZED = _NAMES.index("LAST_ANALYZED")
ROW_WIDTH = len(_NAMES)

_NO_BIT_VECTOR = b"HL"
"""Java writes this where a database would convert an empty value to NULL."""


def statistics_columns(table: Table, features: SchemaFeatures, *, bit_vectors: bool, histograms: bool) -> list[Any]:
    """The columns that `statistics_of_row` reads. The two large ones are null unless requested."""
    left_out = {name for name, requested in (("BIT_VECTOR", bit_vectors), ("HISTOGRAM", histograms)) if not requested}
    return [
        features.column(table.c[name]) if name not in left_out else _null_of(table, name, features) for name in _NAMES
    ]


def _null_of(table: Table, name: str, features: SchemaFeatures) -> Any:
    missing = SchemaFeatures(features.version, missing_columns=frozenset({(table.name, name)}))
    return missing.column(table.c[name])


def statistics_of_row(row: Sequence[Any]) -> ColumnStatisticsObj | None:
    """The statistics in a row's first `ROW_WIDTH` values; None if their kind is unknown."""
    column, column_type, *values = row[:ROW_WIDTH]
    long_low, long_high, double_low, double_high, decimal_low, decimal_high = values[:6]
    nulls, distinct, average_length, maximum_length, trues, falses, _, bit_vector, histogram = values[6:]
    kind = _kind(column_type, trues, values)
    if kind is None:
        return None
    found = ColumnValues(
        kind,
        nulls=nulls or 0,
        distinct=distinct or 0,
        average_length=float(average_length or 0.0),
        maximum_length=maximum_length or 0,
        bit_vector=_blob(bit_vector),
        histogram=_blob(histogram),
    )
    if kind is StatisticsKind.BOOLEAN:
        found.trues, found.falses = trues or 0, falses or 0
    elif kind is StatisticsKind.DOUBLE:
        found.low, found.high = double_low, double_high
    elif kind is StatisticsKind.DECIMAL:
        found.low, found.high = _decimal(decimal_low), _decimal(decimal_high)
    elif kind.has_bounds:
        found.low, found.high = long_low, long_high
    return statistics_of(column, column_type, found)


def _kind(column_type: str, marker: int | None, values: Sequence[Any]) -> StatisticsKind | None:
    natural = kind_of_type(column_type)
    if marker is not None and natural is not StatisticsKind.BOOLEAN and marker in StatisticsKind._value2member_map_:
        return StatisticsKind(marker)
    if natural is not None:
        return natural
    # A type for which Hive has no statistics, written by a server that does not store the kind.
    for kind, position in ((StatisticsKind.LONG, 0), (StatisticsKind.DOUBLE, 2), (StatisticsKind.DECIMAL, 4)):
        if values[position] is not None or values[position + 1] is not None:
            return kind
    return StatisticsKind.STRING if values[8] is not None and values[7] is not None else None


def _blob(value: bytes | None) -> bytes | None:
    return bytes(value) if value and bytes(value) != _NO_BIT_VECTOR else None


def _decimal(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return None


def row_of_statistics(
    statistics: ColumnStatisticsObj, *, engine: str, last_analyzed_s: int, identity: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of one column's statistics; `identity`: ids and names. Raises InvalidObjectException for an empty union.

    Names and types of columns are stored in lower case.
    """
    values = values_of(statistics)
    kind = values.kind
    column_type = statistics.colType.lower()
    row: dict[str, Any] = dict.fromkeys(_NAMES, None)
    row.update(
        COLUMN_NAME=statistics.colName.lower(),
        COLUMN_TYPE=column_type,
        NUM_NULLS=values.nulls,
        BIT_VECTOR=values.bit_vector,
        HISTOGRAM=values.histogram,
        LAST_ANALYZED=last_analyzed_s,
        ENGINE=engine,
        **identity,
    )
    if kind.has_distinct_values:
        row["NUM_DISTINCTS"] = values.distinct
    if kind.has_lengths:
        row.update(AVG_COL_LEN=values.average_length, MAX_COL_LEN=values.maximum_length)
    if kind is StatisticsKind.BOOLEAN:
        row.update(NUM_TRUES=values.trues, NUM_FALSES=values.falses)
    elif kind is StatisticsKind.DOUBLE:
        row.update(DOUBLE_LOW_VALUE=values.low, DOUBLE_HIGH_VALUE=values.high)
    elif kind is StatisticsKind.DECIMAL:
        row.update(BIG_DECIMAL_LOW_VALUE=_text(values.low), BIG_DECIMAL_HIGH_VALUE=_text(values.high))
    elif kind.has_bounds:
        row.update(LONG_LOW_VALUE=values.low, LONG_HIGH_VALUE=values.high)
    natural = kind_of_type(column_type)
    if kind is not natural and kind is not StatisticsKind.BOOLEAN and natural is not StatisticsKind.BOOLEAN:
        row["NUM_TRUES"] = int(kind)
    return row


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
