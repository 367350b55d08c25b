"""One client connection: bytes from the socket to whole messages, calls in order, replies back.

Everything here runs on the event loop; only `Dispatcher.execute` runs on a worker thread, one call of a connection at
a time, so a `Session` needs no lock.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, cast

from thrift.Thrift import TApplicationException

from hms_cache.cache.answers import Reply
from hms_cache.server.faults import wire_fault
from hms_cache.server.session import Session
from hms_cache.wire import Message, MessageReader, WireError, encode_exception

if TYPE_CHECKING:
    from hms_cache.server.hot_path import HotPath
    from hms_cache.server.listener import Listener

_log = logging.getLogger(__name__)

PIPELINE_BYTES = 4 * 1024 * 1024
"""Bytes a client may send ahead while its call runs; beyond it the socket is not read (P11). A message larger than
this still arrives: reading pauses only while a call is running."""


_HOT = object()


class Connection(asyncio.Protocol):
    """An asyncio protocol per client. Created cheaply: a connect-and-close costs no thread, call or log line."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._reader = MessageReader(listener.limits.max_message_bytes)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._running: object | None = None
        """The message whose call is running, or `_HOT` while a request waits for a position check."""
        self._held = b""
        """The bytes of the request that waits for a position check; the reader has them when it is to be decoded."""
        self._behind = False
        """Whether bytes came while a call was running."""
        self._deadline: asyncio.TimerHandle | None = None
        self._arrival: asyncio.TimerHandle | None = None
        self._paused = False
        self._writable = True
        self._refusal: str | None = None
        self._hot: HotPath | None = None

    # Socket events

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection in; above the limit it is told so on its first message, then closed."""
        self._transport = cast(asyncio.Transport, transport)
        # What is written goes out at once, not at the end of the loop's turn: of those who wait for one position check
        # the first has its answer while the others' are made. What the client does not take yet stops its next call.
        self._transport.set_write_buffer_limits(high=0)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._refusal = self._listener.admit(self)
        if self._refusal is not None:
            self._start_arrival_timer()
        else:
            self._hot = self._listener.hot_path

    def data_received(self, data: bytes) -> None:
        """Takes bytes; answers a request that is known by its bytes, or starts the next call when none is running.

        Every call of a hot read comes through here: what this costs is part of each (DESIGN 8).
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
            if self._running is None:
                self._start_next()
            elif not self._paused and self._reader.buffered_bytes > PIPELINE_BYTES:
                self._pause_reading()
        except WireError as error:
            self._refuse_bytes(error)

    def eof_received(self) -> bool:
        """The client will send no more; a running call still gets its answer (half-closed sockets are legal)."""
        return self._running is not None

    def connection_lost(self, error: Exception | None) -> None:
        """Counts the connection out. A call that is running goes on; its answer has nobody to go to."""
        self._cancel_timers()
        self._transport = None
        self._listener.release(self)

    def pause_writing(self) -> None:
        """The client reads slower than we answer: no further call of it starts until it has caught up."""
        self._writable = False

    def resume_writing(self) -> None:
        """The client caught up."""
        self._writable = True
        if self._running is None:
            self._continue()

    # Calls

    def is_idle(self) -> bool:
        """Whether no call is running."""
        return self._running is None

    def close(self) -> None:
        """Closes after what is already written has gone out."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        if self._transport is not None:
            self._transport.abort()

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
        if self._behind or self._listener.draining:
            self._after_hot()

    def _after_hot(self) -> None:
        if self._listener.draining:
            self.close()
        else:
            self._continue()

    def take_ordinary_way(self) -> None:
        """Memory cannot answer the request that waits: it is decoded and dispatched."""
        self._running = None
        self._reader.put_back(self._held)
        self._held = b""
        if self._transport is not None:
            self._continue()

    def _start_next(self) -> None:
        while self._running is None and self._writable and self._transport is not None:
            message = self._reader.next_message()
            if message is None:
                self._watch_partial_message()
                return
            self._cancel_arrival_timer()
            if self._refusal is not None:
                self._write(encode_exception(message, _busy(self._refusal)))
                self.close()
                return
            self._begin(message)

    def _begin(self, message: Message) -> None:
        session = self._session
        if session is None:
            session = self._session = Session(self._peer())
        dispatcher = self._listener.dispatcher
        if dispatcher.runs_on_loop(message):
            self._write(dispatcher.execute(session, message))
            if session.closing or self._listener.draining:
                self.close()
            return
        refusal = self._listener.begin_call()
        if refusal is not None:
            self._write(encode_exception(message, _busy(refusal)) if message.expects_reply else None)
            return
        self._running = message
        timeout_s = self._listener.limits.request_timeout_s
        if timeout_s:
            self._deadline = self._listener.loop.call_later(timeout_s, self._overdue, message)
        loop = self._listener.loop

        def work() -> None:
            reply = dispatcher.execute(session, message)
            loop.call_soon_threadsafe(self._finished, message, reply)

        self._listener.workers.submit(work)

    def _finished(self, message: Message, reply: bytes | None) -> None:
        self._listener.end_call()
        if self._running is not message:
            return  # overdue: the client was told and the connection closed
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._running = None
        if self._transport is None:
            return
        self._write(reply)
        if self._listener.draining or (self._session is not None and self._session.closing):
            self.close()
            return
        self._continue()

    def _continue(self) -> None:
        self._behind = False
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        try:
            self._start_next()
        except WireError as error:
            self._refuse_bytes(error)

    def _overdue(self, message: Message) -> None:
        """The call took longer than `request_timeout_s`; its thread cannot be stopped, so the conversation ends."""
        if self._running is not message:
            return
        self._running = None
        self._deadline = None
        limit = self._listener.limits.request_timeout_s
        text = f"{message.name} took longer than {limit:g} s (setting server.request_timeout_s); its outcome is unknown"
        self._write(encode_exception(message, _busy(text)) if message.expects_reply else None)
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
        self._listener.count_bad_message(error)
        _log.warning("closing the connection of %s: %s", self._peer(), error)
        if error.message is not None and error.message.expects_reply:
            self._write(encode_exception(error.message, wire_fault(error)))
        self.close()

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def _watch_partial_message(self) -> None:
        if self._reader.buffered_bytes:
            if self._arrival is None:
                self._start_arrival_timer()
        else:
            self._cancel_arrival_timer()

    def _start_arrival_timer(self) -> None:
        """A message must arrive whole within a time, or half-sent ones would hold memory for ever (P11)."""
        timeout_s = self._listener.limits.message_timeout_s
        if timeout_s:
            self._arrival = self._listener.loop.call_later(timeout_s, self.abort)

    def _cancel_arrival_timer(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_timers(self) -> None:
        self._cancel_arrival_timer()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _peer(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if isinstance(name, tuple) and name else "local"


def _busy(text: str) -> TApplicationException:
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)
