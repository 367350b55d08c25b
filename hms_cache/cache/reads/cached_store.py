"""`CachedStore`: a `RawStore` around a `RawStore`. Every method is forwarded explicitly, in its entity's module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hms_cache.cache.reads.cached_constraints import CachedConstraints
from hms_cache.cache.reads.cached_databases import CachedDatabases
from hms_cache.cache.reads.cached_functions import CachedFunctions
from hms_cache.cache.reads.cached_partitions import CachedPartitions
from hms_cache.cache.reads.cached_statistics import CachedStatistics
from hms_cache.cache.reads.cached_tables import CachedTables
from hms_cache.cache.reads.reading import Reading
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.store.snapshots import SnapshotStore

T = TypeVar("T")


class CachedStore(
    CachedDatabases, CachedTables, CachedPartitions, CachedStatistics, CachedConstraints, CachedFunctions, RawStore
):
    """Answers reads from memory where that is provably right (P1 to P6), else from the store; writes go through."""

    def __init__(self, store: SnapshotStore, reading: Reading) -> None:
        self._store = store
        self._reading = reading

    def at_one_moment(self, ask: Callable[[RawStore], T]) -> T:
        """From memory if all reads found it at one position, else once more in one snapshot of the database."""
        with self._reading.moments.watched() as seen:
            try:
                answer = ask(self)
            except DatabaseUnavailableError:
                raise
            except Exception:
                if seen.is_one:
                    raise
            else:
                if seen.is_one:
                    return answer
        return self._reading.pass_through("one_moment", lambda: self._store.at_one_moment(ask))
