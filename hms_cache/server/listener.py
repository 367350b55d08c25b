"""The listening socket, the limits all connections share, and the drain at the end."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass

from hms_cache.server.connection import Connection
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.hot_path import HotPath
from hms_cache.server.workers import WorkerPool

_log = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections the kernel may hold before they are accepted: Trino opens one per call, in bursts."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the server (P11); the numbers and their reasons are in the settings of the `server` section."""

    max_message_bytes: int
    max_connections: int
    max_in_flight: int
    request_timeout_s: float
    message_timeout_s: float
    drain_timeout_s: float


class Listener:
    """Accepts connections on one event loop. All methods run on that loop."""

    def __init__(self, dispatcher: Dispatcher, workers: WorkerPool, limits: Limits) -> None:
        self.dispatcher = dispatcher
        self.workers = workers
        self.limits = limits
        self.hot_path: HotPath | None = None
        """Set before `start`, or never: then every request is decoded."""
        self.draining = False
        self.in_flight = 0
        self.bad_messages = 0
        self.refused_connections = 0
        self.refused_calls = 0
        self.loop: asyncio.AbstractEventLoop
        self._connections: set[Connection] = set()
        self._empty: asyncio.Event
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """Listens; returns the address, with the port the system picked when `port` is 0. Raises OSError."""
        self.loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self._empty.set()
        self._server = await self.loop.create_server(
            lambda: Connection(self), host, port, backlog=BACKLOG, reuse_port=reuse_port or None, family=_family(host)
        )
        address = self._server.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    async def drain(self) -> None:
        """Stops accepting, lets running calls answer, closes; what still runs after `drain_timeout_s` is cut off."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            if connection.is_idle():
                connection.close()
        try:
            await asyncio.wait_for(self._empty.wait(), self.limits.drain_timeout_s)
        except TimeoutError:
            _log.warning("%d connections were still busy after the drain time; cut off", len(self._connections))
            for connection in list(self._connections):
                connection.abort()

    # Called by connections

    def admit(self, connection: Connection) -> str | None:
        """Counts a connection in; a text says why it must be refused."""
        full = len(self._connections) >= self.limits.max_connections
        self._connections.add(connection)
        self._empty.clear()
        if self.draining:
            return "the server is shutting down"
        if full:
            self.refused_connections += 1
            return (
                f"too many connections: {self.limits.max_connections} are open (setting server.max_connections); "
                "retry, or use another server of the set"
            )
        return None

    def release(self, connection: Connection) -> None:
        """Counts a connection out."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def begin_call(self) -> str | None:
        """Counts a call in; a text says why it must be refused."""
        if self.in_flight >= self.limits.max_in_flight:
            self.refused_calls += 1
            return f"too many calls in flight: {self.in_flight} (setting server.max_in_flight); retry"
        self.in_flight += 1
        return None

    def end_call(self) -> None:
        """Counts a call out."""
        self.in_flight -= 1

    def count_bad_message(self, error: Exception) -> None:
        """A message was refused because of its bytes."""
        self.bad_messages += 1


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
