"""Random, mutated and truncated bytes: a wire error or a message, never a crash, a hang or another exception."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.wire import METHODS, MessageReader, WireError
from hms_cache.wire.encodings import ENCODINGS, Encoding
from tests.wire.strategies import filled, request

MAX_PORTIONS = 300
"""In which a message comes: each of them is one more try to decode it from its beginning."""

HOSTILE = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
#: Calls whose arguments have many types.
NAMES = (
    "add_partitions_req",
    "alter_table_req",
    "commit_txn",
    "create_table",
    "fire_listener_event",
    "add_dynamic_partitions",
    "get_partitions_by_names",
    "get_table",
    "markPartitionForEvent",
    "update_partition_column_statistics_req",
)

encodings = st.sampled_from(ENCODINGS)


@functools.lru_cache(maxsize=4096)
def sample(encoding: Encoding, name: str, seed: int = 0) -> bytes:
    return request(encoding, name, filled(METHODS[name].args_class, random.Random(seed), 2))


def read(data: bytes, portion: int) -> int:
    """Reads to the end or to the first error. Returns the number of messages."""
    reader = MessageReader(max_message_bytes=1 << 20)
    count = 0
    try:
        for start in range(0, len(data), portion):
            reader.feed(data[start : start + portion])
            while reader.next_message() is not None:
                count += 1
            assert reader.buffered_bytes <= len(data)
        reader.end()
    except WireError as error:
        assert str(error)
    return count


@HOSTILE
@given(data=st.binary(max_size=400), portion=st.integers(1, 500))
def test_random_bytes(data: bytes, portion: int) -> None:
    read(data, portion)


@HOSTILE
@given(encoding=encodings, name=st.sampled_from(NAMES), rest=st.binary(max_size=200), portion=st.integers(1, 300))
def test_random_bytes_after_a_header(encoding: Encoding, name: str, rest: bytes, portion: int) -> None:
    whole = sample(encoding, name)
    head = whole[: len(whole) - len(encoding.encode(*_arguments(name)))]
    read(head + rest, portion)


def _arguments(name: str) -> tuple[object, list[object]]:
    arguments = filled(METHODS[name].args_class, random.Random(0), 2)
    return arguments, METHODS[name].args_table


@HOSTILE
@given(
    encoding=encodings,
    name=st.sampled_from(NAMES),
    changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=8),
    portion=st.integers(1, 4000),
)
def test_mutated_messages(encoding: Encoding, name: str, changes: list[tuple[int, int]], portion: int) -> None:
    data = bytearray(sample(encoding, name) + sample(encoding, "get_table"))
    for place, value in changes:
        data[place % len(data)] = value
    read(bytes(data), portion)


@HOSTILE
@given(encoding=encodings, name=st.sampled_from(NAMES), length=st.integers(1, 1 << 20), portion=st.integers(1, 4000))
def test_truncated_messages(encoding: Encoding, name: str, length: int, portion: int) -> None:
    data = sample(encoding, name)
    portion = max(portion, len(data) // MAX_PORTIONS)
    assert read(data[: length % len(data)], portion) == 0
    assert read(data, portion) == 1


@HOSTILE
@given(
    encoding=encodings,
    name=st.sampled_from(NAMES),
    start=st.integers(0, 1 << 20),
    removed=st.integers(0, 20),
    inserted=st.binary(max_size=20),
)
def test_bytes_cut_out_and_put_in(encoding: Encoding, name: str, start: int, removed: int, inserted: bytes) -> None:
    data = sample(encoding, name)
    place = start % len(data)
    read(data[:place] + inserted + data[place + removed :] + sample(encoding, "get_table"), 100)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("field", [b"\x0f\0\x63\x08", b"\x0f\0\x63\x0c", b"\x0e\0\x63\x0b", b"\x0d\0\x63\x02\x02"])
@pytest.mark.parametrize(
    ("size", "told"), [(0x7FFFFFFF, "its frame's or a message's"), (0xFFFFFFFF, "negative length")]
)
def test_a_size_that_is_said_is_not_the_limit_that_is_told(framed: bool, field: bytes, size: int, told: str) -> None:
    """For a container in a field that the method does not have. The decoder's own text contains its limit, which is the
    length of the frame: an operator would raise the setting."""
    message = b"\x80\x01\0\x01\0\0\0\x07getName\0\0\0\x01" + field + size.to_bytes(4, "big")
    reader = MessageReader(max_message_bytes=1 << 20)
    with pytest.raises(WireError) as raised:
        reader.feed(len(message).to_bytes(4, "big") + message if framed else message)
        reader.next_message()
    text = str(raised.value)
    assert told in text and not text[-1].isdigit()
