"""SASL between the socket (or TLS) and a connection: only authenticated clients can send calls."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, cast

from hms_cache.authentication.mechanism import AuthenticationError, Identity, Mechanism, SecurityLayer
from hms_cache.authentication.negotiation import BAD, ERROR, START, Negotiation
from hms_cache.server.buffers import BufferBudget, Holder
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.layer import Handshakes, Layer
from hms_cache.server.session import IDENTITY
from hms_cache.server.transports.fair_threads import FairThreads
from hms_cache.server.transports.plain_calls import refusal_of_plain_call

STEP_THREADS = 8
"""Threads that verify tickets and passwords. A directory that does not answer, or that is slow for a wrong password,
occupies one for each client until its timeout; running calls do not wait for it. Addresses take turns."""

OUTCOMES = (
    "ok",
    "refused",
    "refused_by_client",
    "bad_message",
    "plaintext",
    "unavailable",
    "timeout",
    "closed",
    "bad_frame",
)

_LENGTH = struct.Struct("!I")

_WRAPPING_BYTES = 1024
"""Upper bound for how much longer a GSSAPI token is than the data that it protects."""

_PIECE_BYTES = 16 * 1024
"""Bytes of a reply in one token: Java's clients announce that they accept 64 KiB. 3DES takes half a millisecond for
them. A longer reply is wrapped in turns."""

INLINE_BYTES = 16 * 1024
"""Up to this size, frames are unwrapped when they are whole. Java's clients send a whole request in one frame, however
long (`TSaslTransport.flush`), and a token is unwrapped in one go: that of a longer frame on a thread."""

UNWRAP_THREADS = 2
"""In addition to those of negotiations, which should not wait for long requests."""

MAX_EMPTY_FRAMES = 100
"""Empty frames in a row. Clients that flush once more send one, and Java's server closes the connection at the first
one (`readAll`). A million a second would keep a connection busy without being noticed by its limits, since no part of a
request arrives."""

_HANDED_BYTES = 64 * 1024
"""Bytes of a long frame's content that are handed on in each turn."""

_REQUIRED = (
    "this metastore asks clients who they are: set hive.metastore.sasl.enabled=true and"
    " hive.metastore.kerberos.principal, or hive.metastore.client.auth.mode=PLAIN"
)


class SaslPort(Handshakes):
    """SASL of one port."""

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[], Mechanism]],
        handshake_timeout_s: float,
        message_timeout_s: float,
        max_message_bytes: int,
        buffers: BufferBudget,
        network_of: Callable[[str], str] = str,
    ) -> None:
        """`network_of`: maps an address to the network whose addresses share one turn."""
        super().__init__("authentication", OUTCOMES)
        self.mechanisms = mechanisms
        self.handshake_timeout_s = handshake_timeout_s
        self.message_timeout_s = message_timeout_s
        self.max_frame_bytes = max_message_bytes + _WRAPPING_BYTES
        self.buffers = buffers
        self.threads = FairThreads(STEP_THREADS, "hms-sasl", network_of)
        self.unwrapping = FairThreads(UNWRAP_THREADS, "hms-unwrap", network_of)

    def protect(self, upper: asyncio.Protocol, round_robin: RoundRobin) -> SaslLayer:
        """The protocol for a new socket. It hands to `upper` what an authenticated client sends."""
        return SaslLayer(upper, self, round_robin)

    def close(self) -> None:
        """Takes no more steps. Clients that wait for one get no answer."""
        self.threads.close()
        self.unwrapping.close()


class _Sender:
    """Wraps waiting bytes in turns."""

    def __init__(self, layer: SaslLayer) -> None:
        self._layer = layer

    def run_slice(self) -> None:
        """Wraps a slice of them."""
        self._layer.send_slice()


