"""Each method, in each encoding, in any portions: what was sent is what is read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.wire import METHODS, Message, MessageReader, MethodSpec
from hms_cache.wire.encodings import CALL, ENCODINGS, ONEWAY, Encoding
from tests.wire.strategies import filled, request, structs
from tests.wire.whole_replies import encode_reply

SLOW = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

encodings = st.sampled_from(ENCODINGS)
methods = st.sampled_from(sorted(METHODS.values(), key=lambda method: method.name))


def portions(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def read_all(portions: list[bytes], reader: MessageReader | None = None) -> list[Message]:
    reader = reader or MessageReader()
    messages = []
    for portion in portions:
        reader.feed(portion)
        while (message := reader.next_message()) is not None:
            messages.append(message)
    assert reader.buffered_bytes == 0
    reader.end()
    return messages


def read_reply(encoding: Encoding, reply: bytes, result_class: Any) -> tuple[str, int, int, Any]:
    """Reads a reply with Thrift's Python protocols, which share no code with ours."""
    if encoding.framed:
        assert int.from_bytes(reply[:4], "big") == len(reply) - 4
        reply = reply[4:]
    transport = TMemoryBuffer(reply)
    protocol = TCompactProtocol(transport) if encoding.compact else TBinaryProtocol(transport)
    name, kind, sequence_id = protocol.readMessageBegin()
    result = result_class()
    result.read(protocol)
    assert transport._buffer.read() == b""
    return name, kind, sequence_id, result


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_method(method: MethodSpec, encoding: Encoding) -> None:
    source = random.Random(method.name)
    arguments = filled(method.args_class, source)
    data = request(encoding, method.name, arguments, kind=ONEWAY if method.oneway else CALL)
    [message] = read_all(portions(data, [source.randrange(len(data)) for _ in range(2)]))
    assert message.name == method.name
    assert message.method is method
    assert message.encoding is encoding
    assert message.args == arguments
    assert message.size_bytes == len(data)
    assert message.expects_reply is not method.oneway
    if method.oneway or method.name in ("get_open_txns", "create_ischema"):
        return  # these two write more than their class has; see test_versions
    for entry in method.result_class.thrift_spec:  # type: ignore[union-attr]
        if entry is None:
            continue
        result = method.result_class()  # type: ignore[misc]
        setattr(result, entry[2], getattr(filled(method.result_class, source, 2), entry[2]))
        reply = encode_reply(message, result)
        got = read_reply(encoding, reply, method.result_class)
        assert got == (method.name, TMessageType.REPLY, 7, result)


@SLOW
@given(encoding=encodings, method=methods.filter(lambda one: one.reread is None), data=st.data())
def test_random_arguments_in_random_portions(encoding: Encoding, method: MethodSpec, data: st.DataObject) -> None:
    arguments = data.draw(structs(method.args_class, 3))
    sequence_id = data.draw(st.integers(-(1 << 31), (1 << 31) - 1))
    sent = request(encoding, method.name, arguments, sequence_id)
    cuts = data.draw(st.lists(st.integers(0, 1 << 16), max_size=6))
    messages = read_all(portions(sent * 3, cuts))
    assert [message.args for message in messages] == [arguments] * 3
    assert {message.sequence_id for message in messages} == {sequence_id}
    assert {message.key_bytes for message in messages} == {messages[0].key_bytes}


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize(
    ("size", "count"), [(1, 150), (1000, 12_000), (65536, 12_000), (1 << 20, 60_000), (1 << 30, 12_000)]
)
def test_a_long_message_between_short_ones(encoding: Encoding, size: int, count: int) -> None:
    names = METHODS["get_partitions_by_names"].args_class(db_name="d", tbl_name="t", names=[])
    names.names = [f"ds=2024-01-01/hr={number}" for number in range(count)]
    short = METHODS["get_table"].args_class(dbname="d", tbl_name="t")
    data = b"".join(
        (
            request(encoding, "get_table", short, 1),
            request(encoding, "get_partitions_by_names", names, 2),
            request(encoding, "get_table", short, 3),
        )
    )
    messages = read_all([data[start : start + size] for start in range(0, len(data), size)])
    assert [message.args for message in messages] == [short, names, short]
    assert [message.sequence_id for message in messages] == [1, 2, 3]
    assert sum(message.size_bytes for message in messages) == len(data)
    assert messages[0].key_bytes == messages[2].key_bytes
    assert (messages[1].key_bytes is None) == (messages[1].size_bytes > 70_000)


def test_bytearrays_and_views_are_copied() -> None:
    encoding = ENCODINGS[0]
    data = bytearray(request(encoding, "get_table", METHODS["get_table"].args_class(dbname="d", tbl_name="t")))
    reader = MessageReader()
    reader.feed(memoryview(data)[:20])
    reader.feed(data[20:])
    data[:] = bytes(len(data))
    message = reader.next_message()
    assert message is not None
    assert message.args.dbname == "d"
