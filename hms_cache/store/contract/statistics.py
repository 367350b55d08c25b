"""Contract: column statistics of tables and partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatistics


class StatisticsStore(ABC):
    """Column statistics. `engine` is who wrote them; absent means `hive`."""

    @abstractmethod
    def get_table_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> ColumnStatistics:
        """Statistics of the asked columns that have any, by column name; none gives an empty `statsObj`.

        `isStatsCompliant` is set for a transactional table. Raises NoSuchObjectException.
        """

    @abstractmethod
    def get_partition_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[ColumnStatistics]:
        """One element per partition that has statistics of an asked column, by partition name."""

    @abstractmethod
    def get_aggregate_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str],
        *,
        engine: str = "hive",
        valid_write_ids: str | None = None,
    ) -> AggrStats:
        """Statistics merged over the partitions as Hive merges them; `partsFound` counts those that had all columns."""

    @abstractmethod
    def update_table_column_statistics(
        self, statistics: ColumnStatistics, *, write_id: int | None = None, valid_write_ids: str | None = None
    ) -> None:
        """Replaces the statistics of the columns named.

        Raises NoSuchObjectException, InvalidObjectException, InvalidInputException.
        """

    @abstractmethod
    def update_partition_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        """Replaces statistics of partitions of one table, all or none."""

    @abstractmethod
    def merge_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        """Merges the given statistics into the stored ones (SetPartitionsStatsRequest.needMerge), in one
        transaction.
        """

    @abstractmethod
    def delete_table_column_statistics(
        self, catalog: str, database: str, table: str, columns: Sequence[str] = (), *, engine: str = "hive"
    ) -> None:
        """Deletes statistics of these columns, of all when none is named. Raises NoSuchObjectException."""

    @abstractmethod
    def delete_partition_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str],
        columns: Sequence[str] = (),
        *,
        engine: str = "hive",
    ) -> None:
        """The same for partitions. Raises NoSuchObjectException."""
