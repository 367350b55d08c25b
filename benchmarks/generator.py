"""A load generator that is not the bottleneck: sends encoded requests over many connections, and counts replies by
length.

It runs in a separate process, on one thread over `epoll`: a client takes some microseconds a call. The length of each
reply is learned from a first call; a reply of another length ends the run.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from benchmarks.operations import Operation
from hms_cache.wire import METHODS

_CALL = -2147418111
_REPLY_START = b"\x80\x01\x00\x02"
RECEIVE_BYTES = 1 << 20
REPLY_TIMEOUT_S = 60.0
SILENCE_S = 0.25
MAX_PARSED_BYTES = 16 << 10
"""Longer replies are not parsed to learn their length."""


@dataclass(frozen=True, slots=True)
class Load:
    """The measurements of one cell. Times in seconds."""

    clients: int
    calls: int
    seconds: float
    p50_s: float
    p95_s: float
    p99_s: float

    @property
    def calls_per_second(self) -> float:
        """Throughput."""
        return self.calls / self.seconds


def encode_request(method: str, arguments: Any) -> bytes:
    """Returns a call in strict binary encoding, unframed, with sequence id 0."""
    from thrift.protocol import fastbinary

    name = method.encode()
    header = struct.pack("!iI", _CALL, len(name)) + name + b"\0\0\0\0"
    encoded: bytes = fastbinary.encode_binary(arguments, METHODS[method].args_table)
    return header + encoded


class _Client:
    __slots__ = ("expected", "next", "receive", "received", "send", "sent_s", "sock")

    def __init__(self, address: tuple[str, int], start: int) -> None:
        self.sock = socket.create_connection(address, timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.receive, self.send = self.sock.recv_into, self.sock.send
        self.next = start
        self.received = 0
        self.expected = 0
        self.sent_s = 0.0


def _whole_reply(sock: socket.socket, request: bytes) -> int:
    """Sends a request and reads its reply. Returns the length. A large reply ends when nothing more arrives for a
    while."""
    sock.settimeout(REPLY_TIMEOUT_S)
    sock.sendall(request)
    data = bytearray(sock.recv(RECEIVE_BYTES))
    while not _is_whole(data):
        sock.settimeout(SILENCE_S if len(data) > MAX_PARSED_BYTES else REPLY_TIMEOUT_S)
        try:
            more = sock.recv(RECEIVE_BYTES)
        except TimeoutError:
            if len(data) > MAX_PARSED_BYTES:
                break
            raise
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    if bytes(data[:4]) != _REPLY_START or not is_answer(data):
        raise RuntimeError(f"the call failed: {bytes(data[:200])!r}")
    return len(data)


def is_answer(data: bytearray) -> bool:
    """Whether the reply has a result or is empty, and is not an exception that the method declares."""
    (name_length,) = struct.unpack_from("!I", data, 4)
    field_type, field_id = struct.unpack_from("!bh", data + b"\0\0", 4 + 4 + name_length + 4)
    return bool(field_type == TType.STOP or field_id == 0)


def _is_whole(data: bytearray) -> bool:
    if len(data) > MAX_PARSED_BYTES:
        return False
    protocol = TBinaryProtocol(TMemoryBuffer(bytes(data)))
    try:
        protocol.readMessageBegin()
        protocol.skip(TType.STRUCT)
    except (EOFError, struct.error, IndexError):
        return False
    return True


_lengths: dict[tuple[str, bytes], int] = {}


def run(address: str, operation: Operation, clients: int, seconds: float) -> Load:
    """Keeps one call in flight on each of `clients` connections for `seconds`, then waits for the remaining replies.

    All calls count, and the time until the last of them ended. So CPU time per call is also correct for slow calls.
    """
    host, port = address.rsplit(":", 1)
    requests = [encode_request(operation.method, arguments) for arguments in operation.variants]
    probe = socket.create_connection((host, int(port)), timeout=REPLY_TIMEOUT_S)
    for request in requests:
        if (address, request) not in _lengths:
            _lengths[address, request] = _whole_reply(probe, request)
    lengths = [_lengths[address, request] for request in requests]
    probe.close()
    connections = [_Client((host, int(port)), i % len(requests)) for i in range(clients)]
    by_descriptor = {one.sock.fileno(): one for one in connections}
    epoll = select.epoll()
    for descriptor in by_descriptor:
        epoll.register(descriptor, select.EPOLLIN)
    # What one reply costs here is time in which no server is asked: no selector objects, no buffer for each reply.
    buffer = bytearray(RECEIVE_BYTES)
    latencies: list[float] = []
    clock = time.perf_counter
    started = clock()
    end = started + seconds
    for one in connections:
        _send(one, requests, lengths, clock())
    on_their_way = clients
    while on_their_way:
        events = epoll.poll(1.0)
        if not events and clock() > end + REPLY_TIMEOUT_S:
            raise TimeoutError(f"no reply within {REPLY_TIMEOUT_S:g} s")
        for descriptor, _ in events:
            one = by_descriptor[descriptor]
            taken = one.receive(buffer)
            if not taken:
                raise ConnectionError("the server closed a connection")
            one.received += taken
            if one.received >= one.expected:
                if one.received > one.expected:
                    raise RuntimeError("a reply has another length than before: the catalog changes meanwhile")
                now = clock()
                latencies.append(now - one.sent_s)
                if now < end:
                    _send(one, requests, lengths, now)
                else:
                    on_their_way -= 1
    elapsed = clock() - started
    epoll.close()
    for one in connections:
        one.sock.close()
    latencies.sort()

    def quantile(q: float) -> float:
        return latencies[min(len(latencies) - 1, int(len(latencies) * q))]

    return Load(clients, len(latencies), elapsed, quantile(0.5), quantile(0.95), quantile(0.99))


def _send(one: _Client, requests: list[bytes], lengths: list[int], now_s: float) -> None:
    at = one.next
    one.expected = lengths[at]
    one.received = 0
    one.next = at + 1 if at + 1 < len(requests) else 0
    one.sent_s = now_s
    one.send(requests[at])


class GeneratorProcess:
    """Executes `run` in a separate process, so that the measuring program does not slow it down. If a run fails or
    takes far too long, only that run is lost: the process is replaced."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, address: str, operation: Operation, clients: int, seconds: float, limit_s: float = 60.0) -> Load:
        """Runs one cell. Raises RuntimeError if it fails, or takes longer than planned by more than `limit_s`."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        pickle.dump((address, operation, clients, seconds), process.stdin)
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], seconds + limit_s)
        if not ready:
            self.close()
            raise RuntimeError(f"{operation.name}, {clients} clients: no end within {seconds + limit_s:g} s")
        try:
            found = pickle.load(process.stdout)
        except EOFError:
            self.close()
            raise RuntimeError(f"{operation.name}, {clients} clients: the load generator ended") from None
        if isinstance(found, str):
            raise RuntimeError(f"{operation.name}, {clients} clients: {found}")
        assert isinstance(found, Load)
        return found

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "from benchmarks.generator import serve; serve()"]
        root = str(Path(__file__).resolve().parent.parent)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        return self._process


def serve() -> None:
    """The process of `GeneratorProcess`: runs what it reads from standard input until that ends."""
    while True:
        try:
            address, operation, clients, seconds = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found: Load | str = run(address, operation, clients, seconds)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        pickle.dump(found, sys.stdout.buffer)
        sys.stdout.buffer.flush()
