"""Lists that are already encoded: answers to reads of many partitions or tables, from memory or the database.

For most callers they are lists, whose elements are created when one is accessed. The server uses the encoding and never
creates them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, SupportsIndex, TypeVar

from thrift.Thrift import TType

from hms_cache.wire.splicing import list_header

T = TypeVar("T")


class EncodedList(list[T]):
    """A list that is decoded when its elements are first accessed. Belongs to one thread.

    Built-in functions that take a `list` use its methods, since this is a subclass; code that accesses a list's memory
    directly would not work, and is not used on answers.
    """

    def __init__(
        self,
        size: int,
        decode: Callable[[], list[T]],
        encode: Callable[[], list[bytes]],
        element_type: int = TType.STRUCT,
    ) -> None:
        """`decode` creates the elements; `encode` returns them in Thrift's binary protocol, in pieces."""
        super().__init__()
        self._size = size
        self._decode = decode
        self._encode = encode
        self._element_type = element_type
        self.is_encoded = True
        """False after the elements have been created: from then on they are the contents, and may be changed."""

    def binary_pieces(self) -> list[bytes]:
        """The list as a value of Thrift's binary protocol, in pieces. Only if `is_encoded`."""
        return [list_header(self._element_type, self._size, compact=False), *self._encode()]

    def _fill(self) -> None:
        if self.is_encoded:
            self.is_encoded = False
            super().extend(self._decode())

    def __len__(self) -> int:
        return self._size if self.is_encoded else super().__len__()

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (list(self),)


def _after_filling(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `list` that first decodes the elements."""

    @functools.wraps(method)
    def filled(self: EncodedList[Any], *arguments: Any, **options: Any) -> Any:
        self._fill()
        for one in arguments:
            if isinstance(one, EncodedList):
                one._fill()  # `list` accesses the other's memory
        return method(self, *arguments, **options)

    return filled


#: All methods of `list` that access or change elements, except those above.
_OF_ELEMENTS = (
    *("__iter__", "__reversed__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__repr__"),
    *("__eq__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__add__", "__iadd__", "__mul__", "__rmul__", "__imul__"),
    *("append", "extend", "insert", "pop", "remove", "clear", "copy", "count", "index", "reverse", "sort"),
)
for _name in _OF_ELEMENTS:
    setattr(EncodedList, _name, _after_filling(getattr(list, _name)))
