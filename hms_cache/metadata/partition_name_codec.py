"""Splits partition names (``ds=2024-01-01/h=3``) as Hive's ``Warehouse.makeValsFromName`` does.

The only decoder of partition names: events must invalidate the same partition that the store looks up.
"""

from __future__ import annotations

import re
import unicodedata

PartitionValues = tuple[str, ...]

_PLAIN_ESCAPE = re.compile("%([0-9a-fA-F]{2})")
_ANY_ESCAPE = re.compile("%(..)", re.DOTALL)
_FULL_WIDTH_LETTERS = {
    chr(base + offset): 10 + offset for base in (0xFF21, 0xFF41) for offset in range(6)
}  # Java's Character.digit reads these as hexadecimal digits too


def values_of_partition_name(name: str) -> PartitionValues | None:
    """The values in the order of the name; ``None`` if a component has no key."""
    values = []
    for component in components_of(name):
        key, equals, value = component.partition("=")
        if not key or not equals:
            return None
        values.append(unescape_path_name(value))
    return tuple(values)


def components_of(name: str) -> list[str]:
    """The ``key=value`` components of a name; trailing slashes are ignored, as by Java's ``split``."""
    return name.rstrip("/").split("/")


def unescape_path_name(text: str) -> str:
    """The inverse of `escape_path_name`, as lenient as Hive's: a `%` without a valid number is kept.

    Source: `FileUtils.unescapePathName`, which parses two characters with Java's `Integer.parseInt(…, 16)`: a leading
    plus sign and digits of other scripts are accepted.
    """
    if "%" not in text:
        return text
    if text.count("%") == len(_PLAIN_ESCAPE.findall(text)):
        return _PLAIN_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
    parts: list[str] = []
    position = 0
    while (match := _ANY_ESCAPE.search(text, position)) is not None:
        code = _java_hexadecimal(match.group(1))
        if code is None:
            parts.append(text[position : match.start() + 1])
            position = match.start() + 1
        else:
            parts.append(text[position : match.start()])
            parts.append(chr(code))
            position = match.end()
    parts.append(text[position:])
    return "".join(parts)


def _java_hexadecimal(two: str) -> int | None:
    """`Integer.parseInt(two, 16)` if it is not negative, otherwise None."""
    digits = two[1:] if two[0] == "+" else two
    value = 0
    for character in digits:
        digit = _java_digit(character)
        if digit is None:
            return None
        value = value * 16 + digit
    return value


def _java_digit(character: str) -> int | None:
    if character in "0123456789abcdefABCDEF":
        return int(character, 16)
    if character > "\uffff":  # Java sees half of a surrogate pair
        return None
    if character in _FULL_WIDTH_LETTERS:
        return _FULL_WIDTH_LETTERS[character]
    return unicodedata.decimal(character, None)
