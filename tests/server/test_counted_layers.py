"""What a client has sent counts as buffered wherever it waits: for a turn, for a thread, or for more bytes.

One budget limits it over all connections (`server.buffer_budget_bytes`), and a client that holds too much gets an
error.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from hms_cache.authentication.bearer_tokens import BearerTokens
from hms_cache.authentication.negotiation import ERROR, START
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.transports.http import HttpLimits, HttpPort
from hms_cache.server.transports.sasl import SaslPort
from hms_cache.server.transports.tls import RECORD_BYTES
from tests.server.conftest import Serve, request_bytes
from tests.server.test_layer_turns import (
    Bench,
    http_body,
    protected_frames,
    sasl_frames,
    tls_port,
    tls_records,
)
from tests.server.test_tls import Authority, wait_for

LIMIT_BYTES = 1 << 24

HEAD = b"POST /metastore HTTP/1.1\r\nhost: a\r\n"


def budget_of(bench: Bench) -> BufferBudget:
    return cast(BufferBudget, cast(Any, bench.layer)._buffers)


def http_bench(tokens: BearerTokens | None = None) -> Bench:
    port = HttpPort(
        "metastore",
        tokens,
        HttpLimits(1 << 20, 1 << 20, 60),
        BufferBudget(LIMIT_BYTES, lambda: 0.0),
    )
    return Bench(lambda upper, turns: port.protect(cast(Any, lambda: upper), turns))


def unfinished_header(_: Path) -> tuple[Bench, bytes]:
    return http_bench(), HEAD + b"x: " + b"y" * 200_000


def requests_ahead(_: Path) -> tuple[Bench, bytes]:
    """The call of the first one runs."""
    request = HEAD + b"content-length: 1000\r\n\r\n" + b"x" * 1000
    return http_bench(), request * 200


def a_body_whose_token_is_checked(_: Path) -> tuple[Bench, bytes]:
    class Tokens:
        def cached_identity(self, _: str) -> None:
            return None

    bench = http_bench(cast(BearerTokens, Tokens()))
    cast(Any, bench.layer)._port.threads.submit = lambda *_: None
    head = HEAD + b"authorization: bearer abc\r\ncontent-length: 200000\r\n\r\n"
    return bench, head + b"x" * 200_000


def chunks(_: Path) -> tuple[Bench, bytes]:
    return http_body()


def records(directory: Path) -> tuple[Bench, bytes]:
    return tls_records(Authority(directory))


def frames(_: Path) -> tuple[Bench, bytes]:
    return sasl_frames()


def protected(_: Path) -> tuple[Bench, bytes]:
    return protected_frames()


def unfinished_frame(_: Path) -> tuple[Bench, bytes]:
    return protected_frames()[0], struct.pack("!I", 300_000) + b"x" * 200_000


def hello(length: int) -> bytes:
    """The first part of a ClientHello of this many bytes, in records."""
    body = b"\x01" + struct.pack("!I", 131_000)[1:] + b"\x03\x03" + b"r" * (length - 6)
    parts = [body[start : start + 16384] for start in range(0, length, 16384)]
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(part)) + part for part in parts)


def unfinished_handshake(directory: Path) -> tuple[Bench, bytes]:
    return Bench(tls_port(Authority(directory)).protect), hello(130_000)


class Mechanism:
    complete = False


def negotiating() -> Bench:
    budget = BufferBudget(LIMIT_BYTES, lambda: 0.0)
    port = SaslPort({"PLAIN": cast(Any, Mechanism)}, 60, 60, 1 << 20, budget)
    port.threads.submit = lambda *_: None  # type: ignore[method-assign]
    return Bench(port.protect)


def bytes_behind_a_password(_: Path) -> tuple[Bench, bytes]:
    """The directory does not answer."""
    messages = struct.pack("!BI", START, 5) + b"PLAIN" + struct.pack("!BI", 2, 4) + b"\0u\0p"
    return negotiating(), messages + b"x" * 200_000


def unfinished_response(_: Path) -> tuple[Bench, bytes]:
    return negotiating(), struct.pack("!BI", START, 5) + b"PLAIN" + struct.pack("!BI", 2, 60_000) + b"x" * 50_000


Waiting = Callable[[Path], tuple[Bench, bytes]]

WAITING: dict[Waiting, bytes] = {
    unfinished_header: b"HTTP/1.1 503",
    requests_ahead: b"",  # the call may be executed
    a_body_whose_token_is_checked: b"HTTP/1.1 503",
    chunks: b"HTTP/1.1 503",
    records: b"the connection behind tells it",
    frames: b"the connection behind tells it",
    protected: b"the connection behind tells it",
    unfinished_frame: b"the connection behind tells it",
    unfinished_handshake: b"",
    bytes_behind_a_password: bytes([ERROR]),
    unfinished_response: bytes([ERROR]),
}
"""With the beginning of what its client is told when it is cut off."""


@pytest.mark.parametrize("waiting", WAITING, ids=lambda one: one.__name__)
def test_what_waits_is_counted_until_it_is_read_or_the_client_goes(waiting: Waiting, tmp_path: Path) -> None:
    async def read() -> None:
        bench, data = waiting(tmp_path)
        budget = budget_of(bench)
        assert budget.used_bytes == 0
        bench.layer.data_received(data)
        # A layer may have passed on the first bytes.
        assert len(data) - 2048 <= budget.used_bytes <= 3 * len(data)
        bench.run()
        bench.layer.connection_lost(None)
        assert budget.used_bytes == 0

    asyncio.run(read())


@pytest.mark.parametrize("waiting", [chunks, records, frames, protected], ids=lambda one: one.__name__)
def test_what_is_handed_on_is_counted_no_longer(waiting: Waiting, tmp_path: Path) -> None:
    async def read() -> None:
        bench, data = waiting(tmp_path)
        bench.take(data)
        assert budget_of(bench).used_bytes == 0
        bench.layer.connection_lost(None)

    asyncio.run(read())


@pytest.mark.parametrize("sizes", [[1], [4], [5], [6], [21, 3], [1] * 30, [23], [43]])
def test_a_record_that_has_come_in_part_counts_as_a_whole(sizes: list[int], tmp_path: Path) -> None:
    """OpenSSL allocates 16 KiB for it, although the client may have sent one byte."""

    async def read() -> None:
        bench, data = tls_records(Authority(tmp_path))
        budget = budget_of(bench)
        record_bytes, sent = 5 + int.from_bytes(data[3:5]), 0
        for size in sizes:
            bench.layer.data_received(data[sent : sent + size])
            sent += size
            assert budget.used_bytes == (RECORD_BYTES if sent % record_bytes else 0)
        bench.layer.data_received(data[sent : sent + record_bytes - sent % record_bytes])
        assert budget.used_bytes == 0
        bench.layer.data_received(b"\x17")
        assert budget.used_bytes == RECORD_BYTES
        bench.layer.connection_lost(None)
        assert budget.used_bytes == 0

    asyncio.run(read())


def test_clients_that_begin_a_record_and_wait_are_let_go_for_others(tmp_path: Path) -> None:
    async def read() -> None:
        bench, data = tls_records(Authority(tmp_path))
        budget = budget_of(bench)
        budget.limit_bytes = RECORD_BYTES - 1
        bench.layer.data_received(data[:7])
        assert len(bench.upper.told) == 1 and budget.disconnected == 1
        bench.layer.connection_lost(None)

    asyncio.run(read())


@pytest.mark.parametrize("waiting", WAITING, ids=lambda one: one.__name__)
def test_who_holds_too_much_is_told(waiting: Waiting, tmp_path: Path) -> None:
    async def read() -> None:
        bench, data = waiting(tmp_path)
        budget = budget_of(bench)
        if waiting is not requests_ahead:
            bench.upper.is_busy = False
        aborted: list[bool] = []
        cast(Any, bench.socket).abort = lambda: aborted.append(True)
        cast(Any, bench.socket).writelines = lambda parts: bench.socket.write(b"".join(parts))
        bench.socket.sent.clear()
        budget.limit_bytes = len(data) // 2
        bench.layer.data_received(data)
        told = WAITING[waiting]
        reason = b"setting server.buffer_budget_bytes"
        if told.startswith(b"the connection"):
            assert [reason.decode() in one for one in bench.upper.told] == [True]
        else:
            assert bench.socket.sent.startswith(told)
            assert (reason in bench.socket.sent) == bool(told)
            assert bool(aborted) != bool(told)
        assert budget.disconnected == 1 and budget.used_bytes == 0
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        bench.layer.connection_lost(None)
        assert budget.used_bytes == 0

    asyncio.run(read())


def test_headers_of_many_clients_are_in_the_budget(serve: Serve) -> None:
    server = serve(
        **{
            "server.transport_mode": "http",
            "server.http_max_header_bytes": 1 << 20,
            "server.buffer_budget_bytes": 1 << 20,
        }
    )
    registry = server.service.metrics.registry
    first, second = server.connect(), server.connect()
    first.sendall(HEAD + b"x: " + b"y" * 700_000)
    wait_for(lambda: (registry.get_sample_value("hms_cache_buffered_bytes") or 0) >= 700_000)
    second.sendall(HEAD + b"x: " + b"y" * 500_000)
    answer = b""
    while piece := first.recv(65536):
        answer += piece
    assert answer.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in answer.lower()
    assert b"setting server.buffer_budget_bytes" in answer
    assert registry.get_sample_value("hms_cache_connections_over_buffer_budget_total") == 1
    request = request_bytes("getName", 1)
    second.sendall(b"\r\ncontent-length: %d\r\n\r\n" % len(request) + request)
    assert second.recv(12) == b"HTTP/1.1 200"


def test_what_a_refused_client_sent_is_kept_no_longer(serve: Serve) -> None:
    """It has fifteen seconds to read the error; what it has sent could remain in memory for all that time, some hundred
    KB."""
    server = serve(**{"server.transport_mode": "http"})
    registry = server.service.metrics.registry
    message = request_bytes("partition_name_to_vals", 1, part_name="x" * 100_000)[:-1]
    sock = server.connect()
    sock.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(message) + message + b"\r\n")
    wait_for(lambda: (registry.get_sample_value("hms_cache_buffered_bytes") or 0) > 90_000)
    sock.sendall(b"not a chunk\r\n")
    assert sock.recv(12) == b"HTTP/1.1 400"
    wait_for(lambda: registry.get_sample_value("hms_cache_buffered_bytes") == 0)
    assert registry.get_sample_value("hms_cache_connections") == 1
