"""Rows of the notification log and the events they tell of, as frozen values.

A value holds what an invalidating reader needs (names, partition values, transaction and write ids), decoded, and the
embedded Thrift objects as the text they came in; a method decodes one where somebody wants it. ``scope`` says what the
event may concern. Facts about fields and columns: Hive 3.1 to 4.1, ``DbNotificationListener`` and the JSON messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import TableName, database_name, function_name, table_name
from hms_cache.notifications import tjson
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.scope import (
    EVERYTHING,
    NOTHING,
    PartitionValues,
    Scope,
    scope_of_partitions,
    scope_of_tables,
)
from hms_cache.thrift_gen.hive_metastore import ttypes

_Struct = TypeVar("_Struct")


class EventRow(NamedTuple):
    """A row to be appended to NOTIFICATION_LOG, but for its ids and time, which the commit gives it.

    Names are lower-case; ``None`` where Hive writes none (``table`` of a database event, all three of ``OPEN_TXN``).
    ``message`` is encoded as ``message_format`` says (``json-0.2`` or ``gzip(json-2.0)``).
    """

    event_type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str
    message_format: str


class NotificationRow(NamedTuple):
    """A row of NOTIFICATION_LOG as read. ``event_time_s`` is the clock of the server that wrote it."""

    event_id: int
    event_time_s: int
    event_type: str
    catalog: str | None
    database: str | None
    table: str | None
    message: str | None
    message_format: str | None

    @classmethod
    def received(cls, event: ttypes.NotificationEvent) -> NotificationRow:
        """The row that a metastore answered as this struct."""
        return cls(
            event.eventId,
            event.eventTime,
            event.eventType,
            event.catName,
            event.dbName,
            event.tableName,
            event.message,
            event.messageFormat,
        )


class EventHeader(NamedTuple):
    """What the columns of the row tell, names as they stand there."""

    event_id: int
    event_time_s: int
    event_type: str
    catalog: str | None
    database: str | None
    table: str | None


def header_of(row: NotificationRow) -> EventHeader:
    """The row without its message."""
    return EventHeader(row.event_id, row.event_time_s, row.event_type, row.catalog, row.database, row.table)


class PartitionFiles(NamedTuple):
    """The files of one added partition, as an ADD_PARTITION message lists them."""

    partition_name: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the log."""

    header: EventHeader

    @property
    def event_id(self) -> int:
        return self.header.event_id

    @property
    def scope(self) -> Scope:
        """What the event may concern: never less than it does."""
        return scope_of_row(self.header)

    @property
    def own_table(self) -> TableName | None:
        """The table that the row's columns name."""
        return _row_table(self.header)


def _row_table(header: EventHeader) -> TableName | None:
    if header.database and header.table:
        return table_name(header.catalog, header.database, header.table)
    return None


def scope_of_row(header: EventHeader) -> Scope:
    """The narrowest scope that the columns alone name: the table, else the database, else everything."""
    table = _row_table(header)
    if table is not None:
        return scope_of_tables([table], foreign_keys=True)
    if header.database:
        return Scope(whole_databases=frozenset([database_name(header.catalog, header.database)]), foreign_keys=True)
    return EVERYTHING


def _struct(text: str | None, struct_class: type[_Struct]) -> _Struct | None:
    return None if text is None else tjson.read_struct(text, struct_class)


# ---- databases and catalogs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatabaseCreated(Event):
    database_json: str | None = None

    @property
    def scope(self) -> Scope:
        return _database_scope(self.header)

    def database(self) -> ttypes.Database | None:
        return _struct(self.database_json, ttypes.Database)


@dataclass(frozen=True, slots=True)
class DatabaseAltered(Event):
    """``scope`` names the database object alone: its tables stay as they are."""

    before_json: str | None = None
    after_json: str | None = None

    @property
    def scope(self) -> Scope:
        return _database_scope(self.header)

    def before(self) -> ttypes.Database | None:
        return _struct(self.before_json, ttypes.Database)

    def after(self) -> ttypes.Database | None:
        return _struct(self.after_json, ttypes.Database)


@dataclass(frozen=True, slots=True)
class DatabaseDropped(Event):
    """``scope`` is the database with all that was in it. ``database_json`` is missing before Hive 4."""

    database_json: str | None = None

    def database(self) -> ttypes.Database | None:
        return _struct(self.database_json, ttypes.Database)


def _database_scope(header: EventHeader) -> Scope:
    if not header.database:
        return EVERYTHING
    return Scope(databases=frozenset([database_name(header.catalog, header.database)]))


