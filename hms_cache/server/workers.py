"""A bounded pool of threads for calls that need the database.

Smaller than `concurrent.futures` on purpose: a call costs one queue hop there and one `call_soon_threadsafe` back.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


CALL_THREADS = "hms-call"
"""How names of their threads begin."""


class WorkerPool:
    """`threads` daemon threads that run submitted work in order of arrival.

    The queue has no limit of its own: the server's `max_in_flight` bounds what is submitted (P11).
    """

    def __init__(self, threads: int, name: str = CALL_THREADS) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"{name}-{i}", daemon=True) for i in range(threads)]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Queues `work`, which must not raise; it runs on one of the threads."""
        self._queue.put(work)

    def stop(self, timeout_s: float) -> None:
        """Lets queued work finish and waits for each thread at most `timeout_s`."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout_s)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                work()
            except Exception:
                # Work reports its own failures to its client; anything here is a defect, and must not end the thread.
                _log.exception("a call failed outside its own error handling")
            del work  # a thread that waits would keep the last request and its connection
