"""TLS between the socket and a connection: a protocol for the socket, a transport for the connection.

The loop's own TLS is not used, for three reasons. It counts encrypted but unsent bytes as sent, so that a client that
takes nothing of a large reply could not be noticed (P11). For it, a connection exists only after the handshake, so that
no limit would apply to clients in their handshake. And each connection here uses the context that is in force when it
is accepted, so that a new certificate needs no new listener.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from hms_cache.server.buffers import BufferBudget, Holder
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.layer import Handshakes, Layer, part_from

PIECE_BYTES = 256 * 1024
"""Bytes of a reply that are encrypted at once. The rest waits unencrypted until the client has taken these, so that a
large reply is not held twice and other clients have their turn (at 1 GiB/s this takes a quarter of a millisecond)."""

RECORD_BYTES = 16 * 1024
"""Maximum size of a TLS record (RFC 8446, 5.1): one read returns no more. A read allocates the size that it asks for,
and the system may map and unmap large blocks (`app.system.allocator`) each time."""

_HEADER_BYTES = 5
"""In front of each record: its type, version and length."""

MAX_ANSWER_BYTES = 64 * 1024
"""Bytes of answers by TLS itself to a client that reads nothing. Each message that asks for a new key (RFC 8446, 4.6.3)
is answered by one of 27 bytes; honest clients send one in thousands of records. There is no setting, since a client
would need two thousand of them in a row, without reading."""

MAX_EMPTY_BYTES = 256 * 1024
"""Bytes of records in a row that carry nothing for the connection, such as key updates. OpenSSL itself closes
connections that send other empty records."""

OUTCOMES = (
    "ok",
    "plaintext",
    "protocol",
    "client_certificate",
    "refused_by_client",
    "timeout",
    "closed",
    "other",
)

_HANDSHAKE_RECORD = 0x16
"""The first byte of each TLS client (RFC 8446, 5.1); plain Thrift begins with 0x80 or 0x00, HTTP with a letter."""

_PROTOCOL_REASONS = frozenset(
    {"UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW", "NO_SUITABLE_KEY_SHARE",
     "INAPPROPRIATE_FALLBACK", "WRONG_VERSION_NUMBER", "WRONG_SSL_VERSION", "NO_SUITABLE_SIGNATURE_ALGORITHM",
     "TLSV1_ALERT_PROTOCOL_VERSION"}
)  # fmt: skip
_CERTIFICATE_REASONS = frozenset(
    {"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE", "EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL"}
)


class TlsPort(Handshakes):
    """TLS of one port. Everything but `context` is touched on the port's event loop only."""

    def __init__(
        self,
        context: ssl.SSLContext,
        handshake_timeout_s: float,
        answer_plaintext: Callable[[bytes], bytes],
        buffers: BufferBudget | None,
    ) -> None:
        """`answer_plaintext`: returns the answer to a client that does not speak TLS, given its first bytes; `buffers`:
        counts received bytes, None if the number of connections is limit enough. With it, the protocol behind is a
        `Holder`."""
        super().__init__("TLS", OUTCOMES)
        self.context = context
        """Used for connections from now on. A reload sets another one, from any thread."""
        self.handshake_timeout_s = handshake_timeout_s
        self.answer_plaintext = answer_plaintext
        self.buffers = buffers

    def protect(self, upper: asyncio.Protocol, round_robin: RoundRobin) -> TlsLayer:
        """The protocol for a new socket. It hands to `upper` what the client sent in TLS."""
        return TlsLayer(upper, self, round_robin)


_NOBODY = asyncio.Protocol()


