"""Bytes as the clients of each release write and read them, where the releases differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hive_metastore.ThriftHiveMetastore as pyiceberg_service
import hive_metastore.ttypes as pyiceberg_types
import hmsclient.genthrift.hive_metastore.ThriftHiveMetastore as hmsclient_service
import hmsclient.genthrift.hive_metastore.ttypes as hmsclient_types
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import (
    METHODS,
    Message,
    MessageReader,
    ServerFull,
    decode_struct,
    encode_payload,
    parse_database_name,
    streaming,
)
from hms_cache.wire.encodings import BINARY, COMPACT, ENCODINGS, Encoding, write_header
from tests.wire.strategies import framed, request
from tests.wire.whole_replies import failed

every_encoding = pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
both_protocols = pytest.mark.parametrize("encoding", [BINARY, COMPACT], ids=lambda encoding: encoding.name)


def received(data: bytes, portion: int = 1 << 30) -> Message:
    reader = MessageReader()
    message = None
    for start in range(0, len(data), portion):
        reader.feed(data[start : start + portion])
        message = reader.next_message()
    assert message is not None
    return message


def read_in_python(struct_class: Any, data: bytes, encoding: Encoding) -> Any:
    """Reads with Thrift's Python code, which skips fields of a wrong type like Java's."""
    transport = TMemoryBuffer(data)
    struct = struct_class()
    struct.read(TCompactProtocol(transport) if encoding.compact else TBinaryProtocol(transport))
    return struct


@every_encoding
@pytest.mark.parametrize("count", [2, 20_000])
def test_add_dynamic_partitions_of_2_3(encoding: Encoding, count: int) -> None:
    names = [f"ds={number}" for number in range(count)]
    old = hmsclient_types.AddDynamicPartitions(
        txnid=7, dbname="db", tablename="t", partitionnames=names, operationType=ttypes.DataOperationType.UPDATE
    )
    arguments = hmsclient_service.add_dynamic_partitions_args(rqst=old)
    for portion in (1 << 30, 50_000, 100):
        message = received(request(encoding, "add_dynamic_partitions", arguments), portion)
        assert message.args.rqst == ttypes.AddDynamicPartitions(
            txnid=7,
            dbname="db",
            tablename="t",
            partitionnames=names,
            operationType=ttypes.DataOperationType.UPDATE,
        )
        assert message.args.rqst.writeid is None


def long_event_of_2_3() -> Any:
    insert = hmsclient_types.InsertEventRequestData(filesAdded=[f"/files/{number}" for number in range(10_000)])
    data = hmsclient_types.FireEventRequestData(insert)
    event = hmsclient_types.FireEventRequest(successful=True, data=data, dbName="db", tableName="t")
    return hmsclient_service.fire_listener_event_args(rqst=event)


def long_partitions_of_2_3() -> Any:
    names = [f"ds={number}" for number in range(10_000)]
    old = hmsclient_types.AddDynamicPartitions(txnid=7, dbname="db", tablename="t", partitionnames=names)
    return hmsclient_service.add_dynamic_partitions_args(rqst=old)


@every_encoding
@pytest.mark.parametrize(
    ("method", "make"),
    [("add_dynamic_partitions", long_partitions_of_2_3), ("fire_listener_event", long_event_of_2_3)],
)
def test_a_long_request_is_read_again_by_turns_as_it_was_read_first(
    encoding: Encoding, method: str, make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does nothing else during a read at once."""
    monkeypatch.setattr(streaming, "_LONG_PIECE_S", math.inf)
    monkeypatch.setattr(streaming, "_SHORT_PIECE_S", -math.inf)  # all pieces have the size of the first
    data = request(encoding, method, make())
    following = request(encoding, "get_database", METHODS["get_database"].args_class(name="next"), sequence_id=2)
    reader = MessageReader(slice_s=0.0)
    reader.feed(data)
    turns, message = 1, reader.next_message()
    reader.feed(following)
    while message is None:
        assert reader.is_ready and reader.peek(following) is None
        assert reader.used_bytes >= reader.buffered_bytes > len(data) - 100  # without its header
        turns, message = turns + 1, reader.next_message()
    assert turns > 1.9 * len(data) / streaming._FIRST_PIECE_BYTES
    assert message.args == received(data).args
    later = reader.next_message()
    assert later is not None and later.args.name == "next" and later.sequence_id == 2
    assert reader.used_bytes == reader.buffered_bytes == 0


@every_encoding
def test_what_is_wrong_with_a_long_request_that_is_read_again_ends_the_conversation(encoding: Encoding) -> None:
    reader = MessageReader(slice_s=0.0)
    reader.feed(request(encoding, "add_dynamic_partitions", long_partitions_of_2_3()))
    while not reader._rereads:
        assert reader.next_message() is None
    reader.fail(ServerFull("no room"))
    with pytest.raises(ServerFull) as refused:
        reader.next_message()
    assert refused.value.message is not None and refused.value.message.name == "add_dynamic_partitions"
    assert reader.used_bytes == 0 and not reader.is_ready


