"""A layer between a socket and a connection: a protocol for the socket, a transport for the connection."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Protocol, cast

from hms_cache.clock import elapsed_s
from hms_cache.event_loops import ClientTimer
from hms_cache.limited_log import LimitedLog
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.faults import MAX_LOGGED_TEXT

_log = logging.getLogger(__name__)
_limited_log = LimitedLog(_log)

MAX_LOGGED_ADDRESSES = 1024
"""Addresses whose first failed handshake in `LOGGED_AGAIN_S` is logged. Failures of further addresses are only
counted."""

LOGGED_AGAIN_S = 3600.0
"""After this time, failures of an address are logged again: addresses are reassigned, and certificates expire."""


LINGER_QUIET_S = 2.0
"""A refused client that has sent nothing for this long is closed: it has sent everything, and could have closed
itself."""

LINGER_S = 15.0
"""How long bytes of a refused client are read and thrown away: as long as a busy client needs to send a large message.
Its place among the connections is occupied meanwhile."""


DIRECT_BYTES = 1024
"""Up to this size, received bytes are processed at once, as nearly all requests are. Longer ones wait for their turn
(`RoundRobin`)."""

FIRST_PIECE_BYTES = 2048
"""Size of the first piece that is processed. A client may send records or frames of one byte, each of which takes some
microseconds. After a slow piece the next one is half as large, down to `LEAST_PIECE_BYTES`; after a fast one, twice as
large."""

LEAST_PIECE_BYTES = 256

MAX_PIECE_BYTES = 64 * 1024


class Handshakes:
    """Outcomes of the handshakes of a port. Used on the port's event loop only."""

    def __init__(self, name: str, outcomes: Iterable[str], now_s: Callable[[], float] = elapsed_s) -> None:
        """`name`: the purpose of the handshakes."""
        self._name = name
        self.outcomes: dict[str, int] = dict.fromkeys(outcomes, 0)
        self._now_s = now_s
        self._logged: set[str] = set()
        self._forget_s = now_s() + LOGGED_AGAIN_S
        """When `_logged` is cleared."""

    def ended_early(self, address: str, reason: str, *, is_begun: bool) -> None:
        """The connection has ended before the handshake. One on which the client sent nothing is not worth a line:
        health checks and scanners connect to see whether the port is open."""
        if is_begun:
            self.failed("closed", address, reason)
        else:
            self.outcomes["closed"] += 1

    def failed(self, outcome: str, address: str, reason: str) -> None:
        """A handshake failed. It is counted, and logged if it is the first one of its address for some time."""
        self.outcomes[outcome] += 1
        now_s = self._now_s()
        if now_s >= self._forget_s:
            self._logged.clear()
            self._forget_s = now_s + LOGGED_AGAIN_S
        if address not in self._logged and len(self._logged) < MAX_LOGGED_ADDRESSES:
            self._logged.add(address)
            _log.warning(
                "no %s with %s: %s (others of this address are only counted for an hour)",
                self._name,
                address,
                reason[:MAX_LOGGED_TEXT],
            )


class Writer(Protocol):
    """Is notified when the client falls behind."""

    def pause_writing(self) -> None:
        """The client takes less than is sent."""

    def resume_writing(self) -> None:
        """The client caught up."""


