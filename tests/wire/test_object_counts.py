"""Objects of a message are counted rarely: a count scans all memory of the process."""

from __future__ import annotations

import random
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from thrift.Thrift import TType

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS, MessageReader, streaming
from hms_cache.wire.encodings import BINARY, ENCODINGS, Encoding
from hms_cache.wire.errors import MessageTooLarge
from hms_cache.wire.messages import OBJECT_BYTES
from tests.wire.strategies import request
from tests.wire.test_segments import PARTIAL_TEXT
from tests.wire.test_unfinished_messages import HEAD


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize(("names", "max_a_kilobyte"), [(200, 0.0), (60_000, 0.1)])
def test_counts_by_length(
    encoding: Encoding, names: int, max_a_kilobyte: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = 0

    def counted() -> int:
        nonlocal counts
        counts += 1
        return sys.getallocatedblocks()

    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    arguments = METHODS["get_partitions_by_names"].args_class(
        db_name="d", tbl_name="t", names=[f"ds=2024-01-01/hr={number}" for number in range(names)]
    )
    data = request(encoding, "get_partitions_by_names", arguments, 1)
    reader = MessageReader()
    reader.feed(data)
    message = reader.next_message()
    assert message is not None and message.args == arguments
    assert counts <= max_a_kilobyte * len(data) / 1024


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize("portion_bytes", [1, 10, 100])
def test_a_message_in_small_portions_is_counted_by_its_bytes_not_by_its_portions(
    encoding: Encoding, portion_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is decoded as if it had arrived completely."""
    counts = 0

    def counted() -> int:
        nonlocal counts
        counts += 1
        return sys.getallocatedblocks()

    arguments = METHODS["get_partitions_by_names"].args_class(
        db_name="d", tbl_name="t", names=[f"ds=2024-01-01/hr={number}" for number in range(4_000)]
    )
    data = request(encoding, "get_partitions_by_names", arguments, 1)
    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    monkeypatch.setattr(streaming, "_RANDOM", random.Random(7))
    reader = MessageReader()
    message = None
    for start in range(0, len(data), portion_bytes):
        assert message is None
        reader.feed(data[start : start + portion_bytes])
        message = reader.next_message()
    assert message is not None and message.args == arguments
    # Each sample is of 128 bytes, and they are 4 KiB apart. At both ends of a portion, it was once for each.
    portions_of_samples = len(data) / 4096 * (128 / portion_bytes + 2)
    assert counts <= 2 * 2 * portions_of_samples


def test_bytes_that_are_waited_for_do_not_wake_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a megabyte that arrives byte by byte is one missing value."""
    reader = MessageReader()
    reader.feed(PARTIAL_TEXT)
    assert reader.next_message() is None
    woken = 0
    begin = streaming.MessageStream._begin_count

    def counting(stream: streaming.MessageStream) -> None:
        nonlocal woken
        woken += 1
        begin(stream)

    monkeypatch.setattr(streaming.MessageStream, "_begin_count", counting)
    for _ in range(1_000):
        reader.feed(b"k")
        assert reader.next_message() is None
    assert woken == 0


@pytest.mark.parametrize("portion_bytes", [1, 3, 50])
def test_objects_without_content_are_found_in_small_portions(
    monkeypatch: pytest.MonkeyPatch, portion_bytes: int
) -> None:
    """Wherever they begin: no client knows where samples are."""
    # However long a count takes here, with everything else in this process.
    monkeypatch.setattr(streaming, "_TIMES_A_COUNT", 0)
    honest = b"\x0b\x00\x02\0\0\0\x08a struct\x00" * 500
    head = HEAD + b"\x0c" + (1 << 20).to_bytes(4, "big") + honest
    data = head + bytes(60_000)
    reader = MessageReader()
    fed = 0
    with pytest.raises(MessageTooLarge, match="objects without content in a row"):
        for start in range(0, len(data), portion_bytes):
            reader.feed(data[start : start + portion_bytes])
            fed = start + portion_bytes
            assert reader.next_message() is None
    assert fed - len(head) < 40_000


@pytest.mark.parametrize("portion_bytes", [300, 4_096, 1 << 30])
def test_an_ordinary_message_is_never_counted(portion_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a cache of gigabytes, a count takes milliseconds; a message of statistics was counted hundreds of
    times."""

    def counted() -> int:
        raise AssertionError("counted")

    monkeypatch.setattr(streaming, "thread_time", lambda: 0.0)
    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    arguments = METHODS["get_partitions_by_names"].args_class(
        db_name="d", tbl_name="t", names=[f"ds=2024-01-01/hr={number}" for number in range(20_000)]
    )
    data = request(BINARY, "get_partitions_by_names", arguments, 1)
    reader = MessageReader()
    message = None
    for start in range(0, len(data), portion_bytes):
        reader.feed(data[start : start + portion_bytes])
        message = reader.next_message()
    assert message is not None and message.args == arguments
    usual = message.memory_bytes - len(data)
    assert 0 < usual < len(data) // 10 * OBJECT_BYTES  # its objects are charged like those of most requests


def test_a_message_of_slow_bytes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a slow machine: what is counted matters, not the time."""
    now_s = 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += 1.0
        return now_s

    counts = 0

    def counted() -> int:
        nonlocal counts
        counts += 1
        return sys.getallocatedblocks()

    monkeypatch.setattr(streaming, "thread_time", clock)
    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    arguments = METHODS["get_partitions_by_names"].args_class(
        db_name="d", tbl_name="t", names=[f"ds=2024-01-01/hr={number}" for number in range(20_000)]
    )
    reader = MessageReader()
    reader.feed(request(BINARY, "get_partitions_by_names", arguments, 1))
    message = reader.next_message()
    assert message is not None and message.args == arguments
    assert counts > 10


UNCOUNTED_BYTES = streaming._UNCOUNTED_BYTES


class Holder:
    """A struct with a list of others."""

    thrift_spec: Any = ()


def _list_of(struct: Any, elements: int) -> tuple[list[Any], bytes]:
    """The table of a message whose only field is a list of these structs, and how it begins."""

    class OfThese(Holder):
        thrift_spec = (None, (1, TType.LIST, "all", (TType.STRUCT, [struct, struct.thrift_spec], False), None))

    head = bytes([TType.LIST, 0, 1, TType.STRUCT]) + elements.to_bytes(4, "big")
    return [OfThese, OfThese.thrift_spec], head


_EMPTY = b"\0"
_WITH_LIST = bytes([TType.LIST, 0, 99, TType.STRING]) + bytes(4) + b"\0"  # of an unknown field
_WITH_TEXT = bytes([TType.STRING, 0, 1]) + (3).to_bytes(4, "big") + b"abc" + b"\0"


@pytest.mark.parametrize("portion_bytes", [7, 80, 500, 4096, 1 << 30])
@pytest.mark.parametrize("content", [_EMPTY, _WITH_LIST, _WITH_TEXT], ids=["empty", "list", "text"])
@pytest.mark.parametrize("struct", [ttypes.FieldSchema, ttypes.Partition, ttypes.Table, ttypes.Date])
def test_what_structs_take_is_refused_or_charged_for(
    struct: Any, content: bytes, portion_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if counts are rare, since each takes long: beside a large cache."""

    def counted() -> int:
        end_s = time.thread_time() + 0.0005
        while time.thread_time() < end_s:
            pass
        return sys.getallocatedblocks()

    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    elements = 300_000 // len(content)
    table, head = _list_of(struct, elements)
    data = head + elements * content + b"\0"
    stream = streaming.MessageStream(BINARY, table, len(data), 1 << 30)
    # A struct, and what a text of three letters takes. The charge for an object is less than that of a table, and of
    # what was not counted yet it is for every second byte.
    size_bytes = sys.getsizeof(struct()) + (52 if content is _WITH_TEXT else 0)
    try:
        for start in range(0, len(data), portion_bytes):
            stream.push(data[start : start + portion_bytes])
            stream.resume()
            made_bytes = (start + portion_bytes - UNCOUNTED_BYTES) // len(content) * size_bytes
            if made_bytes > 4 << 20 and portion_bytes < len(data):
                assert stream.decoded_objects * OBJECT_BYTES >= made_bytes / 5
    except MessageTooLarge:
        return
    assert stream.decoded_objects * OBJECT_BYTES >= elements * size_bytes / 5