@every_encoding
def test_add_dynamic_partitions_of_3_1(encoding: Encoding) -> None:
    new = pyiceberg_types.AddDynamicPartitions(7, 3, "db", "t", ["ds=1"], ttypes.DataOperationType.DELETE)
    message = received(
        request(encoding, "add_dynamic_partitions", pyiceberg_service.add_dynamic_partitions_args(rqst=new))
    )
    assert message.args.rqst == ttypes.AddDynamicPartitions(7, 3, "db", "t", ["ds=1"], ttypes.DataOperationType.DELETE)


@every_encoding
def test_calls_without_a_request_struct(encoding: Encoding) -> None:
    for name in ("add_dynamic_partitions", "fire_listener_event"):
        message = received(request(encoding, name, METHODS[name].args_class()))
        assert message.args == METHODS[name].args_class()
    empty = ttypes.FireEventRequest(successful=True)
    message = received(request(encoding, "fire_listener_event", METHODS["fire_listener_event"].args_class(rqst=empty)))
    assert message.args.rqst == empty


def old_insert_event(checksums: list[str] | None) -> bytes:
    """hmsclient is older than the checksums, which 2.3.10 has as field 2."""
    body = b"\x0f\x00\x01\x0b\x00\x00\x00\x01\x00\x00\x00\x02/f"
    for checksum in checksums or ():
        body += b"\x0f\x00\x02\x0b\x00\x00\x00\x01" + len(checksum).to_bytes(4, "big") + checksum.encode()
    rest = (
        b"\x0b\x00\x03\x00\x00\x00\x02db\x0b\x00\x04\x00\x00\x00\x01t\x0f\x00\x05\x0b\x00\x00\x00\x01\x00\x00\x00\x011"
    )
    event = b"\x02\x00\x01\x01" + b"\x0c\x00\x02" + b"\x0c\x00\x01" + body + b"\x00" + b"\x00" + rest + b"\x00"
    return write_header(BINARY, 1, b"fire_listener_event", 1) + b"\x0c\x00\x01" + event + b"\x00"


@pytest.mark.parametrize("checksums", [None, ["abc"]])
def test_insert_events_of_2_3_10(checksums: list[str] | None) -> None:
    event = received(old_insert_event(checksums)).args.rqst
    assert event.data.insertData == ttypes.InsertEventRequestData(filesAdded=["/f"], filesAddedChecksum=checksums)
    assert (event.successful, event.dbName, event.tableName, event.partitionVals) == (True, "db", "t", ["1"])


@every_encoding
def test_insert_events_of_hmsclient(encoding: Encoding) -> None:
    event = hmsclient_types.FireEventRequest(
        successful=True,
        data=hmsclient_types.FireEventRequestData(hmsclient_types.InsertEventRequestData(filesAdded=["/a", "/b"])),
        dbName="db",
        tableName="t",
    )
    message = received(request(encoding, "fire_listener_event", hmsclient_service.fire_listener_event_args(rqst=event)))
    assert message.args.rqst.data.insertData == ttypes.InsertEventRequestData(filesAdded=["/a", "/b"])


@every_encoding
@pytest.mark.parametrize("replace", [None, False, True])
def test_insert_events_of_4(encoding: Encoding, replace: bool | None) -> None:
    insert = pyiceberg_types.InsertEventRequestData(
        replace=replace, filesAdded=["/a"], filesAddedChecksum=["x"], partitionVal=["1"]
    )
    event = pyiceberg_types.FireEventRequest(
        successful=True, data=pyiceberg_types.FireEventRequestData(insertData=insert), dbName="db", catName="hive"
    )
    message = received(request(encoding, "fire_listener_event", pyiceberg_service.fire_listener_event_args(rqst=event)))
    assert message.args.rqst.catName == "hive"
    assert message.args.rqst.data.insertData == ttypes.InsertEventRequestData(
        replace=replace, filesAdded=["/a"], filesAddedChecksum=["x"], partitionVal=["1"]
    )


@both_protocols
def test_a_string_in_field_16_of_a_table_is_skipped(encoding: Encoding) -> None:
    class OldTable:
        thrift_spec = (*ttypes.Table.thrift_spec[:16], (16, TType.STRING, "catName", "UTF8", None))

    old = OldTable()
    for entry in OldTable.thrift_spec:
        if entry is not None:
            setattr(old, entry[2], None)
    old.tableName, old.rewriteEnabled, old.catName = "t", True, "hive"  # type: ignore[attr-defined]
    data = encoding.encode(old, [OldTable, OldTable.thrift_spec])
    table = decode_struct(ttypes.Table, data, compact=encoding.compact)
    assert (table.tableName, table.rewriteEnabled, table.creationMetadata, table.catName) == ("t", True, None, None)