@dataclass(frozen=True, slots=True)
class CatalogEvent(Event):
    """Hive defines the three catalog messages but never logs them; this project's servers do."""

    catalog_name: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(catalogs=frozenset([normalize_identifier(self.catalog_name)])) if self.catalog_name else EVERYTHING


@dataclass(frozen=True, slots=True)
class CatalogCreated(CatalogEvent):
    pass


@dataclass(frozen=True, slots=True)
class CatalogAltered(CatalogEvent):
    before_json: str | None = None
    after_json: str | None = None

    def before(self) -> ttypes.Catalog | None:
        return _struct(self.before_json, ttypes.Catalog)

    def after(self) -> ttypes.Catalog | None:
        return _struct(self.after_json, ttypes.Catalog)


@dataclass(frozen=True, slots=True)
class CatalogDropped(CatalogEvent):
    @property
    def scope(self) -> Scope:
        if not self.catalog_name:
            return EVERYTHING
        return Scope(whole_catalogs=frozenset([normalize_identifier(self.catalog_name)]), foreign_keys=True)


# ---- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableEvent(Event):
    """An event of one table; ``table_json`` is the table's image in the message, if it has one."""

    table_json: str | None = None

    @property
    def scope(self) -> Scope:
        table = self.own_table
        return EVERYTHING if table is None else scope_of_tables([table])

    def table(self) -> ttypes.Table | None:
        return _struct(self.table_json, ttypes.Table)


@dataclass(frozen=True, slots=True)
class TableCreated(TableEvent):
    table_type: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableDropped(TableEvent):
    """Foreign keys of other tables that pointed here went with it."""

    table_type: str | None = None

    @property
    def scope(self) -> Scope:
        return scope_of_row(self.header)


@dataclass(frozen=True, slots=True)
class TableAltered(Event):
    """The row's columns hold the new name, the message the old one; both are in ``scope``.

    A rename takes along what refers to the table by name elsewhere, and a changed column list does so with foreign
    keys, hence ``foreign_keys`` of the scope.
    """

    old_name: TableName | None = None
    new_name: TableName | None = None
    is_truncate: bool = False
    write_id: int | None = None
    table_type: str | None = None
    before_json: str | None = None
    after_json: str | None = None

    @property
    def is_rename(self) -> bool:
        """Also true if one of the names is unknown."""
        return self.old_name is None or self.old_name != self.new_name

    @property
    def scope(self) -> Scope:
        if self.old_name is None or self.new_name is None:
            return EVERYTHING
        return scope_of_tables([self.old_name, self.new_name], foreign_keys=True)

    def before(self) -> ttypes.Table | None:
        return _struct(self.before_json, ttypes.Table)

    def after(self) -> ttypes.Table | None:
        return _struct(self.after_json, ttypes.Table)


# ---- partitions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionsEvent(TableEvent):
    """``partitions``: values in the order of the partition keys; ``None`` if unknown or if the whole table is meant."""

    partitions: tuple[PartitionValues, ...] | None = None

    @property
    def scope(self) -> Scope:
        table = self.own_table
        if table is None:
            return EVERYTHING
        if self.partitions is None:
            return scope_of_tables([table])
        return scope_of_partitions(table, self.partitions)


@dataclass(frozen=True, slots=True)
class PartitionsAdded(PartitionsEvent):
    table_type: str | None = None
    partition_jsons: tuple[str, ...] = ()
    files: tuple[PartitionFiles, ...] = ()

    def partition_objects(self) -> list[ttypes.Partition]:
        return [tjson.read_struct(text, ttypes.Partition) for text in self.partition_jsons]


@dataclass(frozen=True, slots=True)
class PartitionAltered(PartitionsEvent):
    """``partitions`` holds the old values and, after a rename, the new ones."""

    is_truncate: bool = False
    write_id: int | None = None
    before_json: str | None = None
    after_json: str | None = None

    def before(self) -> ttypes.Partition | None:
        return _struct(self.before_json, ttypes.Partition)

    def after(self) -> ttypes.Partition | None:
        return _struct(self.after_json, ttypes.Partition)


@dataclass(frozen=True, slots=True)
class PartitionsAltered(PartitionsEvent):
    """ALTER_PARTITIONS of Hive 4.1 and later; new images only."""

    is_truncate: bool = False
    write_id: int | None = None
    partition_jsons: tuple[str, ...] = ()

    def partition_objects(self) -> list[ttypes.Partition]:
        return [tjson.read_struct(text, ttypes.Partition) for text in self.partition_jsons]


@dataclass(frozen=True, slots=True)
class PartitionsDropped(PartitionsEvent):
    table_type: str | None = None


