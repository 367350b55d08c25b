"""Writes column statistics of tables: replaces, merges and deletes them, with parameters and events.

Facts: `ObjectStore.updateTableColumnStatistics`, `updatePartitionColumnStatistics`, `HMSHandler.set_aggr_stats_for`
(Hive 4.0.1).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from sqlalchemy import delete, update

from hms_cache.batches import batches
from hms_cache.store.contract.environment import Writer
from hms_cache.store.engine.bulk_writes import ParameterChange, change_parameters, insert_rows
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.parameters import accurate_columns, without_claims_about_columns
from hms_cache.store.rows.statistics_rows import row_of_statistics
from hms_cache.store.rows.statistics_validity import are_statistics_valid
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import TAB_COL_STATS, TABLE_PARAMS, TBLS
from hms_cache.store.statistics.reads import StatisticsReader, of_engine
from hms_cache.store.statistics.writes import (
    aborted_writers,
    check_columns,
    merged,
    parameters_after,
    prepared,
    remove_unbounded,
    without_claims,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics


def write_table_statistics(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, statistics: ColumnStatistics, writer: Writer
) -> None:
    """Replaces the statistics of the named columns, marks them as accurate, and logs the event."""
    table = row.table
    own = prepared(statistics, table, context.now_s())
    unbounded = remove_unbounded(own)
    columns = [one.colName for one in own.statsObj]
    check_columns(table, columns)
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
    if columns:  # an empty list would mean all columns
        delete_table_statistics(transaction, row.table_id, columns, own.engine)
    ids = transaction.ids("MTableColumnStatistics", len(rows))
    insert_rows(
        connection,
        TAB_COL_STATS,
        [features.writable(TAB_COL_STATS, {"CS_ID": cs_id, **values}) for cs_id, values in zip(ids, rows, strict=True)],
    )
    before = dict(table.parameters or {})
    aborted = aborted_writers(connection, table, [table.writeId])
    after = parameters_after(table, before, columns, table.writeId, writer, aborted, unbounded)
    change_parameters(connection, TABLE_PARAMS, "TBL_ID", [ParameterChange(row.table_id, before, after)])
    if is_transactional(table):
        _store_table_write_id(transaction, row, writer)
    table.parameters = after
    transaction.append_event(
        context.messages.build_update_table_column_statistics(
            table, own, write_id=writer.event_write_id, parameters=after
        )
    )


def _store_table_write_id(transaction: WriteTransaction, row: TableRow, writer: Writer) -> None:
    row.table.writeId = writer.event_write_id
    if features_of(transaction.connection).has(TBLS.c.WRITE_ID):
        transaction.connection.execute(
            update(TBLS).where(TBLS.c.TBL_ID == row.table_id).values(WRITE_ID=row.table.writeId)
        )


_COLUMNS_IN_A_STATEMENT = 5_000


def delete_table_statistics(
    transaction: WriteTransaction, table_id: int, columns: Sequence[str], engine: str | None
) -> int:
    """Deletes statistics of these columns (an empty list: all) that `engine` has written (None: any); returns their
    number."""
    statement = delete(TAB_COL_STATS).where(TAB_COL_STATS.c.TBL_ID == table_id)
    if engine is not None:
        statement = statement.where(of_engine(TAB_COL_STATS, features_of(transaction.connection), engine))
    parameters = {} if engine is None else {"engine": engine}
    statements = (
        [statement]
        if not columns
        else [
            statement.where(TAB_COL_STATS.c.COLUMN_NAME.in_(some)) for some in batches(columns, _COLUMNS_IN_A_STATEMENT)
        ]
    )
    return sum(transaction.connection.execute(one, parameters).rowcount for one in statements)


def withdraw_claims_of_table(transaction: WriteTransaction, row: TableRow, columns: Sequence[str]) -> None:
    """Removes the claims about columns (none named: all) whose statistics were deleted.

    Hive keeps them (4.0.1, HIVE-28655). There is one claim for all engines, so it is removed with the statistics of
    any.
    """
    before = row.table.parameters or {}
    row.table.parameters = without_claims_about_columns(before, columns)
    change = ParameterChange(row.table_id, before, row.table.parameters)
    change_parameters(transaction.connection, TABLE_PARAMS, "TBL_ID", [change])


def merge_table_statistics(
    context: StoreContext, transaction: WriteTransaction, row: TableRow, statistics: ColumnStatistics, writer: Writer
) -> None:
    """Merges into the stored statistics, as far as these are accurate. Columns not marked as accurate are not changed.

    If the snapshot does not permit the use of the stored statistics, or they are of an aborted write id, all claims of
    accuracy are removed.
    """
    table = row.table
    own = prepared(statistics, table, context.now_s())
    parameters = table.parameters or {}
    reader = StatisticsReader(context, transaction.connection, whole=True)
    columns = [one.colName for one in own.statsObj]
    old, _ = reader.of_table(row.table_id, columns, own.engine)
    aborted = aborted_writers(transaction.connection, table, [table.writeId]) if old else frozenset()
    is_unchecked = writer.valid_write_ids is None or not is_transactional(table)
    valid = is_unchecked or are_statistics_valid(parameters, table.writeId, writer.valid_write_ids)
    if old and (aborted or not valid):
        after = without_claims(parameters)
        change_parameters(
            transaction.connection, TABLE_PARAMS, "TBL_ID", [ParameterChange(row.table_id, parameters, after)]
        )
        before_image = copy.copy(table)
        before_image.parameters = dict(parameters)
        table.parameters = after
        if writer.given_write_id is not None:  # without a write id they would count as valid for everybody
            _store_table_write_id(transaction, row, writer)
        transaction.append_event(
            context.messages.build_alter_table(before_image, table, write_id=writer.event_write_id)
        )
        return
    own.statsObj = merged(own.statsObj, old, accurate_columns(parameters))
    if own.statsObj:
        write_table_statistics(context, transaction, row, own, writer)
