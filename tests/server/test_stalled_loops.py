"""A server that stops for longer than its clients' time limits closes none that sent its part meanwhile.

A busy machine, a paused virtual machine, a garbage collection: when the loop continues, the timers are due, and what
the clients sent waits in the sockets. The timers must not be handled first.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app import event_loop
from hms_cache.event_loops import CLIENT_TIME_PARTS, ClientTimer, new_event_loop
from tests.server.conftest import Link, Running, Serve, request_bytes
from tests.server.test_heard_refusals import MAX_MESSAGE_BYTES, head, heard
from tests.server.test_tls import Authority, loop

__all__ = ["loop"]

LIMIT_S = 1.0
LIMITS = {
    "server.message_timeout_s": LIMIT_S,
    "server.write_timeout_s": LIMIT_S,
    "server.tls_handshake_timeout_s": LIMIT_S,
    "server.first_call_timeout_s": LIMIT_S,
    "server.http_header_timeout_s": LIMIT_S,
}
STALL_S = 2.5
"""Longer than `LIMIT_S`, and than a refused client may be silent."""


class Loops:
    """The loops of the servers that a test starts."""

    def __init__(self, make: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._make = make
        self.made: list[asyncio.AbstractEventLoop] = []

    def new(self) -> asyncio.AbstractEventLoop:
        self.made.append(self._make())
        return self.made[-1]

    def read_what_has_come(self) -> None:
        """Returns when it was read."""

        async def turns() -> None:
            for _ in range(20):
                await asyncio.sleep(0.001)

        asyncio.run_coroutine_threadsafe(turns(), self.made[0]).result(30)


@pytest.fixture
def loops(loop: str, monkeypatch: pytest.MonkeyPatch) -> Loops:
    found = Loops(vars(event_loop)["new_event_loop"])
    monkeypatch.setattr(event_loop, "new_event_loop", found.new)
    return found


@contextlib.contextmanager
def stalled(loops: Loops) -> Iterator[None]:
    """The server's loop stops here, and continues some time after the block's end."""
    stands, ends = threading.Event(), threading.Event()

    loop, (ours, its) = loops.made[0], socket.socketpair()

    def stand() -> None:
        began_s = time.monotonic()
        loop.remove_reader(its)
        stands.set()
        assert ends.wait(30)
        time.sleep(max(0.0, began_s + STALL_S - time.monotonic()))

    with ours, its:
        # As it reads a socket: uvloop runs its timers next, and then reads the other sockets.
        loop.call_soon_threadsafe(loop.add_reader, its, stand)
        ours.send(b"x")
        assert stands.wait(30)
        try:
            yield
        finally:
            ends.set()


def taken(server: Running, loops: Loops, sent: bytes) -> socket.socket:
    """A connection whose first bytes the server has read."""
    sock = server.connect()
    sock.sendall(sent)
    loops.read_what_has_come()
    return sock


def test_the_rest_of_a_message(serve: Serve, loops: Loops) -> None:
    server = serve(**LIMITS)
    request = request_bytes("partition_name_to_vals", 1, part_name="p=" + "x" * 5000)
    link = Link(taken(server, loops, request[:-1]))
    link.sequence = 1
    with stalled(loops):
        link.sock.sendall(request[-1:])
    assert link.reply("partition_name_to_vals") == ["x" * 5000]


def test_a_first_call(serve: Serve, loops: Loops) -> None:
    server = serve(**LIMITS)
    link = Link(taken(server, loops, b""))
    with stalled(loops):
        link.sock.sendall(link.request("getName"))
    link.reply("getName")


def test_the_rest_of_a_header(serve: Serve, loops: Loops) -> None:
    server = serve(**{**LIMITS, "server.transport_mode": "http"})
    request = request_bytes("getName", 1)
    first = head(**{"Content-Length": str(len(request))})
    sock = taken(server, loops, first[:-1])
    with stalled(loops):
        sock.sendall(first[-1:] + request)
    assert sock.recv(12) == b"HTTP/1.1 200"


def test_the_rest_of_a_handshake(serve: Serve, loops: Loops, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = serve(**authority.settings(**LIMITS))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    protected = authority.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        protected.do_handshake()
    sock = taken(server, loops, outgoing.read())
    while True:
        incoming.write(sock.recv(65536))
        try:
            protected.do_handshake()
        except ssl.SSLWantReadError:
            continue
        break
    with stalled(loops):
        sock.sendall(outgoing.read())
        protected.write(request_bytes("getName", 1))
        sock.sendall(outgoing.read())
    answer = b""
    while not answer:
        received = sock.recv(65536)
        assert received, "the server closed the connection"
        incoming.write(received)
        with contextlib.suppress(ssl.SSLWantReadError):
            answer = protected.read(65536)
    assert b"getName" in answer


def test_the_rest_of_what_a_refused_client_sends(serve: Serve, loops: Loops) -> None:
    server = serve(**LIMITS, **{"server.max_message_bytes": MAX_MESSAGE_BYTES})
    sock = taken(server, loops, request_bytes("get_database", 1, name="x" * (MAX_MESSAGE_BYTES + 1)))
    with ThreadPoolExecutor(1) as pool:
        with stalled(loops):
            answer = pool.submit(heard, sock, b"")
        assert b"server.max_message_bytes" in answer.result(60)


def test_a_reply_that_is_taken_meanwhile(serve: Serve, loops: Loops) -> None:
    server = serve(**LIMITS)
    text = "x" * 15_000_000
    link = server.link()
    link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    link.sock.sendall(link.request("partition_name_to_vals", part_name="p=" + text))
    assert link.sock.recv(1, socket.MSG_PEEK), "the reply has begun; the client takes none of it"
    received: list[Any] = []
    reader = threading.Thread(target=lambda: received.append(link.reply("partition_name_to_vals")))
    with stalled(loops):
        reader.start()
    reader.join()
    assert received == [[text]]


def run(time_s: float, act: Callable[[asyncio.AbstractEventLoop, ClientTimer], Any]) -> float:
    """How long a timer ran, and the outcome."""
    loop = new_event_loop()
    try:

        async def wait() -> float:
            up = asyncio.Event()
            began_s = loop.time()
            timer = ClientTimer(loop, time_s, up.set)
            act(loop, timer)
            await asyncio.wait_for(up.wait(), 30)
            return loop.time() - began_s

        return loop.run_until_complete(wait())
    finally:
        loop.close()


def test_a_pause_does_not_count() -> None:
    def pause(loop: asyncio.AbstractEventLoop, timer: ClientTimer) -> None:
        timer.pause()
        timer.pause()
        loop.call_later(0.5, timer.resume)

    assert run(0.2, pause) >= 0.5 + 0.2 * (1 - 1 / CLIENT_TIME_PARTS)


def test_a_stall_counts_as_one_part() -> None:
    assert run(0.2, lambda loop, timer: loop.call_soon(time.sleep, 0.5)) >= 0.5 + 0.2 * (1 - 1.5 / CLIENT_TIME_PARTS)
