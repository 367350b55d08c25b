"""Contract: column statistics of tables and partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import ANY_WRITER, Writer
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics
from hms_cache.values import frozen


@frozen
class StatisticsQuery:
    """Statistics of which columns of which table are asked for. `engine` is who wrote them."""

    table: TableName
    columns: Sequence[str]
    engine: str = "hive"
    version: ReadVersion = ANY_VERSION


class StatisticsReads(ABC):
    """Column statistics."""

    @abstractmethod
    def get_table_column_statistics(self, query: StatisticsQuery) -> ColumnStatistics:
        """Statistics of the asked columns that have any, by column name; none gives an empty `statsObj`.

        `isStatsCompliant` is set for a transactional table. Raises NoSuchObjectException.
        """

    @abstractmethod
    def get_partition_column_statistics(
        self, query: StatisticsQuery, partition_names: Sequence[str]
    ) -> list[ColumnStatistics]:
        """One element per partition that has statistics of an asked column, by partition name."""

    @abstractmethod
    def get_aggregate_statistics(self, query: StatisticsQuery, partition_names: Sequence[str]) -> AggrStats:
        """Statistics merged over the partitions as Hive merges them; `partsFound` counts those that had all columns."""


class StatisticsWrites(ABC):
    """Writes of column statistics."""

    @abstractmethod
    def update_table_column_statistics(self, statistics: ColumnStatistics, *, writer: Writer = ANY_WRITER) -> None:
        """Replaces the statistics of the columns named.

        Raises NoSuchObjectException, InvalidObjectException, InvalidInputException.
        """

    @abstractmethod
    def update_partition_column_statistics(
        self, statistics: Sequence[ColumnStatistics], *, writer: Writer = ANY_WRITER
    ) -> None:
        """Replaces statistics of partitions of one table, all or none."""

    @abstractmethod
    def merge_column_statistics(self, statistics: Sequence[ColumnStatistics], *, writer: Writer = ANY_WRITER) -> None:
        """Merges the given statistics into the stored ones (SetPartitionsStatsRequest.needMerge), in one
        transaction.
        """

    @abstractmethod
    def delete_table_column_statistics(
        self, table: TableName, columns: Sequence[str] = (), *, engine: str | None = None
    ) -> None:
        """Deletes statistics of these columns. Raises NoSuchObjectException where there is none of them.

        Without columns it deletes all that there are; where there are none, nothing happens, as in Hive. `engine`:
        those that this one has written; None: those of all engines (`ObjectStore`, Hive 4.0.1).
        """

    @abstractmethod
    def delete_partition_column_statistics(
        self,
        table: TableName,
        partition_names: Sequence[str],
        columns: Sequence[str] = (),
        *,
        engine: str | None = None,
    ) -> None:
        """The same for partitions. Raises NoSuchObjectException."""

    @abstractmethod
    def delete_column_statistics(
        self,
        table: TableName,
        partition_names: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        of_table: bool = False,
        engine: str | None = None,
    ) -> None:
        """Deletes what there is of such statistics; that there is nothing, or no such partition, is no error.

        Those of the named partitions, of all when none is named; the table's own if it has no partition keys, or with
        `of_table`. Raises NoSuchObjectException (no such table), MetaException (it is transactional).
        """
