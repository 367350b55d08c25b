"""File operations with a time limit for their caller.

A file system may never answer (a network file system whose server is down, a driver that waits for a dead host), and a
thread cannot be stopped. So all operations run in threads of their own, a limited number per file system. At the time
limit the caller continues with an error, while the thread stays blocked until the file system answers; threads of other
file systems are not affected. After a timeout, each further caller waits only a quarter of the previous wait until the
file system answers again, so that a drop of a thousand directories on it ends.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from hms_cache.config import finite_s
from hms_cache.store.warehouse.waits import MOVE_WAITS, FileWaits, StillWaiting, current_waits
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

TIMEOUT = "warehouse.file_timeout_s"
MOVE_TIMEOUT = "warehouse.file_move_timeout_s"
"""The settings that contain the time limits."""

DIRECTORIES_AT_ONCE = 250
"""Maximum number of directories in one operation: each takes milliseconds on a slow network file system."""

#: Idle time after which a thread ends.
_IDLE_S = 30.0

#: After each timeout the wait for the file system is divided by this, down to a minimum: a working file system answers
#: within it, and one answer is sufficient to restore the full wait.
_BACKOFF_FACTOR = 4
_SHORTEST_WAIT_S = 0.05
_MAX_MISSED = 10

_in_thread = threading.local()


class FileThreads:
    """Runs work with a time limit, in at most `limit` threads per file system. Thread-safe."""

    def __init__(self, limit: int, *, max_wait_s: float = 0.5) -> None:
        """`max_wait_s`: maximum wait for an answer in the first attempt of a write that holds locks."""
        self._limit = limit
        self._max_wait_s = max_wait_s
        self._lock = threading.Lock()
        """Guards all pools and their contents. Held only for short reads and updates."""

        self._pools: dict[str, _Pool] = {}

    def in_use(self) -> int:
        """Number of threads that are running an operation, including those whose caller has given up."""
        with self._lock:
            return sum(pool.threads - pool.idle for pool in self._pools.values())

    def run(
        self,
        file_system: str,
        what: str,
        work: Callable[[], T],
        timeout_s: float,
        *,
        setting: str = TIMEOUT,
        key: Hashable = None,
        if_late: Callable[[T], object] | None = None,
    ) -> T:
        """Returns what `work` returns, or raises what it raises.

        `if_late` undoes the work if it ends after its caller has been told that it failed. `key` allows a write
        that holds locks to be run again because of it, and identifies it among the write's operations. `setting`
        contains the time limit. Raises MetaException if the work has not ended, or not begun, within the time limit;
        StillWaiting.
        """
        if getattr(_in_thread, "is_at_work", False):
            return work()  # undoing inside a thread of this pool: no further thread is needed
        waits = current_waits() if key is not None else None
        if waits is not None and isinstance(kept := waits.kept(key), _Job):
            found: T = kept.result(what, 0.0, timeout_s, setting)
            return found
        job = _Job(work, if_late)
        with self._lock:
            pool = self._pools.get(file_system)
            if pool is None:
                pool = self._pools[file_system] = _Pool(self, file_system, self._limit)
            job.pool = pool
            limit_s = min(timeout_s, max(timeout_s / _BACKOFF_FACTOR**pool.missed, _SHORTEST_WAIT_S))
            pool.submit(job)
        if waits is not None and waits.holds_locks:
            return self._run_with_locks(job, waits, key, what, limit_s, setting)
        return job.result(what, limit_s, limit_s, setting)

    def _run_with_locks(
        self, job: _Job[T], waits: FileWaits, key: Hashable, what: str, limit_s: float, setting: str
    ) -> T:
        max_wait_s = waits.max_wait_s(self._max_wait_s)
        if waits.has_moved:
            limit_s = min(limit_s, self._max_wait_s * MOVE_WAITS)
            return job.result(what, limit_s, limit_s, setting)
        if max_wait_s < limit_s and not job.wait(max_wait_s):
            waits.keep(key, job)
            raise StillWaiting(job, limit_s - max_wait_s)
        waits.given(key, job)
        return job.result(what, limit_s, limit_s, setting)

    def abandoned(self, job: _Job[T]) -> None:
        """Records that a caller has given up."""
        with self._lock:
            if job.pool is not None:
                job.pool.missed = min(job.pool.missed + 1, _MAX_MISSED)


class _Pool:
    """The threads of one file system, and its queue. Guarded by the lock of its `FileThreads`."""

    def __init__(self, owner: FileThreads, name: str, limit: int) -> None:
        self.owner = owner
        self.threads = self.idle = 0
        self.missed = 0
        """Number of callers that have given up since the last answer."""

        self.limit = limit
        self._name = name
        self._waiting: deque[_Job[object]] = deque()
        self._changed = threading.Condition(owner._lock)

    def submit(self, job: _Job[T]) -> None:
        self._waiting.append(job)  # type: ignore[arg-type]
        if len(self._waiting) > self.idle and self.threads < self.limit:
            self.threads += 1
            try:
                threading.Thread(target=self._work, name="hms-cache-files", daemon=True).start()
            except BaseException:
                self.threads -= 1
                self._waiting.pop()
                raise
        else:
            self._changed.notify()

    def _next(self) -> _Job[object] | None:
        with self.owner._lock:
            while not self._waiting:
                self.idle += 1
                has_come = self._changed.wait(_IDLE_S)
                self.idle -= 1
                if not has_come and not self._waiting:
                    self.threads -= 1
                    if not self.threads:
                        self.owner._pools.pop(self._name, None)
                    return None
            return self._waiting.popleft()

    def _work(self) -> None:
        _in_thread.is_at_work = True
        while (job := self._next()) is not None:
            if job.run():
                with self.owner._lock:
                    self.missed = 0
            del job


class _Job(Generic[T]):
    """One operation: waiting → running → done; or abandoned by its caller, and then dropped or undone."""

    def __init__(self, work: Callable[[], T], if_late: Callable[[T], object] | None) -> None:
        self.changes_files = if_late is not None
        self.pool: _Pool | None = None
        self._work = work
        self._if_late = if_late
        self._changed = threading.Condition()
        self._has_begun = self._is_done = self._is_abandoned = False
        self._value: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> bool:
        """Runs the operation; returns False if its caller has given up before."""
        if self._is_abandoned:
            return False
        self._has_begun = True
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
        if is_late:
            self._undo()
        return True

    def wait(self, timeout_s: float) -> bool:
        """Whether the operation ends within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_done, finite_s(timeout_s))

    def give_up(self) -> None:
        """The caller no longer needs the result: the operation is undone, now or when it ends."""
        with self._changed:
            is_done = self._is_done
            self._is_abandoned = True
        if is_done:
            self._undo()

    def result(self, what: str, timeout_s: float, limit_s: float, setting: str) -> T:
        """The result of the operation. Raises MetaException if it does not end within `timeout_s`, the rest of
        `limit_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_done, finite_s(timeout_s)):
                self._is_abandoned = True
        if self._is_abandoned:
            if self.pool is not None:
                self.pool.owner.abandoned(self)
            if not self._has_begun and self.pool is not None:
                raise MetaException(
                    f"{what}: all {self.pool.limit} threads for this file system (warehouse.file_threads) have been "
                    f"busy for {limit_s:g} s"
                )
            raise MetaException(f"{what}: the file system did not answer within {limit_s:g} s ({setting})")
        if self._error is not None:
            raise self._error
        return self._value[0]

    def _undo(self) -> None:
        if not self._value or self._if_late is None:
            return
        try:
            self._if_late(self._value[0])
        except Exception:
            _LOG.exception("what a file system did after its time limit cannot be undone")
