"""Sends recorded calls to a metastore, each on the connection it had, one after the other."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

from hms_cache.wire import METHODS
from tests.recordings.answers import UNORDERED, answer
from tests.recordings.ids import Ids
from tests.recordings.messages import CALL, ONEWAY, Splitter, framed_like
from tests.recordings.metastores import Metastore
from tests.recordings.recording import RecordedCall
from tests.recordings.spellings import body, encoded, for_hive_4, of_hive_4

MAX_WAIT_S = 120.0
CLOSED = b""
"""The answer of a metastore that closed the connection instead."""


class Replay:
    """The connections of a recording to one metastore, each opened at its first call and closed where the client closed
    it."""

    def __init__(self, metastore: Metastore) -> None:
        host, _, port = metastore.uri.removeprefix("thrift://").rpartition(":")
        self._address = host, int(port)
        self._root = str(metastore.root)
        self._is_java = metastore.is_java
        self._connections: dict[int, socket.socket] = {}
        self.ids = Ids()
        self.id_faults: list[str] = []

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def exchange(self, call: RecordedCall) -> tuple[bytes, bytes]:
        """The request as it was sent here, with this metastore's ids, and its answer. Closes where the client did."""
        if not call.request:
            connection = self._connections.pop(call.connection, None)
            if connection is not None:
                connection.close()
            return b"", b""
        connection = self._connections.get(call.connection)
        if connection is None:
            connection = socket.create_connection(self._address, timeout=MAX_WAIT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[call.connection] = connection
        call = call.at(self._root)
        request = self._translated(call)
        connection.sendall(for_hive_4(request) if self._is_java else request)
        if call.message.kind == ONEWAY:
            return request, b""
        reply = _read(connection)
        if self._is_java:
            reply = of_hive_4(call.method, reply)
        if reply == CLOSED:
            self._connections.pop(call.connection).close()
        elif call.reply and call.method not in UNORDERED:
            self.id_faults += self.ids.learn(answer(call.reply), answer(reply))
        return request, reply

    def _translated(self, call: RecordedCall) -> bytes:
        """The same bytes, unless an id in them differs here."""
        if not self.ids.differing:
            return call.request
        arguments, is_changed = self.ids.translated(read_arguments(call))
        if not is_changed:
            return call.request
        message = call.message
        return framed_like(call.request, encoded(message.method, message.kind, message.sequence_id, arguments))


def read_arguments(call: RecordedCall) -> Any:
    """The request's arguments."""
    return body(call.request, METHODS[call.method].args_class)


def _read(connection: socket.socket) -> bytes:
    splitter = Splitter()
    while True:
        data = connection.recv(1 << 18)
        if not data:
            return CLOSED
        for message in splitter.feed(data):
            assert message.kind != CALL
            return message.data
