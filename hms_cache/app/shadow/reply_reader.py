"""Decodes replies from a stream of bytes, as `hms_cache.wire.messages` decodes requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from thrift.Thrift import TApplicationException, TType

from hms_cache.app.shadow.comparing import Answer, Rules, plain
from hms_cache.wire import EXCEPTION, REPLY, Encoding, MalformedMessage, MessageTooLarge, MethodSpec
from hms_cache.wire.encodings import Header, read_header
from hms_cache.wire.streaming import MessageStream

#: Maximum size of a frame or reply; Thrift cannot carry more.
MAX_REPLY_BYTES: Final = 0x7FFFFFFF
#: Maximum number of objects in a reply; as many as half a GiB of ordinary partitions has.
MAX_REPLY_OBJECTS: Final = 50_000_000

_FAULT_TABLE: Final = [
    TApplicationException,
    (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None)),
]


class _Anything:
    """The result of an unknown method: the decoder skips all its fields."""

    thrift_spec = ()


class ReplyReader:
    """Takes the bytes that a metastore sends, and returns its replies in order.

    A reply can only be decoded if its method is known. `method_of_next` returns the method of the call that the next
    reply answers.
    """

    def __init__(self, encoding: Encoding, method_of_next: Callable[[], MethodSpec | None], rules: Rules) -> None:
        self._encoding = encoding
        self._method_of_next = method_of_next
        self._rules = rules
        self._data = b""
        self._stream: MessageStream | None = None
        self._header: Header | None = None
        self._method: MethodSpec | None = None

    def feed(self, data: bytes) -> None:
        """Appends received bytes."""
        if self._stream is not None:
            self._stream.push(data)
        else:
            self._data += data

    def next_reply(self) -> Answer | None:
        """Returns the next complete reply; None if more bytes are needed. Raises WireError."""
        if self._stream is None and not self._begin():
            return None
        stream, header = self._stream, self._header
        assert stream is not None and header is not None
        result = stream.resume()
        if result is None:
            return None
        self._data = stream.rest()
        self._stream = None
        return answer_of(self._method, header.kind, result, self._rules)

    def close(self) -> None:
        """Frees the buffers."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._data = b""

    def _begin(self) -> bool:
        """Reads a header and prepares the decoder for what follows. Returns False if bytes are missing."""
        start, limit = 0, MAX_REPLY_BYTES
        if self._encoding.framed:
            if len(self._data) < 4:
                return False
            start, limit = 4, int.from_bytes(self._data[:4], "big")
            if limit > MAX_REPLY_BYTES:
                raise MessageTooLarge(f"a frame of {limit} bytes")
        if start >= len(self._data):
            return False
        header = read_header(self._encoding, self._data, start)
        if isinstance(header, int):
            return False
        if header.kind not in (REPLY, EXCEPTION):
            raise MalformedMessage(f"a message of type {header.kind} is not a reply")
        self._header = header
        self._method = self._method_of_next()
        rest = self._data[header.arguments_start :]
        limit -= header.arguments_start - start if self._encoding.framed else 0
        self._stream = MessageStream(self._encoding, self._table(header.kind), limit, MAX_REPLY_OBJECTS)
        self._stream.push(rest)
        self._data = b""
        return True

    def _table(self, kind: int) -> list[Any]:
        if kind == EXCEPTION:
            return _FAULT_TABLE
        method = self._method
        if method is None or method.result_class is None:
            return [_Anything, _Anything.thrift_spec]
        return [method.result_class, method.result_class.thrift_spec]


def answer_of(method: MethodSpec | None, kind: int, result: Any, rules: Rules) -> Answer:
    """Returns a decoded reply in plain values."""
    if kind == EXCEPTION:
        return Answer("fault", result.type, result.message or "")
    if method is None or method.result_class is None:
        return Answer("value", None)
    for attribute in set(method.exceptions.values()):
        raised = getattr(result, attribute, None)
        if raised is not None:
            return Answer("exception", type(raised).__name__, getattr(raised, "message", None) or "")
    return Answer("value", plain(result.success, rules) if method.has_value else None)
