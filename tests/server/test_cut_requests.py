"""Thrift over HTTP: requests that are cut anywhere do not hold resources of the server for long.

If a client ends, or a proxy gives up, its socket is closed, and an incomplete request remains. Only the server can end
that connection then: the operating system reports the client's end once.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.conftest import Running, Serve, request_bytes
from tests.server.test_http_answers_owed import HTTP, answer_on, open_connections
from tests.server.test_tls import Authority, loop, wait_for

__all__ = ["loop"]

LONG_S = 3600.0
TIME_LIMITS = (
    "server.first_call_timeout_s",
    "server.http_header_timeout_s",
    "server.message_timeout_s",
    "server.write_timeout_s",
)
SHORT_S = 0.5
BODY_CUTS = 6
"""Of each request's body, evenly."""

CALL = request_bytes("getStatus", 1)
ON_A_THREAD = request_bytes("get_open_txns", 1)
LONG = request_bytes("partition_name_to_vals", 1, part_name="p=" + "x" * 5000)
"""Decoded in a turn of its own."""


def one_way(call: bytes) -> bytes:
    """The same call by a client that expects no reply."""
    return call[:3] + b"\x04" + call[4:]


def with_length(call: bytes, more: int = 0) -> bytes:
    return b"POST /metastore HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % (len(call) + more) + call


def in_chunks(call: bytes, trailers: bytes = b"") -> bytes:
    half = len(call) // 2
    chunks = b"".join(b"%x;of=two\r\n%s\r\n" % (len(part), part) for part in (call[:half], call[half:]))
    return (
        b"POST /metastore HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunks
        + b"0\r\n%s\r\n" % trailers
    )


REQUESTS = {
    "a length": with_length(CALL),
    "chunks": in_chunks(CALL),
    "chunks and trailers": in_chunks(CALL, b"a: b\r\nc: d\r\n"),
    "a call on a thread": with_length(ON_A_THREAD),
    "chunks of a call on a thread": in_chunks(ON_A_THREAD),
    "a long call": with_length(LONG),
    "chunks of a long call": in_chunks(LONG),
    "a one-way call on a thread": with_length(one_way(ON_A_THREAD)),
    "a long one-way call": in_chunks(one_way(LONG)),
    "a longer body than the call": with_length(ON_A_THREAD, more=1) + b"x",
}


def beginnings(request: bytes) -> list[bytes]:
    """In its header, after it, and in its body."""
    body = request.index(b"\r\n\r\n") + 4
    step = max(1, (len(request) - body) // BODY_CUTS)
    lengths = [1, body - 1, *range(body, len(request), step), len(request) - 2, len(request) - 1]
    return [request[:length] for length in lengths]


def read_to_the_end(sock: socket.socket) -> bytes:
    """Everything sent until the server closes the connection; one that stays open is a failure."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            received += piece
    return bytes(received)


def connected(server: Running, context: ssl.SSLContext | None = None) -> socket.socket:
    """A client that has received a reply: its connection is not one of those that are closed to make room."""
    sock = server.connect()
    if context is not None:
        sock = context.wrap_socket(sock, server_hostname="localhost")
    sock.sendall(with_length(CALL))
    assert answer_on(sock)[0] == 200
    return sock


@pytest.mark.parametrize(("loop", "tls"), [("uvloop", False), ("asyncio", False), ("uvloop", True)], indirect=["loop"])
def test_a_client_that_has_gone_is_let_go_at_once(serve: Serve, loop: str, tmp_path: Path, tls: bool) -> None:
    """At any point, no time limit is needed; a client that only sends no more gets the error that its request is
    incomplete."""
    authority = Authority(tmp_path)
    server = serve(**HTTP, **(authority.settings() if tls else {}), **dict.fromkeys(TIME_LIMITS, LONG_S))
    context = authority.client() if tls else None
    clients = []
    for name, request in REQUESTS.items():
        for sent in (*beginnings(request), request):
            sock = connected(server, context)
            sock.sendall(sent)
            socket.socket.shutdown(sock, socket.SHUT_WR)  # with TLS, too, as when a process has ended
            clients.append((sock, name, sent))
    for sock, name, sent in clients:
        answer = read_to_the_end(sock)
        if b"\r\n\r\n" not in sent:
            assert answer == b"", (name, sent)
        elif sent == REQUESTS[name]:
            assert answer.startswith(b"HTTP/1.1 200 "), name
        else:
            assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 ")), (name, sent)
    wait_for(lambda: open_connections(server) == 0)


def test_a_client_that_stalls_is_closed(serve: Serve) -> None:
    """Any part of a request may be missing: the call, the end of its chunks, or what follows them."""
    server = serve(**HTTP, **dict.fromkeys(TIME_LIMITS, SHORT_S))
    for request in REQUESTS.values():
        for sent in beginnings(request):
            connected(server).sendall(sent)
    wait_for(lambda: open_connections(server) == 0)


@pytest.mark.parametrize("call", [one_way(ON_A_THREAD), one_way(LONG)], ids=["on a thread", "long"])
def test_a_one_way_call_of_any_kind_has_its_empty_answer(serve: Serve, loop: str, call: bytes) -> None:
    """It gets its reply when the call is over, and the next request is served."""
    server = serve(**HTTP)
    with server.connect() as sock:
        for _ in range(3):
            sock.sendall(with_length(call))
            assert answer_on(sock) == (200, b"")
        sock.sendall(with_length(CALL))
        assert answer_on(sock)[0] == 200


@pytest.mark.parametrize("length", [len(LONG) // 2, len(LONG) - 1])
def test_a_long_body_that_is_no_whole_call_is_refused_when_it_ends(serve: Serve, loop: str, length: int) -> None:
    """Like a short one: the server does not wait for more of it."""
    server = serve(**HTTP, **dict.fromkeys(TIME_LIMITS, LONG_S))
    with server.connect() as sock:
        sock.sendall(with_length(LONG[:length]))
        assert answer_on(sock) == (400, b"the body is not a whole call of Thrift\n")
