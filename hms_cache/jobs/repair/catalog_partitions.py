"""The partitions of a table in the catalog: all names, and locations of selected ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.jobs.sources.database_reader import DatabaseReader
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.metadata.object_names import table_name
from hms_cache.store.partitions.spans import partitions_elsewhere
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Table


class PartitionLocation(NamedTuple):
    """Location of a partition, and its creation time in the catalog (epoch seconds, 0 if unknown)."""

    name: str
    location: str
    created_s: int


class CatalogPartitions(Protocol):
    """Reads a table's partitions. Partitions dropped meanwhile are omitted. Not thread-safe."""

    def names(self, table: Table) -> list[str]:
        """All names, in any order."""
        ...

    def locations(self, table: Table, names: Collection[str]) -> Iterator[PartitionLocation]:
        """The places of the partitions with these names."""
        ...

    def notable(self, table: Table, created_before_s: int = 0) -> Iterator[PartitionLocation]:
        """At least all partitions whose location differs from the one their name implies, and all created before this
        time."""
        ...


class PartitionsOfMetastore:
    """Reads from a metastore: `notable` reads every partition of the table."""

    def __init__(self, reader: MetastoreReader) -> None:
        self._reader = reader

    def names(self, table: Table) -> list[str]:
        return self._reader.partition_names(_name(table))

    def locations(self, table: Table, names: Collection[str]) -> Iterator[PartitionLocation]:
        return self._read(PartitionRange(_name(table), names=tuple(names)))

    def notable(self, table: Table, created_before_s: int = 0) -> Iterator[PartitionLocation]:
        return self._read(PartitionRange(_name(table)))

    def _read(self, part: PartitionRange) -> Iterator[PartitionLocation]:
        for name, partition in self._reader.partitions(part):
            location = partition.sd.location if partition.sd is not None else None
            yield PartitionLocation(name, location or "", partition.createTime or 0)


class PartitionsOfDatabase(PartitionsOfMetastore):
    """Reads names, and partitions with unusual locations, with one statement each from the metastore database."""

    def __init__(self, reader: MetastoreReader, database: DatabaseReader) -> None:
        super().__init__(reader)
        self._database = database

    def names(self, table: Table) -> list[str]:
        return self._database.partition_names(_name(table))

    def notable(self, table: Table, created_before_s: int = 0) -> Iterator[PartitionLocation]:
        name = _name(table)
        try:
            rows = partitions_elsewhere(self._database.database, name, table.sd.location, created_before_s)
        except NoSuchObjectException:
            return  # the table was dropped
        for partition, location, created_s in rows:
            yield PartitionLocation(partition, location or "", created_s)


def _name(table: Table) -> TableName:
    return table_name(table.catName, table.dbName, table.tableName)
