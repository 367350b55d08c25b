"""Thrift over HTTP between the socket (or TLS) and connections, as Hive 4's clients and Trino send it. Facts:
`HmsThriftHttpServlet` and `HiveMetaStoreClient` (4.0.1).

A request is a POST with one call in its body, and the response carries the reply; the response to a one-way call is
empty. If anything follows the call in the body, the socket is closed.

Each request identifies its user: by a bearer token, or, if no token is required, by the header `x-actor-username`,
which proves nothing. If a socket carries requests of several users or addresses, as one of a proxy may, each of them
has a connection of its own to the server behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from time import perf_counter
from typing import Any, Protocol

import h11

from hms_cache.authentication.bearer_tokens import BearerTokens
from hms_cache.authentication.mechanism import AuthenticationError, Identity
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.layer import Handshakes, Layer
from hms_cache.server.session import CLAIMED_USER, IDENTITY
from hms_cache.server.transports.fair_threads import FairThreads
from hms_cache.server.transports.http_requests import Requests, forwarded_address, leads_to, problem_of
from hms_cache.server.transports.plain_calls import refusal_of_plain_call
from hms_cache.values import frozen

USER_HEADER = b"x-actor-username"

CHECK_THREADS = 4
"""Threads that verify tokens: at times they wait for the issuer's server, whose keys one of them fetches. Addresses
take turns."""

OUTCOMES = ("ok", "refused", "bad_message", "no_token", "unavailable", "timeout")
"""Requests with known tokens do not count."""

_HTTP_REQUIRED = (
    "this metastore speaks HTTP on this port: set hive.metastore.client.thrift.transport.mode=http in the client"
)

_CONTENT = (b"content-type", b"application/x-thrift")

_MORE = "a body has more than a call"
"""Further bytes would be the beginning of the next request's call, or would get its reply. Through a proxy that sends
the requests of many clients over one socket, that would be another client's."""

_OF_BROWSERS = (b"origin", b"sec-fetch-site")
"""Headers that browsers send with every POST of a page, of this site or another (Fetch, RFC 6454). Clients do not send
them. If no token is required, any page that an operator opens could otherwise change the catalog."""

_ONCE = frozenset((b"authorization", USER_HEADER, b"transfer-encoding"))
"""Headers that must not be repeated: a proxy might check one of them, and the server use the other."""


@frozen
class HttpLimits:
    """For one request."""

    max_header_bytes: int
    max_message_bytes: int
    header_timeout_s: float
    message_timeout_s: float | None = None
    """None: never."""


class HttpPort(Handshakes):
    """HTTP of one port. Touched on the port's event loop only."""

    def __init__(
        self,
        path: str,
        tokens: BearerTokens | None,
        limits: HttpLimits,
        buffers: BufferBudget,
        *,
        network_of: Callable[[str], str] = str,
        proxies: Container[str] = frozenset(),
    ) -> None:
        """`tokens`: None if clients need none; `network_of`: maps an address to the network whose addresses share one
        turn; `proxies`: addresses whose header `x-forwarded-for` is believed."""
        super().__init__("authentication", OUTCOMES)
        self.target = f"/{path.strip('/')}".encode()
        self.tokens = tokens
        self.limits = limits
        self.buffers = buffers
        self.proxies = proxies
        self.threads = FairThreads(CHECK_THREADS, "hms-jwt", network_of)

    def protect(self, connect: Callable[[], Caller], round_robin: RoundRobin) -> HttpLayer:
        """The protocol for a new socket; `connect` creates a connection for each user on it."""
        return HttpLayer(connect, self, round_robin)

    def close(self) -> None:
        """Verifies no more tokens. Requests that wait for this are not answered."""
        self.threads.close()


