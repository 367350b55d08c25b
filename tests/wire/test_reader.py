"""How a connection is read: encodings, unknown methods, limits, and the state after an error."""

from __future__ import annotations

import pytest

from hms_cache.wire import (
    METHODS,
    MalformedMessage,
    MessageReader,
    MessageTooDeep,
    MessageTooLarge,
    TruncatedMessage,
    UnsupportedProtocol,
    WireError,
    encode_struct,
)
from hms_cache.wire.encodings import (
    BINARY,
    BINARY_OLD,
    COMPACT,
    ENCODINGS,
    FRAMED_BINARY,
    FRAMED_COMPACT,
    ONEWAY,
    REPLY,
    Encoding,
    write_header,
)
from tests.wire.strategies import framed, request

GET_TABLE = METHODS["get_table"]
ARGUMENTS = GET_TABLE.args_class(dbname="default", tbl_name="orders")

every_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)


def get_table(encoding: Encoding, sequence_id: int = 1) -> bytes:
    return request(encoding, "get_table", ARGUMENTS, sequence_id)


def failure(data: bytes, reader: MessageReader | None = None) -> WireError:
    reader = reader or MessageReader()
    reader.feed(data)
    with pytest.raises(WireError) as caught:
        while reader.next_message() is not None:
            pass
    with pytest.raises(type(caught.value)):
        reader.next_message()
    assert reader.buffered_bytes == 0
    return caught.value


@every_encoding
def test_byte_by_byte(encoding: Encoding) -> None:
    reader = MessageReader()
    data = get_table(encoding)
    for byte in data[:-1]:
        reader.feed(bytes([byte]))
        assert reader.next_message() is None
    assert reader.buffered_bytes <= len(data)
    reader.feed(data[-1:])
    message = reader.next_message()
    assert message is not None
    assert message.args == ARGUMENTS
    assert reader.encoding is encoding


@every_encoding
def test_an_unknown_method_is_skipped(encoding: Encoding) -> None:
    reader = MessageReader()
    reader.feed(request(encoding, "get_hms_api_version", ARGUMENTS, 5) + get_table(encoding, 6))
    message = reader.next_message()
    assert message is not None
    assert (message.name, message.args, message.method, message.sequence_id) == ("get_hms_api_version", None, None, 5)
    assert message.expects_reply
    following = reader.next_message()
    assert following is not None
    assert following.args == ARGUMENTS


def test_a_long_unknown_method_is_skipped() -> None:
    names = METHODS["get_partitions_by_names"].args_class(names=["x" * 100] * 3000)
    data = request(BINARY, "no_such_method", names) + get_table(BINARY)
    reader = MessageReader()
    seen = []
    for start in range(0, len(data), 10_000):
        reader.feed(data[start : start + 10_000])
        while (message := reader.next_message()) is not None:
            seen.append((message.name, message.args))
    assert seen == [("no_such_method", None), ("get_table", ARGUMENTS)]


def test_a_name_that_is_no_text() -> None:
    reader = MessageReader()
    reader.feed(write_header(BINARY, 1, b"\xff\xfe", 1) + b"\x00")
    message = reader.next_message()
    assert message is not None
    assert message.method is None


def test_a_oneway_message_expects_no_reply() -> None:
    reader = MessageReader()
    reader.feed(request(BINARY, "get_table", ARGUMENTS, kind=ONEWAY))
    message = reader.next_message()
    assert message is not None
    assert not message.expects_reply
    # Old clients send one-way methods as calls.
    reader.feed(request(BINARY, "shutdown", METHODS["shutdown"].args_class()))
    message = reader.next_message()
    assert message is not None
    assert not message.expects_reply


