"""The ways a connection can be encoded, and the message headers of each.

A client chooses two things and tells neither: whether messages are framed (a 4-byte length before each), and the
protocol (binary or compact). Both show in the first five bytes of a connection:

    80 01 ..            unframed, binary with a version ("strict", what all metastore clients send by default)
    82 ..               unframed, compact
    00 00 00 nn 80      framed, binary
    00 00 00 nn 82      framed, compact
    00 00 00 nn 00      framed, binary of the old style, whose first four bytes are the length of the method name
    00 00 00 nn letter  unframed, binary of the old style

Message header, binary: version and kind (4 bytes), name length (4), name, sequence id (4). Old style: name length,
name, kind (1 byte), sequence id. Compact: 82, version and kind (1 byte), sequence id and name length as
variable-length integers, name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from thrift.protocol import fastbinary

from hms_cache.wire.errors import MalformedMessage, UnsupportedProtocol

CALL: Final = 1
REPLY: Final = 2
EXCEPTION: Final = 3
ONEWAY: Final = 4

#: Maximum length of a method name. The longest of the metastore has 46 bytes.
MAX_NAME_BYTES: Final = 1024

_NAME_LENGTH: Final = Struct(">I")
_VERSION_AND_NAME_LENGTH: Final = Struct(">II")
_SEQUENCE_ID: Final = Struct(">i")
_STRICT_VERSION: Final = 0x80010000
_COMPACT_ID: Final = 0x82
_COMPACT_VERSION: Final = 1
#: First bytes of protocols that reach a metastore port by mistake, or that this port does not speak.
_STRANGERS: Final = (
    (b"GET ", "HTTP"),
    (b"POST", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"OPTI", "HTTP"),
    (b"\x16\x03", "TLS"),
    (b"SSH-", "SSH"),
)


class Encoding:
    """The encoding of a connection. There are only these six objects; compare them by identity.

    `decode(instance, protocol, typeargs)` and `encode(struct, typeargs)` are the functions of Thrift's C extension.
    """

    __slots__ = ("compact", "decode", "encode", "framed", "name", "strict")

    def __init__(self, name: str, *, framed: bool, compact: bool, strict: bool) -> None:
        self.name = name
        self.framed = framed
        self.compact = compact
        self.strict = strict
        self.decode: Callable[[Any, Any, Any], Any] = fastbinary.decode_compact if compact else fastbinary.decode_binary
        self.encode: Callable[[Any, Any], bytes] = fastbinary.encode_compact if compact else fastbinary.encode_binary

    def __repr__(self) -> str:
        return f"<Encoding {self.name}>"


BINARY: Final = Encoding("binary", framed=False, compact=False, strict=True)
BINARY_OLD: Final = Encoding("binary, old style", framed=False, compact=False, strict=False)
COMPACT: Final = Encoding("compact", framed=False, compact=True, strict=True)
FRAMED_BINARY: Final = Encoding("framed binary", framed=True, compact=False, strict=True)
FRAMED_BINARY_OLD: Final = Encoding("framed binary, old style", framed=True, compact=False, strict=False)
FRAMED_COMPACT: Final = Encoding("framed compact", framed=True, compact=True, strict=True)

ENCODINGS: Final = (BINARY, BINARY_OLD, COMPACT, FRAMED_BINARY, FRAMED_BINARY_OLD, FRAMED_COMPACT)

#: By the fifth byte of a framed connection, the first of its first message.
_FRAMED: Final = {0x80: FRAMED_BINARY, _COMPACT_ID: FRAMED_COMPACT, 0: FRAMED_BINARY_OLD}


def detect(opening: bytes, max_message_bytes: int) -> Encoding | None:
    """The encoding of a connection that begins with `opening`; None if more bytes are needed (at most 5).

    Raises UnsupportedProtocol.
    """
    if not opening:
        return None
    first = opening[0]
    if first == 0x80:
        return BINARY
    if first == _COMPACT_ID:
        return COMPACT
    for start, stranger in _STRANGERS:
        if opening.startswith(start):
            raise UnsupportedProtocol(f"the client speaks {stranger}, this port takes plain Thrift")
    if len(opening) < 5:
        return None
    (length,) = _NAME_LENGTH.unpack_from(opening)
    fifth = opening[4]
    if first == 1 and length == 1 << 24 and 0 < fifth < 0x20:
        raise UnsupportedProtocol("the client starts with SASL, this port takes plain Thrift")
    if 0 < length <= max_message_bytes:
        if fifth in _FRAMED:
            return _FRAMED[fifth]
        if length <= MAX_NAME_BYTES and 0x20 < fifth < 0x7F:
            return BINARY_OLD
    elif length > max_message_bytes and first < 0x80 and fifth in _FRAMED:
        return _FRAMED[fifth]  # the reader reports that the frame is too large
    raise UnsupportedProtocol(f"the connection starts with no Thrift message: {opening[:8].hex(' ')}")


@dataclass(slots=True, eq=False)
class Header:
    """A decoded message header. Positions are offsets in the buffer from which it was read."""

    kind: int
    name: bytes
    sequence_id: int
    sequence_start: int
    sequence_end: int
    arguments_start: int


def read_header(encoding: Encoding, data: bytes, start: int) -> Header | int:
    """Reads the message header at `start`; if it is incomplete, returns the number of bytes needed from `start` to try
    again.

    Raises MalformedMessage.
    """
    if encoding.compact:
        return _read_compact_header(data, start)
    if encoding.strict:
        return _read_strict_header(data, start)
    return _read_old_header(data, start)


def _read_strict_header(data: bytes, start: int) -> Header | int:
    available = len(data) - start
    if available < 8:
        return 8
    version, length = _VERSION_AND_NAME_LENGTH.unpack_from(data, start)
    kind = version & 0xFF
    if version & 0xFFFF0000 != _STRICT_VERSION or not 1 <= kind <= 4:
        raise MalformedMessage(f"bad version and kind of message: {version:08x}")
    if length > MAX_NAME_BYTES:
        raise MalformedMessage(f"method name of {length} bytes")
    if available < 12 + length:
        return 12 + int(length)
    sequence_start = start + 8 + length
    (sequence_id,) = _SEQUENCE_ID.unpack_from(data, sequence_start)
    end = sequence_start + 4
    return Header(kind, data[start + 8 : sequence_start], sequence_id, sequence_start, end, end)


def _read_old_header(data: bytes, start: int) -> Header | int:
    available = len(data) - start
    if available < 4:
        return 4
    (length,) = _NAME_LENGTH.unpack_from(data, start)
    if length > MAX_NAME_BYTES:
        raise MalformedMessage(f"method name of {length} bytes")
    if available < 9 + length:
        return 9 + int(length)
    name_end = start + 4 + length
    kind = data[name_end]
    if not 1 <= kind <= 4:
        raise MalformedMessage(f"bad kind of message: {kind}")
    (sequence_id,) = _SEQUENCE_ID.unpack_from(data, name_end + 1)
    end = name_end + 5
    return Header(kind, data[start + 4 : name_end], sequence_id, name_end + 1, end, end)


def _read_compact_header(data: bytes, start: int) -> Header | int:
    available = len(data) - start
    if available < 4:
        return 4
    if data[start] != _COMPACT_ID or data[start + 1] & 0x1F != _COMPACT_VERSION:
        raise MalformedMessage(f"bad version of message: {data[start]:02x}{data[start + 1]:02x}")
    kind = data[start + 1] >> 5
    if not 1 <= kind <= 4:
        raise MalformedMessage(f"bad kind of message: {kind}")
    sequence_start = start + 2
    sequence = read_varint(data, sequence_start)
    if sequence is None:
        return available + 1
    number, sequence_end = sequence
    size = read_varint(data, sequence_end)
    if size is None:
        return available + 1
    length, name_start = size
    if length > MAX_NAME_BYTES:
        raise MalformedMessage(f"method name of {length} bytes")
    name_end = name_start + length
    if name_end > len(data):
        return name_end - start
    sequence_id = number - 0x100000000 if number > 0x7FFFFFFF else number
    return Header(kind, data[name_start:name_end], sequence_id, sequence_start, sequence_end, name_end)


def read_varint(data: bytes, position: int) -> tuple[int, int] | None:
    """Decode an unsigned 32-bit variable-length integer: (value, position after it), or None if it is truncated.

    Raises MalformedMessage if it has more than 5 bytes.
    """
    value = 0
    for index in range(5):
        if position + index >= len(data):
            return None
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFFFFFF, position + index + 1
    raise MalformedMessage("a variable-length integer of more than 5 bytes")


def write_varint(value: int) -> bytes:
    """Encode a number as an unsigned 32-bit variable-length integer; a negative one in two's complement."""
    value &= 0xFFFFFFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def write_header(encoding: Encoding, kind: int, name: bytes, sequence_id: int) -> bytes:
    """A message header, without the frame length."""
    if encoding.compact:
        return b"".join(
            (
                bytes((_COMPACT_ID, _COMPACT_VERSION | kind << 5)),
                write_varint(sequence_id),
                write_varint(len(name)),
                name,
            )
        )
    if encoding.strict:
        start = _VERSION_AND_NAME_LENGTH.pack(_STRICT_VERSION | kind, len(name))
        return start + name + _SEQUENCE_ID.pack(sequence_id)
    return b"".join((_NAME_LENGTH.pack(len(name)), name, bytes((kind,)), _SEQUENCE_ID.pack(sequence_id)))
