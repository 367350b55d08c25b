"""Column statistics written: replaced, merged, deleted, with the parameters and events that go along.

Facts: `ObjectStore.updateTableColumnStatistics`, `updatePartitionColumnStatistics`, `HMSHandler.set_aggr_stats_for`
(Hive 4.0.1).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update

from hms_cache.store.bulk_writes import (
    IDS_IN_A_STATEMENT,
    ParameterChange,
    batches,
    change_parameters,
    delete_ids,
    in_ids,
    insert_rows,
    upsert_rows,
)
from hms_cache.store.context import StoreContext
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.database import features_of
from hms_cache.store.parameters import (
    accurate_columns,
    add_columns_to_accuracy,
    clear_column_statistics_accurate,
    set_basic_statistics_accurate,
)
from hms_cache.store.partition_additions import partitioned
from hms_cache.store.partition_reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partition_selection import select_partitions
from hms_cache.store.schema import (
    PART_COL_STATS,
    PARTITION_PARAMS,
    PARTITIONS,
    TAB_COL_STATS,
    TABLE_PARAMS,
    TBLS,
)
from hms_cache.store.statistics_merge import merge_into_new
from hms_cache.store.statistics_reads import StatisticsReader, of_engine
from hms_cache.store.statistics_rows import row_of_statistics
from hms_cache.store.statistics_validity import are_statistics_valid, check_statistics_change
from hms_cache.store.table_kinds import is_transactional
from hms_cache.store.table_rows import TableRow
from hms_cache.store.transactions import WriteTransaction
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsObj,
    MetaException,
    NoSuchObjectException,
    Table,
)


@dataclass(frozen=True, slots=True)
class StatisticsWrite:
    """Who writes: the write id and the snapshot of a transaction's writer; both None for all others."""

    write_id: int | None = None
    valid_write_ids: str | None = None

    @property
    def event_write_id(self) -> int:
        """As events and messages have it: -1 for none."""
        return self.write_id if self.write_id is not None and self.write_id > 0 else -1


def prepared(statistics: ColumnStatistics, table: Table, now_s: int) -> ColumnStatistics:
    """A copy with names as stored, and made now."""
    own = copy.deepcopy(statistics)
    own.engine = own.engine or "hive"
    own.statsDesc.catName, own.statsDesc.dbName = table.catName, table.dbName
    own.statsDesc.tableName = table.tableName
    own.statsDesc.lastAnalyzed = now_s
    for one in own.statsObj or ():
        one.colName, one.colType = one.colName.lower(), one.colType.lower()
    return own


def normalized_partition_name(name: str) -> str:
    """The name with its keys in lower case (`HMSHandler.lowerCaseConvertPartName`)."""
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in parts)


def _check_columns(table: Table, columns: Iterable[str], *others: Sequence[Any] | None) -> None:
    known = {field.name.lower() for fields in (table.sd.cols, *others) for field in fields or ()}
    for column in columns:
        if column not in known:
            raise MetaException(f"Column {column} doesn't exist in table {table.tableName} in database {table.dbName}")


# Tables


def write_table_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: ColumnStatistics,
    writer: StatisticsWrite,
) -> None:
    """Replaces the statistics of the columns named, marks them as accurate, logs the event."""
    table = row.table
    own = prepared(statistics, table, context.now_s())
    columns = [one.colName for one in own.statsObj]
    _check_columns(table, columns)
    connection, features = transaction.connection, features_of(transaction.connection)
    identity = {
        "TBL_ID": row.table_id,
        "CAT_NAME": table.catName,
        "DB_NAME": table.dbName,
        "TABLE_NAME": table.tableName,
    }
    rows = [
        row_of_statistics(one, engine=own.engine, last_analyzed_s=own.statsDesc.lastAnalyzed, identity=identity)
        for one in own.statsObj
    ]
    delete_table_statistics(context, transaction, row.table_id, columns, own.engine)
    ids = transaction.ids("MTableColumnStatistics", len(rows))
    insert_rows(
        connection,
        TAB_COL_STATS,
        [features.writable(TAB_COL_STATS, {"CS_ID": cs_id, **values}) for cs_id, values in zip(ids, rows, strict=True)],
    )
    before = dict(table.parameters or {})
    after = _parameters_after(table, before, columns, table.writeId, writer)
    change_parameters(connection, TABLE_PARAMS, "TBL_ID", [ParameterChange(row.table_id, before, after)])
    if is_transactional(table):
        _store_table_write_id(transaction, row, writer)
    table.parameters = after
    transaction.append_event(
        context.messages.build_update_table_column_statistics(
            table, own, write_id=writer.event_write_id, parameters=after
        )
    )


