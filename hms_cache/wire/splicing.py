"""Assembles answers from encoded pieces.

A struct's encoding does not depend on its place, so encoded tables and partitions become an answer by concatenation:
field header, list header, elements, closing zero bytes. Each function returns only the bytes around the pieces; write
them together with the pieces as one sequence of buffers.

Field headers in compact depend on the previous field: `previous_id` is its id, 0 for the first field.
"""

from __future__ import annotations

from typing import Final

from thrift.Thrift import TType

from hms_cache.wire.encodings import write_varint

#: Closes a struct, in both protocols.
STOP: Final = b"\x00"

_COMPACT_TYPES: Final = {
    TType.BOOL: 2,
    TType.BYTE: 3,
    TType.I16: 4,
    TType.I32: 5,
    TType.I64: 6,
    TType.DOUBLE: 7,
    TType.STRING: 8,
    TType.LIST: 9,
    TType.SET: 10,
    TType.MAP: 11,
    TType.STRUCT: 12,
}
_TRUE: Final = 1
#: Container sizes below this are part of the type byte.
_LONG_LIST: Final = 15


def _zigzag(value: int) -> bytes:
    return write_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def compact_type(field_type: int) -> int:
    """Compact's number of a type; for booleans, of elements and of fields with the value false."""
    return _COMPACT_TYPES[field_type]


def field_header(
    field_id: int, field_type: int, *, compact: bool, previous_id: int = 0, is_true: bool = False
) -> bytes:
    """The bytes before a field's value. `is_true`: for a boolean, whose value is part of the header in compact."""
    if not compact:
        return bytes((field_type,)) + field_id.to_bytes(2, "big", signed=True)
    delta = field_id - previous_id
    kind = _TRUE if is_true else _COMPACT_TYPES[field_type]
    if 0 < delta <= 15:
        return bytes((delta << 4 | kind,))
    return bytes((kind,)) + _zigzag(field_id)


def list_header(element_type: int, count: int, *, compact: bool) -> bytes:
    """The bytes before the elements of a list or set."""
    if not compact:
        return bytes((element_type,)) + count.to_bytes(4, "big")
    kind = _COMPACT_TYPES[element_type]
    if count < _LONG_LIST:
        return bytes((count << 4 | kind,))
    return bytes((0xF0 | kind,)) + write_varint(count)


def text_header(size_bytes: int, *, compact: bool) -> bytes:
    """The bytes before a text. Raises OverflowError for 2 GiB and more."""
    return write_varint(size_bytes) if compact else size_bytes.to_bytes(4, "big", signed=True)
