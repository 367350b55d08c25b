"""Replies as clients of each encoding read them; errors; templates; splicing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from thrift.protocol import fastbinary
from thrift.Thrift import TApplicationException, TMessageType, TType

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import (
    METHODS,
    Message,
    MessageReader,
    UnencodableReply,
    encode_exception,
    encode_payload,
    encode_payload_parts,
    encode_reply_from_payload,
    encode_struct,
    long_structs,
    reply_header,
    reply_template,
    splicing,
)
from hms_cache.wire.encodings import BINARY, ENCODINGS, FRAMED_BINARY, Encoding
from hms_cache.wire.long_structs import LONG_REPLY_BYTES, LongReplies
from hms_cache.wire.partition_parts import encode_parameters
from tests.wire.strategies import filled, request
from tests.wire.test_round_trips import read_reply
from tests.wire.whole_replies import encode_reply, failed

every_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)

TABLE = ttypes.Table(tableName="t", dbName="d", parameters={"a": "ü"})


def requested(encoding: Encoding, name: str, sequence_id: int = 7, arguments: Any = None) -> Message:
    reader = MessageReader()
    known = METHODS.get(name)
    if arguments is None:
        arguments = (known or METHODS["get_table"]).args_class()
    reader.feed(request(encoding, name, arguments, sequence_id))
    message = reader.next_message()
    assert message is not None
    return message


@every_encoding
@pytest.mark.parametrize("sequence_id", [0, 1, 127, 128, 1 << 20, (1 << 31) - 1, -1, -(1 << 31)])
def test_sequence_ids_are_echoed(encoding: Encoding, sequence_id: int) -> None:
    message = requested(encoding, "get_table", sequence_id)
    assert message.sequence_id == sequence_id
    method = METHODS["get_table"]
    got = read_reply(encoding, encode_reply(message, method.result(TABLE)), method.result_class)
    assert got == ("get_table", TMessageType.REPLY, sequence_id, method.result(TABLE))


@every_encoding
def test_faults(encoding: Encoding) -> None:
    message = requested(encoding, "no_such_method", 3)
    fault = TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'no_such_method'")
    name, kind, sequence_id, got = read_reply(encoding, encode_exception(message, fault), TApplicationException)
    assert (name, kind, sequence_id) == ("no_such_method", TMessageType.EXCEPTION, 3)
    assert (got.type, got.message) == (1, "Invalid method name: 'no_such_method'")


@pytest.mark.parametrize("size", [1, 5, 20, 60, 200])
def test_what_is_encoded_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """As by the C encoder at once, however short the parts are."""
    monkeypatch.setattr(long_structs, "PART_SIZE", size)
    for method in METHODS.values():
        for kind, table in ((method.args_class, method.args_table), (method.result_class, method.result_table)):
            struct = filled(kind, random.Random(method.name)) if kind is not None else None
            for compact in (False, True) if struct is not None else ():
                whole = fastbinary.encode_compact if compact else fastbinary.encode_binary
                assert long_structs.encode(struct, table, compact=compact) == whole(struct, table), method.name


@pytest.mark.parametrize("encode", ["get_table", "partition"])
def test_no_part_is_long(monkeypatch: pytest.MonkeyPatch, encode: str) -> None:
    """No other thread runs while the C encoder does, which takes a second for 100 MB."""
    given: list[int] = []
    in_c = long_structs._encode_in_c

    def noting(*arguments: Any) -> bytes:
        given.append(len(encoded := in_c(*arguments)))
        return encoded

    monkeypatch.setattr(long_structs, "_encode_in_c", noting)
    column = ttypes.FieldSchema("a", f"struct<{'b:int,' * 30_000}c:int>", "ü" * 100_000)
    parameters = {"x": "y" * 300_000, "ü" * 70_000: "", **{f"k{number}": "v" for number in range(20_000)}}
    if encode == "partition":
        partition = ttypes.Partition(["1"], "d", "t", 1, 1, parameters=parameters, catName="hive", writeId=1)
        table = [ttypes.Partition, tuple(field for field in ttypes.Partition.thrift_spec if field and field[0] > 6)]
        assert encode_parameters(partition) == fastbinary.encode_binary(partition, table)
    else:
        sd = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("c", "int", "")] * 30_000 + [column])
        result = METHODS["get_table"].result(ttypes.Table("t", "d", sd=sd, parameters=parameters, temporary=True))
        whole = fastbinary.encode_binary(result, METHODS["get_table"].result_table)
        assert b"".join(encode_payload_parts(BINARY, METHODS["get_table"], result)) == whole
    assert len(given) > 3
    assert max(given) < 4 * long_structs.PART_SIZE


def test_replies_are_looked_at_where_there_was_a_long_one() -> None:
    replies = LongReplies()
    replies.note("get_table", LONG_REPLY_BYTES)
    assert not replies.expects("get_table")
    replies.note("get_table", LONG_REPLY_BYTES + 1)
    for _ in range(1000):
        assert replies.expects("get_table")
        replies.note("get_table", 100)
    assert not replies.expects("get_table")
    assert not replies.expects("get_database")


def test_faults_can_always_be_said() -> None:
    message = requested(BINARY, "get_table")
    for text in (None, "", "half a pair: \ud800"):
        _, _, _, got = read_reply(
            BINARY, encode_exception(message, TApplicationException(6, text)), TApplicationException
        )
        assert got.type == 6


@every_encoding
def test_what_has_no_utf_8_form_is_a_question_mark_as_from_java(encoding: Encoding) -> None:
    column = ttypes.FieldSchema("a\ud800", "int", "ü\udc00")
    table = ttypes.Table(tableName="t", sd=ttypes.StorageDescriptor(cols=[column]), parameters={"\ud800": "\udfff"})
    for method, value, told in (
        ("get_table", table, lambda found: (found.sd.cols, found.parameters)),
        ("get_fields", [column], lambda found: (found, {"?": "?"})),
    ):
        result = METHODS[method].result(value)
        got = read_reply(encoding, encode_reply(requested(encoding, method), result), METHODS[method].result_class)
        assert told(got[3].success) == ([ttypes.FieldSchema("a?", "int", "ü?")], {"?": "?"})
    assert column.name == "a\ud800", "a result may be shared"
    error = failed("get_table", ttypes.MetaException("\ud800"))
    got = read_reply(encoding, encode_reply(requested(encoding, "get_table"), error), METHODS["get_table"].result_class)
    assert got[3].o1.message == "?"


@every_encoding
def test_declared_exceptions(encoding: Encoding) -> None:
    method = METHODS["get_table"]
    error = ttypes.NoSuchObjectException("hive.d.t table not found")
    result = failed(method.name, error)
    got = read_reply(encoding, encode_reply(requested(encoding, "get_table"), result), method.result_class)
    assert got[3].o2 == error
    assert got[3].success is None


def test_void_methods_have_no_value() -> None:
    assert METHODS["create_table"].result() == METHODS["create_table"].result_class()  # type: ignore[misc]
    assert not METHODS["create_table"].has_value
    assert METHODS["drop_partition"].result(False).success is False


@pytest.mark.parametrize(
    "table",
    [
        ttypes.Table(createTime=1 << 31),
        ttypes.Table(tableName=5),
        ttypes.Table(sd="no descriptor"),
        ttypes.Table(tableName="half a pair: \ud800", createTime=1 << 31),
        ttypes.Table(partitionKeys=[None]),
    ],
)
def test_what_cannot_be_encoded(table: ttypes.Table) -> None:
    message = requested(BINARY, "get_table")
    with pytest.raises(UnencodableReply, match="get_table"):
        encode_reply(message, METHODS["get_table"].result(table))
    with pytest.raises(UnencodableReply, match="Table"):
        encode_struct(table)


def test_replies_nested_too_deep() -> None:
    table = ttypes.Table()
    for _ in range(100):
        source = ttypes.SourceTable(table=table)
        table = ttypes.Table(creationMetadata=ttypes.CreationMetadata(sourceTables=[source]))
    with pytest.raises(UnencodableReply):
        encode_reply(requested(BINARY, "get_table"), METHODS["get_table"].result(table))


@every_encoding
def test_payloads_are_sent_again(encoding: Encoding) -> None:
    method = METHODS["get_table"]
    payload = encode_payload(encoding, method, method.result(TABLE))
    for sequence_id in (1, 200):
        message = requested(encoding, "get_table", sequence_id)
        whole = encode_reply(message, method.result(TABLE))
        assert encode_reply_from_payload(message, payload) == whole
        assert reply_header(message, len(payload)) + payload == whole


def test_a_frame_has_a_limit() -> None:
    with pytest.raises(UnencodableReply):
        reply_header(requested(FRAMED_BINARY, "get_table"), 1 << 31)
    assert reply_header(requested(BINARY, "get_table"), 1 << 31)


@every_encoding
def test_templates(encoding: Encoding) -> None:
    method = METHODS["get_table"]
    message = requested(encoding, "get_table", 1)
    payload = encode_payload(encoding, method, method.result(TABLE))
    template = reply_template(message, payload)
    if encoding.compact or not encoding.strict:
        assert template is None
        return
    assert template is not None
    reader = MessageReader()
    known = {message.key_bytes: template}
    reader.feed(request(encoding, "getName", METHODS["getName"].args_class()))
    assert reader.next_message() is not None
    for sequence_id in (2, -3):
        peeked = reader.peek(request(encoding, "get_table", method.args_class(), sequence_id))
        assert peeked is not None
        key, sequence = peeked
        reply = known[key].render(sequence)
        assert reply == encode_reply(requested(encoding, "get_table", sequence_id), method.result(TABLE))
        assert template.size_bytes == len(reply)


def list_result_start(element_type: int, count: int, *, compact: bool) -> bytes:
    header = splicing.field_header(0, TType.LIST, compact=compact)
    return header + splicing.list_header(element_type, count, compact=compact)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("count", [0, 1, 14, 15, 200])
def test_splicing_a_list_of_structs(compact: bool, count: int) -> None:
    method = METHODS["get_partitions"]
    partitions = [ttypes.Partition(values=[str(number)]) for number in range(count)]
    encoding = next(known for known in ENCODINGS if known.compact is compact)
    pieces = [encode_struct(partition, compact=compact) for partition in partitions]
    start = list_result_start(TType.STRUCT, count, compact=compact)
    spliced = b"".join((start, *pieces, splicing.STOP))
    assert spliced == encode_payload(encoding, method, method.result(partitions))


@pytest.mark.parametrize("compact", [False, True])
def test_splicing_strings_and_nested_lists(compact: bool) -> None:
    encoding = next(known for known in ENCODINGS if known.compact is compact)
    names = [f"ds={number}/näme" for number in range(20)]
    method = METHODS["get_partition_names"]
    spliced = b"".join(
        (
            list_result_start(TType.STRING, len(names), compact=compact),
            *(splicing.text_header(len(name.encode()), compact=compact) + name.encode() for name in names),
            splicing.STOP,
        )
    )
    assert spliced == encode_payload(encoding, method, method.result(names))
    # PartitionsByExprResult: a list in field 1, then a boolean, whose compact header is its value.
    method = METHODS["get_partitions_by_filter_req"]
    partitions = [ttypes.Partition(values=["1"])]
    spliced = b"".join(
        (
            list_result_start(TType.STRUCT, 1, compact=compact),
            encode_struct(partitions[0], compact=compact),
            splicing.STOP,
        )
    )
    assert spliced == encode_payload(encoding, method, method.result(partitions))
    method = METHODS["get_partitions_req"]
    spliced = b"".join(
        (
            splicing.field_header(0, TType.STRUCT, compact=compact),
            splicing.field_header(1, TType.LIST, compact=compact),
            splicing.list_header(TType.STRUCT, 1, compact=compact),
            encode_struct(partitions[0], compact=compact),
            splicing.STOP,
            splicing.STOP,
        )
    )
    result = method.result(ttypes.PartitionsResponse(partitions=partitions))
    assert spliced == encode_payload(encoding, method, result)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    ("field_id", "previous_id"), [(1, 0), (15, 0), (16, 0), (28, 20), (100, 5), (-1, 0), (0, 0), (3, 7)]
)
def test_splicing_field_headers(compact: bool, field_id: int, previous_id: int) -> None:
    class One:
        thrift_spec = ((field_id, TType.I64, "value", None, None),)
        value = 5

    encoding = next(known for known in ENCODINGS if known.compact is compact)
    header = splicing.field_header(field_id, TType.I64, compact=compact)
    assert encoding.encode(One(), [One, One.thrift_spec])[: len(header)] == header
    if compact and 0 < field_id - previous_id <= 15:
        assert len(splicing.field_header(field_id, TType.I64, compact=True, previous_id=previous_id)) == 1
