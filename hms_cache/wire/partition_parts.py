"""How the encoding of one partition falls into parts that many partitions share and parts of its own.

A partition, as Thrift's binary protocol writes it (fields in the order of their ids):

    values header | VALUES | database, table | TIMES | descriptor up to its location | LOCATION | rest of the
    descriptor | PARAMETERS, catalog, write id, end

Parts in capitals differ from partition to partition; the others are encoded once for many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from thrift.protocol import fastbinary

from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, StorageDescriptor
from hms_cache.wire import long_structs
from hms_cache.wire.codec import ENCODING_FAULTS, decode_with
from hms_cache.wire.errors import UnencodableReply
from hms_cache.wire.long_structs import PART_SIZE


def _fields(struct: Any, *ids: int) -> list[Any]:
    return [struct, tuple(field for field in struct.thrift_spec if field is not None and field[0] in ids)]


_VALUES: Final = _fields(Partition, 1)
_OWNER: Final = _fields(Partition, 2, 3)
_BEGINNING: Final = _fields(Partition, *range(1, 6))
_PARAMETERS: Final = _fields(Partition, 7, 9, 10)
_COLUMNS: Final = _fields(StorageDescriptor, 1)
_REST: Final = _fields(StorageDescriptor, *range(3, 13))
_PARTITION: Final = [Partition, Partition.thrift_spec]

CREATE_TIME_HEADER: Final = b"\x08\x00\x04"
ACCESS_TIME_HEADER: Final = b"\x08\x00\x05"
DESCRIPTOR_HEADER: Final = b"\x0c\x00\x06"
LOCATION_HEADER: Final = b"\x0b\x00\x02"
PARAMETERS_HEADER: Final = b"\x0d\x00\x07"
VALUES_HEADER_BYTES: Final = 8


def values_header(count: int) -> bytes:
    """The first bytes of every partition with `count` values."""
    return b"\x0f\x00\x01\x0b" + count.to_bytes(4, "big")


def _encode(
    value: Any, fields: list[Any], encode: Callable[[Any, list[Any]], bytes] = fastbinary.encode_binary
) -> bytes:
    try:
        return encode(value, fields)
    except ENCODING_FAULTS as error:
        raise UnencodableReply(f"{type(value).__name__}: {error}") from error


def encode_partition(partition: Partition) -> bytes:
    """The encoded struct. Raises UnencodableReply."""
    return _encode(partition, _PARTITION)


def decode_partition(data: bytes) -> Partition:
    """A struct whose encoding is `data` again: fields that are not in it are None, regardless of defaults."""
    return decode_with(_PARTITION, Partition(writeId=None), data, compact=False)


def encode_values(partition: Partition) -> bytes:
    """The values without the list's header."""
    return _encode(partition, _VALUES)[VALUES_HEADER_BYTES:-1]


def encode_owner(partition: Partition) -> bytes:
    """Database and table, and the header of the creation time."""
    return _encode(partition, _OWNER)[:-1] + CREATE_TIME_HEADER


def encode_beginning(partition: Partition) -> bytes:
    """Everything before the descriptor."""
    return _encode(partition, _BEGINNING)[:-1]


def encode_parameters(partition: Partition) -> bytes:
    """Parameters, catalog, write id and the end of the struct. Raises UnencodableReply."""
    return _encode(partition, _PARAMETERS, _encode_parameters)


def _encode_parameters(partition: Partition, fields: list[Any]) -> bytes:
    """The parameters of most partitions have some hundred bytes, so that determining the exact size is not
    worthwhile."""
    parameters = partition.parameters
    if parameters and sum(map(len, parameters.values())) > PART_SIZE:
        return long_structs.encode(partition, fields, compact=False)
    encoded: bytes = fastbinary.encode_binary(partition, fields)
    return encoded


def bytes_after_parameters(partition: Partition) -> int:
    """Number of bytes after the parameters in the result of `encode_parameters`: catalog, write id and end."""
    catalog = 0 if partition.catName is None else 3 + 4 + len(partition.catName.encode())
    return catalog + (0 if partition.writeId is None else 3 + 8) + 1


def encode_descriptor(descriptor: StorageDescriptor) -> tuple[bytes, bytes]:
    """The bytes from the descriptor's header to the location's text, and the bytes after the location."""
    before = DESCRIPTOR_HEADER + _encode(descriptor, _COLUMNS)[:-1] + LOCATION_HEADER
    return before, _encode(descriptor, _REST)


def is_regular(partition: Partition, key_count: int) -> bool:
    """Whether the encoding has exactly the parts in the module's docstring."""
    return (
        partition.values is not None
        and len(partition.values) == key_count
        and partition.createTime is not None
        and partition.lastAccessTime is not None
        and partition.sd is not None
        and partition.sd.location is not None
        and partition.privileges is None
        and partition.isStatsCompliant is None
        and partition.colStats is None
        and partition.fileMetadata is None
    )
