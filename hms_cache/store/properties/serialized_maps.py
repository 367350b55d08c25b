"""Property maps as Hive stores them in ``METASTORE_DB_PROPERTIES.PROPERTYCONTENT``: a serialized Java object.

The object is a `SerializationProxy` (Externalizable), whose data contains a `PropertyMap`: name and version of its
schema, then names and values in modified UTF-8. Facts: `PropertyMap.write`, `SerializationProxy.writeExternal` (Hive
4.0.1), the Java Object Serialization Specification.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from hms_cache.batches import batches

_PROXY_VERSION = 202212281757
_MAP_VERSION = 202212291759
_MAP_SLOT = 0
_SCHEMA_VERSION = 1

_CLASS = b"org.apache.hadoop.hive.metastore.properties.SerializationProxy"
_EXTERNALIZABLE_WITH_BLOCKS = 0x0C

#: Stream header, object, class description without fields and without a superclass.
_HEAD = (
    b"\xac\xed\x00\x05\x73\x72"
    + struct.pack(">H", len(_CLASS))
    + _CLASS
    + struct.pack(">qBH", _PROXY_VERSION, _EXTERNALIZABLE_WITH_BLOCKS, 0)
    + b"\x78\x70"
)
_SHORT_BLOCK, _LONG_BLOCK, _END = 0x77, 0x7A, 0x78
_BLOCK_BYTES = 1024

_LONGEST_TEXT_BYTES = 0xFFFF


def write_map(schema: str, properties: Mapping[str, str]) -> bytes:
    """The content of a map; its properties are sorted by name.

    :raises ValueError: a name or value has more than 65,535 bytes.
    """
    data = [
        struct.pack(">qBq", _PROXY_VERSION, _MAP_SLOT, _MAP_VERSION),
        _text(schema),
        struct.pack(">ii", _SCHEMA_VERSION, len(properties)),
    ]
    for name in sorted(properties):
        data += (_text(name), _text(properties[name]))
    return _HEAD + b"".join(_blocks(b"".join(data))) + bytes([_END])


def read_map(content: bytes) -> dict[str, str]:
    """Parses a content.

    :raises ValueError: it is not in Hive's format, or a value is not text.
    """
    try:
        data = _data_of(content)
        proxy_version, slot, map_version = struct.unpack_from(">qBq", data)
        if (proxy_version, slot, map_version) != (_PROXY_VERSION, _MAP_SLOT, _MAP_VERSION):
            raise ValueError("of another version")
        _, position = _read_text(data, 17)
        _, count = struct.unpack_from(">ii", data, position)
        position += 8
        properties: dict[str, str] = {}
        for _ in range(count):
            name, position = _read_text(data, position)
            properties[name], position = _read_text(data, position)
    except (struct.error, UnicodeError) as error:
        raise ValueError("cut short, or with values that are no text") from error
    if position != len(data):
        raise ValueError("with values that are no text")
    return properties


def _blocks(data: bytes) -> Iterator[bytes]:
    for block in batches(data, _BLOCK_BYTES):
        is_short = len(block) <= 0xFF
        yield struct.pack(">BB", _SHORT_BLOCK, len(block)) if is_short else struct.pack(">Bi", _LONG_BLOCK, len(block))
        yield block


def _data_of(content: bytes) -> bytes:
    if not content.startswith(_HEAD):
        raise ValueError("no property map")
    data, position = [], len(_HEAD)
    while content[position : position + 1] != bytes([_END]):
        kind = content[position] if position < len(content) else None
        if kind == _SHORT_BLOCK:
            size, position = struct.unpack_from(">B", content, position + 1)[0], position + 2
        elif kind == _LONG_BLOCK:
            size, position = struct.unpack_from(">I", content, position + 1)[0], position + 5
        else:
            raise ValueError("cut short")
        data.append(content[position : position + size])
        position += size
    return b"".join(data)


def _text(text: str) -> bytes:
    """`DataOutput.writeUTF`: UTF-16 units in one to three bytes each, NUL in two."""
    units = struct.unpack(
        f">{len(text.encode('utf-16-be', 'surrogatepass')) // 2}H", text.encode("utf-16-be", "surrogatepass")
    )
    encoded = b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)
    if len(encoded) > _LONGEST_TEXT_BYTES:
        raise ValueError(f"a text of {len(encoded)} bytes; at most {_LONGEST_TEXT_BYTES} can be kept")
    return struct.pack(">H", len(encoded)) + encoded


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">H", data, position)
    encoded = data[position + 2 : position + 2 + size]
    if len(encoded) != size:
        raise ValueError("cut short")
    units = encoded.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass"), position + 2 + size
