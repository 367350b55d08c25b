"""The bytes that a value in memory is charged with: its encoded length times a factor for Python's objects."""

from __future__ import annotations

from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.cache.partitions.partition_set import PartitionSet

PYTHON_FACTOR = 6
"""Bytes of Python objects for each encoded byte of a struct: 5 to 7 for tables and partitions with 10 to 100
columns."""

OVERHEAD_BYTES = 600
"""Entry, dictionary slots and key of one subject."""


def encoded_length(struct: Any) -> int:
    """Length of the struct in Thrift's binary protocol."""
    buffer = TMemoryBuffer()
    struct.write(TBinaryProtocolAccelerated(buffer, fallback=False))
    return len(buffer.getvalue())


def weight_of_table(encoded: bytes) -> int:
    """Bytes charged for a Table struct that is held together with its encoding."""
    return OVERHEAD_BYTES + (PYTHON_FACTOR + 1) * len(encoded)


def weight_of(value: Any) -> int:
    """Bytes charged for a struct, a text, or a list, tuple or dict of these. Partitions are weighed exactly."""
    if isinstance(value, PartitionSet):
        return OVERHEAD_BYTES + value.memory_bytes()
    if value is None or isinstance(value, bool | int | float):
        return 32
    if isinstance(value, str | bytes):
        return 60 + len(value)
    if isinstance(value, list | tuple | set | frozenset):
        return 60 + sum(8 + weight_of(element) for element in value)
    if isinstance(value, dict):
        return 100 + sum(16 + weight_of(key) + weight_of(element) for key, element in value.items())
    return OVERHEAD_BYTES + PYTHON_FACTOR * encoded_length(value)
