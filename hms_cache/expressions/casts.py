"""Conversions between kinds of values for which all Hive versions agree; other conversions are undecided."""

from __future__ import annotations

import re
from decimal import Decimal

from hms_cache.expressions.bound import UNDECIDED, Undecided
from hms_cache.expressions.key_types import (
    INTEGER_BITS,
    KeyKind,
    KeyValue,
    base_type_name,
    date_of,
    days_of_nanoseconds,
    nanoseconds_of,
    read_text,
)

_EXACT_IN_FLOAT = 1 << 24
_DECIMAL_PARAMETERS = re.compile(r"decimal\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)")
_LENGTH = re.compile(r"\(\s*([0-9]{1,10})\s*\)")
"""No Hive type has a longer number, but clients may write one of any length."""


def common_kind(left: KeyKind, right: KeyKind) -> KeyKind | None:
    """The kind in which Hive compares two kinds (`FunctionRegistry.getCommonClassForComparison`); None if unknown."""
    if left is right:
        return left
    kinds = {left, right}
    if kinds <= {KeyKind.INTEGER, KeyKind.DECIMAL}:
        return KeyKind.DECIMAL
    if all(kind.is_number for kind in kinds):
        return KeyKind.DOUBLE
    if kinds == {KeyKind.DATE, KeyKind.TIMESTAMP}:
        return KeyKind.TIMESTAMP
    if KeyKind.TEXT in kinds:
        other = (kinds - {KeyKind.TEXT}).pop()
        if other.is_number:
            return KeyKind.DOUBLE
        if other in (KeyKind.DATE, KeyKind.TIMESTAMP):
            return other
    return None


def widen(value: KeyValue | Undecided | None, source: KeyKind, target: KeyKind) -> KeyValue | Undecided | None:
    """Converts a value to the kind in which it is compared."""
    if value is None or isinstance(value, Undecided) or source is target:
        return value
    if source is KeyKind.INTEGER and target is KeyKind.DOUBLE and abs(int(value)) > _EXACT_IN_FLOAT:
        # If the other operand is a float, Hive first rounds to 24 bits.
        return UNDECIDED
    return cast_value(value, source, target, target.value)


def cast_value(value: KeyValue, source: KeyKind, target: KeyKind, type_name: str) -> KeyValue | Undecided:
    """`CAST(value AS type_name)`. Undecided if the value would be truncated, rounded or wrapped, or is ambiguous."""
    if source.is_text:
        return _from_text(str(value), target, type_name)
    if target.is_text:
        return _to_text(value, source, target, type_name)
    if target is KeyKind.INTEGER and source is KeyKind.INTEGER:
        bits = INTEGER_BITS[base_type_name(type_name)]
        return value if -(1 << bits - 1) <= int(value) < 1 << bits - 1 else UNDECIDED
    if target is KeyKind.DECIMAL and source in (KeyKind.INTEGER, KeyKind.DECIMAL):
        return _fitting_decimal(Decimal(value), type_name)
    if target is KeyKind.DOUBLE and source.is_number:
        return float(value)
    if target is KeyKind.FLOAT and source is KeyKind.INTEGER and abs(int(value)) <= _EXACT_IN_FLOAT:
        return float(value)
    if target is KeyKind.TIMESTAMP and source is KeyKind.DATE:
        return nanoseconds_of(date_of(int(value)))
    if target is KeyKind.DATE and source is KeyKind.TIMESTAMP:
        return days_of_nanoseconds(int(value))
    return value if source is target else UNDECIDED


def _from_text(text: str, target: KeyKind, type_name: str) -> KeyValue | Undecided:
    if target.is_text:
        length = _LENGTH.search(type_name)
        if length is not None and len(text) > int(length[1]):
            return UNDECIDED
        return text.rstrip(" ") if target is KeyKind.CHAR else text
    if target is KeyKind.BOOLEAN:
        return UNDECIDED
    read = read_text(target, text, lenient=False)
    if read is None:
        return UNDECIDED
    if target is KeyKind.INTEGER:
        return cast_value(read, KeyKind.INTEGER, target, type_name)
    if target is KeyKind.DECIMAL:
        return _fitting_decimal(Decimal(read), type_name)
    return read


def _to_text(value: KeyValue, source: KeyKind, target: KeyKind, type_name: str) -> KeyValue | Undecided:
    if source is KeyKind.INTEGER:
        return _from_text(str(value), target, type_name)
    if source is KeyKind.DATE:
        return _from_text(date_of(int(value)).isoformat(), target, type_name)
    return UNDECIDED


def _fitting_decimal(value: Decimal, type_name: str) -> Decimal | Undecided:
    parameters = _DECIMAL_PARAMETERS.match(type_name)
    if parameters is None:
        return value
    precision, scale = int(parameters[1]), int(parameters[2])
    # Computed from its digits: arithmetic would round to 28 digits, and fail if these are not enough.
    _, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    significant = text.rstrip("0")
    if not significant:
        return value
    last = int(exponent) + len(text) - len(significant)
    return value if value.adjusted() < precision - scale and last >= -scale else UNDECIDED
