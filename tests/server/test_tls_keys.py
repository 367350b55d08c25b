"""Key updates in TLS (RFC 8446, 4.6.3): a client that requests them gets them, and one that reads no answers is
closed."""

from __future__ import annotations

import _ssl
import asyncio
import ctypes
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_cache.server.transports.tls import MAX_ANSWER_BYTES, TlsLayer
from tests.server.conftest import Link, Running, Serve, database
from tests.server.test_tls import Authority, handshakes

KEY_UPDATE_BYTES = 27

_KINDS: dict[str, tuple[type, ...]] = {
    "TLS_client_method": (),
    "SSL_CTX_new": (ctypes.c_void_p,),
    "SSL_new": (ctypes.c_void_p,),
    "SSL_free": (ctypes.c_void_p,),
    "SSL_CTX_free": (ctypes.c_void_p,),
    "SSL_set_fd": (ctypes.c_void_p, ctypes.c_int),
    "SSL_connect": (ctypes.c_void_p,),
    "SSL_key_update": (ctypes.c_void_p, ctypes.c_int),
    "SSL_write": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int),
    "SSL_read": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int),
    "SSL_do_handshake": (ctypes.c_void_p,),
}


class KeyClient:
    """A client of OpenSSL: Python's own cannot request a key update. Replaces a `socket.socket` where `Link` reads."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(True)  # OpenSSL reads the descriptor itself
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        library = ctypes.CDLL(_ssl.__file__)
        self.calls: dict[str, Callable[..., int]] = {}
        for name, kinds in _KINDS.items():
            call = getattr(library, name)
            call.argtypes = kinds
            call.restype = ctypes.c_void_p if name.endswith(("_new", "_method")) else ctypes.c_int
            self.calls[name] = call
        self.context = self.calls["SSL_CTX_new"](self.calls["TLS_client_method"]())
        self.tls = self.calls["SSL_new"](self.context)
        self.calls["SSL_set_fd"](self.tls, sock.fileno())
        assert self.calls["SSL_connect"](self.tls) == 1

    def ask_for_key(self) -> bool:
        """Returns False if the server has closed the connection."""
        assert self.calls["SSL_key_update"](self.tls, 1) == 1
        return self.calls["SSL_do_handshake"](self.tls) == 1

    def change_key(self) -> bool:
        """Changes its sending key without requesting an update. Returns False if the server has closed the
        connection."""
        assert self.calls["SSL_key_update"](self.tls, 0) == 1
        return self.calls["SSL_do_handshake"](self.tls) == 1

    def sendall(self, data: bytes) -> None:
        assert self.calls["SSL_write"](self.tls, data, len(data)) == len(data)

    def recv(self, length: int) -> bytes:
        buffer = ctypes.create_string_buffer(length)
        received = self.calls["SSL_read"](self.tls, buffer, length)
        return buffer.raw[: max(0, received)]

    def settimeout(self, timeout_s: float | None) -> None:
        """It blocks, see `__init__`."""

    def close(self) -> None:
        self.calls["SSL_free"](self.tls)
        self.calls["SSL_CTX_free"](self.context)
        self.sock.close()


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Running:
    if not hasattr(ctypes.CDLL(_ssl.__file__), "SSL_key_update"):
        pytest.skip("this Python hides its OpenSSL")
    return serve(**Authority(tmp_path).settings())


def test_who_asks_for_new_keys_goes_on_with_them(server: Running) -> None:
    client = KeyClient(server.connect())
    try:
        link = Link(client)  # type: ignore[arg-type]
        link.call("create_database", database=database("d"))
        for _ in range(2 * MAX_ANSWER_BYTES // KEY_UPDATE_BYTES // 10):
            for _ in range(10):
                assert client.ask_for_key()
            assert link.call("get_database", name="d").name == "d"
    finally:
        client.close()
    assert handshakes(server) == {"ok": 1}


def test_who_takes_none_of_the_answers_is_let_go(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = TlsLayer.connection_made

    def with_little_room(layer: TlsLayer, transport: asyncio.BaseTransport) -> None:
        # Otherwise, the system accepts 4 MB, which are 150,000 answers.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made(layer, transport)

    monkeypatch.setattr(TlsLayer, "connection_made", with_little_room)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before it connects: a window does not shrink
    sock.connect(("127.0.0.1", server.port))
    client = KeyClient(sock)
    requested = 0
    while client.ask_for_key():
        requested += 1
        assert requested < 50_000
    client.close()
    assert requested > MAX_ANSWER_BYTES // KEY_UPDATE_BYTES
    assert "closing the connection of 127.0.0.1: it asks for new TLS keys and takes no answer" in caplog.text
