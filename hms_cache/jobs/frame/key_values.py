"""Values of partition keys in names of directories, parsed as in Hive's partition discovery.

Source: `MetaStoreServerUtils.getPartitionName`, `getNormalisedPartitionValue` (Hive 4.0): ``day=007`` of an int key is
the partition ``day=7``, and stays in its directory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal

from hms_cache.expressions.key_types import read_decimal, read_double, read_integer
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE

_BITS = {"tinyint": 32, "smallint": 32, "int": 32, "bigint": 64}
"""Hive parses tinyint and smallint by `Integer.parseInt` as well."""

_EXPONENT = 400
"""Maximum exponent of a decimal that is written out: a longer name exceeds the limits of all file systems."""


def value_reader(key_type: str) -> Callable[[str], str]:
    """Returns a function that converts the text after the ``=`` of a directory's name to the key's value.

    It raises ValueError if the text is invalid for the type.
    """
    kind = key_type.lower()
    if kind in _BITS:
        return _typed(lambda text: _integer(text, _BITS[kind]))
    if kind in ("float", "double"):
        return _typed(lambda text: _float(text, single=kind == "float"))
    if kind.startswith("decimal"):
        return _typed(_decimal)
    return unescape_path_name


def _typed(read: Callable[[str], str]) -> Callable[[str], str]:
    def reader(text: str) -> str:
        return text if text == DEFAULT_PARTITION_VALUE else read(unescape_path_name(text))

    return reader


def _integer(text: str, bits: int) -> str:
    value = read_integer(text)
    if value is None or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{text!r} is not an integer of {bits} bits")
    return str(value)


def _decimal(text: str) -> str:
    value = read_decimal(text)
    if value is None or abs(value.adjusted()) > _EXPONENT:
        raise ValueError(f"{text!r} is not a decimal")
    return format(value.normalize(Context(prec=len(text) + 1)), "f") if value else "0"


def _float(text: str, *, single: bool) -> str:
    value = read_double(text, single)
    if value is None:
        raise ValueError(f"{text!r} is not a number")
    return java_float_text(value, single=single)


def java_float_text(value: float, *, single: bool = False) -> str:
    """Formats like `Double.toString` and `Float.toString`: the fewest digits that identify the value, ``1.0E10``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    _, digits, exponent = Decimal(_shortest(abs(value), single)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    magnitude = len(digits) + exponent - 1
    if -3 <= magnitude < 7:
        if magnitude < 0:
            return f"{sign}0.{'0' * (-magnitude - 1)}{text}"
        text = text.ljust(magnitude + 1, "0")
        return f"{sign}{text[: magnitude + 1]}.{text[magnitude + 1 :] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{magnitude}"


def _shortest(value: float, single: bool) -> str:
    if not single:
        return repr(value)
    packed = struct.pack("f", value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("f", float(text)) == packed:
                return text
        except OverflowError:
            continue  # rounded up beyond the maximum
    return repr(value)
