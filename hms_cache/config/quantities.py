"""Times and sizes as operators write them.

Settings carry their unit in their name (``poll_interval_s``), so a bare number is in that unit. A number with a unit
of its own ("500ms", "5 min", "100 MiB", Hive's "1d" and "1Gb") is converted.
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

#: Seconds in a unit: the spellings of Hive's time settings (Java's TimeUnit names and their short forms).
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

#: Bytes in a unit. "k", "kb" and "kib" are all 1024, as in Hive and Hadoop.
_BYTES_IN: dict[str, int] = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _BYTES_IN.update(dict.fromkeys((_letter, f"{_letter}b", f"{_letter}ib"), 1024**_power))


def parse_duration_s(text: str, default_unit: str) -> float:
    """Seconds in ``text``; ``default_unit`` is what a bare number is in. "inf" is infinity.

    Raises ``ValueError`` with the text in its message.
    """
    if text.strip().lower() in ("inf", "infinite", "infinity"):
        return math.inf
    found = _NUMBER_AND_UNIT.match(text)
    if found is None or (found[2] and found[2].lower() not in _SECONDS_IN):
        raise ValueError(f"{text!r} is not a time: write a number and, if you like, one of ms, s, min, h, d")
    return float(found[1]) * _SECONDS_IN[(found[2] or default_unit).lower()]


def parse_size_bytes(text: str) -> int:
    """Bytes in ``text``, such as "100 MiB" or "1Gb". Raises ``ValueError`` with the text in its message."""
    found = _NUMBER_AND_UNIT.match(text)
    if found is None or found[2].lower() not in _BYTES_IN:
        raise ValueError(f"{text!r} is not a size: write a number and, if you like, one of KiB, MiB, GiB, TiB")
    size = float(found[1]) * _BYTES_IN[found[2].lower()]
    if math.isinf(size):
        raise ValueError(f"{text[:200]!r} is too large for a size")
    return int(size)


def format_size(size_bytes: int) -> str:
    """``size_bytes`` for people, in the largest binary unit that divides it: "100 MiB"."""
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
        # A list as a TOML file has it. What is none is a pattern that begins and ends with a class: [ab].[cd]
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
#: Several words: a list, or one text with commas or as a list is written.
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
#: A file that need not be given; an empty text is none.
OptionalPath = Annotated[Path | None, BeforeValidator(_path)]


def unless_negative(text: str) -> str:
    """A time of a site file: in Hive's words one below zero is none, ``inf`` here."""
    return "inf" if text.strip().startswith("-") else text


def whole_seconds(seconds: float) -> int:
    """``seconds`` as a whole number, for times that are added to others: infinity is a century."""
    return round(min(seconds, _CENTURY_S))


def whole_milliseconds(seconds: float) -> int:
    """The same in milliseconds."""
    return round(min(seconds, _CENTURY_S) * 1000)


def finite_s(seconds: float) -> float | None:
    """``seconds`` as most waiting functions want it: None for infinity."""
    return None if math.isinf(seconds) else seconds
