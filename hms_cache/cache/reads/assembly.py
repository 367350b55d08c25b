"""Assembles the cache of one server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from hms_cache.cache.freshness import Follower, Freshness
from hms_cache.cache.invalidation import CommitResolver
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.position_check import PositionCheck
from hms_cache.cache.reads.cached_reads import CachedReads
from hms_cache.cache.reads.own_writes import OwnWrites
from hms_cache.cache.reads.reading import Reading, ReadModes, ReadObserver
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.background_loads import AT_ONCE_PARTITIONS, BackgroundLoads
from hms_cache.cache.warming.load_limits import LoadLimits
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.refill import Refill
from hms_cache.cache.worker_positions import WorkerSlot
from hms_cache.clock import Clock
from hms_cache.expressions import FilterLimits
from hms_cache.store.snapshots import StoreReads
from hms_cache.values import frozen


@frozen
class CacheOptions:
    """The settings of the `cache` section, in the form that the cache uses."""

    max_staleness_s: float = 0.0
    budget_bytes: int = 1024**3
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    peers: str = "none"
    modes: ReadModes = field(default_factory=ReadModes)
    limits_partitions: bool = False
    filter_limits: FilterLimits = field(default_factory=FilterLimits)
    apply_timeout_s: float = 5.0
    load_at_once_partitions: int = AT_ONCE_PARTITIONS
    max_loads_per_user: int = 0
    max_loads_per_address: int = 0
    """Maximum number of concurrent loads per user and per address; 0 means no limit."""
    network_of: Callable[[str], str] = str
    """Maps a client's address to the network whose addresses count as one client."""


@frozen
class Cache:
    """All parts of a cache, for those who start, monitor and command it."""

    shared: SharedCache
    check: PositionCheck
    freshness: Freshness
    loader: Loader
    reading: Reading
    refill: Refill
    background: BackgroundLoads
    own_writes: OwnWrites
    reads: CachedReads


def build_cache(
    store: StoreReads,
    clock: Clock,
    options: CacheOptions,
    follow: Callable[[SharedCache], Follower],
    *,
    resolve_commits: CommitResolver | None = None,
    observe: ReadObserver | None = None,
    workers: WorkerSlot | None = None,
) -> Cache:
    """A cache over `store`. `follow` creates the poller that feeds it; `workers` links it to other worker processes."""
    shared = SharedCache(options.budget_bytes, resolve_commits, has_peers=options.peers != "none")
    follower = follow(shared)
    check = PositionCheck(store.log_head, clock)
    freshness = Freshness(shared, check, follower, clock, options.max_staleness_s, options.apply_timeout_s, workers)
    policy = CachePolicy(options.include, options.exclude, options.peers)
    loader = Loader(
        shared,
        store,
        freshness,
        follower.ensure_applied,
        lambda reason: follower.fail(reason),
        limits=LoadLimits(options.max_loads_per_user, options.max_loads_per_address, options.network_of),
        may_hold=policy.may_cache,
    )
    background = BackgroundLoads(shared, loader, store, clock, options.load_at_once_partitions)
    reading = Reading(
        shared,
        freshness,
        loader,
        clock,
        policy,
        options.modes,
        observe,
        limits_partitions=options.limits_partitions,
        filter_limits=options.filter_limits,
        background=background,
    )
    return Cache(
        shared,
        check,
        freshness,
        loader,
        reading,
        Refill(shared, loader, clock),
        background,
        OwnWrites(freshness),
        CachedReads(store, reading),
    )
