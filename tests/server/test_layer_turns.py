"""The layers between a socket and a connection read in slices: no sequence of bytes blocks the event loop for long.

The clock here advances with the bytes that reach the connection: `ITEM_S` for each, as each comes in a record, a frame
or a chunk of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from hms_cache.event_loops import ClientTimer
from hms_cache.server import layer as layer_module
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.fairness import SLICE_S, RoundRobin, Waiter
from hms_cache.server.layer import FIRST_PIECE_BYTES, Layer
from hms_cache.server.transports import http as http_module
from hms_cache.server.transports.http import HttpLimits, HttpPort
from hms_cache.server.transports.plain_calls import refusal_of_plain_call
from hms_cache.server.transports.sasl import SaslPort
from hms_cache.server.transports.tls import TlsPort
from tests.server.test_tls import Authority

ITEM_S = 5e-6

ITEMS = 20_000

LIMIT_S = 0.1
"""Of clients, where a test waits for longer."""

MAX_ITEMS = FIRST_PIECE_BYTES // 4 + SLICE_S / ITEM_S
"""In one go: the first piece is taken on trust; the shortest frame of a byte has five."""


class Upper(asyncio.Protocol):
    """The connection behind."""

    has_refused_bytes = False
    one_way_refusal = ""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended_after: int | None = None
        self.told: list[str] = []
        """Why it was cut off."""
        self.is_busy = True

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> bool:
        self.ended_after = len(self.received)
        return True

    def disconnect(self, reason: str) -> None:
        self.told.append(reason)

    def end_calls(self) -> None:
        self.is_busy = False

    def is_idle(self) -> bool:
        return not self.is_busy

    def is_decoding(self) -> bool:
        return True


class Socket:
    """What is below the layer."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.is_read = True

    def write(self, data: bytes) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Bench:
    """A layer, and what is above and below it."""

    slice_s = SLICE_S

    def __init__(self, protect: Callable[[Upper, RoundRobin], Layer]) -> None:
        self.waiting: deque[Waiter] = deque()
        self.upper, self.socket = Upper(), Socket()
        self.layer = protect(self.upper, cast(RoundRobin, self))
        self.layer.connection_made(cast(asyncio.Transport, self.socket))

    def later(self, _address: str, waiter: Waiter) -> None:
        self.waiting.append(waiter)

    def run(self) -> list[int]:
        """All turns. Returns how many bytes each passed on."""
        handed = []
        while self.waiting:
            before = len(self.upper.received)
            assert not self.socket.is_read, "what comes meanwhile would have no limit"
            self.waiting.popleft().run_slice()
            handed.append(len(self.upper.received) - before)
        return handed

    def take(self, data: bytes) -> list[int]:
        """Passes on bytes from the socket, as a loop reads them. Returns how many bytes each turn passed on."""
        handed = []
        for start in range(0, len(data), 256 * 1024):
            before = len(self.upper.received)
            self.layer.data_received(data[start : start + 256 * 1024])
            handed += [len(self.upper.received) - before, *self.run()]
        return handed


def http_body() -> tuple[Bench, bytes]:
    """A body in chunks of a byte."""
    port = HttpPort(
        "metastore",
        None,
        HttpLimits(1 << 15, 1 << 20, 60),
        BufferBudget(1 << 24, lambda: 0.0),
    )
    head = b"POST /metastore HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    return Bench(
        lambda upper, round_robin: port.protect(cast(Any, lambda: upper), round_robin)
    ), head + b"1\r\nx\r\n" * ITEMS


class TlsClient:
    """The client's end in memory."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        self.tls = trusting.wrap_bio(self.incoming, self.outgoing)

    def handshake(self) -> bytes:
        """Continues the handshake. Returns what is to be sent."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()


def tls_port(authority: Authority) -> TlsPort:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server_file)
    return TlsPort(context, 60, refusal_of_plain_call, BufferBudget(1 << 24, lambda: 0.0))


def tls_records(authority: Authority) -> tuple[Bench, bytes]:
    """Records of one byte."""
    port = tls_port(authority)
    bench = Bench(port.protect)
    client = TlsClient()
    for _ in range(3):
        bench.take(client.handshake())
        client.incoming.write(bytes(bench.socket.sent))
        bench.socket.sent.clear()
    assert port.outcomes["ok"] == 1
    for _ in range(ITEMS):
        client.tls.write(b"x")
    return bench, client.outgoing.read()


def sasl_frames() -> tuple[Bench, bytes]:
    """Unprotected frames of one byte."""
    port = SaslPort({}, 60, 60, 1 << 20, BufferBudget(1 << 24, lambda: 0.0))
    bench = Bench(port.protect)
    cast(Any, bench.layer)._negotiation = None
    return bench, struct.pack("!I", 1).join([b""] + [b"x"] * ITEMS)