class SaslLayer(Layer):
    """SASL of one connection. `upper` learns of the connection at once, so that limits apply to negotiations, too."""

    _upper: asyncio.Protocol

    def __init__(self, upper: asyncio.Protocol, port: SaslPort, round_robin: RoundRobin) -> None:
        super().__init__(round_robin, port.buffers)
        self._upper = upper
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._negotiation: Negotiation | None = Negotiation(port.mechanisms)
        self._greeted = False
        self._stepping = False
        self._counted = False
        self._reading_paused = False
        self._identity: Identity | None = None
        self._protection: SecurityLayer | None = None
        """Bytes received of the negotiation, later those of an incomplete frame."""
        self._head = b""
        """Bytes received of a frame whose length is incomplete."""
        self._remaining_bytes = 0
        """Bytes of an unprotected frame that have not arrived: they are handed on as they arrive."""
        self._frame = bytearray()
        """Received parts of an incomplete protected frame."""
        self._empty_frames = 0
        """Empty frames in a row."""
        self._unwrapping_bytes = 0
        """Bytes of the frame that a thread is unwrapping, during which nothing else uses the protection. 0: none is."""
        self._clear: memoryview | None = None
        """Content of a long frame that has not been handed to the connection."""
        self._token_bytes = _PIECE_BYTES
        """Bytes of a reply that go into one token for this client."""
        self._unsent: deque[memoryview] = deque()
        """Bytes to be sent that are not wrapped yet."""
        self._unsent_bytes = 0
        self._sender = _Sender(self)
        self._sends_later = False
        """Whether the sender waits for a turn."""
        self._upper_paused = False
        self._closes_after_sending = False

    # The socket's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tells the connection, and gives the client its time for the negotiation."""
        self._lie_on(transport)
        self._start_timer(self._port.handshake_timeout_s, self._overdue)
        self._upper.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Continues with the negotiation, or processes frames."""
        if self._closing:
            return
        negotiation = self._negotiation
        if negotiation is None:
            self._receive(data)
            return
        if not self._greeted:
            if data[0] not in (START, BAD, ERROR):
                self._end_in_vain("plaintext", "it does not authenticate", refusal_of_plain_call(data, _REQUIRED))
                return
            self._greeted = True
        negotiation.feed(data)
        if not self._stepping:
            self._advance(negotiation)
        self._charge()

    def eof_received(self) -> bool:
        """True: this layer closes the socket itself."""
        if self._received or self._blocked:
            self._end_waits = True
            return True
        if self._negotiation is not None:
            self.abort()
            return True
        self._count_truncated_frame("the connection ended within a frame")
        if not self._upper.eof_received():
            self.close()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tells the connection."""
        self._stop_timer()
        if not self._counted:
            self._counted = True
            self._port.ended_early(self._address, "the connection ended in the negotiation", is_begun=self._greeted)
        elif not self._closing:
            self._count_truncated_frame("the connection ended within a frame")
        self._closing = True
        self._forget()
        self._stop_counting()
        self._upper.connection_lost(error)

    # The connection's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends one frame, or several protected ones."""
        if self._closing or self._negotiation is not None:
            return
        protection = self._protection
        if protection is None:
            self._lower.writelines((_LENGTH.pack(len(data)), data))
            return
        if len(data) <= self._token_bytes and not self._unsent and not self._unwrapping_bytes:
            token = protection.wrap(memoryview(data))
            self._lower.writelines((_LENGTH.pack(len(token)), token))
            return
        self._unsent.append(memoryview(data))
        self._unsent_bytes += len(data)
        self._notify_upper()
        self._send_in_slices()

    def send_slice(self) -> None:
        """Wraps and sends waiting bytes, for one slice at most, and no more than the client takes."""
        self._sends_later = False
        protection = self._protection
        end_s = perf_counter() + self._round_robin.slice_s
        while self._unsent and not self._unwrapping_bytes and not self._lower_paused and not self._lower.is_closing():
            assert protection is not None, "else nothing waits"
            data = self._unsent.popleft()
            if len(data) > self._token_bytes:
                self._unsent.appendleft(data[self._token_bytes :])
                data = data[: self._token_bytes]
            self._unsent_bytes -= len(data)
            token = protection.wrap(data)
            self._lower.writelines((_LENGTH.pack(len(token)), token))
            if perf_counter() >= end_s:
                break
        if self._unsent:
            self._send_in_slices()
        elif self._closes_after_sending:
            self._lower.close()
        else:
            self._notify_upper()

    def _send_in_slices(self) -> None:
        is_possible = bool(self._unsent) and not self._unwrapping_bytes and not self._lower_paused
        if is_possible and not self._sends_later:
            self._sends_later = True
            self._round_robin.later(self._address, self._sender)

    def _notify_upper(self) -> None:
        """Whether the connection may write: not while the client takes nothing, nor while bytes wait here."""
        paused = self._lower_paused or bool(self._unsent)
        if paused != self._upper_paused:
            self._upper_paused = paused
            if paused:
                self._upper.pause_writing()
            else:
                self._upper.resume_writing()

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        self._lower_paused = True
        self._notify_upper()

    def resume_writing(self) -> None:
        """The client caught up."""
        self._lower_paused = False
        self._send_in_slices()
        self._notify_upper()

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not taken."""
        return super().get_write_buffer_size() + self._unsent_bytes

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio's transports; and the identity of the client."""
        return self._identity if name == IDENTITY else super().get_extra_info(name, default)

    def close(self) -> None:
        """Closes after what is already written has gone out."""
        if self._unsent:
            self._closes_after_sending = True
            self._hold("closing")
        else:
            self._lower.close()
        self._closing = True

    def abort(self) -> None:
        """Closes at once."""
        self._closing = True
        self._forget()
        self._lower.abort()

    def _forget(self) -> None:
        """The bytes are not needed any more."""
        self._received.clear()
        self._frame.clear()
        self._clear = None
        self._unsent.clear()
        self._unsent_bytes = 0

    def pause_reading(self) -> None:
        """The rest of a frame cannot arrive meanwhile, so its timer stands still."""
        self._reading_paused = True
        if self._negotiation is None:
            self._stop_timer()
        super().pause_reading()

    def resume_reading(self) -> None:
        """The timer continues."""
        self._reading_paused = False
        super().resume_reading()
        if self._negotiation is None and not self._closing:
            self._watch_frame(anew=True)

    # The budget's holder

    def disconnect(self, reason: str) -> None:
        """The bytes are needed by others. An authenticated client is told by the connection, if at all."""
        self._forget()
        if self._closing:
            self.abort()
        elif self._negotiation is None:
            cast(Holder, self._upper).disconnect(reason)
        else:
            self._refuse(AuthenticationError(reason, "unavailable"))

    def _used_bytes(self) -> int:
        negotiation = self._negotiation
        sent_ahead = negotiation.used_bytes if negotiation is not None else 0
        clear_bytes = len(self._clear) if self._clear is not None else 0
        return super()._used_bytes() + sent_ahead + len(self._frame) + 2 * self._unwrapping_bytes + clear_bytes

    # Negotiation

    def _advance(self, negotiation: Negotiation) -> None:
        try:
            response = negotiation.next_response()
        except AuthenticationError as error:
            self._refuse(error)
            return
        mechanism = negotiation.mechanism
        if response is None or mechanism is None:
            return
        self._stepping = True
        self._hold("step")

        def step() -> None:
            challenge, failure = _attempt("not authenticated", lambda: mechanism.step(response))
            self._loop.call_soon_threadsafe(self._stepped, negotiation, challenge, failure)

        self._port.threads.submit(self._address, step, lambda: not self._closing)

    def _stepped(self, negotiation: Negotiation, challenge: bytes, failure: AuthenticationError | None) -> None:
        self._stepping = False
        if self._closing:
            return
        if failure is not None:
            self._refuse(failure)
            return
        mechanism = negotiation.mechanism
        assert mechanism is not None
        self._lower.write(negotiation.answer(challenge))
        self._let_go("step")
        if not mechanism.complete:
            self._advance(negotiation)
            return
        self._counted = True
        self._port.outcomes["ok"] += 1
        self._stop_timer()
        self._negotiation = None
        self._identity = Identity(mechanism.user, mechanism.principal, negotiation.mechanism_name, mechanism.real_user)
        self._protection = mechanism.layer
        if mechanism.layer is not None:
            self._token_bytes = min(_PIECE_BYTES, mechanism.layer.piece_bytes)
        rest = negotiation.rest()
        if rest:
            self._receive(rest)
        self._charge()

    def _refuse(self, error: AuthenticationError) -> None:
        self._end_in_vain(error.outcome, str(error), Negotiation.refusal(error))

    def _end_in_vain(self, outcome: str, reason: str, reply: bytes) -> None:
        """The timer stays, for a client that does not take the message."""
        self._counted = True
        self._port.failed(outcome, self._address, reason)
        self._lower.write(reply)
        self.part()

    def _overdue(self) -> None:
        self._timer = None
        if not self._counted:
            self._counted = True
            limit_s = self._port.handshake_timeout_s
            self._port.failed("timeout", self._address, f"not authenticated within {limit_s:g} s")
        else:
            self._count_truncated_frame(f"a frame is not whole after {self._port.message_timeout_s:g} s")
        self.abort()

    # Frames

    def _read(self, data: bytes) -> None:
        if self._protection is not None:
            self._receive_protected(data, self._protection)
            return
        if not self._head and not self._remaining_bytes and len(data) >= 4:
            length = _LENGTH.unpack_from(data)[0]
            if 0 < length == len(data) - 4 and length <= self._port.max_frame_bytes:
                self._empty_frames = 0
                self._upper.data_received(data[4:])
                return
        pieces = []
        position = 0
        while position < len(data):
            if self._remaining_bytes:
                piece = data[position : position + self._remaining_bytes]
                self._empty_frames = 0
                self._remaining_bytes -= len(piece)
                position += len(piece)
                pieces.append(piece)
                continue
            missing = 4 - len(self._head)
            self._head += data[position : position + missing]
            position += missing
            if len(self._head) == 4:
                self._remaining_bytes = _LENGTH.unpack(self._head)[0]
                self._head = b""
                if not self._is_allowed(self._remaining_bytes) or (
                    not self._remaining_bytes and self._is_one_too_empty()
                ):
                    return
        self._watch_frame(anew=bool(pieces))
        if pieces:
            self._upper.data_received(b"".join(pieces))

    def _receive_protected(self, data: bytes, protection: SecurityLayer) -> None:
        self._frame += data
        self._unwrap(protection)

    def _unwrap(self, protection: SecurityLayer) -> None:
        """Processes complete frames in order. Behind a long frame, nothing is processed until a thread has unwrapped
        it."""
        frame = self._frame
        pieces = []
        start = 0
        while len(frame) - start >= 4 and not self._blocked:
            length = _LENGTH.unpack_from(frame, start)[0]
            if not self._is_allowed(length):
                return
            end = start + 4 + length
            if len(frame) < end:
                break
            with memoryview(frame) as view:
                token = bytes(view[start + 4 : end])
            start = end
            if length > INLINE_BYTES:
                self._unwrap_on_thread(protection, token)
                break
            try:
                piece = protection.unwrap(token)
            except AuthenticationError as error:
                self._bad_frame(str(error))
                return
            if piece:
                self._empty_frames = 0
                pieces.append(piece)
            elif self._is_one_too_empty():
                return
        del frame[:start]
        self._charge()
        self._watch_frame(anew=bool(start))
        if pieces and not self._closing:
            self._upper.data_received(b"".join(pieces))

    def _unwrap_on_thread(self, protection: SecurityLayer, token: bytes) -> None:
        self._unwrapping_bytes = len(token)
        self._blocked = True
        self._hold("unwrapping")

        def unwrap() -> None:
            content, failure = _attempt("a frame cannot be unwrapped", lambda: protection.unwrap(token))
            self._loop.call_soon_threadsafe(self._unwrapped, content, failure)

        # Replies may still wait behind it when this layer is closed.
        self._port.unwrapping.submit(self._address, unwrap, lambda: not self._lower.is_closing())

    def _unwrapped(self, content: bytes, failure: AuthenticationError | None) -> None:
        self._unwrapping_bytes = 0
        if self._lower.is_closing():
            return
        if failure is not None:
            self._bad_frame(str(failure))
            return
        self._send_in_slices()
        if self._closing:
            return
        if content:
            self._empty_frames = 0
        self._clear = memoryview(content)
        self._charge()
        self._wait_for_slice()

    def run_slice(self) -> None:
        """Hands on a piece of a long frame, or processes received bytes."""
        if self._clear is None or self._closing:
            super().run_slice()
            return
        self._queued = False
        piece, rest = self._clear[:_HANDED_BYTES], self._clear[_HANDED_BYTES:]
        self._clear = rest if len(rest) else None
        if self._clear is None:
            self._blocked = False
            self._let_go("unwrapping")
        self._charge()
        self._upper.data_received(bytes(piece))
        if self._closing:
            return
        if self._clear is None:
            assert self._protection is not None, "it unwrapped the frame"
            self._unwrap(self._protection)
        if not self._unwrapping_bytes and not self._closing:
            self._wait_for_slice()

    def _is_allowed(self, length: int) -> bool:
        limit = self._port.max_frame_bytes
        if length > limit:
            self._bad_frame(f"a frame of {length} bytes; {limit} are allowed (setting server.max_message_bytes)")
        return length <= limit

    def _is_one_too_empty(self) -> bool:
        """Counts an empty frame. Returns whether the connection is to be closed."""
        self._empty_frames += 1
        is_too_many = self._empty_frames > MAX_EMPTY_FRAMES
        if is_too_many:
            self._bad_frame(f"more than {MAX_EMPTY_FRAMES} empty frames in a row")
        return is_too_many

    def _count_truncated_frame(self, reason: str) -> None:
        """An incomplete frame will not be completed: reported once for a connection."""
        if self._frame or self._remaining_bytes or self._head:
            self._port.failed("bad_frame", self._address, reason)
            self._frame.clear()
            self._remaining_bytes = 0
            self._head = b""

    def _bad_frame(self, reason: str) -> None:
        self._port.failed("bad_frame", self._address, reason)
        self.abort()

    def _watch_frame(self, *, anew: bool) -> None:
        """An incomplete frame has a time limit while it can arrive. The message inside an unprotected frame is limited
        by the connection. `anew`: another frame than before."""
        begun = bool(self._frame or self._head or self._remaining_bytes) and not self._blocked
        if anew or not begun:
            self._stop_timer()
        if begun and self._timer is None and self._port.message_timeout_s and not self._reading_paused:
            self._start_timer(self._port.message_timeout_s, self._overdue)


def _attempt(trouble: str, work: Callable[[], bytes]) -> tuple[bytes, AuthenticationError | None]:
    """The result of the work, or the error. A defect of a library affects this client only."""
    try:
        return work(), None
    except AuthenticationError as error:
        return b"", error
    except Exception as error:
        return b"", AuthenticationError(f"{trouble}: {type(error).__name__}")
