"""Writes column statistics of partitions, in a number of statements independent of the number of partitions.

Facts: `ObjectStore.updateTableColumnStatistics`, `updatePartitionColumnStatistics`, `HMSHandler.set_aggr_stats_for`
(Hive 4.0.1).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from hms_cache.batches import batches
from hms_cache.metadata.partition_names import PartitionNaming, name_with_keys_in_order, values_for_keys
from hms_cache.metadata.statistics_merge import merge_into_new
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.environment import Writer
from hms_cache.store.contract.partitions import ByNames
from hms_cache.store.engine.bulk_writes import (
    IDS_IN_A_STATEMENT,
    ParameterChange,
    change_parameters,
    delete_ids,
    in_ids,
    insert_rows,
    upsert_rows,
)
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import PartitionRows, partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import select_for_write
from hms_cache.store.rows.parameters import COLUMN_STATS_ACCURATE, accurate_columns, without_claims_about_columns
from hms_cache.store.rows.statistics_rows import row_of_statistics
from hms_cache.store.rows.statistics_validity import are_statistics_valid
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PART_COL_STATS, PARTITION_PARAMS, PARTITIONS
from hms_cache.store.statistics.reads import StatisticsReader, of_engine
from hms_cache.store.statistics.writes import (
    aborted_writers,
    check_columns,
    merged,
    normalized_partition_name,
    parameters_after,
    prepared,
    remove_unbounded,
    without_claims,
    writer_of_new_object,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsObj,
    InvalidObjectException,
    NoSuchObjectException,
    Partition,
    Table,
)


def write_partition_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: Sequence[ColumnStatistics],
    writer: Writer,
) -> None:
    """Replaces the statistics of the named columns in each of the partitions, with one event per partition.

    A fixed number of statements per some thousand partitions. Raises NoSuchObjectException if a partition does not
    exist.
    """
    by_name, rows = _written(context, transaction, row, statistics)
    _write_partitions(context, transaction, row, rows, by_name, writer)


def write_added_statistics(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, partitions: Sequence[Partition]
) -> None:
    """Stores statistics that were sent together with new partitions, as replication does.

    Each partition has its own write id; statistics with the same write id are stored together.
    """
    by_write_id: dict[int, list[ColumnStatistics]] = {}
    naming = PartitionNaming([key.name for key in row.table.partitionKeys or ()])
    for partition in partitions:
        if partition.colStats is not None:
            own = copied(partition.colStats)
            if own.statsDesc is None or own.statsObj is None:
                raise InvalidObjectException("Invalid column stats object")
            own.statsDesc.partName = naming.name(partition.values)
            by_write_id.setdefault(max(partition.writeId or 0, 0), []).append(own)
    for write_id, statistics in by_write_id.items():
        writer = writer_of_new_object(row.table.dbName, row.table.tableName, write_id)
        write_partition_statistics(context, transaction, row, statistics, writer)


def _by_partition(
    context: StoreContext, table: Table, statistics: Sequence[ColumnStatistics]
) -> dict[str, ColumnStatistics]:
    """The statistics by partition. If a partition is given more than once, its statistics are merged, as in Hive."""
    found: dict[str, ColumnStatistics] = {}
    now_s = context.now_s()
    keys = [key.name for key in table.partitionKeys or ()]
    for one in statistics:
        own = prepared(one, table, now_s)
        name = name_with_keys_in_order(normalized_partition_name(own.statsDesc.partName or ""), keys)
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
    selected = select_for_write(transaction.connection, header, ByNames(tuple(names)), context)
    return read_partition_rows(transaction.connection, header, selected)


def _written(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, statistics: Sequence[ColumnStatistics]
) -> tuple[dict[str, ColumnStatistics], PartitionRows]:
    """The statistics by partition, and the partitions.

    Raises NoSuchObjectException if one does not exist, InvalidObjectException if its name lacks a key.
    """
    by_name = _by_partition(context, row.table, statistics)
    rows = _partition_rows(context, transaction, row, list(by_name))
    if len(rows) != len(by_name):
        for absent in sorted(by_name.keys() - set(rows.names)):
            values_for_keys(absent, [key.name for key in row.table.partitionKeys or ()])
        raise NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
    return by_name, rows


def _write_partitions(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    rows: PartitionRows,
    by_name: Mapping[str, ColumnStatistics],
    writer: Writer,
) -> None:
    table, features = row.table, features_of(transaction.connection)
    new_rows: list[dict[str, Any]] = []
    parameter_changes: list[ParameterChange] = []
    written: dict[tuple[int, str, str], None] = {}
    changed: list[tuple[Sequence[str], ColumnStatistics, Mapping[str, str] | None]] = []
    aborted = aborted_writers(transaction.connection, table, rows.write_ids)
    for index, name in enumerate(rows.names):
        own = by_name[name]
        unbounded = remove_unbounded(own)
        part_id = rows.part_ids[index]
        columns = [one.colName for one in own.statsObj]
        number = rows.template_numbers[index]
        check_columns(table, columns, None if number is None else rows.templates[number].cols)
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
        after = parameters_after(table, before, columns, rows.write_ids[index], writer, aborted, unbounded)
        parameter_changes.append(ParameterChange(part_id, before, after))
        changed.append((rows.values(index), own, after))
    for event in context.messages.build_update_partition_column_statistics_each(
        table, changed, write_id=writer.event_write_id
    ):
        transaction.append_event(event)
    _delete_written(transaction, rows.part_ids, written)
    ids = transaction.ids("MPartitionColumnStatistics", len(new_rows))
    # Columns that are null in all rows are left out of the INSERT.
    used = [name for name in new_rows[0] if any(one[name] is not None for one in new_rows)] if new_rows else []
    insert_rows(
        transaction.connection,
        PART_COL_STATS,
        [
            features.writable(PART_COL_STATS, {"CS_ID": cs_id, **{name: values[name] for name in used}})
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
    transaction: WriteTransaction, part_ids: Sequence[int], written: Mapping[tuple[int, str, str], None]
) -> None:
    """Deletes the rows that are about to be replaced."""
    features = features_of(transaction.connection)
    statistics = PART_COL_STATS.c
    engine = features.column(statistics.ENGINE, "hive")
    statement = select(statistics.CS_ID, statistics.PART_ID, engine, statistics.COLUMN_NAME).where(
        in_ids(statistics.PART_ID)
    )
    old = [
        cs_id
        for batch in batches(sorted(part_ids), IDS_IN_A_STATEMENT)
        for cs_id, part_id, engine, column in transaction.connection.execute(statement, {"ids": list(batch)})
        if (part_id, engine, column) in written
    ]
    if old:
        delete_ids(transaction.connection, statistics.CS_ID, old)


def delete_partition_statistics(
    transaction: WriteTransaction, part_ids: Sequence[int], columns: Sequence[str], engine: str | None
) -> set[int]:
    """Deletes statistics of these columns (an empty list: all) that `engine` has written (None: any); returns the
    partitions that had some."""
    statistics = PART_COL_STATS.c
    statement = select(statistics.CS_ID, statistics.PART_ID, statistics.COLUMN_NAME).where(in_ids(statistics.PART_ID))
    values: dict[str, Any] = {}
    if engine is not None:
        statement = statement.where(of_engine(PART_COL_STATS, features_of(transaction.connection), engine))
        values["engine"] = engine
    had: set[int] = set()
    doomed: list[int] = []
    requested = frozenset(columns)
    for batch in batches(sorted(part_ids), IDS_IN_A_STATEMENT):
        for cs_id, part_id, column in transaction.connection.execute(statement, {"ids": list(batch), **values}):
            if not requested or column in requested:
                had.add(part_id)
                doomed.append(cs_id)
    if doomed:
        delete_ids(transaction.connection, statistics.CS_ID, doomed)
    return had


def withdraw_claims_of_partitions(
    transaction: WriteTransaction, part_ids: Sequence[int], columns: Sequence[str]
) -> None:
    """Like `withdraw_claims_of_table`, for partitions."""
    parameters = PARTITION_PARAMS.c
    statement = select(parameters.PART_ID, parameters.PARAM_VALUE).where(
        in_ids(parameters.PART_ID), parameters.PARAM_KEY == COLUMN_STATS_ACCURATE
    )
    changes = []
    for batch in batches(sorted(part_ids), IDS_IN_A_STATEMENT):
        for part_id, text in transaction.connection.execute(statement, {"ids": list(batch)}):
            before = {COLUMN_STATS_ACCURATE: text}
            changes.append(ParameterChange(part_id, before, without_claims_about_columns(before, columns)))
    change_parameters(transaction.connection, PARTITION_PARAMS, "PART_ID", changes)


def merge_partition_statistics(
    context: StoreContext,
    transaction: WriteTransaction,
    row: TableRow,
    statistics: Sequence[ColumnStatistics],
    writer: Writer,
) -> None:
    """Like `merge_table_statistics`, for partitions."""
    table = row.table
    by_name, rows = _written(context, transaction, row, statistics)
    reader = StatisticsReader(context, transaction.connection, whole=True)
    old: dict[str, list[ColumnStatisticsObj]] = {}
    engines = {own.engine for own in by_name.values()}
    columns = {one.colName for own in by_name.values() for one in own.statsObj}
    for engine in sorted(engines):
        names = [name for name, own in by_name.items() if own.engine == engine]
        for name, found, _ in reader.of_partitions(partitioned(row), names, columns, engine):
            old.setdefault(name, []).append(found)
    aborted = aborted_writers(transaction.connection, table, rows.write_ids) if old else frozenset()
    is_unchecked = writer.valid_write_ids is None or not is_transactional(table)
    outdated: list[int] = []
    for index, name in enumerate(rows.names):
        own, parameters = by_name[name], rows.parameters[index]
        write_id = rows.write_ids[index]
        valid = is_unchecked or are_statistics_valid(parameters, write_id, writer.valid_write_ids)
        if name in old and (write_id in aborted or not valid):
            own.statsObj = []
            outdated.append(index)
        else:
            own.statsObj = merged(own.statsObj, old.get(name, ()), accurate_columns(parameters))
    kept = [index for index, name in enumerate(rows.names) if by_name[name].statsObj]
    if kept:
        _write_partitions(context, transaction, row, _some_rows(rows, kept), by_name, writer)
    if outdated:
        _withdraw_claims(context, transaction, row, _some_rows(rows, outdated), writer)


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


def _withdraw_claims(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, rows: PartitionRows, writer: Writer
) -> None:
    """The stored statistics are of transactions that the writer cannot see: removes all claims of accuracy."""
    befores = partitions_of_rows(rows)
    afters = [copy.copy(partition) for partition in befores]
    for partition in afters:
        partition.parameters = without_claims(partition.parameters)
        if writer.given_write_id is not None:  # without a write id they would count as valid for everybody
            partition.writeId = writer.given_write_id
    change_parameters(
        transaction.connection,
        PARTITION_PARAMS,
        "PART_ID",
        [
            ParameterChange(part_id, before.parameters, after.parameters)
            for part_id, before, after in zip(rows.part_ids, befores, afters, strict=True)
        ],
    )
    if writer.given_write_id is not None:
        _store_write_ids(transaction, rows, writer.given_write_id)
    for event in context.messages.build_alter_partition_each(
        row.table, list(zip(befores, afters, strict=True)), write_id=writer.event_write_id
    ):
        transaction.append_event(event)
