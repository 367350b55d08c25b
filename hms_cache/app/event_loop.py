"""The event loop of the connections, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hms_cache.event_loops import ask_for_short_slices, new_event_loop

Result = TypeVar("Result")

LOOP_THREAD = "hms-loop"
"""The thread's name."""

CANCELLATION_S = 1.0
"""How long a task that is left at the end may take to end; none of ours waits for anything then."""


class EventLoopThread:
    """An event loop (uvloop's where it is installed) that runs until :meth:`stop`."""

    def __init__(self, name: str = LOOP_THREAD) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
        """Run the coroutine on the loop and wait for its result. Raises what it raises, or ``TimeoutError``; it is
        cancelled then."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def call_each(self, interval_s: float, action: Callable[[], None]) -> None:
        """Have the loop do this at once and again after each interval, as long as it runs. It must not raise."""

        def again() -> None:
            action()
            self._loop.call_later(interval_s, again)

        self._loop.call_soon_threadsafe(again)

    def stop(self) -> None:
        """Stop the loop, wait for its thread, close it. Not to be called from the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        ask_for_short_slices()
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=CANCELLATION_S))
