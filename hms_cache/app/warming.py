"""The prewarm as background work, and the list of the most used tables, with which it begins."""

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

#: Interval of writing the list of the most used tables: a crash loses a minute of counts.
_USAGE_INTERVAL_S = 60.0

#: The first position must be known before anything is loaded, or the first reset would discard it.
_FIRST_POSITION_TIMEOUT_S = 30.0

#: After a batch, a task pauses this many times as long as the batch took, if calls kept one processor busy meanwhile;
#: if they used a part of it, by the square of that part: at a third, a ninth of this. The database runs the queries at
#: the same priority as all others: on saturated processors calls would always be delayed. With 100,000 partitions on
#: two processors the prewarm takes 3 to 5 s without calls, and 90 to 150 s beside four clients that never pause, whose
#: p99 stays below twice that of a warm server; without pauses it would take 5 s, and their p99 would be 10 ms.
_PAUSE_SHARE = 100.0

#: Interval of checks, after everything is loaded, whether the cache was reset and the prewarm has to start again.
_RESET_PAUSE_S = 1.0

#: Interval of checks whether the names are loaded from which tables are chosen.
_WAITING_PAUSE_S = 0.02

_STOP_TIMEOUT_S = 5.0

#: Linux's `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`: the lowest bits of the number of a thread's clock.
_CLOCK_OF_THREAD = 4 | 2


class Warming:
    """`cache.warm` and `cache.usage_file` of a server."""

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
        """`is_reading_dump`: tables in it need not be loaded. `reads`: by processes that read for the prewarm in
        parallel while they live; without them this process reads. `writes_usage`: true in one of the workers."""
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
        """The running prewarm, or the last one. A new one begins after a reset of the cache, a change of the tables
        that may be cached, or an outage of the database; `_lock` guards that."""
        if given.warm != "off":
            most_used_before = read_most_used(self._file) if self._file is not None else ()
            self.prewarm = self._new_prewarm(most_used_before, self._reads or (None,))

    def start(self, stack: ExitStack) -> None:
        """Starts. Actions for the shutdown are pushed onto the stack."""
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
        """The task with this number in the running prewarm; None if it has fewer tasks."""
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
        """The reason to begin a new prewarm (empty: none), and how each of its tasks reads. Called under the lock.

        After a resync, a failover or a reload memory is empty: everything is loaded again, the most used tables first,
        by this process alone, since the processes that read for the first prewarm have ended or end with it. After an
        outage of the database they continue.
        """
        generation = self._cache.shared.generation
        before, self._generation = self._generation, generation
        if before is not None and before != generation:
            return "the cache was reset", (None,)
        if self._has_new_rules:
            self._has_new_rules = False
            return "other tables may be cached", (None,)
        assert self.prewarm is not None
        # Not before the poller has found that the database is available: each attempt is a line in the log.
        outage_at_s = self.prewarm.outage_at_s
        if outage_at_s is not None and self._poller.current_at_s > outage_at_s:
            return "the database is back", tuple(task.read for task in self.prewarm.tasks)
        return "", ()

    def reload(self, settings: Settings) -> None:
        """Everything was dropped, and these settings define what may be loaded."""
        with self._lock:
            self._settings = settings.cache
            self._has_new_rules = True

    def _step(self, number: int) -> float:
        if not self._poller.ensure_applied(0, _FIRST_POSITION_TIMEOUT_S):
            return _RESET_PAUSE_S  # the database is unavailable or a replica: nothing loaded now could be kept
        if self._is_reading_dump():
            return _WAITING_PAUSE_S
        task = self._task(number)
        if task is None:
            return _RESET_PAUSE_S
        started_s, before_s = time.monotonic(), processor_time_of_calls_s()
        if task.step():
            if task.is_waiting:
                return _WAITING_PAUSE_S
            return pause_s(time.monotonic() - started_s, processor_time_of_calls_s() - before_s)
        with self._lock:
            assert self.prewarm is not None
            if self.prewarm.outage_at_s is None:
                if self.prewarm.progress().finished:
                    self._end_processes()
                elif task in self.prewarm.tasks and number < len(self._reads):
                    # A process that reads for several workers waits for those that may still ask.
                    self._reads[number].retire()
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


def pause_s(duration_s: float, busy_s: float) -> float:
    """How long to pause after a batch of this duration, during which calls used `busy_s` of processor time."""
    share = min(1.0, max(0.0, busy_s / duration_s)) if duration_s else 0.0
    return duration_s * share**2 * _PAUSE_SHARE


def processor_time_of_calls_s() -> float:
    """Processor time of the threads that answer calls. That of other threads is not counted: at startup it would make
    the prewarm pause for seconds. 0 if the system has no thread clocks that can be read by number (Windows, macOS)."""
    if sys.platform != "linux":
        return 0.0
    spent_s = 0.0
    for thread in threading.enumerate():
        if thread.native_id is not None and thread.name.startswith((LOOP_THREAD, CALL_THREADS)):
            with suppress(OSError):  # the server stops, and the thread has ended
                spent_s += time.clock_gettime(_clock_of_thread(thread.native_id))
    return spent_s


def _clock_of_thread(native_id: int) -> int:
    """Linux's number for the clock of a thread's processor time. The kernel refuses it after the thread has ended.

    `time.pthread_getcpuclockid` computes the same number, but from the thread's memory, which may have been freed: it
    caused segmentation faults in servers that were stopping.
    """
    return (~native_id << 3) | _CLOCK_OF_THREAD
