"""A load generator that is not the bottleneck: encoded requests, replies read and counted by length, many connections.

It runs in a process of its own, on one thread over `selectors`: a client costs some microseconds a call. The length of
each reply is learned once, from a first call; the first bytes of every reply are checked.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.operations import Operation
from hms_cache.wire import METHODS

_CALL = -2147418111
_REPLY_START = b"\x80\x01\x00\x02"
RECEIVE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Load:
    """What one cell measured. Times in seconds."""

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
    """A strict binary, unframed call with sequence id 0."""
    from hms_cache.wire.codec import fastbinary

    name = method.encode()
    header = struct.pack("!iI", _CALL, len(name)) + name + b"\0\0\0\0"
    return header + fastbinary.encode_binary(arguments, METHODS[method].args_table)


class _Client:
    __slots__ = ("expected", "next", "received", "sent_s", "sock")

    def __init__(self, address: tuple[str, int], start: int) -> None:
        self.sock = socket.create_connection(address, timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.next = start
        self.received = 0
        self.expected = 0
        self.sent_s = 0.0


def _whole_reply(sock: socket.socket, request: bytes) -> int:
    """Sends a request and reads its reply; the length. A reply ends when nothing more comes for a while."""
    sock.settimeout(60)
    sock.sendall(request)
    data = bytearray(sock.recv(RECEIVE_BYTES))
    sock.settimeout(0.25)
    while True:
        try:
            more = sock.recv(RECEIVE_BYTES)
        except TimeoutError:
            break
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    if bytes(data[:4]) != _REPLY_START:
        raise RuntimeError(f"the call failed: {bytes(data[:200])!r}")
    return len(data)


def run(address: str, operation: Operation, clients: int, seconds: float) -> Load:
    """Keeps one call in flight on each of `clients` connections for `seconds`."""
    host, port = address.rsplit(":", 1)
    requests = [encode_request(operation.method, arguments) for arguments in operation.variants]
    probe = socket.create_connection((host, int(port)))
    lengths = [_whole_reply(probe, request) for request in requests]
    probe.close()
    selector = selectors.DefaultSelector()
    connections = [_Client((host, int(port)), i % len(requests)) for i in range(clients)]
    for one in connections:
        one.sock.setblocking(False)
        selector.register(one.sock, selectors.EVENT_READ, one)
    latencies: list[float] = []
    started = time.perf_counter()
    end = started + seconds
    for one in connections:
        _send(one, requests, lengths)
    now = started
    while now < end:
        for key, _ in selector.select(1.0):
            one = key.data
            one.received += len(one.sock.recv(RECEIVE_BYTES))
            if one.received >= one.expected:
                if one.received > one.expected:
                    raise RuntimeError("a reply has another length than before: the catalog changes meanwhile")
                now = time.perf_counter()
                latencies.append(now - one.sent_s)
                _send(one, requests, lengths)
        now = time.perf_counter()
    elapsed = now - started
    for one in connections:
        one.sock.close()
    latencies.sort()
    if not latencies:
        raise RuntimeError(f"{operation.name}: no call ended within {seconds} s")

    def quantile(q: float) -> float:
        return latencies[min(len(latencies) - 1, int(len(latencies) * q))]

    return Load(clients, len(latencies), elapsed, quantile(0.5), quantile(0.95), quantile(0.99))


def _send(one: _Client, requests: list[bytes], lengths: list[int]) -> None:
    request = requests[one.next]
    one.expected = lengths[one.next]
    one.received = 0
    one.next = (one.next + 1) % len(requests)
    one.sent_s = time.perf_counter()
    one.sock.send(request)


def run_in_process(address: str, operation: Operation, clients: int, seconds: float) -> Load:
    """`run` in a process of its own, so that the measuring program's work is not in the way."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(run, (address, operation, clients, seconds))
