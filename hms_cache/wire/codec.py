"""Encodes and decodes single structs with Thrift's C extension."""

from __future__ import annotations

from io import BytesIO
from time import perf_counter
from typing import Any, Final, TypeVar

from thrift.protocol import fastbinary
from thrift.protocol.TProtocol import TProtocolException

from hms_cache.wire.errors import (
    MalformedMessage,
    MessageTooDeep,
    MessageTooLarge,
    TruncatedMessage,
    UnencodableReply,
    WireError,
)

T = TypeVar("T")

#: `TProtocolException.type` if the C decoder refuses to go deeper.
_DEPTH_LIMIT: Final = 6
#: Exceptions of the C extension for values that do not fit their field.
ENCODING_FAULTS: Final = (TypeError, ValueError, OverflowError, AttributeError, TProtocolException)


class BufferExhausted(Exception):
    """The decoder needs more bytes than its buffer has. Never raised out of this package."""


class FixedBuffer:
    """The transport of the C decoder for bytes that are complete.

    The decoder reads `cstringio_buf` directly (a BytesIO shares the memory of the bytes from which it was made) and
    calls `cstringio_refill` for more. That call fails, and is recorded here, because the decoder replaces the exception
    in some places.

    Bytes that are `set` with a time limit are given to the decoder in windows; when the time is up, it also runs dry
    (`timed_out`).
    """

    __slots__ = (
        "_data",
        "_end",
        "_end_s",
        "_next",
        "_window_began_s",
        "_window_bytes",
        "cstringio_buf",
        "ran_dry",
        "timed_out",
    )

    def __init__(self) -> None:
        self.cstringio_buf = BytesIO()
        self.ran_dry = False
        self.timed_out = False
        self._data = b""
        self._next = self._end = 0
        self._end_s = self._window_began_s = 0.0
        self._window_bytes = WINDOW_BYTES

    def set(self, data: bytes, start: int, end: int, limit_s: float | None) -> None:
        """Decodes from `start`, at most up to `end`, and with `limit_s` for about that time at most."""
        if limit_s is None:
            self._data, self._next, self._end = b"", end, end
            self.cstringio_buf = BytesIO(data[start:end])
        else:
            self._next = min(start + WINDOW_BYTES, end)
            self._window_bytes = WINDOW_BYTES
            self._data, self._end = data, end
            self._window_began_s = perf_counter()
            self._end_s = self._window_began_s + limit_s
            self.cstringio_buf = BytesIO(data[start : self._next])

    def stop(self) -> int:
        """The position at which the decoder stopped in the bytes from `set`. Releases them."""
        buffer = self.cstringio_buf
        self._data = b""
        return self._next - (len(buffer.getbuffer()) - buffer.tell())

    def cstringio_refill(self, partial: bytes, needed: int) -> BytesIO:
        now_s = perf_counter()
        if now_s - self._window_began_s < SHORT_WINDOW_S:
            self._window_bytes *= 2
        self._window_began_s = now_s
        following = min(self._next + max(self._window_bytes, needed - len(partial)), self._end)
        if len(partial) + following - self._next < needed or not self._data or now_s > self._end_s:
            self.timed_out = bool(self._data) and now_s > self._end_s
            self._data = b""
            self.ran_dry = True
            raise BufferExhausted
        data = self._data[self._next : following]
        self._next = following
        self.cstringio_buf = BytesIO(partial + data)
        return self.cstringio_buf


WINDOW_BYTES = 128
"""A struct of one byte takes up to a microsecond or two: the time is checked after this many bytes."""

SHORT_WINDOW_S = 0.00003
"""After a window that took less than this, the size of the next one is doubled: ordinary messages are decoded a hundred
times faster than structs of one byte."""


class DecoderState:
    """The attributes of a protocol object that the C decoder reads: the transport, and limits in bytes and elements.

    Each element of a container has at least one byte, so a limit in bytes also limits elements.
    """

    __slots__ = ("container_length_limit", "string_length_limit", "trans")

    def __init__(self, transport: Any, limit: int) -> None:
        self.trans = transport
        self.string_length_limit = limit
        self.container_length_limit = limit


def is_too_deep(error: BaseException) -> bool:
    """Whether the C decoder failed because of the nesting."""
    return getattr(error, "type", None) == _DEPTH_LIMIT


def undecodable(error: Exception) -> WireError:
    """The exception for an error of the C decoder in the arguments of a call."""
    if is_too_deep(error):
        return MessageTooDeep("the arguments are nested too deep")
    if "exceeded specified limit" in str(error):
        limit = str(error).rpartition(" ")[2]
        return MessageTooLarge(
            f"a value is said to be longer than the limit of {limit} bytes, which is its frame's or a message's"
            " (setting server.max_message_bytes)"
        )
    if "negative length" in str(error):  # the decoder's text continues with its limit, not with the length
        return MalformedMessage("the arguments cannot be decoded: negative length")
    return MalformedMessage(f"the arguments cannot be decoded: {error}")


def encode_struct(struct: Any, *, compact: bool = False) -> bytes:
    """The encoded struct: its fields and the closing zero byte, no header. Raises UnencodableReply."""
    encode = fastbinary.encode_compact if compact else fastbinary.encode_binary
    try:
        return encode(struct, [struct.__class__, struct.thrift_spec])  # type: ignore[no-any-return]
    except ENCODING_FAULTS as error:
        raise UnencodableReply(f"{type(struct).__name__}: {error}") from error


def decode_struct(struct_class: type[T], data: bytes, *, compact: bool = False, start: int = 0) -> T:
    """Decode one struct that begins at `start`. Bytes after it are ignored.

    Raises MalformedMessage, or its subclass TruncatedMessage if the struct is not complete.
    """
    instance = struct_class()
    spec = struct_class.thrift_spec  # type: ignore[attr-defined]
    return decode_with([struct_class, spec], instance, data, compact=compact, start=start)


def decode_with(typeargs: list[Any], instance: T, data: bytes, *, compact: bool, start: int = 0) -> T:
    """Like `decode_struct`, into `instance`, with the field table in `typeargs` instead of the class's own."""
    buffer = FixedBuffer()
    buffer.cstringio_buf = BytesIO(data)
    buffer.cstringio_buf.seek(start)
    decode = fastbinary.decode_compact if compact else fastbinary.decode_binary
    try:
        decode(instance, DecoderState(buffer, len(data)), typeargs)
    except Exception as error:
        name = typeargs[0].__name__
        if buffer.ran_dry:
            raise TruncatedMessage(f"{name}: the bytes end early") from None
        if is_too_deep(error):
            raise MessageTooDeep(f"{name}: nested too deep") from error
        raise MalformedMessage(f"{name}: {error}") from error
    return instance
