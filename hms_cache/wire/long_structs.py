"""Encodes structs of any length with Thrift's C encoder, in parts.

The C encoder takes some ten nanoseconds per byte, while no other thread runs: each read of a table with a parameter of
100 MB would block all clients for a second. So long values are split: Python encodes texts, by copying them; lists and
maps are encoded some elements at a time, and structs by fields. The bytes are the same.

For a short struct, determining its length takes longer than encoding it: `LongReplies` tells when it is worthwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from thrift.protocol import fastbinary
from thrift.Thrift import TType

from hms_cache.batches import batches
from hms_cache.wire.encodings import write_varint
from hms_cache.wire.splicing import STOP, compact_type, field_header, list_header, text_header

PART_SIZE: Final = 64 * 1024
"""Maximum size (by `_size`) passed to the C encoder at once, which takes a millisecond for it."""

_VALUE_SIZE: Final = 8
"""Size of a number, and of a struct, container or text in addition to its contents."""


LONG_REPLY_BYTES: Final = 1024 * 1024
"""The C encoder takes some ten milliseconds for this size."""

_WATCHED_REPLIES: Final = 1000
"""After a long reply of a method, the lengths of this many next replies are determined before encoding."""


class LongReplies:
    """Methods with long replies recently. Used by many threads, each of which writes one number at a time; a lost
    update does no harm."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}

    def expects(self, method: str) -> bool:
        """Whether the method's next reply may be long."""
        return method in self._left

    def note(self, method: str, size_bytes: int) -> None:
        """Records the size of a reply."""
        if size_bytes > LONG_REPLY_BYTES:
            self._left[method] = _WATCHED_REPLIES
        elif (left := self._left.get(method)) is not None:
            if left > 1:
                self._left[method] = left - 1
            else:
                self._left.pop(method, None)


def encode(value: Any, table: list[Any], *, compact: bool) -> bytes:
    """Like Thrift's `encode_binary` and `encode_compact`; `table`: the struct's class and its fields."""
    parts = encode_parts(value, table, compact=compact)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def encode_parts(value: Any, table: list[Any], *, compact: bool) -> list[bytes]:
    """Like `encode`, in pieces (one if it is short), since joining long pieces means copying them."""
    try:
        size = _size_of_struct(value, table[1])
    except (TypeError, AttributeError):
        size = 0  # a value does not fit its field: the encoder raises the error
    if size <= PART_SIZE:
        return [_encode_in_c(value, table, compact)]
    pieces: list[bytes] = []
    _Writer(compact, pieces).struct(value, table[1], size)
    return pieces


def _encode_in_c(value: Any, table: list[Any], compact: bool) -> bytes:
    encoded: bytes = fastbinary.encode_compact(value, table) if compact else fastbinary.encode_binary(value, table)
    return encoded


# The sizes of values are computed for all values of one type at a time, by functions in C, since the encoder takes a
# fraction of a microsecond per column.

_TEXT, _STRUCT, _LIST, _MAP, _OTHER = range(5)
_KINDS: Final = {TType.STRING: _TEXT, TType.STRUCT: _STRUCT, TType.LIST: _LIST, TType.SET: _LIST, TType.MAP: _MAP}
_GETTERS: dict[str, attrgetter[Any]] = {}
"""By the names of fields, of which the protocol has some thousand."""


def _size_of_struct(struct: Any, fields: Iterable[Any]) -> int:
    """Approximate size in bytes."""
    size = _VALUE_SIZE
    for field in fields:
        if field is None or not (value := getattr(struct, field[2])):
            continue
        kind = _KINDS.get(field[1], _OTHER)
        if kind == _TEXT:
            size += len(value)
        elif kind == _STRUCT:
            size += _size_of_struct(value, field[3][1])
        elif kind != _OTHER:
            size += _size_of_values(kind, field[3], (value,))
        size += _VALUE_SIZE
    return size


def _size_of_structs(structs: Sequence[Any], fields: Iterable[Any]) -> int:
    """Like `_size_of_struct`, for several structs."""
    if len(structs) == 1:
        return _size_of_struct(structs[0], fields)
    size = _VALUE_SIZE * len(structs)
    for field in fields:
        if field is None:
            continue
        kind = _KINDS.get(field[1], _OTHER)
        if kind == _OTHER:
            size += _VALUE_SIZE * len(structs)
            continue
        getter = _GETTERS.get(field[2])
        if getter is None:
            getter = _GETTERS[field[2]] = attrgetter(field[2])
        values = list(filter(None, map(getter, structs)))
        if values:
            size += _size_of_values(kind, field[3], values)
    return size


