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
    """Tables cannot be dropped because materialized views are built on them."""

    def __init__(self, views: Sequence[TableName], *, hides_others: bool = False) -> None:
        """`hides_others`: there are further views, whose names must not be disclosed."""
        self.views = tuple(sorted(views))
        names = [f"{view.database}.{view.table}" for view in self.views] + ["..."] * hides_others
        super().__init__(f"Cannot drop table as it is used in the following materialized views [{', '.join(names)}]\n")

    def __reduce__(self) -> tuple[type[MetaException], tuple[str]]:
        # Other processes get it as the exception that clients see.
        return MetaException, (self.message,)


class TableReads(ABC):
    """Reads of tables, views and materialized views."""

    @abstractmethod
    def get_table(
        self, table: TableName, *, version: ReadVersion = ANY_VERSION, statistics_engine: str | None = None
    ) -> Table:
        """The table with `id`, `catName` and `writeId` set, and with `statistics_engine` also `colStats`.

        Sets `isStatsCompliant` for a transactional table if a list is given. Raises NoSuchObjectException with Hive's
        text `catalog.database.table table not found`.
        """

    @abstractmethod
    def get_tables(
        self, database: DatabaseName, names: Sequence[str], *, version: ReadVersion = ANY_VERSION
    ) -> list[Table]:
        """Those of the named tables that exist, in the order of the names, each once. Raises UnknownDBException."""

    @abstractmethod
    def get_table_names(
        self, database: DatabaseName, pattern: str | None = None, table_type: str | None = None
    ) -> list[str]:
        """Names, ascending; empty if the database does not exist.

        `pattern` as in `get_database_names`; `table_type` for example `VIRTUAL_VIEW`.
        """

    @abstractmethod
    def get_table_names_by_filter(self, database: DatabaseName, filter_text: str, limit: int = -1) -> list[str]:
        """Names of tables whose owner, parameters or last access match Hive's filter (`hive_filter_field_…`).

        `limit` applies after the filter; -1 means no limit. Raises MetaException (filter), UnknownDBException.
        """

    @abstractmethod
    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, table_types: Sequence[str] = ()
    ) -> list[TableMeta]:
        """Name, type, comment and owner of matching tables, by (database, table) name. Without types, tables of all
        types."""

    @abstractmethod
    def get_materialized_view_names(self, catalog: str, database: str | None = None) -> list[tuple[str, str]]:
        """(database, name) of materialized views that are enabled for rewriting, ascending; None: of all databases."""


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
        """Replaces the table as Hive's HiveAlterHandler does: rename and move, cascade of columns, changes of
        partitions, statistics.

        Raises InvalidOperationException (`new table <db.tbl> already exists`, missing table, illegal change), and
        MetaException with a text that contains `The table has been modified. The parameter value for key '<key>' is` if
        `expected_parameter` does not match.
        """

    @abstractmethod
    def drop_table(self, name: TableName, *, delete_data: bool, options: EnvironmentOptions = NO_OPTIONS) -> None:
        """Drops table, partitions, statistics, constraints, privileges and rows of transactions in one transaction.

        Data of managed tables, and of those with `external.table.purge`, is deleted after the commit, never outside the
        table's own location. Raises NoSuchObjectException, UsedByViews.
        """

    @abstractmethod
    def truncate_table(
        self, name: TableName, partition_names: Sequence[str] | None = None, *, writer: Writer = ANY_WRITER
    ) -> None:
        """Deletes the data of the named partitions, or of the whole table if there is no list, and resets their
        statistics.

        A list selects partitions only, even if it is empty or the table has none. Raises NoSuchObjectException, and
        MetaException, also if files could not be deleted; their statistics are then marked as unknown.
        """

    @abstractmethod
    def update_creation_metadata(self, name: TableName, creation_metadata: CreationMetadata) -> None:
        """Replaces a materialized view's creation metadata, byte for byte. Raises MetaException."""

    @abstractmethod
    def update_table_parameters(self, updates: Sequence[TableParamsUpdate]) -> None:
        """Sets parameters of several tables, all or none, and logs an ALTER_TABLE event for each. Other parameters
        stay.

        Raises NoSuchObjectException, MetaException with a text that contains `The table has been modified` if an
        expected parameter does not match.
        """

    @abstractmethod
    def fire_insert_events(
        self, table: TableName, inserts: Sequence[tuple[Sequence[str] | None, InsertEventRequestData]]
    ) -> list[int]:
        """Logs an INSERT event for each change of data, all or none: the values of the partition (None: the table), and
        what was inserted. Returns the event ids in this order.

        A change without `replace` counts as one that replaced the files, as in Hive: otherwise replication would keep
        the old files. Raises NoSuchObjectException.
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
        """Logs RELOAD events, all or none, and returns their ids in this order. With them, a client that caches the
        table (None) or partitions of it tells others that it refreshed its copy or, if `is_refresh` is false, dropped
        it. Raises NoSuchObjectException.

        `parameters`: added to the table's own parameters in the event, so that a client recognizes its own events.
        """
