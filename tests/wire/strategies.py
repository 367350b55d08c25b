"""Random and filled structs of any generated class, made from its `thrift_spec`; requests as clients write them."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from thrift.Thrift import TType

from hms_cache.wire.encodings import CALL, Encoding, write_header

_BITS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}
#: Table, creation metadata and source tables contain each other; below this depth optional fields stay unset.
_DEPTH = 6

_names = st.text(st.characters(codec="utf-8"), max_size=12)


def values(field_type: int, detail: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of one field type, in the form of a `thrift_spec`."""
    if field_type in _BITS:
        bits = _BITS[field_type]
        return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if field_type == TType.BOOL:
        return st.booleans()
    if field_type == TType.DOUBLE:
        return st.floats(allow_nan=False)
    if field_type == TType.STRING:
        return st.binary(max_size=12) if detail == "BINARY" else _names
    if field_type == TType.STRUCT:
        return structs(detail[0], depth + 1)
    if field_type == TType.MAP:
        return st.dictionaries(values(detail[0], detail[1], depth), values(detail[2], detail[3], depth), max_size=2)
    elements = values(detail[0], detail[1], depth)
    if field_type == TType.SET:
        return st.sets(elements, max_size=3)
    lists = st.lists(elements, max_size=3)
    return lists.map(tuple) if detail[2] else lists


def structs(struct_class: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Structs of a generated class with some of their fields set."""
    if depth > _DEPTH:
        return st.builds(struct_class)
    fields = {}
    for entry in struct_class.thrift_spec:
        if entry is not None:
            value = st.deferred(lambda entry=entry: values(entry[1], entry[3], depth))
            # A field with a default cannot be sent as unset.
            fields[entry[2]] = value if entry[4] is not None else st.none() | value
    return st.builds(struct_class, **fields)


def filled_value(field_type: int, detail: Any, source: random.Random, depth: int = 0) -> Any:
    """One value of a field type."""
    if field_type in _BITS:
        return source.randrange(1 << (_BITS[field_type] - 1))
    if field_type == TType.BOOL:
        return source.random() < 0.5
    if field_type == TType.DOUBLE:
        return source.random()
    if field_type == TType.STRING:
        text = f"näme{source.randrange(1000)}"
        return text.encode() if detail == "BINARY" else text
    if field_type == TType.STRUCT:
        return filled(detail[0], source, depth + 1)
    if field_type == TType.MAP:
        key = filled_value(detail[0], detail[1], source, depth)
        return {key: filled_value(detail[2], detail[3], source, depth)}
    elements = [filled_value(detail[0], detail[1], source, depth) for _ in range(2)]
    if field_type == TType.SET:
        return set(elements)
    return tuple(elements) if detail[2] else elements


def filled(struct_class: Any, source: random.Random, depth: int = 0) -> Any:
    """A struct with every field set, down to a depth."""
    if depth > _DEPTH:
        return struct_class()
    return struct_class(
        **{
            entry[2]: filled_value(entry[1], entry[3], source, depth)
            for entry in struct_class.thrift_spec
            if entry is not None
        }
    )


def framed(encoding: Encoding, message: bytes) -> bytes:
    """The message as sent over a connection of this encoding."""
    return len(message).to_bytes(4, "big") + message if encoding.framed else message


def request(encoding: Encoding, name: str, arguments: Any, sequence_id: int = 7, kind: int = CALL) -> bytes:
    """A request as a client of this encoding writes it."""
    body = encoding.encode(arguments, [type(arguments), arguments.thrift_spec])
    return framed(encoding, write_header(encoding, kind, name.encode(), sequence_id) + body)
