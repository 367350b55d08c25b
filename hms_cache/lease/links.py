"""One connection between two members: the bytes of the handshake, then frames.

A frame is passed on in the turn of the loop in which its last byte arrives, and is written to the socket in the turn in
which it is sent. In a process with other computing threads, each further turn might take as long as the rest of the
way.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from hms_cache.lease.frames import HEADER, MAX_FRAME_BYTES, BadFrameError, body_length

MAX_UNREAD_BYTES: Final = 4096
"""Bytes of a handshake that are accepted: more than both sides send."""

ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
"""Socket options, if the system has them: a machine that is gone is detected within a minute (values in seconds and
milliseconds), and firewalls do not drop the connection for being idle."""

MAX_UNSENT_BYTES: Final = 64 * 1024
"""If more bytes than this wait to be read by a member, its connection is closed and they are lost: about 600
messages."""


class Link(asyncio.Protocol):
    """See the module. Everything runs on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lost: asyncio.Future[Exception | None] = loop.create_future()
        """Why the connection has ended: None if the other side closed it in order."""
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._bytes = bytearray()
        self._requested_bytes = 0
        self._read: asyncio.Future[bytes] | None = None
        self._on_body: Callable[[bytes], None] | None = None
        self._is_closed = False

    async def read(self, size_bytes: int) -> bytes:
        """Exactly this number of bytes, for the handshake. Raises IncompleteReadError if fewer arrive."""
        self._requested_bytes = size_bytes
        read: asyncio.Future[bytes] = self._loop.create_future()
        self._read = read
        self._consume()
        if self.lost.done() and not read.done():
            self._read = None  # nobody may be waiting: asyncio would log a trace of the exception
            raise self._incomplete()
        return await read

    def receive(self, on_body: Callable[[bytes], None]) -> None:
        """From now on, frames are received, and `on_body` is called with the body of each. An exception that it raises,
        such as BadFrameError, closes the connection."""
        self._on_body = on_body
        self._consume()

    def write(self, data: bytes) -> bool:
        """Sends a frame. False: earlier frames are still waiting, and the connection is closed."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return True  # lost with its connection, as if it had broken a moment later
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            transport.abort()
            return False
        transport.write(data)
        return True

    def close(self) -> None:
        """Closes after everything sent. Can be called again, and before the connection is made."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes at once, without sending what waits."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()

    @property
    def address(self) -> str:
        """Address of the other side; empty if the system does not say."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if isinstance(name, tuple) and name else ""

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in ALIVE.items():
            if hasattr(socket, name):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if self._is_closed:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        self._consume()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(error)
        if self._read is not None and not self._read.done():
            self._read.set_exception(self._incomplete())

    # Bytes

    def _consume(self) -> None:
        held = self._bytes
        if self._on_body is None:
            if self._read is not None and not self._read.done() and len(held) >= self._requested_bytes:
                read, self._read = self._read, None
                read.set_result(bytes(held[: self._requested_bytes]))
                del held[: self._requested_bytes]
            if len(held) > MAX_UNREAD_BYTES:
                self._fail(BadFrameError("more than a handshake"))
            return
        try:
            while len(held) >= HEADER.size and not self.lost.done():
                end = HEADER.size + body_length(bytes(held[: HEADER.size]))
                if len(held) < end:
                    break
                body = bytes(held[HEADER.size : end])
                del held[:end]
                self._on_body(body)
        except BadFrameError as error:
            self._fail(error)
        assert len(held) <= MAX_FRAME_BYTES + HEADER.size or self.lost.done()

    def _fail(self, error: BadFrameError) -> None:
        self._bytes.clear()
        if not self.lost.done():
            self.lost.set_result(error)
        self.close()

    def _incomplete(self) -> asyncio.IncompleteReadError:
        return asyncio.IncompleteReadError(bytes(self._bytes), self._requested_bytes)
