"""HTTP on the management port as uvicorn speaks it, with limits of connections and times, and without a line for each
connection that sends nonsense.
"""

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
from hms_cache.server.faults import MAX_LOGGED_TEXT, first_of_its_kind
from hms_cache.server.layer import part_from
from hms_cache.server.shares import Turns
from hms_cache.server.transports.http_requests import Requests, problem_of
from hms_cache.server.transports.tls import TlsPort

#: Of the places, so many at most are for one address: a client that takes all it can get leaves room for a probe.
_SHARE_OF_ONE_ADDRESS = 4
_LEAST_OF_ONE_ADDRESS = 4

#: Of a request's header; browsers and proxies send a few KiB.
LARGEST_HEADER_BYTES = 32 * 1024


class Places:
    """For so many connections, of one address so many at most; how many are taken, and how often none was left."""

    def __init__(self, most: int, max_of_one_address: int) -> None:
        self._most = most
        self._max_of_one_address = max_of_one_address
        self._of_address = Counts()
        self.taken = 0
        self.refused = 0

    def take(self, address: str) -> bool:
        """Whether a place was left."""
        if self.taken >= self._most or self._of_address.get(address, 0) >= self._max_of_one_address:
            self.refused += 1
            return False
        self.taken += 1
        self._of_address.add(address)
        return True

    def give_back(self, address: str) -> None:
        """A place that this address took."""
        self.taken -= 1
        self._of_address.take_away(address)


class ConnectionLimits:
    """What the port allows, and how often it had to say no. Touched by the port's event loop only."""

    def __init__(
        self,
        max_connections: int,
        request_timeout_s: float,
        max_listeners: int = 0,
        max_listeners_per_address: int = 0,
        network_of: Callable[[str], str] = str,
    ) -> None:
        """`max_listeners_per_address` 0: as many as there are at all. `network_of`: what is counted as one with a
        client's address."""
        self.connections = Places(max_connections, max(_LEAST_OF_ONE_ADDRESS, max_connections // _SHARE_OF_ONE_ADDRESS))
        self.listeners = Places(max_listeners, max_listeners_per_address or max_listeners)
        """Connections on which the change feed is sent: they last, and are none of `connections`."""
        self.request_timeout_s = request_timeout_s
        """For a request's header from its first byte, or from the connection; and for a client to take an answer."""
        self.network_of = network_of
        self.timeouts = 0
        self.bad_requests = 0


class _BodilessRequests(Requests):
    """Reads requests, but no bodies in chunks: a chunk takes some ten microseconds, and may be a byte long. What comes
    at once, 40,000 of them, kept health probes waiting for seconds."""

    def __init__(self, max_header_bytes: int) -> None:
        super().__init__(max_header_bytes)
        self.refusal = (400, "not a request of HTTP")
        """Status and sentence for the last one that could not be read."""
        self.is_head = False
        """Whether the last request is one whose answer has no body, though it tells the length of one."""

    def next_event(self) -> Any:
        """As h11's. Raises RemoteProtocolError, once `refusal` tells why."""
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
    """uvicorn's logger for a connection; warnings, which a client causes at will, are counted in place of lines."""

    def __init__(self, logger: Any, limits: ConnectionLimits) -> None:
        self._logger = logger
        self._limits = limits

    def warning(self, *_: Any, **__: Any) -> None:
        self._limits.bad_requests += 1

    def error(self, *arguments: Any, **options: Any) -> None:
        """A body that turns out to be malformed while the answer is on its way fails in the answer's sending: that is
        the client's doing, too, and would write a whole traceback. A defect writes one once, and then a line each time:
        a client may know how to repeat it."""
        error = options.pop("exc_info", None)
        if isinstance(error, LocalProtocolError):
            self._limits.bad_requests += 1
        elif isinstance(error, asyncio.CancelledError):
            return  # an answer that is cut off because the server stops, which has been told
        elif isinstance(error, BaseException):
            text = f"{type(error).__name__}: {redacted(str(error))[:MAX_LOGGED_TEXT]}"
            traced = first_of_its_kind(f"management port: {_place_of(error)}", error)
            self._logger.error("internal error of the management port: %r", text, exc_info=traced)
        else:
            self._logger.error(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)


def _place_of(error: BaseException) -> str:
    """Its type, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__} {where}"


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol for one connection, under limits that it shares with the port's others."""

    def __init__(self, limits: ConnectionLimits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self.logger: Any = _CountingLog(self.logger, limits)
        self.conn: _BodilessRequests = _BodilessRequests(LARGEST_HEADER_BYTES)
        self._address: str | None = None
        self._is_watched = False
        """Whether a stranger's, under limits of time."""
        self._application: Any = self.app
        self.app: Any = self._answer
        self._answered: Any = None
        """The scope of the last request that the application has done with."""
        self._listens_from: str | None = None
        """The address that it is counted under as a listener."""
        self._is_lost = False
        self.app_state = {**self.app_state, "become_listener": self._become_listener}
        self._header_timer: ClientTimer | None = None
        self._reader_timer: ClientTimer | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.client is None:
            if transport.get_extra_info("socket").family != socket.AF_UNIX:
                transport.abort()  # it has gone before it was asked who it is, and must not pass for a worker
            return  # another worker, through its socket file
        address = self._limits.network_of(self.client[0])
        if not self._limits.connections.take(address):
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
            self._leave_place()
        if self._listens_from is not None:
            self._limits.listeners.give_back(self._listens_from)
            self._listens_from = None

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """One request. Its connection keeps its place as long as that takes, also when the client has left: who asks
        and leaves, again and again, would have any number of answers made for nobody."""
        try:
            await self._application(scope, receive, send)
        finally:
            self._answered = scope
            if self._is_lost:
                self._leave_place()

    def _leave_place(self) -> None:
        if self._address is not None:
            self._limits.connections.give_back(self._address)
            self._address = None

    def _become_listener(self) -> bool:
        """The connection gives its place back and takes one of the listeners, for as long as it lives; False: all
        are taken, or the client has gone while its place in the log was looked for: nobody would give that back.
        """
        if self._listens_from is not None:
            return True
        if self._is_lost:
            return False
        address = self._limits.network_of(self.client[0]) if self.client is not None else ""
        if not self._limits.listeners.take(address):
            return False
        self._listens_from = address
        self._leave_place()
        return True

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_header()

    def send_400_response(self, msg: str) -> None:
        """With the status and the sentence of the refusal. What the client still sends is read for a while: one
        that is reset in its body would not hear of it."""
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
        """While a request's header is awaited there is a timer, which more bytes do not set back."""
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
    """Makes uvicorn's protocols; with `tls` behind TLS, but for other workers, who come through a socket file.

    `network_of`: what takes turns as one with an address.
    """
    if tls is None:
        return protocol

    port = tls
    turns = cache(partial(Turns, network_of=network_of))
    """One for the loop that all sockets are of."""

    class FirstLook(asyncio.Protocol):
        """Lives until the socket is known."""

        def __init__(self, **options: Any) -> None:
            self._options = options

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made = protocol(**self._options)
            if transport.get_extra_info("socket").family != socket.AF_UNIX:
                made = port.protect(made, turns(asyncio.get_running_loop()))
            transport.set_protocol(made)
            made.connection_made(transport)

    return FirstLook
