"""One client connection: bytes from the socket to whole messages, calls in order, replies back.

Everything here runs on the event loop; only `Dispatcher.execute` runs on a worker thread, one call of a connection at
a time, so a `Session` needs no lock.
"""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter
from typing import TYPE_CHECKING, Literal, cast

from hms_cache.cache.answers import Reply
from hms_cache.event_loops import ClientTimer
from hms_cache.server.combined_replies import Member, tell_loop
from hms_cache.server.faults import busy, wire_fault
from hms_cache.server.first_call import FirstCall
from hms_cache.server.layer import Layer, address_of, part_from
from hms_cache.server.session import ANONYMOUS, Session
from hms_cache.server.shares import SLICE_S
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
"""Bytes a client may send ahead while its call runs, or while it does not take its replies; beyond it the socket is not
read (P11). A message larger than this still arrives: reading pauses only meanwhile. Less than the loop reads of a
socket at once: more would be read again and again in one turn, and copied together as often as a call ends."""

LARGE_READ_BYTES = 64 * 1024
"""A client that sends so much at once is not read again before its turn: reading takes time, too, and the loop would
read of each socket up to 8 MB in one turn."""

REFUSAL_TIMEOUT_S = 2.0
"""How long a connection that is refused may take to send the request that the reason is told to."""

DIRECT_BYTES = 1024
"""What has come is decoded at once up to here, as nearly all requests are. More waits for its turn (`Turns`)."""

_HOT = object()


