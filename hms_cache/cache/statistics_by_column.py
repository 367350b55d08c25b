"""Column statistics held by column, so that requests for (a), then (b), then (a, b) need two loads and not three.

For a table, or for one list of partitions requested together, a map from column to statistics is held. A column without
statistics has an empty value; a column that is not in the map was never asked for (P6). A change of some partitions, or
of some columns, drops the answers to requests that include them, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from hms_cache.cache.partitions.segment import Values
from hms_cache.cache.weights import weight_of
from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import values_as_named, values_of_name
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.store.statistics.reads import statistics_of_partitions
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    MetaException,
    Table,
)

MAX_COLUMNS = 10_000
"""Columns held of one table or list of partitions, including those without statistics: more than any table has
(P11)."""

DEFAULT_ENGINE = "hive"

CachedColumns = dict[str, tuple[StatisticsOfColumn, ...]]
"""By column, in lower case."""

MAX_STATISTICS_ANSWERS = 64
"""Number of different keys of statistics of one table. Planners send the same few; beyond this number, holding
begins again (P11)."""

_VALUES_BYTES = 150
"""Bytes for the values of one partition in addition to their texts."""

StatisticsKey = tuple[Any, ...]
"""(engine, partition names), or (engine, partition names, columns, a mark) for statistics merged over partitions."""

_POSITION_BYTES = 150
"""Bytes for a tuple of a name, a struct and a number in addition to the struct."""


def partitions_of(names: Iterable[str]) -> frozenset[Values] | None:
    """The values of partitions by their names in a key, however they are escaped there; None: they cannot be
    determined."""
    try:
        return frozenset(values_as_named(values_of_name(name)) for name in names)
    except MetaException:
        return None


class LoadedColumns(NamedTuple):
    """What a load found for the columns that it asked for, with weights: weighing hundreds of thousands of structs
    takes longer than the cache may be locked."""

    columns: CachedColumns
    weights: dict[str, int]
    """Bytes charged for each column."""

    @classmethod
    def of(cls, requested: Sequence[str], found: Iterable[StatisticsOfColumn]) -> LoadedColumns:
        """By column, including those without statistics. Raises UnencodableReply: what cannot be weighed is not
        held."""
        columns: CachedColumns = {}
        add_columns(columns, requested, found)
        return cls(columns, {column: _weight_of_column(column, some) for column, some in columns.items()})


def weight_of_key(key: StatisticsKey, partitions: Iterable[Values] | None) -> int:
    """Bytes charged for the key, whatever the answer is."""
    return weight_of(key) + sum(_VALUES_BYTES + sum(map(len, values)) for values in partitions or ())


class StatisticsParts(NamedTuple):
    """The cached statistics of a table or of its partitions at one time."""

    answers: tuple[tuple[StatisticsKey, Any, frozenset[Values] | None], ...]
    """Each key, with its answer and the partitions that it names."""


class CachedStatistics(dict[StatisticsKey, Any]):
    """The cached statistics of a table or of its partitions: by key, `CachedColumns` or an aggregate.

    Guarded by the lock of its cache.
    """

    __slots__ = ("_columns", "_key_weights", "_partitions", "_weights", "weight")

    def __init__(self) -> None:
        super().__init__()
        self._partitions: dict[StatisticsKey, frozenset[Values] | None] = {}
        self._key_weights: dict[StatisticsKey, int] = {}
        """Bytes charged for each key itself."""
        self._columns: dict[StatisticsKey, dict[str, int]] = {}
        """The weight of each column in an answer, so that a change of one requires weighing that one only."""
        self._weights: dict[StatisticsKey, int] = {}
        self.weight = 0
        """Bytes charged."""

    def add_aggregate(
        self, key: StatisticsKey, value: Any, weight: int, key_weight: int, partitions: frozenset[Values] | None
    ) -> None:
        """Adds an answer that is held as a whole."""
        self._make_room(key)
        self[key] = value
        self._partitions[key], self._key_weights[key] = partitions, key_weight
        self._charge(key, weight)

    def add(
        self, key: StatisticsKey, loaded: LoadedColumns, key_weight: int, partitions: frozenset[Values] | None
    ) -> None:
        """Adds what a load found for the columns that it asked for."""
        self._make_room(key)
        cached: CachedColumns = dict(self.get(key, {}))
        weights = self._columns.setdefault(key, {})
        if len(cached) + len(loaded.columns) > MAX_COLUMNS:
            cached.clear()
            weights.clear()
        cached.update(loaded.columns)
        weights.update(loaded.weights)
        self[key] = cached
        self._partitions[key], self._key_weights[key] = partitions, key_weight
        self._charge(key, sum(weights.values()))

    def parts(self) -> StatisticsParts:
        """The present contents: copies what may change. Under the cache's lock."""
        return StatisticsParts(
            tuple(
                (key, dict(cached) if isinstance(cached, dict) else cached, self._partitions[key])
                for key, cached in self.items()
            )
        )

    @classmethod
    def from_parts(cls, parts: StatisticsParts) -> CachedStatistics:
        """The object that `parts` was called on."""
        made = cls()
        for key, cached, partitions in parts.answers:
            key_weight = weight_of_key(key, partitions)
            if isinstance(cached, dict):
                loaded = LoadedColumns(
                    cached, {column: _weight_of_column(column, some) for column, some in cached.items()}
                )
                made.add(key, loaded, key_weight, partitions)
            else:
                made.add_aggregate(key, cached, weight_of(cached), key_weight, partitions)
        return made

    def drop_changed(self, partitions: Collection[Values] | None, columns: frozenset[str] | None) -> bool:
        """Drops what a change of these partitions and columns may have changed. Returns whether there was any. None:
        all columns, or all partitions (and the table)."""
        if partitions is not None:
            partitions = frozenset(map(values_as_named, partitions))
        changed = False
        for key in [one for one in self if self._is_about(one, partitions)]:
            changed = self._drop_columns(key, columns) or changed
        return changed

    def _is_about(self, key: StatisticsKey, partitions: Collection[Values] | None) -> bool:
        of_key = self._partitions[key]
        return partitions is None or of_key is None or not of_key.isdisjoint(partitions)

    def _drop_columns(self, key: StatisticsKey, columns: frozenset[str] | None) -> bool:
        cached = self[key]
        if columns is None:
            self._remove(key)
            return True
        if not isinstance(cached, dict):
            if columns.isdisjoint(map(normalize_identifier, key[2])):
                return False
            self._remove(key)
            return True
        # Statistics are stored by the exact name of the column, which may begin or end with blanks; in events these are
        # missing.
        gone = [column for column in cached if normalize_identifier(column) in columns]
        weights = self._columns[key]
        for column in gone:
            del cached[column], weights[column]
        if not cached:
            self._remove(key)
            return True
        if gone:
            self._charge(key, sum(weights.values()))
        return bool(gone)

    def has_room_for(self, key: StatisticsKey, more: int, max_bytes: int) -> bool:
        """Whether this number of bytes can be added for a key, after others are dropped, the oldest first, and
        finally what is held of the key itself."""
        if more > max_bytes:
            return False
        for one in [*self]:
            if self.weight + more <= max_bytes:
                return True
            if one != key:
                self._remove(one)
        if self.weight + more > max_bytes:
            self._remove(key)
        return True

    def _make_room(self, key: StatisticsKey) -> None:
        if key not in self and len(self) >= MAX_STATISTICS_ANSWERS:
            for one in list(self):
                self._remove(one)

    def _charge(self, key: StatisticsKey, weight: int) -> None:
        weight += self._key_weights[key]
        self.weight += weight - self._weights.get(key, 0)
        self._weights[key] = weight

    def _remove(self, key: StatisticsKey) -> None:
        del self[key]
        self._partitions.pop(key)
        self._key_weights.pop(key)
        self._columns.pop(key, None)
        self.weight -= self._weights.pop(key)


