"""Types of partition keys, and the meaning of a partition value's text for each.

Partition values are stored as text. Their interpretation depends on the caller: the databases' casts for filters are
lenient (`2024-1-1` is a date), and Hive's own conversions differ in details. So there are two modes: *lenient* for
filters, and *strict* for expression trees, where a text that is not clearly a value of its type is undecided.
"""

from __future__ import annotations

import datetime
import re
import struct
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import TypeAlias

PartitionKey: TypeAlias = tuple[str, str]
"""A partition key's name and Hive type, as in `FieldSchema`."""

KeyValue: TypeAlias = str | int | float | bool | Decimal
"""A typed value: dates are days and timestamps nanoseconds since 1970-01-01; floats are widened to double."""

DEFAULT_PARTITION_NAME = "__HIVE_DEFAULT_PARTITION__"
"""Hive's `metastore.partition.name.default`: the text stored for NULL."""


class KeyKind(Enum):
    """How values of a type are compared."""

    TEXT = "string"
    CHAR = "char"
    INTEGER = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def is_text(self) -> bool:
        return self is KeyKind.TEXT or self is KeyKind.CHAR

    @property
    def is_number(self) -> bool:
        return self in (KeyKind.INTEGER, KeyKind.FLOAT, KeyKind.DOUBLE, KeyKind.DECIMAL)


_KINDS = {
    "string": KeyKind.TEXT,
    "varchar": KeyKind.TEXT,
    "char": KeyKind.CHAR,
    "tinyint": KeyKind.INTEGER,
    "smallint": KeyKind.INTEGER,
    "int": KeyKind.INTEGER,
    "integer": KeyKind.INTEGER,
    "bigint": KeyKind.INTEGER,
    "float": KeyKind.FLOAT,
    "double": KeyKind.DOUBLE,
    "double precision": KeyKind.DOUBLE,
    "decimal": KeyKind.DECIMAL,
    "numeric": KeyKind.DECIMAL,
    "boolean": KeyKind.BOOLEAN,
    "date": KeyKind.DATE,
    "timestamp": KeyKind.TIMESTAMP,
}
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}

MIN_LONG, MAX_LONG = -(1 << 63), (1 << 63) - 1
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_SECOND_NS = 1_000_000_000
_DAY_NS = 86_400 * _SECOND_NS

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?\Z")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_LENIENT_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T].*)?\Z", re.DOTALL)
_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?\Z")
_LENIENT_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,9})[0-9]*)?)?)?\Z"
)


def base_type_name(type_name: str) -> str:
    """The type without parameters, in lower case: `decimal(10,2)` is `decimal`."""
    return type_name.partition("(")[0].strip().lower()


def kind_of(type_name: str) -> KeyKind | None:
    """How keys of this Hive type are compared; None for a type that no partition key can have (binary, arrays, …)."""
    return _KINDS.get(base_type_name(type_name))


def days_of(date: datetime.date) -> int:
    """Days since 1970-01-01."""
    return date.toordinal() - _EPOCH_ORDINAL


def date_of(days: int) -> datetime.date:
    """The date with this number of days since 1970-01-01."""
    return datetime.date.fromordinal(days + _EPOCH_ORDINAL)


def nanoseconds_of(date: datetime.date, seconds: int = 0, nanoseconds: int = 0) -> int:
    """Nanoseconds since 1970-01-01 00:00:00 of a time on that day, without time zone."""
    return days_of(date) * _DAY_NS + seconds * _SECOND_NS + nanoseconds


def days_of_nanoseconds(nanoseconds: int) -> int:
    """The day of a timestamp."""
    return nanoseconds // _DAY_NS


def read_text(kind: KeyKind, text: str, lenient: bool) -> KeyValue | None:
    """The value of a partition's text; None if it is not a value of this kind.

    The default partition's name is an ordinary text: it is a value only of the kinds TEXT and CHAR.
    """
    match kind:
        case KeyKind.TEXT:
            return text
        case KeyKind.CHAR:
            return text.rstrip(" ")
        case KeyKind.INTEGER:
            return read_integer(text)
        case KeyKind.FLOAT | KeyKind.DOUBLE:
            return read_double(text, single=kind is KeyKind.FLOAT)
        case KeyKind.DECIMAL:
            return read_decimal(text)
        case KeyKind.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower())
        case KeyKind.DATE:
            return read_date(text, lenient)
        case KeyKind.TIMESTAMP:
            return read_timestamp(text, lenient)


def read_integer(text: str) -> int | None:
    """`[+-]digits` within 64 bits; leading zeros are ignored."""
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if MIN_LONG <= value <= MAX_LONG else None


def read_double(text: str, single: bool = False) -> float | None:
    """A finite number; `single` rounds to 32 bits as Hive's float does."""
    if not _NUMBER.match(text):
        return None
    value = float(text)
    if single:
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return None
    return value if abs(value) != float("inf") else None


def read_decimal(text: str) -> Decimal | None:
    """An exact number."""
    if not _NUMBER.match(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def read_date(text: str, lenient: bool) -> int | None:
    """Days since 1970-01-01. Lenient: also accepts one-digit months and days, and ignores a time of day."""
    match = (_LENIENT_DATE if lenient else _DATE).match(text)
    if not match:
        return None
    try:
        return days_of(datetime.date(int(match[1]), int(match[2]), int(match[3])))
    except ValueError:
        return None


def read_timestamp(text: str, lenient: bool) -> int | None:
    """Nanoseconds since 1970-01-01 00:00:00. Lenient: also accepts missing times, seconds and leading zeros."""
    match = (_LENIENT_TIMESTAMP if lenient else _TIMESTAMP).match(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction = (match[group] or "0" for group in range(1, 8))
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        return None
    try:
        date = datetime.date(int(year), int(month), int(day))
    except ValueError:
        return None
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return nanoseconds_of(date, seconds, int(fraction.ljust(9, "0")))
