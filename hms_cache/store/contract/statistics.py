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
    """Selects statistics of columns of a table. `engine`: the engine that wrote them."""

    table: TableName
    columns: Sequence[str]
    engine: str = "hive"
    version: ReadVersion = ANY_VERSION


class StatisticsReads(ABC):
    """Column statistics."""

    @abstractmethod
    def get_table_column_statistics(self, query: StatisticsQuery) -> ColumnStatistics:
        """Statistics of those requested columns that have any, by column name; `statsObj` is empty if none has.

        Sets `isStatsCompliant` for a transactional table. Raises NoSuchObjectException.
        """

    @abstractmethod
    def get_partition_column_statistics(
        self, query: StatisticsQuery, partition_names: Sequence[str]
    ) -> list[ColumnStatistics]:
        """One element per partition that has statistics of a requested column, by partition name."""

    @abstractmethod
    def get_aggregate_statistics(self, query: StatisticsQuery, partition_names: Sequence[str]) -> AggrStats:
        """Statistics merged over the partitions as in Hive; `partsFound` counts the partitions that have all
        columns."""


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
        """Merges the given statistics into the stored ones (SetPartitionsStatsRequest.needMerge) in one transaction."""

    @abstractmethod
    def delete_table_column_statistics(
        self, table: TableName, columns: Sequence[str] = (), *, engine: str | None = None
    ) -> None:
        """Deletes statistics of these columns. Raises NoSuchObjectException if none exist.

        Without columns it deletes all statistics of the table, and it is no error if there are none, as in Hive.
        `engine`: only statistics that this engine has written; None: of all engines (`ObjectStore`, Hive 4.0.1).
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
        """Like `delete_table_column_statistics`, for partitions. Raises NoSuchObjectException."""

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
        """Deletes such statistics if they exist. Missing statistics or partitions are no error.

        Deletes statistics of the named partitions, or of all if no name is given; of the table itself if it has no
        partition keys or `of_table` is true. Raises NoSuchObjectException (no such table), MetaException (the table is
        transactional).
        """
