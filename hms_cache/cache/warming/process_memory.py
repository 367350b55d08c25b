"""Memory of the process beyond what the cache is charged with: equal parts held once, freed pages given back."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Any, TypeVar

from thrift.protocol import fastbinary

from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, SerDeInfo, SkewedInfo, StorageDescriptor, Table
from hms_cache.wire.codec import ENCODING_FAULTS

MAX_SHARED_PARTS = 50_000
"""Different columns, and different serdes and the like, that are remembered to be shared: 12 MB where they are as short
as most; beyond it they begin anew."""

MAX_SHARED_BYTES = 8 * 1024 * 1024
"""Of their texts. What is remembered is not charged to anybody, and stays when its tables are gone; and a schema may
stand in the parameters of a serde, or a structure in the type of a column."""

LONGEST_SHARED = 16 * 1024
"""Of one of them: longer ones are as many as there are tables."""

SHORT_VALUE = 5
"""Characters up to which parameter values (`TRUE`, `0`, …) are worth sharing: longer ones seldom come twice."""

Part = TypeVar("Part", SerDeInfo, SkewedInfo | None)
Text = TypeVar("Text", str, str | None)


class SharedParts:
    """Parts of tables that are equal (columns, serde, skew, names) as one object: catalogs repeat theirs all the time.

    Thread-safe: two threads may make one part twice, which costs its memory and nothing else.
    """

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str, str | None], FieldSchema] = {}
        self._encoded: dict[bytes, Any] = {}
        self._bytes = 0
        """Of the texts of both, about."""
        self._no_columns: list[Any] = []
        self._no_parameters: dict[str, str] = {}

    def share(self, table: Table) -> None:
        """Replaces parts of a table that was just read, and nobody else holds, by equal ones known already."""
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
        """Equal in every byte that a client gets, the order of parameters included."""
        if part is None:
            return part
        try:
            key = type(part).__name__.encode() + fastbinary.encode_binary(part, [type(part), part.thrift_spec])
        except ENCODING_FAULTS:  # a text that cannot be encoded is the reader's fault to meet
            return part
        found: Part | None = self._encoded.get(key)
        if found is None:
            found = part
            if self._has_room_for(len(key)):
                self._encoded[key] = part
        return found

    def _has_room_for(self, length: int) -> bool:
        """Whether a part of this length is remembered; makes room for it."""
        if length > LONGEST_SHARED:
            return False
        if max(len(self._columns), len(self._encoded)) >= MAX_SHARED_PARTS or self._bytes > MAX_SHARED_BYTES:
            self._columns, self._encoded, self._bytes = {}, {}, 0
        self._bytes += length
        return True


def _interned(text: Text) -> Text:
    return sys.intern(text) if text is not None else text


def give_back_freed_memory() -> None:
    """Returns to the system what the allocator keeps of memory that is free again, where it can be told to (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
