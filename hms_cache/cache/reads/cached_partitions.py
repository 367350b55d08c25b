"""Partitions through the cache: single ones, or the complete set of a table that answers every selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.partitions.selection import (
    PreparedSelection,
    Selected,
    SelectionError,
    gaps_of,
    missing_of,
    narrowed,
    select_partitions,
)
from hms_cache.cache.reads.cached_entity import CachedEntity
from hms_cache.cache.reads.cached_validity import checked_list, is_no_list
from hms_cache.cache.reads.prepared_selections import prepared_selection
from hms_cache.cache.reads.reading import Bypass, Need, frozen_table
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.cache.weights import weight_of
from hms_cache.expressions import PartitionKey
from hms_cache.expressions.partition_orders import parse_order, sort_by_values, sort_key
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import (
    AllPartitions,
    Grantee,
    KeyValues,
    PartitionAnswer,
    PartitionProjection,
    PartitionQuery,
    PartitionReads,
)
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.partition_store import check_statistics_of_partition
from hms_cache.store.partitions.projections import project_partitions
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Partition, PartitionValuesRow

T = TypeVar("T")


class CachedPartitions(CachedEntity[PartitionReads], PartitionReads):
    """`PartitionReads` from memory if possible, else from the store."""

    def get_partition(
        self, table: TableName, values: KeyValues, *, grantee: Grantee | None = None, version: ReadVersion = ANY_VERSION
    ) -> Partition:
        requested: Values = tuple(values)

        def from_memory(cache: SharedCache) -> Partition | Need | Bypass:
            entry = self._reading.table_entry(cache, table, version)
            if not isinstance(entry, Entry):
                return entry
            if len(requested) != len(frozen_table(entry).partitionKeys or ()):
                return Bypass(Reason.UNSUPPORTED_FIELD)
            refused = _needs_store(entry, grantee, version.valid_write_ids)
            if refused is not None:
                return refused
            reader = checked_list(entry, version.valid_write_ids)
            cached = entry.facets.get(Facet.PARTITIONS)
            if cached is not None:
                try:
                    name = cached.name_of(requested)
                except MetaException:
                    return Bypass(Reason.UNSUPPORTED_FIELD)
                segment = cached.segment_of(name)
                segment.last_read = entry.last_read
                found = segment.find_name(name)
                if found is not None:
                    if reader is not None:
                        check_statistics_of_partition(found, reader)
                    return found
                if segment.complete and requested not in segment.missing:
                    # There is none; the store raises the error that clients know.
                    return Bypass(Reason.INCOMPLETE)
            # An incomplete set cannot say what it has been searched for.
            return Need((LoadRequest(table, Facet.PARTITIONS, (requested,)),), once=True)

        def from_store() -> Partition:
            return self._store.get_partition(table, values, grantee=grantee, version=version)

        return self._reading.answer(
            "partition", from_memory, from_store, facet=Facet.PARTITIONS, table=table, version=version
        )

    def get_partitions(
        self, query: PartitionQuery, *, grantee: Grantee | None = None, projection: PartitionProjection | None = None
    ) -> PartitionAnswer:
        valid_write_ids = query.version.valid_write_ids

        def from_store() -> PartitionAnswer:
            return self._store.get_partitions(query, grantee=grantee, projection=projection)

        def answer(
            entry: Entry, cached: PartitionSet, prepared: PreparedSelection
        ) -> Callable[[], PartitionAnswer] | Bypass:
            refused = _needs_store(entry, grantee, valid_write_ids)
            if refused is not None:
                return refused
            reader = checked_list(entry, valid_write_ids)
            return partial(_partition_answer, select_partitions(cached, prepared, query.max_parts), projection, reader)

        selects_all = isinstance(query.selection, AllPartitions) and query.max_parts < 0
        return self._from_set("partitions", query, answer, from_store, selects_all=selects_all)

    def get_partition_names(self, query: PartitionQuery, *, order: str | None = None) -> list[str]:
        def from_store() -> list[str]:
            return self._store.get_partition_names(query, order=order)

        def answer(entry: Entry, cached: PartitionSet, prepared: PreparedSelection) -> Callable[[], list[str]] | Bypass:
            try:
                ordered_by = parse_order(order, len(cached.keys))
            except MetaException:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            selected = select_partitions(cached, prepared, -1 if ordered_by else query.max_parts)
            if selected.has_unknown:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            if not ordered_by:
                return selected.partitions.encoded_names
            return partial(_ordered_names, selected, cached.keys, ordered_by, query.max_parts)

        return self._from_set("partition_names", query, answer, from_store)

    def get_partition_count(self, query: PartitionQuery) -> int:
        def from_store() -> int:
            return self._store.get_partition_count(query)

        return self._from_set(
            "partition_count",
            query,
            lambda entry, cached, prepared: partial(len, select_partitions(cached, prepared, -1).partitions),
            from_store,
        )

    def get_partition_values(
        self, query: PartitionQuery, keys: Sequence[str], *, distinct: bool = True, ascending: bool = True
    ) -> list[PartitionValuesRow]:
        def from_store() -> list[PartitionValuesRow]:
            return self._store.get_partition_values(query, keys, distinct=distinct, ascending=ascending)

        def answer(
            entry: Entry, cached: PartitionSet, prepared: PreparedSelection
        ) -> Callable[[], list[PartitionValuesRow]] | Bypass:
            positions = _key_positions(cached.keys, keys)
            if positions is None:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            selected = select_partitions(cached, prepared, -1)
            return partial(_value_rows, selected, cached.keys, positions, distinct, ascending, query.max_parts)

        return self._from_set("partition_values", query, answer, from_store)

    def _from_set(
        self,
        kind: str,
        query: PartitionQuery,
        answer: Callable[[Entry, PartitionSet, PreparedSelection], Callable[[], T] | Bypass],
        from_store: Callable[[], T],
        *,
        selects_all: bool = False,
    ) -> T:
        """An answer from the segments that may contain partitions of the selection, all of them complete. A first
        question loads the whole table, unless it is large (P12).

        `answer` runs under the cache's lock and selects. What it returns makes the answer of the selection afterwards.
        """
        key, version = query.table, query.version
        prepared = prepared_selection(self._reading, key, query.selection)

        def from_memory(cache: SharedCache) -> Callable[[], T] | Need | Bypass:
            entry = self._reading.table_entry(cache, key, version)
            if not isinstance(entry, Entry):
                return entry
            if not frozen_table(entry).partitionKeys or self._reading.limits_partitions:
                return Bypass(Reason.UNSUPPORTED_FIELD)
            cached = entry.facets.get(Facet.PARTITIONS)
            try:
                if cached is None:
                    cached = PartitionSet.bare(_keys_of(entry))
                touched = narrowed(cached, prepared)
                if not touched.complete or touched.is_mostly_missing:
                    return Need((LoadRequest(key, Facet.PARTITIONS),), gaps_of(cached, prepared))
                touched.touch(entry.last_read)
                missing = missing_of(touched, prepared)
                if missing:
                    return Need((LoadRequest(key, Facet.PARTITIONS, tuple(missing)),))
                made = answer(entry, touched, prepared)
                if prepared.is_decided_by_keys and touched.has_unweighed_readings:
                    cache.recharge(entry, Facet.PARTITIONS, weight_of(cached))
                return made
            except SelectionError:
                # The store reports what is wrong with the selection.
                return Bypass(Reason.UNSUPPORTED_FIELD)

        return self._reading.answer_made(
            kind, from_memory, from_store, facet=Facet.PARTITIONS, table=key, version=version, selects_all=selects_all
        )

    def is_partition_marked_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> bool:
        # A client that learns of a marker must also read what was written before it (P3).
        return self._reading.pass_through(
            "partition_marker", lambda: self._store.is_partition_marked_for_event(table, values, event_type)
        )


def _keys_of(entry: Entry) -> tuple[PartitionKey, ...]:
    return tuple((key.name, key.type) for key in frozen_table(entry).partitionKeys or ())


def _needs_store(entry: Entry, grantee: Grantee | None, valid_write_ids: str | None) -> Bypass | None:
    """Privileges are read from the store, which also handles invalid write-id lists. Few requests need either."""
    parameters = frozen_table(entry).parameters or {}
    if grantee is not None and parameters.get("PARTITION_LEVEL_PRIVILEGE", "").upper() == "TRUE":
        return Bypass(Reason.UNSUPPORTED_FIELD)
    if is_no_list(valid_write_ids):
        return Bypass(Reason.UNSUPPORTED_FIELD)
    return None


def _partition_answer(
    selected: Selected, projection: PartitionProjection | None, reader: str | None
) -> PartitionAnswer:
    """`reader`: the write-id list by which the statistics are checked."""
    partitions = selected.partitions
    if reader is not None:
        checked = partitions.structs()
        for partition in checked:
            check_statistics_of_partition(partition, reader)
        found = checked if projection is None else project_partitions(checked, projection)
        return PartitionAnswer(found, selected.has_unknown)
    if projection is not None:
        return PartitionAnswer(project_partitions(partitions.structs(), projection), selected.has_unknown)
    return PartitionAnswer(partitions.encoded_structs(), selected.has_unknown)


def _ordered_names(
    selected: Selected, keys: Sequence[PartitionKey], ordered_by: Sequence[tuple[int, bool]], max_parts: int
) -> list[str]:
    """Names ordered by typed values. `max_parts` is applied after ordering."""
    partitions = selected.partitions
    names = sort_by_values(partitions.names(), partitions.values(), keys, ordered_by)
    return names[:max_parts] if max_parts >= 0 else names


def _value_rows(
    selected: Selected,
    keys: Sequence[PartitionKey],
    positions: Sequence[int],
    distinct: bool,
    ascending: bool,
    max_parts: int,
) -> list[PartitionValuesRow]:
    """The values at these positions, ordered as the store orders them. Here 0 means no limit, as in Hive."""
    if distinct:
        rows = selected.partitions.distinct_values(positions)
    else:
        rows = [tuple(row[position] for position in positions) for row in selected.partitions.values()]
    rows.sort(
        key=lambda row: [sort_key(keys[position], text) for position, text in zip(positions, row, strict=True)],
        reverse=not ascending,
    )
    return [PartitionValuesRow(row=list(row)) for row in (rows[:max_parts] if max_parts > 0 else rows)]


def _key_positions(keys: Sequence[PartitionKey], names: Sequence[str]) -> list[int] | None:
    """Positions of the named keys; None if one is not a key: the store reports it."""
    numbers = {name.lower(): position for position, (name, _) in reversed(list(enumerate(keys)))}
    positions = [numbers.get(name.lower()) for name in names]
    return None if None in positions else [position for position in positions if position is not None]
