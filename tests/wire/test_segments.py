"""How a message is split into segments does not change the memory that it takes."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from hms_cache.wire import MessageReader

PARTIAL_TEXT = (
    b"\x80\x01\x00\x01\x00\x00\x00\x09getOption\0\0\0\1\x0b\x00\x01" + struct.pack("!i", 1 << 20) + b"k" * 10_000
)


@pytest.mark.parametrize("segment_bytes", [1, 2, 7])
@pytest.mark.parametrize("decodes", [True, False], ids=["while it is decoded", "behind a call that runs"])
def test_short_segments_cost_little_beside_their_bytes(segment_bytes: int, decodes: bool) -> None:
    reader = MessageReader()
    data = PARTIAL_TEXT
    tracemalloc.start()
    try:
        for start in range(0, len(data), segment_bytes):
            reader.feed(data[start : start + segment_bytes])
            if decodes:
                assert reader.next_message() is None
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.used_bytes >= reader.buffered_bytes == len(data)
    assert taken_bytes < 4 * len(data) + 50_000