@pytest.mark.parametrize(
    ("opening", "named"),
    [
        (b"GET /metrics HTTP/1.1\r\n", "HTTP"),
        (b"POST /metastore HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"\x01\x00\x00\x00\x06GSSAPI", "SASL"),
        (b"\x01\x00\x00\x00\x05PLAIN", "SASL"),
        (b"SSH-2.0-OpenSSH_9.2", "SSH"),
        (b"\xff\xff\xff\xff\xff\xff", "ff ff ff"),
        (b"\x00\x00\x00\x00\x00\x00", "00 00 00"),
    ],
)
def test_other_protocols_are_named(opening: bytes, named: str) -> None:
    error = failure(opening)
    assert isinstance(error, UnsupportedProtocol)
    assert named in str(error)


def test_a_frame_of_exactly_16_mib_is_no_sasl() -> None:
    reader = MessageReader()
    reader.feed(b"\x01\x00\x00\x00" + get_table(BINARY)[:20])
    assert reader.next_message() is None
    assert reader.encoding is FRAMED_BINARY


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02\x00\x01\x00\x00\x00\x01",  # a version that does not exist
        b"\x80\x01\x00\x00\x00\x00\x00\x01",  # a kind that does not exist
        b"\x80\x01\x00\x01\x7f\xff\xff\xff",  # a name of 2 GiB
        b"\x80\x01\x00\x01\xff\xff\xff\xff",  # a name of negative length
        b"\x82\x25\x01\x01a\x00",  # a version that does not exist
        b"\x82\x01\x01\x01a\x00",  # a kind that does not exist
        b"\x82\x21\xff\xff\xff\xff\xff\xff\xff",  # an endless number
        b"\x82\x21\x01\xff\xff\xff\xff\x0f",  # a name of 4 GiB
        b"\x00\x00\x00\x01a\x07\x00\x00\x00\x00",  # a kind that does not exist
        b"\x00\x00\x00\x02\x80\x01\x00\x01",  # a frame without room for a header
        b"\x00\x00\x00\x10" + get_table(BINARY)[:20],  # a frame that ends within the header
    ],
)
def test_bad_headers(data: bytes) -> None:
    assert isinstance(failure(data), MalformedMessage)


@every_encoding
def test_replies_are_no_requests(encoding: Encoding) -> None:
    error = failure(request(encoding, "get_table", ARGUMENTS, kind=REPLY))
    assert "kind 2" in str(error)


@every_encoding
def test_arguments_of_the_wrong_type_name_the_message(encoding: Encoding) -> None:
    header = write_header(encoding, 1, b"get_partitions_by_names", 42)
    if encoding.compact:
        bad = b"\x39\x1c\x00\x00"  # field 3, a list with one struct instead of strings
    else:
        bad = b"\x0f\x00\x03\x0c\x00\x00\x00\x01\x00\x00"
    error = failure(framed(encoding, header + bad))
    assert isinstance(error, MalformedMessage)
    assert error.message is not None
    assert (error.message.name, error.message.sequence_id) == ("get_partitions_by_names", 42)


@pytest.mark.parametrize("encoding", [FRAMED_BINARY, FRAMED_COMPACT], ids=lambda encoding: encoding.name)
@pytest.mark.parametrize("large", [False, True])
def test_frames_and_messages_end_together(encoding: Encoding, large: bool) -> None:
    arguments = GET_TABLE.args_class(dbname="d" * (200_000 if large else 1))
    data = request(encoding, "get_table", arguments)[4:]
    longer = (len(data) + 1).to_bytes(4, "big") + data + b"\x00"
    shorter = (len(data) - 1).to_bytes(4, "big") + data
    assert "frame" in str(failure(longer))
    assert "frame" in str(failure(shorter))


@every_encoding
def test_the_size_limit(encoding: Encoding) -> None:
    data = request(encoding, "get_table", GET_TABLE.args_class(dbname="d" * 5000))
    size = len(data) - 4 * encoding.framed
    reader = MessageReader(max_message_bytes=size)
    reader.feed(data)
    assert reader.next_message() is not None
    assert isinstance(failure(data, MessageReader(max_message_bytes=size - 1)), MessageTooLarge)


@every_encoding
def test_the_size_limit_while_bytes_come(encoding: Encoding) -> None:
    data = request(
        encoding, "get_partitions_by_names", METHODS["get_partitions_by_names"].args_class(names=["x" * 20] * 50_000)
    )
    reader = MessageReader(max_message_bytes=500_000)
    fed = 0
    with pytest.raises(MessageTooLarge):
        for start in range(0, len(data), 4096):
            reader.feed(data[start : start + 4096])
            fed += 4096
            assert reader.next_message() is None
    assert fed <= 510_000


