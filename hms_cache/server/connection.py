"""One client connection: turns bytes from the socket into messages, runs the calls in order, and sends the replies.

Everything here runs on the event loop, except `Dispatcher.execute`, which runs on a thread of a pool. A connection runs
one call at a time, so a `Session` needs no lock.
"""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

from hms_cache.cache.answers import Reply
from hms_cache.event_loops import ClientTimer
from hms_cache.server.combined_replies import Member, schedule_reply
from hms_cache.server.fairness import SLICE_S
from hms_cache.server.faults import busy, wire_fault
from hms_cache.server.first_call import FirstCall
from hms_cache.server.layer import Layer, address_of, part_from
from hms_cache.server.session import ANONYMOUS, Session
from hms_cache.server.slow_readers import SlowReader
from hms_cache.server.transports.tcp_info import seconds_without_data
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.wire import Message, MessageReader, ServerFull, TruncatedMessage, WireError, encode_exception

if TYPE_CHECKING:
    from hms_cache.server.authorization.hot_requests import AuthorizedHotPath
    from hms_cache.server.hot_path import HotPath
    from hms_cache.server.listener import Listener
    from hms_cache.server.port import Port

PIPELINE_BYTES = 128 * 1024
"""Bytes that a client may send ahead while its call is running, or while it does not take its replies; beyond that, the
socket is not read (P11). A larger message still arrives: reading only pauses meanwhile. This is less than the loop
reads of a socket at once, since otherwise the same bytes would be read and copied repeatedly in one turn."""

LARGE_READ_BYTES = 64 * 1024
"""A client that sends this much at once is not read again before its turn. Reading takes time, too, and the loop would
read up to 8 MB of each socket in one turn."""

REFUSAL_TIMEOUT_S = 2.0
"""Time that a refused connection has to send the request which is answered with the reason."""

DIRECT_BYTES = 1024
"""Up to this size, received bytes are decoded at once, as nearly all requests are. Longer ones wait for their turn
(`RoundRobin`)."""

_HOT = object()


