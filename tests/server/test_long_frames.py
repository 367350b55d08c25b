"""Protected frames as long as a whole request: unwrapped outside of the event loop, in order, while others are
answered.

Java's clients make one frame of each request (`TSaslTransport.flush`), so a request of 64 MB is a token of 64 MB.
Threads are held where the order matters: nothing depends on how long something takes.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.server import layer as layer_module
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.transports import sasl as sasl_module
from hms_cache.server.transports.sasl import INLINE_BYTES, SaslPort
from tests.server.conftest import Link, Running, Serve, database, request_bytes
from tests.server.kerberos_realm import REALM, Realm, SaslSocket, realm_of_this_process
from tests.server.test_delegation_tokens import link_over, requested, with_token
from tests.server.test_kerberos import SERVICE, ann, authentications, settings_of
from tests.server.test_layer_turns import Bench
from tests.server.test_tls import wait_for

pytest.importorskip("gssapi")

LONG_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 64 * 1024


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of_this_process(tmp_path_factory.mktemp("realm"), "ann") as running:
        yield running


def by_ticket(server: Running, realm: Realm) -> Link:
    sock = SaslSocket(server.connect())
    assert sock.gssapi(ann(realm), SERVICE, 4) == (5, b"")
    return link_over(sock)


def by_token(server: Running, realm: Realm) -> Link:
    return with_token(server, requested(by_ticket(server, realm), f"ann@{REALM}"), "auth-conf")


def raw_socket(link: Link) -> socket.socket:
    """What it is connected by, without protection."""
    return cast(socket.socket, cast(SaslSocket, link.sock).sock)


class Held:
    """Frames of the server that are unwrapped on threads wait here until `let_go`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = threading.Event()
        self.began = threading.Semaphore(0)
        self.loop_threads: set[str] = set()
        layer = sasl_module.SaslLayer
        original = layer._unwrap_on_thread

        def held(of: Any, protection: Any, token: bytes) -> None:
            class Waiting:
                def unwrap(_, data: bytes) -> bytes:
                    self.loop_threads.add(threading.current_thread().name.rpartition("_")[0])
                    self.began.release()
                    assert self._open.wait(60)
                    return cast(bytes, protection.unwrap(data))

            original(of, Waiting(), token)

        monkeypatch.setattr(layer, "_unwrap_on_thread", held)

    def let_go(self) -> None:
        self._open.set()


