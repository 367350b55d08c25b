"""The generated clients of other projects, and our own, talk to the reader over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hive_metastore.ThriftHiveMetastore as pyiceberg_service
import hmsclient.genthrift.hive_metastore.ThriftHiveMetastore as hmsclient_service
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolAccelerated
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport, TTransportBase

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from hms_cache.wire import Message, MessageReader, encode_exception
from tests.wire.whole_replies import encode_reply, failed

SERVICES = {"ours": ThriftHiveMetastore, "hmsclient": hmsclient_service, "pyiceberg": pyiceberg_service}
PROTOCOLS: dict[str, Callable[[Any], Any]] = {
    "binary": TBinaryProtocol,
    "binary, accelerated": TBinaryProtocolAccelerated,
    "binary, old style": lambda transport: TBinaryProtocol(transport, strictWrite=False),
    "compact": TCompactProtocol,
    "compact, accelerated": TCompactProtocolAccelerated,
}
NAMES = [f"ds=2024-01-{number}/hr=x" for number in range(5000)]


class Loopback(TTransportBase):  # type: ignore[misc]
    """A connection whose other end is a MessageReader and a few answers."""

    def __init__(self) -> None:
        self.reader = MessageReader()
        self.replies = bytearray()

    def isOpen(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        taken = bytes(self.replies[: min(size, 1000)])
        del self.replies[: len(taken)]
        return taken

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), 700):
            self.reader.feed(data[start : start + 700])
            while (message := self.reader.next_message()) is not None:
                if message.expects_reply:
                    self.replies += answer(message)

    def flush(self) -> None:
        pass


def answer(message: Message) -> bytes:
    method, arguments = message.method, message.args
    if method is None or method.name == "get_type":
        text = f"Invalid method name: '{message.name}'"
        return encode_exception(message, TApplicationException(TApplicationException.UNKNOWN_METHOD, text))
    if method.name == "get_table":
        if arguments.tbl_name == "gone":
            return encode_reply(message, failed(method.name, ttypes.NoSuchObjectException("gone")))
        table = ttypes.Table(tableName=arguments.tbl_name, dbName=arguments.dbname, writeId=5, catName="hive")
        return encode_reply(message, method.result(table))
    if method.name == "get_partition_names":
        return encode_reply(message, method.result(NAMES))
    if method.name == "create_table":
        assert len(arguments.tbl.sd.cols) == 3000
        return encode_reply(message, method.result())
    raise AssertionError(method.name)


@pytest.mark.parametrize("wrapped", [TBufferedTransport, TFramedTransport])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("service", SERVICES)
def test_a_conversation(service: str, protocol: str, wrapped: Callable[[Any], Any]) -> None:
    module = SERVICES[service]
    loopback = Loopback()
    client = module.Client(PROTOCOLS[protocol](wrapped(loopback)))
    table = client.get_table("default", "orders")
    assert (table.dbName, table.tableName) == ("default", "orders")
    with pytest.raises(module.NoSuchObjectException, match="gone"):
        client.get_table("default", "gone")
    assert client.get_partition_names("d", "t", -1) == NAMES
    columns = [module.FieldSchema(name=f"column_{number}", type="string", comment="ü" * 20) for number in range(3000)]
    assert client.create_table(module.Table(tableName="t", sd=module.StorageDescriptor(cols=columns))) is None
    with pytest.raises(TApplicationException, match="Invalid method name: 'get_type'"):
        client.get_type("x")
    client.shutdown()
    assert client.get_table("default", "orders").tableName == "orders"
    assert loopback.reader.buffered_bytes == 0
    assert not loopback.replies
