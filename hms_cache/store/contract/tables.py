"""Contract: tables, views and materialized views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.environment import ANY_WRITER, NO_OPTIONS, EnvironmentOptions, ExpectedParameter, Writer
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CreationMetadata,
    InsertEventRequestData,
    MetaException,
    SQLAllTableConstraints,
    Table,
    TableMeta,
    TableParamsUpdate,
)


class UsedByViews(MetaException):
    """Tables cannot be dropped: materialized views are built on them."""

    def __init__(self, views: Sequence[TableName], *, hides_others: bool = False) -> None:
        """`hides_others`: there are more than these, whose names are not to be told."""
        self.views = tuple(sorted(views))
        names = [f"{view.database}.{view.table}" for view in self.views] + ["..."] * hides_others
        super().__init__(f"Cannot drop table as it is used in the following materialized views [{', '.join(names)}]\n")

    def __reduce__(self) -> tuple[type[MetaException], tuple[str]]:
        # For others it is what is told.
        return MetaException, (self.message,)


class TableReads(ABC):
    """Reads of tables, views and materialized views."""

    @abstractmethod
    def get_table(
        self, table: TableName, *, version: ReadVersion = ANY_VERSION, statistics_engine: str | None = None
    ) -> Table:
        """The table, `id`, `catName` and `writeId` set; with `statistics_engine` also its `colStats`.

        `isStatsCompliant` is set for a transactional table when a list is given. Raises NoSuchObjectException with
        Hive's text `catalog.database.table table not found`.
        """

    @abstractmethod
    def get_tables(
        self, database: DatabaseName, names: Sequence[str], *, version: ReadVersion = ANY_VERSION
    ) -> list[Table]:
        """The named tables that exist, in the order of the first mention, each once. Raises UnknownDBException."""

    @abstractmethod
    def get_table_names(
        self, database: DatabaseName, pattern: str | None = None, table_type: str | None = None
    ) -> list[str]:
        """Names, ascending; an unknown database has none.

        `pattern` as in `get_database_names`; type e.g. `VIRTUAL_VIEW`.
        """

    @abstractmethod
    def get_table_names_by_filter(self, database: DatabaseName, filter_text: str, limit: int = -1) -> list[str]:
        """Names of tables whose owner, parameters or last access meet Hive's filter (`hive_filter_field_…`).

        `limit` -1 is no limit, applied after the filter. Raises MetaException (filter), UnknownDBException.
        """

    @abstractmethod
    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, table_types: Sequence[str] = ()
    ) -> list[TableMeta]:
        """Name, type, comment, owner of matching tables by (database, table) name; no types means all types."""

    @abstractmethod
    def get_materialized_view_names(self, catalog: str, database: str | None = None) -> list[tuple[str, str]]:
        """(database, name) of materialized views enabled for rewriting, ascending; None is every database."""


class TableWrites(ABC):
    """Writes of tables, views and materialized views."""

    @abstractmethod
    def create_table(
        self,
        table: Table,
        *,
        options: EnvironmentOptions = NO_OPTIONS,
        constraints: SQLAllTableConstraints | None = None,
    ) -> None:
        """Creates the table with its constraints, privileges and directory.

        Raises AlreadyExistsException, InvalidObjectException (database, names, columns, types), MetaException
        (directory, transactional properties).
        """

    @abstractmethod
    def alter_table(
        self,
        name: TableName,
        table: Table,
        *,
        writer: Writer = ANY_WRITER,
        expected_parameter: ExpectedParameter | None = None,
    ) -> None:
        """Replaces the table (Hive's HiveAlterHandler): rename and move, column cascade, partition rewrite, statistics.

        Raises InvalidOperationException (`new table <db.tbl> already exists`, missing table, illegal change),
        MetaException whose text holds `The table has been modified. The parameter value for key '<key>' is` when
        `expected_parameter` does not hold.
        """

    @abstractmethod
    def drop_table(self, name: TableName, *, delete_data: bool, options: EnvironmentOptions = NO_OPTIONS) -> None:
        """Drops table, partitions, statistics, constraints, privileges and transaction rows in one transaction.

        Data is deleted after the commit, for managed tables and those with `external.table.purge`, never outside the
        table's own location. Raises NoSuchObjectException, UsedByViews.
        """

    @abstractmethod
    def truncate_table(
        self, name: TableName, partition_names: Sequence[str] | None = None, *, writer: Writer = ANY_WRITER
    ) -> None:
        """Empties the named partitions, or the whole table if there is no list, and resets their statistics.

        A list names partitions only, also when it is empty or the table has none. Raises NoSuchObjectException, and
        MetaException: also for files that could not be deleted, after which nothing is claimed of what they are in.
        """

    @abstractmethod
    def update_creation_metadata(self, name: TableName, creation_metadata: CreationMetadata) -> None:
        """Replaces a materialized view's creation metadata, byte for byte. Raises MetaException."""

    @abstractmethod
    def update_table_parameters(self, updates: Sequence[TableParamsUpdate]) -> None:
        """Sets parameters of several tables, all or none; parameters not named stay. An ALTER_TABLE event for each.

        Raises NoSuchObjectException, MetaException whose text holds `The table has been modified` when an expected
        parameter does not hold.
        """

    @abstractmethod
    def fire_insert_events(
        self, table: TableName, inserts: Sequence[tuple[Sequence[str] | None, InsertEventRequestData]]
    ) -> list[int]:
        """Writes an INSERT event for each change of data, all or none: values of the partition (None: the table), and
        what was inserted. Returns their ids, in this order.

        A change that does not say whether it replaced the files (`replace`) counts as one that did, as in Hive:
        replication would add the files of the others. Raises NoSuchObjectException.
        """

    @abstractmethod
    def fire_reload_events(
        self,
        table: TableName,
        partitions: Sequence[Sequence[str] | None],
        *,
        is_refresh: bool,
        parameters: Mapping[str, str] | None = None,
    ) -> list[int]:
        """Writes the RELOAD events by which a cache of the table (None) or of some of its partitions tells others that
        it refreshed it, or (`is_refresh` false) threw it away, all or none; returns their ids, in this order. Raises
        NoSuchObjectException.

        `parameters`: what the table in the event has besides its own ones, by which a client knows its own events.
        """
