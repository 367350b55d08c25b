"""Reads the catalog directly from the metastore database, through the store: without a server and without a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_cache.app.stores import build_database_stores
from hms_cache.batches import batches
from hms_cache.config import Settings
from hms_cache.config.sections import DatabaseSettings
from hms_cache.config.sections.catalog import CatalogSettings
from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.metadata.column_types import column_names
from hms_cache.metadata.object_names import DatabaseName, name_of_table
from hms_cache.metadata.partition_names import PartitionNaming
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.engine.database import Database as MetastoreDatabase
from hms_cache.store.events.notification_log import NotificationLog
from hms_cache.store.partitions.reads import partitions_of_rows
from hms_cache.store.partitions.spans import (
    partition_counts,
    partition_id_spans,
    read_partition_names_span,
    read_partition_span,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    Database,
    MetaException,
    NoSuchObjectException,
    Partition,
    Table,
)

TABLES_OF_A_READ = 500
"""Number of tables read in one transaction: some MB of rows."""

PARTITIONS_OF_A_READ = 5_000
"""Number of partitions read in one transaction: some 10 MB of rows and texts."""

#: A slice reads sequentially.
_ONE_CONNECTION = DatabaseSettings(pool_size=1)

#: Bit vectors are catalog data, whether or not a server returns them.
_WITH_SKETCHES = Settings(catalog=CatalogSettings(statistics_sketches=True))


def open_metastore_database(url: str) -> MetastoreDatabase:
    """Creates the database object for one reader without connecting. Raises ConfigurationError."""
    return MetastoreDatabase(url, _ONE_CONNECTION)


class DatabaseReader:
    """See `CatalogReader`. For one thread at a time."""

    def __init__(self, url: str) -> None:
        """Raises ConfigurationError.

        :param url: in SQLAlchemy's or JDBC's form.
        """
        self.database = open_metastore_database(url)
        """The database, for reads that the store does not offer."""

        self.store = build_database_stores(_WITH_SKETCHES, self.database).objects
        """The store, for reads that `CatalogReader` does not offer."""
        self._log = NotificationLog(self.database)

    def catalog_names(self) -> list[str]:
        return self.store.reads.catalogs.get_catalog_names()

    def database_names(self, catalog: str) -> list[str]:
        try:
            return self.store.reads.databases.get_database_names(catalog)
        except (NoSuchObjectException, MetaException):
            return []

    def databases(self, catalog: str, names: Sequence[str]) -> list[Database]:
        found = []
        for name in names:
            try:
                found.append(self.store.reads.databases.get_database(DatabaseName(catalog, name)))
            except NoSuchObjectException:
                continue  # dropped since it was listed
        return found

    def table_names(self, catalog: str, database: str) -> list[str]:
        try:
            return self.store.reads.tables.get_table_names(DatabaseName(catalog, database))
        except NoSuchObjectException:
            return []

    def tables(self, catalog: str, database: str, names: Sequence[str]) -> list[Table]:
        found: list[Table] = []
        for some in batches(names, TABLES_OF_A_READ):
            found.extend(self.store.reads.tables.get_tables(DatabaseName(catalog, database), some))
        return found

    def partition_ranges(self, catalog: str, database: str, tables: Sequence[str], size: int) -> list[PartitionRange]:
        """Executes one statement for all tables, and two more for each large table."""
        counts = partition_counts(self.database, catalog, database)
        ranges: list[PartitionRange] = []
        for table in tables:
            count = counts.get(table, 0)
            name = TableName(catalog, database, table)
            if count > size:
                ranges.extend(PartitionRange(name, ids=span, count=size) for span in self._spans(name, size))
            elif count:
                ranges.append(PartitionRange(name, count=count))
        return ranges

    def _spans(self, name: TableName, size: int) -> list[tuple[int, int]]:
        try:
            return partition_id_spans(self.database, name, size)
        except NoSuchObjectException:
            return []

    def partitions(self, part: PartitionRange) -> Iterator[tuple[str, Partition]]:
        name = part.table
        if part.names is not None:
            yield from self._named(name, part.names)
            return
        spans = [part.ids] if part.ids is not None else self._spans(name, PARTITIONS_OF_A_READ)
        for lowest_id, highest_id in spans:
            try:
                rows = read_partition_span(self.database, name, lowest_id, highest_id)
            except NoSuchObjectException:
                return  # the table was dropped
            yield from zip(rows.names, partitions_of_rows(rows), strict=True)

    def _named(self, table: TableName, names: Sequence[str]) -> Iterator[tuple[str, Partition]]:
        """Reads partitions by name. Their names are computed again from keys and values, because the result has no
        names."""
        for some in batches(names, PARTITIONS_OF_A_READ):
            try:
                found = self.store.reads.partitions.get_partitions(PartitionQuery(table, ByNames(tuple(some))))
                keys = self.store.reads.tables.get_table(table).partitionKeys
            except NoSuchObjectException:
                return  # the table was dropped
            naming = PartitionNaming([key.name for key in keys or ()])
            for partition in found.partitions:
                yield naming.name(partition.values), partition

    def names_in(self, part: PartitionRange) -> list[str]:
        if part.names is not None:
            return list(part.names)
        if part.ids is None:
            return self.partition_names(part.table)
        try:
            return read_partition_names_span(self.database, part.table, *part.ids)
        except NoSuchObjectException:
            return []

    def partition_names(self, table: TableName) -> list[str]:
        try:
            return self.store.reads.partitions.get_partition_names(
                PartitionQuery(TableName(table.catalog, table.database, table.table))
            )
        except NoSuchObjectException:
            return []

    def table_statistics(self, table: Table, engine: str) -> list[ColumnStatistics]:
        try:
            found = self.store.reads.statistics.get_table_column_statistics(
                StatisticsQuery(name_of_table(table), column_names(table), engine)
            )
        except NoSuchObjectException:
            return []
        return [found] if found.statsObj else []

    def partition_statistics(self, table: Table, names: Sequence[str], engine: str) -> list[ColumnStatistics]:
        columns, answers = column_names(table), []
        for some in batches(names, PARTITIONS_OF_A_READ):
            try:
                answers += self.store.reads.statistics.get_partition_column_statistics(
                    StatisticsQuery(name_of_table(table), columns, engine), some
                )
            except NoSuchObjectException:
                break  # the table was dropped
        return answers

    def last_event_id(self) -> int:
        """The id of the newest event in the notification log, 0 if there is none. Later reads are at least as new."""
        return self._log.head().last_event_id

    def close(self) -> None:
        self.database.close()
