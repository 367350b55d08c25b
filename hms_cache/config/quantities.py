"""Times and sizes as operators write them.

The name of a setting ends in its unit (``poll_interval_s``), so a number without a unit has that unit. A number with
another unit ("500ms", "5 min", "100 MiB", Hive's "1d" and "1Gb") is converted.
"""

from __future__ import annotations

import math
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

_NUMBER_AND_UNIT = re.compile(r"^\s*+([+-]?\d+(?:\.\d+)?)\s*+([A-Za-zµ]*)\s*$")

#: Seconds per unit, in the spellings of Hive's time settings (names of Java's TimeUnit and their short forms).
_SECONDS_IN: dict[str, float] = {}
for _names, _length in (
    ("ns nsec nsecs nanosecond nanoseconds", 1e-9),
    ("us µs usec usecs microsecond microseconds", 1e-6),
    ("ms msec msecs millisecond milliseconds", 1e-3),
    ("s sec secs second seconds", 1.0),
    ("m min mins minute minutes", 60.0),
    ("h hour hours", 3600.0),
    ("d day days", 86400.0),
):
    _SECONDS_IN.update(dict.fromkeys(_names.split(), _length))

_CENTURY_S = 100 * 365 * 86400.0

#: Bytes per unit. "k", "kb" and "kib" all mean 1024, as in Hive and Hadoop.
_BYTES_IN: dict[str, int] = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _BYTES_IN.update(dict.fromkeys((_letter, f"{_letter}b", f"{_letter}ib"), 1024**_power))


def parse_duration_s(text: str, default_unit: str) -> float:
    """Parses a time in seconds. "inf" is infinity.

    Raises ``ValueError`` with the text in its message.

    :param default_unit: the unit of a number without one.
    """
    if text.strip().lower() in ("inf", "infinite", "infinity"):
        return math.inf
    found = _NUMBER_AND_UNIT.match(text)
    if found is None or (found[2] and found[2].lower() not in _SECONDS_IN):
        raise ValueError(f"{text!r} is not a time: write a number, which may be followed by ms, s, min, h or d")
    return float(found[1]) * _SECONDS_IN[(found[2] or default_unit).lower()]


def parse_size_bytes(text: str) -> int:
    """Parses a size in bytes, such as "100 MiB" or "1Gb". Raises ``ValueError`` with the text in its message."""
    found = _NUMBER_AND_UNIT.match(text)
    if found is None or found[2].lower() not in _BYTES_IN:
        raise ValueError(f"{text!r} is not a size: write a number, which may be followed by KiB, MiB, GiB or TiB")
    size = float(found[1]) * _BYTES_IN[found[2].lower()]
    if math.isinf(size):
        raise ValueError(f"{text[:200]!r} is too large for a size")
    return int(size)


def format_size(size_bytes: int) -> str:
    """Formats a size in the largest binary unit that divides it, such as "100 MiB"."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power} {unit}"
    return f"{size_bytes} bytes"


def _seconds(value: Any) -> Any:
    return parse_duration_s(value, "s") if isinstance(value, str) else value


def _milliseconds(value: Any) -> Any:
    return parse_duration_s(value, "ms") * 1000 if isinstance(value, str) else value


def _whole_milliseconds(value: Any) -> Any:
    milliseconds = _milliseconds(value)
    return round(milliseconds) if isinstance(milliseconds, float) and math.isfinite(milliseconds) else milliseconds


def _minutes(value: Any) -> Any:
    return parse_duration_s(value, "min") / 60 if isinstance(value, str) else value


def _size(value: Any) -> Any:
    return parse_size_bytes(value) if isinstance(value, str) else value


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        # A list as in a TOML file. Otherwise it is a pattern that begins and ends with a class, such as [ab].[cd]
        with suppress(ValueError):
            return tuple(tomllib.loads(f"words = {text}")["words"])
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _path(value: Any) -> Any:
    return None if value == "" else value


Seconds = Annotated[float, BeforeValidator(_seconds)]
Milliseconds = Annotated[float, BeforeValidator(_milliseconds)]
WholeMilliseconds = Annotated[int, BeforeValidator(_whole_milliseconds)]
Minutes = Annotated[float, BeforeValidator(_minutes)]
SizeBytes = Annotated[int, BeforeValidator(_size)]
#: Several words: a list, or one text that separates them by commas or is written as a list.
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
#: An optional file; an empty text means none.
OptionalPath = Annotated[Path | None, BeforeValidator(_path)]


def unless_negative(text: str) -> str:
    """Converts a time from a site file: Hive uses a negative time for no limit, which is ``inf`` here."""
    return "inf" if text.strip().startswith("-") else text


def whole_seconds(seconds: float) -> int:
    """Rounds up to whole seconds, for times that are added to others, so that nothing expires too early; infinity
    becomes a century."""
    return math.ceil(min(seconds, _CENTURY_S))


def whole_milliseconds(seconds: float) -> int:
    """Like `whole_seconds`, in milliseconds."""
    return round(min(seconds, _CENTURY_S) * 1000)


def finite_s(seconds: float) -> float | None:
    """Returns ``seconds`` in the form that most waiting functions expect: None for infinity, and for more than a
    century, which some of them refuse."""
    return None if seconds > _CENTURY_S else seconds
