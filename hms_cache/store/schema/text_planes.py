"""Characters that columns of MySQL have, and statements that compare such a column with a text of others.

Hive's own script keeps names in latin1. MySQL answers a comparison with a text of further characters by an error, so
that whoever asked for a name that cannot be there was told of collations instead. No row has such a text: the statement
is sent again with one in its place that no row has either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_WITHOUT_PRINT = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))
"""Bytes that code page 1252 leaves open. MySQL takes them for the control characters of these numbers."""

_LATIN1 = frozenset(_WITHOUT_PRINT.decode("latin-1")).union(
    bytes(set(range(256)).difference(_WITHOUT_PRINT)).decode("cp1252")
)
"""The characters of MySQL's ``latin1``."""


def plane_of(text: str) -> int:
    """Which columns of MySQL have all its characters: 0 for all, 1 for those of ``utf8mb3``, 2 for ``utf8mb4`` only."""
    if text.isascii() or _LATIN1.issuperset(text):
        return 0
    return 1 if max(text) <= "\uffff" else 2


UNCOMPARABLE = frozenset({1267, 1270, 1271})
"""Numbers of MySQL's error: the given text has characters that the column's character set has not."""

_IN_NO_COLUMN = "\0 this text has characters that the column has not \0"

_ORDERED = re.compile(r"(?:[<>]=?|\bBETWEEN|\bAND)\s*%\((\w+)\)s", re.IGNORECASE)
"""Parameters by whose order rows may be looked for; AND is before the second one of BETWEEN only."""


def comparable_parameters(statement: str, parameters: Any, plane: int) -> dict[str, Any] | None:
    """The parameters without texts of this plane or beyond (`plane_of`): none of them is in the database.

    None where that cannot be said: of what is written, of a text by whose order rows are looked for, or if there
    is no such text.
    """
    if not isinstance(parameters, Mapping) or not statement.lstrip().upper().startswith(("SELECT", "DELETE")):
        return None
    changed = {name for name, value in parameters.items() if isinstance(value, str) and plane_of(value) >= plane}
    if not changed or not changed.isdisjoint(_ORDERED.findall(statement)):
        return None
    return {name: _IN_NO_COLUMN if name in changed else value for name, value in parameters.items()}
