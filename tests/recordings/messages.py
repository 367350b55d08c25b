"""The boundaries of Thrift messages in a stream of bytes, and the contents of their headers.

Only for tests, and independent of the server's own reader: a request is recorded even if the server cannot read it.
Binary messages of both styles, plain and in frames, are supported; the compact protocol is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
_STRICT = 0x80
_COMPACT = 0x82
_FIXED_BYTES = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_STRING, _STRUCT, _MAP, _SET, _LIST = 11, 12, 13, 14, 15
_LONGEST_NAME = 1024


class _Incomplete(Exception):
    """More bytes are needed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it was sent."""

    data: bytes
    """All its bytes, with the length of its frame if it has one."""
    method: str
    kind: int
    sequence_id: int


class Splitter:
    """The messages of one direction of a connection."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages that end in these bytes. Raises ValueError for anything but binary Thrift messages."""
        self._data += data
        while self._data:
            try:
                message = read_message(bytes(self._data))
            except _Incomplete:
                return
            del self._data[: len(message.data)]
            yield message


def read_message(data: bytes) -> Message:
    """The first message of the bytes."""
    start, end = (4, 4 + _number(data, 0)) if _is_framed(data) else (0, None)
    if end is not None and len(data) < end:
        raise _Incomplete
    place, method, kind, sequence_id = _header(data, start)
    place = _skip(data, place, _STRUCT)
    assert end is None or place == end, "a frame with more than one message"
    return Message(data[:place], method, kind, sequence_id)


def unframed(data: bytes) -> bytes:
    """The message without the length of its frame, if it has one."""
    return data[4:] if _is_framed(data) else data


def framed_like(other: bytes, data: bytes) -> bytes:
    """The message in a frame if the other one is in one."""
    return len(data).to_bytes(4, "big") + data if _is_framed(other) else data


def _is_framed(data: bytes) -> bool:
    """A plain message begins with a version, or with the length of its name and then the name."""
    if _byte(data, 0) in (_STRICT, _COMPACT):
        return False
    fifth = _byte(data, 4)
    return not (_number(data, 0) <= _LONGEST_NAME and 0x20 < fifth < 0x7F)


def _header(data: bytes, place: int) -> tuple[int, str, int, int]:
    """The position after it, method, kind, sequence id."""
    first = _byte(data, place)
    if first == _STRICT:
        kind = _byte(data, place + 3)
        end = place + 8 + _number(data, place + 4)
        name = data[place + 8 : end]
    elif first == 0:
        end = place + 4 + _number(data, place)
        name, kind, end = data[place + 4 : end], _byte(data, end), end + 1
    else:
        raise ValueError(f"no binary Thrift message: {data[:12].hex(' ')}")
    return end + 4, name.decode(), kind, _number(data, end)


def _skip(data: bytes, place: int, kind: int) -> int:
    """The position after a value."""
    if kind in _FIXED_BYTES:
        return _checked(data, place + _FIXED_BYTES[kind])
    if kind == _STRING:
        return _checked(data, place + 4 + _number(data, place))
    if kind == _STRUCT:
        while (field := _byte(data, place)) != 0:
            place = _skip(data, place + 3, field)
        return place + 1
    if kind in (_SET, _LIST):
        kinds, count, place = [_byte(data, place)], _number(data, place + 1), place + 5
    elif kind == _MAP:
        kinds, count, place = [_byte(data, place), _byte(data, place + 1)], _number(data, place + 2), place + 6
    else:
        raise ValueError(f"no type of Thrift: {kind}")
    for _ in range(count):
        for each in kinds:
            place = _skip(data, place, each)
    return place


def _checked(data: bytes, place: int) -> int:
    if place > len(data):
        raise _Incomplete
    return place


def _byte(data: bytes, place: int) -> int:
    if place >= len(data):
        raise _Incomplete
    return data[place]


def _number(data: bytes, place: int) -> int:
    if place + 4 > len(data):
        raise _Incomplete
    return int.from_bytes(data[place : place + 4], "big")
