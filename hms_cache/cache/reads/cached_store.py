"""`CachedStore`: a `RawStore` around a `RawStore`. Every method is forwarded explicitly, in its entity's module."""

from __future__ import annotations

from hms_cache.cache.reads.cached_constraints import CachedConstraints
from hms_cache.cache.reads.cached_databases import CachedDatabases
from hms_cache.cache.reads.cached_functions import CachedFunctions
from hms_cache.cache.reads.cached_partitions import CachedPartitions
from hms_cache.cache.reads.cached_statistics import CachedStatistics
from hms_cache.cache.reads.cached_tables import CachedTables
from hms_cache.cache.reads.reading import Reading
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.store.snapshots import SnapshotStore


class CachedStore(
    CachedDatabases, CachedTables, CachedPartitions, CachedStatistics, CachedConstraints, CachedFunctions, RawStore
):
    """Answers reads from memory where that is provably right (P1 to P6), else from the store; writes go through."""

    def __init__(self, store: SnapshotStore, reading: Reading) -> None:
        self._store = store
        self._reading = reading
