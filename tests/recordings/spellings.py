"""Calls of older clients that Hive 4.0.1 supports only under other names, with its answers converted.

PyIceberg and the clients of Hive 2 and 3 send `get_table`, which 4.0 removed; `get_table_req` replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.thrift_gen.hive_metastore.ttypes import GetTableRequest, GetTablesRequest
from hms_cache.wire import METHODS
from tests.recordings.messages import EXCEPTION, framed_like, read_message, unframed

#: Method to that of 4.0.1, the request for its arguments, and the value in its answer.
_SPELLINGS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "get_table": (
        "get_table_req",
        lambda arguments: GetTableRequest(dbName=arguments.dbname, tblName=arguments.tbl_name),
        lambda answer: answer.table,
    ),
    "get_table_objects_by_name": (
        "get_table_objects_by_name_req",
        lambda arguments: GetTablesRequest(dbName=arguments.dbname, tblNames=arguments.tbl_names),
        lambda answer: answer.tables,
    ),
}


def for_hive_4(request: bytes) -> bytes:
    """The request as Hive 4.0.1 knows it."""
    message = read_message(request)
    if message.method not in _SPELLINGS:
        return request
    method, spelled, _ = _SPELLINGS[message.method]
    arguments = METHODS[method].args_class(req=spelled(body(request, METHODS[message.method].args_class)))
    return framed_like(request, encoded(method, message.kind, message.sequence_id, arguments))


def of_hive_4(method: str, reply: bytes) -> bytes:
    """Its answer as that of the method that the client has called."""
    if method not in _SPELLINGS or not reply:
        return reply
    message = read_message(reply)
    spelled, _, value = _SPELLINGS[method]
    if message.kind == EXCEPTION:
        raise ValueError(f"{spelled} ended with an internal error")
    found = body(reply, METHODS[spelled].result)
    result = METHODS[method].result()
    for entry in METHODS[method].result_table[1]:
        if entry is not None and entry[0] > 0:
            setattr(result, entry[2], getattr(found, entry[2], None))
    if found.success is not None:
        result.success = value(found.success)
    return framed_like(reply, encoded(method, message.kind, message.sequence_id, result))


def body(data: bytes, make: Callable[[], Any]) -> Any:
    """The struct behind the header."""
    protocol = TBinaryProtocol(TMemoryBuffer(unframed(data)))
    protocol.readMessageBegin()
    value = make()
    value.read(protocol)
    return value


def encoded(method: str, kind: int, sequence_id: int, struct: Any) -> bytes:
    """A strict binary message."""
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(method, kind, sequence_id)
    struct.write(protocol)
    protocol.writeMessageEnd()
    return bytes(buffer.getvalue())