def _store_table_write_id(transaction: WriteTransaction, row: TableRow, writer: StatisticsWrite) -> None:
    row.table.writeId = writer.event_write_id
    if features_of(transaction.connection).has(TBLS.c.WRITE_ID):
        transaction.connection.execute(
            update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(WRITE_ID=row.table.writeId)
        )


def _parameters_after(
    table: Table, before: Mapping[str, str], columns: Sequence[str], stored_write_id: int, writer: StatisticsWrite
) -> dict[str, str]:
    """The columns count as accurate from now on; for a transactional table only if the writer's snapshot allows it."""
    after = dict(before)
    add_columns_to_accuracy(after, columns)
    if is_transactional(table):
        check_statistics_change(
            f"{table.dbName}.{table.tableName}",
            before,
            after,
            writer.write_id,
            writer.valid_write_ids,
            is_column_change=True,
        )
        if not are_statistics_valid(after, stored_write_id, writer.valid_write_ids, is_complete_writer=True):
            set_basic_statistics_accurate(after, False)
    return dict(sorted(after.items()))


def delete_table_statistics(
    context: StoreContext, transaction: WriteTransaction, table_id: int, columns: Sequence[str], engine: str
) -> int:
    """Deletes statistics of these columns, of all for an empty list; returns how many there were."""
    statement = delete(TAB_COL_STATS).where(
        TAB_COL_STATS.c.TBL_ID == table_id,
        of_engine(TAB_COL_STATS, features_of(transaction.connection), engine),
    )
    if columns:
        statement = statement.where(TAB_COL_STATS.c.COLUMN_NAME.in_(list(columns)))
    return transaction.connection.execute(statement, {"engine": engine}).rowcount


def merge_table_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: ColumnStatistics,
    writer: StatisticsWrite,
) -> None:
    """Merges into what is stored, as far as that is accurate; columns that are not marked so stay as they are.

    Where a transaction's snapshot does not allow to use what is stored, all claims of accuracy are taken back.
    """
    table = row.table
    own = prepared(statistics, table, context.now_s())
    parameters = table.parameters or {}
    reader = StatisticsReader(context, transaction.connection, bit_vectors=True, histograms=True)
    columns = [one.colName for one in own.statsObj]
    old, _ = reader.of_table(row.table_id, columns, own.engine)
    valid = writer.valid_write_ids is None or not is_transactional(table)
    if old and not (valid or are_statistics_valid(parameters, table.writeId, writer.valid_write_ids)):
        after = _without_claims(parameters)
        change_parameters(
            transaction.connection, TABLE_PARAMS, "TBL_ID", [ParameterChange(row.table_id, parameters, after)]
        )
        before_image = copy.copy(table)
        before_image.parameters = dict(parameters)
        table.parameters, table.writeId = after, writer.event_write_id
        transaction.connection.execute(update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(WRITE_ID=table.writeId))
        transaction.append_event(
            context.messages.build_alter_table(before_image, table, write_id=writer.event_write_id)
        )
        return
    own.statsObj = _merged(own.statsObj, old, accurate_columns(parameters))
    if own.statsObj:
        write_table_statistics(context, transaction, row, own, writer)


def _without_claims(parameters: Mapping[str, str]) -> dict[str, str]:
    after = dict(parameters)
    clear_column_statistics_accurate(after)
    set_basic_statistics_accurate(after, False)
    return after


def _merged(
    new: Sequence[ColumnStatisticsObj], old: Iterable[ColumnStatisticsObj], accurate: frozenset[str]
) -> list[ColumnStatisticsObj]:
    by_column = {one.colName: one for one in old}
    return [
        merge_into_new(one, by_column[one.colName]) if one.colName in by_column else one
        for one in new
        if one.colName in accurate
    ]


# Partitions


def write_partition_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: Sequence[ColumnStatistics],
    writer: StatisticsWrite,
) -> None:
    """Replaces the statistics of the columns named in each of the partitions, one event per partition.

    A fixed number of statements per some thousand partitions. Raises NoSuchObjectException for a partition that does
    not exist.
    """
    by_name = _by_partition(context, row.table, statistics)
    rows = _partition_rows(context, transaction, row, list(by_name))
    if len(rows) != len(by_name):
        raise NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
    _write_partitions(context, transaction, row, rows, by_name, writer)


