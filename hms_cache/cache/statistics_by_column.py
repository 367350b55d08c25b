"""Column statistics held by column, so that questions for (a), then (b), then (a, b) need two loads and not three.

What is held of a table, or of one list of partitions asked for together, is a map from column to the statistics that
were found. A column without any is "asked and absent"; one that is not in the map was never asked for (P6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_cache.cache.weights import weight_of
from hms_cache.store.partitions.selection import PartitionedTable
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.store.statistics.reads import statistics_of_partitions
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, ColumnStatisticsDesc, Table

MOST_COLUMNS = 10_000
"""Columns held of one table or list of partitions, absent ones included: more than any table has (P11)."""

DEFAULT_ENGINE = "hive"

ColumnsHeld = dict[str, tuple[StatisticsOfColumn, ...]]
"""By column, in lower case."""

_POSITION_BYTES = 150
"""What a tuple of a name, a struct and a number costs beside the struct."""


def missing_columns(held: ColumnsHeld | None, columns: Iterable[str]) -> tuple[str, ...] | None:
    """The columns that were never asked for; None when nothing has to be loaded, not even that there is nothing."""
    wanted = dict.fromkeys(column.lower() for column in columns)
    if held is None:
        return tuple(wanted)
    return tuple(column for column in wanted if column not in held) or None


def add_columns(held: ColumnsHeld, asked: Sequence[str], found: Iterable[StatisticsOfColumn]) -> None:
    """Takes in what a load found for the columns it asked for."""
    if len(held) + len(asked) > MOST_COLUMNS:
        held.clear()
    by_column: dict[str, list[StatisticsOfColumn]] = {column: [] for column in asked}
    for one in found:
        by_column.setdefault(one.statistics.colName.lower(), []).append(one)
    held.update((column, tuple(some)) for column, some in by_column.items())


def weight_of_columns(held: ColumnsHeld) -> int:
    """Bytes charged."""
    return sum(
        weight_of(column) + sum(_POSITION_BYTES + weight_of(one.statistics) for one in some)
        for column, some in held.items()
    )


def statistics_of_table(held: ColumnsHeld, table: Table, columns: Iterable[str], engine: str) -> ColumnStatistics:
    """As the store answers: columns by name; made when the youngest of them was."""
    found = _chosen(held, columns)
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
    held: ColumnsHeld, table: Table, columns: Iterable[str], engine: str
) -> list[ColumnStatistics]:
    """As the store answers: a struct for each partition that has any, by name."""
    named = PartitionedTable(
        table_id=table.id,
        catalog=table.catName,
        database=table.dbName,
        name=table.tableName,
        table_type=table.tableType,
        sd_id=None,
        keys=tuple((key.name, key.type) for key in table.partitionKeys or ()),
    )
    found = ((one.partition, one.statistics, one.last_analyzed_s) for one in _chosen(held, columns))
    return statistics_of_partitions(found, named, engine or DEFAULT_ENGINE)


def _chosen(held: ColumnsHeld, columns: Iterable[str]) -> list[StatisticsOfColumn]:
    return [one for column in dict.fromkeys(column.lower() for column in columns) for one in held[column]]
