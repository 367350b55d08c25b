"""Work on remote file systems that its caller waits for no longer than a time limit.

A driver may wait for a silent host for ever, and a thread cannot be stopped. So the work is done in a thread of its
own, of which there is a limited number; the caller goes on with an error at its time limit, and the thread stays where
it is until the driver lets go. When all are taken by such hosts, further work is refused after the same time limit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class FileThreads:
    """Runs work with a time limit in at most `limit` threads. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._places = threading.BoundedSemaphore(limit)
        self._limit = limit
        self._in_use = 0
        self._lock = threading.Lock()
        """Guards `_in_use`."""

    def in_use(self) -> int:
        """Threads that are at work now, those included that nobody waits for any more."""
        return self._in_use

    def run(
        self, what: str, work: Callable[[], T], timeout_s: float, *, if_late: Callable[[T], object] | None = None
    ) -> T:
        """What `work` returns or raises. `if_late` undoes what it did after its caller was told that it failed.

        Raises MetaException when it is not done, or no thread comes free, within the time limit.
        """
        if not self._places.acquire(timeout=timeout_s):
            raise MetaException(
                f"{what}: all {self._limit} threads for file systems (warehouse.file_threads) have been busy for "
                f"{timeout_s:g} s"
            )
        job = _Job(work, if_late)

        def run() -> None:
            with self._lock:
                self._in_use += 1
            try:
                job.run()
            finally:
                with self._lock:
                    self._in_use -= 1
                self._places.release()

        try:
            threading.Thread(target=run, name="hms-cache-files", daemon=True).start()
        except BaseException:
            self._places.release()
            raise
        return job.result(what, timeout_s)


class _Job(Generic[T]):
    """One piece of work: running → done, or running → abandoned (by its caller) → undone."""

    def __init__(self, work: Callable[[], T], if_late: Callable[[T], object] | None) -> None:
        self._work = work
        self._if_late = if_late
        self._changed = threading.Condition()
        self._is_done = self._is_abandoned = False
        self._value: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        error: BaseException | None = None
        value: list[T] = []
        try:
            value.append(self._work())
        except BaseException as raised:
            error = raised
        with self._changed:
            self._value, self._error, self._is_done = value, error, True
            is_late = self._is_abandoned
            self._changed.notify_all()
        if is_late and value and self._if_late is not None:
            try:
                self._if_late(value[0])
            except Exception:
                _LOG.exception("what a file system did after its time limit cannot be undone")

    def result(self, what: str, timeout_s: float) -> T:
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_done, timeout_s):
                self._is_abandoned = True
                raise MetaException(
                    f"{what}: the file system did not answer within {timeout_s:g} s (warehouse.file_timeout_s)"
                )
        if self._error is not None:
            raise self._error
        return self._value[0]
