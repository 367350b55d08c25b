"""Parameters that replication sets on databases, tables and partitions, in the transaction of another change.

Hive sets them by SQL beside COMMIT_TXN and ABORT_TXN and logs no event for them (4.0.1, `TxnUtils.updateReplId`,
`AbortTxnsFunction`). Here each changed object gets the event of an ordinary alter, so that every server of the set sees
the new value (P4). A replica that reads the log does not apply these values: the event of a database leaves them out
(`replication_properties`), and REPL LOAD itself logs such events for tables and partitions when it sets `repl.last.id`
by an alter.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.bulk_writes import ParameterChange, change_parameters
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.reads import partitions_of_rows, read_partition_rows
from hms_cache.store.partitions.selection import SelectedPartitions, partitions_by_name
from hms_cache.store.replicated_writes import replicated_writes
from hms_cache.store.rows.database_rows import DatabaseRow, lock_database, lock_databases
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import DATABASE_PARAMS, PARTITION_PARAMS, TABLE_PARAMS
from hms_cache.store.transactions.context import ReplicationMarks
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.store.transactions.write_notifications import add_write_notifications
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    MetaException,
    Partition,
    ReplLastIdInfo,
    Table,
    WriteEventInfo,
)

LAST_REPLICATED_ID_KEY = "repl.last.id"
"""Parameter: the last event of the source that has been applied to the object."""

REPLICATION_INCOMPATIBLE_KEY = "repl.incompatible"
"""Database parameter that stops incremental replication after one of its transactions was aborted here."""

_Owner = TypeVar("_Owner", Database, Table, Partition)


class LoggedMarks(ReplicationMarks):
    """Sets these parameters and logs an event for each object. Thread-safe."""

    def __init__(self, messages: MessageBuilder) -> None:
        self._messages = messages

    def set_last_replicated_id(self, transaction: WriteTransaction, info: ReplLastIdInfo) -> None:
        """See `ReplicationMarks`."""
        set_last_replicated_id(transaction, self._messages, info)

    def mark_incompatible(self, transaction: WriteTransaction, databases: Collection[str]) -> None:
        """See `ReplicationMarks`."""
        mark_incompatible(transaction, self._messages, databases)

    def record_writes(
        self, transaction: WriteTransaction, txn_id: int, infos: Sequence[WriteEventInfo], now_s: int
    ) -> None:
        """See `ReplicationMarks`."""
        add_write_notifications(transaction, replicated_writes(transaction.connection, txn_id, infos), now_s)


def set_last_replicated_id(transaction: WriteTransaction, messages: MessageBuilder, info: ReplLastIdInfo) -> None:
    """Sets `repl.last.id` on a database, and, if they are named, on its table and that table's partitions.

    Appends an ALTER_DATABASE, ALTER_TABLE or ALTER_PARTITION event for each object whose value changes. Raises
    MetaException if the database or table does not exist. Partitions that do not exist are skipped, as in Hive.
    """
    connection = transaction.connection
    catalog, name = normalize_catalog(info.catalog or DEFAULT_CATALOG), plain_database(info.database)
    mark = {LAST_REPLICATED_ID_KEY: str(info.lastReplId)}
    database = lock_database(connection, catalog, name)
    if database is None:
        raise MetaException(f"DB with name {name} does not exist in catalog {catalog}")
    _mark_databases(transaction, messages, [database], mark)
    if not info.table:
        return
    table = plain_table(info.table)
    row = lock_table(connection, catalog, name, table)
    if row is None:
        raise MetaException(f"Table with name {table} does not exist in db {name}")
    for before, after in _write(connection, TABLE_PARAMS, "TBL_ID", [(row.table_id, row.table)], mark):
        transaction.append_event(messages.build_alter_table(before, after))
    if info.partitionList:
        _mark_partitions(transaction, messages, row, info.partitionList, mark)


def mark_incompatible(transaction: WriteTransaction, messages: MessageBuilder, databases: Collection[str]) -> None:
    """Sets `repl.incompatible` on these databases of the default catalog, with an ALTER_DATABASE event for each."""
    mark = {REPLICATION_INCOMPATIBLE_KEY: "true"}
    found = lock_databases(transaction.connection, DEFAULT_CATALOG, databases)
    _mark_databases(transaction, messages, sorted(found.values(), key=lambda one: one.database_id), mark)


def _mark_databases(
    transaction: WriteTransaction, messages: MessageBuilder, rows: Sequence[DatabaseRow], mark: Mapping[str, str]
) -> None:
    owners = [(row.database_id, row.database) for row in rows]
    for before, after in _write(transaction.connection, DATABASE_PARAMS, "DB_ID", owners, mark):
        transaction.append_event(messages.build_alter_database(before, after))


def _mark_partitions(
    transaction: WriteTransaction,
    messages: MessageBuilder,
    row: TableRow,
    names: Sequence[str],
    mark: Mapping[str, str],
) -> None:
    connection, header = transaction.connection, partitioned(row)
    found = partitions_by_name(connection, header, names)
    selected = SelectedPartitions([part_id for part_id, _ in found], [name for _, name in found])
    rows = read_partition_rows(connection, header, selected)
    owners = list(zip(rows.part_ids, partitions_of_rows(rows), strict=True))
    changes = _write(connection, PARTITION_PARAMS, "PART_ID", owners, mark)
    for event in messages.build_alter_partition_each(row.table, changes):
        transaction.append_event(event)


def _write(
    connection: Connection, table: Any, owner_column: str, owners: Sequence[tuple[int, _Owner]], mark: Mapping[str, str]
) -> list[tuple[_Owner, _Owner]]:
    """Sets these parameters on objects that have other values, and returns (before, after) of each changed object."""
    changes: list[ParameterChange] = []
    images: list[tuple[_Owner, _Owner]] = []
    for owner_id, before in owners:
        parameters = before.parameters or {}
        after = copy.copy(before)
        after.parameters = dict(sorted({**parameters, **mark}.items()))
        if after.parameters != parameters:
            changes.append(ParameterChange(owner_id, parameters, after.parameters))
            images.append((before, after))
    change_parameters(connection, table, owner_column, changes)
    return images