def _size_of_values(kind: int, of: Any, values: Sequence[Any]) -> int:
    size = _VALUE_SIZE * len(values)
    if kind == _TEXT:
        return size + sum(map(len, values))
    if kind == _STRUCT:
        return size + _size_of_structs(values, of[1])
    size += _size_of(of[0], of[1], values, chain.from_iterable(values))
    if kind == _MAP:
        size += _size_of(of[2], of[3], values, chain.from_iterable(one.values() for one in values))
    return size


def _size_of(type_: int, of: Any, containers: Sequence[Any], elements: Iterable[Any]) -> int:
    kind = _KINDS.get(type_, _OTHER)
    if kind == _OTHER:
        return _VALUE_SIZE * sum(map(len, containers))
    found = list(elements)
    return _size_of_values(kind, of, found) if found else 0


def _size(type_: int, of: Any, values: Sequence[Any]) -> int:
    """Approximate size in bytes of values of one type."""
    kind = _KINDS.get(type_, _OTHER)
    return _VALUE_SIZE * len(values) if kind == _OTHER else _size_of_values(kind, of, values)


class _Holder:
    """A struct with one field."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Writer:
    """Appends to `pieces`."""

    def __init__(self, compact: bool, pieces: list[bytes]) -> None:
        self._compact = compact
        self._pieces = pieces

    def struct(self, struct: Any, fields: Iterable[Any], size: int) -> None:
        """Writes the fields and the end of a struct. `size`: its own size."""
        pieces, compact = self._pieces, self._compact
        given = [field for field in fields if field is not None and getattr(struct, field[2]) is not None]
        previous_id = 0
        for number, type_, name, of, _ in given:
            value = getattr(struct, name)
            is_true = type_ == TType.BOOL and bool(value)
            pieces.append(field_header(number, type_, compact=compact, previous_id=previous_id, is_true=is_true))
            if type_ != TType.BOOL or not compact:
                self._value(type_, of, value, size if len(given) == 1 else _size(type_, of, (value,)))
            previous_id = number
        pieces.append(STOP)

    def _value(self, type_: int, of: Any, value: Any, size: int) -> None:
        if size <= PART_SIZE or type_ not in _KINDS:
            self._pieces.append(self._short(type_, of, value))
        elif type_ == TType.STRING:
            self._text(value)
        elif type_ == TType.STRUCT:
            self.struct(value, of[1], size)
        elif type_ == TType.MAP:
            self._pieces.append(_map_header(of, len(value), self._compact))
            self._entries(of, list(value.items()), size)
        else:
            self._pieces.append(list_header(of[0], len(value), compact=self._compact))
            self._elements(of, list(value), size)

    def _text(self, text: str | bytes) -> None:
        parts = [text] if isinstance(text, bytes) else [part.encode() for part in batches(text, PART_SIZE)]
        self._pieces.append(text_header(sum(map(len, parts)), compact=self._compact))
        self._pieces += parts

    def _elements(self, of: Any, elements: list[Any], size: int) -> None:
        """Writes the elements of a list or set, without its header."""
        if size <= PART_SIZE:
            header = list_header(of[0], len(elements), compact=self._compact)
            self._pieces.append(self._short(TType.LIST, of, elements, len(header)))
        elif len(elements) == 1:
            self._value(of[0], of[1], elements[0], size)
        else:
            for some in batches(elements, max(1, len(elements) * PART_SIZE // size)):
                self._elements(of, some, _size(of[0], of[1], some))

    def _entries(self, of: Any, entries: list[tuple[Any, Any]], size: int) -> None:
        """Writes the entries of a map, without its header."""
        if size <= PART_SIZE:
            header = _map_header(of, len(entries), self._compact)
            self._pieces.append(self._short(TType.MAP, of, dict(entries), len(header)))
        elif len(entries) == 1:
            for type_, inner, value in zip((of[0], of[2]), (of[1], of[3]), entries[0], strict=True):
                self._value(type_, inner, value, _size(type_, inner, (value,)))
        else:
            for some in batches(entries, max(1, len(entries) * PART_SIZE // size)):
                self._entries(of, some, _size(TType.MAP, of, (dict(some),)))

    def _short(self, type_: int, of: Any, value: Any, without: int = 0) -> bytes:
        """Encodes the value with the C encoder, as a field of a struct, and removes the field's header and `without`
        further bytes."""
        encoded = _encode_in_c(_Holder(value), [_Holder, (None, (1, type_, "value", of, None))], self._compact)
        return encoded[(1 if self._compact else 3) + without : -1]


def _map_header(of: Any, count: int, compact: bool) -> bytes:
    if not compact:
        return bytes((of[0], of[2])) + count.to_bytes(4, "big")
    if not count:
        return b"\x00"
    return write_varint(count) + bytes((compact_type(of[0]) << 4 | compact_type(of[2]),))