class TlsLayer(Layer):
    """TLS of one connection. `upper` learns of the connection at once, so that limits apply to handshakes, too."""

    _upper: asyncio.Protocol

    def __init__(self, upper: asyncio.Protocol, port: TlsPort, round_robin: RoundRobin) -> None:
        super().__init__(round_robin, port.buffers)
        self._upper = upper
        self._port = port
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._context = port.context
        self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._greeted = False
        """Whether the client has begun a handshake."""
        self._established = False
        self._handshake_bytes = 0
        """Bytes received of the handshake."""
        self._counted = False
        """Whether the outcome of the handshake is known."""
        self._header = b""
        """Bytes received of an incomplete record header."""
        self._rest_bytes = 0
        """Bytes of a record that have not arrived."""
        self._backlog: deque[memoryview] = deque()
        """Bytes to be sent that are not encrypted yet."""
        self._backlog_bytes = 0
        self._answer_bytes = 0
        """Bytes of answers by TLS itself since the client last caught up."""
        self._empty_bytes = 0
        """Bytes received since the last record that carried something for the connection."""
        self._upper_paused = False
        self._ended = False
        self._end_is_held = False
        """Whether the client ended TLS while the connection is not reading."""
        self._parting = False

    # The socket's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tells the connection, and gives the client its time for the handshake."""
        self._lie_on(transport)
        self._lower.set_write_buffer_limits(high=0)
        self._start_timer(self._port.handshake_timeout_s, self._overdue)
        self._upper.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Continues with the handshake, or decrypts."""
        if self._closing:
            return
        if not self._greeted and data[0] != _HANDSHAKE_RECORD:
            self._refuse_plaintext(data)
            return
        self._greeted = True
        if self._established:
            self._receive(data)
        else:
            # A handshake takes a millisecond for signing: handshakes of many clients take turns.
            self._handshake_bytes += len(data)
            self._receive_later(data)

    def _read(self, data: bytes) -> None:
        self._follow_records(data)
        self._incoming.write(data)
        if self._established or self._shake_hands():
            self._deliver(len(data))
            self._charge()

    def _follow_records(self, data: bytes) -> None:
        """Tracks whether a record is incomplete, which OpenSSL does not tell."""
        header, self._header = self._header, b""
        position = self._rest_bytes
        while position < len(data):
            missing = _HEADER_BYTES - len(header)
            header += data[position : position + missing]
            position += missing
            if len(header) < _HEADER_BYTES:
                self._header, position = header, len(data)
                break
            position += int.from_bytes(header[3:])
            header = b""
        self._rest_bytes = position - len(data)

    def eof_received(self) -> bool:
        """True: this layer closes the socket itself."""
        if self._received:
            self._end_waits = True
        elif self._established:
            self._end()
        else:
            self.abort()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tells the connection."""
        self._stop_timer()
        if not self._counted:
            self._counted = True
            self._port.ended_early(self._address, "the connection ended in the handshake", is_begun=self._greeted)
        self._closing = True
        self._received.clear()
        self._drop_backlog()
        self._stop_counting()
        self._upper.connection_lost(error)
        self._upper = _NOBODY  # HTTP and SASL refer to this layer: a cycle that would keep OpenSSL's memory

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        self._lower_paused = True
        if not self._upper_paused:
            self._upper_paused = True
            self._upper.pause_writing()

    def resume_writing(self) -> None:
        """The client caught up: more is encrypted."""
        self._lower_paused = False
        self._answer_bytes = 0
        self._pump()
        if self._upper_paused and not self._lower_paused and not self._backlog:
            self._upper_paused = False
            self._upper.resume_writing()

    # The connection's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypts and sends. What the client does not take yet waits unencrypted."""
        if self._closing or not self._established:
            return
        if not self._backlog and not self._lower_paused and len(data) <= PIECE_BYTES:
            try:
                self._tls.write(data)
            except ssl.SSLError:
                self.abort()
                return
            self._lower.write(self._outgoing.read())
            return
        self._backlog.append(memoryview(data))
        self._backlog_bytes += len(data)
        self._pump()

    def resume_reading(self) -> None:
        """The connection reads again."""
        super().resume_reading()
        if self._end_is_held:
            self._end_is_held = False
            asyncio.get_running_loop().call_soon(self._end)

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not taken."""
        return self._lower.get_write_buffer_size() + self._backlog_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Always none: see `connection_made`."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio's transports, including those with TLS."""
        if name == "ssl_object":
            return self._tls
        if name == "sslcontext":
            return self._context
        return super().get_extra_info(name, default)

    def close(self) -> None:
        """Closes after everything written has been sent. The client's answer to the end of TLS is not awaited."""
        if not self._closing:
            self._closing = True
            if not self._backlog:
                self._finish()

    def part(self) -> None:
        """Like `close`, but bytes that the client still sends are read, see `part_from`."""
        self._parting = not self._closing
        self.close()

    def abort(self) -> None:
        """Closes at once."""
        self._closing = True
        self._drop_backlog()
        self._lower.abort()

    # The budget's holder

    def disconnect(self, reason: str) -> None:
        """The bytes are needed by others. The client is told by the connection; during the handshake it cannot be
        told."""
        if self._established and not self._closing:
            self._received.clear()
            cast(Holder, self._upper).disconnect(reason)
            return
        if not self._counted:
            self._fail("other", reason)
        super().disconnect(reason)

    def _used_bytes(self) -> int:
        """Bytes that OpenSSL may hold: each handshake message until it is complete, up to 128 KiB, and all of them for
        their digest. Later, it allocates a whole record as soon as one begins: for many clients that send a few bytes
        and wait, that is as much as their connections take."""
        if not self._established:
            return 2 * self._handshake_bytes
        is_unfinished = bool(self._header or self._rest_bytes)
        return super()._used_bytes() + (RECORD_BYTES if is_unfinished else 0)

    # Handshake

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            # With the alert that tells the client the reason. The timer stays, for a client that does not take it.
            self._flush()
            self._fail(_outcome_of(error), _reason_of(error))
            self._closing = True
            self._lower.close()
            return False
        self._established = self._counted = True
        self._port.outcomes["ok"] += 1
        self._stop_timer()
        self._flush()
        return True

    def _refuse_plaintext(self, data: bytes) -> None:
        self._fail("plaintext", "it does not speak TLS")
        self._lower.write(self._port.answer_plaintext(data))
        super().part()

    def _overdue(self) -> None:
        self._timer = None
        if not self._counted:
            self._fail("timeout", f"no handshake within {self._port.handshake_timeout_s:g} s")
        self.abort()

    def _fail(self, outcome: str, reason: str) -> None:
        self._counted = True
        self._port.failed(outcome, self._address, reason)

    # Bytes

    def _deliver(self, came_bytes: int) -> None:
        """Hands on everything that can be decrypted, after more bytes have arrived."""
        pieces: list[bytes] = []
        ended = broken = False
        try:
            while piece := self._tls.read(RECORD_BYTES):
                pieces.append(piece)
                if not (self._incoming.pending or self._tls.pending()):
                    break  # another read would report the same, by an exception
            else:
                ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            ended = True
        except ssl.SSLError:
            broken = True
        if self._outgoing.pending:  # a new key (TLS 1.3), or an alert
            if self._lower_paused:
                self._answer_bytes += self._outgoing.pending
                if self._answer_bytes > MAX_ANSWER_BYTES:
                    self._log_disconnect("it asks for new TLS keys and takes no answer")
                    broken = True
            self._flush()
        self._empty_bytes = 0 if pieces else self._empty_bytes + came_bytes
        if self._empty_bytes > MAX_EMPTY_BYTES:
            self._log_disconnect("it sends TLS records without content")
            broken = True
        if pieces:
            self._upper.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if broken:
            self.abort()
        elif ended and not self._closing:
            self._end()

    def _end(self) -> None:
        """The client will send no more. A connection that is not reading is told later, as by a socket: bytes that
        arrived with the end may still have to be read."""
        if self._is_held_by_upper:
            self._end_is_held = True
        elif not self._ended and not self._closing:
            self._ended = True
            if not self._upper.eof_received():
                self.close()

    def _pump(self) -> None:
        """Encrypts waiting bytes as long as the client takes them."""
        while self._backlog and not self._lower_paused:
            data = self._backlog[0]
            try:
                written = self._tls.write(data[:PIECE_BYTES])
            except ssl.SSLError:
                self.abort()
                return
            self._backlog_bytes -= written
            if written == len(data):
                self._backlog.popleft()
            else:
                self._backlog[0] = data[written:]
            self._lower.write(self._outgoing.read())
        if self._closing and not self._backlog:
            asyncio.get_running_loop().call_soon(self._finish)  # see `Layer.resume_writing`

    def _finish(self) -> None:
        if self._established:
            with suppress(ssl.SSLError):  # our end of TLS is sent; the client's has not arrived yet
                self._tls.unwrap()
            self._flush()
        if self._parting:
            part_from(self._lower, self.connection_lost)
        else:
            self._lower.close()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._lower.is_closing():
            self._lower.write(self._outgoing.read())

    def _drop_backlog(self) -> None:
        self._backlog.clear()
        self._backlog_bytes = 0


def _reason_of(error: ssl.SSLError) -> str:
    """Describes what is wrong with a client's certificate: it is revoked, or the list of its authority has expired."""
    reason = error.reason or type(error).__name__
    return f"{reason}: {error.verify_message}" if isinstance(error, ssl.SSLCertVerificationError) else reason


def _outcome_of(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in _PROTOCOL_REASONS:
        return "protocol"
    if reason in _CERTIFICATE_REASONS:
        return "client_certificate"
    return "refused_by_client" if "ALERT" in reason else "other"
