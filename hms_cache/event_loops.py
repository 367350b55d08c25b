"""Event loops: which one this process uses, and how soon the system lets its thread run."""

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

# Here, so that workers share it: it is loaded before they are forked.
uvloop: ModuleType | None
try:
    import uvloop
except ImportError:  # Windows, where uvloop does not exist
    uvloop = None

SLICE_NS: Final = 200_000
"""Linux lets a thread that wakes interrupt another one sooner, the shorter its slices are. By default they are as long
as those of all threads, 1.4 ms on two processors and 2.8 on eight: so long a loop would wait for the processor beside
its own process' threads that compute, whose calls are worth less than the next reply."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period."""

CLIENT_TIME_PARTS: Final = 8
"""A loop that stands still, because the machine is busy, costs a client no more than this part of its time."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    return uvloop.new_event_loop() if uvloop is not None else asyncio.new_event_loop()


def ask_for_short_slices() -> bool:
    """Has this thread run soon after it wakes, for a short time at once. Its share of the processor stays the same.

    False where the system does not know such a thing (Linux does since 6.12), or does not allow it; nothing is changed
    then. Only for a thread of the ordinary policy.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    own = 0
    if os.sched_getscheduler(own) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, own)
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    try:
        return bool(ctypes.CDLL(None, use_errno=True).syscall(number, own, wanted, 0) == 0)
    except (OSError, AttributeError):
        return False


class ClientTimer:
    """The time that a client, or a server, has for something. Used on the loop only.

    A plain timer runs out while the loop stands still, and is dealt with before what came meanwhile is read: a busy
    machine would close its honest clients. So the time runs in parts, and the loop reads its sockets between them.
    """

    __slots__ = ("_handle", "_left", "_loop", "_lost_s", "_overdue", "_part_s", "_paused_since_s")

    def __init__(self, loop: asyncio.AbstractEventLoop, time_s: float, overdue: Callable[[], None]) -> None:
        """`overdue` is called when the time is up, unless the timer was cancelled."""
        self._loop = loop
        self._overdue: Callable[[], None] | None = overdue
        self._part_s = time_s / CLIENT_TIME_PARTS
        self._left = CLIENT_TIME_PARTS
        self._lost_s = 0.0
        """How long this part did not count."""
        self._paused_since_s: float | None = None
        self._handle: asyncio.TimerHandle | None = loop.call_later(self._part_s, self._end_part)

    def pause(self) -> None:
        """The time stands still: what has come waits for the server. Nothing if it stands still already."""
        if self._paused_since_s is None:
            self._paused_since_s = self._loop.time()

    def resume(self) -> None:
        """The time goes on, if it stood still."""
        if self._paused_since_s is not None:
            self._lost_s += self._loop.time() - self._paused_since_s
            self._paused_since_s = None

    def cancel(self) -> None:
        """Nobody is called."""
        if self._handle is not None:
            self._handle.cancel()
        self._forget()

    def _forget(self) -> None:
        """Whoever has the timer is often whom it calls: a cycle, which the collector would have to find."""
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
