"""Clients that connect, send and reset before the server has accepted them: nothing is executed for them.

Their bytes can still be read then, but the system no longer knows their address.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from hms_cache.app.management_protocol import ConnectionLimits, GuardedProtocol
from tests.server.conftest import Serve, database, request_bytes
from tests.server.test_heard_refusals import head
from tests.server.test_http import open_connections
from tests.server.test_stalled_loops import Loops, loops
from tests.server.test_tls import loop, wait_for

__all__ = ["loop", "loops"]

MANY = 20


def send_and_reset(address: tuple[str, int], data: bytes) -> None:
    with socket.create_connection(address) as sock:
        sock.sendall(data)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def standing(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The loop accepts no connections meanwhile."""
    stands, ends = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        assert ends.wait(30)

    loop.call_soon_threadsafe(stand)
    assert stands.wait(30)
    try:
        yield
    finally:
        ends.set()


@pytest.mark.parametrize("mode", ["binary", "http"])
def test_no_call_is_carried_out_for_an_unknown_address(
    serve: Serve, loops: Loops, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise such a client changed the catalog, and the audit log contained `ip=local`."""
    server = serve(**{"server.transport_mode": mode, "server.audit": "all"})
    caplog.set_level("INFO", "hms_cache.audit")

    def request(name: str) -> bytes:
        call = request_bytes("create_database", 1, database=database(name))
        return call if mode == "binary" else head(**{"Content-Length": str(len(call))}) + call

    def told() -> list[str]:
        return [line for line in caplog.messages if "cmd=create_database" in line]

    with standing(loops.made[0]):
        for number in range(MANY):
            send_and_reset(("127.0.0.1", server.port), request(f"d{number}"))
    wait_for(lambda: open_connections(server) == 0)
    with server.connect() as sock:
        sock.sendall(request("honest"))
        assert sock.recv(65536)
    wait_for(lambda: len(told()) == server.service.calls_by_method()["create_database"])
    assert told() and not [line for line in told() if "\tip=127.0.0.1\t" not in line]


def test_no_request_to_the_management_port_passes_for_a_workers() -> None:
    """Requests of other workers come through a socket file, and need neither a host name nor a token for reading."""
    clients: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        clients.append(scope["client"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def meet() -> None:
        config = uvicorn.Config(app, ws="none", log_config=None, lifespan="off")
        config.load()
        limits = ConnectionLimits(max_connections=MANY, request_timeout_s=30)
        make = partial(GuardedProtocol, limits)
        server = await asyncio.get_running_loop().create_server(
            lambda: make(config=config, server_state=ServerState(), app_state={}), "127.0.0.1", 0
        )
        address = server.sockets[0].getsockname()
        request = b"POST /commands/flush HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        for _ in range(MANY):
            send_and_reset(address, request)  # this loop accepts none of them before the end
        reader, writer = await asyncio.open_connection(*address)
        writer.write(request)
        assert (await reader.read()).startswith(b"HTTP/1.1 204")
        writer.close()
        server.close()
        assert limits.connections.in_use == 0

    asyncio.run(meet())
    assert None not in clients
    assert len(clients) == 1
