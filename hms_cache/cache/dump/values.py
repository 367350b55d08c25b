"""Encodes values of facets as a JSON tree and byte strings, and decodes them.

Only plain values, structs of the protocol and their containers are supported, so a dump cannot name a class of another
module or run code. A struct is accepted only if encoding it again yields the same bytes.
"""

from __future__ import annotations

from typing import Any

from hms_cache.cache.statistics_by_column import CachedStatistics, StatisticsParts
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire.codec import decode_with, encode_struct
from hms_cache.wire.errors import MalformedMessage, UnencodableReply

MAX_DEPTH = 20
"""Maximum nesting of containers; kept statistics have five levels."""


UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
"""Errors that an invalid tree causes. A correct checksum does not rule them out: whoever can write the file can also
compute its checksums."""


class NotDumpable(Exception):
    """A dump cannot hold the value; its facet is loaded again when it is requested."""


class BadDump(Exception):
    """The contents of a dump are invalid."""


def encode_value(value: Any, blobs: list[bytes]) -> Any:
    """Returns the tree; appends bytes to `blobs`. Raises NotDumpable."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        blobs.append(value)
        return {"bytes": len(blobs) - 1}
    if isinstance(value, StatisticsParts):
        return {"statistics": [encode_value(one, blobs) for one in value.answers]}
    if isinstance(value, StatisticsOfColumn):
        return {"column": [encode_value(one, blobs) for one in value]}
    for name, kind in (("list", list), ("tuple", tuple), ("set", frozenset)):
        if type(value) is kind:
            return {name: [encode_value(one, blobs) for one in value]}
    if type(value) is dict:
        return {"dict": [[encode_value(key, blobs), encode_value(one, blobs)] for key, one in value.items()]}
    if getattr(ttypes, type(value).__name__, None) is type(value) and hasattr(value, "thrift_spec"):
        try:
            blobs.append(encode_struct(value))
        except UnencodableReply as error:
            raise NotDumpable(str(error)) from error
        return {"struct": type(value).__name__, "bytes": len(blobs) - 1}
    raise NotDumpable(f"a value of {type(value).__name__}")


def decode_value(tree: Any, blobs: list[bytes], depth: int = 0) -> Any:
    """Returns the value that `encode_value` encoded. Raises BadDump."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if depth > MAX_DEPTH or not isinstance(tree, dict):
        raise BadDump("a value has an unknown type")

    def inner(one: Any) -> Any:
        return decode_value(one, blobs, depth + 1)

    try:
        match tree:
            case {"struct": str(name), "bytes": int(number)}:
                return decode_known(name, blobs[number])
            case {"bytes": int(number)}:
                return blobs[number]
            case {"list": [*some]}:
                return [inner(one) for one in some]
            case {"tuple": [*some]}:
                return tuple(inner(one) for one in some)
            case {"set": [*some]}:
                return frozenset(inner(one) for one in some)
            case {"dict": [*some]}:
                return {inner(key): inner(one) for key, one in some}
            case {"column": [partition, statistics, last_analyzed_s]}:
                return StatisticsOfColumn(inner(partition), inner(statistics), inner(last_analyzed_s))
            case {"statistics": [*some]}:
                return CachedStatistics.from_parts(StatisticsParts(tuple(inner(one) for one in some)))
    except UNREADABLE as error:
        raise BadDump(f"a value cannot be read: {error}") from error
    raise BadDump("a value has an unknown type")


def decode_known(name: str, data: bytes) -> Any:
    """Returns the struct of the protocol whose encoding is exactly `data`. Raises BadDump."""
    kind = getattr(ttypes, name, None)
    spec = getattr(kind, "thrift_spec", None)
    if kind is None or spec is None:
        raise BadDump(f"the struct {name[:100]} is unknown")
    # Fields that are missing from the data are None, whatever their default.
    empty = kind(**{field[2]: None for field in spec if field is not None})
    try:
        struct = decode_with([kind, spec], empty, data, compact=False)
        same = encode_struct(struct) == data
    except (MalformedMessage, UnencodableReply) as error:
        raise BadDump(str(error)) from error
    if not same:
        raise BadDump(f"a {name} changes when it is encoded again")
    return struct