def _by_partition(
    context: StoreContext, table: Table, statistics: Sequence[ColumnStatistics]
) -> dict[str, ColumnStatistics]:
    """The statistics by partition; those of one partition that come more than once are merged, as Hive does."""
    found: dict[str, ColumnStatistics] = {}
    now_s = context.now_s()
    for one in statistics:
        own = prepared(one, table, now_s)
        name = normalized_partition_name(own.statsDesc.partName or "")
        own.statsDesc.partName = name
        known = found.get(name)
        if known is not None:
            older = {each.colName: each for each in known.statsObj}
            own.statsObj = [
                merge_into_new(each, older[each.colName]) if each.colName in older else each for each in own.statsObj
            ]
        found[name] = own
    return found


def _partition_rows(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, names: Sequence[str]
) -> PartitionRows:
    header = partitioned(row)
    selected = select_partitions(
        transaction.connection, header, ByNames(tuple(names)), settings=context.settings, is_write=True
    )
    return read_partition_rows(transaction.connection, header, selected)


def _write_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    rows: PartitionRows,
    by_name: Mapping[str, ColumnStatistics],
    writer: StatisticsWrite,
) -> None:
    table, features = row.table, features_of(transaction.connection)
    new_rows: list[dict[str, Any]] = []
    parameter_changes: list[ParameterChange] = []
    written: dict[tuple[int, str, str], None] = {}
    for index, name in enumerate(rows.names):
        own = by_name[name]
        part_id = rows.part_ids[index]
        columns = [one.colName for one in own.statsObj]
        number = rows.template_numbers[index]
        _check_columns(table, columns, None if number is None else rows.templates[number].cols)
        identity = {
            "PART_ID": part_id,
            "CAT_NAME": table.catName,
            "DB_NAME": table.dbName,
            "TABLE_NAME": table.tableName,
            "PARTITION_NAME": name,
        }
        for one in own.statsObj:
            new_rows.append(
                row_of_statistics(one, engine=own.engine, last_analyzed_s=own.statsDesc.lastAnalyzed, identity=identity)
            )
            written[(part_id, own.engine, one.colName)] = None
        before = rows.parameters[index]
        after = _parameters_after(table, before, columns, rows.write_ids[index], writer)
        parameter_changes.append(ParameterChange(part_id, before, after))
        transaction.append_event(
            context.messages.build_update_partition_column_statistics(
                table, rows.values(index), own, write_id=writer.event_write_id, parameters=after
            )
        )
    _delete_written(context, transaction, rows.part_ids, written)
    ids = transaction.ids("MPartitionColumnStatistics", len(new_rows))
    insert_rows(
        transaction.connection,
        PART_COL_STATS,
        [
            features.writable(PART_COL_STATS, {"CS_ID": cs_id, **values})
            for cs_id, values in zip(ids, new_rows, strict=True)
        ],
    )
    change_parameters(transaction.connection, PARTITION_PARAMS, "PART_ID", parameter_changes)
    if is_transactional(table):
        _store_write_ids(transaction, rows, writer.event_write_id)


def _store_write_ids(transaction: WriteTransaction, rows: PartitionRows, write_id: int) -> None:
    if not features_of(transaction.connection).has(PARTITIONS.c.WRITE_ID):
        return
    upsert_rows(
        transaction.connection,
        PARTITIONS,
        [
            {
                "PART_ID": part_id,
                "CREATE_TIME": rows.create_times[index],
                "LAST_ACCESS_TIME": rows.last_access_times[index],
                "WRITE_ID": write_id,
            }
            for index, part_id in enumerate(rows.part_ids)
        ],
    )


def _delete_written(
    context: StoreContext,
    transaction: WriteTransaction,
    part_ids: Sequence[int],
    written: Mapping[tuple[int, str, str], None],
) -> None:
    """Deletes the rows that are written anew."""
    features = features_of(transaction.connection)
    statistics = PART_COL_STATS.c
    engine = features.column(statistics.ENGINE, "hive")
    statement = select(statistics.CS_ID, statistics.PART_ID, engine, statistics.COLUMN_NAME).where(
        in_ids(statistics.PART_ID)
    )
    old = [
        cs_id
        for batch in batches(sorted(part_ids), IDS_IN_A_STATEMENT)
        for cs_id, part_id, who, column in transaction.connection.execute(statement, {"ids": list(batch)})
        if (part_id, who, column) in written
    ]
    if old:
        delete_ids(transaction.connection, statistics.CS_ID, old)