class Connection(asyncio.Protocol):
    """An asyncio protocol per client. Created cheaply: a connect-and-close costs no thread, call or log line."""

    def __init__(self, listener: Listener, port: Port) -> None:
        self._listener = listener
        self.port = port
        """The port that it came from."""
        self._reader = MessageReader(
            listener.settings.max_message_bytes, slice_s=SLICE_S, limits=listener.message_limits_bytes
        )
        self._queued = False
        """Whether it waits for a turn to continue with received bytes."""
        self._transport: asyncio.Transport | None = None
        self._address = self._network = ""
        """The client's address, and the network whose addresses count as one client in limits."""
        self._session: Session | None = None
        self._running: object | None = None
        """The message whose call is running; `_HOT` while a request waits for a position check."""
        self._held = b""
        """The bytes of the request that waits for a position check. The reader gets them if the request has to be
        decoded."""
        self._behind = False
        """Whether bytes, or the end of the stream, arrived while a call was running."""
        self._ended = False
        """Whether the client has ended its sending side."""
        self._deadline: asyncio.TimerHandle | None = None
        self._arrival: ClientTimer | None = None
        self._paused = False
        self._writable = True
        self._closing = False
        self._refusal: str | None = None
        self.has_refused_bytes = False
        self.one_way_refusal = ""
        """Why a one-way call was not begun, or did not end in time: Thrift has no reply that could say it."""
        self._hot: HotPath | FirstCall | AuthorizedHotPath | None = None
        self._slow: SlowReader | None = None
        """Set while the client does not take what was written."""
        self.charged_bytes = 0
        self.charged_since_s = 0.0

    # Socket events

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection. A refused one gets the reason as the answer to its first message, and is then
        closed."""
        self._transport = cast(asyncio.Transport, transport)
        # Replies are sent at once, not at the end of the loop's turn: of several requests that wait for one position
        # check, the first has its reply while those of the others are made. While the client does not take its reply,
        # no further call of it is started.
        self._transport.set_write_buffer_limits(high=0)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        address = address_of(self._transport)
        if address is None:  # not even counted: nobody hears an answer, and what it does would be nobody's
            self.abort()
            return
        self._address = address
        self._network = self._listener.network_of(self._address)
        self._refusal = self._listener.admit(self, self._network)
        if self._refusal is not None:
            self._arrival = ClientTimer(self._listener.loop, REFUSAL_TIMEOUT_S, self.abort)
        elif self._listener.authorized_hot_path is not None:
            self._hot = self._listener.authorized_hot_path()
        elif self._listener.hot_path is not None:
            self._hot = FirstCall(self._listener, self._listener.hot_path)

    def data_received(self, data: bytes) -> None:
        """Receives bytes: answers a request that is known by its bytes, or starts the next call if none is running.

        Every hot read passes through here, so all work done here adds to each of them.
        """
        if self._running is None:
            hot = self._hot
            if (
                hot is not None
                and self._writable
                and (peeked := self._reader.peek(data)) is not None
                and (reply := hot.answer(self, peeked[0], peeked[1])) is not None
            ):
                if reply:
                    self._write(reply)
                else:
                    self._running = _HOT
                    self._held = data
                return
        else:
            self._behind = True
        try:
            self._reader.feed(data)
            if self._running is None and self._writable and not self._queued:
                if self._reader.buffered_bytes <= DIRECT_BYTES:
                    self._start_next()
                    return
                self._queue()
            if self._queued:
                if not self._paused and len(data) >= LARGE_READ_BYTES:
                    self._pause_reading()
                self._charge()
            else:
                if not self._paused and self._reader.buffered_bytes > PIPELINE_BYTES:
                    self._pause_reading()
                self._charge()
        except WireError as error:
            self._refuse_bytes(error)

    def eof_received(self) -> bool:
        """The client ended its sending side. Complete requests are still answered: half-closed sockets are legal.

        A client that has gone cannot be told from one that still listens. So the connection is closed after the last
        reply. If this returns True, the loop does not close it, nor does it report the end of the stream again.
        """
        self._ended = True
        self._behind = True
        self.client_ended()
        return self._running is not None or self._queued or not self._writable

    def client_ended(self) -> None:
        """The client ended its sending side, and has probably gone: a read that waits for a thread lets others pass.

        Otherwise a client could connect, send an expensive read and leave, again and again, and so occupy all threads
        and all places in the queue without having a connection open.
        """
        message = self._running_read()
        if message is None:
            return
        pool = self._listener.pools.of(message.name)
        if not pool.postpone(message):
            self._end_unbegun(message)
            self._listener.refused_calls += 1
            self._report_refusal(message, pool.refusal())
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Removes the connection. A running call continues, and its reply is dropped; a read that has not begun is
        cancelled."""
        message = self._running_read()
        if message is not None and self._listener.pools.of(message.name).withdraw(message):
            self._end_unbegun(message)
        self._cancel_timers()
        self._closing = True
        self._transport = None
        self._hot = None
        self._held = b""
        self._reader.close()  # a decoder that is suspended within a message is a reference cycle
        self._listener.release(self, self._network, self._session)

    def pause_writing(self) -> None:
        """The client reads more slowly than the server writes: its next call starts only after it has caught up."""
        self._writable = False
        transport = self._transport
        if transport is not None:
            self._slow = SlowReader(self._listener, transport, self._charge, self.abort)
            self._charge()

    def resume_writing(self) -> None:
        """The client caught up. What it sent meanwhile is processed in a later turn: see `Layer.resume_writing`."""
        self._writable = True
        self._end_slowness()
        if self._running is None and not self._closing:
            self._queue()

    # Calls

    def is_idle(self) -> bool:
        """Whether no call is running."""
        return self._running is None

    def is_refused(self) -> bool:
        """Whether the hot path must not answer the request; the ordinary path reports the reason."""
        return self._refusal is not None

    def is_decoding(self) -> bool:
        """Whether received bytes wait for their turn to be decoded."""
        return self._queued

    def has_other_limit(self) -> bool:
        """Whether part of a message has come, or the client is being refused."""
        transport = self._transport
        return self._arrival is not None or self._closing or transport is None or transport.is_closing()

    def has_more(self) -> bool:
        """Whether there are received bytes that belong to no call that was begun."""
        return self._reader.buffered_bytes > 0

    def end_calls(self) -> None:
        """Drops everything received after the answered call. The caller closes the transport.

        The time that the client has to take the reply keeps running.
        """
        self._closing = True
        self._cancel_arrival_timer()
        self._hot = None
        self._reader.close()
        self._charge()

    @property
    def raw_socket(self) -> socket.socket | None:
        """The socket, while it is open."""
        transport = self._transport
        return cast("socket.socket | None", transport.get_extra_info("socket")) if transport is not None else None

    def client(self, of: Literal["user", "address"]) -> str:
        """The client: its user (anonymous before the first call), or its address."""
        if of == "address":
            return self._address
        return self._session.user if self._session is not None else ANONYMOUS

    def idle_s(self) -> float:
        """Seconds since bytes were last sent or received, according to the system; 0 while a call is running."""
        if self._running is not None or not self._writable or self._transport is None:
            return 0.0
        return seconds_without_data(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        """Closes after everything written has been sent. A client that takes none of it has a time limit."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()
            if self._listener.draining and self._slow is not None:
                self._slow.restart()

    def part(self) -> None:
        """Closes. A client that is still sending receives the refusal that was written, see `part_from`.

        A client that does not take earlier replies receives nothing: its time limit keeps running, as in `close`.
        """
        transport = self._transport
        if self._ended or transport is None or self._closing or not self._writable:
            self.close()
            return
        self.end_calls()
        self._cancel_timers()
        part_from(transport, self.connection_lost)

    def disconnect(self, reason: str) -> None:
        """Closes at once, because its bytes are needed. A client that was sending is told, if its message can be
        answered."""
        self._listener.log_limited("closing the connection of %s: %s", self._address, reason)
        if self._running is not None or not self._writable:
            self.abort()
            return
        error = ServerFull(reason)
        self._reader.fail(error)
        if error.message is not None and error.message.expects_reply:
            self._write(encode_exception(error.message, busy(reason)))
        self.part()

    def abort(self) -> None:
        """Closes at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def use_hot_path(self, hot: HotPath) -> None:
        """From now on the hot path itself is asked."""
        self._hot = hot

    def send_hot(self, reply: Reply) -> None:
        """The position check showed that memory is current: sends the reply of the waiting request."""
        self._running = None
        self._held = b""
        transport = self._transport
        if transport is None:
            return
        if isinstance(reply, bytes):
            transport.write(reply)
        else:
            transport.writelines(reply)
        if self._listener.draining:
            self.close()
        elif self._behind:
            self._continue()

    def run_slice(self) -> None:
        """Decodes a slice of a long message, or of requests sent ahead."""
        self._queued = False
        if self._listener.draining:
            self.close()
        elif self._running is None and self._writable:
            self._reader.limit_slice(self._listener.round_robin.slice_s)
            self._continue()
        if self._arrival is not None and not self._queued:
            self._arrival.resume()

    def dispatch_normally(self) -> None:
        """Memory cannot answer the waiting request: it is decoded and dispatched."""
        self._running = None
        self._reader.put_back(self._held)
        self._held = b""
        self._continue()

    def _start_next(self) -> None:
        end_s = perf_counter() + self._listener.round_robin.slice_s
        while self._running is None and self._writable and not self._closing:
            message = self._reader.next_message()
            if message is None:
                if self._reader.is_ready:
                    self._queue()
                self._watch_partial_message()
                return
            self._cancel_arrival_timer()
            if self._refusal is not None:
                self._refuse_call(message, self._refusal)
                return
            self._begin(message)
            if self._reader.buffered_bytes and self._running is None and perf_counter() >= end_s:
                self._queue()
                break
        if self.charged_bytes:
            self._charge()

    def _refuse_call(self, message: Message, reason: str) -> None:
        self._write(encode_exception(message, busy(reason)))
        self.close()

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            if self._arrival is not None:
                self._arrival.pause()
            self._listener.round_robin.later(self._address, self)

    def session(self) -> Session:
        """The session of the client, created with its first call.

        If there is no room for the name that the client gives, the connection is refused: without the name, its calls
        would be those of another user.
        """
        session = self._session
        if session is None:
            session = self._session = Session(self._address, self._listener.session_budget)
            if self._transport is not None:
                try:
                    session.identify(self._transport)
                except MetaException as error:
                    self._refusal = str(error.message)
            self._listener.first_call(self)
        return session

    def _begin(self, message: Message) -> None:
        session = self._session or self.session()
        if self._refusal is not None:
            self._refuse_call(message, self._refusal)
            return
        dispatcher = self._listener.dispatcher
        if dispatcher.runs_on_loop(message):
            self._write(dispatcher.execute(session, message))
            if session.closing or self._listener.draining:
                self.close()
            return
        pool = self._listener.pools.of(message.name)
        limits = self._listener.client_limits
        if (exceeded := limits.refusal(session.user, self._network)) is not None:
            self._report_refusal(message, exceeded, dispatcher.refuse(message, exceeded))
            return
        refusal = self._listener.begin_call(message.memory_bytes, pool)
        if refusal is not None:
            self._report_refusal(message, refusal)
            return
        limits.begin(session.user, self._network)
        self._running = message
        timeout_s = self._listener.request_timeout_s
        if timeout_s:
            self._deadline = self._listener.loop.call_later(timeout_s, self._overdue, message)
        loop = self._listener.loop

        def work() -> None:
            reply = dispatcher.execute(session, message)
            schedule_reply(loop, self.finished, message, reply)

        combined = dispatcher.combination(message)
        group = self._listener.group_of(combined) if combined is not None else None
        is_large = group is None and dispatcher.expects_large_reply(message)
        if not pool.submit(work, message, group, Member(self, session, message), is_large=is_large):
            self._end_unbegun(message)
            self._listener.refused_calls += 1
            self._report_refusal(message, pool.refusal())
        elif self._ended:
            self.client_ended()

    def _report_refusal(self, message: Message, text: str, reply: bytes | None = None) -> None:
        if message.expects_reply:
            self._write(reply or encode_exception(message, busy(text)))
        else:
            self.one_way_refusal = text

    def _running_read(self) -> Message | None:
        """The call that is running or waits for a thread, if only its client depends on it."""
        message = self._running
        is_read = isinstance(message, Message) and self._listener.dispatcher.is_for_its_client_alone(message)
        return cast(Message, message) if is_read else None

    def _end_unbegun(self, message: Message) -> None:
        self._running = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._end_call(message)

    def _end_call(self, message: Message) -> None:
        assert self._session is not None
        self._listener.client_limits.end(self._session.user, self._network)
        self._listener.end_call(message.memory_bytes, self._listener.pools.of(message.name))

    def finished(self, message: Message, reply: bytes | None) -> None:
        """The call has ended: sends the reply and starts the next call."""
        self._end_call(message)
        if self._running is not message:
            return  # overdue: the client was told and the connection closed
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._running = None
        if self._closing:
            return
        self._write(reply)
        if self._listener.draining or (self._session is not None and self._session.closing):
            self.close()
            return
        self._continue()

    def _continue(self) -> None:
        self._behind = False
        if self._closing or self._queued:
            return
        try:
            self._start_next()
        except WireError as error:
            self._refuse_bytes(error)
        if self._paused and not self._queued and self._transport is not None and not self._closing:
            starts_next = self._running is None and self._writable
            if starts_next or self._reader.buffered_bytes <= PIPELINE_BYTES:
                self._paused = False
                self._transport.resume_reading()

    def _overdue(self, message: Message) -> None:
        """The call took longer than `request_timeout_s`: the conversation ends, and the pool gets back its thread or
        starts another one."""
        if self._running is not message:
            return
        self._running = None
        self._deadline = None
        limit = self._listener.settings.request_timeout_s
        pool = self._listener.pools.of(message.name)
        if pool.give_up(message):
            self._end_call(message)
            text = (
                f"{message.name} waited longer than {limit:g} s (setting server.request_timeout_s); it was not started"
            )
        else:
            took = f"{message.name} took longer than {limit:g} s"
            text = f"{took} (setting server.request_timeout_s); its outcome is unknown"
        self._report_refusal(message, text)
        self.close()

    # Replies, errors, timers

    def _write(self, reply: Reply | None) -> None:
        transport = self._transport
        if reply is not None and transport is not None:
            if isinstance(reply, bytes):
                transport.write(reply)
            else:
                transport.writelines(reply)

    def _refuse_bytes(self, error: WireError) -> None:
        """Malformed bytes affect their sender only: a fault is sent if possible, then the connection is closed. Logged
        and counted once."""
        self.has_refused_bytes = True
        self._listener.count_bad_message(error)
        self._listener.log_limited("closing the connection of %s: %s", self._address, error)
        if error.message is not None and error.message.expects_reply:
            self._write(encode_exception(error.message, wire_fault(error)))
        self.part()
        # The reader keeps the error, whose traceback refers to this connection: a reference cycle that would live on
        # for a while.
        error.__traceback__ = error.__cause__ = error.__context__ = None

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def _watch_partial_message(self) -> None:
        if self._ended and not self._reader.is_ready:
            self._reader.close()  # what it holds will never be whole
            self._charge()
            self.close()
        elif self._reader.buffered_bytes:
            self._charge()
            if self._arrival is None:
                self._start_arrival_timer()
        else:
            if self._refusal is None:
                self._cancel_arrival_timer()
            if self.charged_bytes:
                self._charge()
        if isinstance(self._transport, Layer):
            self._transport.upper_waits()

    def _start_arrival_timer(self) -> None:
        """A message must arrive whole within a time limit: incomplete ones would hold memory for ever (P11)."""
        timeout_s = self._listener.message_timeout_s
        if timeout_s:
            self._arrival = ClientTimer(self._listener.loop, timeout_s, self._message_overdue)
            if self._queued:
                self._arrival.pause()

    def _message_overdue(self) -> None:
        """The time limit is for the client. Time that the server spends decoding while it does not read the socket is
        not counted, or a client with a large message on a busy machine would be closed because the server is slow."""
        self._arrival = None
        if isinstance(self._transport, Layer) and self._transport.waits_for_slice:
            self._start_arrival_timer()
            return
        limit_s = self._listener.settings.message_timeout_s
        self._listener.count_timeout("message")
        error = TruncatedMessage(f"the request is not whole after {limit_s:g} s (setting server.message_timeout_s)")
        self._reader.fail(error)
        if error.message is None or not error.message.expects_reply or not self._writable:
            self.abort()
            return
        self._write(encode_exception(error.message, wire_fault(error)))
        self.part()

    def _charge(self) -> None:
        """Reports to the budget how many bytes are held now."""
        used_bytes = self._reader.used_bytes
        if self._slow is not None:
            used_bytes += self._slow.unsent_bytes
        if used_bytes != self.charged_bytes:
            self._listener.buffers.charge(self, used_bytes)

    def _cancel_arrival_timer(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_timers(self) -> None:
        self._cancel_arrival_timer()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._end_slowness()

    def _end_slowness(self) -> None:
        if self._slow is not None:
            self._slow.end_limit()
            self._slow = None
