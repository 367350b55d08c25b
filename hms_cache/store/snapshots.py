"""Contract: several reads of one snapshot, together with its event position. Caches load through it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from hms_cache.metadata.name_ranges import NameRange
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_log import LogHead
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj, Table, TableMeta

if TYPE_CHECKING:
    from hms_cache.store.partitions.reads import PartitionRows


class Snapshot(NamedTuple):
    """One snapshot of the database: it contains all events up to `event_id`, and no later one.

    `server_identity`: the server that the snapshot was read from, as in `History`; empty if unknown.
    """

    event_id: int
    server_identity: str = ""


class StatisticsOfColumn(NamedTuple):
    """Statistics of one column of a partition, or of the table if `partition` is empty. `last_analyzed_s` is an epoch
    time."""

    partition: str
    statistics: ColumnStatisticsObj
    last_analyzed_s: int


class PartitionWindow(NamedTuple):
    """All partitions whose names lie in a range, page by page."""

    covered: NameRange
    pages: Iterator[PartitionRows]


class StoreReads(MetadataReads):
    """Reads that can be bound to one snapshot: the database's own, on which a cache builds."""

    @abstractmethod
    @contextmanager
    def snapshot(self) -> Iterator[Callable[[], Snapshot]]:
        """Within this context, every read of this thread on this store shows the same snapshot.

        Uses one read-only transaction. The function that it yields returns the snapshot's position, which is read
        together with the first objects, or by itself if the function is called earlier. Not nestable; no write is
        allowed inside. Both this method and the function raise DatabaseUnavailable.
        """

    @abstractmethod
    def read_partition_pages(self, table: TableName) -> Iterator[PartitionRows]:
        """All partitions of a table as rows, page by page, unordered. To be called within one `snapshot`.

        A fixed number of statements per page, and memory for one page. Raises NoSuchObjectException,
        DatabaseUnavailable.
        """

    @abstractmethod
    def read_partition_window(
        self, table: TableName, within: NameRange, around: str, most: int
    ) -> PartitionWindow | None:
        """Partitions of a table that are adjacent by name: about half of them before `around`, at most `most`, all
        inside `within`. To be called within one `snapshot`. None if no such window can be determined.

        Two statements, and a fixed number per page. Raises NoSuchObjectException, DatabaseUnavailable.
        """

    @abstractmethod
    def count_partitions(self, table: TableName, most: int) -> int:
        """The number of partitions of a table, but at most `most`; 0 if the table does not exist.

        One round trip, which reads at most `most` rows of an index. Used to estimate the cost of a load. Raises
        DatabaseUnavailable.
        """

    @abstractmethod
    def read_table_with_partitions(
        self, table: TableName, values: Sequence[Sequence[str]] | None
    ) -> tuple[Table, PartitionRows]:
        """A table, and its partitions with these values, or all of its partitions (None). All are asked for only if
        `count_partitions` found at most some hundreds.

        One round trip if the table's keys were read before, otherwise two. Raises NoSuchObjectException, MetaException
        (values that do not fit the keys), DatabaseUnavailable.
        """

    @abstractmethod
    def read_column_statistics(
        self, table: TableName, partition_names: Sequence[str] | None, columns: Sequence[str], *, engine: str = "hive"
    ) -> list[StatisticsOfColumn]:
        """The data of `get_table_column_statistics` (if `partition_names` is None) or of
        `get_partition_column_statistics`, one value per column, unordered.

        Needs as many statements as those. Raises NoSuchObjectException, DatabaseUnavailable.
        """

    @abstractmethod
    def read_meta_of_database(self, database: DatabaseName) -> list[TableMeta]:
        """What lists of tables show of each table of a database, by name; empty if the database does not exist.

        `get_table_meta` would take the name for a pattern, and `a|b` is both. One statement. Raises
        DatabaseUnavailable.
        """

    @abstractmethod
    def get_write_id_tag(self, table: TableName) -> str | None:
        """The table's `ValidWriteIdList` for a reader without a transaction: every open write id is invalid in it.

        Read in the snapshot of the table, it is exactly that table's tag (P2). None if write ids cannot be determined:
        for a catalog other than the default one, since transaction tables have no catalog column, and for a name that
        contains `:`, which a list cannot represent.
        """

    @abstractmethod
    def get_highest_table_id(self) -> int:
        """The highest table id, 0 if there are no tables. Ids are allocated in ascending order. Raises
        DatabaseUnavailable."""

    @abstractmethod
    def log_head(self) -> LogHead:
        """The last event committed now, and its history.

        One statement, on a connection for position checks, outside any snapshot; never shows an old state. Raises
        DatabaseUnavailable.
        """

    @abstractmethod
    def current_event_id(self) -> int:
        """The last event committed now, for callers that do not make a position check. Raises DatabaseUnavailable."""
