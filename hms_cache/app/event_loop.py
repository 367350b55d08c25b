"""The event loop of the connections, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hms_cache.event_loops import new_event_loop, use_short_thread_slices

Result = TypeVar("Result")

LOOP_THREAD = "hms-loop"
"""The thread's name."""

CANCELLATION_S = 1.0
"""How long a task that is left at the end may take to be cancelled; tasks of this program wait for nothing then."""


class EventLoopThread:
    """An event loop (uvloop's if installed) that runs until :meth:`stop`."""

    def __init__(self, name: str = LOOP_THREAD) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
        """Runs the coroutine on the loop and waits for its result. Raises what it raises, or ``TimeoutError`` after
        cancelling it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def call_each(self, interval_s: float, action: Callable[[], None]) -> None:
        """Makes the loop call `action` now and after each interval. It must not raise."""

        def again() -> None:
            action()
            self._loop.call_later(interval_s, again)

        self._loop.call_soon_threadsafe(again)

    def stop(self) -> None:
        """Stops the loop, waits for its thread, and closes it. Must not be called from the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        use_short_thread_slices()
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=CANCELLATION_S))