@pytest.mark.parametrize("encoding", [BINARY, BINARY_OLD, COMPACT], ids=lambda encoding: encoding.name)
def test_a_claimed_size_takes_no_memory(encoding: Encoding) -> None:
    header = write_header(encoding, 1, b"get_table", 1)
    claim = (
        b"\x18\xff\xff\xff\x2f" if encoding.compact else b"\x0b\x00\x01\x05\xff\xff\xff"
    )  # a string of almost 100 MiB
    reader = MessageReader()
    reader.feed(header + claim + b"abc")
    assert reader.next_message() is None
    assert reader.buffered_bytes < 100
    with pytest.raises(TruncatedMessage):
        reader.end()


@every_encoding
@pytest.mark.parametrize("claim", ["string", "list", "map"])
def test_absurd_sizes(encoding: Encoding, claim: str) -> None:
    name = {"string": b"get_table", "list": b"get_partitions_by_names", "map": b"partition_name_has_valid_characters"}[
        claim
    ]
    if claim == "map":
        name = b"markPartitionForEvent"  # its third argument is a map
    if encoding.compact:
        size = b"\xff\xff\xff\xff\x07"
        body = {"string": b"\x18" + size, "list": b"\x39\xf8" + size, "map": b"\x3b" + size + b"\x88"}[claim]
    else:
        size = b"\x7f\xff\xff\xff"
        body = {
            "string": b"\x0b\x00\x01" + size,
            "list": b"\x0f\x00\x03\x0b" + size,
            "map": b"\x0d\x00\x03\x0b\x0b" + size,
        }[claim]
    for text in (size, b"\xff\xff\xff\xff\x0f" if encoding.compact else b"\xff\xff\xff\xff"):
        message = write_header(encoding, 1, name, 1) + body.replace(size, text) + bytes(100)
        assert isinstance(failure(framed(encoding, message)), MalformedMessage | MessageTooLarge)


@pytest.mark.parametrize("encoding", [FRAMED_BINARY, FRAMED_COMPACT], ids=lambda encoding: encoding.name)
def test_a_frame_bounds_the_elements_of_its_lists(encoding: Encoding) -> None:
    count = b"\x90\x4e" if encoding.compact else b"\x00\x00\x27\x10"  # 10,000
    body = b"\x39\xf8" + count if encoding.compact else b"\x0f\x00\x03\x0b" + count
    message = write_header(encoding, 1, b"get_partitions_by_names", 1) + body + bytes(50)
    assert "limit" in str(failure(framed(encoding, message)))


@every_encoding
@pytest.mark.parametrize("depth", [100, 30_000, 3_000_000])
def test_nesting_bombs(encoding: Encoding, depth: int) -> None:
    bomb = (b"\x9c" if encoding.compact else b"\x0c\x00\x09") * depth  # field 9, which is unknown, within field 9, …
    error = failure(framed(encoding, write_header(encoding, 1, b"get_table", 1) + bomb))
    assert isinstance(error, MessageTooDeep)
    assert error.message is not None


@every_encoding
def test_nesting_bombs_of_lists(encoding: Encoding) -> None:
    start, level = (b"\x99", b"\x19") if encoding.compact else (b"\x0f\x00\x09", b"\x0f\x00\x00\x00\x01")
    error = failure(framed(encoding, write_header(encoding, 1, b"get_table", 1) + start + level * 100_000))
    assert isinstance(error, MessageTooDeep)


def test_nesting_bombs_of_known_structs() -> None:
    """A table's creation metadata holds source tables, which are tables."""
    metadata, sources, table = b"\x0c\x00\x10", b"\x0f\x00\x07\x0c\x00\x00\x00\x01", b"\x0c\x00\x01"
    nested = table + (metadata + sources + table) * 100_000
    error = failure(write_header(BINARY, 1, b"create_table", 1) + nested)
    assert isinstance(error, MessageTooDeep)


@pytest.mark.parametrize("encoding", [BINARY, FRAMED_COMPACT], ids=lambda encoding: encoding.name)
def test_a_message_of_empty_structs_is_stopped_early(encoding: Encoding) -> None:
    count = 20_000_000
    if encoding.compact:
        start = b"\x19\xfc" + b"\x80\xda\xc4\x09"
    else:
        start = b"\x0f\x00\x01\x0c" + count.to_bytes(4, "big")
    message = framed(encoding, write_header(encoding, 1, b"add_partitions", 1) + start + bytes(count + 1))
    reader = MessageReader()
    fed = 0
    with pytest.raises(MessageTooLarge, match="objects"):
        for begin in range(0, len(message), 100_000):
            reader.feed(message[begin : begin + 100_000])
            fed += 100_000
            assert reader.next_message() is None
    assert fed < 4_000_000


