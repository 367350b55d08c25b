"""`CachedReads`: the reads of a store, answered from memory if that is provably right (P1 to P6).

There are no writes here: they go to the store, and their changes come back through the notification log (P9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hms_cache.cache.reads.cached_catalogs import PassedCatalogs
from hms_cache.cache.reads.cached_constraints import CachedConstraints
from hms_cache.cache.reads.cached_databases import CachedDatabases
from hms_cache.cache.reads.cached_functions import CachedFunctions
from hms_cache.cache.reads.cached_partitions import CachedPartitions
from hms_cache.cache.reads.cached_statistics import CachedStatistics
from hms_cache.cache.reads.cached_tables import CachedTables
from hms_cache.cache.reads.reading import Reading
from hms_cache.call_context import call_context
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.store.contract.metadata import MetadataReads

T = TypeVar("T")


class CachedReads(MetadataReads):
    """`MetadataReads` around those of a store."""

    def __init__(self, store: MetadataReads, reading: Reading) -> None:
        self._store = store
        self._reading = reading
        self.catalogs = PassedCatalogs(store.catalogs, reading)
        self.databases = CachedDatabases(store.databases, reading)
        self.tables = CachedTables(store.tables, reading)
        self.partitions = CachedPartitions(store.partitions, reading)
        self.statistics = CachedStatistics(store.statistics, reading)
        self.constraints = CachedConstraints(store.constraints, reading)
        self.functions = CachedFunctions(store.functions, reading)

    def in_one_snapshot(self, read: Callable[[MetadataReads], T]) -> T:
        """The result from memory if all reads were answered at one position, else of one snapshot of the database."""
        with call_context.watched() as seen:
            try:
                answer = read(self)
            except DatabaseUnavailableError:
                raise
            except Exception:
                if seen.is_one:
                    raise
            else:
                if seen.is_one:
                    return answer
        return self._reading.pass_through("snapshot", lambda: self._store.in_one_snapshot(read))

    def record_other_answer(self, event_id: int | None = None) -> None:
        if event_id is not None:
            self._reading.freshness.raise_floor(event_id)
        else:
            self._reading.freshness.require_check()
