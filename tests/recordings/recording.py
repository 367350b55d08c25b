"""Recorded calls as a file: connection, request and answer of each, packed.

Places and names of the machine are replaced by texts of the same length, so that the bytes stay messages. The answers
are those of Hive's metastore to the same calls sent one after the other: see `tests.recordings.record`.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tests.recordings.messages import Message, read_message

DIRECTORY = Path(__file__).parent / "data"
PLACE = b"/recorded/warehouse/root"
"""What stands in messages for the directory under which all files are."""
_HEAD = struct.Struct(">III")


@dataclass(frozen=True)
class RecordedCall:
    """One request on one of the client's connections; without a request, the end of that connection."""

    connection: int
    request: bytes
    reply: bytes
    """Empty for a one-way call."""

    @cached_property
    def message(self) -> Message:
        """The request's header."""
        return read_message(self.request)

    @property
    def method(self) -> str:
        """The method's name; empty for the end of a connection."""
        return self.message.method if self.request else ""

    def at(self, directory: str) -> RecordedCall:
        """The call for a warehouse below this directory, whose name has the length of `PLACE`."""
        place = directory.encode()
        assert len(place) == len(PLACE), f"{directory} does not have {len(PLACE)} characters"
        return replace(self, request=self.request.replace(PLACE, place), reply=self.reply.replace(PLACE, place))

    def without(self, directory: str, names: Sequence[str]) -> RecordedCall:
        """The call with `PLACE` instead of the directory, and letters instead of the names of the machine."""
        place = directory.encode()
        assert len(place) == len(PLACE)

        def scrubbed(data: bytes) -> bytes:
            data = data.replace(place, PLACE)
            for name in names:
                data = data.replace(name.encode(), b"h" * len(name.encode()))
            return data

        return replace(self, request=scrubbed(self.request), reply=scrubbed(self.reply))


def write_recording(path: Path, calls: Iterable[RecordedCall]) -> None:
    """Packs the calls."""
    packed = bytearray()
    for call in calls:
        packed += _HEAD.pack(call.connection, len(call.request), len(call.reply)) + call.request + call.reply
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(bytes(packed), preset=9 | lzma.PRESET_EXTREME))


def read_recording(path: Path) -> list[RecordedCall]:
    """The calls in the order in which they were answered, and the ends of connections."""
    data, place, calls = lzma.decompress(path.read_bytes()), 0, []
    while place < len(data):
        connection, request_bytes, reply_bytes = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        middle, end = place + request_bytes, place + request_bytes + reply_bytes
        calls.append(RecordedCall(connection, data[place:middle], data[middle:end]))
        place = end
    return calls