def delete_partition_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    part_ids: Sequence[int],
    columns: Sequence[str],
    engine: str,
) -> set[int]:
    """Deletes statistics of these columns, of all for an empty list; returns the partitions that had any."""
    statistics = PART_COL_STATS.c
    statement = select(statistics.CS_ID, statistics.PART_ID, statistics.COLUMN_NAME).where(
        in_ids(statistics.PART_ID),
        of_engine(PART_COL_STATS, features_of(transaction.connection), engine),
    )
    had: set[int] = set()
    doomed: list[int] = []
    for batch in batches(sorted(part_ids), IDS_IN_A_STATEMENT):
        for cs_id, part_id, column in transaction.connection.execute(statement, {"ids": list(batch), "engine": engine}):
            if not columns or column in columns:
                had.add(part_id)
                doomed.append(cs_id)
    if doomed:
        delete_ids(transaction.connection, statistics.CS_ID, doomed)
    return had


def merge_partition_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: Sequence[ColumnStatistics],
    writer: StatisticsWrite,
) -> None:
    """As `merge_table_statistics` for partitions."""
    table = row.table
    by_name = _by_partition(context, table, statistics)
    rows = _partition_rows(context, transaction, row, list(by_name))
    if len(rows) != len(by_name):
        raise NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
    reader = StatisticsReader(context, transaction.connection, bit_vectors=True, histograms=True)
    old: dict[str, list[ColumnStatisticsObj]] = {}
    engines = {own.engine for own in by_name.values()}
    columns = {one.colName for own in by_name.values() for one in own.statsObj}
    for engine in sorted(engines):
        names = [name for name, own in by_name.items() if own.engine == engine]
        for name, found, _ in reader.of_partitions(partitioned(row), names, columns, engine):
            old.setdefault(name, []).append(found)
    outdated: list[int] = []
    for index, name in enumerate(rows.names):
        own, parameters = by_name[name], rows.parameters[index]
        if (
            name in old
            and is_transactional(table)
            and writer.valid_write_ids is not None
            and not are_statistics_valid(parameters, rows.write_ids[index], writer.valid_write_ids)
        ):
            own.statsObj = []
            outdated.append(index)
        else:
            own.statsObj = _merged(own.statsObj, old.get(name, ()), accurate_columns(parameters))
    kept = [index for index, name in enumerate(rows.names) if by_name[name].statsObj]
    if kept:
        _write_partitions(context, transaction, row, _some_rows(rows, kept), by_name, writer)
    if outdated:
        _take_claims_back(context, transaction, row, _some_rows(rows, outdated), writer)


def _some_rows(rows: PartitionRows, indexes: Sequence[int]) -> PartitionRows:
    empty = {new: rows.empty_values[old] for new, old in enumerate(indexes) if old in rows.empty_values}
    return PartitionRows(
        rows.table,
        [rows.part_ids[index] for index in indexes],
        [rows.names[index] for index in indexes],
        [rows.create_times[index] for index in indexes],
        [rows.last_access_times[index] for index in indexes],
        [rows.write_ids[index] for index in indexes],
        [rows.sd_ids[index] for index in indexes],
        [rows.locations[index] for index in indexes],
        [rows.template_numbers[index] for index in indexes],
        rows.templates,
        rows.column_descriptor_ids,
        [rows.parameters[index] for index in indexes],
        empty,
    )


def _take_claims_back(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, rows: PartitionRows, writer: StatisticsWrite
) -> None:
    """What is stored is of transactions that the writer cannot see: nothing counts as accurate any more."""
    befores = partitions_of_rows(rows)
    afters = [copy.copy(partition) for partition in befores]
    for partition in afters:
        partition.parameters = _without_claims(partition.parameters)
        partition.writeId = writer.event_write_id
    change_parameters(
        transaction.connection,
        PARTITION_PARAMS,
        "PART_ID",
        [
            ParameterChange(part_id, before.parameters, after.parameters)
            for part_id, before, after in zip(rows.part_ids, befores, afters, strict=True)
        ],
    )
    _store_write_ids(transaction, rows, writer.event_write_id)
    for event in context.messages.build_alter_partition_each(
        row.table, list(zip(befores, afters, strict=True)), write_id=writer.event_write_id
    ):
        transaction.append_event(event)
