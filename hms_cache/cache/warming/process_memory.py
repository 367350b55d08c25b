"""Memory of the process in addition to what the cache is charged with: equal parts are held once, freed pages
returned."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Any, TypeVar

from thrift.protocol import fastbinary

from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_cache.wire.codec import ENCODING_FAULTS

MAX_SHARED_PARTS = 50_000
"""Number of different columns, and of different serdes and the like, that are remembered for sharing: 12 MB if they are
as short as most. Beyond it, remembering begins again."""

MAX_SHARED_BYTES = 8 * 1024 * 1024
"""Characters of all their texts. They are not charged to any entry, and stay when their tables are gone; and a schema
may be in the parameters of a serde, or a structure in the type of a column."""

LONGEST_SHARED = 16 * 1024
"""Characters of one of them: longer ones rarely occur twice."""

SHORT_VALUE = 5
"""Characters of parameter values (`TRUE`, `0`, …) that are worth sharing: longer ones rarely occur twice."""

Part = TypeVar("Part", SerDeInfo, SkewedInfo | None)
Text = TypeVar("Text", str, str | None)


class SharedParts:
    """Shares equal parts of tables (columns, serde, skew, names) as one object: catalogs repeat them often.

    Thread-safe: two threads may create a part twice, which only costs its memory.
    """

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str, str | None], FieldSchema] = {}
        self._encoded: dict[bytes, Any] = {}
        self._bytes = 0
        """Approximate characters of the texts of both."""
        self._no_columns: list[Any] = []
        self._no_parameters: dict[str, str] = {}

    def share(self, table: Table) -> None:
        """Replaces parts of a table that was just read, and that no other thread has, by equal ones known already."""
        table.partitionKeys = self._shared_columns(table.partitionKeys)
        table.dbName, table.catName = _interned(table.dbName), _interned(table.catName)
        table.owner, table.tableType = _interned(table.owner), _interned(table.tableType)
        descriptor: StorageDescriptor | None = table.sd
        if descriptor is not None:
            descriptor.cols = self._shared_columns(descriptor.cols)
            descriptor.inputFormat = _interned(descriptor.inputFormat)
            descriptor.outputFormat = _interned(descriptor.outputFormat)
            descriptor.serdeInfo = self._shared(descriptor.serdeInfo)
            descriptor.skewedInfo = self._shared(descriptor.skewedInfo)
            if descriptor.bucketCols == []:
                descriptor.bucketCols = self._no_columns
            if descriptor.sortCols == []:
                descriptor.sortCols = self._no_columns
            if descriptor.parameters == {}:
                descriptor.parameters = self._no_parameters
        if table.parameters:
            table.parameters = {
                sys.intern(name): value if value is None or len(value) > SHORT_VALUE else sys.intern(value)
                for name, value in table.parameters.items()
            }

    def _shared_columns(self, columns: list[FieldSchema]) -> list[FieldSchema]:
        return [self._shared_column(one) for one in columns] if columns else columns

    def _shared_column(self, column: FieldSchema) -> FieldSchema:
        key = column.name, column.type, column.comment
        found = self._columns.get(key)
        if found is None:
            found = column
            if self._has_room_for(sum(len(text) for text in key if text is not None)):
                self._columns[key] = column
        return found

    def _shared(self, part: Part) -> Part:
        """Equal in every byte that a client gets, including the order of parameters."""
        if part is None:
            return part
        try:
            key = type(part).__name__.encode() + fastbinary.encode_binary(part, [type(part), part.thrift_spec])
        except ENCODING_FAULTS:  # a text that cannot be encoded causes an error later, for its reader
            return part
        found: Part | None = self._encoded.get(key)
        if found is None:
            found = part
            if self._has_room_for(len(key)):
                self._encoded[key] = part
        return found

    def _has_room_for(self, length: int) -> bool:
        """Whether a part of this length is remembered. Makes room for it."""
        if length > LONGEST_SHARED:
            return False
        if max(len(self._columns), len(self._encoded)) >= MAX_SHARED_PARTS or self._bytes > MAX_SHARED_BYTES:
            self._columns, self._encoded, self._bytes = {}, {}, 0
        self._bytes += length
        return True


def _interned(text: Text) -> Text:
    return sys.intern(text) if text is not None else text


def give_back_freed_memory() -> None:
    """Returns freed memory that the allocator keeps to the system, if the allocator can do that (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
