"""Extracts whole messages from bytes: see MessageReader."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

from hms_cache.wire.codec import DecoderState, FixedBuffer, decode_with, undecodable
from hms_cache.wire.encodings import (
    BINARY,
    CALL,
    FRAMED_BINARY,
    ONEWAY,
    Encoding,
    Header,
    detect,
    read_header,
)
from hms_cache.wire.errors import (
    MalformedMessage,
    MessageTooLarge,
    TruncatedMessage,
    WireError,
)
from hms_cache.wire.methods import METHODS_BY_WIRE_NAME, MethodSpec
from hms_cache.wire.streaming import MessageStream

#: Hive's own limit (hive.metastore.server.max.message.size).
DEFAULT_MAX_MESSAGE_BYTES: Final = 100 * 1024 * 1024
#: 100 MiB of ordinary partitions create 5.5 million objects; 8 million take at most 1.1 GB.
DEFAULT_MAX_MESSAGE_OBJECTS: Final = 8_000_000
#: Messages up to this size that arrive in one piece are decoded in place; their bytes can serve as a key.
WHOLE_BYTES: Final = 64 * 1024

#: Size of an object created by the decoder, with its slot in a list: one with few fields has 136 bytes, a short text
#: 56.
OBJECT_BYTES: Final = 128
#: The objects of shorter messages are not counted: even empty structs take only half a megabyte.
_SMALL_BYTES: Final = 1024
#: A text of one letter takes 5 bytes in a message and 50 in memory.
_MEMORY_PER_BYTE: Final = 10

NO_LIMITS: Final[Mapping[str, int]] = MappingProxyType({})

_FRAME_LENGTH_BYTES: Final = 4
#: First bytes of an unframed call in strict binary: a connection's first request may be a known one.
_STRICT_CALL: Final = b"\x80\x01\x00\x01"


class _Skipped:
    """Replaces the arguments of an unknown method: it has no fields, so the decoder skips all of them."""

    thrift_spec = ()


_SKIPPED_TABLE: Final = [_Skipped, _Skipped.thrift_spec]


class Message:
    """One request.

    name: the method's name as sent.
    kind: CALL or ONEWAY, as sent.
    sequence_id: the client's number for this call, to be echoed in the reply.
    args: the decoded arguments struct, or None if there is no such method (or the message is only a header, in an
    error).
    method: the method's description, or None if there is no such method.
    encoding: how the connection is encoded, and so the reply.
    size_bytes: length of the whole message, frame length included.
    memory_bytes: about what it takes while it is decoded.
    """

    __slots__ = (
        "_raw",
        "_sequence_end",
        "_sequence_start",
        "args",
        "encoding",
        "kind",
        "memory_bytes",
        "method",
        "name",
        "sequence_id",
        "size_bytes",
    )

    def __init__(self, header: Header, method: MethodSpec | None, encoding: Encoding) -> None:
        self.name = method.name if method is not None else header.name.decode("utf-8", "replace")
        self.kind = header.kind
        self.sequence_id = header.sequence_id
        self.args: Any = None
        self.method = method
        self.encoding = encoding
        self.size_bytes = 0
        self.memory_bytes = 0
        self._raw: bytes | None = None
        self._sequence_start = 0
        self._sequence_end = 0

    @property
    def expects_reply(self) -> bool:
        """Whether a reply has to be sent: neither the method nor the message is one-way."""
        return self.kind != ONEWAY and (self.method is None or not self.method.oneway)

    @property
    def key_bytes(self) -> bytes | None:
        """The message without its sequence id: equal for equal requests on connections with the same encoding.

        None for a message of more than 64 KiB, whose bytes are not kept. See `MessageReader.peek`.
        """
        raw = self._raw
        if raw is None:
            return None
        return raw[: self._sequence_start] + raw[self._sequence_end :]

    def __repr__(self) -> str:
        return f"<Message {self.name} {self.sequence_id} {self.encoding.name} {self.size_bytes} bytes>"


class MessageReader:
    """Takes the bytes of one connection in any portions and returns its messages, in order.

      reader.feed(data)
      while (message := reader.next_message()) is not None:
          …

    The encoding is detected from the first bytes. Thrift's C decoder decodes arguments directly from the fed bytes.
    Limits: `max_message_bytes` for a message with its header, `max_message_objects` for the objects that it creates
    (see `streaming`), 64 levels of nesting (the decoder's own). The reader holds at most one message and the bytes fed
    with it.

    `limits`: maximum number of bytes for messages of some methods, by name, if less than `max_message_bytes`. They
    apply to messages longer than `WHOLE_BYTES`, before these have arrived completely.

    With `slice_s`, a call of `next_message` decodes for about that many seconds at most, and may return None although
    more can be decoded (`is_ready`): call it again after others have had their turn.

    Not thread-safe; the calls for one message must come from one thread. After a WireError every further call raises
    the same error.
    """

    __slots__ = (
        "_buffer",
        "_data",
        "_encoding",
        "_error",
        "_header",
        "_limits",
        "_max_bytes",
        "_max_objects",
        "_message",
        "_more",
        "_needed",
        "_position",
        "_raw",
        "_rereads",
        "_slice_s",
        "_state",
        "_stream",
    )

    def __init__(
        self,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        max_message_objects: int = DEFAULT_MAX_MESSAGE_OBJECTS,
        slice_s: float | None = None,
        limits: Mapping[str, int] = NO_LIMITS,
    ) -> None:
        self._limits = limits
        self._slice_s = slice_s
        self._max_bytes = max_message_bytes
        self._max_objects = max_message_objects
        self._encoding: Encoding | None = None
        self._data = b""
        self._position = 0
        self._more = bytearray()  # one buffer: a list of pieces would need a hundred bytes per byte of some clients
        self._needed = 0  # bytes of the message needed to continue
        self._buffer = FixedBuffer()
        self._state = DecoderState(self._buffer, max_message_bytes)
        self._stream: MessageStream | None = None
        self._rereads = False
        """Whether the stream decodes complete arguments for a second time."""

        self._message: Message | None = None
        self._header: Header | None = None
        self._raw: bytearray | None = None
        self._error: WireError | None = None

    @property
    def encoding(self) -> Encoding | None:
        """The encoding of the connection; None until it is detected."""
        return self._encoding

    @property
    def is_ready(self) -> bool:
        """Whether `next_message` returned None only because of its time limit: more can be decoded."""
        return self._stream is not None and self._stream.is_ready

    def limit_slice(self, slice_s: float) -> None:
        """Changes how long a call of `next_message` decodes, for a reader created with `slice_s`."""
        self._slice_s = slice_s
        if self._stream is not None:
            self._stream.slice_s = slice_s

    @property
    def buffered_bytes(self) -> int:
        """Number of fed bytes that belong to no returned message."""
        if self._stream is not None and self._header is not None:
            return self._header.arguments_start + self._stream.received_bytes
        reread_bytes = self._stream.received_bytes if self._stream is not None else 0
        return reread_bytes + len(self._data) - self._position + len(self._more)

    @property
    def used_bytes(self) -> int:
        """Memory used by these bytes and by the decoded part of a long message."""
        if self._stream is not None:
            read_first_bytes = self._message.memory_bytes if self._rereads and self._message is not None else 0
            return read_first_bytes + self.buffered_bytes + self._stream.decoded_objects * OBJECT_BYTES
        return len(self._data) + len(self._more)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Appends received bytes. `bytes` are kept, other types are copied."""
        if data.__class__ is not bytes:
            data = bytes(data)
        if self._stream is not None and not self._rereads:
            self._push(data)
        elif not self._data:
            self._data = data
        else:
            self._more += data

    def peek(self, data: bytes) -> tuple[bytes, bytes] | None:
        """The key and the sequence id of a possible whole request: (`Message.key_bytes`, 4 bytes).

        Used to answer a known request without decoding it, before its bytes are fed. The key of a whole request is
        never a prefix of another one, so a key known from `Message.key_bytes` proves that the request is complete:
        answer it (`ReplyTemplate.render`) and do not feed it, or feed it later (`put_back`). Otherwise `feed` it and
        continue with `next_message`.

        None if not possible: the connection is not in (framed or unframed) binary, earlier bytes have not been
        consumed, or this is the first message of a framed connection.
        """
        size = len(data)
        if self._data or self._stream is not None or not 16 <= size <= WHOLE_BYTES:
            return None
        encoding = self._encoding
        # One byte of the name's length is sufficient: no method has a name of 256 bytes, so such a key is never a known
        # one.
        if encoding is BINARY or (encoding is None and data[:4] == _STRICT_CALL):
            sequence_start = 8 + data[7]
        elif encoding is FRAMED_BINARY:
            sequence_start = 12 + data[11]
        else:
            return None
        sequence_end = sequence_start + 4
        if sequence_end > size:
            return None
        return data[:sequence_start] + data[sequence_end:], data[sequence_start:sequence_end]

    def put_back(self, data: bytes) -> None:
        """Feeds a request from `peek`, before everything that was fed since."""
        if self._data:
            self._more[:0] = self._data
        self._data = data

    def next_message(self) -> Message | None:
        """The next whole message; None if more bytes are needed. Raises WireError."""
        if self._error is not None:
            raise self._error
        try:
            if self._stream is not None:
                return self._read_again() if self._rereads else self._resume()
            return self._read()
        except WireError as error:
            if error.message is None:
                error.message = self._message
            self._error = error
            self.close()
            raise

    def fail(self, error: WireError) -> None:
        """Ends the connection's messages with an error of the caller, which `next_message` raises from now on."""
        if self._error is None:
            error.message = self._message
            self._error = error
        self.close()

    def end(self) -> None:
        """No more bytes will come. Raises TruncatedMessage if they ended inside a message."""
        waiting = self.buffered_bytes
        self.close()
        if waiting and self._error is None:
            self._error = TruncatedMessage(f"the connection ended within a message, after {waiting} bytes of it")
            raise self._error

    def close(self) -> None:
        """Releases everything that is buffered."""
        stream, self._stream = self._stream, None
        self._rereads = False
        if stream is not None:
            stream.close()
        self._data = b""
        self._position = 0
        self._more = bytearray()
        self._message = None
        self._raw = None

    def _read(self) -> Message | None:
        data = self._data
        if self._more:
            if len(data) - self._position + len(self._more) < self._needed:
                return None
            data = self._data = b"".join((data[self._position :], self._more))
            self._position = 0
            self._more = bytearray()
            self._needed = 0
        start = self._position
        if start >= len(data):
            return None
        encoding = self._encoding
        if encoding is None:
            encoding = self._encoding = detect(data, self._max_bytes)
            if encoding is None:
                self._needed = 5
                return None
        frame_end = None
        header_start = start
        if encoding.framed:
            header_start = start + _FRAME_LENGTH_BYTES
            if len(data) < header_start:
                self._needed = _FRAME_LENGTH_BYTES
                return None
            length = int.from_bytes(data[start:header_start], "big")
            if length > self._max_bytes:
                raise MessageTooLarge(f"a frame of {length} bytes is larger than {self._max_bytes} bytes")
            frame_end = header_start + length
            if len(data) < frame_end and length <= WHOLE_BYTES:
                self._needed = _FRAME_LENGTH_BYTES + length
                return None
        header = read_header(encoding, data, header_start)
        if isinstance(header, int):
            if frame_end is not None and header_start + header > frame_end:
                raise MalformedMessage("the message does not end within its frame")
            self._needed = header_start - start + header
            return None
        return self._decode(encoding, header, start, frame_end)

    def _decode(self, encoding: Encoding, header: Header, start: int, frame_end: int | None) -> Message | None:
        if header.kind not in (CALL, ONEWAY):
            raise MalformedMessage(f"a message of kind {header.kind} is no request")
        data = self._data
        arguments_start = header.arguments_start
        method = METHODS_BY_WIRE_NAME.get(header.name)
        message = self._message = Message(header, method, encoding)
        end = len(data) if frame_end is None else frame_end
        if arguments_start > end:
            raise MalformedMessage("the message does not end within its frame")
        if frame_end is not None and end - start > WHOLE_BYTES:
            return self._start_stream(header, start, frame_end)
        arguments, table = (method.args_class(), method.args_table) if method is not None else (None, _SKIPPED_TABLE)
        buffer = self._buffer
        in_windows = False
        if end - start <= _SMALL_BYTES or (self._slice_s is None and end - start <= WHOLE_BYTES):
            window_start = 0
            source = BytesIO(data)
            source.seek(arguments_start)
            buffer.cstringio_buf = source
        elif self._slice_s is None:  # there are probably many messages: a long one will run dry
            window_start = arguments_start
            source = BytesIO(data[arguments_start : start + WHOLE_BYTES])
            buffer.cstringio_buf = source
        else:
            in_windows = True
            buffer.set(data, arguments_start, min(end, start + WHOLE_BYTES), self._slice_s)
        self._state.container_length_limit = self._max_bytes if frame_end is None else end - arguments_start
        containers = gc.get_count()[0] if end - start > _SMALL_BYTES else 0
        try:
            encoding.decode(arguments, self._state, table)
        except Exception as error:
            if buffer.ran_dry:
                buffer.ran_dry = False
                if frame_end is None or buffer.timed_out:
                    return self._start_stream(header, start, frame_end, later=buffer.timed_out)
                raise MalformedMessage("the message does not end within its frame") from None
            raise undecodable(error) from error
        stop = buffer.stop() if in_windows else window_start + source.tell()
        if end - start > _SMALL_BYTES:
            made = gc.get_count()[0]
            made -= containers if made >= containers else 0  # counted again: a garbage collection came in between
            message.memory_bytes = (stop - start) * _MEMORY_PER_BYTE + made * OBJECT_BYTES
        else:
            message.memory_bytes = (stop - start) * _MEMORY_PER_BYTE
        if stop != end:
            if frame_end is not None:
                raise MalformedMessage("the frame does not end with its message")
            self._position = stop
            raw = data[start:stop]
        else:
            self._position = end
            if end == len(data):
                self._data = b""
                self._position = 0
            raw = data if start == 0 and end == len(data) else data[start:end]
        if frame_end is None and len(raw) > self._max_bytes:
            raise MessageTooLarge(f"the message is larger than {self._max_bytes} bytes")
        return self._finish(message, arguments, header, start, raw)

    def _finish(self, message: Message, arguments: Any, header: Header, start: int, raw: bytes) -> Message:
        """Completes the message with its arguments and its bytes."""
        message._raw = raw
        message._sequence_start = header.sequence_start - start
        message._sequence_end = header.sequence_end - start
        message.size_bytes = len(raw)
        method = message.method
        if method is not None:
            rereading = method.reread
            if rereading is not None and rereading.is_wanted(arguments):
                data, table = raw[header.arguments_start - start :], rereading.table
                again = decode_with(table, table[0](), data, compact=message.encoding.compact)
                arguments = rereading.chosen(arguments, again)
            message.args = arguments
        self._message = None
        return message

    def _start_stream(self, header: Header, start: int, frame_end: int | None, later: bool = False) -> Message | None:
        """Continues with a decoder that waits for further bytes. `later`: the time limit of this call is reached."""
        message = self._message
        assert message is not None
        method = message.method
        used = header.arguments_start - start
        max_bytes = min(self._limits.get(message.name, self._max_bytes), self._max_bytes)
        if frame_end is not None and frame_end - start > max_bytes + _FRAME_LENGTH_BYTES:
            raise MessageTooLarge(f"a frame of {frame_end - start} bytes is too large for {message.name}: {max_bytes}")
        if frame_end is None:
            limit = max_bytes - used
            if limit <= 0:
                raise MessageTooLarge(f"the message is larger than {max_bytes} bytes")
        else:
            limit = frame_end - header.arguments_start
        table = method.args_table if method is not None else _SKIPPED_TABLE
        self._stream = MessageStream(message.encoding, table, limit, self._max_objects, self._slice_s)
        self._header = Header(
            header.kind,
            header.name,
            header.sequence_id,
            header.sequence_start - start,
            header.sequence_end - start,
            used,
        )
        data = self._data
        self._data = b""
        self._position = 0
        self._raw = bytearray(data[start : header.arguments_start])
        self._push(data[header.arguments_start :])
        if later:
            self._stream.is_ready = True
            return None
        return self._resume()

    def _push(self, data: bytes) -> None:
        """Feeds the stream, and keeps the bytes as long as they may be needed."""
        stream = self._stream
        assert stream is not None and self._message is not None
        stream.push(data)
        if self._raw is not None:
            method = self._message.method
            if stream.received_bytes > WHOLE_BYTES and (method is None or method.reread is None):
                self._raw = None
            else:
                self._raw += data

    def _resume(self) -> Message | None:
        stream, message, header = self._stream, self._message, self._header
        assert stream is not None and message is not None and header is not None
        arguments = stream.resume()
        if arguments is None:
            return None
        if message.encoding.framed and stream.decoded_bytes != stream.bytes_limit:
            raise MalformedMessage("the frame does not end with its message")
        size = header.arguments_start + stream.decoded_bytes
        raw, self._raw = self._raw, None
        message.memory_bytes = size + stream.decoded_objects * OBJECT_BYTES
        self._data = stream.rest()
        self._position = 0
        self._stream = None
        self._header = None
        rereading = message.method.reread if message.method is not None else None
        if raw is not None and (rereading is None or size <= WHOLE_BYTES):
            return self._finish(message, arguments, header, 0, bytes(raw[:size]))
        message.size_bytes = size
        message.args = arguments if message.method is not None else None
        if raw is not None and rereading is not None and rereading.is_wanted(arguments):
            return self._begin_again(message, rereading.table, memoryview(raw)[header.arguments_start : size])
        self._message = None
        return message

    def _begin_again(self, message: Message, table: list[Any], data: memoryview) -> Message | None:
        """Decodes the arguments for a second time, in slices as the first time."""
        stream = MessageStream(message.encoding, table, len(data), self._max_objects, self._slice_s)
        stream.push(data)
        self._stream = stream
        self._rereads = True
        if self._slice_s is None:
            return self._read_again()
        stream.is_ready = True
        return None

    def _read_again(self) -> Message | None:
        stream, message = self._stream, self._message
        assert stream is not None and message is not None and message.method is not None
        arguments = stream.resume()
        if arguments is None:
            return None
        assert message.method.reread is not None
        message.args = message.method.reread.chosen(message.args, arguments)
        message.memory_bytes += stream.decoded_objects * OBJECT_BYTES
        self._stream = self._message = None
        self._rereads = False
        return message
