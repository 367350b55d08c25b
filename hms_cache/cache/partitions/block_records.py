"""How the encoding of one partition falls into parts that many share and parts of its own.

A partition, as Thrift's binary protocol writes it (fields in the order of their ids):

    values header | VALUES | database, table | TIMES | descriptor up to its location | LOCATION | rest of the
    descriptor | PARAMETERS, catalog, write id, end

Parts in capitals differ from partition to partition. All else is a `RecordTemplate`, which the partitions of a table
have in common but for a few kinds. So is the beginning of the locations, and what the encoded parameters begin and end
with: keys, equal values, catalog, write id.
"""

from __future__ import annotations

from typing import Any, Final

from thrift.protocol import fastbinary

from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, StorageDescriptor
from hms_cache.values import frozen
from hms_cache.wire.codec import ENCODING_FAULTS, decode_with
from hms_cache.wire.errors import UnencodableReply


def _fields(struct: Any, *ids: int) -> list[Any]:
    return [struct, tuple(field for field in struct.thrift_spec if field is not None and field[0] in ids)]


_VALUES: Final = _fields(Partition, 1)
_OWNER: Final = _fields(Partition, 2, 3)
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
    """What every partition with `count` values begins with."""
    return b"\x0f\x00\x01\x0b" + count.to_bytes(4, "big")


def _encode(value: Any, fields: list[Any]) -> bytes:
    try:
        return fastbinary.encode_binary(value, fields)  # type: ignore[no-any-return]
    except ENCODING_FAULTS as error:
        raise UnencodableReply(f"{type(value).__name__}: {error}") from error


def encode_partition(partition: Partition) -> bytes:
    """The whole struct. Raises UnencodableReply."""
    return _encode(partition, _PARTITION)


def decode_partition(data: bytes) -> Partition:
    """A struct whose encoding is `data` again: fields that are not there are None, defaults or not."""
    return decode_with(_PARTITION, Partition(writeId=None), data, compact=False)


def encode_values(partition: Partition) -> bytes:
    """The values without the list's header."""
    return _encode(partition, _VALUES)[VALUES_HEADER_BYTES:-1]


def encode_owner(partition: Partition) -> bytes:
    """Database and table, and the header of the creation time."""
    return _encode(partition, _OWNER)[:-1] + CREATE_TIME_HEADER


def encode_parameters(partition: Partition) -> bytes:
    """Parameters, catalog, write id and the end of the struct."""
    return _encode(partition, _PARAMETERS)


def bytes_after_parameters(partition: Partition) -> int:
    """How many bytes of `encode_parameters` are catalog, write id and end."""
    catalog = 0 if partition.catName is None else 3 + 4 + len(partition.catName.encode())
    return catalog + (0 if partition.writeId is None else 3 + 8) + 1


def encode_descriptor(descriptor: StorageDescriptor) -> tuple[bytes, bytes]:
    """The descriptor's header and what stands before the location's text, and what stands after it."""
    before = DESCRIPTOR_HEADER + _encode(descriptor, _COLUMNS)[:-1] + LOCATION_HEADER
    return before, _encode(descriptor, _REST)


def is_regular(partition: Partition, key_count: int) -> bool:
    """Whether the encoding has exactly the parts of the module's text."""
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


@frozen
class RecordTemplate:
    """What partitions of one kind have in common."""

    owner: bytes
    before_location: bytes
    location_base: bytes
    """What their locations begin with."""
    ends_with_name: bool
    """The rest of the location is the partition's name; else it is kept with the partition."""
    after_location: bytes
    parameter_names: tuple[str, ...] | None
    prefix: bytes
    """What `encode_parameters` of each begins with."""
    suffix: bytes
    """What it ends with."""
    after_parameters: int
    """Bytes of `encode_parameters` that are not parameters: catalog, write id, end."""
    is_whole: bool = False
    """Partitions of no kind: kept as encoded, without the header of the values."""

    def memory_bytes(self) -> int:
        """Bytes held, parts that are shared with other templates included."""
        parts = (self.owner, self.before_location, self.location_base, self.after_location, self.prefix, self.suffix)
        return 200 + sum(33 + len(part) for part in parts)


WHOLE: Final = RecordTemplate(b"", b"", b"", False, b"", None, b"", b"", 0, is_whole=True)
