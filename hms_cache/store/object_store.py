"""`ObjectStore`: reads and writes of the metastore database. Each entity has its own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, func, select

from hms_cache.metadata.name_ranges import NameRange
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_log import LogHead
from hms_cache.store.contract.catalogs import CatalogReads
from hms_cache.store.contract.constraints import ConstraintReads
from hms_cache.store.contract.databases import DatabaseReads
from hms_cache.store.contract.functions import FunctionReads
from hms_cache.store.contract.metadata import MetadataReads, MetadataWrites
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.databases.catalog_store import Catalogs
from hms_cache.store.databases.database_store import Databases
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of, read_log_end
from hms_cache.store.engine.log_sessions import head_plan, last_event_id
from hms_cache.store.engine.read_plans import Plan, combine_with_next, execute_plan, forget_waiting, side_by_side
from hms_cache.store.engine.work_units import run_again_if_lost, run_read
from hms_cache.store.objects.constraints import Constraints
from hms_cache.store.objects.functions import Functions
from hms_cache.store.partition_store import PartitionWriter, StoredPartitions
from hms_cache.store.partitions.pages import count_partitions, read_partition_pages
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.reads import PartitionRows, few_partitions_plan, named_partitions_plan
from hms_cache.store.partitions.selection import name_of_values
from hms_cache.store.partitions.table_guesses import TableGuesses
from hms_cache.store.partitions.windows import read_partition_window
from hms_cache.store.rows.table_rows import table_plan
from hms_cache.store.schema import TBLS
from hms_cache.store.snapshots import PartitionWindow, Snapshot, StatisticsOfColumn, StoreReads
from hms_cache.store.statistics.statistics_store import Statistics
from hms_cache.store.tables.table_store import StoredTables
from hms_cache.store.tables.table_writer import TableWriter
from hms_cache.store.transactions.snapshots import open_txns_response, read_snapshot
from hms_cache.store.write_ids.valid_write_ids import valid_write_ids_of
from hms_cache.thrift_gen.hive_metastore.ttypes import Table, TableMeta
from hms_cache.txn import ValidTxnList

T = TypeVar("T")


class ObjectStore:
    """Both directions of the contract, over one database. Thread-safe; has no state except its parts."""

    def __init__(self, context: StoreContext) -> None:
        catalogs, databases, functions = Catalogs(context), Databases(context), Functions(context)
        statistics, constraints = Statistics(context), Constraints(context)
        self.reads = ObjectReads(context, catalogs, databases, statistics, constraints, functions)
        self.writes = MetadataWrites(
            catalogs, databases, TableWriter(context), PartitionWriter(context), statistics, constraints, functions
        )


class ObjectReads(StoreReads):
    """`StoreReads` over the database. The contract describes the methods."""

    def __init__(
        self,
        context: StoreContext,
        catalogs: CatalogReads,
        databases: DatabaseReads,
        statistics: Statistics,
        constraints: ConstraintReads,
        functions: FunctionReads,
    ) -> None:
        """See `ObjectStore`."""
        self._context = context
        self._open_txn_timeout_ms = context.settings.transactions.open_timeout_ms
        self._statistics = statistics
        self.catalogs = catalogs
        self.databases = databases
        self.tables = self._tables = StoredTables(context, statistics.read_of_table)
        self._table_guesses = TableGuesses()
        self.partitions = StoredPartitions(context, self._table_guesses)
        self.statistics = statistics
        self.constraints = constraints
        self.functions = functions

    @contextmanager
    def snapshot(self) -> Iterator[Callable[[], Snapshot]]:
        database = self._context.database
        with database.snapshot() as connection:
            if database.is_sqlite:
                shown = Snapshot(last_event_id(connection), database.file_history().server_identity)
                yield lambda: shown
                return
            head = combine_with_next(connection, lambda: head_plan(connection, database.history_text))
            try:
                yield lambda: Snapshot(head().last_event_id, head().history.server_identity)
            finally:
                forget_waiting(connection)

    def in_one_snapshot(self, read: Callable[[MetadataReads], T]) -> T:
        def begin() -> T:
            with self.snapshot():
                return read(self)

        return run_again_if_lost(self._context.database, begin)

    def record_other_answer(self, event_id: int | None = None) -> None:
        """Does nothing: every read shows what is committed when it begins."""

    def read_partition_pages(self, table: TableName) -> Iterator[PartitionRows]:
        return read_partition_pages(self._context, table)

    def read_partition_window(
        self, table: TableName, within: NameRange, around: str, most: int
    ) -> PartitionWindow | None:
        found = read_partition_window(self._context, table, within, around, most)
        return PartitionWindow(*found) if found is not None else None

    def count_partitions(self, table: TableName, most: int) -> int:
        return count_partitions(self._context, self._table_guesses, table, most)

    def read_table_with_partitions(
        self, table: TableName, values: Sequence[Sequence[str]] | None
    ) -> tuple[Table, PartitionRows]:
        def read(connection: Connection) -> tuple[Table, PartitionRows]:
            def find(header: PartitionedTable) -> Plan[PartitionRows]:
                if values is None:
                    return few_partitions_plan(connection, header)
                names = ByNames(tuple(name_of_values(header, one) for one in values))
                return named_partitions_plan(connection, header, names, self._context)

            row, (_, rows) = execute_plan(
                connection,
                side_by_side(table_plan(connection, *table), self._table_guesses.with_table(table, find)),
            )
            return row.table, rows

        return run_read(self._context.database, read)

    def read_column_statistics(
        self, table: TableName, partition_names: Sequence[str] | None, columns: Sequence[str], *, engine: str = "hive"
    ) -> list[StatisticsOfColumn]:
        return self._statistics.read_column_statistics(table, partition_names, columns, engine=engine)

    def read_meta_of_database(self, database: DatabaseName) -> list[TableMeta]:
        return self._tables.read_meta_of_database(database)

    def get_write_id_tag(self, table: TableName) -> str | None:
        key = table.database, table.table
        if table.catalog != DEFAULT_CATALOG or any(":" in name for name in key):
            return None

        def read(connection: Connection) -> str | None:
            if not features_of(connection).has_transaction_lock_table:
                # schemas before Hive 4 record committed transactions differently
                return None
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
