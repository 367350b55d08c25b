"""Memory of the process beyond what the cache is charged with: equal parts held once, freed pages given back."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, StorageDescriptor, Table

MOST_SHARED_COLUMNS = 50_000
"""Different columns that are remembered to be shared: 12 MB; beyond it they begin anew."""


class SharedColumns:
    """Columns of tables that are equal (name, type, comment) as one struct: catalogs repeat theirs again and again.

    Thread-safe: two threads may make one column twice, which costs its memory and nothing else.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str | None], FieldSchema] = {}

    def share(self, table: Table) -> None:
        """Replaces the columns of a table that was just read, and nobody else holds, by equal ones known already."""
        table.partitionKeys = self._shared(table.partitionKeys)
        descriptor: StorageDescriptor | None = table.sd
        if descriptor is not None:
            descriptor.cols = self._shared(descriptor.cols)
            descriptor.inputFormat = _interned(descriptor.inputFormat)
            descriptor.outputFormat = _interned(descriptor.outputFormat)
            if descriptor.serdeInfo is not None:
                descriptor.serdeInfo.serializationLib = _interned(descriptor.serdeInfo.serializationLib)
        if table.parameters:
            table.parameters = {sys.intern(name): value for name, value in table.parameters.items()}

    def _shared(self, columns: list[FieldSchema] | None) -> list[FieldSchema] | None:
        if not columns:
            return columns
        if len(self._known) > MOST_SHARED_COLUMNS:
            self._known = {}
        known = self._known
        return [known.setdefault((one.name, one.type, one.comment), one) for one in columns]


def _interned(text: str | None) -> str | None:
    return sys.intern(text) if text is not None else None


def give_back_freed_memory() -> None:
    """Returns to the system what the allocator keeps of memory that is free again, where it can be told to (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
