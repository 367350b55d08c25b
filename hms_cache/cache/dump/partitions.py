"""Encodes partition sets as a tree and byte strings, and decodes them. A block consists of a few arrays, which are
written without conversion."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hms_cache.cache.dump.values import UNREADABLE, BadDump, decode_value, encode_value
from hms_cache.cache.partitions.block import BlockParts, PartitionBlock, hashes_of_names
from hms_cache.cache.partitions.block_records import RecordTemplate
from hms_cache.cache.partitions.partition_set import PartitionSet, SetParts
from hms_cache.cache.partitions.segment import SegmentParts
from hms_cache.cache.partitions.shared_blocks import own_bytes
from hms_cache.expressions import KeyColumns
from hms_cache.expressions.key_columns import KeyColumn, TextDictionary
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_ARRAYS: Final = ("starts", "value_bytes", "location_bytes", "kinds", "name_starts")
"""The arrays of a block. Its hashes are not written, because they differ between processes."""

_TYPES: Final = frozenset({"uint8", "uint16", "uint32", "uint64", "int64", "bool"})

_TEMPLATE_FIELDS: Final = tuple(field.name for field in fields(RecordTemplate))


def encode_set(parts: SetParts, blobs: list[bytes]) -> Any:
    """Returns the tree; appends bytes and arrays to `blobs`."""
    return {
        "keys": [list(key) for key in parts.keys],
        "segments": [_encode_segment(segment, blobs) for segment in parts.segments],
    }


def _encode_segment(parts: SegmentParts, blobs: list[bytes]) -> Any:
    block = parts.block.parts

    def added(array: npt.NDArray[Any] | None) -> Any:
        if array is None:
            return None
        blobs.append(np.ascontiguousarray(array).tobytes())
        return [str(array.dtype), len(array), len(blobs) - 1]

    return {
        "first": parts.first,
        "rows": len(parts.block),
        "complete": parts.complete,
        "missing": [list(values) for values in parts.missing],
        "changed": [
            [name, list(values), encode_value(encoded, blobs)] for name, (values, encoded) in parts.changed.items()
        ],
        "hidden": added(parts.hidden),
        "data": encode_value(own_bytes(block.data), blobs),
        "names": encode_value(own_bytes(block.names), blobs),
        "times": encode_value(own_bytes(block.times), blobs),
        "access_time": block.access_time,
        "templates": [
            [encode_value(getattr(template, name), blobs) for name in _TEMPLATE_FIELDS] for template in block.templates
        ],
        **{name: added(getattr(block, name)) for name in _ARRAYS},
        "columns": [
            [added(column.codes), encode_value(own_bytes(texts), blobs), added(offsets)]
            for column in parts.block.columns.columns
            for texts, offsets in [column.dictionary.parts]
        ],
    }


def decode_set(tree: Any, blobs: list[bytes]) -> PartitionSet:
    """Returns the set that was written. Raises BadDump."""
    try:
        return PartitionSet.from_parts(_decode(tree, blobs))
    except (*UNREADABLE, MetaException) as error:
        raise BadDump(f"partitions cannot be read: {error}") from error


def _decode(tree: Any, blobs: list[bytes]) -> SetParts:
    keys = tuple((str(name), str(kind)) for name, kind in tree["keys"])
    segments = tuple(_decode_segment(segment, keys, blobs) for segment in tree["segments"])
    firsts = [segment.first for segment in segments]
    if not firsts or firsts[0] or any(one >= other for one, other in pairwise(firsts)):
        raise BadDump("segments are not in order")
    return SetParts(keys, segments)


def _decode_segment(tree: Any, keys: tuple[tuple[str, str], ...], blobs: list[bytes]) -> SegmentParts:
    rows = int(tree["rows"])
    arrays = {name: _array(tree[name], blobs) for name in _ARRAYS}
    data, names, times = (_bytes(tree[name], blobs) for name in ("data", "names", "times"))
    templates = tuple(RecordTemplate(*(decode_value(one, blobs) for one in template)) for template in tree["templates"])
    starts, name_starts, value_bytes = arrays["starts"], arrays["name_starts"], arrays["value_bytes"]
    if starts is None or name_starts is None or value_bytes is None or not templates:
        raise BadDump("a block lacks arrays")
    _check_offsets(starts, rows, len(data))
    _check_offsets(name_starts, rows, len(names))
    for array in (value_bytes, arrays["location_bytes"], arrays["kinds"]):
        if array is not None and len(array) != rows:
            raise BadDump("the length of an array does not match its block")
    kinds = arrays["kinds"]
    if (kinds is None and len(templates) != 1) or (kinds is not None and rows and int(kinds.max()) >= len(templates)):
        raise BadDump("partitions have unknown templates")
    access_time = tree["access_time"]
    if len(times) != rows * (4 if access_time is not None else 11):
        raise BadDump("the times do not match the number of partitions")
    hashes, hash_rows = hashes_of_names(names, name_starts)
    parts = BlockParts(
        data=data,
        starts=starts,
        value_bytes=value_bytes,
        location_bytes=arrays["location_bytes"],
        kinds=kinds,
        templates=templates,
        times=times,
        access_time=access_time,
        names=names,
        name_starts=name_starts,
        hashes=hashes,
        hash_rows=hash_rows,
    )
    columns = [_column(column, blobs, rows) for column in tree["columns"]]
    if len(columns) != len(keys):
        raise BadDump("the columns do not match the partition keys")
    hidden = _array(tree["hidden"], blobs)
    if hidden is not None and (len(hidden) != rows or hidden.dtype != np.bool_):
        raise BadDump("the hidden rows do not match the block")
    return SegmentParts(
        str(tree["first"]),
        PartitionBlock(keys, KeyColumns(keys, columns, rows), parts),
        hidden.copy() if hidden is not None else None,
        {str(name): (tuple(values), _bytes(encoded, blobs)) for name, values, encoded in tree["changed"]},
        frozenset(tuple(values) for values in tree["missing"]),
        bool(tree["complete"]),
    )


def _column(tree: Any, blobs: list[bytes], rows: int) -> KeyColumn:
    codes, offsets = _array(tree[0], blobs), _array(tree[2], blobs)
    texts = _bytes(tree[1], blobs)
    if codes is None or offsets is None or len(codes) != rows or not len(offsets):
        raise BadDump("the length of a column does not match its block")
    _check_offsets(offsets, len(offsets) - 1, len(texts))
    if rows and int(codes.max()) >= len(offsets) - 1:
        raise BadDump("a column has unknown codes")
    return KeyColumn(codes, TextDictionary(texts, offsets))


def _check_offsets(offsets: npt.NDArray[Any], count: int, end: int) -> None:
    if len(offsets) != count + 1 or int(offsets[0]) != 0 or int(offsets[-1]) != end:
        raise BadDump("offsets do not match their data")
    if count and bool((offsets[1:] < offsets[:-1]).any()):
        raise BadDump("offsets are not in order")


def _array(tree: Any, blobs: list[bytes]) -> npt.NDArray[Any] | None:
    if tree is None:
        return None
    kind, length, number = tree
    if kind not in _TYPES:
        raise BadDump(f"an array has the unsupported type {str(kind)[:50]}")
    array: npt.NDArray[Any] = np.frombuffer(blobs[number], np.dtype(kind))
    if len(array) != length:
        raise BadDump("an array has a wrong length")
    return array


def _bytes(tree: Any, blobs: list[bytes]) -> bytes:
    found = decode_value(tree, blobs)
    if not isinstance(found, bytes):
        raise BadDump("bytes are missing")
    return found
