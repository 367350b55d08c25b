"""Sends what one process has read to several others. Partition sets are sent as memory files, which all of them map.

So data that is read once is in memory once, and no process has to unpickle it.
"""

from __future__ import annotations

import logging
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from hms_cache.cache.memory_files import MemoryFiles, NewFile
from hms_cache.cache.partitions.block import PartitionBlock
from hms_cache.cache.partitions.partition_set import PartitionSet, SetParts
from hms_cache.cache.partitions.shared_blocks import BlockOutline, is_worth_sharing, outline_in_new_file
from hms_cache.cache.warming.snapshot_reads import SnapshotRead
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

MAX_FILES: Final = 256
"""Maximum number of files in one answer; enough for 4 million partitions. Each is an open file of the reading process
until all others have received it, and a process may have 1,024 open files by default. Further blocks are sent as
copies."""


@frozen
class SentRead:
    """A `SnapshotRead` in transit: its sets are `SetParts` with blocks of `_SentBlock`. Can be pickled."""

    read: SnapshotRead
    names: tuple[str, ...]
    """Names of the files sent with it, in their order."""
    sizes: tuple[int, ...]


@frozen
class _SentBlock:
    outline: BlockOutline
    file: int
    """Index of its file."""


def sent_read(read: SnapshotRead, files: list[int]) -> SentRead:
    """Prepares a read to be sent. `files` gets the open files to send with it, which the caller must close."""
    made: list[NewFile] = []

    def send(block: PartitionBlock) -> Any:
        if len(made) >= MAX_FILES or not is_worth_sharing(block):
            return block
        try:
            outline, new = outline_in_new_file(block)
        except (OSError, ValueError) as error:
            _log.warning("partitions are sent without a file in memory: %s", error)
            return block
        made.append(new)
        files.append(new.file)
        return _SentBlock(outline, len(made) - 1)

    loaded = [
        replace(one, value=_with_blocks(one.value.parts(), send)) if isinstance(one.value, PartitionSet) else one
        for one in read.loaded
    ]
    return SentRead(replace(read, loaded=loaded), tuple(one.name for one in made), tuple(one.size for one in made))


def received_read(sent: SentRead, files: Sequence[int], memory: MemoryFiles | None) -> SnapshotRead:
    """The received read. Its blocks are in the files, as far as `memory` may hold them. Closes the files, or passes
    them on.

    Raises OSError or ValueError if a file cannot be mapped.
    """
    remaining = list(map(NewFile, files, sent.names, sent.sizes))

    def receive(block: Any) -> PartitionBlock:
        return _received(block, remaining, memory) if isinstance(block, _SentBlock) else block

    try:
        loaded = [
            replace(one, value=PartitionSet.from_parts(_with_blocks(one.value, receive)))
            if isinstance(one.value, SetParts)
            else one
            for one in sent.read.loaded
        ]
    finally:
        for new in remaining:
            if new.file >= 0:
                os.close(new.file)
    return replace(sent.read, loaded=loaded)


def _received(sent: _SentBlock, remaining: list[NewFile], memory: MemoryFiles | None) -> PartitionBlock:
    new = remaining[sent.file]
    if memory is not None and not memory.is_paused:
        remaining[sent.file] = replace(new, file=-1)  # in any case
        mapped = memory.adopt(new)
        if mapped is None:
            raise ValueError("a file in memory is not what was sent")
        return sent.outline.block_in(mapped)
    return sent.outline.own_block_from(mmap.mmap(new.file, new.size, access=mmap.ACCESS_COPY))


def _with_blocks(parts: SetParts, block_of: Callable[[Any], Any]) -> SetParts:
    return parts._replace(segments=tuple(one._replace(block=block_of(one.block)) for one in parts.segments))
