"""Column statistics: `StatisticsReads` and `StatisticsWrites` over the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from hms_cache.metadata.column_types import column_names
from hms_cache.metadata.names import DEFAULT_DATABASE, normalize_identifier, qualified
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.metadata.statistics_merge import AggregationRules, aggregate
from hms_cache.store.contract.environment import ANY_WRITER, Writer
from hms_cache.store.contract.statistics import StatisticsQuery, StatisticsReads, StatisticsWrites
from hms_cache.store.engine.context import PartOfStore, StoreContext
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.partitioned_tables import PartitionedTable, find_partitioned_table
from hms_cache.store.partitions.selection import all_names, partitions_by_name
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow, read_table
from hms_cache.store.snapshots import StatisticsOfColumn
from hms_cache.store.statistics.of_partitions import (
    delete_partition_statistics,
    merge_partition_statistics,
    withdraw_claims_of_partitions,
    write_partition_statistics,
)
from hms_cache.store.statistics.of_tables import (
    delete_table_statistics,
    merge_table_statistics,
    withdraw_claims_of_table,
    write_table_statistics,
)
from hms_cache.store.statistics.reads import (
    StatisticsReader,
    partitions_with_valid_statistics,
    statistics_of_partitions,
)
from hms_cache.store.statistics.writes import normalized_partition_name
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AggrStats,
    ColumnStatistics,
    ColumnStatisticsDesc,
    InvalidInputException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
)

DEFAULT_ENGINE = "hive"


class Statistics(PartOfStore, StatisticsReads, StatisticsWrites):
    """Reads and writes of column statistics."""

    # Reads

    def get_table_column_statistics(self, query: StatisticsQuery) -> ColumnStatistics:
        def read(connection: Connection) -> ColumnStatistics:
            row = _found(read_table(connection, *query.table), query.table)
            return self._of_table(connection, row, query.columns, query.engine, query.version.valid_write_ids)

        return run_read(self._database, read)

    def read_of_table(
        self, connection: Connection, row: TableRow, engine: str, valid_write_ids: str | None
    ) -> ColumnStatistics | None:
        """Statistics of all columns of a table that was read already; None if there are none. One statement."""
        found = self._of_table(connection, row, column_names(row.table), engine, valid_write_ids)
        return found if found.statsObj else None

    def _of_table(
        self, connection: Connection, row: TableRow, columns: Sequence[str], engine: str, valid_write_ids: str | None
    ) -> ColumnStatistics:
        table = row.table
        reader = StatisticsReader(self._context, connection)
        found, last_analyzed_s = (
            reader.of_table(row.table_id, columns, engine or DEFAULT_ENGINE) if columns else ([], 0)
        )
        description = ColumnStatisticsDesc(
            isTblLevel=True,
            dbName=table.dbName,
            tableName=table.tableName,
            lastAnalyzed=last_analyzed_s,
            catName=table.catName,
        )
        statistics = ColumnStatistics(statsDesc=description, statsObj=found, engine=engine or DEFAULT_ENGINE)
        if valid_write_ids is not None:
            statistics.isStatsCompliant = not is_transactional(table) or are_statistics_valid(
                table.parameters or {},
                table.writeId,
                valid_write_ids,
                aborted=aborted_write_ids(connection, (table.catName, table.dbName, table.tableName), [table.writeId]),
            )
        return statistics

    def get_partition_column_statistics(
        self, query: StatisticsQuery, partition_names: Sequence[str]
    ) -> list[ColumnStatistics]:
        columns, engine, valid_write_ids = query.columns, query.engine or DEFAULT_ENGINE, query.version.valid_write_ids
        names = [normalized_partition_name(name) for name in partition_names]

        def read(connection: Connection) -> list[ColumnStatistics]:
            header = find_partitioned_table(connection, query.table)
            if not names or not columns:
                return []
            found = StatisticsReader(self._context, connection).of_partitions(header, names, columns, engine)
            answer = statistics_of_partitions(found, TableName(header.catalog, header.database, header.name), engine)
            if valid_write_ids is not None and answer:
                valid = partitions_with_valid_statistics(
                    connection, header, [one.statsDesc.partName for one in answer], valid_write_ids
                )
                for one in answer:
                    one.isStatsCompliant = one.statsDesc.partName in valid
            return answer

        return run_read(self._database, read)

    def read_column_statistics(
        self,
        table: TableName,
        partition_names: Sequence[str] | None,
        columns: Sequence[str],
        *,
        engine: str = DEFAULT_ENGINE,
    ) -> list[StatisticsOfColumn]:
        """See `StoreReads.read_column_statistics`."""
        engine = engine or DEFAULT_ENGINE

        def read(connection: Connection) -> list[StatisticsOfColumn]:
            reader = StatisticsReader(self._context, connection)
            if partition_names is None:
                row = _found(read_table(connection, *table), table)
                found = reader.of_table_each(row.table_id, columns, engine) if columns else []
                return [StatisticsOfColumn("", statistics, made_s) for statistics, made_s in found]
            header = find_partitioned_table(connection, table)
            if not partition_names or not columns:
                return []
            names = [normalized_partition_name(name) for name in partition_names]
            return [StatisticsOfColumn(*one) for one in reader.of_partitions(header, names, columns, engine)]

        return run_read(self._database, read)

    def get_aggregate_statistics(self, query: StatisticsQuery, partition_names: Sequence[str]) -> AggrStats:
        columns, valid_write_ids = query.columns, query.version.valid_write_ids
        names = [normalized_partition_name(name) for name in partition_names]
        rules = aggregation_rules(self._context)

        def read(connection: Connection) -> AggrStats:
            header = find_partitioned_table(connection, query.table)
            if valid_write_ids is not None and names:
                valid = partitions_with_valid_statistics(connection, header, names, valid_write_ids)
                if any(name not in valid for name in self._existing(connection, header, names)):
                    return AggrStats(colStats=[], partsFound=0, isStatsCompliant=False)
            if not names or not columns:
                return AggrStats(colStats=[], partsFound=0)
            found = StatisticsReader(self._context, connection).of_partitions(
                header, names, columns, query.engine or DEFAULT_ENGINE
            )
            return aggregate(names, ((name, one) for name, one, _ in found), columns, rules)

        return run_read(self._database, read)

    @staticmethod
    def _existing(connection: Connection, header: PartitionedTable, names: Sequence[str]) -> list[str]:
        return [name for _, name in partitions_by_name(connection, header, names)]

    # Writes

    def update_table_column_statistics(self, statistics: ColumnStatistics, *, writer: Writer = ANY_WRITER) -> None:
        self._write_table(statistics, writer, is_merge=False)

    def _write_table(self, statistics: ColumnStatistics, writer: Writer, *, is_merge: bool) -> None:
        name = _described_table(statistics)

        def write(transaction: WriteTransaction) -> None:
            row = _found(lock_table(transaction.connection, *name), name)
            action = merge_table_statistics if is_merge else write_table_statistics
            action(self._context, transaction, row, statistics, writer)

        run_write(self._database, write, ids={"MTableColumnStatistics": len(statistics.statsObj)})

    def update_partition_column_statistics(
        self, statistics: Sequence[ColumnStatistics], *, writer: Writer = ANY_WRITER
    ) -> None:
        self._write_partitions(statistics, writer, is_merge=False)

    def _write_partitions(self, statistics: Sequence[ColumnStatistics], writer: Writer, *, is_merge: bool) -> None:
        if not statistics:
            return
        tables = {_described_table(one) for one in statistics}
        if len(tables) != 1:
            raise MetaException("Statistics of partitions of several tables in one request")
        [name] = tables

        def write(transaction: WriteTransaction) -> None:
            row = _found(lock_table(transaction.connection, *name), name)
            action = merge_partition_statistics if is_merge else write_partition_statistics
            action(self._context, transaction, row, statistics, writer)

        count = sum(len(one.statsObj) for one in statistics)
        run_write(self._database, write, ids={"MPartitionColumnStatistics": count})

    def merge_column_statistics(self, statistics: Sequence[ColumnStatistics], *, writer: Writer = ANY_WRITER) -> None:
        if not statistics:
            return
        if statistics[0].statsDesc is not None and statistics[0].statsDesc.isTblLevel:
            if len(statistics) != 1:
                raise MetaException(
                    f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(statistics)}"
                )
            self._write_table(statistics[0], writer, is_merge=True)
        else:
            self._write_partitions(statistics, writer, is_merge=True)

    def delete_table_column_statistics(
        self, table: TableName, columns: Sequence[str] = (), *, engine: str | None = None
    ) -> None:
        def delete(transaction: WriteTransaction, row: TableRow, doomed: list[str]) -> None:
            if not self._delete_of_table(transaction, row, doomed, engine) and doomed:
                raise NoSuchObjectException(
                    f"Column stats doesn't exist for db={row.table.dbName} table={row.table.tableName}"
                    f" col={', '.join(doomed)}"
                )

        self._delete(table, columns, delete)

    def _delete(
        self,
        table: TableName,
        columns: Sequence[str],
        delete: Callable[[WriteTransaction, TableRow, list[str]], None],
    ) -> None:
        doomed = list(dict.fromkeys(normalize_identifier(column) for column in columns))

        def drop(transaction: WriteTransaction) -> None:
            delete(transaction, _deletable(transaction.connection, table), doomed)

        run_write(self._database, drop)

    def _delete_of_table(
        self, transaction: WriteTransaction, row: TableRow, doomed: list[str], engine: str | None
    ) -> bool:
        """Returns whether there were any. If not, nothing is changed and no event logged."""
        if not delete_table_statistics(transaction, row.table_id, doomed, engine):
            return False
        withdraw_claims_of_table(transaction, row, doomed)
        whole_or_columns: Sequence[str | None] = doomed or [None]
        for column in whole_or_columns:
            transaction.append_event(self._context.messages.build_delete_table_column_statistics(row.table, column))
        return True

    def delete_partition_column_statistics(
        self,
        table: TableName,
        partition_names: Sequence[str],
        columns: Sequence[str] = (),
        *,
        engine: str | None = None,
    ) -> None:
        names = [normalized_partition_name(name) for name in partition_names]

        def delete(transaction: WriteTransaction, row: TableRow, doomed: list[str]) -> None:
            found = partitions_by_name(transaction.connection, partitioned(row), names)
            part_ids = {name: part_id for part_id, name in found}
            for name in names:
                if name not in part_ids:
                    raise NoSuchObjectException(f"Partition {name} for which stats deletion is requested doesn't exist")
            had = self._delete_of_partitions(transaction, row, found, doomed, engine)
            table_name = qualified(row.table.catName, row.table.dbName, row.table.tableName)
            for name, part_id in part_ids.items() if doomed else ():
                if part_id not in had:
                    raise NoSuchObjectException(
                        f"Column stats doesn't exist for table={table_name} partition={name} col={', '.join(doomed)}"
                    )

        if names:
            self._delete(table, columns, delete)

    def _delete_of_partitions(
        self,
        transaction: WriteTransaction,
        row: TableRow,
        partitions: list[tuple[int, str]],
        doomed: list[str],
        engine: str | None,
    ) -> set[int]:
        """Returns those of these partitions (id, name) that had any. The others are not changed and get no event."""
        had = delete_partition_statistics(transaction, [part_id for part_id, _ in partitions], doomed, engine)
        withdraw_claims_of_partitions(transaction, sorted(had), doomed)
        whole_or_columns: Sequence[str | None] = doomed or [None]
        for part_id, name in partitions:
            for column in whole_or_columns if part_id in had else ():
                transaction.append_event(
                    self._context.messages.build_delete_partition_column_statistics(
                        row.table, name, values_of_name(name), column
                    )
                )
        return had

    def delete_column_statistics(
        self,
        table: TableName,
        partition_names: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        of_table: bool = False,
        engine: str | None = None,
    ) -> None:
        names = [normalized_partition_name(name) for name in partition_names]

        def delete(transaction: WriteTransaction, row: TableRow, doomed: list[str]) -> None:
            if of_table or not row.table.partitionKeys:
                self._delete_of_table(transaction, row, doomed, engine)
                return
            header = partitioned(row)
            if names:
                found = partitions_by_name(transaction.connection, header, names)
            else:
                found = all_names(transaction.connection, header)
            found.sort(key=lambda one: one[1])
            self._delete_of_partitions(transaction, row, found, doomed, engine)

        self._delete(table, columns, delete)


def aggregation_rules(context: StoreContext) -> AggregationRules:
    """How the settings require statistics to be aggregated. A cache uses the same rules."""
    settings = context.settings.catalog
    return AggregationRules(
        sketches=settings.statistics_sketches,
        histograms=settings.statistics_histograms,
        density_function=settings.statistics_density_function,
        distinct_tuner=settings.statistics_distinct_tuner,
    )


def _described_table(statistics: ColumnStatistics) -> TableName:
    """The table of the statistics. Raises InvalidObjectException, InvalidInputException."""
    description = statistics.statsDesc
    if description is None or statistics.statsObj is None:
        raise InvalidObjectException("Invalid column stats object")
    if not description.tableName:
        raise InvalidInputException("Table name is null.")
    return table_name(description.catName, description.dbName or DEFAULT_DATABASE, description.tableName)


def _deletable(connection: Connection, name: TableName) -> TableRow:
    """Locks and reads the table. Raises NoSuchObjectException, and MetaException if the table is transactional."""
    row = _found(lock_table(connection, *name), name)
    if is_transactional(row.table):
        raise MetaException("Cannot delete stats via this API for a transactional table")
    return row


def _found(row: TableRow | None, name: TableName) -> TableRow:
    if row is None:
        raise NoSuchObjectException(f"{name.as_sent} table not found")
    return row
