"""Common parts of writing column statistics of tables and partitions: names, accuracy, merging.

Facts: `ObjectStore.updateTableColumnStatistics`, `updatePartitionColumnStatistics`, `HMSHandler.set_aggr_stats_for`
(Hive 4.0.1).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from hms_cache.metadata.statistics_merge import merge_into_new
from hms_cache.metadata.statistics_values import is_bounded, with_finite_values
from hms_cache.store.contract.environment import ANY_WRITER, Writer
from hms_cache.store.rows.parameters import (
    add_columns_to_accuracy,
    clear_column_statistics_accurate,
    set_basic_statistics_accurate,
    without_claims_about_columns,
)
from hms_cache.store.rows.statistics_validity import aborted_write_ids, are_statistics_valid, check_statistics_change
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatistics, ColumnStatisticsObj, MetaException, Table
from hms_cache.txn.valid_write_ids import ValidWriteIdList


def writer_of_new_object(database: str, table: str, write_id: int | None) -> Writer:
    """The writer of statistics that were sent with a new table or partition, as by a replication.

    Its snapshot is constructed: it is only known that the object's own write id was valid in the source
    (`HMSHandler.create_table_core`, `add_partitions_core`).
    """
    if write_id is None or write_id < 1:
        return ANY_WRITER
    return Writer(write_id, ValidWriteIdList(f"{database}.{table}", write_id).to_text())


def prepared(statistics: ColumnStatistics, table: Table, now_s: int) -> ColumnStatistics:
    """A copy with names as stored, and the current time."""
    description = copy.copy(statistics.statsDesc)
    description.catName, description.dbName = table.catName, table.dbName
    description.tableName = table.tableName
    description.lastAnalyzed = now_s
    own = copy.copy(statistics)
    own.engine = own.engine or "hive"
    own.statsDesc = description
    # The figures themselves are not copied. If a column is named twice, also in different letter case, the last one
    # counts, since it has one row.
    by_column = {one.colName.lower(): one for one in statistics.statsObj or ()}
    own.statsObj = [ColumnStatisticsObj(name, one.colType.lower(), one.statsData) for name, one in by_column.items()]
    return own


def remove_unbounded(own: ColumnStatistics) -> frozenset[str]:
    """Removes values that not every database can store (`with_finite_values`); returns the columns that have lost a
    bound.

    Their statistics are not exact: if a column contains an infinity, `max()` does not follow from its other values.
    """
    unbounded = frozenset(one.colName for one in own.statsObj if not is_bounded(one))
    own.statsObj = [with_finite_values(one) for one in own.statsObj]
    return unbounded


def normalized_partition_name(name: str) -> str:
    """The name with its keys in lower case (`HMSHandler.lowerCaseConvertPartName`), except escaped characters in them.

    Hive also converts the escape sequences in a key, and finds the partition nevertheless, by its values.
    """
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{_in_lower_case(key)}{equals}{value}" for key, equals, value in parts)


def _in_lower_case(key: str) -> str:
    return _ESCAPE.sub(lambda found: found.group().upper(), key.lower()) if "%" in key else key.lower()


_ESCAPE = re.compile("%[0-9a-f]{2}")


def check_columns(table: Table, columns: Iterable[str], *others: Sequence[Any] | None) -> None:
    """Raises an exception unless the columns are the table's or among the `others`."""
    own = table.sd.cols if table.sd is not None else None
    known = {field.name.lower() for fields in (own, *others) for field in fields or ()}
    for column in columns:
        if column not in known:
            raise MetaException(f"Column {column} doesn't exist in table {table.tableName} in database {table.dbName}")


def parameters_after(
    table: Table,
    before: Mapping[str, str],
    columns: Sequence[str],
    stored_write_id: int,
    writer: Writer,
    aborted: Collection[int] = (),
    unbounded: Collection[str] = (),
) -> dict[str, str]:
    """The parameters with the claim that the columns are accurate, except `unbounded` ones. For a transactional table
    this requires that the writer's snapshot permits it and that the stored statistics are not of an aborted write id;
    otherwise no claim is kept, since the writer's own id would make it valid."""
    after = dict(without_claims_about_columns(dict(before), unbounded)) if unbounded else dict(before)
    exact = [column for column in columns if column not in unbounded]
    if exact or not unbounded:
        add_columns_to_accuracy(after, exact)
    if is_transactional(table):
        check_statistics_change(
            f"{table.dbName}.{table.tableName}",
            before,
            after,
            writer.write_id,
            writer.valid_write_ids,
            is_column_change=True,
        )
        if not are_statistics_valid(
            after, stored_write_id, writer.valid_write_ids, is_complete_writer=True, aborted=aborted
        ):
            set_basic_statistics_accurate(after, False)
    return dict(sorted(after.items()))


def aborted_writers(connection: Connection, table: Table, write_ids: Iterable[int]) -> frozenset[int]:
    """Those of the write ids under which statistics of the table are stored that were aborted. At most one statement
    per 500 ids; none if the table is not transactional."""
    if not is_transactional(table):
        return frozenset()
    return aborted_write_ids(connection, (table.catName, table.dbName, table.tableName), write_ids)


def without_claims(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without any claim of accuracy."""
    after = dict(parameters)
    clear_column_statistics_accurate(after)
    set_basic_statistics_accurate(after, False)
    return after


def merged(
    new: Sequence[ColumnStatisticsObj], old: Iterable[ColumnStatisticsObj], accurate: frozenset[str]
) -> list[ColumnStatisticsObj]:
    """The new statistics, merged with the old ones of the same columns; without columns that are not accurate."""
    by_column = {one.colName: one for one in old}
    return [
        merge_into_new(one, by_column[one.colName]) if one.colName in by_column else one
        for one in new
        if one.colName in accurate
    ]
