"""Moves the partitions that a worker holds into memory that the workers of its server share.

Each worker reads, follows the log and decides what is true by itself. It only shares the memory of blocks that are
equal, byte by byte. So this does not affect coherence (P1, P3, P4, P7).
"""

from __future__ import annotations

from hms_cache.cache.entries import Facet
from hms_cache.cache.memory_files import MemoryFiles
from hms_cache.cache.partitions.block import PartitionBlock
from hms_cache.cache.partitions.segment import Segment
from hms_cache.cache.partitions.shared_blocks import is_shared, shared_block
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.process_memory import give_back_freed_memory
from hms_cache.metadata.object_names import TableName


class BlockSharing:
    """`step` is called repeatedly by a background task."""

    def __init__(self, cache: SharedCache, files: MemoryFiles) -> None:
        self._cache = cache
        self._files = files
        self._has_shared = False
        with cache.view():
            cache.unshared = set()

    def step(self) -> bool:
        """Shares the blocks of one table; False: there is none at the moment."""
        found = self._next_table()
        if found is None:
            if self._has_shared:
                self._has_shared = False
                give_back_freed_memory()
            return False
        for segment, block in found:
            made = shared_block(block, self._files)
            if made is not None:
                self._has_shared = True
                with self._cache.view():
                    segment.replace_block(block, made)
        return True

    def _next_table(self) -> list[tuple[Segment, PartitionBlock]] | None:
        """The segments of the next table that are in this process's own memory. Tables wait while no file is
        available."""
        if self._files.is_paused:
            return None
        with self._cache.view():
            if not self._cache.unshared:
                return None
            key = self._cache.unshared.pop()
            return [(one, one.block) for one in self._segments_of(key) if not is_shared(one.block)]

    def _segments_of(self, key: TableName) -> tuple[Segment, ...]:
        entry = self._cache.tables.get(key)
        cached = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
        return cached.segments if cached is not None else ()
