"""Clients at a given point of a call, for `test_client_behaviour`.

Each point is a function that brings a client there and returns how many of its complete requests the server has
received.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

import hms_cache.server.listener as listener_module
from hms_cache.app.service import Service
from hms_cache.server.calls import Call
from hms_cache.server.connection import PIPELINE_BYTES, Connection
from hms_cache.server.listener import Listener
from hms_cache.server.port import Port
from hms_cache.server.position_sources import InlineSource
from hms_cache.wire import METHODS

MAX_WAIT_S = 30.0

HELD = "get_open_txns_info"
"""A call of the tests' own making: it waits on its thread until the test lets it go."""

LARGE = "get_all_token_identifiers"
"""One whose reply is larger than what the sockets of both sides take."""

LARGE_REPLY = ["x" * 100_000] * 200

ENCODINGS = ("binary", "old binary", "compact", "framed binary", "framed old binary", "framed compact")


def encode(encoding: str, method: str, sequence: int, **arguments: Any) -> bytes:
    """A request, by Thrift's own protocols."""
    memory = TMemoryBuffer()
    protocol = _protocol(encoding, memory)
    protocol.writeMessageBegin(method, TMessageType.CALL, sequence)
    METHODS[method].args_class(**arguments).write(protocol)
    protocol.writeMessageEnd()
    data: bytes = memory.getvalue()
    return len(data).to_bytes(4, "big") + data if encoding.startswith("framed") else data


def _protocol(encoding: str, transport: Any) -> TProtocolBase:
    if encoding.endswith("compact"):
        return TCompactProtocol(transport)
    return TBinaryProtocol(transport, strictWrite="old" not in encoding, strictRead=False)


class Client:
    """One connection, which speaks one of the encodings."""

    def __init__(self, port: int, encoding: str, receive_buffer_bytes: int | None = None) -> None:
        self.encoding = encoding
        self.sock = socket.socket()
        if receive_buffer_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.sock.settimeout(MAX_WAIT_S)
        self.sock.connect(("127.0.0.1", port))
        self._sequence = 0
        self._expected: list[tuple[str, int]] = []

    def request(self, method: str, **arguments: Any) -> bytes:
        """The bytes of the next request; its reply is expected."""
        self._sequence += 1
        self._expected.append((method, self._sequence))
        return encode(self.encoding, method, self._sequence, **arguments)

    def send(self, method: str, **arguments: Any) -> None:
        """Sends one complete request."""
        self.sock.sendall(self.request(method, **arguments))

    def forget_last(self) -> None:
        """Expects no reply for the last request, which was not sent completely."""
        self._expected.pop()

    def read_reply(self) -> None:
        """Reads the next reply, which must be the next expected one. Raises EOFError at the end."""
        source = _Source(self.sock)
        if self.encoding.startswith("framed"):
            source.read(4)
        protocol = _protocol(self.encoding, source)
        name, kind, sequence = protocol.readMessageBegin()
        assert (name, sequence) == self._expected.pop(0)
        assert kind == TMessageType.REPLY
        result = METHODS[name].result_class()
        result.read(protocol)
        protocol.readMessageEnd()

    def read_expected(self) -> None:
        """Reads the replies of all complete requests, in order."""
        while self._expected:
            self.read_reply()

    def is_closed_by_server(self) -> bool:
        """Waits for the end of the connection. Returns False if there is something to read instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def is_closed_after_error(self) -> bool:
        """After `is_closed_by_server` has read a byte: whether it began an error, followed by the end."""
        rest = b""
        while data := self.sock.recv(65536):
            rest += data
        return b"is not whole after" in rest

    def close(self) -> None:
        """In order."""
        self.sock.close()

    def reset(self) -> None:
        """Resets the connection, like a killed process with unread bytes, or a firewall."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()


