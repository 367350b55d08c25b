"""The stores on which the contract suite runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from hms_cache.cache.reads.assembly import CacheOptions, build_cache
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.verification import invariants
from hms_cache.notifications.poller import Poller
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.object_store import ObjectStore
from hms_cache.store.transactions.committed_writes import read_committed_writes
from tests.store.contract.both import Both


@contextmanager
def object_store(context: StoreContext) -> Iterator[MetadataStore]:
    """The store over the database."""
    yield ObjectStore(context)


@contextmanager
def cached_store(context: StoreContext) -> Iterator[MetadataStore]:
    """The cache over the store, with `max_staleness = 0`.

    Its poller has no thread: reads update the cache themselves.
    """
    database = context.database
    pollers: list[Poller] = []

    def follow(sink: SharedCache) -> Poller:
        pollers.append(Poller(NotificationLog(database), sink, context.clock, header_filter=sink.reason_to_skip))
        return pollers[-1]

    objects = ObjectStore(context)
    cache = build_cache(
        objects.reads,
        context.clock,
        CacheOptions(),
        follow,
        resolve_commits=lambda txn_ids: read_committed_writes(database, txn_ids),
    )
    database.commit_listeners.append(cache.own_writes)
    try:
        pollers[0].start()
        pollers[0].step()
        yield Both(cache.reads, objects.writes)
        invariants.check(cache.shared)
    finally:
        database.commit_listeners.remove(cache.own_writes)


STORES: dict[str, Callable[[StoreContext], AbstractContextManager[MetadataStore]]] = {
    "object": object_store,
    "cached": cached_store,
}