def protected_frames() -> tuple[Bench, bytes]:
    """Frames of one byte, each of which is unwrapped."""

    class Protection:
        def unwrap(self, token: bytes) -> bytes:
            return token

    bench, frames = sasl_frames()
    cast(Any, bench.layer)._protection = Protection()
    return bench, frames


@pytest.mark.parametrize("kind", ["http", "tls", "sasl", "protected"])
def test_the_smallest_parts_are_read_in_slices(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read() -> None:
        made = {"http": http_body, "sasl": sasl_frames, "protected": protected_frames}
        bench, data = tls_records(Authority(tmp_path)) if kind == "tls" else made[kind]()
        for module in (layer_module, http_module):
            monkeypatch.setattr(module, "perf_counter", lambda: len(bench.upper.received) * ITEM_S)
        handed = bench.take(data)
        assert bench.upper.received == b"x" * ITEMS
        assert max(handed) <= MAX_ITEMS
        assert bench.socket.is_read
        bench.layer.connection_lost(None)

    asyncio.run(read())


def test_handshakes_take_turns(tmp_path: Path) -> None:
    """Each handshake signs for a millisecond: a crowd of them does not come between two calls of others."""

    async def read() -> None:
        port = tls_port(Authority(tmp_path))
        crowd = [Bench(port.protect) for _ in range(5)]
        for bench in crowd:
            bench.layer.data_received(TlsClient().handshake())
            assert not bench.socket.sent and not bench.socket.is_read
        for bench in crowd:
            bench.run()
            assert bench.socket.sent and bench.socket.is_read
            bench.layer.connection_lost(None)

    asyncio.run(read())


@pytest.mark.parametrize("kind", ["tls", "sasl", "protected"])
def test_the_clients_end_comes_after_what_it_sent(kind: str, tmp_path: Path) -> None:
    async def read() -> None:
        made = {"sasl": sasl_frames, "protected": protected_frames}
        bench, data = tls_records(Authority(tmp_path)) if kind == "tls" else made[kind]()
        bench.layer.data_received(data)
        assert bench.layer.eof_received()
        assert bench.upper.ended_after is None
        bench.run()
        assert bench.upper.ended_after == ITEMS
        bench.layer.connection_lost(None)

    asyncio.run(read())


def http_over_tls(authority: Authority) -> Bench:
    """The header has begun to arrive."""
    port = tls_port(authority)
    http = HttpPort(
        "metastore",
        None,
        HttpLimits(1 << 15, 1 << 20, LIMIT_S),
        BufferBudget(1 << 24, lambda: 0.0),
    )
    return Bench(
        lambda upper, round_robin: port.protect(
            cast(Any, http.protect(cast(Any, lambda: upper), round_robin)), round_robin
        )
    )


def sasl_over_tls(authority: Authority) -> Bench:
    """The negotiation has begun."""
    port = tls_port(authority)
    sasl = SaslPort({}, LIMIT_S, LIMIT_S, 1 << 20, BufferBudget(1 << 24, lambda: 0.0))
    return Bench(lambda upper, round_robin: port.protect(sasl.protect(upper, round_robin), round_robin))


def frames_over_tls(authority: Authority) -> Bench:
    """A frame has begun to arrive."""
    bench = sasl_over_tls(authority)
    layer = cast(Any, bench.layer)._upper
    layer._stop_timer()
    layer._negotiation, layer._counted = None, True
    return bench


@pytest.mark.parametrize(
    ("made", "first", "rest"),
    [
        (http_over_tls, b"POST /metastore HTTP/1.1\r\nhost: a\r\nx: ", b"y" * 8000),
        (sasl_over_tls, b"\x01\0\0\0", b"\x05PLAIN" * 2000),
        (frames_over_tls, b"\0\0\x20\0", b"x" * 8000),
    ],
)
def test_the_time_of_a_client_stands_still_while_what_it_sent_waits_below(
    made: Callable[[Authority], Bench], first: bytes, rest: bytes, tmp_path: Path
) -> None:
    async def read() -> None:
        bench = made(Authority(tmp_path))
        aborted: list[bool] = []
        cast(Any, bench.socket).abort = lambda: aborted.append(True)
        client = TlsClient()
        for _ in range(3):
            bench.take(client.handshake())
            client.incoming.write(bytes(bench.socket.sent))
            bench.socket.sent.clear()
        client.tls.write(first)
        bench.layer.data_received(client.outgoing.read())
        bench.run()
        client.tls.write(rest)
        bench.layer.data_received(client.outgoing.read())
        assert bench.waiting and not aborted

        async def thrice_the_time() -> None:
            up = asyncio.Event()
            ClientTimer(asyncio.get_running_loop(), 3 * LIMIT_S, up.set)
            await up.wait()

        await thrice_the_time()
        assert not aborted, "its part was done"
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        await thrice_the_time()
        is_refused = bool(bench.socket.sent)
        assert bool(aborted) or is_refused, "it goes on then"
        bench.layer.connection_lost(None)

    asyncio.run(read())
