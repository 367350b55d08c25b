"""A client that sends its requests and its end at once gets all replies, over each transport."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from tests.server.conftest import Serve, request_bytes, table
from tests.server.test_tls import Authority

SIZES = {"short": 0, "longer than what is read at once": 3000, "longer than a TLS record": 40_000}


class Memory:
    """TLS of a client in memory: it sends one packet."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock, self._in, self._out = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._sock.sendall(self._out.read())
                self._in.write(self._sock.recv(65536))
        self._sock.sendall(self._out.read())

    def say_all(self, data: bytes) -> None:
        """The data and TLS's end, in one packet."""
        self._tls.write(data)
        with suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._sock.sendall(self._out.read())

    def hear_all(self) -> bytes:
        while data := self._sock.recv(65536):
            self._in.write(data)
        self._in.write_eof()
        heard = b""
        with suppress(ssl.SSLError):
            while piece := self._tls.read(65536):
                heard += piece
        return heard


class Plain:
    """The same without TLS."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def say_all(self, data: bytes) -> None:
        self._sock.sendall(data)
        self._sock.shutdown(socket.SHUT_WR)

    def hear_all(self) -> bytes:
        heard = b""
        while data := self._sock.recv(65536):
            heard += data
        return heard


@pytest.mark.parametrize("is_protected", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("mode", ["binary", "http"])
def test_all_answers_are_heard(serve: Serve, tmp_path: Path, mode: str, is_protected: bool) -> None:
    authority = Authority(tmp_path)
    server = serve(**{"server.transport_mode": mode}, **(authority.settings() if is_protected else {}))

    def request(number: int, size: int) -> bytes:
        body = request_bytes("create_table", number, tbl=table("default", f"t{number}", comment="x" * size))
        head = b"POST /metastore HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)
        return head + body if mode == "http" else body

    numbers = iter(range(1, 1000))
    for name, size in SIZES.items():
        for count in (1, 3):
            sock = server.connect()
            client = Memory(sock, authority.client()) if is_protected else Plain(sock)
            client.say_all(b"".join(request(next(numbers), size) for _ in range(count)))
            heard = client.hear_all()
            assert len(re.findall(b"create_table", heard)) == count, (name, count, heard[:200])
            sock.close()