def test_a_message_within_the_object_limit() -> None:
    partition = METHODS["add_partitions"].args_class().thrift_spec[1][3][1][0]
    arguments = METHODS["add_partitions"].args_class(new_parts=[partition() for _ in range(100_000)])
    reader = MessageReader()
    reader.feed(request(COMPACT, "add_partitions", arguments))
    message = reader.next_message()
    assert message is not None
    assert len(message.args.new_parts) == 100_000
    limited = MessageReader(max_message_objects=50_000)
    limited.feed(request(COMPACT, "add_partitions", arguments))
    with pytest.raises(MessageTooLarge, match="objects"):
        limited.next_message()


@every_encoding
def test_the_end_of_a_connection(encoding: Encoding) -> None:
    data = get_table(encoding)
    reader = MessageReader()
    reader.end()
    for length in range(1, len(data)):
        reader = MessageReader()
        reader.feed(data[:length])
        assert reader.next_message() is None
        with pytest.raises(TruncatedMessage):
            reader.end()


def test_closing_in_the_middle_of_a_stream_lets_go() -> None:
    data = request(
        BINARY, "get_partitions_by_names", METHODS["get_partitions_by_names"].args_class(names=["x" * 50] * 9000)
    )
    reader = MessageReader()
    reader.feed(data[:300_000])
    assert reader.next_message() is None
    assert reader.buffered_bytes >= 299_000
    reader.close()
    assert reader.buffered_bytes == 0
    other = MessageReader()
    other.feed(data[:300_000])
    assert other.next_message() is None
    del other  # without close


