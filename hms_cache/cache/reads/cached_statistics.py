"""Column statistics through the cache: held by column, so that "asked and absent" differs from "never asked" (P6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.reads.cached_validity import (
    invalid_partitions,
    is_no_list,
    judged_aggregate,
    judged_partition_statistics,
    judged_table_statistics,
)
from hms_cache.cache.reads.reading import Bypass, Need, Reading, RequestVersion, frozen_table, key_of
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.statistics_by_column import (
    ColumnsHeld,
    missing_columns,
    statistics_of_table,
    statistics_of_table_partitions,
)
from hms_cache.cache.warming.loaded_parts import AGGREGATE
from hms_cache.cache.warming.snapshot_reads import Wanted
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.statistics import StatisticsStore
from hms_cache.store.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics

T = TypeVar("T")


class CachedStatistics(StatisticsStore):
    """The part of `CachedStore` for statistics."""

    _reading: Reading
    _store: SnapshotStore

    def get_table_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> ColumnStatistics:
        key = key_of(catalog, database, table)
        version = RequestVersion(valid_write_ids, table_id)
        wanted = tuple(columns)

        def look(cache: SharedCache) -> ColumnStatistics | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            if is_no_list(valid_write_ids):
                return Bypass(Reason.UNSUPPORTED_FIELD)
            held = _columns_held(entry, key, Facet.TABLE_STATISTICS, (engine, (), wanted))
            if isinstance(held, Need):
                return held
            found = statistics_of_table(held, frozen_table(entry), wanted, engine)
            return judged_table_statistics(entry, found, valid_write_ids)

        def ask() -> ColumnStatistics:
            return self._store.get_table_column_statistics(
                catalog,
                database,
                table,
                columns,
                engine=engine,
                valid_write_ids=valid_write_ids,
                table_id=table_id,
            )

        return self._reading.answer(
            "table_statistics", look, ask, facet=Facet.TABLE_STATISTICS, table=key, version=version
        )

    def get_partition_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[ColumnStatistics]:
        def ask() -> list[ColumnStatistics]:
            return self._store.get_partition_column_statistics(
                catalog,
                database,
                table,
                partition_names,
                columns,
                engine=engine,
                valid_write_ids=valid_write_ids,
                table_id=table_id,
            )

        asked = (engine, tuple(partition_names), tuple(columns))

        def find(entry: Entry, key: TableName) -> list[ColumnStatistics] | Need:
            held = _columns_held(entry, key, Facet.PARTITION_STATISTICS, asked)
            if isinstance(held, Need):
                return held
            return statistics_of_table_partitions(held, frozen_table(entry), columns, engine)

        return self._about_partitions(
            "partition_statistics",
            (catalog, database, table),
            RequestVersion(valid_write_ids, table_id),
            asked[1],
            find,
            ask,
            judged_partition_statistics,
        )

    def get_aggregate_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
    ) -> AggrStats:
        def ask() -> AggrStats:
            return self._store.get_aggregate_statistics(
                catalog, database, table, partition_names, columns, engine=engine, valid_write_ids=valid_write_ids
            )

        asked = (engine, tuple(partition_names), tuple(columns), AGGREGATE)

        def find(entry: Entry, key: TableName) -> AggrStats | Need:
            found: AggrStats | Need = _held(entry, key, Facet.PARTITION_STATISTICS, asked)
            return found

        return self._about_partitions(
            "aggregate_statistics",
            (catalog, database, table),
            RequestVersion(valid_write_ids),
            asked[1],
            find,
            ask,
            judged_aggregate,
        )

    def _about_partitions(
        self,
        kind: str,
        name: tuple[str, str, str],
        version: RequestVersion,
        partition_names: Sequence[str],
        find: Callable[[Entry, TableName], T | Need],
        ask: Callable[[], T],
        judged: Callable[[T, frozenset[str]], T],
    ) -> T:
        """What `find` finds in the entry, if no partition of the table has changed since it was loaded.

        `judged` makes of it what a reader with a list gets, given the partitions whose statistics it must not use.
        """
        key = key_of(*name)

        def look(cache: SharedCache) -> T | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            if is_no_list(version.valid_write_ids):
                return Bypass(Reason.UNSUPPORTED_FIELD)
            invalid: frozenset[str] | Need = frozenset()
            if version.valid_write_ids is not None:
                invalid = invalid_partitions(entry, key, partition_names, version.valid_write_ids)
            found = find(entry, key)
            if isinstance(found, Need) or isinstance(invalid, Need):
                return Need(tuple(wanted for one in (invalid, found) if isinstance(one, Need) for wanted in one.wanted))
            return found if version.valid_write_ids is None else judged(found, invalid)

        return self._reading.answer(kind, look, ask, facet=Facet.PARTITION_STATISTICS, table=key, version=version)

    # Writes: the store's, unchanged (P9)

    def update_table_column_statistics(
        self, statistics: ColumnStatistics, *, write_id: int | None = None, valid_write_ids: str | None = None
    ) -> None:
        self._store.update_table_column_statistics(statistics, write_id=write_id, valid_write_ids=valid_write_ids)

    def update_partition_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._store.update_partition_column_statistics(statistics, write_id=write_id, valid_write_ids=valid_write_ids)

    def merge_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._store.merge_column_statistics(statistics, write_id=write_id, valid_write_ids=valid_write_ids)

    def delete_table_column_statistics(
        self, catalog: str, database: str, table: str, columns: Sequence[str] = (), *, engine: str = "hive"
    ) -> None:
        self._store.delete_table_column_statistics(catalog, database, table, columns, engine=engine)

    def delete_partition_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str] = (),
        *,
        engine: str = "hive",
    ) -> None:
        self._store.delete_partition_column_statistics(
            catalog, database, table, partition_names, columns, engine=engine
        )


def _columns_held(entry: Entry, key: TableName, facet: Facet, asked: tuple[Any, ...]) -> ColumnsHeld | Need:
    """What is held of these columns and perhaps others, or which of them have to be loaded."""
    engine, names, columns = asked
    held: ColumnsHeld | None = entry.facets.get(facet, {}).get((engine, names))
    missing = missing_columns(held, columns)
    if held is None or missing is not None:
        return Need((Wanted(key, facet, (engine, names, missing or ())),))
    return held


def _held(entry: Entry, key: TableName, facet: Facet, asked: tuple[Any, ...]) -> Any:
    """The answer to the question, or what has to be loaded for it."""
    found = entry.facets.get(facet, {}).get(asked)
    return found if found is not None else Need((Wanted(key, facet, asked),))
