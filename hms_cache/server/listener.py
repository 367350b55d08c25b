"""The listening sockets, the limits that all connections share, and the drain at the end."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from hms_cache.config import finite_s
from hms_cache.config.sections import ServerSettings
from hms_cache.server.admission import Admission
from hms_cache.server.authorization.hot_requests import AuthorizedHotPath
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.combined_replies import answer_together
from hms_cache.server.connection import Connection
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.fairness import ClientLimits, RoundRobin
from hms_cache.server.hot_path import HotPath
from hms_cache.server.method_pools import PoolName, ThreadPools
from hms_cache.server.port import Port
from hms_cache.server.session import Session, SessionBudget
from hms_cache.server.thread_pool import Group, ThreadPool
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.store.combined_calls import CombinedCalls

_log = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections the kernel may hold before they are accepted: Trino opens one per call, in bursts."""

STALLS_IN_DRAIN = 10
"""While the server stops, a client has this part of the drain time to take some of its reply. A client that takes none
must not delay the stop for the whole time."""

LATE_S = 0.5
"""If a timer fires this late, the event loop stood still."""

ABOUT_THE_SESSION = ("set_ugi", "setOption", "setMetaConf")
"""Methods whose texts are remembered, up to `max_session_bytes`. A much longer text is refused before it is decoded,
which takes half a millisecond for each MB, without interruption."""

ECHOING_METHODS = ("get_config_value",)
"""Methods that answer with a text of the request: the default value for an unknown key. They are answered on the event
loop, where encoding a text takes a millisecond for each MB. No value in a configuration is much longer."""

_REFUSED_WITH_REPLY_BYTES = 256 * 1024
"""A text that exceeds the limit by no more than this is decoded and refused with Hive's exception. A longer one ends
the connection."""

_LOG_INTERVAL_S = 1.0
"""Between two log lines about closed clients: other work waits while a line is written."""

IDLE_CHECKS_AT_ONCE = 200
"""Connections whose idle time is read from the system in one go, which takes a millisecond."""


class ListenError(OSError):
    """A port cannot be opened: it is in use, or its address does not belong to this machine."""

    def __init__(self, port: Port, error: OSError | UnicodeError) -> None:
        self.error = error
        self.where = f"{port.host}:{port.number}"
        super().__init__(f"cannot listen on {self.where}: {getattr(error, 'strerror', None) or error}")


