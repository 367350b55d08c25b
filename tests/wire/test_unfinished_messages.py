"""The memory of an unfinished message is charged, whatever its contents: a client may leave it so for minutes."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from hms_cache.wire import MessageReader
from hms_cache.wire.errors import MessageTooLarge

NAME = b"add_partitions"
HEAD = b"\x80\x01\x00\x01" + len(NAME).to_bytes(4, "big") + NAME + b"\0\0\0\1\x0f\x00\x01"
#: An element of a list, by its type: the shortest of those that create objects.
ELEMENTS = {
    "structs without a field": (b"\x0c", b"\x00"),
    "structs with an empty map": (b"\x0c", b"\x0d\x00\x07\x0b\x0b\0\0\0\0\x00"),
    "structs with short texts": (b"\x0c", b"\x0b\x00\x02\0\0\0\2ab\x00"),
}
FREE_BYTES = 1_300_000
"""What any connection may hold beside what it is charged with: 4,096 of them stay within the memory of a server."""


@pytest.mark.parametrize(
    ("kilobytes", "portion_bytes"),
    [*((kilobytes, 1 << 20) for kilobytes in (2, 8, 12, 20, 40, 63, 100, 400)), (12, 2), (16, 2), (20, 2), (100, 100)],
)
@pytest.mark.parametrize("element", ELEMENTS)
def test_what_is_held_is_charged(element: str, kilobytes: int, portion_bytes: int) -> None:
    kind, one = ELEMENTS[element]
    body = one * (kilobytes * 1024 // len(one))
    data = HEAD + kind + (1 << 20).to_bytes(4, "big") + body
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        reader = MessageReader()
        try:
            for start in range(0, len(data), portion_bytes):
                reader.feed(data[start : start + portion_bytes])
                assert reader.next_message() is None
        except MessageTooLarge:
            return
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held <= 2 * reader.used_bytes + FREE_BYTES, (held, reader.used_bytes)
