"""What is held of one table, what the database has of the same, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from hms_cache.cache.entries import Facet, has_commit_parameters
from hms_cache.cache.partitions.partition_set import PartitionSet
from hms_cache.cache.partitions.selected_partitions import SelectedPartitions
from hms_cache.cache.policy import properties_allow
from hms_cache.cache.statistics_by_column import add_columns
from hms_cache.cache.warming.snapshot_reads import MATERIALIZED_VIEW
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.snapshots import StatisticsOfColumn, StoreReads
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AggrStats,
    MetaException,
    NoSuchObjectException,
    Partition,
    SQLAllTableConstraints,
    Table,
)
from hms_cache.txn.valid_write_ids import ValidWriteIdList
from hms_cache.values import frozen
from hms_cache.wire import encode_struct

_STATISTICS = (Facet.TABLE_STATISTICS, Facet.PARTITION_STATISTICS)

Statistics = Mapping[Facet, Mapping[tuple[Any, ...], Any]]
"""By facet and question: statistics by column, or an aggregate, as in the entry."""


@frozen
class EntryCopy:
    """A copy of an entry."""

    facets: Mapping[Facet, Any]
    tag: ValidWriteIdList | None
    is_transactional: bool
    has_commit_parameters: bool
    partitions: SelectedPartitions | None
    whole: bool
    """The partitions are all that there are."""

    def statistics(self) -> Statistics:
        """What is held of statistics."""
        return {facet: self.facets.get(facet) or {} for facet in _STATISTICS}

    def count_of_statistics(self) -> int:
        """Columns and aggregates."""
        return sum(
            len(answer) if isinstance(answer, dict) else 1
            for answers in self.statistics().values()
            for answer in answers.values()
        )


@frozen
class Stored:
    """A table as the database has it; what is not held is not read."""

    table: Table | None
    is_allowed: bool = True
    """Whether its properties, its database's and its kind let it be cached."""
    partitions: Sequence[Partition] = ()
    constraints: SQLAllTableConstraints | None = None
    tag: ValidWriteIdList | None = None
    statistics: Statistics = field(default_factory=dict)


def read_table(store: StoreReads, key: TableName, cached: EntryCopy) -> Stored:
    """Within a snapshot. Raises DatabaseUnavailable."""
    try:
        table = store.tables.get_table(TableName(*key))
        database = store.databases.get_database(DatabaseName(key.catalog, key.database))
        constraints = (
            store.constraints.get_table_constraints(TableName(*key)) if Facet.CONSTRAINTS in cached.facets else None
        )
    except NoSuchObjectException:
        return Stored(None)
    partitions: Sequence[Partition] = ()
    if table.partitionKeys and Facet.PARTITIONS in cached.facets:
        partitions = store.partitions.get_partitions(PartitionQuery(TableName(*key))).partitions
    text = store.get_write_id_tag(TableName(*key)) if is_transactional(table) else None
    return Stored(
        table,
        properties_allow(table.parameters, database.parameters) and table.tableType != MATERIALIZED_VIEW,
        partitions,
        constraints,
        ValidWriteIdList.parse(text) if text is not None else None,
        {
            facet: {
                statistics_key: _read_statistics(store, key, facet, statistics_key, answer)
                for statistics_key, answer in answers.items()
            }
            for facet, answers in cached.statistics().items()
        },
    )


def _read_statistics(
    store: StoreReads, key: TableName, facet: Facet, statistics_key: tuple[Any, ...], cached: Any
) -> Any:
    """The store's answer to a question whose answer is held, in the same shape; None when it refuses the question."""
    engine, names, *rest = statistics_key
    try:
        if not isinstance(cached, dict):
            return store.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*key), rest[0], engine), names)
        columns = tuple(cached)
        requested = names if facet is Facet.PARTITION_STATISTICS else None
        stored: dict[str, tuple[StatisticsOfColumn, ...]] = {}
        add_columns(stored, columns, store.read_column_statistics(TableName(*key), requested, columns, engine=engine))
        return stored
    except (NoSuchObjectException, MetaException):
        return None


