"""Character sets of MySQL's columns, and statements that compare a column with a text outside its character set.

Hive's script stores names in latin1. MySQL's reply to a comparison with a text of other characters is a collation
error, although the correct answer is that no row has such a text. So the statement is sent again with a text in its
place that no row has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_WITHOUT_PRINT = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))
"""Bytes that code page 1252 leaves undefined. MySQL treats them as the control characters with these numbers."""

_LATIN1 = frozenset(_WITHOUT_PRINT.decode("latin-1")).union(
    bytes(set(range(256)).difference(_WITHOUT_PRINT)).decode("cp1252")
)
"""The characters of MySQL's ``latin1``."""


def plane_of(text: str) -> int:
    """The columns of MySQL that can represent the text: 0 for all, 1 for ``utf8mb3`` and above, 2 for ``utf8mb4``
    only."""
    if text.isascii() or _LATIN1.issuperset(text):
        return 0
    return 1 if max(text) <= "\uffff" else 2


_CANNOT_CONVERT = frozenset({3854, 3988})
"""MySQL's error numbers, since 8.0, for a text that the column's character set cannot represent."""

_TWO_OR_THREE_COLLATIONS = frozenset({1267, 1270})
"""MySQL's and MariaDB's error numbers for two or three operands whose collations cannot be combined. The error's text
names the collation of each, and how it got it."""

_MORE_COLLATIONS = 1271
"""The number for more operands. The error's text names only the operation."""

_OF_A_TEXT = ",COERCIBLE)"
"""After the collation of a text of the statement. Those of columns and of CAST are IMPLICIT."""

_OF_A_UNION = "'UNION'"
"""At the end of the error's text: its rows are not compared."""

_OF_A_LIST = re.compile(r"' ?in ?'\Z", re.IGNORECASE)
"""The only operation with four operands in which the store compares columns with texts."""


def is_uncomparable(error: BaseException) -> bool:
    """Whether this error of MySQL's or MariaDB's driver means that a text cannot be compared with a column, so that no
    value of the column equals it.

    False if two columns of the statement cannot be compared: rows exist, and none may be missing.
    """
    number, message, *_ = (*error.args, "", "")
    if number in _TWO_OR_THREE_COLLATIONS:
        return _OF_A_TEXT in str(message) and not str(message).endswith(_OF_A_UNION)
    if number == _MORE_COLLATIONS:
        return _OF_A_LIST.search(str(message)) is not None
    return number in _CANNOT_CONVERT


_IN_NO_COLUMN = "\0 this text has characters that the column has not \0"

_ORDERED = re.compile(r"(?:[<>]=?|\bBETWEEN|\bAND)\s*%\((\w+)\)s", re.IGNORECASE)
"""Parameters that may be compared by order. AND stands only before the second one of BETWEEN."""


def comparable_parameters(statement: str, parameters: Any, plane: int) -> dict[str, Any] | None:
    """The parameters with texts of this plane or above (`plane_of`) replaced: none of them is in the database.

    None if that is not valid: for statements that write, for texts that are compared by order, or if there is no such
    text.
    """
    if not isinstance(parameters, Mapping) or not statement.lstrip().upper().startswith(("SELECT", "DELETE")):
        return None
    changed = {name for name, value in parameters.items() if isinstance(value, str) and plane_of(value) >= plane}
    if not changed or not changed.isdisjoint(_ORDERED.findall(statement)):
        return None
    return {name: _IN_NO_COLUMN if name in changed else value for name, value in parameters.items()}
