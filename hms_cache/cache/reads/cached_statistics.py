"""Column statistics through the cache: held by column, so that a column without statistics differs from one that was
never asked for (P6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.cached_validity import (
    checked_aggregate,
    checked_partition_statistics,
    checked_table_statistics,
    invalid_among,
    is_no_list,
    named_partitions,
    requested_partitions,
)
from hms_cache.cache.reads.reading import Bypass, Need, frozen_table
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import (
    CachedColumns,
    chosen_columns,
    missing_columns,
    statistics_of_table,
    statistics_of_table_partitions,
)
from hms_cache.cache.warming.loaded_parts import AGGREGATE
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.store.contract.statistics import StatisticsQuery, StatisticsReads
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics

T = TypeVar("T")


class CachedStatistics(CachedEntity[StatisticsReads], StatisticsReads):
    """`StatisticsReads` from memory if possible, else from the store."""

    def _entry(self, cache: SharedCache, query: StatisticsQuery) -> Entry | Need | Bypass:
        """The table's entry. Invalid write-id lists are left to the store."""
        entry = self._reading.table_entry(cache, query.table, query.version)
        if isinstance(entry, Entry) and is_no_list(query.version.valid_write_ids):
            return Bypass(Reason.UNSUPPORTED_FIELD)
        return entry

    def get_table_column_statistics(self, query: StatisticsQuery) -> ColumnStatistics:
        table, version, requested = query.table, query.version, tuple(query.columns)

        def from_memory(cache: SharedCache) -> ColumnStatistics | Need | Bypass:
            entry = self._entry(cache, query)
            if not isinstance(entry, Entry):
                return entry
            cached = _cached_columns(cache, entry, Facet.TABLE_STATISTICS, (query.engine, (), requested))
            if isinstance(cached, Need | Bypass):
                return cached
            found = statistics_of_table(cached, frozen_table(entry), requested, query.engine)
            return checked_table_statistics(entry, found, version.valid_write_ids)

        def from_store() -> ColumnStatistics:
            return self._store.get_table_column_statistics(query)

        return self._reading.answer(
            "table_statistics", from_memory, from_store, facet=Facet.TABLE_STATISTICS, table=table, version=version
        )

    def get_partition_column_statistics(
        self, query: StatisticsQuery, partition_names: Sequence[str]
    ) -> list[ColumnStatistics]:
        def from_store() -> list[ColumnStatistics]:
            return self._store.get_partition_column_statistics(query, partition_names)

        statistics_key = (query.engine, tuple(partition_names), tuple(query.columns))

        def find(cache: SharedCache, entry: Entry) -> Callable[[], list[ColumnStatistics]] | Need | Bypass:
            cached = _cached_columns(cache, entry, Facet.PARTITION_STATISTICS, statistics_key)
            if isinstance(cached, Need | Bypass):
                return cached
            chosen = chosen_columns(cached, query.columns)
            return partial(statistics_of_table_partitions, chosen, frozen_table(entry), query.engine)

        return self._about_partitions(
            "partition_statistics", query, statistics_key[1], find, from_store, checked_partition_statistics
        )

    def get_aggregate_statistics(self, query: StatisticsQuery, partition_names: Sequence[str]) -> AggrStats:
        def from_store() -> AggrStats:
            return self._store.get_aggregate_statistics(query, partition_names)

        statistics_key = (query.engine, tuple(partition_names), tuple(query.columns), AGGREGATE)

        def find(cache: SharedCache, entry: Entry) -> Callable[[], AggrStats] | Need | Bypass:
            found: AggrStats | None = entry.facets.get(Facet.PARTITION_STATISTICS, {}).get(statistics_key)
            return _need(cache, entry, Facet.PARTITION_STATISTICS, statistics_key) if found is None else lambda: found

        return self._about_partitions(
            "aggregate_statistics", query, statistics_key[1], find, from_store, checked_aggregate
        )

    def _about_partitions(
        self,
        kind: str,
        query: StatisticsQuery,
        partition_names: Sequence[str],
        find: Callable[[SharedCache, Entry], Callable[[], T] | Need | Bypass],
        from_store: Callable[[], T],
        checked: Callable[[T, frozenset[str]], T],
    ) -> T:
        """What `find` finds in the entry, if no partition of the table has changed since it was loaded.

        `checked` turns it into the answer for a reader with a write-id list, given the partitions whose statistics the
        reader must not use. It is selected under the cache's lock, and the answer is made without it.
        """
        key, version = query.table, query.version
        valid_write_ids = version.valid_write_ids
        named = named_partitions(self._reading, key, partition_names if valid_write_ids is not None else ())

        def from_memory(cache: SharedCache) -> Callable[[], T] | Need | Bypass:
            entry = self._entry(cache, query)
            if not isinstance(entry, Entry):
                return entry
            found = find(cache, entry)
            if valid_write_ids is None or isinstance(found, Bypass):
                return found
            selected = requested_partitions(entry, key, named)
            if isinstance(found, Need) or isinstance(selected, Need):
                parts = (selected, found)
                return Need(tuple(requested for one in parts if isinstance(one, Need) for requested in one.requested))
            return lambda: checked(found(), invalid_among(selected, valid_write_ids))

        return self._reading.answer_made(
            kind, from_memory, from_store, facet=Facet.PARTITION_STATISTICS, table=key, version=version
        )


def _cached_columns(
    cache: SharedCache, entry: Entry, facet: Facet, statistics_key: tuple[Any, ...]
) -> CachedColumns | Need | Bypass:
    """What is held of these columns, and possibly of others; or which of them have to be loaded."""
    engine, names, columns = statistics_key
    cached: CachedColumns | None = entry.facets.get(facet, {}).get((engine, names))
    missing = missing_columns(cached, columns)
    if cached is None or missing is not None:
        return _need(cache, entry, facet, (engine, names, missing or ()))
    return cached


def _need(cache: SharedCache, entry: Entry, facet: Facet, statistics_key: tuple[Any, ...]) -> Need | Bypass:
    """What has to be loaded for a question, unless the answer is known to be too large."""
    requested = LoadRequest(entry.key, facet, statistics_key)
    too_large = cache.large_keys.get((entry.key, facet))
    if too_large and hash(requested) in too_large:
        return Bypass(Reason.INCOMPLETE)
    return Need((requested,))
