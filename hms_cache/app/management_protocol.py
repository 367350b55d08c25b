"""HTTP on the management port by uvicorn, with limits of connections and times, and without a log line for each invalid
request."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import h11
from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from hms_cache.admin.guard import PROTECTION
from hms_cache.config.secrets import redacted
from hms_cache.event_loops import ClientTimer
from hms_cache.server.admission import Counts
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.faults import MAX_LOGGED_TEXT, first_of_its_kind
from hms_cache.server.layer import part_from
from hms_cache.server.transports.http_requests import Requests, problem_of
from hms_cache.server.transports.tls import TlsPort

#: One address may use at most this fraction of the connections, so that a client cannot lock out a probe.
_SHARE_OF_ONE_ADDRESS = 4
_LEAST_OF_ONE_ADDRESS = 4

#: Maximum size of a request's header; browsers and proxies send a few KiB.
LARGEST_HEADER_BYTES = 32 * 1024


class ConnectionSlots:
    """A limited number of places for connections, with a limit per address; counts the places in use and the
    refusals."""

    def __init__(self, most: int, max_of_one_address: int) -> None:
        self._most = most
        self._max_of_one_address = max_of_one_address
        self._of_address = Counts()
        self.in_use = 0
        self.refused = 0

    def acquire(self, address: str) -> bool:
        """Takes a place; returns whether one was free."""
        if self.in_use >= self._most or self._of_address.get(address, 0) >= self._max_of_one_address:
            self.refused += 1
            return False
        self.in_use += 1
        self._of_address.add(address)
        return True

    def give_back(self, address: str) -> None:
        """Returns a place of this address."""
        self.in_use -= 1
        self._of_address.decrement(address)


class ConnectionLimits:
    """The port's limits, and the number of refusals. Used only by the port's event loop."""

    def __init__(
        self,
        max_connections: int,
        request_timeout_s: float,
        max_listeners: int = 0,
        max_listeners_per_address: int = 0,
        network_of: Callable[[str], str] = str,
    ) -> None:
        """`max_listeners_per_address`: 0 means no limit per address. `network_of`: the network to which a client's
        address is counted."""
        self.connections = ConnectionSlots(
            max_connections, max(_LEAST_OF_ONE_ADDRESS, max_connections // _SHARE_OF_ONE_ADDRESS)
        )
        self.listeners = ConnectionSlots(max_listeners, max_listeners_per_address or max_listeners)
        """Connections that receive the change feed. They are long-lived, and not counted in `connections`."""
        self.request_timeout_s = request_timeout_s
        """Time limit for a request's header, from its first byte or from the connection, and for a client to receive a
        reply."""
        self.network_of = network_of
        self.timeouts = 0
        self.bad_requests = 0


class _BodilessRequests(Requests):
    """Parses requests, but refuses chunked bodies: a chunk takes about ten microseconds and may have one byte, so
    40,000 of them received at once delayed health probes by seconds."""

    def __init__(self, max_header_bytes: int) -> None:
        super().__init__(max_header_bytes)
        self.refusal = (400, "not a request of HTTP")
        """Status and message for the last request that could not be parsed."""
        self.is_head = False
        """Whether the reply to the last request has no body although its header states a length (HEAD)."""

    def next_event(self) -> Any:
        """See h11. Raises RemoteProtocolError after setting `refusal`."""
        if self.their_state is h11.IDLE:
            self.is_head = False
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.refusal = error.error_status_hint, str(error)
            raise
        if isinstance(event, h11.Request):
            self.is_head = event.method == b"HEAD"
            problem = problem_of(event)
            if problem is None and any(name == b"transfer-encoding" for name, _ in event.headers):
                problem = 411, "no request here has a body in chunks: send its content-length, or no body"
            if problem is not None:
                self.refusal = problem
                raise h11.RemoteProtocolError(problem[1], problem[0])
        return event


class _CountingLog:
    """Replaces uvicorn's logger for a connection. Warnings, which clients can cause at will, are counted instead of
    logged."""

    def __init__(self, logger: Any, limits: ConnectionLimits) -> None:
        self._logger = logger
        self._limits = limits

    def warning(self, *_: Any, **__: Any) -> None:
        self._limits.bad_requests += 1

    def error(self, *arguments: Any, **options: Any) -> None:
        """Counts errors that the client causes: a malformed body that is detected while the reply is sent would
        otherwise log a trace. A defect of the program is logged with its trace once, and then as one line each time,
        since a client may be able to repeat it."""
        error = options.pop("exc_info", None)
        if isinstance(error, LocalProtocolError):
            self._limits.bad_requests += 1
        elif isinstance(error, asyncio.CancelledError):
            return  # a reply that is cut off because the server stops, which is logged already
        elif isinstance(error, BaseException):
            text = f"{type(error).__name__}: {redacted(str(error))[:MAX_LOGGED_TEXT]}"
            traced = first_of_its_kind(f"management port: {_place_of(error)}", error)
            self._logger.error("internal error of the management port: %r", text, exc_info=traced)
        else:
            self._logger.error(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


def _place_of(error: BaseException) -> str:
    """The error's type, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__} {where}"


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol for one connection, with limits that it shares with the port's other connections."""

    def __init__(self, limits: ConnectionLimits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self.logger: Any = _CountingLog(self.logger, limits)
        self.conn: _BodilessRequests = _BodilessRequests(LARGEST_HEADER_BYTES)
        self._address: str | None = None
        self._is_watched = False
        """Whether the connection is from outside and has time limits."""
        self._application: Any = self.app
        self.app: Any = self._answer
        self._answered: Any = None
        """The scope of the last request that the application has completed."""
        self._listens_from: str | None = None
        """The address under which it is counted as a listener."""
        self._is_lost = False
        self.app_state = {**self.app_state, "become_listener": self._become_listener}
        self._header_timer: ClientTimer | None = None
        self._reader_timer: ClientTimer | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.client is None:
            if transport.get_extra_info("socket").family != socket.AF_UNIX:
                transport.abort()  # disconnected before its address was read, so it must not be treated as a worker
            return  # another worker, through its socket file
        address = self._limits.network_of(self.client[0])
        if not self._limits.connections.acquire(address):
            transport.abort()
            return
        self._address = address
        self._is_watched = True
        self._watch_header()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_lost = True
        self._cancel("_header_timer")
        self._cancel("_reader_timer")
        self._is_watched = False
        if self.cycle is None or self.cycle.scope is self._answered:
            self._release_slot()
        if self._listens_from is not None:
            self._limits.listeners.give_back(self._listens_from)
            self._listens_from = None

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Handles one request. The connection keeps its place until this ends, even if the client has disconnected:
        otherwise a client could start any number of requests by reconnecting."""
        try:
            await self._application(scope, receive, send)
        finally:
            self._answered = scope
            if self._is_lost:
                self._release_slot()

    def _release_slot(self) -> None:
        if self._address is not None:
            self._limits.connections.give_back(self._address)
            self._address = None

    def _become_listener(self) -> bool:
        """Moves the connection from its place to a listener's, for as long as it lives. False if there is none, or if
        the client has disconnected while its position in the log was looked up: then the place would never be
        returned."""
        if self._listens_from is not None:
            return True
        if self._is_lost:
            return False
        address = self._limits.network_of(self.client[0]) if self.client is not None else ""
        if not self._limits.listeners.acquire(address):
            return False
        self._listens_from = address
        self._release_slot()
        return True

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_header()

    def send_400_response(self, msg: str) -> None:
        """Sends the status and message of the refusal. The rest of the client's data is read for a while: if the
        connection were reset while the client sends its body, the client would not receive the reply."""
        status, text = self.conn.refusal
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = f"{text}\n".encode()
            headers = [
                *((b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))),
                (b"connection", b"close"),
                *PROTECTION,
            ]
            answer = [h11.Response(status_code=status, headers=headers), h11.Data(body), h11.EndOfMessage()]
            if self.conn.is_head:
                del answer[1]
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in answer))
        self._is_watched = False
        self._cancel("_header_timer")
        part_from(self.transport, self.connection_lost)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_header()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._is_watched and self._reader_timer is None:
            self._reader_timer = ClientTimer(self.loop, self._limits.request_timeout_s, self._time_out)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel("_reader_timer")

    def _watch_header(self) -> None:
        """Runs a timer while a request's header is incomplete; further bytes do not reset it."""
        awaited = self.cycle is None or self.cycle.response_complete
        if not awaited:
            self._cancel("_header_timer")
        elif self._header_timer is None and self._is_watched and not self.transport.is_closing():
            self._header_timer = ClientTimer(self.loop, self._limits.request_timeout_s, self._time_out)

    def _time_out(self) -> None:
        self._limits.timeouts += 1
        self.transport.abort()

    def _cancel(self, name: str) -> None:
        timer: ClientTimer | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)


def on_each_socket(
    protocol: Callable[..., asyncio.Protocol], tls: TlsPort | None, network_of: Callable[[str], str] = str
) -> Callable[..., asyncio.Protocol]:
    """Creates uvicorn's protocols; with `tls` behind TLS, except for other workers, which connect through a socket
    file.

    `network_of`: the network whose addresses take turns as one.
    """
    if tls is None:
        return protocol

    port = tls
    round_robin = cache(partial(RoundRobin, network_of=network_of))
    """One object for the loop of all sockets."""

    class InitialProtocol(asyncio.Protocol):
        """Used until the kind of the socket is known."""

        def __init__(self, **options: Any) -> None:
            self._options = options

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made = protocol(**self._options)
            if transport.get_extra_info("socket").family != socket.AF_UNIX:
                made = port.protect(made, round_robin(asyncio.get_running_loop()))
            transport.set_protocol(made)
            made.connection_made(transport)

    return InitialProtocol
