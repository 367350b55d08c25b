"""Partition sets in memory that processes share."""

from __future__ import annotations

from hms_cache.cache.memory_files import MemoryFiles
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.shared_blocks import shared_block


def share(held: PartitionSet, files: MemoryFiles) -> int:
    """Puts all blocks of a set into shared memory. Returns how many."""
    count = 0
    for one in held.segments:
        made = shared_block(one.block, files)
        if made is not None:
            one.replace_block(one.block, made)
            count += 1
    return count