@pytest.mark.parametrize(
    ("connect", "size"), [(by_ticket, LONG_BYTES), (by_token, LONG_BYTES // 8)], ids=["GSSAPI", "DIGEST-MD5"]
)
def test_others_are_answered_while_a_long_frame_is_unwrapped(
    serve: Serve,
    realm: Realm,
    monkeypatch: pytest.MonkeyPatch,
    connect: Callable[[Running, Realm], Link],
    size: int,
) -> None:
    """`size`: 3DES takes the test's own client a second for 20 MB."""
    server = serve(**settings_of(realm))
    other = connect(server, realm)
    other.call("create_database", database=database("d"))
    long = connect(server, realm)
    held = Held(monkeypatch)
    handed: list[int] = []
    upper = sasl_module.SaslLayer.run_slice

    def counted(layer: Any) -> None:
        before = len(layer._clear) if layer._clear is not None else 0
        upper(layer)
        if before:
            handed.append(before - (len(layer._clear) if layer._clear is not None else 0))

    monkeypatch.setattr(sasl_module.SaslLayer, "run_slice", counted)
    sent = threading.Thread(
        target=lambda: long.sock.sendall(
            # A call before it and one after it, to check the order of the replies.
            request_bytes("getStatus", 1) + request_bytes("get_databases", 2, pattern="x" * size)
        )
    )
    sent.start()
    assert held.began.acquire(timeout=120)
    # The long frame is being unwrapped until `let_go`.
    for _ in range(100):
        assert other.call("get_database", name="d").name == "d"
    for _ in range(3):
        newcomer = connect(server, realm)
        assert newcomer.call("get_database", name="d").name == "d"
    sent.join()
    long.sock.sendall(request_bytes("getStatus", 3))
    # Not even the first reply has arrived: it would be wrapped in the context that is unwrapping.
    assert select.select([raw_socket(long)], [], [], 0)[0] == []
    held.let_go()
    long.sequence = 1
    assert long.reply("getStatus") == 2
    long.sequence = 2
    assert long.reply("get_databases") == []
    long.sequence = 3
    assert long.reply("getStatus") == 2
    assert held.loop_threads == {"hms-unwrap"}, "never on the loop's thread"
    assert max(handed) <= PIECE_BYTES and sum(handed) >= size, "and it was handed on in pieces, one in a turn"
    assert other.call("get_database", name="d").name == "d"
    assert authentications(server).get("bad_frame") is None


def test_a_long_frame_that_was_changed_ends_its_connection_only(serve: Serve, realm: Realm) -> None:
    server = serve(**settings_of(realm))
    other, long = by_ticket(server, realm), by_ticket(server, realm)
    token = bytearray(long.sock.wrap(b"x" * (4 * INLINE_BYTES)))  # type: ignore[attr-defined]
    token[len(token) // 2] ^= 1
    raw_socket(long).sendall(struct.pack("!I", len(token)) + token)
    assert raw_socket(long).recv(1) == b""
    wait_for(lambda: authentications(server).get("bad_frame") == 1)
    assert other.call("getStatus") == 2


def test_a_client_that_goes_while_its_frame_is_unwrapped_leaves_nothing(
    serve: Serve, realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(**settings_of(realm))
    held = Held(monkeypatch)
    other, gone = by_ticket(server, realm), by_ticket(server, realm)
    gone.sock.sendall(request_bytes("get_database", 1, name="x" * 1_000_000))
    assert held.began.acquire(timeout=60)
    registry = server.service.metrics.registry
    wait_for(lambda: (registry.get_sample_value("hms_cache_buffered_bytes") or 0) >= 2_000_000)
    raw_socket(gone).close()
    assert other.call("getStatus") == 2
    held.let_go()
    wait_for(lambda: registry.get_sample_value("hms_cache_connections") == 1)
    wait_for(lambda: registry.get_sample_value("hms_cache_buffered_bytes") == 0)
    assert other.call("getStatus") == 2


class Protection:
    """Costs nothing, and counts its calls."""

    piece_bytes = 64 * 1024

    def __init__(self) -> None:
        self.wrapped: list[int] = []

    def wrap(self, data: bytes | memoryview) -> bytes:
        self.wrapped.append(len(data))
        return bytes(data)

    def unwrap(self, data: bytes) -> bytes:
        if data.startswith(b"bad"):
            raise AuthenticationError("changed", "bad_message")
        return data


class Writable:
    """The connection behind the layer, as far as it writes."""

    def __init__(self, bench: Bench) -> None:
        self.states: list[str] = []
        upper = cast(Any, bench.upper)
        upper.pause_writing = lambda: self.states.append("paused")
        upper.resume_writing = lambda: self.states.append("resumed")


def protected_bench(budget: BufferBudget | None = None) -> tuple[Bench, Protection, list[bytes]]:
    port = SaslPort({}, 60, 60, 1 << 24, budget or BufferBudget(1 << 26, lambda: 0.0))
    bench = Bench(lambda upper, turns: port.protect(upper, turns))
    layer, protection = cast(Any, bench.layer), Protection()
    layer._negotiation, layer._protection, layer._counted = None, protection, True
    frames: list[bytes] = []
    cast(Any, bench.socket).get_write_buffer_size = lambda: 0
    cast(Any, bench.socket).writelines = lambda parts: frames.append(b"".join(parts))
    return bench, protection, frames


def test_a_long_reply_is_wrapped_by_turns_and_what_is_written_after_it_comes_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def write() -> None:
        bench, protection, frames = protected_bench()
        writable = Writable(bench)
        # A clock with which each token takes longer than a slice.
        monkeypatch.setattr(sasl_module, "perf_counter", lambda: float(len(protection.wrapped)))
        layer = cast(Any, bench.layer)
        layer.write(b"small")
        assert protection.wrapped == [5] and writable.states == []
        layer.writelines([b"x" * 500_000, b"y" * 500_000])
        layer.write(b"after")
        assert protection.wrapped == [5], "the rest is for other turns"
        assert writable.states == ["paused"] and layer.get_write_buffer_size() == 1_000_005
        turns = 0
        while bench.waiting:
            before = len(protection.wrapped)
            bench.waiting.popleft().run_slice()
            turns += 1
            assert len(protection.wrapped) - before == 1, "a token in a turn"
        assert turns >= 1_000_005 // (16 * 1024) and max(protection.wrapped) <= 16 * 1024
        sent = b"".join(frame[4:] for frame in frames)
        assert sent == b"small" + b"x" * 500_000 + b"y" * 500_000 + b"after"
        assert writable.states == ["paused", "resumed"]
        bench.layer.connection_lost(None)

    asyncio.run(write())


def test_a_client_that_takes_nothing_has_little_wrapped_for_it() -> None:
    async def write() -> None:
        bench, protection, _ = protected_bench()
        writable = Writable(bench)
        layer = cast(Any, bench.layer)
        layer.write(b"x" * 1_000_000)
        layer.pause_writing()
        for _ in range(len(bench.waiting)):
            bench.waiting.popleft().run_slice()
        assert not bench.waiting and protection.wrapped == [], "nothing is wrapped that cannot be sent"
        layer.resume_writing()
        assert writable.states == ["paused"], "the connection may write when all is wrapped"
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        assert sum(protection.wrapped) == 1_000_000 and writable.states == ["paused", "resumed"]
        bench.layer.connection_lost(None)

    asyncio.run(write())


def test_a_connection_closes_after_the_whole_reply() -> None:
    async def write() -> None:
        bench, protection, _ = protected_bench()
        closed: list[int] = []
        cast(Any, bench.socket).close = lambda: closed.append(sum(protection.wrapped))
        layer = cast(Any, bench.layer)
        layer.write(b"x" * 300_000)
        layer.close()
        assert layer.is_closing() and not closed
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        assert closed == [300_000]
        bench.layer.connection_lost(None)

    asyncio.run(write())


@pytest.mark.parametrize("lengths", [(200_000,), (10, 200_000, 10), (200_000, 10, 300_000, 10, 10), (100_000,) * 5])
def test_frames_keep_their_order_and_the_clients_end_comes_last(lengths: tuple[int, ...]) -> None:
    async def read() -> None:
        bench, _, _ = protected_bench()
        contents = [bytes([65 + number]) * length for number, length in enumerate(lengths)]
        data = b"".join(struct.pack("!I", len(one)) + one for one in contents)
        for start in range(0, len(data), 256 * 1024):
            bench.layer.data_received(data[start : start + 256 * 1024])
        bench.layer.eof_received()
        for _ in range(10_000):
            await asyncio.sleep(0)
            while bench.waiting:
                before = len(bench.upper.received)
                bench.waiting.popleft().run_slice()
                assert len(bench.upper.received) - before <= 128 * 1024
            if bench.upper.ended_after is not None:
                break
            await asyncio.sleep(0.001)
        assert bench.upper.received == b"".join(contents)
        assert bench.upper.ended_after == sum(lengths)
        assert bench.socket.is_read
        bench.layer.connection_lost(None)

    asyncio.run(read())


def test_what_is_written_while_a_frame_is_unwrapped_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two use one context of the library."""

    async def both() -> None:
        bench, protection, frames = protected_bench()
        opened, began = threading.Event(), threading.Event()

        def unwrap(data: bytes) -> bytes:
            began.set()
            assert opened.wait(60)
            return data

        monkeypatch.setattr(protection, "unwrap", unwrap)
        content = b"x" * (2 * INLINE_BYTES)
        bench.layer.data_received(struct.pack("!I", len(content)) + content)
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        await asyncio.get_running_loop().run_in_executor(None, began.wait, 60)
        cast(Any, bench.layer).write(b"reply")
        assert not bench.waiting and protection.wrapped == []
        opened.set()
        while len(bench.upper.received) < len(content):
            await asyncio.sleep(0.001)
            while bench.waiting:
                bench.waiting.popleft().run_slice()
        assert protection.wrapped == [5] and frames[0][4:] == b"reply"
        bench.layer.connection_lost(None)

    asyncio.run(both())


def test_bytes_of_long_frames_count_and_are_given_back() -> None:
    async def read() -> None:
        budget = BufferBudget(1 << 26, lambda: 0.0)
        bench, _, _ = protected_bench(budget)
        content = b"x" * 3_000_000
        data = struct.pack("!I", len(content)) + content
        bench.layer.data_received(data[:2_000_000])
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        assert budget.used_bytes == 2_000_000
        bench.layer.data_received(data[2_000_000:])
        most = 0
        while len(bench.upper.received) < len(content):
            await asyncio.sleep(0.001)
            while bench.waiting:
                bench.waiting.popleft().run_slice()
                most = max(most, budget.used_bytes)
        assert most >= 3_000_000 - PIECE_BYTES and budget.used_bytes == 0
        bench.layer.connection_lost(None)

    asyncio.run(read())


def test_no_frame_is_unwrapped_for_who_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that is closed while the rest of its frame waits for turns."""

    async def read() -> None:
        bench, _, _ = protected_bench()
        content = b"x" * 1_000_000
        bench.layer.data_received(struct.pack("!I", len(content)) + content)
        while not bench.upper.received:
            await asyncio.sleep(0.001)
            for _ in range(len(bench.waiting)):
                bench.waiting.popleft().run_slice()
                if bench.upper.received:
                    break
        bench.layer.connection_lost(None)
        received = len(bench.upper.received)
        while bench.waiting:
            bench.waiting.popleft().run_slice()
        assert len(bench.upper.received) == received < len(content)

    asyncio.run(read())


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), max_size=12),
    bad=st.none() | st.integers(0, 11),
    portion=st.integers(1, 200),
    replies=st.lists(st.integers(0, 90), max_size=6),
)
def test_frames_of_all_lengths_arrive_and_replies_leave_in_order(
    lengths: list[int], bad: int | None, portion: int, replies: list[int]
) -> None:
    """With small limits: long frames, which use threads and turns, are mixed with short ones."""

    async def both_ways() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("INLINE_BYTES", 16), ("_HANDED_BYTES", 7), ("_PIECE_BYTES", 11)):
                patch.setattr(sasl_module, name, value)
            patch.setattr(layer_module, "DIRECT_BYTES", 20)
            budget = BufferBudget(1 << 26, lambda: 0.0)
            bench, _, frames = protected_bench(budget)
            Writable(bench)
            layer = cast(Any, bench.layer)
            contents = [bytes([65 + number]) * length for number, length in enumerate(lengths)]
            if bad is not None and bad < len(contents):
                contents[bad] = b"bad" + contents[bad]
            data = b"".join(struct.pack("!I", len(one)) + one for one in contents)
            left = [bytes([97 + number]) * length for number, length in enumerate(replies)]
            written = b""
            position = idle = 0
            while idle < 50 and bench.upper.ended_after is None:
                if position < len(data) and not layer._holds:
                    layer.data_received(data[position : position + portion])
                    position += portion
                elif left and not layer._closing:
                    reply = left.pop(0)
                    layer.write(reply)
                    written += reply
                elif position >= len(data) and idle == 0 and not layer._closing:
                    layer.eof_received()
                moved = bool(bench.waiting)
                if bench.waiting:
                    bench.waiting.popleft().run_slice()
                await asyncio.sleep(0.0005 if layer._unwrapping_bytes else 0)
                idle = 0 if moved or layer._unwrapping_bytes or position < len(data) else idle + 1
                if layer._closing:
                    break
            while bench.waiting and not layer._closing:
                bench.waiting.popleft().run_slice()
            good = contents if bad is None or bad >= len(contents) else contents[:bad]
            if bad is None or bad >= len(contents):
                assert bench.upper.received == b"".join(good)
                assert b"".join(frame[4:] for frame in frames) == written
            else:
                assert layer._closing and b"".join(good).startswith(bytes(bench.upper.received))
            layer.connection_lost(None)
            layer._port.close()
            assert budget.used_bytes == 0

    asyncio.run(both_ways())
