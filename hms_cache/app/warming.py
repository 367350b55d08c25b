"""The prewarm as background work, and the list of the most used tables that it begins with."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from hms_cache.app.background import BackgroundTask
from hms_cache.app.event_loop import LOOP_THREAD
from hms_cache.app.warming_process import WarmingReads
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.reads.assembly import Cache
from hms_cache.cache.warming.prewarm import Prewarm, PrewarmTask, most_used, read_most_used, write_most_used
from hms_cache.cache.warming.snapshot_reads import Reader
from hms_cache.config import Settings
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.poller import Poller
from hms_cache.server.thread_pool import CALL_THREADS
from hms_cache.store.snapshots import StoreReads

_log = logging.getLogger(__name__)

#: How often the list of the most used tables is written: a crash loses a minute of counting.
_USAGE_INTERVAL_S = 60.0

#: The first position must be known before anything is loaded, or the first reset would throw it away.
_FIRST_POSITION_TIMEOUT_S = 30.0

#: After a batch a task rests so many times as long as it took, where calls kept one processor busy meanwhile; where
#: they took a part of it, by the square of that part: a tenth as long as this at a third. The queries run in the
#: database at the priority of all others: on processors that are saturated calls would wait for them all the time, on
#: others not. With 100,000 partitions on two processors the prewarm takes 3 to 5 s without calls and 90 to 150 s
#: beside four clients that never pause, whose p99 stays below twice a warm server's; without rests it would take 5 s,
#: and their p99 be 10 ms.
_REST_SHARE = 100.0

#: Between looks, once all is loaded, whether the cache was reset, so that the the prewarm starts again.
_RESET_PAUSE_S = 1.0

#: Between looks whether the names are loaded that tables are chosen from.
_WAITING_PAUSE_S = 0.02

_STOP_TIMEOUT_S = 5.0

#: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` of Linux: the lowest bits of such a clock's number.
_CLOCK_OF_THREAD = 4 | 2


class Warming:
    """`cache.warm` and `cache.usage_file` of one server."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache,
        store: StoreReads,
        poller: Poller,
        reads: Sequence[WarmingReads] = (),
        is_reading_dump: Callable[[], bool] = lambda: False,
        *,
        writes_usage: bool = True,
    ) -> None:
        """`is_reading_dump`: what it brings need not be loaded. `reads`: by processes that read for the prewarm side by
        side while they live; without them this process does. `writes_usage`: of the worker processes of a server one
        does."""
        given = settings.cache
        self._cache = cache
        self._is_reading_dump = is_reading_dump
        self._poller = poller
        self._reads = reads
        self._file = Path(given.usage_file) if given.usage_file else None
        self._writes_usage = writes_usage
        self._settings = given
        self._store = store
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._has_new_rules = False
        self.prewarm: Prewarm | None = None
        """The warming up under way, or the last one. It begins anew when the cache was reset or other tables may be
        cached, and after an outage of the database: `_lock` guards that."""
        if given.warm != "off":
            most_used_before = read_most_used(self._file) if self._file is not None else ()
            self.prewarm = self._new_prewarm(most_used_before, self._reads or (None,))

    def start(self, stack: ExitStack) -> None:
        """Begin; what has to be stopped again goes onto the stack."""
        if self.prewarm is not None:
            for number in range(len(self.prewarm.tasks)):
                warming = BackgroundTask(f"hms-warm-{number}", partial(self._step, number))
                warming.start()
                stack.callback(warming.stop, _STOP_TIMEOUT_S)
            stack.callback(self._end_processes)
        if self._file is not None and self._writes_usage:
            usage = BackgroundTask("hms-usage", self._write_usage)
            usage.start()
            stack.callback(self._write_usage)
            stack.callback(usage.stop, _STOP_TIMEOUT_S)

    def _new_prewarm(self, first: Sequence[TableName], reads: Sequence[Reader | None]) -> Prewarm:
        given = self._settings
        return Prewarm(
            self._cache.shared,
            self._cache.loader,
            self._store,
            CachePolicy(given.include, given.exclude, given.peers),
            tables=given.warm == "full",
            most_used=first,
            reads=reads,
        )

    def _task(self, number: int) -> PrewarmTask | None:
        """The task of this number in the prewarm that is under way; None: it has fewer tasks."""
        with self._lock:
            reason, reads = self._reason_to_begin_anew()
            assert self.prewarm is not None
            if reason:
                self.prewarm.abandon(reason)
                self.prewarm = self._new_prewarm(most_used(self._cache.shared), reads)
                _log.info("the prewarm starts again: %s", reason)
            tasks = self.prewarm.tasks
            return tasks[number] if number < len(tasks) else None

    def _reason_to_begin_anew(self) -> tuple[str, Sequence[Reader | None]]:
        """(empty: there is none, how each task reads then). Under the lock.

        After a resync, a failover or a reload nothing is held: all is loaded again, what was used most first. That is
        done by this process alone: those that read for the first one have ended, or do so when this one ends. After an
        outage of the database they go on where they were.
        """
        generation = self._cache.shared.generation
        before, self._generation = self._generation, generation
        if before is not None and before != generation:
            return "the cache was reset", (None,)
        if self._has_new_rules:
            self._has_new_rules = False
            return "other tables may be cached", (None,)
        assert self.prewarm is not None
        # Not before the poller has found that the database is there: each try is a line in the log.
        outage_at_s = self.prewarm.outage_at_s
        if outage_at_s is not None and self._poller.current_at_s > outage_at_s:
            return "the database is back", tuple(task.read for task in self.prewarm.tasks)
        return "", ()

    def reload(self, settings: Settings) -> None:
        """Everything was dropped, and these settings say what may be loaded."""
        with self._lock:
            self._settings = settings.cache
            self._has_new_rules = True

    def _step(self, number: int) -> float:
        if not self._poller.ensure_applied(0, _FIRST_POSITION_TIMEOUT_S):
            return _RESET_PAUSE_S  # the database is away, or a replica: nothing that is loaded now could be kept
        if self._is_reading_dump():
            return _WAITING_PAUSE_S
        task = self._task(number)
        if task is None:
            return _RESET_PAUSE_S
        started_s, before_s = time.monotonic(), processor_time_of_calls_s()
        if task.step():
            if task.is_waiting:
                return _WAITING_PAUSE_S
            return rest_s(time.monotonic() - started_s, processor_time_of_calls_s() - before_s)
        with self._lock:
            assert self.prewarm is not None
            if self.prewarm.outage_at_s is None:
                if self.prewarm.progress().finished:
                    self._end_processes()
                elif task in self.prewarm.tasks and number < len(self._reads):
                    # A process that reads for several workers waits for those that may still ask.
                    self._reads[number].leave()
        return _RESET_PAUSE_S

    def _end_processes(self) -> None:
        for reads in self._reads:
            reads.close()

    def _write_usage(self) -> float:
        assert self._file is not None
        tables = most_used(self._cache.shared)
        if tables:
            try:
                write_most_used(self._file, tables)
            except OSError as error:
                _log.warning("the list of the most used tables cannot be written: %s", error)
        return _USAGE_INTERVAL_S


