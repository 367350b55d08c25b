"""Which statistics a reader with a write-id list may use, decided from memory.

A list that the tag covers is sufficient: every write id valid in it is valid in the tag, hence committed, so none of
those it contains is aborted, and the transaction tables add nothing (`store.statistics_validity`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hms_cache.cache.entries import Entry, Facet
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.cache.partitions.selection import PreparedSelection, gaps_of, missing_of, narrowed, select_partitions
from hms_cache.cache.reads.prepared_selections import prepared_selection
from hms_cache.cache.reads.reading import Need, Reading, frozen_table
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.rows.statistics_validity import are_statistics_valid, parse_write_ids
from hms_cache.store.statistics.writes import normalized_partition_name
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics


def is_no_list(valid_write_ids: str | None) -> bool:
    """Whether the text stands for "no list", which the store replaces by one of its own. Raises MetaException if it is
    unreadable."""
    return valid_write_ids is not None and parse_write_ids(valid_write_ids).is_no_list


def checked_list(entry: Entry, valid_write_ids: str | None) -> str | None:
    """The write-id list by which statistics of the table's partitions are checked; None: they are not checked."""
    return valid_write_ids if entry.is_transactional else None


def checked_table_statistics(entry: Entry, found: ColumnStatistics, valid_write_ids: str | None) -> ColumnStatistics:
    """The columns' statistics as the store answers them to a reader with this list."""
    if valid_write_ids is None:
        return found
    table = frozen_table(entry)
    checked = copy.copy(found)
    checked.isStatsCompliant = not entry.is_transactional or are_statistics_valid(
        table.parameters or {}, table.writeId, valid_write_ids
    )
    return checked


def checked_partition_statistics(found: Sequence[ColumnStatistics], invalid: frozenset[str]) -> list[ColumnStatistics]:
    """The same for partitions; `invalid` names those whose statistics the reader must not use."""
    checked = [copy.copy(one) for one in found]
    for one in checked:
        one.isStatsCompliant = one.statsDesc.partName not in invalid
    return checked


def checked_aggregate(found: AggrStats, invalid: frozenset[str]) -> AggrStats:
    """The same for an aggregate: nothing, if the statistics of one of the partitions must not be used."""
    return AggrStats(colStats=[], partsFound=0, isStatsCompliant=False) if invalid else found


def named_partitions(reading: Reading, key: TableName, names: Sequence[str]) -> PreparedSelection:
    """The selection of these names. Runs without the cache's lock, since there may be hundreds of thousands."""
    return prepared_selection(reading, key, ByNames(tuple(map(normalized_partition_name, names))))


def requested_partitions(entry: Entry, key: TableName, prepared: PreparedSelection) -> SelectedPartitions | Need:
    """Those of the named partitions that exist.

    Decided on complete segments only, since others cannot say which names exist (P6).
    """
    cached = entry.facets.get(Facet.PARTITIONS)
    if cached is None:
        return Need((LoadRequest(key, Facet.PARTITIONS),))
    touched = narrowed(cached, prepared)
    if not touched.complete:
        return Need((LoadRequest(key, Facet.PARTITIONS),), gaps_of(cached, prepared))
    touched.touch(entry.last_read)
    missing = missing_of(touched, prepared)
    if missing:
        return Need((LoadRequest(key, Facet.PARTITIONS, tuple(missing)),))
    return select_partitions(touched, prepared, -1).partitions


def invalid_among(selected: SelectedPartitions, valid_write_ids: str) -> frozenset[str]:
    """The names of partitions whose statistics a reader with this list must not use. Needs no lock: each one is
    decoded."""
    return frozenset(
        name
        for name, partition in zip(selected.names(), selected.structs(), strict=True)
        if not are_statistics_valid(partition.parameters or {}, partition.writeId, valid_write_ids)
    )