class Listener:
    """Accepts the connections of all ports on one event loop. All methods run on that loop."""

    def __init__(
        self, dispatcher: Dispatcher, pools: ThreadPools, settings: ServerSettings, max_connections: int | None = None
    ) -> None:
        """`settings` limit what clients may use (P11); `max_connections`: fewer than the setting, if the system allows
        fewer."""
        self.dispatcher = dispatcher
        self.pools = pools
        self._unlimited = pools.by_name[PoolName.TRANSACTIONS]
        self.settings = settings
        self.request_timeout_s = finite_s(settings.request_timeout_s)
        self.message_timeout_s = finite_s(settings.message_timeout_s)
        """None: no time limit, for both."""
        self.hot_path: HotPath | None = None
        """Set before `start`, or never: then every request is decoded."""
        self.authorized_hot_path: Callable[[], AuthorizedHotPath] | None = None
        """Set together with it when calls are authorized: each connection gets one of these instead."""
        self.draining = False
        self.in_flight = 0
        self._groups: dict[str, Group] = {}
        """By name of the combination."""
        self._limited_in_flight = 0
        self.network_of = client_networks(settings.client_ipv6_prefix_length)
        """Maps a client's address to the network whose addresses count as one client."""
        self.client_limits = ClientLimits(settings.max_calls_per_user, settings.max_calls_per_address)
        self.bad_messages = 0
        self.refused_calls = 0
        self.timeouts: dict[str, int] = {"message": 0, "write": 0, "first_call": 0, "idle": 0}
        """Connections that were closed by a time limit, by limit."""
        self.loop: asyncio.AbstractEventLoop
        self.buffers = BufferBudget(settings.buffer_budget_bytes, time.monotonic)
        self.session_budget = SessionBudget(settings.max_session_bytes, settings.sessions_budget_bytes)
        self.message_limits_bytes = dict.fromkeys(
            (*ABOUT_THE_SESSION, *ECHOING_METHODS), settings.max_session_bytes + _REFUSED_WITH_REPLY_BYTES
        )
        """Limits for single methods, by name."""
        self.admission = Admission(max_connections or settings.max_connections, settings.max_connections_per_address)
        self._empty: asyncio.Event
        self._servers: list[asyncio.Server] = []
        self._ports: Sequence[Port] = ()
        self._expiry: asyncio.Handle | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._next_log_s = 0.0
        self._unlogged = 0
        self.round_robin: RoundRobin

    async def start(self, ports: Sequence[Port], *, reuse_port: bool = False) -> None:
        """Listens on all ports or on none. A `number` of 0 is replaced by the port that the system chose. Raises
        ListenError."""
        self.loop = asyncio.get_running_loop()
        self._ports = ports
        self.round_robin = RoundRobin(self.loop, self._others_wait, self.network_of)
        self._empty = asyncio.Event()
        self._empty.set()
        try:
            for port in ports:
                await self._listen(port, reuse_port=reuse_port)
        except OSError:
            for server in self._servers:
                server.close()
            raise
        if math.isfinite(self.settings.idle_timeout_s):
            self._check_idle()

    def _others_wait(self) -> bool:
        return self.in_flight > 0 or (self.hot_path is not None and self.hot_path.is_checking)

    async def _listen(self, port: Port, *, reuse_port: bool) -> None:
        try:
            server = await self.loop.create_server(
                lambda: port.protocol(lambda: Connection(self, port), self.round_robin),
                port.host,
                port.number,
                backlog=BACKLOG,
                reuse_port=reuse_port or None,
                family=_family(port.host),
            )
        except (OSError, UnicodeError) as error:
            raise ListenError(port, error) from error
        self._servers.append(server)
        address = server.sockets[0].getsockname()
        port.host, port.number = str(address[0]), int(address[1])

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self.admission)

    def connections_of(self, port: Port) -> int:
        """Number of open connections of one port. From any thread. Counted on demand, so that it adds nothing to each
        connection."""
        return sum(one.port is port for one in self._open_connections())

    async def drain(self) -> None:
        """Stops accepting, lets running calls answer, and closes. Calls that are still running after `drain_timeout_s`
        are aborted."""
        self.draining = True
        for server in self._servers:
            server.close()
        for port in self._ports:
            if port.proxies is not None:
                port.proxies.close()
        for timer in (self._expiry, self._idle_check):
            if timer is not None:
                timer.cancel()
        for connection in self._open_connections():
            if connection.is_idle():
                connection.close()
        try:
            await asyncio.wait_for(self._empty.wait(), finite_s(self.settings.drain_timeout_s))
        except TimeoutError:
            _log.warning("%d connections were still busy after the drain time, and are closed", self.connections)
            for connection in self._open_connections():
                connection.abort()

    def _open_connections(self) -> list[Connection]:
        return cast("list[Connection]", self.admission.everyone())

    # Called by connections

    def admit(self, connection: Connection, address: str) -> str | None:
        """Counts a new connection. Returns the reason if it must be refused."""
        self._empty.clear()
        if self.draining:
            self.admission.refuse(connection)
            return "the server is shutting down"
        refusal = self.admission.admit(connection, address, self.loop.time())
        if refusal is None and self._expiry is None and math.isfinite(self.settings.first_call_timeout_s):
            self._expire_at(self.loop.time() + self.settings.first_call_timeout_s)
        return refusal

    def first_call(self, connection: Connection) -> None:
        """The connection has sent a call."""
        self.admission.first_call(connection)

    def release(self, connection: Connection, address: str, session: Session | None) -> None:
        """Removes a connection, with the bytes that it held."""
        self.admission.release(connection, address)
        self.buffers.charge(connection, 0)
        if session is not None:
            session.end()
        if not len(self.admission):
            self._empty.set()

    def begin_call(self, request_bytes: int, pool: ThreadPool) -> str | None:
        """Counts a new call, with the bytes of its request. Returns the reason if it must be refused.

        `max_in_flight` applies to all thread pools except that of transactions, which is limited by its own queue.
        """
        is_limited = pool is not self._unlimited
        if is_limited and self._limited_in_flight >= self.settings.max_in_flight:
            self.refused_calls += 1
            return f"too many calls in flight: {self._limited_in_flight} (setting server.max_in_flight); retry"
        if not self.buffers.begin_request(request_bytes):
            self.refused_calls += 1
            return (
                f"requests of calls in flight take {self.buffers.used_bytes} bytes, and this one {request_bytes} "
                "(setting server.buffer_budget_bytes); retry"
            )
        self.in_flight += 1
        self._limited_in_flight += is_limited
        return None

    def group_of(self, combined: CombinedCalls) -> Group:
        """The pool's group of calls that can share a transaction."""
        group = self._groups.get(combined.name)
        if group is None:
            run = partial(answer_together, self, combined)
            group = self._groups[combined.name] = Group(combined.name, combined.most, run)
        return group

    def end_call(self, request_bytes: int, pool: ThreadPool) -> None:
        """Removes a call."""
        self.in_flight -= 1
        self._limited_in_flight -= pool is not self._unlimited
        self.buffers.end_request(request_bytes)

    def count_bad_message(self, error: Exception) -> None:
        """A message was refused because its bytes are malformed."""
        self.bad_messages += 1

    def count_timeout(self, kind: str) -> None:
        """A connection is closed by a time limit."""
        self.timeouts[kind] += 1

    def write_timeout_s(self) -> float:
        """How long a client may take nothing of its reply; 0: no limit."""
        timeout_s = self.settings.write_timeout_s
        if self.draining:
            timeout_s = min(timeout_s, max(self.settings.drain_timeout_s / STALLS_IN_DRAIN, 0.001))
        return finite_s(timeout_s) or 0

    def log_limited(self, text: str, *arguments: object) -> None:
        """Logs a warning about one client, at most one a second. The next line says how many were left out."""
        now_s = self.loop.time()
        if now_s < self._next_log_s:
            self._unlogged += 1
            return
        self._next_log_s = now_s + _LOG_INTERVAL_S
        unlogged, self._unlogged = self._unlogged, 0
        more = f" ({unlogged} more of such since the last line)" if unlogged else ""
        _log.warning(text + "%s", *arguments, more)

    # Time limits of connections

    def _expire_at(self, due_s: float, *, again: bool = False) -> None:
        # uvloop's handle of a timer that is due at once does not know when it is due.
        self._expiry = self.loop.call_at(due_s, self._expire, due_s, again)

    def _expire(self, due_s: float, again: bool) -> None:
        self._expiry = None
        now_s = self.loop.time()
        if now_s - due_s > LATE_S and not again:
            # The loop stood still: first read the calls that arrived meanwhile. Only once, since a loop may be late
            # every time.
            self._expire_at(now_s + LATE_S, again=True)
            return
        closed, next_s = self.admission.expire_uncalled(now_s, self.settings.first_call_timeout_s)
        self.timeouts["first_call"] += closed
        if next_s is not None:
            self._expire_at(next_s)

    def _check_idle(self) -> None:
        """Asks the system how long each connection has been idle: recording it here would add to each hot call."""
        self._check_some_idle(self._open_connections())

    def _check_some_idle(self, remaining: list[Connection]) -> None:
        timeout_s = self.settings.idle_timeout_s
        for connection in remaining[-IDLE_CHECKS_AT_ONCE:]:
            if connection.idle_s() >= timeout_s:
                self.timeouts["idle"] += 1
                connection.close()
        del remaining[-IDLE_CHECKS_AT_ONCE:]
        if remaining:
            self._idle_check = self.loop.call_later(0.001, self._check_some_idle, remaining)
        else:
            self._idle_check = self.loop.call_later(min(max(timeout_s / 10, 0.05), 60.0), self._check_idle)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
