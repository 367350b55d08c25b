"""Copies of structs, for writes that modify their input and may run again."""

from __future__ import annotations

import copy
from typing import Any, Final, TypeVar

T = TypeVar("T")

_UNCHANGEABLE: Final = frozenset((str, int, bool, float, bytes, type(None)))


def copied(value: T) -> T:
    """Like `copy.deepcopy`, for a generated struct and its fields, in a sixth of the time.

    If a value contains the same list or struct twice, the copy contains two equal ones.
    """
    return _copied(value)  # type: ignore[no-any-return]


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _UNCHANGEABLE:
        return value
    if kind is list:
        return [_copied(one) for one in value]
    if kind is dict:
        return {key: _copied(one) for key, one in value.items()}
    if not hasattr(kind, "thrift_spec"):
        return copy.deepcopy(value)
    return kind(**{name: _copied(getattr(value, name)) for name in kind.__slots__})
