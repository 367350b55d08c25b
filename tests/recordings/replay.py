"""Sends recorded calls to a metastore and makes the answers comparable."""

from __future__ import annotations

import re
import socket
from types import TracebackType
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TTransportBase

from hms_cache.wire import METHODS
from tests.recordings.recording import PLACE, RecordedCall

PATIENCE_S = 60.0
_TIMES = re.compile(r"\b1[5-9]\d{8}(\d{3})?\b")
_ADDRESSES = re.compile(r"\b(?:id|tableId|eventId)=\d+")


class Replay:
    """The connections of a recording to one metastore, each opened at its first call."""

    def __init__(self, uri: str, directory: str) -> None:
        """`directory`: the metastore's files are below it; its name is as long as `PLACE`."""
        host, _, port = uri.removeprefix("thrift://").rpartition(":")
        self._address = host, int(port)
        self._directory = directory
        self._connections: dict[int, socket.socket] = {}

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def send(self, call: RecordedCall) -> str:
        """The answer as text: the value or the exception, without times, places and ids of rows."""
        connection = self._connections.get(call.connection)
        if connection is None:
            connection = socket.create_connection(self._address, timeout=PATIENCE_S)
            self._connections[call.connection] = connection
        connection.sendall(call.at(self._directory))
        text = repr(_answer(connection, call.method)).replace(self._directory, PLACE.decode())
        return _ADDRESSES.sub("id=ID", _TIMES.sub("TIME", text))


class _Source(TTransportBase):  # type: ignore[misc]
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read(self, size: int) -> bytes:
        data = self._connection.recv(size)
        if not data:
            raise EOFError("the server closed the connection")
        return data


def _answer(connection: socket.socket, method: str) -> Any:
    protocol = TBinaryProtocol(_Source(connection))
    name, kind, _ = protocol.readMessageBegin()
    assert name == method
    if kind == TMessageType.EXCEPTION:
        fault = TApplicationException()
        fault.read(protocol)
        protocol.readMessageEnd()
        return type(fault).__name__, fault.message
    result = METHODS[method].result()
    result.read(protocol)
    protocol.readMessageEnd()
    return [getattr(result, entry[2]) for entry in result.thrift_spec if entry is not None]
