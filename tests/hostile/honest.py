"""Honest clients in a process: ``python -m tests.hostile.honest PORT [CONNECTIONS [METHOD…]]``, until its input ends.

They are to measure the server only, so they do little: requests and replies are prepared bytes, one thread waits for
all connections, and there is no garbage collection. Prints a line when they start, and JSON at the end: `count`,
`p50_ms`, `p99_ms`, `max_ms`.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from statistics import quantiles
from time import perf_counter

CONNECTIONS = 4

MAX_WAIT_S = 30.0

PAUSE_S = 0.005
"""Between a reply and the connection's next request."""


def _request(method: bytes, arguments: bytes) -> bytes:
    return b"\x80\x01\x00\x01" + struct.pack("!i", len(method)) + method + b"\0\0\0\7" + arguments


REQUESTS = {
    "getName": _request(b"getName", b"\0"),
    "get_database": _request(b"get_database", b"\x0b\0\1\0\0\0\7default\0"),
}
"""One that the server answers at once, and one that is read from the catalog. In turns, unless methods are named."""

SETTLE_S = 0.05
"""A reply that was asked for before the measuring begins has ended when so long nothing came."""


class Client:
    """A connection that sends a request, waits for the whole reply, and pauses."""

    def __init__(self, port: int, requests: Sequence[bytes]) -> None:
        self._requests = requests
        self.link = socket.create_connection(("127.0.0.1", port), timeout=MAX_WAIT_S)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = [self._first_reply(request) for request in requests]
        self._calls = 0
        self._got = b""
        self.requested_s: float | None = None
        """When; None in a pause."""
        self.next_s = 0.0
        """When the pause ends."""

    def _first_reply(self, request: bytes) -> bytes:
        """The bytes that each later reply must consist of."""
        self.link.settimeout(MAX_WAIT_S)
        self.link.sendall(request)
        reply = self.link.recv(1 << 16)
        assert reply[:4] == b"\x80\x01\x00\x02", reply
        self.link.settimeout(SETTLE_S)
        try:
            while more := self.link.recv(1 << 16):
                reply += more
        except TimeoutError:
            pass
        self.link.settimeout(MAX_WAIT_S)
        return reply

    def ask(self) -> None:
        """Sends the next request."""
        request = self._requests[self._calls % len(self._requests)]
        self.requested_s = perf_counter()
        self.link.sendall(request)

    def read(self) -> float | None:
        """Reads the available bytes. Returns the duration of the call if its reply is complete."""
        self._got += self.link.recv(1 << 16)
        now_s = perf_counter()
        expected = self._replies[self._calls % len(self._replies)]
        if self.requested_s is None or not expected.startswith(self._got) or not self._got:
            raise AssertionError(f"{self._got[:200]!r} is not {expected[:200]!r}")
        if len(self._got) < len(expected):
            return None
        took_s = now_s - self.requested_s
        self._calls += 1
        self._got = b""
        self.requested_s = None
        self.next_s = now_s + PAUSE_S
        return took_s


def measure(port: int, connections: int, methods: Sequence[str]) -> list[float]:
    """Returns the duration of each call, until the input ends."""
    chosen = selectors.DefaultSelector()
    clients = [Client(port, [REQUESTS[name] for name in methods]) for _ in range(connections)]
    for client in clients:
        chosen.register(client.link, selectors.EVENT_READ, client)
    chosen.register(sys.stdin, selectors.EVENT_READ)
    waits: list[float] = []
    gc.collect()
    gc.disable()
    if hasattr(os, "SCHED_FIFO"):
        # A client on another machine does not wait for the server's processor. As far as the system permits it.
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        now_s = perf_counter()
        for client in clients:
            if client.requested_s is None and client.next_s <= now_s:
                client.ask()
        pauses = [client.next_s for client in clients if client.requested_s is None]
        for key, _ in chosen.select(max(0.0, min(pauses) - perf_counter()) if pauses else None):
            if key.data is None:
                return waits
            if (took_s := key.data.read()) is not None:
                waits.append(took_s)


def summary(waits_s: list[float]) -> dict[str, float]:
    """For all calls together."""
    cuts = quantiles(waits_s, n=100)
    values = {"p50_ms": cuts[49], "p99_ms": cuts[98], "max_ms": max(waits_s)}
    return {"count": len(waits_s)} | {name: round(value_s * 1000, 4) for name, value_s in values.items()}


if __name__ == "__main__":
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else CONNECTIONS
    sys.stdout.write(json.dumps(summary(measure(int(sys.argv[1]), wanted, sys.argv[3:] or list(REQUESTS)))) + "\n")
