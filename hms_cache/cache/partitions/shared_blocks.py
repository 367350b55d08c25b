"""Partition blocks whose bytes and arrays are in a file in memory that the workers of one server share.

Such a block behaves like the block that it was made of: `bytes` are arrays of `ctypes.c_char` over the mapping, whose
slices are `bytes`, and arrays are numpy's.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from hms_cache.cache.memory_files import MemoryFiles, NewFile, make_file, places_of
from hms_cache.cache.partitions.block import PartitionBlock
from hms_cache.expressions import KeyColumns
from hms_cache.values import frozen

SMALLEST_BYTES: Final = 64 * 1024
"""Smaller blocks are not shared: a file takes two open files and some pages, and there are many small tables."""


def is_shared(block: PartitionBlock) -> bool:
    """Whether it is in a file in memory."""
    return not isinstance(block.parts.data, bytes)


def shared_block(block: PartitionBlock, files: MemoryFiles) -> PartitionBlock | None:
    """The same block in a file in memory; None: it stays as it is, because it is small, is in a file already, or no
    file is available."""
    if not is_worth_sharing(block) or files.is_paused:
        return None
    outline, runs = _split_runs(block)
    mapped = files.hold(runs)
    return outline.block_in(mapped) if mapped is not None else None


def is_worth_sharing(block: PartitionBlock) -> bool:
    """Whether it is large enough, and is in this process's own memory."""
    return not is_shared(block) and block.memory_bytes() >= SMALLEST_BYTES


@frozen
class BlockOutline:
    """A block without its runs of bytes and its arrays, which are in a file. Can be pickled."""

    hollow: PartitionBlock
    """The block without its data."""
    places: tuple[tuple[int, int], ...]
    """The place of each in the file, and its number of bytes or elements."""

    def block_in(self, mapped: mmap.mmap) -> PartitionBlock:
        """The block, in that file."""
        places = iter(self.places)
        return _converted(
            self.hollow,
            lambda run: _bytes_at(mapped, *next(places)),
            lambda array: _array_at(mapped, *next(places), array.dtype),
        )

    def own_block_from(self, mapped: mmap.mmap) -> PartitionBlock:
        """The block, in this process's own memory."""
        return _converted(self.block_in(mapped), bytes, np.copy)


def outline_in_new_file(block: PartitionBlock) -> tuple[BlockOutline, NewFile]:
    """The block in a file that belongs to the caller. Raises OSError or ValueError if there is no memory."""
    outline, runs = _split_runs(block)
    return outline, make_file(runs)


def _split_runs(block: PartitionBlock) -> tuple[BlockOutline, list[memoryview]]:
    runs: list[memoryview] = []
    lengths: list[int] = []

    def take_bytes(run: bytes) -> bytes:
        runs.append(memoryview(run))
        lengths.append(len(run))
        return b""

    def take_array(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        runs.append(np.ascontiguousarray(array).view(np.uint8).data)
        lengths.append(len(array))
        return array[:0].copy()  # a view would keep the object that it refers to

    hollow = _converted(block, take_bytes, take_array)
    return BlockOutline(hollow, tuple(zip(places_of(runs)[0], lengths, strict=True))), runs


def own_bytes(run: bytes) -> bytes:
    """The bytes of a block, copied into own memory: where `bytes` are required, or where they outlive the block."""
    return run if isinstance(run, bytes) else bytes(run)


def _converted(
    block: PartitionBlock,
    of_bytes: Callable[[bytes], bytes],
    of_array: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
) -> PartitionBlock:
    """The block with its runs of bytes and its arrays converted, always in the same order."""
    parts = block.parts
    made = replace(
        parts,
        data=of_bytes(parts.data),
        names=of_bytes(parts.names),
        times=of_bytes(parts.times),
        starts=of_array(parts.starts),
        value_bytes=of_array(parts.value_bytes),
        location_bytes=None if parts.location_bytes is None else of_array(parts.location_bytes),
        kinds=None if parts.kinds is None else of_array(parts.kinds),
        name_starts=of_array(parts.name_starts),
        hashes=of_array(parts.hashes),
        hash_rows=of_array(parts.hash_rows),
    )
    columns = [column.converted(of_bytes, of_array) for column in block.columns.columns]
    return PartitionBlock(block.keys, KeyColumns(block.columns.keys, columns, len(block.columns)), made)


def _bytes_at(mapped: mmap.mmap, place: int, length: int) -> bytes:
    if not length:
        return b""
    # It is not `bytes`, but supports all that blocks use; its slices are `bytes`.
    return cast(bytes, (ctypes.c_char * length).from_buffer(mapped, place))


def _array_at(mapped: mmap.mmap, place: int, length: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = np.frombuffer(mapped, kind, length, place) if length else np.empty(0, kind)
    found.flags.writeable = False
    return found
