"""Numbers of the protocol's enumerations."""

from __future__ import annotations

from typing import Any


def known(enumeration: Any, number: int | None) -> int | None:
    """The number, if the enumeration has it; any other is none, as Java reads it (`findByValue`).

    Clients in Go write 0 for what they do not set, which is a number of hardly any enumeration.
    """
    return number if number in enumeration._VALUES_TO_NAMES else None