def missing_columns(cached: CachedColumns | None, columns: Iterable[str]) -> tuple[str, ...] | None:
    """The columns that were never asked for; None if nothing has to be loaded, not even to find that there are none."""
    requested = dict.fromkeys(column.lower() for column in columns)
    if cached is None:
        return tuple(requested)
    return tuple(column for column in requested if column not in cached) or None


def add_columns(cached: CachedColumns, requested: Sequence[str], found: Iterable[StatisticsOfColumn]) -> None:
    """Adds what a load found for the columns that it asked for."""
    if len(cached) + len(requested) > MAX_COLUMNS:
        cached.clear()
    by_column: dict[str, list[StatisticsOfColumn]] = {column: [] for column in requested}
    for one in found:
        by_column.setdefault(one.statistics.colName.lower(), []).append(one)
    cached.update((column, tuple(some)) for column, some in by_column.items())


def _weight_of_column(column: str, found: Iterable[StatisticsOfColumn]) -> int:
    return weight_of(column) + sum(_POSITION_BYTES + weight_of(one.statistics) for one in found)


def statistics_of_table(cached: CachedColumns, table: Table, columns: Iterable[str], engine: str) -> ColumnStatistics:
    """As the store answers: columns by name, with the time of the youngest."""
    found = [one for some in chosen_columns(cached, columns) for one in some]
    found.sort(key=lambda one: one.statistics.colName)
    description = ColumnStatisticsDesc(
        isTblLevel=True,
        dbName=table.dbName,
        tableName=table.tableName,
        lastAnalyzed=max((one.last_analyzed_s for one in found), default=0),
        catName=table.catName,
    )
    return ColumnStatistics(
        statsDesc=description, statsObj=[one.statistics for one in found], engine=engine or DEFAULT_ENGINE
    )


def statistics_of_table_partitions(
    chosen: Sequence[tuple[StatisticsOfColumn, ...]], table: Table, engine: str
) -> list[ColumnStatistics]:
    """As the store answers: a struct for each partition that has statistics, by name.

    `chosen`: see `chosen_columns`. Runs without the cache's lock, since there may be hundreds of thousands.
    """
    found = ((one.partition, one.statistics, one.last_analyzed_s) for some in chosen for one in some)
    named = TableName(table.catName, table.dbName, table.tableName)
    return statistics_of_partitions(found, named, engine or DEFAULT_ENGINE)


def chosen_columns(cached: CachedColumns, columns: Iterable[str]) -> list[tuple[StatisticsOfColumn, ...]]:
    """The held data of these columns, without duplicates. It does not change."""
    return [cached[column] for column in dict.fromkeys(column.lower() for column in columns)]
