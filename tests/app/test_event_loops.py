"""How soon the system runs the thread of an event loop."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import sys
import threading

import pytest

from hms_cache import event_loops
from hms_cache.app.event_loop import EventLoopThread

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


def slice_ns() -> int:
    """The value of this thread in the system."""
    attributes = event_loops._ATTRIBUTES
    found = ctypes.create_string_buffer(attributes.size)
    answer = ctypes.CDLL(None).syscall(SCHED_GETATTR[platform.machine()], 0, found, attributes.size, 0)
    assert answer == 0
    runtime_ns: int = attributes.unpack(found.raw)[5]
    return runtime_ns


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() not in SCHED_GETATTR, reason="what only Linux knows")
def test_a_thread_that_asks_gets_short_slices_and_others_keep_theirs() -> None:
    before_ns, found = slice_ns(), list[tuple[bool, int, int]]()

    def ask() -> None:
        requested = event_loops.use_short_thread_slices()
        found.append((requested, slice_ns(), os.getpriority(os.PRIO_PROCESS, 0)))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    [(requested, thread_ns, nice)] = found
    # Linux before 6.12 accepts the request but has no such slices.
    assert thread_ns == (event_loops.SLICE_NS if requested and before_ns else before_ns)
    assert nice == os.getpriority(os.PRIO_PROCESS, 0) and slice_ns() == before_ns


def test_a_system_that_does_not_allow_it_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidding:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def syscall(self, *_: object) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", Forbidding)
    assert not event_loops.use_short_thread_slices()
    monkeypatch.setattr(platform, "machine", lambda: "an unknown one")
    assert not event_loops.use_short_thread_slices()


def test_what_takes_too_long_is_cancelled_and_its_ends_run() -> None:
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("first")

    async def forgotten() -> None:
        asyncio.get_running_loop().task = asyncio.ensure_future(stubborn())  # type: ignore[attr-defined]

    loop = EventLoopThread()
    loop.start()
    with pytest.raises(TimeoutError):
        loop.run(stubborn(), 0.01)
    loop.run(forgotten(), 30)
    loop.stop()
    assert ended == ["first", "first"]
