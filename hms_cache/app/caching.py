"""The process's cache: built over the object store, updated by a poller, loaded by background tasks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from hms_cache.app.background import BackgroundTask
from hms_cache.app.dumping import Dumping
from hms_cache.app.system.open_files import files_to_spare
from hms_cache.app.warming import Warming
from hms_cache.app.warming_process import WarmingProcess, WarmingReads
from hms_cache.cache.invalidation import CommitResolver
from hms_cache.cache.memory_files import OPEN_FILES_EACH, MemoryFiles
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.reads.assembly import Cache, CacheOptions, build_cache
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.block_sharing import BlockSharing
from hms_cache.cache.warming.snapshot_reads import SnapshotReads
from hms_cache.cache.worker_positions import WorkerSlot
from hms_cache.call_context import call_context
from hms_cache.config import Settings
from hms_cache.expressions import FilterLimits
from hms_cache.metrics import Metrics
from hms_cache.metrics.registry import CacheMetrics
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import IllegalPollerCommand
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.store.engine.database import Database
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.snapshots import StoreReads

_log = logging.getLogger(__name__)

#: Pause after which the refill and the background loads look for work again if there was none.
_REFILL_PAUSE_S = 0.2

#: Maximum number of files in memory per worker: 65 million partitions in segments of 16,384.
_MAX_MEMORY_FILES = 4_096

#: How long a task may take to end when the server stops; in the worst case one statement is abandoned.
_STOP_TIMEOUT_S = 5.0


@dataclass(slots=True)
class Caching:
    """The cache, its poller and its background tasks."""

    cache: Cache
    poller: Poller
    events: BackgroundTask
    refill: BackgroundTask | None
    background: BackgroundTask
    sharing: BackgroundTask | None
    warming: Warming
    dumping: Dumping | None
    rules: tuple[tuple[str, ...], tuple[str, ...]]
    """`cache.include` and `cache.exclude` in force."""

    def start(self, stack: ExitStack) -> None:
        """Starts to follow the log. Actions for the shutdown are pushed onto the stack."""
        self.poller.start(self.dumping.begin() if self.dumping is not None else None)
        stack.callback(self._stop_following)
        if self.dumping is not None:
            self.dumping.start(stack)
        for task in (self.events, self.refill, self.background, self.sharing):
            if task is not None:
                task.start()
                stack.callback(task.stop, _STOP_TIMEOUT_S)
        self.warming.start(stack)

    def _stop_following(self) -> None:
        """The poller may have been stopped already, which must not make the shutdown fail."""
        with suppress(IllegalPollerCommand):
            self.poller.stop()

    def reload(self, settings: Settings) -> None:
        """Applies the new `cache.max_staleness_ms`, `include` and `exclude`.

        If the set of tables that may be cached changes, everything is dropped, since it was loaded under the old rules.
        The poller continues, or stays paused.
        """
        cache = settings.cache
        self.cache.freshness.max_staleness_s = cache.max_staleness_ms / 1000
        if self.rules == (cache.include, cache.exclude):
            return
        self.rules = cache.include, cache.exclude
        if self.dumping is not None:
            self.dumping.reload(settings)
        self.cache.reading.policy = CachePolicy(cache.include, cache.exclude, cache.peers)
        self.cache.shared.forget_all()
        self.warming.reload(settings)


def reason_against_caching(settings: Settings) -> str | None:
    """Why this server never answers from memory; None if it may cache.

    That the database is a replica is not a reason, since it may be promoted. Until then the poller accepts no position,
    so nothing is answered from memory (`StepOutcome.NOT_PRIMARY`).
    """
    return None if settings.cache.enabled else "cache.enabled is false"


def build_caching(
    settings: Settings,
    store: StoreReads,
    database: Database,
    log: NotificationLog,
    metrics: Metrics,
    resolve_commits: CommitResolver,
    warming_processes: Sequence[WarmingProcess] = (),
    workers: WorkerSlot | None = None,
    memory_directory: Path | None = None,
    *,
    writes_files: bool = True,
) -> Caching:
    """Creates a cache over `store` and its poller, not started. Own commits on `database` are reported to it (P4).
    `memory_directory`: where the workers of a server find shared memory. `writes_files`: true in one of the workers."""
    pollers: list[Poller] = []

    def follow(sink: SharedCache) -> Poller:
        pollers.append(
            Poller(log, sink, database.clock, settings.events, metrics.events, header_filter=sink.reason_to_skip)
        )
        return pollers[-1]

    def observe(kind: str, reason: Reason) -> None:
        metrics.cache.reads.add((kind, reason))
        call_context.record_read(kind, reason)

    cache = build_cache(
        store,
        database.clock,
        cache_options(settings),
        follow,
        resolve_commits=resolve_commits,
        observe=observe,
        workers=workers,
    )
    database.commit_listeners.append(cache.own_writes)
    _show(cache, metrics.cache)
    poller = pollers[0]
    refill = None
    if settings.cache.refill == "recent":
        refill = BackgroundTask(
            "hms-refill", lambda: 0.0 if cache.refill.step() else _REFILL_PAUSE_S, is_scheduled=True
        )
    events = BackgroundTask("hms-events", lambda: poller.step().next_step_in_s)
    poller.on_resync_due = events.wake
    dumping = None
    if settings.cache.dump_file:
        dumping = Dumping(settings, cache.shared, poller, metrics.cache, writes=writes_files)
    files = _memory_files(settings, memory_directory, metrics.cache) if memory_directory is not None else None
    warming = Warming(
        settings,
        cache,
        store,
        poller,
        [
            WarmingReads(process, SnapshotReads(store, cache.shared.budget_bytes).read, files)
            for process in warming_processes
        ],
        lambda: dumping is not None and dumping.is_reading,
        writes_usage=writes_files,
    )
    background = BackgroundTask(
        "hms-background-loads", lambda: 0.0 if cache.background.step() else _REFILL_PAUSE_S, is_scheduled=True
    )
    sharing = _sharing(cache, files) if files is not None else None
    rules = settings.cache.include, settings.cache.exclude
    return Caching(cache, poller, events, refill, background, sharing, warming, dumping, rules)


def _memory_files(settings: Settings, directory: Path, metrics: CacheMetrics) -> MemoryFiles:
    most = files_to_spare(_MAX_MEMORY_FILES * OPEN_FILES_EACH, settings.server.max_connections) // OPEN_FILES_EACH
    files = MemoryFiles(directory, most)
    metrics.shared_bytes.set_function(lambda: files.bytes)
    metrics.shared_blocks.include(
        lambda: {("created",): files.created, ("reused",): files.reused, ("failed",): files.failed}
    )
    return files


def _sharing(cache: Cache, files: MemoryFiles) -> BackgroundTask:
    sharing = BlockSharing(cache.shared, files)
    return BackgroundTask("hms-shared-memory", lambda: 0.0 if sharing.step() else _REFILL_PAUSE_S, is_scheduled=True)


def cache_options(settings: Settings) -> CacheOptions:
    """Converts the settings to the cache's options."""
    cache = settings.cache
    return CacheOptions(
        max_staleness_s=cache.max_staleness_ms / 1000,
        budget_bytes=cache.budget_bytes,
        include=cache.include,
        exclude=cache.exclude,
        peers=cache.peers,
        modes=ReadModes(
            enabled=True,
            trust_write_ids=cache.write_id_reads == "trust",
            without_write_ids=cache.reads_without_write_ids,
        ),
        load_at_once_partitions=cache.load_at_once_partitions,
        max_loads_per_user=cache.max_loads_per_user,
        max_loads_per_address=cache.max_loads_per_address,
        network_of=client_networks(settings.server.client_ipv6_prefix_length),
        limits_partitions=settings.catalog.partition_request_limit >= 0,
        filter_limits=FilterLimits.of(settings.catalog),
    )


def _show(cache: Cache, metrics: CacheMetrics) -> None:
    shared = cache.shared
    metrics.checks.set_function(lambda: cache.check.checks)
    metrics.check_requests.set_function(lambda: cache.check.requests)
    metrics.loads.set_function(lambda: cache.loader.loads)
    metrics.discarded_loads.set_function(lambda: cache.loader.discarded)
    metrics.refused_loads.set_function(lambda: cache.loader.refused)
    metrics.loads_over_client_limit.include(lambda: {(of,): n for of, n in cache.loader.limits.refused.items()})
    metrics.refills.set_function(lambda: cache.refill.refilled)
    metrics.background_loads.set_function(lambda: cache.background.loaded)
    metrics.background_loads_waiting.set_function(lambda: cache.background.waiting)
    metrics.evictions.set_function(lambda: shared.evictions)
    metrics.resets.set_function(lambda: shared.resets)
    metrics.bytes.set_function(lambda: shared.weight)
    metrics.budget_bytes.set_function(lambda: shared.budget_bytes)
    metrics.entries.labels("catalog").set_function(lambda: len(shared.catalogs))
    metrics.entries.labels("database").set_function(lambda: len(shared.databases))
    metrics.entries.labels("table").set_function(lambda: len(shared.tables))
