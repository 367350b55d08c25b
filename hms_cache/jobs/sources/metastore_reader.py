"""Reads the catalog through a metastore's Thrift protocol: from this metastore, or from Hive's since 3.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient, Metastores
from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.metadata.column_types import column_names
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    GetPartitionsByNamesRequest,
    GetTablesRequest,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
    Table,
    TableStatsRequest,
    UnknownDBException,
)

TABLES_OF_A_CALL = 500
"""Number of tables per call: some MB of answer."""

PARTITIONS_OF_A_CALL = 2_000
"""Number of partitions per call: 3 MB of answer with short descriptors, far below Thrift's 100 MB with long ones."""

_EVERY_ONE = -1
CAPABILITIES = ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES])
"""Jobs can handle insert-only tables, which metastores refuse to clients without this capability."""


class MetastoreReader:
    """Implements `CatalogReader`. For one thread at a time."""

    def __init__(self, uris: str | Metastores, *, fills_cache: bool = True) -> None:
        """See `MetastoreClient` for `uris` and `fills_cache`. Raises ConfigurationError."""
        self._client = MetastoreClient(uris, fills_cache=fills_cache)

    def _answer(self, absent: Any, method: str, *arguments: Any) -> Any:
        """Returns the answer of the call, or `absent` if the object does not exist (any more)."""
        try:
            return self._client.call(method, *arguments)
        except NoSuchObjectException:
            return absent

    def catalog_names(self) -> list[str]:
        return sorted(self._client.call("get_catalogs").names)

    def database_names(self, catalog: str) -> list[str]:
        return sorted(self._answer([], "get_databases", in_catalog(catalog, "*")))

    def databases(self, catalog: str, names: Sequence[str]) -> list[Database]:
        found = []
        for name in names:
            try:
                found.append(self._client.call("get_database", in_catalog(catalog, name)))
            except NoSuchObjectException:
                continue  # dropped since it was listed
        return found

    def table_names(self, catalog: str, database: str) -> list[str]:
        return sorted(self._answer([], "get_all_tables", in_catalog(catalog, database)))

    def tables(self, catalog: str, database: str, names: Sequence[str]) -> list[Table]:
        found: list[Table] = []
        for some in batches(names, TABLES_OF_A_CALL):
            request = GetTablesRequest(
                dbName=database,
                tblNames=list(some),
                capabilities=CAPABILITIES,
                catName=catalog,
            )
            try:
                found.extend(self._client.call("get_table_objects_by_name_req", request).tables)
            except (NoSuchObjectException, UnknownDBException):
                return []  # the database was dropped
        return sorted(found, key=lambda table: table.tableName)

    def partition_ranges(self, catalog: str, database: str, tables: Sequence[str], size: int) -> list[PartitionRange]:
        """Executes one call per partitioned table. It asks for one name more than fits into a range; for a larger
        table, a second call reads all names."""
        ranges: list[PartitionRange] = []
        # The protocol's limit has 16 bits.
        few = min(size + 1, 0x7FFF)
        for table in self.tables(catalog, database, tables):
            if not table.partitionKeys:
                continue
            name = TableName(catalog, database, table.tableName)
            count = len(self._partition_names(name, few))
            if count == few:
                names = self._partition_names(name, _EVERY_ONE)
                for some in batches(names, size):
                    ranges.append(PartitionRange(name, names=tuple(some), count=len(some)))
            elif count:
                ranges.append(PartitionRange(name, count=count))
        return ranges

    def partitions(self, part: PartitionRange) -> Iterator[tuple[str, Partition]]:
        found = self.tables(part.table.catalog, part.table.database, [part.table.table])
        if not found or not found[0].partitionKeys:
            return
        naming = PartitionNaming([key.name for key in found[0].partitionKeys])
        for partition in self._structs(part):
            yield naming.name(partition.values), partition

    def _structs(self, part: PartitionRange) -> Iterator[Partition]:
        table = part.table
        names = self._partition_names(table, _EVERY_ONE) if part.names is None else part.names
        for some in batches(names, PARTITIONS_OF_A_CALL):
            request = GetPartitionsByNamesRequest(
                db_name=in_catalog(table.catalog, table.database),
                tbl_name=table.table,
                names=list(some),
            )
            try:
                yield from self._client.call("get_partitions_by_names_req", request).partitions
            except NoSuchObjectException:
                return  # the table was dropped

    def names_in(self, part: PartitionRange) -> list[str]:
        return self.partition_names(part.table) if part.names is None else list(part.names)

    def partition_names(self, table: TableName) -> list[str]:
        return self._partition_names(table, _EVERY_ONE)

    def _partition_names(self, table: TableName, most: int) -> list[str]:
        database = in_catalog(table.catalog, table.database)
        names: list[str] = self._answer([], "get_partition_names", database, table.table, most)
        return names

    def table_statistics(self, table: Table, engine: str) -> list[ColumnStatistics]:
        request = TableStatsRequest(
            dbName=table.dbName,
            tblName=table.tableName,
            colNames=column_names(table),
            catName=table.catName,
            engine=engine,
        )
        found = self._answer(None, "get_table_statistics_req", request)
        return [_statistics(table, None, found.tableStats, engine)] if found is not None and found.tableStats else []

    def partition_statistics(self, table: Table, names: Sequence[str], engine: str) -> list[ColumnStatistics]:
        answers: list[ColumnStatistics] = []
        for some in batches(names, PARTITIONS_OF_A_CALL):
            request = PartitionsStatsRequest(
                dbName=table.dbName,
                tblName=table.tableName,
                colNames=column_names(table),
                partNames=list(some),
                catName=table.catName,
                engine=engine,
            )
            found = self._answer(None, "get_partitions_statistics_req", request)
            if found is None:
                break
            by_name = found.partStats
            answers.extend(_statistics(table, name, by_name[name], engine) for name in sorted(by_name))
        return answers

    def close(self) -> None:
        self._client.close()


def in_catalog(catalog: str, database: str) -> str:
    """The name of a database for calls without a field for its catalog."""
    return database if catalog == DEFAULT_CATALOG else f"@{catalog}#{database}"


def _statistics(table: Table, partition: str | None, found: list[ColumnStatisticsObj], engine: str) -> ColumnStatistics:
    description = ColumnStatisticsDesc(
        isTblLevel=partition is None,
        dbName=table.dbName,
        tableName=table.tableName,
        partName=partition,
        catName=table.catName,
    )
    return ColumnStatistics(statsDesc=description, statsObj=found, engine=engine)