def table_differences(key: TableName, cached: EntryCopy, stored: Stored) -> Iterator[str]:
    """A text for each."""
    label = ".".join(key)
    if stored.table is None:
        parts = ", ".join(sorted(facet.value for facet in cached.facets))
        yield f"{label}: the database has no such table, and {parts} are cached"
        return
    yield from _own_differences(label, cached, stored, stored.table)
    constraints = cached.facets.get(Facet.CONSTRAINTS)
    if constraints is not None and constraints != stored.constraints:
        yield f"{label}: constraints differ: cached {constraints}, database {stored.constraints}"
    for facet, answers in cached.statistics().items():
        for statistics_key, answer in answers.items():
            if statistics_key in stored.statistics[facet]:  # or asked for since
                yield from _statistics_differences(
                    label, statistics_key, answer, stored.statistics[facet][statistics_key]
                )
    partitions = cached.facets.get(Facet.PARTITIONS)
    if isinstance(partitions, PartitionSet) and cached.partitions is not None:
        structs = dict(zip(cached.partitions.names(), cached.partitions.structs(), strict=True))
        named = {partitions.name_of(partition.values): partition for partition in stored.partitions}
        yield from _partition_differences(label, structs, named, cached.whole)


def _own_differences(label: str, cached: EntryCopy, stored: Stored, table: Table) -> Iterator[str]:
    """The table, what decides how it is read, and its tag."""
    if Facet.EXCLUDED in cached.facets and stored.is_allowed:
        yield f"{label}: it is excluded from the cache, and neither it nor its database has a property that says so"
    own = cached.facets.get(Facet.TABLE)
    if own is None:
        return
    if encode_struct(own) != encode_struct(table):
        yield f"{label}: the table differs: cached {own}, database {table}"
    if not stored.is_allowed:
        yield f"{label}: it is cached although a property of it or its database, or its kind, excludes it"
    if cached.is_transactional != is_transactional(table):
        yield f"{label}: it is read as transactional: {cached.is_transactional}, database {is_transactional(table)}"
    if cached.has_commit_parameters != has_commit_parameters(table):
        yield f"{label}: a commit may change it: cached {cached.has_commit_parameters}, database the opposite"
    # Fewer valid ids than there are only cost a question to the database; more would be a lie (P2).
    if cached.tag is not None and (stored.tag is None or not stored.tag.covers(cached.tag)):
        yield f"{label}: the write-id tag says too much: cached {cached.tag}, database {stored.tag}"


def _statistics_differences(label: str, statistics_key: tuple[Any, ...], cached: Any, stored: Any) -> Iterator[str]:
    engine, names, *rest = statistics_key
    of = f"{len(names)} partitions" if names else "the table"
    if not isinstance(cached, dict):
        if stored is None or _encoded(cached) != _encoded(stored):
            columns = ", ".join(rest[0])
            what = f"{engine} statistics of {columns} merged over {of}"
            yield f"{label}: {what} differ: cached {cached}, database {stored}"
        return
    for column, found in cached.items():
        if stored is not None and column not in stored:
            continue  # asked for since
        if stored is None or _encoded(found) != _encoded(stored[column]):
            there = stored[column] if stored is not None else None
            yield f"{label}: {engine} statistics of {column} of {of} differ: cached {found}, database {there}"


def _encoded(statistics: AggrStats | Iterable[StatisticsOfColumn]) -> object:
    """For comparing: by bytes, since a NaN is no difference, and in an order of their own."""
    if isinstance(statistics, AggrStats):
        return statistics.partsFound, sorted(encode_struct(one) for one in statistics.colStats)
    return sorted((one.partition, encode_struct(one.statistics), one.last_analyzed_s) for one in statistics)


def _partition_differences(
    label: str, cached: dict[str, Partition], stored: dict[str, Partition], whole: bool
) -> Iterator[str]:
    for name, partition in cached.items():
        if name not in stored:
            yield f"{label}: partition {name} is cached and is not in the database"
        elif encode_struct(partition) != encode_struct(stored[name]):
            yield f"{label}: partition {name} differs: cached {partition}, database {stored[name]}"
    if whole:
        for name in stored.keys() - cached.keys():
            yield f"{label}: partition {name} is in the database and not in the set that is cached as complete"