class _Refusal(Exception):
    """A request that is refused before its call is read."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class Caller(Protocol):
    """The connection behind: an asyncio.Protocol that reports its state."""

    has_refused_bytes: bool
    one_way_refusal: str

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...

    def data_received(self, data: bytes) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def client_ended(self) -> None: ...

    def is_idle(self) -> bool: ...

    def is_decoding(self) -> bool: ...

    def has_more(self) -> bool: ...

    def has_other_limit(self) -> bool: ...

    def end_calls(self) -> None: ...


class HttpLayer(Layer):
    """One socket. A connection is created at once, so that limits apply before the first request."""

    _upper: Caller

    def __init__(self, connect: Callable[[], Caller], port: HttpPort, round_robin: RoundRobin) -> None:
        super().__init__(round_robin, port.buffers)
        self._connect = connect
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._http = Requests(port.limits.max_header_bytes)
        self._upper = connect()
        self._greeted = False
        self._fresh = True
        """Whether the connection behind has had no call, so that its user can still be set."""
        self._user: Identity | str | None = None
        """The user whose requests the connection behind gets: authenticated by a token, or claimed."""
        self._client = ""
        """The address of its requests, if a proxy named it."""
        self._own_address = ""
        """Of the socket, while `_address` is that of the request's client."""
        self._is_proxied = False
        """Whether the socket is a trusted proxy's."""
        self._is_unnamed = False
        """Whether its first request, which may name a client, has not arrived: until then, no address is counted."""
        self._in_body = False
        self._body_bytes = 0
        self._unread_bytes = 0
        """Received bytes that h11 may still hold."""
        self._awaited = False
        """Whether a response is owed."""
        self._is_head = False
        """Whether the response to the request has no body, although its header gives the length of one."""
        self._checking = False
        self._ended = False

    # The socket's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tells the connection."""
        self._lie_on(transport)
        self._own_address = self._address
        self._is_proxied = self._is_unnamed = self._address in self._port.proxies
        self._upper.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Takes requests."""
        if self._closing:
            return
        if not self._greeted and not data[:1].isalpha():
            self._port.failed("bad_message", self._address, "it does not speak HTTP")
            self._lower.write(refusal_of_plain_call(data, _HTTP_REQUIRED))
            super().part()
            return
        self._greeted = True
        self._unread_bytes += len(data)
        self._http.receive_data(data)
        self._go_on()

    def eof_received(self) -> bool:
        """True: this layer closes the socket itself, after the response that is owed.

        The socket was read until now, so everything received has been taken. The end of the stream is not reported
        again.
        """
        self._ended = True
        self._upper.client_ended()
        if self._awaited:
            self._answer_without_reply()
        elif not self._closing:
            self.close()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tells the connection."""
        self._closing = True
        self._stop_timer()
        self._stop_counting()
        self._upper.connection_lost(error)

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        self._lower_paused = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client caught up. Its next request may be another user's, whose new connection has nothing unsent."""
        self._lower_paused = False
        super().resume_writing()
        self._loop.call_soon(self._next_request)

    # The connection's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """The reply to the request."""
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """As one reply."""
        if self._closing or not self._awaited:
            return
        parts = list(list_of_data)
        headers = [_CONTENT, (b"content-length", b"%d" % sum(map(len, parts)))]
        upper = self._upper
        if upper.has_more() and not upper.has_refused_bytes:
            self._port.failed("bad_message", self._address, _MORE)
            self._respond(200, [*headers, (b"connection", b"close")], parts)
            upper.end_calls()
            return
        self._respond(200, headers, parts)
        if not self._in_body:  # otherwise the end of the body follows, or the connection is closed
            self._loop.call_soon(self._next_request)
        elif self._ended and not self._closing:
            self.close()

    def run_slice(self) -> None:
        """Continues with received bytes."""
        self._queued = False
        self._let_go("turn")
        if not self._closing:
            self._go_on()
        if not self._queued:
            self._follow_slices()

    def upper_waits(self) -> None:
        """The received bytes get no reply: they are a one-way call, or not a whole call."""
        if self._awaited and (not self._in_body or self._ended):
            self._loop.call_soon(self._answer_without_reply)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio's transports; and the identity of the client."""
        if name == IDENTITY:
            return self._user if isinstance(self._user, Identity) else None
        if name == CLAIMED_USER:
            return self._user if isinstance(self._user, str) else None
        if name == "peername" and (self._client or self._is_unnamed):
            return (self._client, 0)
        return super().get_extra_info(name, default)

    def close(self) -> None:
        """Closes after everything written has been sent. A request without an answer gets an error."""
        upper = self._upper
        if self._awaited and not self._closing and upper.one_way_refusal:
            self._refuse(_Refusal(503, upper.one_way_refusal))
            return
        # A one-way call may end the conversation: fb303's `shutdown` does.
        is_executed = bool(self._body_bytes) and self._is_done_with_what_came() and not upper.has_more()
        self._answer_that_is_owed(200 if is_executed else 503)
        self._closing = True
        self._stop_timer()
        self._lower.close()

    def part(self) -> None:
        """Like `close`, but bytes that the client still sends are read, see `part_from`."""
        self._answer_that_is_owed(503)
        self._part()

    def _part(self) -> None:
        self._stop_timer()  # the next step has its own time limit
        super().part()
        # Received bytes are not needed while the client receives its refusal.
        self._http = Requests(self._port.limits.max_header_bytes)
        self._stop_counting()
        self._upper.end_calls()

    def _answer_that_is_owed(self, status: int) -> None:
        if self._awaited and not self._closing:
            status = 400 if self._upper.has_refused_bytes else status
            self._respond(status, [(b"content-length", b"0"), (b"connection", b"close")], [])

    def abort(self) -> None:
        """Closes at once."""
        self._closing = True
        self._lower.abort()

    # Requests

    def _go_on(self) -> None:
        try:
            self._process_events()
        except _Refusal as refusal:
            self._refuse(refusal)
        except h11.RemoteProtocolError as error:
            # Without h11's sentence: a line that h11 does not understand may contain a token.
            self._port.failed("bad_message", self._address, "not a request of HTTP")
            self._refuse(_Refusal(error.error_status_hint, str(error)))
        self._charge()

    def _used_bytes(self) -> int:
        return self._unread_bytes

    def disconnect(self, reason: str) -> None:
        """The bytes are needed by others. A client whose call is running is told nothing: the call may be carried
        out."""
        if self._closing or self._lower_paused or not self._upper.is_idle():
            super().disconnect(reason)
            return
        self._log_disconnect(reason)
        self._refuse(_Refusal(503, reason, (b"retry-after", b"1")))

    def _process_events(self) -> None:
        """Runs at most for one slice: a chunk of a body takes about ten microseconds, and may be one byte long."""
        end_s = perf_counter() + self._round_robin.slice_s
        while not self._checking and not self._closing and not self._queued:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._unread_bytes = len(self._http.trailing_data[0])
                if self._http.they_are_waiting_for_100_continue:
                    informational = h11.InformationalResponse(status_code=100, headers=[])
                    self._lower.write(self._http.send(informational))
                self._watch_request()
                return
            if isinstance(event, h11.Request):
                self._stop_timer()
                self._begin(event)
            elif isinstance(event, h11.Data):
                if not self._awaited:
                    self._port.failed("bad_message", self._address, _MORE)
                    self._part()
                    return
                self._body_bytes += len(event.data)
                self._unread_bytes -= len(event.data)
                self._upper.data_received(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._in_body = False
                self._stop_timer()
                self._body_ended()
            else:  # PAUSED until the response is sent, or until the client's end of the stream
                self._unread_bytes = len(self._http.trailing_data[0])
                if event is h11.PAUSED and self._unread_bytes:
                    self._hold("ahead")  # otherwise a client that does not wait would fill the buffer
                return
            if perf_counter() >= end_s and not self._checking and not self._closing:
                self._wait_for_slice()

    def _begin(self, request: h11.Request) -> None:
        self._awaited = True
        self._in_body = True
        self._body_bytes = 0
        self._is_head = request.method == b"HEAD"
        port = self._port
        if sum(len(name) + len(value) for name, value in request.headers) > port.limits.max_header_bytes:
            limit = f"{port.limits.max_header_bytes} are allowed (setting server.http_max_header_bytes)"
            raise _Refusal(431, f"the header is too long; {limit}")
        if (problem := problem_of(request)) is not None:
            raise _Refusal(*problem)
        headers = dict(request.headers)
        names = [name for name, _ in request.headers]
        for name in _ONCE:
            if names.count(name) > 1:
                raise _Refusal(400, f"the header {name.decode()} is there {names.count(name)} times")
        if self._is_proxied:
            try:
                self._address = forwarded_address(request.headers, port.proxies) or self._own_address
            except ValueError as error:
                raise _Refusal(400, str(error)) from error
        # Paths below it are accepted, too: Hive's client requests `/metastore/*`, as its servlet is mapped.
        if not leads_to(port.target, request.target):
            raise _Refusal(404, f"the metastore is at {port.target.decode()}")
        if request.method != b"POST":
            raise _Refusal(405, "the metastore takes POST", (b"allow", b"POST"))
        if port.tokens is None and any(name in headers for name in _OF_BROWSERS):
            port.failed("refused", self._address, "a page in a browser sent a request")
            raise _Refusal(403, "the metastore takes no requests of pages in browsers")
        length = headers.get(b"content-length")
        if length is not None and int(length) > port.limits.max_message_bytes:
            limit = f"{port.limits.max_message_bytes} are allowed (setting server.max_message_bytes)"
            raise _Refusal(413, f"a request of {int(length)} bytes; {limit}")
        if port.tokens is None:
            self._serve(self._claimed(headers.get(USER_HEADER)))
            return
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            port.failed("no_token", self._address, "a request without a bearer token")
            text = "this metastore asks for a bearer token: set hive.metastore.client.auth.mode=JWT and HMS_JWT"
            raise _Refusal(401, text, (b"www-authenticate", b"Bearer"))
        token = token.strip()
        identity = port.tokens.cached_identity(token)
        if identity is not None:
            self._serve(identity)
        else:
            self._check(port.tokens, token)

    @staticmethod
    def _claimed(name: bytes | None) -> str | None:
        if name is None:
            return None
        user = name.decode("utf-8", "replace")
        most = input_limits().session_name_characters
        if len(user) > most:
            setting = exceeded("session_name_characters")
            raise _Refusal(400, f"a name of a user has {len(user)} characters; {most} are allowed ({setting})")
        return user

    def _check(self, tokens: BearerTokens, token: str) -> None:
        self._checking = True
        self._hold("check")

        def check() -> None:
            identity, failure = None, None
            try:
                identity = tokens.check(token)
            except AuthenticationError as error:
                failure = error
            except Exception as error:  # a defect of a library affects this client only
                failure = AuthenticationError(f"not authenticated: {type(error).__name__}", "bad_message")
            self._loop.call_soon_threadsafe(self._checked, identity, failure)

        self._port.threads.submit(self._address, check, lambda: not self._closing)

    def _checked(self, identity: Identity | None, failure: AuthenticationError | None) -> None:
        self._checking = False
        if self._closing:
            return
        self._let_go("check")
        if failure is not None:
            self._port.failed(failure.outcome, self._address, str(failure))
            if failure.outcome == "unavailable":
                self._refuse(_Refusal(503, str(failure), (b"retry-after", b"1")))
            else:
                challenge = b'Bearer error="invalid_token"'
                self._refuse(_Refusal(401, str(failure), (b"www-authenticate", challenge)))
            return
        self._port.outcomes["ok"] += 1
        self._serve(identity)
        self._go_on()

    def _serve(self, user: Identity | str | None) -> None:
        """The request is this user's: uses the connection behind, or creates another one."""
        client = self._address if self._address != self._own_address else ""
        if self._is_unnamed or client != self._client or (user != self._user and not self._fresh):
            before, self._upper = self._upper, self._connect()
            before.connection_lost(None)
            self._user, self._client, self._is_unnamed = user, client, False
            self._upper.connection_made(self)
        self._user = user
        self._fresh = False

    def _body_ended(self) -> None:
        """If a call is running, its reply comes later; otherwise the body was a one-way call, or not a whole call."""
        upper = self._upper
        if not self._awaited:
            self._loop.call_soon(self._next_request)
            return
        if not self._is_done_with_what_came():
            return
        if upper.has_more() or not self._body_bytes:
            raise _Refusal(400, "the body is not a whole call of Thrift")
        if upper.one_way_refusal:
            raise _Refusal(503, upper.one_way_refusal)
        self._respond(200, [_CONTENT, (b"content-length", b"0")], [])
        self._loop.call_soon(self._next_request)

    def _is_done_with_what_came(self) -> bool:
        """Whether the connection behind has decoded everything handed on, and runs no call of it."""
        return self._upper.is_idle() and not self._upper.is_decoding()

    def _answer_without_reply(self) -> None:
        if not self._awaited or self._checking or self._closing:
            return
        try:
            if not self._in_body:
                self._body_ended()
            elif self._ended and self._is_done_with_what_came():
                raise _Refusal(400, "the request ended within its body")
        except _Refusal as refusal:
            self._refuse(refusal)

    def _next_request(self) -> None:
        """Begins the next request when the previous response has been taken, and the body of its request has
        arrived."""
        if self._closing or self._awaited or self._in_body or self._lower_paused:
            return
        if self._http.our_state is not h11.DONE:
            return
        if self._ended or self._http.their_state is not h11.DONE:
            self.close()
            return
        self._http.start_next_cycle()
        self._let_go("ahead")
        self._go_on()

    def _respond(
        self, status: int, headers: list[tuple[bytes, bytes]], body: list[Any], *, is_refusal: bool = False
    ) -> None:
        """A refused client may still be sending its header, or may have sent more."""
        self._awaited = False
        http = self._http
        out = [http.send(h11.Response(status_code=status, headers=headers))]
        if body and not self._is_head:
            data = http.send(h11.Data(data=b"".join(body) if len(body) > 1 else bytes(body[0])))
            out.append(data)
        out.append(http.send(h11.EndOfMessage()))
        # From Python 3.12 on, asyncio's loop never finishes sending an empty piece, and does not close before.
        self._lower.writelines([piece for piece in out if piece])
        if http.our_state is h11.MUST_CLOSE:
            if (self._in_body or is_refusal) and not self._ended:
                self._part()
            else:
                self._closing = True
                self._stop_timer()
                self._lower.close()

    def _refuse(self, refusal: _Refusal) -> None:
        """The connection is closed after it: the rest of the body is not read."""
        text = str(refusal).encode() + b"\n"
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            plain = (b"content-type", b"text/plain; charset=utf-8")
            length = (b"content-length", b"%d" % len(text))
            headers = [plain, length, (b"connection", b"close"), *refusal.headers]
            self._respond(refusal.status, headers, [text], is_refusal=True)
        self._awaited = False
        if self._closing:
            return
        if self._ended:
            self.close()
        else:
            self._part()

    def _watch_request(self) -> None:
        """A request that has begun has a time limit: for the header from its first byte, for the body from the
        header."""
        if self._timer is not None:
            return
        if self._in_body:
            if self._port.limits.message_timeout_s:
                self._start_timer(self._port.limits.message_timeout_s, self._body_overdue)
        elif self._http.trailing_data[0]:
            self._start_timer(self._port.limits.header_timeout_s, self._header_overdue)

    def _header_overdue(self) -> None:
        self._timer = None
        self._port.failed("timeout", self._address, f"no whole header within {self._port.limits.header_timeout_s:g} s")
        self.abort()

    def _body_overdue(self) -> None:
        """A running call has its own time limit, and an incomplete call that of messages. This one is for bodies of
        which nothing has arrived yet, or which do not end with their call."""
        self._timer = None
        if self._upper.has_other_limit() or not self._is_done_with_what_came() or self.waits_for_slice:
            self._watch_request()
            return
        text = f"no whole body within {self._port.limits.message_timeout_s:g} s (setting server.message_timeout_s)"
        self._port.failed("timeout", self._address, text)
        self._refuse(_Refusal(408, text))