@both_protocols
def test_open_transactions_for_old_and_new_clients(encoding: Encoding) -> None:
    method = METHODS["get_open_txns"]
    answer = ttypes.GetOpenTxnsResponse(txn_high_water_mark=9, open_txns=[5, 3, 8], min_open_txn=3, abortedBits=b"\x01")
    payload = encode_payload(encoding, method, method.result(answer))
    for read in (read_in_python, lambda kind, data, how: decode_struct(kind, data, compact=how.compact)):
        old = read(hmsclient_service.get_open_txns_result, payload, encoding).success
        assert (old.txn_high_water_mark, old.open_txns, old.min_open_txn) == (9, {3, 5, 8}, 3)
        new = read(pyiceberg_service.get_open_txns_result, payload, encoding).success
        assert (new.txn_high_water_mark, new.open_txns, new.min_open_txn) == (9, [5, 3, 8], 3)
        assert new.abortedBits == b"\x01"
        assert read(METHODS["get_open_txns"].result_class, payload, encoding).success == answer


@both_protocols
def test_exceptions_of_get_partition_names(encoding: Encoding) -> None:
    method = METHODS["get_partition_names"]
    for error in (ttypes.MetaException("boo"), ttypes.NoSuchObjectException("boo")):
        payload = encode_payload(encoding, method, failed(method.name, error))
        old = read_in_python(hmsclient_service.get_partition_names_result, payload, encoding)
        assert old.o2 == hmsclient_types.MetaException("boo")  # its name for field 1
        new = read_in_python(pyiceberg_service.get_partition_names_result, payload, encoding)
        assert new.o1 == pyiceberg_types.NoSuchObjectException("boo")


@both_protocols
def test_exceptions_of_create_ischema(encoding: Encoding) -> None:
    method = METHODS["create_ischema"]
    payload = encode_payload(encoding, method, failed(method.name, ttypes.NoSuchObjectException("boo")))
    assert read_in_python(method.result_class, payload, encoding).o2 == ttypes.NoSuchObjectException("boo")
    minus_one = b"\x0c\x01\x18\x03boo\x00" if encoding.compact else b"\x0c\xff\xff\x0b\x00\x01\x00\x00\x00\x03boo\x00"
    assert payload.startswith(minus_one)


@both_protocols
@pytest.mark.parametrize("name", ["drop_database_req", "drop_table_req"])
def test_results_of_asynchronous_drops(encoding: Encoding, name: str) -> None:
    method = METHODS[name]
    payload = encode_payload(encoding, method, method.result(ttypes.AsyncOperationResp(id="1", finished=True)))
    assert read_in_python(method.result_class, payload, encoding).success.id == "1"
    old = pyiceberg_service.drop_database_req_result  # returns nothing
    assert read_in_python(old, payload, encoding) == old()


def test_the_engine_of_old_clients_is_hive() -> None:
    arguments = hmsclient_service.delete_table_column_statistics_args(db_name="d", tbl_name="t", col_name="c")
    message = received(request(BINARY, "delete_table_column_statistics", arguments))
    assert message.args.engine is None  # positional: the handler says hive
    requested = received(
        request(
            BINARY,
            "get_table_statistics_req",
            hmsclient_service.get_table_statistics_req_args(hmsclient_types.TableStatsRequest("d", "t", ["c"])),
        )
    )
    assert requested.args.request.engine is None  # the handler says hive, and uses it to identify the kind of client


def test_skewed_tables() -> None:
    skewed = pyiceberg_types.SkewedInfo(["a"], [["1"], ["2"]], None)
    descriptor = pyiceberg_types.StorageDescriptor(skewedInfo=skewed)
    arguments = pyiceberg_service.create_table_args(tbl=pyiceberg_types.Table(tableName="t", sd=descriptor))
    data = request(BINARY, "create_table", arguments)
    # Python clients cannot make the map: their lists have no hash.
    place = data.index(b"\x00\x00\x00\x012") + 5
    entry = b"\x0d\x00\x03\x0f\x0b\x00\x00\x00\x01\x0b\x00\x00\x00\x01\x00\x00\x00\x011\x00\x00\x00\x02/x"
    table = received(framed(BINARY, data[:place] + entry + data[place:])).args.tbl
    assert table.sd.skewedInfo.skewedColValueLocationMaps == {("1",): "/x"}
    assert table.sd.skewedInfo.skewedColValues == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (None, ("hive", None)),
        ("", ("hive", "")),
        ("default", ("hive", "default")),
        ("@hive#default", ("hive", "default")),
        ("@spark_cat#db", ("spark_cat", "db")),
        ("@hive#", ("hive", None)),
        ("@hive#!", ("hive", "")),
        ("@hive#a#b", ("hive", "a#b")),
        ("@hive#*", ("hive", "*")),
        ("a@b#c", ("hive", "a@b#c")),
    ],
)
def test_database_names(text: str | None, parsed: tuple[str, str | None]) -> None:
    assert parse_database_name(text) == parsed


def test_database_names_of_another_default_catalog() -> None:
    assert parse_database_name("db", "prod") == ("prod", "db")
    assert parse_database_name("@hive#db", "prod") == ("hive", "db")


def test_a_catalog_mark_without_a_catalog() -> None:
    with pytest.raises(ttypes.MetaException, match="@db is prepended with the catalog marker"):
        parse_database_name("@db")
