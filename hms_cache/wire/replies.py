"""Encodes results and faults in the encoding of the request's connection.

A reply is [frame length,] header, payload. The payload, a result struct, depends only on the protocol (binary or
compact), so it can be kept and sent again: `encode_payload` once, then `encode_reply_from_payload`, or, for a request
that is answered without decoding, a `ReplyTemplate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from thrift.Thrift import TApplicationException, TType

from hms_cache.wire.codec import ENCODING_FAULTS
from hms_cache.wire.encodings import EXCEPTION, REPLY, Encoding, write_header
from hms_cache.wire.errors import UnencodableReply
from hms_cache.wire.long_structs import encode_parts
from hms_cache.wire.messages import Message
from hms_cache.wire.methods import MethodSpec

_T = TypeVar("_T")

_FAULT_TABLE: Final = [
    TApplicationException,
    (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None)),
]
#: A frame length is a signed 32-bit number.
_MAX_FRAME_BYTES: Final = 0x7FFFFFFF
_SEQUENCE_BYTES: Final = 4


def encode_payload(encoding: Encoding, method: MethodSpec, result: Any) -> bytes:
    """The encoded result struct. Raises UnencodableReply.

    Characters without a UTF-8 form (half a surrogate pair, which JSON in a request may contain) are replaced by
    question marks, as in Java.
    """
    return _encoded(lambda value: encoding.encode(value, method.result_table), method, result)


def encode_payload_parts(encoding: Encoding, method: MethodSpec, result: Any) -> list[bytes]:
    """Like `encode_payload`, in pieces, so that other threads can run meanwhile; takes two to three times as long.
    Raises UnencodableReply."""
    return _encoded(lambda value: encode_parts(value, method.result_table, compact=encoding.compact), method, result)


def _encoded(encode: Callable[[Any], _T], method: MethodSpec, result: Any) -> _T:
    try:
        try:
            return encode(result)
        except UnicodeEncodeError:
            return encode(_encodable(result))
    except ENCODING_FAULTS as error:
        raise UnencodableReply(f"result of {method.name}: {error}") from error


def encode_reply_from_payload(message: Message, payload: bytes) -> bytes:
    """The whole reply for an encoded result, for this connection."""
    return reply_header(message, len(payload)) + payload


def reply_header(message: Message, payload_bytes: int) -> bytes:
    """The bytes before a payload of this length, for payloads that are written in pieces.

    Raises UnencodableReply if the connection is framed and the frame would be too long (2 GiB).
    """
    return _with_frame_length(message, REPLY, payload_bytes)


def encode_exception(message: Message, fault: TApplicationException) -> bytes:
    """The whole reply for a fault that is not declared by the method: unknown method, internal error, …

    Characters in its text without a UTF-8 form (half a surrogate pair) are replaced.
    """
    safe = TApplicationException(fault.type, _encodable(fault.message))
    payload = message.encoding.encode(safe, _FAULT_TABLE)
    return _with_frame_length(message, EXCEPTION, len(payload)) + payload


def _encodable(value: Any) -> Any:
    """A deep copy whose texts have a UTF-8 form."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | set):
        return type(value)(map(_encodable, value))
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if not hasattr(value, "thrift_spec"):
        return value
    made = type(value)()
    for field in filter(None, value.thrift_spec):
        setattr(made, field[2], _encodable(getattr(value, field[2])))
    return made


def _with_frame_length(message: Message, kind: int, payload_bytes: int) -> bytes:
    encoding = message.encoding
    method = message.method
    name = method.wire_name if method is not None else message.name.encode("utf-8", "replace")
    header = write_header(encoding, kind, name, message.sequence_id)
    if not encoding.framed:
        return header
    length = len(header) + payload_bytes
    if length > _MAX_FRAME_BYTES:
        raise UnencodableReply(f"a reply of {length} bytes does not fit in a frame")
    return length.to_bytes(4, "big") + header


class ReplyTemplate:
    """A whole reply with a gap for the sequence id."""

    __slots__ = ("_after", "_before", "size_bytes")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after
        self.size_bytes = len(before) + _SEQUENCE_BYTES + len(after)

    def render(self, sequence: bytes) -> bytes:
        """The reply to the request with this sequence id, 4 bytes from `MessageReader.peek`."""
        return self._before + sequence + self._after

    def render_pieces(self, sequence: bytes) -> tuple[bytes, bytes]:
        """The reply in two pieces, the second of which is the payload itself, for payloads that are too large to
        copy."""
        return self._before + sequence, self._after


def reply_template(message: Message, payload: bytes) -> ReplyTemplate | None:
    """A template of the reply to this request, for all requests with its `key_bytes`.

    None if the sequence id has no fixed place or length, for which `MessageReader.peek` returns None as well.
    """
    encoding = message.encoding
    if encoding.compact or not encoding.strict:
        return None
    header = reply_header(message, len(payload))
    return ReplyTemplate(header[:-_SEQUENCE_BYTES], payload)
