"""Event loops: which one this process uses, and how soon the system lets its thread run."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
import sys
from typing import Final

SLICE_NS: Final = 200_000
"""Linux lets a thread that wakes interrupt another one sooner, the shorter its slices are. By default they are as long
as those of all threads, 1.4 ms on two processors and 2.8 on eight: so long a loop would wait for the processor beside
its own process' threads that compute, whose calls are worth less than the next reply."""

_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows, where uvloop does not exist
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


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
