"""Partitions: `PartitionReads` and `PartitionWrites` over the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sqlalchemy import Connection

from hms_cache.expressions.partition_orders import parse_order, sort_by_values, sort_key
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract import partitions as contract
from hms_cache.store.contract.environment import ANY_WRITER, NO_OPTIONS, EnvironmentOptions, Writer
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.read_plans import Plan, execute_plan
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.partitions.additions import add_partitions, like_table
from hms_cache.store.partitions.alterations import alter_partitions, rename_partition
from hms_cache.store.partitions.drops import drop_partitions
from hms_cache.store.partitions.encoded_rows import encoded_partitions
from hms_cache.store.partitions.exchange import exchange_partitions
from hms_cache.store.partitions.joined_names import names_of_all_plan
from hms_cache.store.partitions.markers import is_partition_marked, mark_partition
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.privileges import read_partition_privileges
from hms_cache.store.partitions.projections import project_partitions
from hms_cache.store.partitions.reads import PartitionRows, partitions_plan
from hms_cache.store.partitions.selection import (
    SelectedPartitions,
    count_plan,
    ids_and_names_plan,
    read_values,
    selection_plan,
)
from hms_cache.store.partitions.table_guesses import TableGuesses
from hms_cache.store.rows.parameters import set_basic_statistics_accurate
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid
from hms_cache.store.rows.table_locks import lock_table, share_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.statistics.of_partitions import write_added_statistics
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionValuesRow,
)


class StoredPartitions(contract.PartitionReads):
    """`PartitionReads` over the database."""

    def __init__(self, context: StoreContext, table_guesses: TableGuesses | None = None) -> None:
        self._context = context
        self._table_guesses = table_guesses or TableGuesses()

    def get_partition(
        self,
        table: TableName,
        values: contract.KeyValues,
        *,
        grantee: contract.Grantee | None = None,
        version: ReadVersion = ANY_VERSION,
    ) -> Partition:
        """See `PartitionReads.get_partition`."""
        query = contract.PartitionQuery(table, contract.ByValues(tuple(values)), version=version)
        answer = self.get_partitions(query, grantee=grantee)
        if not answer.partitions:
            raise NoSuchObjectException(f"partition values=[{', '.join(values)}]")
        return answer.partitions[0]

    def get_partitions(
        self,
        query: contract.PartitionQuery,
        *,
        grantee: contract.Grantee | None = None,
        projection: contract.PartitionProjection | None = None,
    ) -> contract.PartitionAnswer:
        """See `PartitionReads.get_partitions`."""

        def read(connection: Connection) -> contract.PartitionAnswer:
            def find(header: PartitionedTable) -> Plan[tuple[PartitionRows, bool]]:
                return partitions_plan(
                    connection, header, query.selection, max_parts=query.max_parts, context=self._context
                )

            header, (rows, has_unknown) = execute_plan(connection, self._table_guesses.with_table(query.table, find))
            partitions = encoded_partitions(rows)
            privileges = None
            if grantee is not None and partitions:
                privileges = read_partition_privileges(connection, header.table_id, rows.part_ids, grantee)
            if privileges is not None:
                for partition, granted in zip(partitions, privileges, strict=True):
                    partition.privileges = granted
            check_partition_statistics(connection, header, partitions, query.version.valid_write_ids)
            return contract.PartitionAnswer(partitions, has_unknown)

        answer = run_read(self._context.database, read)
        if projection is not None:
            return contract.PartitionAnswer(project_partitions(answer.partitions, projection), answer.has_unknown)
        return answer

    def get_partition_names(self, query: contract.PartitionQuery, *, order: str | None = None) -> list[str]:
        """See `PartitionReads.get_partition_names`."""
        max_parts = query.max_parts

        def read(connection: Connection) -> list[str]:
            def find(
                header: PartitionedTable,
            ) -> Plan[tuple[list[tuple[int, bool]], SelectedPartitions, list[tuple[int, str]]]]:
                ordered_by = parse_order(order, len(header.keys))
                selected = yield from self._select(connection, header, query.selection, -1 if ordered_by else max_parts)
                if ordered_by:
                    return ordered_by, selected, (yield from ids_and_names_plan(header, selected))
                if selected.names is None:
                    names = yield from names_of_all_plan(connection, header)
                    return ordered_by, SelectedPartitions(None, names, selected.has_unknown), []
                return ordered_by, selected, []

            with_table = self._table_guesses.with_table(query.table, find)
            header, (ordered_by, selected, pairs) = execute_plan(connection, with_table)
            if selected.has_unknown:
                raise MetaException("The partition expression cannot be evaluated exactly, so its names are not known")
            if ordered_by:
                values = read_values(connection, header, pairs)
                names = sort_by_values([name for _, name in pairs], values, header.keys, ordered_by)
                return names[:max_parts] if max_parts >= 0 else names
            return selected.names or []

        return run_read(self._context.database, read)

    def get_partition_count(self, query: contract.PartitionQuery) -> int:
        """See `PartitionReads.get_partition_count`."""

        def read(connection: Connection) -> int:
            def find(header: PartitionedTable) -> Plan[int]:
                selected = yield from self._select(connection, header, query.selection, -1)
                if selected.part_ids is None:
                    return (yield from count_plan(header))
                return len(selected.part_ids)

            _, count = execute_plan(connection, self._table_guesses.with_table(query.table, find))
            return count

        return run_read(self._context.database, read)

    def get_partition_values(
        self, query: contract.PartitionQuery, keys: Sequence[str], *, distinct: bool = True, ascending: bool = True
    ) -> list[PartitionValuesRow]:
        """See `PartitionReads.get_partition_values`."""

        def read(connection: Connection) -> tuple[PartitionedTable, list[list[str]]]:
            def find(header: PartitionedTable) -> Plan[list[tuple[int, str]]]:
                selected = yield from self._select(connection, header, query.selection, -1)
                return (yield from ids_and_names_plan(header, selected))

            header, pairs = execute_plan(connection, self._table_guesses.with_table(query.table, find))
            return header, read_values(connection, header, pairs)

        header, values = run_read(self._context.database, read)
        positions = [_key_position(header, key) for key in keys]
        rows = [tuple(row[position] for position in positions) for row in values]
        if distinct:
            rows = list(dict.fromkeys(rows))
        rows.sort(
            key=lambda row: [sort_key(header.keys[p], text) for p, text in zip(positions, row, strict=True)],
            reverse=not ascending,
        )
        # Hive treats 0 as no limit here, too.
        return [PartitionValuesRow(row=list(row)) for row in (rows[: query.max_parts] if query.max_parts > 0 else rows)]

    def is_partition_marked_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> bool:
        """See `PartitionReads.is_partition_marked_for_event`."""
        return run_read(
            self._context.database,
            lambda connection: is_partition_marked(self._context, connection, table, values, event_type),
        )

    def _select(
        self, connection: Connection, table: PartitionedTable, selection: contract.PartitionSelection, max_parts: int
    ) -> Plan[SelectedPartitions]:
        """`is_write`: `metastore.limit.partition.request` limits returned partitions, but not names and counts."""
        return selection_plan(connection, table, selection, max_parts=max_parts, context=self._context, is_write=True)


def check_partition_statistics(
    connection: Connection, table: PartitionedTable, partitions: Sequence[Partition], valid_write_ids: str | None
) -> None:
    """Sets `isStatsCompliant` of partitions of a transactional table, for a reader with this write-id list.

    If the reader must not trust the statistics, the returned parameters do not claim that they are accurate. Without a
    list nothing is changed. Runs one statement per 500 different write ids. Source: `ObjectStore.getPartition` (Hive
    4.0.1).
    """
    if valid_write_ids is None or not table.is_transactional or not partitions:
        return
    aborted = aborted_write_ids(
        connection, (table.catalog, table.database, table.name), {partition.writeId for partition in partitions}
    )
    for partition in partitions:
        check_statistics_of_partition(partition, valid_write_ids, aborted)


def check_statistics_of_partition(partition: Partition, valid_write_ids: str, aborted: Collection[int] = ()) -> None:
    """Like `check_partition_statistics`, for one partition; `aborted` are the write ids known to be aborted."""
    parameters = partition.parameters or {}
    partition.isStatsCompliant = are_statistics_valid(parameters, partition.writeId, valid_write_ids, aborted=aborted)
    if not partition.isStatsCompliant:
        partition.parameters = dict(parameters)
        set_basic_statistics_accurate(partition.parameters, False)


def _key_position(table: PartitionedTable, key: str) -> int:
    for position, (name, _) in enumerate(table.keys):
        if name.lower() == key.lower():
            return position
    raise MetaException(f"Partition column {key} is not a partition key of {table.database}.{table.name}")


class PartitionWriter(contract.PartitionWrites):
    """`PartitionWrites` over the database."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context

    def add_partitions(
        self,
        table: TableName,
        partitions: Sequence[Partition],
        *,
        if_not_exists: bool = False,
        from_table: contract.FromTable = contract.FromTable.NOTHING,
        writer: Writer = ANY_WRITER,
    ) -> list[Partition]:
        """See `PartitionWrites.add_partitions`."""

        def add(transaction: WriteTransaction) -> list[Partition]:
            # Partitions that exist may get new statistics, which another call may write at the same time.
            found = (lock_table if brings_statistics else share_table)(transaction.connection, *table)
            if found is None:
                raise InvalidObjectException(f"Unable to add partitions because {table.as_sent} does not exist")
            added = add_partitions(
                self._context,
                transaction,
                found,
                like_table(found.table, partitions, from_table),
                if_not_exists=if_not_exists,
                writer=writer,
                of=table,
            )
            write_added_statistics(self._context, transaction, found, partitions)
            return added

        if not partitions:
            return []
        brings_statistics = any(each.colStats is not None for each in partitions)
        count = len(partitions)
        ids = {"MPartition": count, "MStorageDescriptor": count, "MSerDeInfo": count}
        columns = sum(len(each.colStats.statsObj or ()) for each in partitions if each.colStats is not None)
        if columns:
            ids["MPartitionColumnStatistics"] = columns
        return run_write(self._context.database, add, ids=ids)

    def drop_partitions(
        self,
        table: TableName,
        selection: contract.PartitionSelection | contract.ByAnyExpression,
        *,
        delete_data: bool,
        if_exists: bool = False,
        options: EnvironmentOptions = NO_OPTIONS,
    ) -> list[Partition]:
        """See `PartitionWrites.drop_partitions`."""

        def drop(transaction: WriteTransaction) -> list[Partition]:
            return drop_partitions(
                self._context,
                transaction,
                require_locked_table(transaction.connection, table),
                selection,
                delete_data=delete_data,
                if_exists=if_exists,
                options=options,
            )

        if isinstance(selection, contract.ByNames) and not selection.names:
            return []
        return run_write(self._context.database, drop)

    def alter_partitions(
        self, table: TableName, partitions: Sequence[Partition], *, writer: Writer = ANY_WRITER
    ) -> None:
        """See `PartitionWrites.alter_partitions`."""

        def alter(transaction: WriteTransaction, found: TableRow) -> None:
            alter_partitions(self._context, transaction, found, partitions, writer=writer)

        if partitions:
            self._alter(table, alter)

    def rename_partition(
        self, table: TableName, old_values: Sequence[str], partition: Partition, *, writer: Writer = ANY_WRITER
    ) -> None:
        """See `PartitionWrites.rename_partition`."""

        def rename(transaction: WriteTransaction, found: TableRow) -> None:
            rename_partition(self._context, transaction, found, old_values, partition, writer=writer, name=table)

        self._alter(table, rename)

    def _alter(self, table: TableName, change: Callable[[WriteTransaction, TableRow], None]) -> None:
        """Runs `change` with the table's row locked. Raises InvalidOperationException if the table does not exist."""

        def alter(transaction: WriteTransaction) -> None:
            found = lock_table(transaction.connection, *table)
            if found is None:
                raise InvalidOperationException(contract.NO_TABLE_TO_ALTER)
            change(transaction, found)

        run_write(self._context.database, alter)

    def exchange_partitions(
        self, partition_specification: dict[str, str], source: TableName, destination: TableName
    ) -> list[Partition]:
        """See `PartitionWrites.exchange_partitions`."""
        return run_write(
            self._context.database,
            lambda transaction: exchange_partitions(
                self._context, transaction, partition_specification, source, destination
            ),
        )

    def mark_partition_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> None:
        """See `PartitionWrites.mark_partition_for_event`."""
        run_write(
            self._context.database,
            lambda transaction: mark_partition(self._context, transaction, table, values, event_type),
            ids={"MPartitionEvent": 1},
        )


def require_locked_table(connection: Connection, table: TableName) -> TableRow:
    """Locks the row of the table and returns the whole table. Raises NoSuchObjectException."""
    found = lock_table(connection, *table)
    if found is None:
        raise NoSuchObjectException(f"{table.as_sent} table not found")
    return found
