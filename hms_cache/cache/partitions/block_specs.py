"""Assembles partitions without their storage descriptors from blocks, as partition specs list them
(PartitionWithoutSD)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from hms_cache.cache.partitions.block import PIECES, PartitionBlock, Rows, row_count
from hms_cache.cache.partitions.block_records import RecordTemplate
from hms_cache.cache.partitions.segment_rows import SegmentRows
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, PartitionWithoutSD
from hms_cache.wire import decode_struct, encode_struct
from hms_cache.wire.encoded_lists import EncodedList
from hms_cache.wire.partition_parts import PARAMETERS_HEADER
from hms_cache.wire.splicing import STOP

_CREATE_TIME: Final = b"\x08\x00\x02"
_ACCESS_TIME: Final = b"\x08\x00\x03"
_RELATIVE_PATH: Final = b"\x0b\x00\x04"
_PARAMETERS: Final = b"\x0d\x00\x05"
_WIDTH: Final = 7
"""Pieces per element."""

_SINGLE: Final = 1 << 32
"""From this number on, a kind has only one row."""

_SEGMENT: Final = 1 << 33
"""Offset between the numbers of the kinds of consecutive segments."""


def without_descriptor(partition: Partition, root: str) -> PartitionWithoutSD:
    """The part of a partition that is not in a shared descriptor at `root`, with which its location (if any) begins."""
    location = partition.sd.location if partition.sd is not None else None
    return PartitionWithoutSD(
        values=partition.values,
        createTime=partition.createTime,
        lastAccessTime=partition.lastAccessTime,
        relativePath=location[len(root) :] if location is not None else None,
        parameters=partition.parameters,
        privileges=partition.privileges,
    )


def kinds_below(selected: SelectedPartitions, root: str) -> npt.NDArray[np.int64]:
    """A number per partition. Partitions with equal numbers have equal descriptors except their locations, all below
    `root`.

    Partitions for which this is unknown without reading each of them have a number of their own.
    """
    of_segments = [_kinds_of_rows(part, root) + at * _SEGMENT for at, part in enumerate(selected.parts)]
    return np.concatenate(of_segments) if of_segments else np.zeros(0, np.int64)


def _kinds_of_rows(selected: SegmentRows, root: str) -> npt.NDArray[np.int64]:
    rows = np.asarray(selected.indexes())
    size = len(selected.block)
    kinds = np.arange(len(rows)) + _SINGLE
    of_block = np.flatnonzero(rows < size)
    parts = selected.block.parts
    numbers = np.zeros(len(of_block), np.int64) if parts.kinds is None else parts.kinds[rows[of_block]].astype(np.int64)
    prefix = root.encode()
    shared = np.array([_is_below(template, prefix) for template in parts.templates], np.bool_)
    chosen = shared[numbers] if len(numbers) else np.zeros(0, np.bool_)
    kinds[of_block[chosen]] = numbers[chosen]
    return kinds


def _is_below(template: RecordTemplate, root: bytes) -> bool:
    return not template.is_whole and bool(root) and template.location_base.startswith(root)


def without_descriptors(selected: SelectedPartitions, root: str) -> EncodedList[PartitionWithoutSD]:
    """The partitions, all below `root`, without their descriptors, as a list that is already encoded."""

    def structs() -> list[PartitionWithoutSD]:
        return [without_descriptor(partition, root) for partition in selected.structs()]

    def encode() -> list[bytes]:
        return [piece for part in selected.parts for piece in _of_rows(part, root)]

    return EncodedList(len(selected), structs, encode)


def _of_rows(selected: SegmentRows, root: str) -> list[bytes]:
    def of_tail(row: int) -> list[bytes]:
        return [encode_struct(without_descriptor(selected.tail_struct(row), root))]

    return selected.spread(lambda rows: _of_block(selected.block, rows, root), _WIDTH, of_tail)


def _of_block(block: PartitionBlock, rows: Rows, root: str) -> list[bytes]:
    parts = block.parts
    kinds = [0] * row_count(rows) if parts.kinds is None else parts.kinds[rows].tolist()
    makers: dict[int, Callable[[list[bytes]], tuple[bytes, ...]]] = {}
    pieces = block.pieces(rows)
    elements: list[bytes] = []
    for at, kind in zip(range(0, len(pieces), PIECES), kinds, strict=True):
        template = parts.templates[kind]
        if template.is_whole:
            joined = b"".join((block.header, *pieces[at : at + PIECES]))
            partition = decode_struct(Partition, joined[: len(joined) - len(block.header)])
            elements += (encode_struct(without_descriptor(partition, root)), *(b"",) * (_WIDTH - 1))
            continue
        make = makers.get(kind)
        if make is None:
            make = makers[kind] = _maker(block, template, root.encode())
        elements += make(pieces[at : at + PIECES])
    return elements


def _maker(block: PartitionBlock, template: RecordTemplate, root: bytes) -> Callable[[list[bytes]], tuple[bytes, ...]]:
    """A function that converts the pieces of a partition of this kind to those without the descriptor."""
    header, base = block.header, template.location_base
    access_time = block.parts.access_time
    access = b"" if access_time is None else _ACCESS_TIME + access_time.to_bytes(4, "big", signed=True)
    prefix, suffix, after = template.prefix, template.suffix, template.after_parameters
    parameters_are_apart = prefix.startswith(PARAMETERS_HEADER) and len(suffix) >= after
    heads: dict[int, bytes] = {}

    def make(pieces: list[bytes]) -> tuple[bytes, ...]:
        values, _, times, _, own, _, parameters, _ = pieces
        if access_time is None:
            times = times[:4] + _ACCESS_TIME + times[7:]
        head = heads.get(len(own))
        if head is None:
            length = len(base) + len(own) - len(root)
            # If the base is shorter than the root, the rest of the root is in the partition's own part.
            head = heads[len(own)] = access + _RELATIVE_PATH + length.to_bytes(4, "big") + base[len(root) :]
        if len(base) < len(root):
            own = own[len(root) - len(base) :]
        if parameters_are_apart:
            start, end = _PARAMETERS + prefix[len(PARAMETERS_HEADER) :], suffix[: len(suffix) - after] + STOP
            return header + values, _CREATE_TIME + times, head, own, start, parameters, end
        whole = prefix + parameters + suffix
        kept = whole[: len(whole) - after]
        if kept:
            kept = _PARAMETERS + kept[len(PARAMETERS_HEADER) :]
        return header + values, _CREATE_TIME + times, head, own, kept, STOP, b""

    return make
