"""`ObjectStore`: the whole `RawStore` over the metastore database; each method is its entity's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, func, select

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_identifier
from hms_cache.notifications.event_log import LogHead
from hms_cache.store.contract.partitions import (
    Grantee,
    PartitionAnswer,
    PartitionProjection,
    PartitionSelection,
)
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.store.contract.tables import ExpectedParameter
from hms_cache.store.databases.catalog_store import Catalogs
from hms_cache.store.databases.database_store import Databases
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import read_log_end
from hms_cache.store.engine.log_sessions import last_event_id, read_head
from hms_cache.store.engine.work_units import run_read
from hms_cache.store.events.fired_events import FiredEvents
from hms_cache.store.objects.constraints import Constraints
from hms_cache.store.objects.functions import Functions
from hms_cache.store.partition_store import Partitions
from hms_cache.store.partitions.pages import count_partitions, read_partition_pages
from hms_cache.store.partitions.reads import PartitionRows
from hms_cache.store.schema import TBLS
from hms_cache.store.snapshots import Snapshot, SnapshotStore, StatisticsOfColumn
from hms_cache.store.statistics.statistics_store import Statistics
from hms_cache.store.tables.changes import TableChanges
from hms_cache.store.tables.creation import TableCreation
from hms_cache.store.tables.drops import TableDrops
from hms_cache.store.tables.parameter_updates import TableParameterUpdates
from hms_cache.store.tables.table_store import TableReads
from hms_cache.store.tables.truncation import TableTruncation
from hms_cache.store.transactions.options import TxnOptions
from hms_cache.store.transactions.snapshots import open_txns_response, read_snapshot
from hms_cache.store.write_ids.valid_write_ids import valid_write_ids_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AggrStats,
    Catalog,
    ColumnStatistics,
    CreationMetadata,
    Database,
    EnvironmentContext,
    Function,
    InsertEventRequestData,
    Partition,
    PartitionValuesRow,
    SQLAllTableConstraints,
    SQLForeignKey,
    Table,
    TableMeta,
    TableParamsUpdate,
)
from hms_cache.txn import ValidTxnList

T = TypeVar("T")


class ObjectStore(SnapshotStore):
    """Thread-safe; holds no state but its parts. What a method does is said in the contract."""

    def __init__(self, context: StoreContext, *, open_txn_timeout_ms: int | None = None) -> None:
        """`open_txn_timeout_ms`: as in `TxnOptions`, its default if None."""
        self._context = context
        self._open_txn_timeout_ms = (
            TxnOptions().open_txn_timeout_ms if open_txn_timeout_ms is None else open_txn_timeout_ms
        )
        self._catalogs = Catalogs(context)
        self._databases = Databases(context)
        self._statistics = Statistics(context)
        self._table_reads = TableReads(context, self._statistics.read_of_table)
        self._table_creation = TableCreation(context)
        self._table_changes = TableChanges(context)
        self._table_drops = TableDrops(context)
        self._table_truncation = TableTruncation(context)
        self._table_parameter_updates = TableParameterUpdates(context)
        self._fired_events = FiredEvents(context)
        self._partitions = Partitions(context)
        self._constraints = Constraints(context)
        self._functions = Functions(context)

    # Moments

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        with self._context.database.snapshot() as connection:
            if self._context.database.is_sqlite:
                yield Snapshot(last_event_id(connection), self._context.database.file_history().server_identity)
            else:
                head = read_head(connection, self._context.database.history_text)
                yield Snapshot(head.last_event_id, head.history.server_identity)

    def at_one_moment(self, ask: Callable[[RawStore], T]) -> T:
        with self.snapshot():
            return ask(self)

    def read_partition_pages(self, catalog: str, database: str, table: str) -> Iterator[PartitionRows]:
        return read_partition_pages(self._context, catalog, database, table)

    def count_partitions(self, catalog: str, database: str, table: str, most: int) -> int:
        return count_partitions(self._context, catalog, database, table, most)

    def read_column_statistics(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_names: Sequence[str] | None,
        columns: Sequence[str],
        *,
        engine: str = "hive",
    ) -> list[StatisticsOfColumn]:
        return self._statistics.read_column_statistics(
            catalog, database, table, partition_names, columns, engine=engine
        )

    def get_write_id_tag(self, catalog: str, database: str, table: str) -> str | None:
        if normalize_identifier(catalog) != DEFAULT_CATALOG:
            return None
        key = normalize_identifier(database), normalize_identifier(table)

        def read(connection: Connection) -> str:
            open_txns = open_txns_response(read_snapshot(connection, self._open_txn_timeout_ms))
            return valid_write_ids_of(connection, [key], ValidTxnList.from_open_txns(open_txns, 0))[key].to_text()

        return run_read(self._context.database, read)

    def get_highest_table_id(self) -> int:
        statement = select(func.max(TBLS.c.TBL_ID))
        return run_read(self._context.database, lambda connection: connection.execute(statement).scalar() or 0)

    def log_head(self) -> LogHead:
        return read_log_end(self._context.database)

    def current_event_id(self) -> int:
        return run_read(self._context.database, last_event_id)

    # Catalogs

    def get_catalog(self, catalog: str) -> Catalog:
        return self._catalogs.get_catalog(catalog)

    def get_catalog_names(self) -> list[str]:
        return self._catalogs.get_catalog_names()

    def create_catalog(self, catalog: Catalog) -> None:
        self._catalogs.create_catalog(catalog)

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        self._catalogs.alter_catalog(name, catalog)

    def drop_catalog(self, name: str, *, if_exists: bool = False) -> None:
        self._catalogs.drop_catalog(name, if_exists=if_exists)

    # Databases

    def get_database(self, catalog: str, database: str) -> Database:
        return self._databases.get_database(catalog, database)

    def get_database_names(self, catalog: str, pattern: str | None = None) -> list[str]:
        return self._databases.get_database_names(catalog, pattern)

    def get_databases(self, catalog: str, pattern: str | None = None) -> list[Database]:
        return self._databases.get_databases(catalog, pattern)

    def create_database(self, database: Database) -> None:
        self._databases.create_database(database)

    def alter_database(self, catalog: str, name: str, database: Database) -> None:
        self._databases.alter_database(catalog, name, database)

    def drop_database(
        self,
        catalog: str,
        name: str,
        *,
        delete_data: bool,
        cascade: bool,
        if_exists: bool = False,
        soft_txn_id: int = 0,
    ) -> None:
        self._databases.drop_database(
            catalog, name, delete_data=delete_data, cascade=cascade, if_exists=if_exists, soft_txn_id=soft_txn_id
        )

    # Tables

    def get_table(
        self,
        catalog: str,
        database: str,
        table: str,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
        statistics_engine: str | None = None,
    ) -> Table:
        return self._table_reads.get_table(
            catalog,
            database,
            table,
            valid_write_ids=valid_write_ids,
            table_id=table_id,
            statistics_engine=statistics_engine,
        )

    def get_tables(
        self,
        catalog: str,
        database: str,
        names: Sequence[str],
        *,
        valid_write_ids: str | None = None,
    ) -> list[Table]:
        return self._table_reads.get_tables(catalog, database, names, valid_write_ids=valid_write_ids)

    def get_table_names(
        self, catalog: str, database: str, pattern: str | None = None, table_type: str | None = None
    ) -> list[str]:
        return self._table_reads.get_table_names(catalog, database, pattern, table_type)

    def get_table_names_by_filter(self, catalog: str, database: str, filter_text: str, limit: int = -1) -> list[str]:
        return self._table_reads.get_table_names_by_filter(catalog, database, filter_text, limit)

    def get_table_meta(
        self, catalog: str, database_pattern: str | None, table_pattern: str | None, table_types: Sequence[str] = ()
    ) -> list[TableMeta]:
        return self._table_reads.get_table_meta(catalog, database_pattern, table_pattern, table_types)

    def get_materialized_view_names(self, catalog: str, database: str | None = None) -> list[tuple[str, str]]:
        return self._table_reads.get_materialized_view_names(catalog, database)

    def create_table(
        self,
        table: Table,
        *,
        environment_context: EnvironmentContext | None = None,
        constraints: SQLAllTableConstraints | None = None,
    ) -> None:
        self._table_creation.create_table(table, environment_context=environment_context, constraints=constraints)

    def alter_table(
        self,
        catalog: str,
        database: str,
        name: str,
        table: Table,
        *,
        environment_context: EnvironmentContext | None = None,
        cascade: bool = False,
        expected_parameter: ExpectedParameter | None = None,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._table_changes.alter_table(
            catalog,
            database,
            name,
            table,
            environment_context=environment_context,
            cascade=cascade,
            expected_parameter=expected_parameter,
            write_id=write_id,
            valid_write_ids=valid_write_ids,
        )

    def drop_table(
        self,
        catalog: str,
        database: str,
        name: str,
        *,
        delete_data: bool,
        environment_context: EnvironmentContext | None = None,
        if_exists: bool = False,
    ) -> None:
        self._table_drops.drop_table(
            catalog,
            database,
            name,
            delete_data=delete_data,
            environment_context=environment_context,
            if_exists=if_exists,
        )

    def truncate_table(
        self,
        catalog: str,
        database: str,
        name: str,
        partition_names: Sequence[str] | None = None,
        *,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._table_truncation.truncate_table(
            catalog,
            database,
            name,
            partition_names,
            environment_context=environment_context,
            write_id=write_id,
            valid_write_ids=valid_write_ids,
        )

    def update_creation_metadata(
        self, catalog: str, database: str, name: str, creation_metadata: CreationMetadata
    ) -> None:
        self._table_changes.update_creation_metadata(catalog, database, name, creation_metadata)

    def update_table_parameters(self, updates: Sequence[TableParamsUpdate]) -> None:
        self._table_parameter_updates.update_table_parameters(updates)

    def fire_insert_event(
        self,
        catalog: str,
        database: str,
        table: str,
        partition_values: Sequence[str] | None,
        data: InsertEventRequestData,
    ) -> list[int]:
        return self._fired_events.fire_insert_event(catalog, database, table, partition_values, data)

    def fire_reload_event(
        self, catalog: str, database: str, table: str, partition_values: Sequence[str] | None, *, is_refresh: bool
    ) -> list[int]:
        return self._fired_events.fire_reload_event(catalog, database, table, partition_values, is_refresh=is_refresh)

    # Partitions

    def get_partition(
        self,
        catalog: str,
        database: str,
        table: str,
        values: Sequence[str],
        *,
        grantee: Grantee | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> Partition:
        return self._partitions.get_partition(
            catalog, database, table, values, grantee=grantee, valid_write_ids=valid_write_ids, table_id=table_id
        )

    def get_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        max_parts: int = -1,
        grantee: Grantee | None = None,
        projection: PartitionProjection | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> PartitionAnswer:
        return self._partitions.get_partitions(
            catalog,
            database,
            table,
            selection,
            max_parts=max_parts,
            grantee=grantee,
            projection=projection,
            valid_write_ids=valid_write_ids,
            table_id=table_id,
        )

    def get_partition_names(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        max_parts: int = -1,
        order: str | None = None,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[str]:
        return self._partitions.get_partition_names(
            catalog,
            database,
            table,
            selection,
            max_parts=max_parts,
            order=order,
            valid_write_ids=valid_write_ids,
            table_id=table_id,
        )

    def get_partition_count(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> int:
        return self._partitions.get_partition_count(
            catalog, database, table, selection, valid_write_ids=valid_write_ids, table_id=table_id
        )

    def get_partition_values(
        self,
        catalog: str,
        database: str,
        table: str,
        keys: Sequence[str],
        *,
        selection: PartitionSelection | None = None,
        distinct: bool = True,
        ascending: bool = True,
        max_parts: int = -1,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[PartitionValuesRow]:
        return self._partitions.get_partition_values(
            catalog,
            database,
            table,
            keys,
            selection=selection,
            distinct=distinct,
            ascending=ascending,
            max_parts=max_parts,
            valid_write_ids=valid_write_ids,
            table_id=table_id,
        )

    def add_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        if_not_exists: bool = False,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
    ) -> list[Partition]:
        return self._partitions.add_partitions(
            catalog,
            database,
            table,
            partitions,
            if_not_exists=if_not_exists,
            environment_context=environment_context,
            write_id=write_id,
        )

    def alter_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._partitions.alter_partitions(
            catalog,
            database,
            table,
            partitions,
            environment_context=environment_context,
            write_id=write_id,
            valid_write_ids=valid_write_ids,
        )

    def rename_partition(
        self,
        catalog: str,
        database: str,
        table: str,
        old_values: Sequence[str],
        partition: Partition,
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._partitions.rename_partition(
            catalog, database, table, old_values, partition, write_id=write_id, valid_write_ids=valid_write_ids
        )

    def drop_partitions(
        self,
        catalog: str,
        database: str,
        table: str,
        selection: PartitionSelection,
        *,
        delete_data: bool,
        if_exists: bool = False,
        environment_context: EnvironmentContext | None = None,
        write_id: int | None = None,
    ) -> list[Partition]:
        return self._partitions.drop_partitions(
            catalog,
            database,
            table,
            selection,
            delete_data=delete_data,
            if_exists=if_exists,
            environment_context=environment_context,
            write_id=write_id,
        )

    def exchange_partitions(
        self,
        partition_specification: dict[str, str],
        source: tuple[str, str, str],
        destination: tuple[str, str, str],
    ) -> list[Partition]:
        return self._partitions.exchange_partitions(partition_specification, source, destination)

    def mark_partition_for_event(
        self, catalog: str, database: str, table: str, values: dict[str, str], event_type: int
    ) -> None:
        self._partitions.mark_partition_for_event(catalog, database, table, values, event_type)

    def is_partition_marked_for_event(
        self, catalog: str, database: str, table: str, values: dict[str, str], event_type: int
    ) -> bool:
        return self._partitions.is_partition_marked_for_event(catalog, database, table, values, event_type)

    # Statistics

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
        return self._statistics.get_table_column_statistics(
            catalog, database, table, columns, engine=engine, valid_write_ids=valid_write_ids, table_id=table_id
        )

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
        return self._statistics.get_partition_column_statistics(
            catalog,
            database,
            table,
            partition_names,
            columns,
            engine=engine,
            valid_write_ids=valid_write_ids,
            table_id=table_id,
        )

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
        return self._statistics.get_aggregate_statistics(
            catalog, database, table, partition_names, columns, engine=engine, valid_write_ids=valid_write_ids
        )

    def update_table_column_statistics(
        self, statistics: ColumnStatistics, *, write_id: int | None = None, valid_write_ids: str | None = None
    ) -> None:
        self._statistics.update_table_column_statistics(statistics, write_id=write_id, valid_write_ids=valid_write_ids)

    def update_partition_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._statistics.update_partition_column_statistics(
            statistics, write_id=write_id, valid_write_ids=valid_write_ids
        )

    def merge_column_statistics(
        self,
        statistics: Sequence[ColumnStatistics],
        *,
        write_id: int | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        self._statistics.merge_column_statistics(statistics, write_id=write_id, valid_write_ids=valid_write_ids)

    def delete_table_column_statistics(
        self, catalog: str, database: str, table: str, columns: Sequence[str] = (), *, engine: str = "hive"
    ) -> None:
        self._statistics.delete_table_column_statistics(catalog, database, table, columns, engine=engine)

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
        self._statistics.delete_partition_column_statistics(
            catalog, database, table, partition_names, columns, engine=engine
        )

    # Constraints

    def get_table_constraints(
        self,
        catalog: str,
        database: str,
        table: str,
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> SQLAllTableConstraints:
        return self._constraints.get_table_constraints(
            catalog, database, table, valid_write_ids=valid_write_ids, table_id=table_id
        )

    def get_foreign_keys(
        self,
        catalog: str,
        parent: tuple[str | None, str | None],
        child: tuple[str | None, str | None],
        *,
        valid_write_ids: str | None = None,
        table_id: int | None = None,
    ) -> list[SQLForeignKey]:
        return self._constraints.get_foreign_keys(
            catalog, parent, child, valid_write_ids=valid_write_ids, table_id=table_id
        )

    def add_constraints(self, constraints: SQLAllTableConstraints) -> None:
        self._constraints.add_constraints(constraints)

    def drop_constraint(
        self, catalog: str, database: str, table: str, constraint: str, *, if_exists: bool = False
    ) -> None:
        self._constraints.drop_constraint(catalog, database, table, constraint, if_exists=if_exists)

    # Functions

    def get_function(self, catalog: str, database: str, function: str) -> Function:
        return self._functions.get_function(catalog, database, function)

    def get_function_names(self, catalog: str, database: str, pattern: str | None = None) -> list[str]:
        return self._functions.get_function_names(catalog, database, pattern)

    def get_functions(self, catalog: str, database: str | None = None, pattern: str | None = None) -> list[Function]:
        return self._functions.get_functions(catalog, database, pattern)

    def create_function(self, function: Function) -> None:
        self._functions.create_function(function)

    def alter_function(self, catalog: str, database: str, name: str, function: Function) -> None:
        self._functions.alter_function(catalog, database, name, function)

    def drop_function(self, catalog: str, database: str, name: str, *, if_exists: bool = False) -> None:
        self._functions.drop_function(catalog, database, name, if_exists=if_exists)
