"""Numbers of the protocol's enumerations."""

from __future__ import annotations

from typing import Any


def known(enumeration: Any, number: int | None) -> int | None:
    """The number if the enumeration has it, otherwise None, as in Java (`findByValue`).

    Clients in Go write 0 for unset fields, which is invalid in most enumerations.
    """
    return number if number in enumeration._VALUES_TO_NAMES else None
