"""A sequence in slices: so many names or ids as one statement or call takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

_Values = TypeVar("_Values", bound=Sequence[Any])


def batches(values: _Values, size: int) -> Iterator[_Values]:
    """The values in slices of at most `size`, of the type that they have together."""
    for start in range(0, len(values), size):
        yield cast(_Values, values[start : start + size])
