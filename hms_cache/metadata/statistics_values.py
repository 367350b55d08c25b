"""Column statistics as values with the same fields for all types, and conversion from and to the generated structs.

Facts: `StatObjectConverter`, `DecimalUtils` (Hive 4.0.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final, TypeAlias

from hms_cache.thrift_gen.hive_metastore import ttypes

Bound: TypeAlias = int | float | Decimal

_MAX_LONG: Final = (1 << 63) - 1


class StatisticsKind(IntEnum):
    """The member of `ColumnStatisticsData` that is set; the number is its field id."""

    BOOLEAN = 1
    LONG = 2
    DOUBLE = 3
    STRING = 4
    BINARY = 5
    DECIMAL = 6
    DATE = 7
    TIMESTAMP = 8

    @property
    def has_bounds(self) -> bool:
        """Whether such statistics have a lowest and a highest value."""
        return self in _BOUNDED

    @property
    def has_lengths(self) -> bool:
        """Whether they have an average and a maximum length."""
        return self in (StatisticsKind.STRING, StatisticsKind.BINARY)

    @property
    def has_distinct_values(self) -> bool:
        """Whether they have a number of distinct values."""
        return self not in (StatisticsKind.BOOLEAN, StatisticsKind.BINARY)


_BOUNDED = frozenset(
    {StatisticsKind.LONG, StatisticsKind.DOUBLE, StatisticsKind.DECIMAL, StatisticsKind.DATE, StatisticsKind.TIMESTAMP}
)
_MEMBERS = {
    StatisticsKind.BOOLEAN: "booleanStats",
    StatisticsKind.LONG: "longStats",
    StatisticsKind.DOUBLE: "doubleStats",
    StatisticsKind.STRING: "stringStats",
    StatisticsKind.BINARY: "binaryStats",
    StatisticsKind.DECIMAL: "decimalStats",
    StatisticsKind.DATE: "dateStats",
    StatisticsKind.TIMESTAMP: "timestampStats",
}


@dataclass(slots=True)
class ColumnValues:
    """Statistics of one column. `low` and `high`: int (long, date in days, timestamp in seconds), float or Decimal."""

    kind: StatisticsKind
    nulls: int = 0
    distinct: int = 0
    low: Bound | None = None
    high: Bound | None = None
    average_length: float = 0.0
    maximum_length: int = 0
    trues: int = 0
    falses: int = 0
    bit_vector: bytes | None = None
    histogram: bytes | None = None


def kind_of_type(column_type: str) -> StatisticsKind | None:
    """The kind of statistics that Hive reads for a column of this type; None if it has none."""
    name = column_type.lower()
    if name.startswith(("varchar", "char")) or name == "string":
        return StatisticsKind.STRING
    if name.startswith("decimal"):
        return StatisticsKind.DECIMAL
    return _KINDS.get(name)


_KINDS = {
    "boolean": StatisticsKind.BOOLEAN,
    "binary": StatisticsKind.BINARY,
    "bigint": StatisticsKind.LONG,
    "int": StatisticsKind.LONG,
    "smallint": StatisticsKind.LONG,
    "tinyint": StatisticsKind.LONG,
    "double": StatisticsKind.DOUBLE,
    "float": StatisticsKind.DOUBLE,
    "date": StatisticsKind.DATE,
    "timestamp": StatisticsKind.TIMESTAMP,
}


def values_of(statistics: ttypes.ColumnStatisticsObj) -> ColumnValues:
    """The values in a struct.

    Raises InvalidObjectException if none or several members of the union are set, as clients of other protocol versions
    may do.
    """
    data = statistics.statsData
    found = [kind for kind, member in _MEMBERS.items() if data is not None and getattr(data, member) is not None]
    if len(found) != 1:
        raise ttypes.InvalidObjectException(
            f"Invalid column stats object: column {statistics.colName} has "
            + ("no statistics of a known type" if not found else "statistics of several types")
        )
    kind = found[0]
    member = getattr(data, _MEMBERS[kind])
    values = ColumnValues(kind, nulls=member.numNulls or 0)
    if kind is StatisticsKind.BOOLEAN:
        values.trues, values.falses = member.numTrues or 0, member.numFalses or 0
        return values
    if kind.has_lengths:
        values.average_length, values.maximum_length = member.avgColLen or 0.0, member.maxColLen or 0
    if kind.has_distinct_values:
        values.distinct = member.numDVs or 0
        values.bit_vector = _bytes_of(member.bitVectors)
    if kind.has_bounds:
        values.low, values.high = _bound_of(kind, member.lowValue), _bound_of(kind, member.highValue)
        values.histogram = _bytes_of(member.histogram)
    return values


def statistics_of(column: str, column_type: str, values: ColumnValues) -> ttypes.ColumnStatisticsObj:
    """The struct of a column's values.

    Sums and extrapolations may exceed the range of a struct's field, and extreme values of one writer must not make
    readers fail: integers are limited to 64 bits, and a bound that is not a valid decimal is omitted.
    """
    kind = values.kind
    nulls, distinct = clamp_to_long(values.nulls), clamp_to_long(values.distinct)
    longest = clamp_to_long(values.maximum_length)
    member: Any
    if kind is StatisticsKind.BOOLEAN:
        member = ttypes.BooleanColumnStatsData(clamp_to_long(values.trues), clamp_to_long(values.falses), nulls)
    elif kind is StatisticsKind.BINARY:
        member = ttypes.BinaryColumnStatsData(longest, values.average_length, nulls)
    elif kind is StatisticsKind.STRING:
        member = ttypes.StringColumnStatsData(longest, values.average_length, nulls, distinct, values.bit_vector)
    else:
        member = _CLASSES[kind](
            _struct_of(kind, values.low),
            _struct_of(kind, values.high),
            nulls,
            distinct,
            values.bit_vector,
            values.histogram,
        )
    data = ttypes.ColumnStatisticsData(**{_MEMBERS[kind]: member})
    return ttypes.ColumnStatisticsObj(column, column_type, data)


_CLASSES: dict[StatisticsKind, Any] = {
    StatisticsKind.LONG: ttypes.LongColumnStatsData,
    StatisticsKind.DOUBLE: ttypes.DoubleColumnStatsData,
    StatisticsKind.DECIMAL: ttypes.DecimalColumnStatsData,
    StatisticsKind.DATE: ttypes.DateColumnStatsData,
    StatisticsKind.TIMESTAMP: ttypes.TimestampColumnStatsData,
}


def _bytes_of(value: bytes | str | None) -> bytes | None:
    """Bit vectors are text in the protocol before Hive 3, and bytes since."""
    if not value:
        return None
    return value.encode("latin-1", "replace") if isinstance(value, str) else value


def _bound_of(kind: StatisticsKind, value: Any) -> Bound | None:
    if value is None:
        return None
    if kind is StatisticsKind.DECIMAL:
        return decimal_of(value)
    if kind is StatisticsKind.DATE:
        return int(value.daysSinceEpoch)
    if kind is StatisticsKind.TIMESTAMP:
        return int(value.secondsSinceEpoch)
    return float(value) if kind is StatisticsKind.DOUBLE else int(value)


def is_bounded(statistics: ttypes.ColumnStatisticsObj) -> bool:
    """Whether no bound is NaN or infinite."""
    data = statistics.statsData
    doubles = None if data is None else data.doubleStats
    return doubles is None or (_finite(doubles.lowValue) and _finite(doubles.highValue))


def with_finite_values(statistics: ttypes.ColumnStatisticsObj) -> ttypes.ColumnStatisticsObj:
    """The statistics without bounds and average lengths that are NaN or infinite, which not every database can
    store."""
    data = statistics.statsData
    lengths = None if data is None else data.stringStats or data.binaryStats
    if is_bounded(statistics) and (lengths is None or _finite(lengths.avgColLen)):
        return statistics
    values = values_of(statistics)
    values.low = values.low if _finite(values.low) else None
    values.high = values.high if _finite(values.high) else None
    values.average_length = values.average_length if _finite(values.average_length) else 0.0
    return statistics_of(statistics.colName, statistics.colType, values)


def _finite(value: Bound | None) -> bool:
    return value is None or math.isfinite(value)


def _struct_of(kind: StatisticsKind, value: Bound | None) -> Any:
    if value is None:
        return None
    if kind is StatisticsKind.DECIMAL:
        number = Decimal(value)
        return decimal_struct(number) if number.is_finite() else None
    if kind is StatisticsKind.DOUBLE:
        return value
    whole = clamp_to_long(int(value))
    if kind is StatisticsKind.DATE:
        return ttypes.Date(whole)
    return ttypes.Timestamp(whole) if kind is StatisticsKind.TIMESTAMP else whole


def clamp_to_long(value: int) -> int:
    """The nearest 64-bit integer."""
    return max(min(value, _MAX_LONG), -_MAX_LONG - 1)


_MAX_DECIMAL_BYTES: Final = 64
"""38 digits need 16 bytes; sums of them a few more."""

_MAX_DECIMAL_SCALE: Final = 1_000


def decimal_of(value: ttypes.Decimal) -> Decimal:
    """The number in a Thrift decimal: big-endian two's complement, and a scale.

    Raises MetaException for a number that is too large for any column: converting it to text takes quadratic time.
    """
    if len(value.unscaled) > _MAX_DECIMAL_BYTES or abs(value.scale) > _MAX_DECIMAL_SCALE:
        raise ttypes.MetaException(
            f"A decimal of {len(value.unscaled)} bytes and scale {value.scale}: those of columns have at most 38 digits"
        )
    unscaled = int.from_bytes(value.unscaled, "big", signed=True)
    sign = 1 if unscaled < 0 else 0
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((sign, digits, -int(value.scale)))


def decimal_struct(value: Decimal) -> ttypes.Decimal:
    """The inverse of `decimal_of`, in as few bytes as Java's `BigInteger.toByteArray` uses."""
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return ttypes.Decimal(scale=-int(exponent), unscaled=unscaled.to_bytes(bits // 8 + 1, "big", signed=True))
