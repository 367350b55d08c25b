"""Partitions through the cache: single ones, or the complete set of a table that answers every selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.loader import Wanted
from hms_cache.cache.partition_selection import SelectionError, select_names
from hms_cache.cache.partition_set import PartitionSet, Values
from hms_cache.cache.reading import Bypass, Need, Reading, RequestVersion, frozen_table, key_of
from hms_cache.cache.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.notifications.scope import TableName
from hms_cache.store.contract.partitions import (
    Grantee,
    PartitionAnswer,
    PartitionProjection,
    PartitionSelection,
    PartitionStore,
)
from hms_cache.store.contract.snapshots import SnapshotStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    EnvironmentContext,
    MetaException,
    Partition,
    PartitionValuesRow,
)

T = TypeVar("T")


class CachedPartitions(PartitionStore):
    """The part of `CachedStore` for partitions."""

    _reading: Reading
    _store: SnapshotStore

    def get_partition(
        self,
        catalog: str,
        database: str,
        table: str,
        values: Sequence[str],
        *,
        grantee: Grantee | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> Partition:
        key = key_of(catalog, database, table)
        version = RequestVersion(valid_write_ids, table_id)
        wanted: Values = tuple(values)

        def look(cache: SharedCache) -> Partition | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            if len(wanted) != len(frozen_table(entry).partitionKeys or ()):
                return Bypass(Reason.UNSUPPORTED_FIELD)
            refused = _needs_store(entry, grantee, valid_write_ids)
            if refused is not None:
                return refused
            held = entry.facets.get(Facet.PARTITIONS)
            if isinstance(held, PartitionSet):
                try:
                    found = held.find(wanted)
                except MetaException:
                    return Bypass(Reason.UNSUPPORTED_FIELD)
                if found is not None:
                    return found
                if held.complete and wanted not in held.missing:
                    # There is none; the store has the text that clients know.
                    return Bypass(Reason.INCOMPLETE)
            return Need((Wanted(key, Facet.PARTITIONS, (wanted,)),))

        def ask() -> Partition:
            return self._store.get_partition(
                catalog, database, table, values, grantee=grantee, valid_write_ids=valid_write_ids, table_id=table_id
            )

        return self._reading.answer("partition", look, ask, facet=Facet.PARTITIONS, table=key, version=version)

    def get_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        max_parts: int = -1,
        grantee: Grantee | None = None,
        projection: PartitionProjection | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> PartitionAnswer:
        def ask() -> PartitionAnswer:
            return self._store.get_partitions(
                catalog,
                database,
                table,
                selection,
                max_parts=max_parts,
                grantee=grantee,
                projection=projection,
                valid_write_ids=valid_write_ids,
                table_id=table_id,
            )

        def answer(entry: Entry, held: PartitionSet) -> PartitionAnswer | Bypass:
            if projection is not None:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            refused = _needs_store(entry, grantee, valid_write_ids)
            if refused is not None:
                return refused
            selected = select_names(held, selection, max_parts)
            found = [held.find_name(name) for name in selected.names]
            return PartitionAnswer([one for one in found if one is not None], selected.has_unknown)

        version = RequestVersion(valid_write_ids, table_id)
        return self._from_set("partitions", key_of(catalog, database, table), version, selection, answer, ask)

    def get_partition_names(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        max_parts: int = -1,
        order: str | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[str]:
        def ask() -> list[str]:
            return self._store.get_partition_names(
                catalog,
                database,
                table,
                selection,
                max_parts=max_parts,
                order=order,
                valid_write_ids=valid_write_ids,
                table_id=table_id,
            )

        def answer(entry: Entry, held: PartitionSet) -> list[str] | Bypass:
            if order is not None:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            return list(select_names(held, selection, max_parts).names)

        version = RequestVersion(valid_write_ids, table_id)
        return self._from_set("partition_names", key_of(catalog, database, table), version, selection, answer, ask)

    def get_partition_count(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> int:
        def ask() -> int:
            return self._store.get_partition_count(
                catalog, database, table, selection, valid_write_ids=valid_write_ids, table_id=table_id
            )

        version = RequestVersion(valid_write_ids, table_id)
        return self._from_set(
            "partition_count",
            key_of(catalog, database, table),
            version,
            selection,
            lambda entry, held: len(select_names(held, selection, -1).names),
            ask,
        )

    def get_partition_values(
        self,
        catalog: str,
        database: str,
        table: str,
        keys: Sequence[str],
        *,
        selection: PartitionSelection | None = None,
        distinct: bool = True,
        ascending: bool = True,
        max_parts: int = -1,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[PartitionValuesRow]:
        def ask() -> list[PartitionValuesRow]:
            return self._store.get_partition_values(
                catalog,
                database,
                table,
                keys,
                selection=selection,
                distinct=distinct,
                ascending=ascending,
                max_parts=max_parts,
                valid_write_ids=valid_write_ids,
                table_id=table_id,
            )

        return self._reading.pass_through("partition_values", ask)

    def _from_set(
        self,
        kind: str,
        key: TableName,
        version: RequestVersion,
        selection: PartitionSelection,
        answer: Callable[[Entry, PartitionSet], T | Bypass],
        ask: Callable[[], T],
    ) -> T:
        """An answer from the complete set, which a first question loads; named ones alone need only themselves."""

        def look(cache: SharedCache) -> T | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            if not frozen_table(entry).partitionKeys or self._reading.limits_partitions:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            held = entry.facets.get(Facet.PARTITIONS)
            if not isinstance(held, PartitionSet) or not held.complete:
                return Need((Wanted(key, Facet.PARTITIONS),))
            if held.missing:
                if len(held.missing) > len(held) // 2 + 1000:
                    return Need((Wanted(key, Facet.PARTITIONS),))
                return Need((Wanted(key, Facet.PARTITIONS, tuple(sorted(held.missing))),))
            try:
                return answer(entry, held)
            except SelectionError:
                # The store says what is wrong with the selection.
                return Bypass(Reason.UNSUPPORTED_FIELD)

        return self._reading.answer(kind, look, ask, facet=Facet.PARTITIONS, table=key, version=version)

    # Writes: the store's, unchanged (P9)

    def add_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        if_not_exists: bool = False,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
    ) -> list[Partition]:
        return self._store.add_partitions(
            catalog,
            database,
            table,
            partitions,
            if_not_exists=if_not_exists,
            environment_context=environment_context,
            write_id=write_id,
        )

    def alter_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._store.alter_partitions(
            catalog,
            database,
            table,
            partitions,
            environment_context=environment_context,
            write_id=write_id,
            valid_write_ids=valid_write_ids,
        )

    def rename_partition(
        self,
        catalog: str,
        database: str,
        table: str,
        old_values: Sequence[str],
        partition: Partition,
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._store.rename_partition(
            catalog, database, table, old_values, partition, write_id=write_id, valid_write_ids=valid_write_ids
        )

    def drop_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        delete_data: bool,
        if_exists: bool = False,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
    ) -> list[Partition]:
        return self._store.drop_partitions(
            catalog,
            database,
            table,
            selection,
            delete_data=delete_data,
            if_exists=if_exists,
            environment_context=environment_context,
            write_id=write_id,
        )

    def exchange_partitions(
        self,
        partition_specification: dict[str, str],
        source: tuple[str, str, str],
        destination: tuple[str, str, str],
    ) -> list[Partition]:
        return self._store.exchange_partitions(partition_specification, source, destination)

    def mark_partition_for_event(
        self, catalog: str, database: str, table: str, values: dict[str, str], event_type: int
    ) -> None:
        self._store.mark_partition_for_event(catalog, database, table, values, event_type)

    def is_partition_marked_for_event(
        self, catalog: str, database: str, table: str, values: dict[str, str], event_type: int
    ) -> bool:
        return self._store.is_partition_marked_for_event(catalog, database, table, values, event_type)


def _needs_store(entry: Entry, grantee: Grantee | None, valid_write_ids: str | None) -> Bypass | None:
    """Privileges and the judgement of statistics are the store's; most tables and requests need neither."""
    parameters = frozen_table(entry).parameters or {}
    if grantee is not None and parameters.get("PARTITION_LEVEL_PRIVILEGE", "").upper() == "TRUE":
        return Bypass(Reason.UNSUPPORTED_FIELD)
    if entry.is_transactional and valid_write_ids is not None:
        return Bypass(Reason.UNSUPPORTED_FIELD)
    return None
