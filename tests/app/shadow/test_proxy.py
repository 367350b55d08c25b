"""The proxy closes its connections in order, whatever their state when it stops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hms_cache.app.shadow import proxy
from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.proxy import Proxy
from hms_cache.authentication.servers import Address


async def _nobody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize("moment", ["open", "closing"])
def test_a_connection_that_is_cut_is_no_error(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It did not wait for one that was closing, and asyncio reported its end as an error."""
    told: list[Any] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        closing, close = asyncio.Event(), proxy._close
        closed: list[asyncio.StreamWriter] = []

        async def close_slowly(writer: asyncio.StreamWriter) -> None:
            closed.append(writer)
            await close(writer)
            if len(closed) == 2:  # the client's, after the primary's
                closing.set()
                await asyncio.Event().wait()

        primary = await asyncio.start_server(_nobody, "127.0.0.1", 0)
        made = Proxy(Address(*primary.sockets[0].getsockname()), Rules(), lambda read: None, lambda text: None)
        address = await made.start("127.0.0.1", 0)
        _reader, writer = await asyncio.open_connection(address.host, address.port)
        if moment == "closing":
            monkeypatch.setattr(proxy, "_close", close_slowly)
            writer.close()
            await closing.wait()
        else:
            while not made._tasks:
                await asyncio.sleep(0.001)
        async with asyncio.timeout(30):
            await made.close()
        assert not made._tasks
        writer.close()
        primary.close()
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert told == []
