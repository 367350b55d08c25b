"""Clients that are refused while they are still sending get the reason: their system must not discard it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Running, Serve, request_bytes
from tests.server.test_bearer_tokens import Issuer, issuer
from tests.server.test_http import open_connections
from tests.server.test_tls import Authority, loop, wait_for

__all__ = ["issuer", "loop"]

MORE = b"\x0b" * 65536
"""What is sent on top, many times more than the buffers of a socket hold."""
TIMES = 250
MAX_MESSAGE_BYTES = 65536


def head(path: str = "/metastore", method: str = "POST", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: here", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


LENGTH = {"Content-Length": str(len(MORE) * TIMES)}
PLAIN: dict[str, tuple[bytes, bytes]] = {
    # what is sent before `MORE`, and a part of the reply
    "a longer message than is allowed": (
        request_bytes("get_database", 1, name="x" * (MAX_MESSAGE_BYTES + 1)),
        b"server.max_message_bytes",
    ),
    "no container of that length": (request_bytes("get_database", 1, name="x")[:-8] + b"\x0f\x00\x01\x0c\x7f", b""),
}
HTTP: dict[str, tuple[bytes, bytes]] = {
    "another path": (head("/elsewhere", **LENGTH), b" 404 "),
    "another method": (head(method="PUT", **LENGTH), b" 405 "),
    "a longer body than is allowed": (head(**{"Content-Length": str(2**40)}), b" 413 "),
    "a body that is no call": (head(**LENGTH), b" 400 "),
    "a header that is too long": (head(x="y" * 100_000), b" 431 "),
    "a long header that does not end": (head(x="y" * 100_000)[:-4], b" 431 "),
    "no HTTP": (request_bytes("getName", 1), b"speaks HTTP"),
}
TOKENS: dict[str, tuple[bytes, bytes]] = {
    "no token": (head(**LENGTH), b" 401 "),
    "a token that is none": (head(Authorization="Bearer no.such.token", **LENGTH), b" 401 "),
}


def heard(sock: socket.socket, begin: bytes) -> bytes:
    """Everything that the server sends to a client that reads only after it has sent everything, or could send no
    more."""
    failed: list[OSError] = []

    def send() -> None:
        try:
            sock.sendall(begin)
            for _ in range(TIMES):
                sock.sendall(MORE)
        except OSError as error:
            failed.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    sender.join()
    answer = bytearray()
    while piece := sock.recv(65536):
        answer += piece
    assert not failed, failed
    return bytes(answer)


def check(server: Running, wrap: Callable[[socket.socket], socket.socket], begin: bytes, expected: bytes) -> None:
    with wrap(server.connect()) as sock:
        answer = heard(sock, begin)
    assert expected in answer and answer, answer[:200]


@pytest.mark.parametrize("name", PLAIN)
def test_by_thrift(serve: Serve, loop: str, name: str) -> None:
    server = serve(**{"server.max_message_bytes": MAX_MESSAGE_BYTES})
    check(server, lambda sock: sock, *PLAIN[name])


@pytest.mark.parametrize("name", PLAIN)
def test_by_thrift_within_tls(serve: Serve, tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    server = serve(**authority.settings(**{"server.max_message_bytes": MAX_MESSAGE_BYTES}))
    check(server, _wrapped(authority), *PLAIN[name])


@pytest.mark.parametrize("name", HTTP)
def test_by_http(serve: Serve, loop: str, name: str) -> None:
    check(serve(**{"server.transport_mode": "http"}), lambda sock: sock, *HTTP[name])


LIMITS = dict.fromkeys(
    (
        "server.message_timeout_s",
        "server.first_call_timeout_s",
        "server.write_timeout_s",
        "server.http_header_timeout_s",
    ),
    0.5,
)


@pytest.mark.parametrize("case", [*PLAIN, *HTTP])
def test_other_limits_end_with_the_refusal(serve: Serve, loop: str, case: str) -> None:
    """A refused client continues to send for longer than a message, a header or a first call may take."""
    begin, expected = (PLAIN | HTTP)[case]
    more = {"server.transport_mode": "http"} if case in HTTP else {"server.max_message_bytes": MAX_MESSAGE_BYTES}
    with serve(**LIMITS, **more).connect() as sock:
        if case != "no HTTP":  # reported with the call's id
            sock.sendall(begin[:16])
            time.sleep(0.1)  # read alone: the time of a header or message begins
            begin = begin[16:]
        sock.sendall(begin)
        for _ in range(6):
            time.sleep(0.2)
            sock.sendall(MORE[:8])
        answer = bytearray()
        while piece := sock.recv(65536):
            answer += piece
    assert expected in answer and answer, answer[:200]


@pytest.mark.parametrize("within_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("name", TOKENS)
def test_without_a_token(serve: Serve, loop: str, issuer: Issuer, tmp_path: Path, name: str, within_tls: bool) -> None:
    authority = Authority(tmp_path)
    settings: dict[str, Any] = {
        "server.transport_mode": "http",
        "authentication.jwt_jwks_url": issuer.url,
        "authentication.jwt_issuer": "issuer",
    }
    if within_tls:
        settings = authority.settings(**settings)
    else:
        settings["security.accept_insecure"] = True
    check(serve(**settings), _wrapped(authority) if within_tls else lambda sock: sock, *TOKENS[name])


def test_plaintext_to_a_port_with_tls(serve: Serve, tmp_path: Path) -> None:
    server = serve(**Authority(tmp_path).settings())
    check(server, lambda sock: sock, request_bytes("getName", 1), b"TLS")


@pytest.mark.parametrize("is_http", [False, True], ids=["thrift", "http"])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_who_takes_no_answers_is_not_waited_for(serve: Serve, tmp_path: Path, is_tls: bool, is_http: bool) -> None:
    authority = Authority(tmp_path)
    settings: dict[str, Any] = {"server.write_timeout_s": 0.5}
    settings |= {"server.transport_mode": "http"} if is_http else {}
    server = serve(**(authority.settings(**settings) if is_tls else settings))
    request = request_bytes("partition_name_to_vals", 1, part_name="p=" + "x" * 200_000)  # answered with its contents
    if is_http:
        request = head(**{"Content-Length": str(len(request))}) + request
    with (_wrapped(authority) if is_tls else lambda sock: sock)(server.connect()) as sock:
        sock.settimeout(1)
        with contextlib.suppress(OSError):
            sock.sendall(request * 100 + b"\xff" * 1000)
        wait_for(lambda: open_connections(server) == 0)


def _wrapped(authority: Authority) -> Callable[[socket.socket], ssl.SSLSocket]:
    context = authority.client()
    return lambda sock: context.wrap_socket(sock, server_hostname="localhost")