class Layer(asyncio.Protocol, asyncio.Transport):
    """Passes everything on in both directions. A derived class processes the bytes, in `_read`.

    Large amounts are processed in turns, a slice in each, during which the socket is not read. Received bytes that have
    not been handed on are counted, see `BufferBudget`.
    """

    _lower: asyncio.Transport
    _upper: Writer
    _address: str
    """The client's address, read at the beginning: the system does not know it after a reset."""

    def __init__(self, round_robin: RoundRobin, buffers: BufferBudget | None) -> None:
        """`buffers`: None if nothing is counted."""
        super().__init__()
        self._round_robin = round_robin
        self._buffers = buffers
        self.charged_bytes = 0
        self.charged_since_s = 0.0
        self._queued = False
        """Whether it waits for a turn."""
        self._received: deque[bytes] = deque()
        """Received bytes that wait to be processed."""
        self._piece_bytes = FIRST_PIECE_BYTES
        self._lower_paused = False
        """Whether the client still has to take what was sent."""
        self._closing = False
        self._timer: ClientTimer | None = None
        """Runs while the client has to do something within a time limit; stands still while received bytes wait."""
        self._end_waits = False
        """Whether the client's end of the stream arrived behind them."""
        self._blocked = False
        """Whether processing is suspended until earlier bytes are dealt with. Whoever sets it resets it, and calls
        `_wait_for_slice`."""
        self._holds: set[str] = set()
        """The reasons for not reading the socket: the connection asked for it (`upper`), received bytes wait (`turn`),
        …"""

    def _lie_on(self, transport: asyncio.BaseTransport) -> None:
        """Sets the transport below, at the beginning."""
        self._lower = cast(asyncio.Transport, transport)
        self._address = address_of(transport) or "gone"

    def _start_timer(self, time_s: float, overdue: Callable[[], None]) -> None:
        self._timer = ClientTimer(asyncio.get_running_loop(), time_s, overdue)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _receive(self, data: bytes) -> None:
        """Processes received bytes, now or in turns."""
        if len(data) <= DIRECT_BYTES and not self._queued and not self._blocked:
            self._read(data)
        else:
            self._receive_later(data)

    def _receive_later(self, data: bytes) -> None:
        self._received.append(data)
        self._wait_for_slice()
        self._charge()

    def _read(self, data: bytes) -> None:
        raise NotImplementedError

    def _wait_for_slice(self) -> None:
        if not self._queued:
            self._queued = True
            self._hold("turn")
            self._follow_slices()
            self._round_robin.later(self._address, self)

    def run_slice(self) -> None:
        """Processes a slice of the waiting bytes."""
        self._queued = False
        end_s = began_s = perf_counter()
        slice_s = self._round_robin.slice_s
        end_s += slice_s
        while self._received and not self._closing and not self._blocked:
            data = self._received.popleft()
            if len(data) > self._piece_bytes:
                self._received.appendleft(data[self._piece_bytes :])
                data = data[: self._piece_bytes]
            self._read(data)
            now_s = perf_counter()
            if now_s - began_s > slice_s / 2:
                self._piece_bytes = max(self._piece_bytes // 2, LEAST_PIECE_BYTES)
            elif now_s - began_s < slice_s / 8:
                self._piece_bytes = min(self._piece_bytes * 2, MAX_PIECE_BYTES)
            began_s = now_s
            if now_s >= end_s:
                break
        if self._closing:
            self._received.clear()
        elif self._blocked:
            pass
        elif self._received:
            self._wait_for_slice()
        else:
            self._let_go("turn")
            if self._end_waits:
                self._end_waits = False
                self.eof_received()
        if not self._queued:
            self._follow_slices()
        self._charge()

    def _follow_slices(self) -> None:
        """The client's timer stands still while bytes that it sent wait, here or below: it has done its part."""
        if self._timer is not None:
            if self.waits_for_slice:
                self._timer.pause()
            else:
                self._timer.resume()
        if isinstance(self._upper, Layer):
            self._upper._follow_slices()

    def _used_bytes(self) -> int:
        """Received bytes that have not been handed on."""
        return sum(map(len, self._received))

    def _charge(self) -> None:
        """Reports to the budget how many bytes are held now."""
        if self._buffers is not None:
            used_bytes = 0 if self._closing else self._used_bytes()
            if used_bytes != self.charged_bytes:
                self._buffers.charge(self, used_bytes)

    def _stop_counting(self) -> None:
        """The client has gone, and the bytes that it sent are dropped."""
        if self._buffers is not None:
            self._buffers.charge(self, 0)

    def disconnect(self, reason: str) -> None:
        """The bytes are needed by others. A derived class tells the client, if that is possible."""
        self._log_disconnect(reason)
        self._received.clear()
        self.abort()

    def _log_disconnect(self, reason: str) -> None:
        _limited_log.warning("closing the connection of %s: %s", self._address, reason)

    @property
    def waits_for_slice(self) -> bool:
        """Whether there are received bytes that have not been processed, here or below: HTTP may run over TLS."""
        lower = self._lower
        return self._queued or (isinstance(lower, Layer) and lower.waits_for_slice)

    def upper_waits(self) -> None:
        """The connection has dealt with everything received, and waits for more."""

    def _hold(self, reason: str) -> None:
        if not self._holds and not self._closing:
            self._lower.pause_reading()
        self._holds.add(reason)

    def _let_go(self, reason: str) -> None:
        if reason in self._holds:
            self._holds.remove(reason)
            if not self._holds and not self._closing and not self._lower.is_closing():
                self._lower.resume_reading()

    def part(self) -> None:
        """Closes as `part_from` does, after what is already written."""
        if not self._closing:
            self._closing = True
            part_from(self._lower, self.connection_lost)

    def pause_writing(self) -> None:
        """The client takes less than is sent."""
        self._upper.pause_writing()

    def resume_writing(self) -> None:
        """The client caught up.

        The transport must not be closed from here: asyncio's own transport would report the end twice (after this,
        `_write_ready` checks whether it is closing, and `close` has reported it already).
        """
        self._upper.resume_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """As one `write`: separate parts would become separate records or frames."""
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        """Whether the connection is being closed."""
        return self._closing or self._lower.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See asyncio's transports."""
        return self._lower.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stops reading the socket for some time."""
        self._hold("upper")

    def resume_reading(self) -> None:
        """Reads the socket again."""
        self._let_go("upper")

    @property
    def _is_held_by_upper(self) -> bool:
        """Whether the connection behind reads nothing for now."""
        return "upper" in self._holds

    def is_reading(self) -> bool:
        """Whether the socket is read."""
        return self._lower.is_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See asyncio's transports."""
        self._lower.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Bytes that the client has not taken."""
        return self._lower.get_write_buffer_size()


def address_of(transport: asyncio.BaseTransport) -> str | None:
    """The client's address, `local` for a socket file; None if the client had gone before its address was read.

    After a reset, the system does not know the peer's address, although bytes that it sent can still be read.
    """
    name = transport.get_extra_info("peername")
    if isinstance(name, tuple) and name:
        return str(name[0])
    sock = transport.get_extra_info("socket")
    return "local" if sock is None or sock.family == socket.AF_UNIX else None


class _LingeringClose(asyncio.Protocol):
    """Reads a socket until its client has received a refusal."""

    def __init__(self, transport: asyncio.Transport, lost: Callable[[Exception | None], None]) -> None:
        self._transport, self._lost = transport, lost
        self._loop = asyncio.get_running_loop()
        self._is_quiet = True
        self._timer = ClientTimer(self._loop, LINGER_QUIET_S, self._check_lingering)
        self._end = ClientTimer(self._loop, LINGER_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Drops the bytes."""
        self._is_quiet = False

    def _check_lingering(self) -> None:
        if self._is_quiet:
            self._transport.abort()
            return
        self._is_quiet = True
        self._timer = ClientTimer(self._loop, LINGER_QUIET_S, self._check_lingering)

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone, or its time is up."""
        self._timer.cancel()
        self._end.cancel()
        self._lost(error)


def part_from(transport: asyncio.Transport, lost: Callable[[Exception | None], None]) -> None:
    """Closes the connection of a refused client that may still be sending. `lost` is called at the end.

    If a socket is closed while it has unread bytes, its connection is reset, and the client's system throws away a
    refusal that it has not handed over: the client only learns "broken pipe". So the socket is closed for writing, and
    read until the client closes it or stops sending, for at most `LINGER_S`.
    """
    if isinstance(transport, Layer):
        transport.part()
        return
    if transport.is_closing():
        return
    transport.set_protocol(_LingeringClose(transport, lost))
    if transport.can_write_eof():
        try:
            transport.write_eof()
        except OSError:  # of asyncio's own loop: the client has gone, which was not read yet
            transport.abort()
            return
    if not transport.is_reading():
        transport.resume_reading()