def rest_s(took_s: float, busy_s: float) -> float:
    """How long to rest after a batch that took so long, while calls took `busy_s` of processor time."""
    share = min(1.0, max(0.0, busy_s / took_s)) if took_s else 0.0
    return took_s * share**2 * _REST_SHARE


def processor_time_of_calls_s() -> float:
    """Of the threads that answer. What others do beside the first batches is the start of the server: taken for calls
    it made the prewarm rest for seconds. 0 where the system has no clocks of threads that can be asked by their number
    (Windows, macOS)."""
    if sys.platform != "linux":
        return 0.0
    spent_s = 0.0
    for thread in threading.enumerate():
        if thread.native_id is not None and thread.name.startswith((LOOP_THREAD, CALL_THREADS)):
            with suppress(OSError):  # the server stops, and the thread has ended
                spent_s += time.clock_gettime(_clock_of_thread(thread.native_id))
    return spent_s


def _clock_of_thread(native_id: int) -> int:
    """Linux's number for the clock of a thread's processor time. The kernel refuses that of a thread that has ended.

    `time.pthread_getcpuclockid` computes the same number, but out of the memory of the thread, which may be gone: it
    ended servers that were stopping with a segmentation fault.
    """
    return (~native_id << 3) | _CLOCK_OF_THREAD
