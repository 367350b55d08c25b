"""Lists that know their encoding: what a read of many partitions or tables answers.

To most callers they are lists; the elements are made when one is looked at. The server asks for the encoding instead
and never makes them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex, TypeVar

from thrift.Thrift import TType

from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.wire.splicing import list_header

T = TypeVar("T")


class EncodedList(list[T]):
    """A list that is filled from an encoding when its elements are first looked at. Belongs to one thread.

    Built-in code that takes a `list` goes through the methods below, since this is a subclass of it; code that reads a
    list's memory directly is served by none of them, and none of it is used on answers.
    """

    def __init__(
        self,
        size: int,
        decode: Callable[[], list[T]],
        encode: Callable[[], list[bytes]],
        element_type: int = TType.STRUCT,
    ) -> None:
        """`decode` makes the elements; `encode` gives them as Thrift's binary protocol writes them, in pieces."""
        super().__init__()
        self._size = size
        self._decode = decode
        self._encode = encode
        self._element_type = element_type
        self.is_encoded = True
        """False once the elements have been made: from then on they count, and may be changed."""

    def binary_pieces(self) -> list[bytes]:
        """The list as a value of Thrift's binary protocol, in pieces. Only while `is_encoded`."""
        return [list_header(self._element_type, self._size, compact=False), *self._encode()]

    def _fill(self) -> None:
        if self.is_encoded:
            self.is_encoded = False
            super().extend(self._decode())

    def __len__(self) -> int:
        return self._size if self.is_encoded else super().__len__()

    def __iter__(self) -> Iterator[T]:
        self._fill()
        return super().__iter__()

    def __reversed__(self) -> Iterator[T]:
        self._fill()
        return super().__reversed__()

    def __getitem__(self, index: Any) -> Any:
        self._fill()
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._fill()
        super().__setitem__(index, value)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        self._fill()
        super().__delitem__(index)

    def __contains__(self, value: object) -> bool:
        self._fill()
        return super().__contains__(value)

    def __eq__(self, other: object) -> bool:
        self._fill()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __lt__(self, other: list[T]) -> bool:
        self._fill()
        return super().__lt__(other)

    def __le__(self, other: list[T]) -> bool:
        self._fill()
        return super().__le__(other)

    def __gt__(self, other: list[T]) -> bool:
        self._fill()
        return super().__gt__(other)

    def __ge__(self, other: list[T]) -> bool:
        self._fill()
        return super().__ge__(other)

    def __add__(self, other: Any) -> Any:
        self._fill()
        return super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __iadd__(self, other: Iterable[T]) -> Any:  # type: ignore[override, misc]
        self._fill()
        return super().__iadd__(other)

    def __mul__(self, times: SupportsIndex) -> list[T]:
        self._fill()
        return super().__mul__(times)

    __rmul__ = __mul__

    def __imul__(self, times: SupportsIndex) -> Any:
        self._fill()
        return super().__imul__(times)

    def __repr__(self) -> str:
        self._fill()
        return super().__repr__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (list(self),)

    def append(self, value: T) -> None:
        self._fill()
        super().append(value)

    def extend(self, values: Iterable[T]) -> None:
        self._fill()
        super().extend(values)

    def insert(self, index: SupportsIndex, value: T) -> None:
        self._fill()
        super().insert(index, value)

    def pop(self, index: SupportsIndex = -1) -> T:
        self._fill()
        return super().pop(index)

    def remove(self, value: T) -> None:
        self._fill()
        super().remove(value)

    def clear(self) -> None:
        self._fill()
        super().clear()

    def copy(self) -> list[T]:
        self._fill()
        return super().copy()

    def count(self, value: T) -> int:
        self._fill()
        return super().count(value)

    def index(self, value: T, *bounds: SupportsIndex) -> int:
        self._fill()
        return super().index(value, *bounds)

    def reverse(self) -> None:
        self._fill()
        super().reverse()

    def sort(self, *, key: Callable[[T], Any] | None = None, reverse: bool = False) -> None:
        self._fill()
        super().sort(key=key, reverse=reverse)


class EncodedTables(EncodedList[Table]):
    """Tables of the cache as a list."""

    def __init__(self, frozen: list[Table], encoded: list[bytes]) -> None:
        """`frozen`: the cache's own structs, which the list copies when it makes its elements."""
        super().__init__(len(frozen), lambda: [copy.copy(table) for table in frozen], lambda: encoded)
        self.frozen = frozen
        """To look at only, without making the elements; those count once the list is no more `is_encoded`."""
