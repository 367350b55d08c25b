"""What the catalog is read through, wherever it is: the two readers answer the same structs."""

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

    Which form a reader plans is its own; ids are read only by the kind of reader that planned them.
    """

    table: TableName
    names: tuple[str, ...] | None = None
    ids: tuple[int, int] | None = None
    count: int = 0
    """Partitions it had when it was planned, or a few more."""

    @property
    def is_whole(self) -> bool:
        """Whether it stands for all of the table's."""
        return self.names is None and self.ids is None


def packed(ranges: Iterable[PartitionRange], size: SliceSize) -> Iterator[tuple[PartitionRange, ...]]:
    """The ranges in slices: parts of large tables each on their own, whole tables together, one after the other, up to
    this size. So a few tables of middling size make as many tasks as one large one does."""
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
    """Reads of the catalog. What was dropped meanwhile is left out; each call shows the moment of its own.

    Raises MetastoreUnavailableError or DatabaseUnavailable when what is behind it does not answer.
    """

    def catalog_names(self) -> list[str]:
        """All catalogs, by name."""
        ...

    def database_names(self, catalog: str) -> list[str]:
        """All databases of a catalog, by name; none for a catalog that does not exist."""
        ...

    def databases(self, catalog: str, names: Sequence[str]) -> list[Database]:
        """Those of the named databases that exist."""
        ...

    def table_names(self, catalog: str, database: str) -> list[str]:
        """All tables and views of a database, by name."""
        ...

    def tables(self, catalog: str, database: str, names: Sequence[str]) -> list[Table]:
        """Those of the named tables that exist, by name."""
        ...

    def partition_ranges(self, catalog: str, database: str, tables: Sequence[str], size: int) -> list[PartitionRange]:
        """The partitions of these tables, in ranges of at most `size`, small tables whole, tables without any left
        out."""
        ...

    def partitions(self, part: PartitionRange) -> Iterator[tuple[str, Partition]]:
        """Names and structs of the partitions in a range."""
        ...

    def names_in(self, part: PartitionRange) -> list[str]:
        """Names of the partitions in a range, and nothing else of them."""
        ...

    def partition_names(self, table: TableName) -> list[str]:
        """Names of all partitions of a table, in order; none for a table that does not exist."""
        ...

    def table_statistics(self, table: Table, engine: str) -> list[ColumnStatistics]:
        """Column statistics of the table itself: one element or none."""
        ...

    def partition_statistics(self, table: Table, names: Sequence[str], engine: str) -> list[ColumnStatistics]:
        """Column statistics of those named partitions that have any, by partition name."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def tables_within(reader: CatalogReader, scope: TableScope) -> Iterator[Table]:
    """The tables and views of a scope, of all catalogs."""
    for catalog in reader.catalog_names():
        if not scope.admits(catalog):
            continue
        for database in reader.database_names(catalog):
            if scope.admits(catalog, database):
                names = reader.table_names(catalog, database)
                admitted = [name for name in names if scope.admits(catalog, database, name)]
                yield from reader.tables(catalog, database, admitted)
