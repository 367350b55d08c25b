"""The prewarm as background work, and the list of the most used tables that it begins with."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from hms_cache.app.background import BackgroundTask
from hms_cache.app.warming_process import WarmingProcess, WarmingProcessLost
from hms_cache.cache.assembly import Cache
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.prewarm import Prewarm, most_used, read_most_used, write_most_used
from hms_cache.cache.snapshot_reads import Reader, SnapshotRead, SnapshotReads, Wanted
from hms_cache.config import Settings
from hms_cache.notifications.poller import Poller
from hms_cache.store.contract.snapshots import SnapshotStore

_log = logging.getLogger(__name__)

#: How often the list of the most used tables is written: a crash loses a minute of counting.
_USAGE_INTERVAL_S = 60.0

#: The first position must be known before anything is loaded, or the first reset would throw it away.
_FIRST_POSITION_TIMEOUT_S = 30.0

#: After a batch the prewarm rests for so many times the processor time that calls took meanwhile: not at all without
#: calls, four times as long as the batch where they keep one processor busy. Its queries run in the database at the
#: priority of all others, and on few processors calls would wait for them all the time.
_REST_SHARE = 4.0

_FINISHED_S = 3600.0
_STOP_TIMEOUT_S = 5.0


class Warming:
    """`cache.warm` and `cache.usage_file` of one server."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache,
        store: SnapshotStore,
        poller: Poller,
        process: WarmingProcess | None = None,
    ) -> None:
        """`process`: reads for the prewarm while it lives; without it this process does."""
        given = settings.cache
        self._cache = cache
        self._poller = poller
        self._process = process
        self._read_here: Reader = SnapshotReads(store, cache.shared.budget_bytes).read
        self._file = Path(given.usage_file) if given.usage_file else None
        self.prewarm: Prewarm | None = None
        if given.warm != "off":
            self.prewarm = Prewarm(
                cache.shared,
                cache.loader,
                store,
                CachePolicy(given.include, given.exclude, given.peers),
                tables=given.warm == "full",
                most_used=read_most_used(self._file) if self._file is not None else (),
                read=self._read,
            )

    def start(self, stack: ExitStack) -> None:
        """Begin; what has to be stopped again goes onto the stack."""
        if self.prewarm is not None:
            warming = BackgroundTask("hms-warm", self._step)
            warming.start()
            stack.callback(warming.stop, _STOP_TIMEOUT_S)
            stack.callback(self._end_process)
        if self._file is not None:
            usage = BackgroundTask("hms-usage", self._write_usage)
            usage.start()
            stack.callback(self._write_usage)
            stack.callback(usage.stop, _STOP_TIMEOUT_S)

    def _step(self) -> float:
        assert self.prewarm is not None
        self._poller.ensure_applied(0, _FIRST_POSITION_TIMEOUT_S)
        before_s = _processor_time_of_others_s()
        if self.prewarm.step():
            return (_processor_time_of_others_s() - before_s) * _REST_SHARE
        self._end_process()
        return _FINISHED_S

    def _read(self, wanted: Sequence[Wanted]) -> SnapshotRead:
        process = self._process
        if process is not None:
            try:
                return process.read(wanted)
            except WarmingProcessLost as error:
                _log.warning("warming up goes on in the server itself: %s", error)
                self._end_process()
        return self._read_here(wanted)

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _write_usage(self) -> float:
        assert self._file is not None
        tables = most_used(self._cache.shared)
        if tables:
            try:
                write_most_used(self._file, tables)
            except OSError as error:
                _log.warning("the list of the most used tables cannot be written: %s", error)
        return _USAGE_INTERVAL_S


def _processor_time_of_others_s() -> float:
    """Of all threads of this process but the one that asks."""
    return time.process_time() - time.thread_time()