@dataclass(frozen=True, slots=True)
class DataInserted(PartitionsEvent):
    """INSERT; ``partitions`` is ``None`` for an unpartitioned table."""

    is_replace: bool = False
    partition_json: str | None = None
    files: tuple[str, ...] = ()

    def partition(self) -> ttypes.Partition | None:
        return _struct(self.partition_json, ttypes.Partition)


@dataclass(frozen=True, slots=True)
class TableReloaded(PartitionsEvent):
    """RELOAD: a peer says that it refreshed or invalidated a table or a partition."""

    is_refresh: bool = False
    partition_json: str | None = None

    def partition(self) -> ttypes.Partition | None:
        return _struct(self.partition_json, ttypes.Partition)


# ---- functions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionEvent(Event):
    function_name: str | None = None

    @property
    def scope(self) -> Scope:
        if not self.header.database or not self.function_name:
            return scope_of_row(self.header)
        name = function_name(self.header.catalog, self.header.database, self.function_name)
        return Scope(functions=frozenset([name]))


@dataclass(frozen=True, slots=True)
class FunctionCreated(FunctionEvent):
    function_json: str | None = None

    def function(self) -> ttypes.Function | None:
        return _struct(self.function_json, ttypes.Function)


@dataclass(frozen=True, slots=True)
class FunctionDropped(FunctionEvent):
    pass


# ---- constraints ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConstraintsAdded(Event):
    """Base of the six kinds; ``constraint_jsons`` are the added constraints (one for each column of each)."""

    constraint_class: ClassVar[Any] = None
    is_key: ClassVar[bool] = False
    """Whether foreign keys of other tables, which the message does not name, may end at it and now be others."""

    constraint_jsons: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        table = self.own_table
        return EVERYTHING if table is None else scope_of_tables([table], foreign_keys=self.is_key)

    def constraints(self) -> list[Any]:
        """The Thrift structs, of the kind's own class."""
        return [tjson.read_struct(text, self.constraint_class) for text in self.constraint_jsons]


@dataclass(frozen=True, slots=True)
class PrimaryKeyAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLPrimaryKey
    is_key: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ForeignKeyAdded(ConstraintsAdded):
    """The row names the parent (the table with the primary key); ``tables`` has both ends of every key."""

    constraint_class: ClassVar[Any] = ttypes.SQLForeignKey

    tables: frozenset[TableName] | None = None

    @property
    def scope(self) -> Scope:
        if self.tables is None:
            return EVERYTHING
        table = self.own_table
        return scope_of_tables(self.tables if table is None else {*self.tables, table})


@dataclass(frozen=True, slots=True)
class UniqueConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLUniqueConstraint
    is_key: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class NotNullConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLNotNullConstraint


@dataclass(frozen=True, slots=True)
class DefaultConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLDefaultConstraint


@dataclass(frozen=True, slots=True)
class CheckConstraintAdded(ConstraintsAdded):
    constraint_class: ClassVar[Any] = ttypes.SQLCheckConstraint


@dataclass(frozen=True, slots=True)
class ConstraintDropped(Event):
    """A foreign key may be dropped under the name of either of its tables; the other one is not named."""

    constraint_name: str | None = None

    @property
    def scope(self) -> Scope:
        return scope_of_row(self.header)


# ---- transactions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionsOpened(Event):
    """OPEN_TXN; a range, a set, or ``None`` if the message does not tell."""

    transaction_ids: Collection[int] | None = None

    @property
    def scope(self) -> Scope:
        if self.transaction_ids is None:
            return Scope(all_transactions=True)
        return Scope(transactions=self.transaction_ids)


@dataclass(frozen=True, slots=True)
class TransactionCommitted(Event):
    """COMMIT_TXN. ``tables`` only if the message names them, which no Hive release does (c.3).

    A commit may change parameters of a table it does not name (``commit_txn`` with a key and value), too.
    """

    transaction_id: int = 0
    tables: frozenset[TableName] | None = None

    @property
    def scope(self) -> Scope:
        return Scope(transactions=frozenset([self.transaction_id]), tables=self.tables or frozenset())


@dataclass(frozen=True, slots=True)
class TransactionAborted(Event):
    """ABORT_TXN; ``databases`` are those it wrote to (Hive 4)."""

    transaction_id: int = 0
    databases: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return Scope(transactions=frozenset([self.transaction_id]))


class TransactionWriteId(NamedTuple):
    """A write id and the transaction that it was given to."""

    transaction_id: int
    write_id: int


