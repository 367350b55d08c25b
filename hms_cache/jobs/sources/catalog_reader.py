"""The interface of the two readers of the catalog: both return the same structs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from hms_cache.jobs.sources.options import SliceSize
from hms_cache.jobs.sources.scope import TableScope
from hms_cache.metadata.object_names import TableName as TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, Database, Partition, Table
from hms_cache.values import frozen


@frozen
class PartitionRange:
    """Some partitions of a table: all of them, those with these names, or those with ids in this range.

    Each reader chooses the form of the ranges that it plans. Only the kind of reader that planned a range of ids can
    read it.
    """

    table: TableName
    names: tuple[str, ...] | None = None
    ids: tuple[int, int] | None = None
    count: int = 0
    """Number of partitions when it was planned; it may be slightly too high."""

    @property
    def is_whole(self) -> bool:
        """Whether it contains all partitions of the table."""
        return self.names is None and self.ids is None


def packed(ranges: Iterable[PartitionRange], size: SliceSize) -> Iterator[tuple[PartitionRange, ...]]:
    """Combines the ranges to slices: each part of a large table is a slice of its own, and consecutive whole tables
    share a slice up to this size. A group of medium-sized tables therefore gives as many tasks as one large table."""
    held: list[PartitionRange] = []
    count = 0
    for part in ranges:
        if not part.is_whole:
            yield (part,)
            continue
        if held and (count + part.count > size.partitions or len(held) >= size.tables):
            yield tuple(held)
            held, count = [], 0
        held.append(part)
        count += part.count
    if held:
        yield tuple(held)


class CatalogReader(Protocol):
    """Reads the catalog. Each call reads at a different moment; objects dropped meanwhile are left out.

    Raises MetastoreUnavailableError or DatabaseUnavailable if the metastore or the database does not answer.
    """

    def catalog_names(self) -> list[str]:
        """Names of all catalogs, sorted."""
        ...

    def database_names(self, catalog: str) -> list[str]:
        """Names of all databases of a catalog, sorted; none if the catalog does not exist."""
        ...

    def databases(self, catalog: str, names: Sequence[str]) -> list[Database]:
        """Returns those of the named databases that exist."""
        ...

    def table_names(self, catalog: str, database: str) -> list[str]:
        """Names of all tables and views of a database, sorted."""
        ...

    def tables(self, catalog: str, database: str, names: Sequence[str]) -> list[Table]:
        """Returns those of the named tables that exist, sorted by name."""
        ...

    def partition_ranges(self, catalog: str, database: str, tables: Sequence[str], size: int) -> list[PartitionRange]:
        """Ranges of at most `size` partitions of these tables. Small tables are whole ranges; tables without partitions
        are left out."""
        ...

    def partitions(self, part: PartitionRange) -> Iterator[tuple[str, Partition]]:
        """Yields names and structs of the partitions in a range."""
        ...

    def names_in(self, part: PartitionRange) -> list[str]:
        """Returns only the names of the partitions in a range."""
        ...

    def partition_names(self, table: TableName) -> list[str]:
        """Names of all partitions of a table, in order; none if the table does not exist."""
        ...

    def table_statistics(self, table: Table, engine: str) -> list[ColumnStatistics]:
        """Column statistics of the whole table: one element, or none."""
        ...

    def partition_statistics(self, table: Table, names: Sequence[str], engine: str) -> list[ColumnStatistics]:
        """Column statistics of those named partitions that have some, in the order of their names."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


def tables_within(reader: CatalogReader, scope: TableScope) -> Iterator[Table]:
    """Yields the tables and views in a scope, from all catalogs."""
    for catalog in reader.catalog_names():
        if not scope.admits(catalog):
            continue
        for database in reader.database_names(catalog):
            if scope.admits(catalog, database):
                names = reader.table_names(catalog, database)
                admitted = [name for name in names if scope.admits(catalog, database, name)]
                yield from reader.tables(catalog, database, admitted)
