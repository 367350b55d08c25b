"""The end of a connection whose client was refused, and has already left."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from hms_cache.server.layer import part_from
from tests.servers import MAX_WAIT_S


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_client_that_has_gone_unnoticed_is_parted_from(new_loop: object) -> None:
    """A write has reset the connection, and nobody has read the error."""

    async def part() -> None:
        loop = asyncio.get_running_loop()
        connected, lost = loop.create_future(), loop.create_future()

        class Server(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                connected.set_result(transport)

        server = await loop.create_server(Server, "127.0.0.1", 0)
        client = socket.create_connection(server.sockets[0].getsockname())
        transport = await connected
        transport.pause_reading()
        client.close()
        own = transport.get_extra_info("socket")
        while own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            transport.write(b"refused")
            await asyncio.sleep(0.01)
        part_from(transport, lost.set_result)
        await asyncio.wait_for(lost, MAX_WAIT_S)
        server.close()

    loop = new_loop()  # type: ignore[operator]
    try:
        loop.run_until_complete(part())
    finally:
        loop.close()
