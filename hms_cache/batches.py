"""Splits a sequence into slices, of the number of names or ids that one statement or call takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

_Values = TypeVar("_Values", bound=Sequence[Any])


def batches(values: _Values, size: int) -> Iterator[_Values]:
    """Yields the values in slices of at most `size`, each of the same type as `values`."""
    for start in range(0, len(values), size):
        yield cast(_Values, values[start : start + size])