def test_each_part_of_a_long_message_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except for the first 64 KiB, within which the decoder determines that the message is long."""
    partition_class = METHODS["add_partitions"].args_class().thrift_spec[1][3][1][0]
    partitions = [partition_class(dbName="d", tableName="t", values=[str(number)]) for number in range(10_000)]
    data = request(BINARY, "add_partitions", METHODS["add_partitions"].args_class(new_parts=partitions))
    made = 0
    initialize = partition_class.__init__

    def counting(self: object, *arguments: object, **named: object) -> None:
        nonlocal made
        made += 1
        initialize(self, *arguments, **named)

    monkeypatch.setattr(partition_class, "__init__", counting)
    for size in (100, 5_000, 100_000, len(data)):
        made = 0
        reader = MessageReader()
        message = None
        for start in range(0, len(data), size):
            reader.feed(data[start : start + size])
            message = reader.next_message()
        assert len(data) > 400_000
        assert message is not None
        assert len(message.args.new_parts) == 10_000
        assert 10_000 <= made <= 12_000


def test_two_long_messages_at_once() -> None:
    """Each connection has a decoder of its own that waits for its own bytes."""
    names = METHODS["get_partitions_by_names"].args_class(names=["x" * 50] * 9000)
    data = request(BINARY, "get_partitions_by_names", names)
    readers = [MessageReader() for _ in range(3)]
    got = []
    for start in range(0, len(data), 50_000):
        for reader in readers:
            reader.feed(data[start : start + 50_000])
            got.append(reader.next_message())
    whole = [message for message in got if message is not None]
    assert len(whole) == 3
    assert all(message.args == names for message in whole)


def test_peeking() -> None:
    for encoding in (BINARY, FRAMED_BINARY):
        reader = MessageReader()
        first = reader.peek(get_table(encoding, 1))
        reader.feed(get_table(encoding, 1))
        message = reader.next_message()
        assert message is not None
        key = message.key_bytes
        # The first bytes of a frame do not identify the protocol of the connection.
        assert first == ((key, (1).to_bytes(4, "big")) if encoding is BINARY else None)
        assert reader.peek(get_table(encoding, 99)) == (key, (99).to_bytes(4, "big"))
        assert reader.buffered_bytes == 0
        assert reader.next_message() is None
        # Another request, part of one, and one followed by more have other keys.
        other = request(encoding, "get_table", GET_TABLE.args_class(dbname="default", tbl_name="other"))
        for data in (other, get_table(encoding)[:-1], get_table(encoding) * 2):
            peeked = reader.peek(data)
            assert peeked is not None
            assert peeked[0] != key
        # What is not at the beginning of a message has none.
        reader.feed(get_table(encoding)[:-1])
        assert reader.peek(get_table(encoding)) is None
        reader.feed(get_table(encoding)[-1:])
        assert reader.next_message() is not None
        assert reader.peek(get_table(encoding)) is not None


@pytest.mark.parametrize("pieces", [[], [7], [500], [500, 3]])
def test_a_request_that_is_put_back_is_read_first(pieces: list[int]) -> None:
    """What arrived meanwhile, in any pieces, follows it."""
    for encoding in (BINARY, FRAMED_BINARY):
        reader = MessageReader()
        reader.feed(get_table(encoding, 1))
        assert reader.next_message() is not None
        assert reader.peek(get_table(encoding, 2)) is not None
        meanwhile = b"".join(get_table(encoding, number) for number in range(3, 20))
        for size in pieces:
            reader.feed(meanwhile[:size])
            meanwhile = meanwhile[size:]
        reader.put_back(get_table(encoding, 2))
        reader.feed(meanwhile)
        sequence_ids = []
        while (message := reader.next_message()) is not None:
            sequence_ids.append(message.sequence_id)
        assert sequence_ids == list(range(2, 20))
        assert reader.buffered_bytes == 0


@pytest.mark.parametrize("encoding", [BINARY_OLD, COMPACT, FRAMED_COMPACT], ids=lambda encoding: encoding.name)
def test_no_peeking_where_the_sequence_id_moves(encoding: Encoding) -> None:
    reader = MessageReader()
    for _ in range(2):
        assert reader.peek(get_table(encoding)) is None
        reader.feed(get_table(encoding))
        assert reader.next_message() is not None


def test_invalid_utf8_is_replaced() -> None:
    data = write_header(BINARY, 1, b"get_table", 1) + b"\x0b\x00\x01\x00\x00\x00\x02\xff\xfe\x00"
    reader = MessageReader()
    reader.feed(data)
    message = reader.next_message()
    assert message is not None
    assert message.args.dbname == "��"


def test_the_arguments_struct_alone() -> None:
    assert encode_struct(ARGUMENTS).endswith(b"orders\x00")


def test_half_a_million_structs_without_a_field_are_refused_early() -> None:
    """In a sequence that no client sends: freeing them at once would take long."""
    reader = MessageReader(slice_s=0.0003)
    name = b"add_partitions"
    head = b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + b"\0\0\0\1\x0f\x00\x01\x0c"
    reader.feed(head + (1 << 20).to_bytes(4, "big") + bytes(1 << 19))
    with pytest.raises(MessageTooLarge, match="objects without content in a row"):
        while reader.next_message() is None:
            assert reader.is_ready


@every_encoding
@pytest.mark.parametrize("count", [1, 80, 150, 5_000, pytest.param(40_000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_a_message_whose_decoding_takes_turns_is_the_same(encoding: Encoding, count: int) -> None:
    """However short each turn is, and whatever part of the message has arrived: a busy machine makes any turn short."""
    names = METHODS["get_partitions_by_names"].args_class("d", "t", [f"p={number}" for number in range(count)])
    data = request(encoding, "get_partitions_by_names", names) + get_table(encoding)
    for portion in (len(data), len(data) // 2 + 1):
        reader = MessageReader(slice_s=0.0)
        found = []
        for start in range(0, len(data), portion):
            reader.feed(data[start : start + portion])
            while (message := reader.next_message()) is not None or reader.is_ready:
                if message is not None:
                    found.append(message.args)
        assert found == [names, ARGUMENTS]


@pytest.mark.parametrize("framed", [False, True])
def test_a_method_with_a_limit_of_its_own_is_refused_before_its_text_has_come(framed: bool) -> None:
    reader = MessageReader(limits={"setOption": 100_000})
    data = b"\x80\x01\x00\x01\x00\x00\x00\x09setOption\0\0\0\1\x0b\x00\x01" + (4 << 20).to_bytes(4, "big")
    data += b"k" * 70_000
    reader.feed(((4 << 20) + 40).to_bytes(4, "big") + data if framed else data)
    with pytest.raises(WireError, match=r"100000|99979"):
        reader.next_message()
