"""Contract: several reads of one moment, with the event position of that moment (what a cache loads from)."""

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
    """One moment of the database: all events up to `event_id` are in it, and none after.

    `server_identity`: the server that showed it, as in `History`; empty: it is not known.
    """

    event_id: int
    server_identity: str = ""


class StatisticsOfColumn(NamedTuple):
    """Statistics of one column of a table (`partition` empty) or of a partition, made at `last_analyzed_s` (epoch)."""

    partition: str
    statistics: ColumnStatisticsObj
    last_analyzed_s: int


class PartitionWindow(NamedTuple):
    """All partitions whose names lie in a range, page by page."""

    covered: NameRange
    pages: Iterator[PartitionRows]


class StoreReads(MetadataReads):
    """Reads that can be bound to one moment: those of the database, which a cache answers from."""

    @abstractmethod
    @contextmanager
    def snapshot(self) -> Iterator[Callable[[], Snapshot]]:
        """Within it, every read that this thread makes on this store shows the same moment.

        One read-only transaction. Which moment it is, what is yielded tells; it is read together with the first read
        of objects, or by itself if it is asked for before. Not nestable; no write may be made within it.
        Raises DatabaseUnavailable, also what is yielded.
        """

    @abstractmethod
    def read_partition_pages(self, table: TableName) -> Iterator[PartitionRows]:
        """All partitions of a table as rows, page by page in no order, to be read within one `snapshot`.

        A fixed number of statements per page, and memory for one page. Raises NoSuchObjectException,
        DatabaseUnavailable.
        """

    @abstractmethod
    def read_partition_window(
        self, table: TableName, within: NameRange, around: str, most: int
    ) -> PartitionWindow | None:
        """Partitions of a table side by side, by name: about half of them before `around`, no more than `most` in all,
        none outside of `within`; to be read within one `snapshot`. None: no such window can be told apart.

        Two statements and a fixed number for each page. Raises NoSuchObjectException, DatabaseUnavailable.
        """

    @abstractmethod
    def count_partitions(self, table: TableName, most: int) -> int:
        """How many partitions a table has, `most` where it has more: so many rows of an index are read; 0 where there
        is no such table. One round trip, for an estimate of what a load would cost. Raises DatabaseUnavailable.
        """

    @abstractmethod
    def read_table_with_partitions(
        self, table: TableName, values: Sequence[Sequence[str]] | None
    ) -> tuple[Table, PartitionRows]:
        """A table, and its partitions with these values, or all of them (None) where they are few: what
        `count_partitions` found some hundreds of at most.

        One round trip if the table's keys were read before, else two. Raises NoSuchObjectException, MetaException
        (values that do not fit the keys), DatabaseUnavailable.
        """

    @abstractmethod
    def read_column_statistics(
        self, table: TableName, partition_names: Sequence[str] | None, columns: Sequence[str], *, engine: str = "hive"
    ) -> list[StatisticsOfColumn]:
        """What `get_table_column_statistics` (no names) and `get_partition_column_statistics` answer from, column by
        column, in no order.

        As many statements as those. Raises NoSuchObjectException, DatabaseUnavailable.
        """

    @abstractmethod
    def read_meta_of_database(self, database: DatabaseName) -> list[TableMeta]:
        """What lists of tables show of each table of a database, by name; none where there is no such database.

        `get_table_meta` takes the database's name for a pattern, which `a|b` is, too. One statement. Raises
        DatabaseUnavailable.
        """

    @abstractmethod
    def get_write_id_tag(self, table: TableName) -> str | None:
        """The `ValidWriteIdList` of a table without any current transaction: every open write id is invalid in it.

        Read in the same snapshot as the table it is exactly the tag of that table (P2). None when write ids cannot be
        known: another catalog than the default one, since transaction tables have no catalog column; a name with a `:`,
        which no list can carry.
        """

    @abstractmethod
    def get_highest_table_id(self) -> int:
        """The highest id of a table, 0 without any: ids are handed out upwards. Raises DatabaseUnavailable."""

    @abstractmethod
    def log_head(self) -> LogHead:
        """The last event that is committed now, and the history it is of: one statement, on a connection for position
        checks, outside any snapshot, never an old view. Raises DatabaseUnavailable.
        """

    @abstractmethod
    def current_event_id(self) -> int:
        """The last event that is committed now, for whoever is no position check. Raises DatabaseUnavailable."""
