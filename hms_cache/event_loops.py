"""The event loop of this process, and how soon the system runs its thread."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final

# Imported here so that workers share it: this module is loaded before they are forked.
uvloop: ModuleType | None
try:
    import uvloop
except ImportError:  # Windows, where uvloop does not exist
    uvloop = None

SLICE_NS: Final = 200_000
"""Length of the loop's time slices. The shorter the slices of a thread that wakes, the sooner Linux lets it interrupt
another one. By default all threads have slices of 1.4 ms on two processors, and 2.8 ms on eight; a loop would wait this
long beside the computing threads of its own process, whose work is less urgent than the next reply."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period."""

CLIENT_TIME_PARTS: Final = 8
"""Number of parts of a client's time. If the loop is not run because the machine is busy, a client loses at most one
part."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Creates a loop of uvloop if that is installed, otherwise of asyncio."""
    return uvloop.new_event_loop() if uvloop is not None else asyncio.new_event_loop()


def use_short_thread_slices() -> bool:
    """Asks Linux to run this thread soon after it wakes, for a short time. Its share of the processor does not change.

    Returns False, and changes nothing, if the system does not support this (Linux does since 6.12) or does not allow
    it. Only for threads with the ordinary scheduling policy.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    own = 0
    if os.sched_getscheduler(own) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, own)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    try:
        return bool(ctypes.CDLL(None, use_errno=True).syscall(number, own, attributes, 0) == 0)
    except (OSError, AttributeError):
        return False


class ClientTimer:
    """A timer for a client or a server. Used on the loop only.

    An ordinary timer expires while the loop is not run, and is handled before data that arrived in the meantime is
    read: a busy machine would close connections of well-behaved clients. Therefore this timer runs in parts, and the
    loop reads its sockets between them.
    """

    __slots__ = ("_handle", "_left", "_loop", "_lost_s", "_overdue", "_part_s", "_paused_since_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, time_s: float, overdue: Callable[[], None]) -> None:
        """:param overdue: called when the time is up, unless the timer was cancelled."""
        self._loop = loop
        self._overdue: Callable[[], None] | None = overdue
        self._part_s = time_s / CLIENT_TIME_PARTS
        self._left = CLIENT_TIME_PARTS
        self._lost_s = 0.0
        """How long the current part was paused."""
        self._paused_since_s: float | None = None
        self._handle: asyncio.TimerHandle | None = loop.call_later(self._part_s, self._end_part)

    def pause(self) -> None:
        """Stops the time while received data waits for the server. Does nothing if the time is stopped already."""
        if self._paused_since_s is None:
            self._paused_since_s = self._loop.time()

    def resume(self) -> None:
        """Continues the time if it is stopped."""
        if self._paused_since_s is not None:
            self._lost_s += self._loop.time() - self._paused_since_s
            self._paused_since_s = None

    def cancel(self) -> None:
        """Cancels the timer: `overdue` is not called."""
        if self._handle is not None:
            self._handle.cancel()
        self._forget()

    def _forget(self) -> None:
        """Drops the references. The owner of the timer is often the object that it calls; such a cycle would have to be
        found by the garbage collector."""
        self._handle = self._overdue = None

    def _end_part(self) -> None:
        if self._paused_since_s is not None:
            self.resume()
            self.pause()
        lost_s, self._lost_s = self._lost_s, 0.0
        rest_s = min(lost_s, self._part_s)
        if rest_s < self._part_s / CLIENT_TIME_PARTS:  # so little is given to the server: rests of rests would not end
            self._left -= 1
            rest_s = self._part_s
        if self._left:
            self._handle = self._loop.call_later(rest_s, self._end_part)
        else:
            overdue = self._overdue
            self._forget()
            if overdue is not None:
                overdue()
