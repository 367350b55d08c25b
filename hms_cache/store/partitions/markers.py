"""Markers on partitions, such as "loading is done" (`markPartitionForEvent`).

Facts: `ObjectStore.markPartitionForEvent`, `isPartitionMarkedForEvent`, `getPartitionStr` (Hive 4.0.1). No event of the
notification log reports them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlalchemy import Connection, insert, select

from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.table_rows import TableRow, read_table
from hms_cache.store.schema import PARTITION_EVENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import InvalidPartitionException, UnknownTableException


def mark_partition(
    context: StoreContext, transaction: WriteTransaction, name: TableName, values: Mapping[str, str], event_type: int
) -> None:
    """Stores a marker. The partition need not exist."""
    row = _require(transaction.connection, name)
    transaction.connection.execute(
        insert(PARTITION_EVENTS).values(
            PART_NAME_ID=transaction.id("MPartitionEvent"),
            CAT_NAME=row.table.catName,
            DB_NAME=row.table.dbName,
            TBL_NAME=row.table.tableName,
            PARTITION_NAME=_marker_text(row, values),
            EVENT_TYPE=event_type,
            EVENT_TIME=int(context.clock.epoch_s() * 1000),
        )
    )


def is_partition_marked(
    context: StoreContext, connection: Connection, name: TableName, values: Mapping[str, str], event_type: int
) -> bool:
    """Whether a marker exists that has not expired (`events.marker_retention_s`)."""
    row = _require(connection, name)
    text = _marker_text(row, values)
    events = PARTITION_EVENTS.c
    retention_s = context.settings.events.marker_retention_s
    found = connection.execute(
        select(events.PARTITION_NAME).where(
            events.PARTITION_NAME == text,
            events.CAT_NAME == row.table.catName,
            events.DB_NAME == row.table.dbName,
            events.TBL_NAME == row.table.tableName,
            events.EVENT_TYPE == event_type,
            events.EVENT_TIME > (0 if math.isinf(retention_s) else (context.clock.epoch_s() - retention_s) * 1000),
        )
    ).scalars()
    return text in found.all()


def _require(connection: Connection, name: TableName) -> TableRow:
    row = read_table(connection, *name)
    if row is None:
        raise UnknownTableException(f"Table: {name.as_sent.table} is not found.")
    return row


def _marker_text(row: TableRow, values: Mapping[str, str]) -> str:
    """The values in key order, joined by commas as Hive stores them."""
    keys = [key.name for key in row.table.partitionKeys or ()]
    if len(keys) != len(values):
        raise InvalidPartitionException(
            f"Number of partition columns in table: {len(keys)} doesn't match with number of supplied partition "
            f"values: {len(values)}"
        )
    given = {name.lower(): value for name, value in values.items()}
    for key in keys:
        if key.lower() not in given:
            raise InvalidPartitionException(f"No partition value found for partition column: {key}")
    return ",".join(given[key.lower()] for key in keys)