class _Source:
    """The socket as Thrift reads it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._data = b""

    def read(self, size: int) -> bytes:
        pieces, missing = [], size
        while missing:
            piece = self._sock.recv(missing)
            if not piece:
                raise EOFError("the server closed the connection")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    readAll = read


class Bench:
    """A server in this process, whose calls and position checks the test can delay, and its clients."""

    def __init__(self, service: Service, listener: Listener, patch: Any) -> None:
        self.listener = listener
        self.port = 0
        self._open = threading.Event()
        self.started = threading.Semaphore(0)
        self.requested = threading.Semaphore(0)
        self._holds_checks = False
        self._held_checks: list[Callable[[], None]] = []
        self._alive: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._take_over(patch)

    def _take_over(self, patch: Any) -> None:
        handlers = self.listener.dispatcher._handlers
        assert isinstance(handlers, dict)
        original = handlers[HELD].function

        def held(call: Call, arguments: Any) -> Any:
            self.started.release()
            assert self._open.wait(MAX_WAIT_S)
            return original(call, arguments)

        patch.setitem(handlers, HELD, replace(handlers[HELD], function=held))
        patch.setitem(handlers, LARGE, replace(handlers[LARGE], function=lambda call, arguments: LARGE_REPLY))
        read = InlineSource._read

        def check(source: InlineSource, answered: Callable[[int | None], None]) -> None:
            def let_go() -> None:
                source._loop.call_soon_threadsafe(read, source, answered)

            if self._holds_checks:
                self._held_checks.append(let_go)
                self.requested.release()
            else:
                let_go()

        patch.setattr(InlineSource, "check", check)
        alive = self._alive

        class Watched(Connection):
            def __init__(self, listener: Listener, port: Port) -> None:
                super().__init__(listener, port)
                alive.add(self)

        patch.setattr(listener_module, "Connection", Watched)

    @contextmanager
    def holding(self, *, checks: bool = False) -> Iterator[None]:
        """Calls, and position checks if requested, are held until `let_go`, at the latest until the end."""
        while self.started.acquire(blocking=False):
            pass  # a call that was queued has run since
        self._open.clear()
        self._holds_checks = checks
        try:
            yield
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Releases what was held."""
        self._open.set()
        self._holds_checks = False
        held, self._held_checks = self._held_checks, []
        for let_go in held:
            let_go()

    def resources(self) -> dict[str, int]:
        """What clients can make the server hold, by kind."""
        listener = self.listener
        return {
            "connections": listener.connections,
            "calls in flight": listener.in_flight,
            "buffered bytes": listener.buffers.used_bytes,
            "sockets": _open_sockets(),
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks(listener.loop)),
            # By reference counts only: the cycle collector rarely runs in a server. A timer would hold one, too.
            "connection objects": len(self._alive),
        }


def _open_sockets() -> int:
    """Of this process: clients do not affect files of the database."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


def wait_for(holds: Callable[[], bool], what: Callable[[], object]) -> None:
    """Repeats the check until it succeeds."""
    end_s = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < end_s, what()
        time.sleep(0.002)


def take(semaphore: threading.Semaphore) -> None:
    """Waits for an effect in the server."""
    assert semaphore.acquire(timeout=MAX_WAIT_S)


# The points. The client's `encoding` may be any, unless the point restricts it.


def connected(bench: Bench, encoding: str) -> Client:
    """Before the first byte."""
    return Client(bench.port, encoding)


def in_header(bench: Bench, encoding: str) -> Client:
    """Within the header of a message."""
    client = Client(bench.port, encoding)
    client.sock.sendall(client.request("get_database", name="default")[:7])
    client.forget_last()
    return client


def in_arguments(bench: Bench, encoding: str) -> Client:
    """Within the arguments, so far that the message is decoded while it arrives."""
    client = Client(bench.port, encoding)
    names = [f"name-{number}" for number in range(20_000)]
    client.sock.sendall(client.request("get_table_objects_by_name", dbname="default", tbl_names=names)[:-3])
    client.forget_last()
    return client


def running(bench: Bench, encoding: str) -> Client:
    """While the call runs."""
    client = Client(bench.port, encoding)
    client.send(HELD)
    take(bench.started)
    return client


def queued(bench: Bench, encoding: str) -> Client:
    """While the call waits for a thread."""
    before = bench.listener.in_flight
    client = Client(bench.port, encoding)
    client.send(HELD)
    wait_for(lambda: bench.listener.in_flight == before + 1, bench.resources)
    return client


def whole_call_behind(bench: Bench, encoding: str) -> Client:
    """While a call runs, with a second one sent."""
    client = running(bench, encoding)
    client.send("getStatus")
    return client


def part_behind(bench: Bench, encoding: str) -> Client:
    """While a call runs, after sending a complete second one and part of a third."""
    client = whole_call_behind(bench, encoding)
    client.sock.sendall(client.request("get_database", name="default")[:9])
    client.forget_last()
    return client


def much_behind(bench: Bench, encoding: str) -> Client:
    """While a call runs, after sending so much that the server has stopped reading."""
    client = running(bench, encoding)
    client.sock.sendall(client.request("getOption", key="k" * (PIPELINE_BYTES + 1)))
    wait_for(lambda: any(one._paused for one in list(bench._alive)), lambda: "reading goes on")
    client.send("getStatus")
    return client


def checking(bench: Bench, encoding: str) -> Client:
    """During a position check for a request that memory answers. Binary encodings only."""
    bench.let_go()
    client = Client(bench.port, encoding)
    for _ in range(3):
        client.send("get_database", name="default")
        client.read_reply()
    bench._holds_checks = True
    client.send("get_database", name="default")
    take(bench.requested)
    return client


def replying(bench: Bench, encoding: str) -> Client:
    """While the reply is written: the client has read a part of it."""
    client = Client(bench.port, encoding, receive_buffer_bytes=4096)
    client.send(LARGE)
    wait_for(lambda: any(not one._writable for one in list(bench._alive)), lambda: "the reply was taken")
    return client


def replying_with_a_call_behind(bench: Bench, encoding: str) -> Client:
    """While the reply is written, with a second call sent."""
    client = replying(bench, encoding)
    client.send("getStatus")
    return client


def answered(bench: Bench, encoding: str) -> Client:
    """Between two calls."""
    client = Client(bench.port, encoding)
    client.send("getStatus")
    client.read_reply()
    return client