@dataclass(frozen=True, slots=True)
class WriteIdsAllocated(Event):
    """ALLOC_WRITE_ID_EVENT: the table gets write ids, open until their transactions end."""

    write_ids: tuple[TransactionWriteId, ...] = ()

    @property
    def scope(self) -> Scope:
        table = self.own_table
        if table is None:
            return EVERYTHING
        return Scope(
            tables=frozenset([table]), transactions=frozenset(entry.transaction_id for entry in self.write_ids)
        )


@dataclass(frozen=True, slots=True)
class AcidDataWritten(Event):
    """ACID_WRITE_EVENT; Hive puts it into TXN_WRITE_NOTIFICATION_LOG, not into the notification log."""

    transaction_id: int = 0
    write_id: int = 0
    partition_values: PartitionValues | None = None
    table_json: str | None = None
    partition_json: str | None = None
    files: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        table = self.own_table
        if table is None:
            return EVERYTHING
        if self.partition_values is None:
            return scope_of_tables([table])
        return scope_of_partitions(table, [self.partition_values])


@dataclass(frozen=True, slots=True)
class CompactionCommitted(PartitionsEvent):
    """COMMIT_COMPACTION_EVENT; ``partitions`` is ``None`` for an unpartitioned table."""

    transaction_id: int = 0
    compaction_id: int = 0
    compaction_type: str | None = None


# ---- column statistics ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableColumnStatisticsUpdated(TableEvent):
    """The table's parameters (COLUMN_STATS_ACCURATE) change with the statistics."""

    write_id: int | None = None
    parameters: Mapping[str, str] | None = None
    statistics_json: str | None = None

    def statistics(self) -> ttypes.ColumnStatistics | None:
        return _struct(self.statistics_json, ttypes.ColumnStatistics)


@dataclass(frozen=True, slots=True)
class TableColumnStatisticsDeleted(TableEvent):
    """``column`` is ``None`` if the statistics of all columns went."""

    column: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionColumnStatisticsUpdated(PartitionsEvent):
    """The partition's parameters (COLUMN_STATS_ACCURATE) change with the statistics."""

    write_id: int | None = None
    parameters: Mapping[str, str] | None = None
    statistics_json: str | None = None

    def statistics(self) -> ttypes.ColumnStatistics | None:
        return _struct(self.statistics_json, ttypes.ColumnStatistics)


@dataclass(frozen=True, slots=True)
class PartitionColumnStatisticsDeleted(PartitionsEvent):
    """``column`` is ``None`` if the statistics of all columns went."""

    column: str | None = None


# ---- events without a message that anybody reads --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherObjectChanged(Event):
    """A schema registry object or a data connector was created, altered or dropped.

    Hive declares these types and logs none of them. No catalog object hangs on one, so ``scope`` is empty.
    """

    @property
    def scope(self) -> Scope:
        return NOTHING


@dataclass(frozen=True, slots=True)
class BatchWritten(Event):
    """BATCH_ACID_WRITE_EVENT or UPDATE_PART_COL_STAT_EVENT_BATCH: declared by Hive 4, logged as single events."""


@dataclass(frozen=True, slots=True)
class UndecodedEvent(Event):
    """An event that could not be understood: an unknown type or format, a damaged message, or a failed application.

    ``concerned`` is what it may concern at most: what its columns name where the type lets them be the whole truth,
    else everything.
    """

    reason: str = ""
    concerned: Scope = EVERYTHING

    @property
    def scope(self) -> Scope:
        return self.concerned


# Types whose columns do not name all they concern: the other name of a rename, the child of a foreign key.
_NAMED_IN_MESSAGE_ONLY = frozenset({EventType.ALTER_TABLE, EventType.ADD_FOREIGNKEY})


def undecoded(header: EventHeader, reason: str) -> UndecodedEvent:
    """The stand-in for an event of this header that could not be decoded or applied."""
    if header.event_type in _NAMED_IN_MESSAGE_ONLY:
        return UndecodedEvent(header, reason, EVERYTHING)
    return UndecodedEvent(header, reason, scope_of_row(header))


def scope_bound_of_row(header: EventHeader) -> Scope | None:
    """A scope that holds the event's, from its columns alone; ``None`` if only the message can tell.

    For readers that skip by header. It is wider than the decoded event's: a table for a partition, a database for a
    function.
    """
    event_type = header.event_type
    if event_type in _NAMED_IN_MESSAGE_ONLY or (not header.database and not header.table):
        return None
    if event_type in (EventType.CREATE_DATABASE, EventType.ALTER_DATABASE):
        return _database_scope(header)
    return scope_of_row(header)