class Connection(asyncio.Protocol):
    """An asyncio protocol per client. Created cheaply: a connect-and-close costs no thread, call or log line."""

    def __init__(self, listener: Listener, port: Port) -> None:
        self._listener = listener
        self.port = port
        """On which it came."""
        self._reader = MessageReader(
            listener.settings.max_message_bytes, slice_s=SLICE_S, limits=listener.message_limits_bytes
        )
        self._queued = False
        """Whether it waits for a turn, to go on with what has come."""
        self._transport: asyncio.Transport | None = None
        self._address = self._network = ""
        """Where it comes from, and what limits count as one with that."""
        self._session: Session | None = None
        self._running: object | None = None
        """The message whose call is running, `_HOT` while a request waits for a position check."""
        self._held = b""
        """The bytes of the request that waits for a position check; the reader has them when it is to be decoded."""
        self._behind = False
        """Whether bytes came, or their end, while a call was running."""
        self._ended = False
        """Whether the client has said that it will send no more."""
        self._deadline: asyncio.TimerHandle | None = None
        self._arrival: ClientTimer | None = None
        self._paused = False
        self._writable = True
        self._closing = False
        self._refusal: str | None = None
        self.has_refused_bytes = False
        self.unheard_refusal = ""
        """Why a one-way call was not begun, or not ended in time: Thrift has no reply that would tell it."""
        self._hot: HotPath | FirstCall | AuthorizedHotPath | None = None
        self._slow: SlowReader | None = None
        """While the client does not take what was written."""
        self.charged_bytes = 0
        self.charged_since_s = 0.0

    # Socket events

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection in; one that is refused is told so on its first message, then closed."""
        self._transport = cast(asyncio.Transport, transport)
        # What is written goes out at once, not at the end of the loop's turn: of those who wait for one position check
        # the first has its answer while the others' are made. What the client does not take yet stops its next call.
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
        """Takes bytes; answers a request that is known by its bytes, or starts the next call when none is running.

        Every call of a hot read comes through here: what this costs is part of each.
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
        """The client will send no more; what it has sent whole still gets its answers (half-closed sockets are legal).

        Nothing tells a client that has gone from one that listens. So the connection ends with the last answer; the
        loop does not close it by itself when this returns True, and does not look for the client's end again either.
        """
        self._ended = True
        self._behind = True
        self.client_ended()
        return self._running is not None or self._queued or not self._writable

    def client_ended(self) -> None:
        """The client sends no more, and has gone, most likely: a read that waits for a thread lets others pass.

        Else whoever connects, asks for what takes long and leaves would have all threads busy, and all places to wait
        taken, without a connection of its own.
        """
        message = self._running_read()
        if message is None:
            return
        pool = self._listener.pools.of(message.name)
        if not pool.postpone(message):
            self._end_unbegun(message)
            self._listener.refused_calls += 1
            self._tell_refusal(message, pool.refusal())
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Counts the connection out. A call that is running goes on, its answer has nobody to go to; a read that has
        not begun is left out."""
        message = self._running_read()
        if message is not None and self._listener.pools.of(message.name).withdraw(message):
            self._end_unbegun(message)
        self._cancel_timers()
        self._closing = True
        self._transport = None
        self._hot = None
        self._held = b""
        self._reader.close()  # a decoder that waits within a message is a cycle of references
        self._listener.release(self, self._network, self._session)

    def pause_writing(self) -> None:
        """The client reads slower than we answer: no further call of it starts until it has caught up."""
        self._writable = False
        transport = self._transport
        if transport is not None:
            self._slow = SlowReader(self._listener, transport, self._charge, self.abort)
            self._charge()

    def resume_writing(self) -> None:
        """The client caught up. What it sent meanwhile has its turn later: see `Layer.resume_writing`."""
        self._writable = True
        self._end_slowness()
        if self._running is None and not self._closing:
            self._queue()

    # Calls

    def is_idle(self) -> bool:
        """Whether no call is running."""
        return self._running is None

    def is_refused(self) -> bool:
        """Whether its call is not to be carried out: the ordinary way tells why."""
        return self._refusal is not None

    def is_decoding(self) -> bool:
        """Whether what has come is still to be decoded: it waits for its turn."""
        return self._queued

    def has_other_limit(self) -> bool:
        """Whether part of a message has come, or the client is being refused."""
        transport = self._transport
        return self._arrival is not None or self._closing or transport is None or transport.is_closing()

    def has_more(self) -> bool:
        """Whether bytes have come that belong to no call that was begun."""
        return self._reader.buffered_bytes > 0

    def end_calls(self) -> None:
        """What has come beside the call that was answered is none; whoever says so closes the transport.

        The time that the client has to take the answer goes on.
        """
        self._closing = True
        self._cancel_arrival_timer()
        self._hot = None
        self._reader.close()
        self._charge()

    @property
    def raw_socket(self) -> socket.socket | None:
        """What it runs over, as long as that is open."""
        transport = self._transport
        return cast("socket.socket | None", transport.get_extra_info("socket")) if transport is not None else None

    def client(self, of: Literal["user", "address"]) -> str:
        """Who is at its other end: the user (anonymous before the first call), or the address."""
        if of == "address":
            return self._address
        return self._session.user if self._session is not None else ANONYMOUS

    def idle_s(self) -> float:
        """Since when nothing has come and nothing gone out, as far as the system tells; 0 while a call runs."""
        if self._running is not None or not self._writable or self._transport is None:
            return 0.0
        return seconds_without_data(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        """Closes after what is already written has gone out; a client that takes none of it has a time limit."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()
            if self._listener.draining and self._slow is not None:
                self._slow.watch_anew()

    def part(self) -> None:
        """Closes; a client that is still sending hears the refusal that was written, see `part_from`.

        One that does not take what was written before hears nothing: its time to take it goes on, as in `close`.
        """
        transport = self._transport
        if self._ended or transport is None or self._closing or not self._writable:
            self.close()
            return
        self.end_calls()
        self._cancel_timers()
        part_from(transport, self.connection_lost)

    def cut_off(self, reason: str) -> None:
        """Its bytes are needed: closes at once. A client that was sending is told, if its message can be answered."""
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
        """From now on it is asked itself."""
        self._hot = hot

    def send_hot(self, reply: Reply) -> None:
        """The position check found memory current: sends the reply of the request that waits."""
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

    def take_turn(self) -> None:
        """A slice of the long message, or of the requests sent ahead."""
        self._queued = False
        if self._listener.draining:
            self.close()
        elif self._running is None and self._writable:
            self._reader.limit_slice(self._listener.turns.slice_s)
            self._continue()
        if self._arrival is not None and not self._queued:
            self._arrival.resume()

    def take_ordinary_way(self) -> None:
        """Memory cannot answer the request that waits: it is decoded and dispatched."""
        self._running = None
        self._reader.put_back(self._held)
        self._held = b""
        self._continue()

    def _start_next(self) -> None:
        end_s = perf_counter() + self._listener.turns.slice_s
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
            self._listener.turns.later(self._address, self)

    def session(self) -> Session:
        """What is remembered of the client, from its first call on.

        Where there is no room for the name that it says it has, the connection is refused: it would be another user's.
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
        shares = self._listener.shares
        if (exceeded := shares.refusal(session.user, self._network)) is not None:
            self._tell_refusal(message, exceeded, dispatcher.refuse(message, exceeded))
            return
        refusal = self._listener.begin_call(message.memory_bytes, pool)
        if refusal is not None:
            self._tell_refusal(message, refusal)
            return
        shares.begin(session.user, self._network)
        self._running = message
        timeout_s = self._listener.request_timeout_s
        if timeout_s:
            self._deadline = self._listener.loop.call_later(timeout_s, self._overdue, message)
        loop = self._listener.loop

        def work() -> None:
            reply = dispatcher.execute(session, message)
            tell_loop(loop, self.finished, message, reply)

        combined = dispatcher.combination(message)
        group = self._listener.group_of(combined) if combined is not None else None
        is_large = group is None and dispatcher.expects_large_reply(message)
        if not pool.submit(work, message, group, Member(self, session, message), is_large=is_large):
            self._end_unbegun(message)
            self._listener.refused_calls += 1
            self._tell_refusal(message, pool.refusal())
        elif self._ended:
            self.client_ended()

    def _tell_refusal(self, message: Message, text: str, reply: bytes | None = None) -> None:
        if message.expects_reply:
            self._write(reply or encode_exception(message, busy(text)))
        else:
            self.unheard_refusal = text

    def _running_read(self) -> Message | None:
        """The call that runs or waits for its thread, if nobody but its client misses it."""
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
        self._listener.shares.end(self._session.user, self._network)
        self._listener.end_call(message.memory_bytes, self._listener.pools.of(message.name))

    def finished(self, message: Message, reply: bytes | None) -> None:
        """Its call is done: the reply goes out, and the next call may begin."""
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
            text = f"{message.name} waited longer than {limit:g} s (setting server.request_timeout_s); it was not begun"
        else:
            took = f"{message.name} took longer than {limit:g} s"
            text = f"{took} (setting server.request_timeout_s); its outcome is unknown"
        self._tell_refusal(message, text)
        self.close()

    # Bytes out, trouble, timers

    def _write(self, reply: Reply | None) -> None:
        transport = self._transport
        if reply is not None and transport is not None:
            if isinstance(reply, bytes):
                transport.write(reply)
            else:
                transport.writelines(reply)

    def _refuse_bytes(self, error: WireError) -> None:
        """Bad bytes cost their sender only: a fault where one can be told, then the end. Logged once, counted."""
        self.has_refused_bytes = True
        self._listener.count_bad_message(error)
        self._listener.log_limited("closing the connection of %s: %s", self._address, error)
        if error.message is not None and error.message.expects_reply:
            self._write(encode_exception(error.message, wire_fault(error)))
        self.part()
        # The reader keeps the error, and tracebacks keep this connection's frames: a cycle that would stay a while.
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
        """A message must arrive whole within a time, or half-sent ones would hold memory for ever (P11)."""
        timeout_s = self._listener.message_timeout_s
        if timeout_s:
            self._arrival = ClientTimer(self._listener.loop, timeout_s, self._message_overdue)
            if self._queued:
                self._arrival.pause()

    def _message_overdue(self) -> None:
        """The time is the client's: what the server has to decode, while it does not read the socket, is not counted.

        A client with a large message on a busy machine would else be closed for the server's slowness.
        """
        self._arrival = None
        if isinstance(self._transport, Layer) and self._transport.waits_for_turn:
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
        """Tells the budget what is held now."""
        held_bytes = self._reader.held_bytes
        if self._slow is not None:
            held_bytes += self._slow.unsent_bytes
        if held_bytes != self.charged_bytes:
            self._listener.buffers.charge(self, held_bytes)

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
            self._slow.leave_alone()
            self._slow = None
