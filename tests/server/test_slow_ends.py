"""A conversation that ends while its last reply is read slowly ends once, and after the whole reply.

`no_callback_fails` of `conftest.py` detects an end that is reported twice, as asyncio's own transports do if they are
closed while they report that the client has caught up.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.server.conftest import Serve, database, request_bytes, table
from tests.server.test_heard_refusals import head
from tests.server.test_http_answers_owed import open_connections
from tests.server.test_tls import Authority, loop, wait_for

__all__ = ["loop"]

LARGE_BYTES = 7_000_000
"""More than the system takes of a reply by itself."""


ENDINGS = ("the client half-closes", "the client asks for the end", "the server stops")


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize(
    ("transport", "ending"),
    [
        (transport, ending)
        for transport in ("plain", "tls", "http")
        for ending in ENDINGS
        if (transport, ending) != ("tls", ENDINGS[0])  # Python's TLS has no half-close
    ],
)
def test_the_reply_is_whole_and_the_end_is_told_once(serve: Serve, tmp_path: Path, transport: str, ending: str) -> None:
    authority = Authority(tmp_path)
    settings = {"tls": authority.settings(), "http": {"server.transport_mode": "http"}}.get(transport, {})
    server = serve(**{"server.max_message_bytes": 1 << 25}, **settings)

    def send(sock: socket.socket, call: bytes) -> None:
        sock.sendall(head(**{"Content-Length": str(len(call))}) + call if transport == "http" else call)

    def connect() -> socket.socket:
        sock = server.connect()
        return authority.client().wrap_socket(sock, server_hostname="localhost") if transport == "tls" else sock

    with connect() as sock:
        for call in (
            request_bytes("create_database", 1, database=database("d")),
            request_bytes("create_table", 2, tbl=table("d", "t", comment="x" * LARGE_BYTES)),
        ):
            send(sock, call)
            assert sock.recv(4096)
    with connect() as sock:
        send(sock, request_bytes("get_table", 3, dbname="d", tbl_name="t"))
        begin = sock.recv(10)
        stopping = threading.Thread(target=server.service.stop)
        if ending == "the client half-closes":
            sock.shutdown(socket.SHUT_WR)
        elif ending == "the server stops":
            stopping.start()
        else:
            send(sock, request_bytes("shutdown", 4))
        received = len(begin)
        while piece := sock.recv(1 << 20):
            received += len(piece)
        assert received > LARGE_BYTES
        if stopping.ident is not None:
            stopping.join()
        else:
            wait_for(lambda: open_connections(server) == 0)
