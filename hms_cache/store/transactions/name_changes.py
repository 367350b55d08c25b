"""Renames and drops in the transaction tables, which identify tables and partitions by name.

Hive does this in a transaction of its own before the metadata's commit (`AcidEventListener`); if that commit fails, the
names no longer match. Here the store calls these functions in the transaction that changes the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, and_, delete, literal, not_, select, update

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.text_conditions import one_of_texts, same_text
from hms_cache.store.schema import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_WRITE_ID,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    WRITE_SET,
)
from hms_cache.store.transactions.names import (
    MAX_PARTITION_CHARACTERS,
    partition_escaped_again,
    plain_database,
    plain_partition,
    plain_table,
)
from hms_cache.store.transactions.queued_drops import (
    NO_WRITE_ID,
    has_table_drops,
    is_partition_drop,
    is_table_drop,
)
from hms_cache.values import frozen


@frozen
class _NameColumns:
    """The columns in which a table of the schema stores names."""

    database: Column[Any]
    table: Column[Any]
    partition: Column[Any] | None = None

    def condition(self, name: ObjectName) -> Any:
        condition = self.database == name.database
        if name.table is not None:
            condition &= self.table == name.table
        if name.partition is not None and self.partition is not None:
            condition &= same_text(self.partition, name.partition)
        return condition


@frozen
class ObjectName:
    """A database, a table, or a partition (`k=v/…`). Only partition values are case-sensitive."""

    database: str
    table: str | None = None
    partition: str | None = None

    def plain(self) -> ObjectName:
        """The name as stored in the transaction tables."""
        return ObjectName(
            plain_database(self.database),
            None if self.table is None else plain_table(self.table),
            None if self.partition is None else plain_partition(self.partition),
        )


def _columns(table: Any, prefix: str) -> _NameColumns:
    return _NameColumns(table.c[f"{prefix}_DATABASE"], table.c[f"{prefix}_TABLE"], table.c.get(f"{prefix}_PARTITION"))


_COMPONENTS = _columns(TXN_COMPONENTS, "TC")
_COMPLETED = _columns(COMPLETED_TXN_COMPONENTS, "CTC")
_QUEUE = _columns(COMPACTION_QUEUE, "CQ")
_HISTORY = _columns(COMPLETED_COMPACTIONS, "CC")
_METRICS = _columns(COMPACTION_METRICS_CACHE, "CMC")
_WRITE_SET = _columns(WRITE_SET, "WS")
_WRITE_IDS = _columns(TXN_TO_WRITE_ID, "T2W")
_NEXT_WRITE_ID = _columns(NEXT_WRITE_ID, "NWI")
_READ_WRITE_IDS = _columns(MIN_HISTORY_WRITE_ID, "MH")
_LOCKS = _NameColumns(HIVE_LOCKS.c.HL_DB, HIVE_LOCKS.c.HL_TABLE, HIVE_LOCKS.c.HL_PARTITION)
_REBUILDS = _NameColumns(MATERIALIZATION_REBUILD_LOCKS.c.MRL_DB_NAME, MATERIALIZATION_REBUILD_LOCKS.c.MRL_TBL_NAME)

# In the store's lock order: write ids after the rows of transactions.
_OF_PARTITIONS = (_COMPONENTS, _COMPLETED, _LOCKS, _QUEUE, _HISTORY, _WRITE_SET, _METRICS)
_OF_TABLES = (_READ_WRITE_IDS, _REBUILDS, _NEXT_WRITE_ID, _WRITE_IDS)


def rename_in_transaction_tables(
    connection: Connection,
    old: ObjectName,
    new: ObjectName,
    *,
    catalog: str = DEFAULT_CATALOG,
    has_min_history_write_id: bool = True,
) -> None:
    """Renames a table or partition in all transaction tables, including rows of open transactions and locks.

    For transactional tables; without rows nothing changes. Only the default catalog has transactions. Rows left by a
    dropped table of the new name are deleted first; its directories that wait for a cleaner stay queued.
    """
    if catalog != DEFAULT_CATALOG:
        return
    before, after = old.plain(), new.plain()
    features = features_of(connection)
    if before != after and has_table_drops(features):
        _spare_aborted_writes(connection, after)
    tables = _OF_PARTITIONS if before.partition is not None else (*_OF_PARTITIONS, *_OF_TABLES)
    for columns in tables:
        if columns is _READ_WRITE_IDS and not has_min_history_write_id:
            continue
        if not features.has(columns.database.table):
            continue
        if columns in (_NEXT_WRITE_ID, _WRITE_IDS) and (before.database, before.table) != (after.database, after.table):
            connection.execute(delete(columns.database.table).where(columns.condition(after)))
        values = {columns.database: after.database, columns.table: after.table}
        if columns.partition is not None and after.partition is not None:
            values[columns.partition] = after.partition
        if columns.partition is not None and before.partition is not None and after.partition is not None:
            _rename_other_spelling(connection, columns, before, after)
        connection.execute(update(columns.database.table).where(columns.condition(before)).values(values))


def _spare_aborted_writes(connection: Connection, name: ObjectName) -> None:
    """Removes the write id from entries for a soft drop of this name, which another table or partition now gets.
    Otherwise the cleaner would delete the name's records of writes up to it, especially aborted ones
    (`_waits_for_a_cleaner`), which now belong to the other object. Those of the dropped object were deleted with it."""
    condition = _QUEUE.condition(name) & (is_table_drop() if name.partition is None else is_partition_drop())
    connection.execute(update(COMPACTION_QUEUE).where(condition).values(CQ_HIGHEST_WRITE_ID=NO_WRITE_ID))


_OWNERS: Final = {HIVE_LOCKS: HIVE_LOCKS.c.HL_LOCK_EXT_ID, WRITE_SET: WRITE_SET.c.WS_TXNID}
"""Tables that may contain a partition under its other spelling, too (`partition_escaped_again`), and the column of the
owner of a row."""

_OWNERS_IN_A_STATEMENT = 1_000


def _rename_other_spelling(
    connection: Connection, columns: _NameColumns, before: ObjectName, after: ObjectName
) -> None:
    """Renames rows with the other spelling of a partition that is about to be renamed, but only if the same owner has a
    row with the name itself: otherwise the other spelling may be the name of another partition."""
    owner, again = _OWNERS.get(columns.database.table), partition_escaped_again(before.partition or "")
    if owner is None or again is None:
        return
    other = replace(before, partition=again)
    new = partition_escaped_again(after.partition or "")
    owners = connection.execute(select(owner).where(columns.condition(before)).distinct()).scalars().all()
    for some in batches(owners, _OWNERS_IN_A_STATEMENT):
        condition = columns.condition(other) & owner.in_(some)
        if new is None or len(new) > MAX_PARTITION_CHARACTERS:
            connection.execute(delete(owner.table).where(condition))
        else:
            connection.execute(update(owner.table).where(condition).values({columns.partition: new}))


_PARTITIONS_IN_A_STATEMENT = 5_000
"""Names in one statement: below SQLite's 32,766 variables, and some 500 KB of SQL with long names."""


def drop_partitions_from_transaction_tables(
    connection: Connection, table: tuple[str, str], partitions: Sequence[str], *, catalog: str = DEFAULT_CATALOG
) -> None:
    """Deletes rows of dropped partitions (names `k=v/…`) of a table (database, name). One statement per transaction
    table and 5,000 names. Locks and write sets are left to their owners and to housekeeping."""
    if catalog != DEFAULT_CATALOG:
        return
    whole = ObjectName(*table).plain()
    names = [plain_partition(name) for name in partitions]
    features = features_of(connection)
    for columns in (_COMPONENTS, _COMPLETED, _QUEUE, _HISTORY, _METRICS):
        if columns.partition is None or not features.has(columns.database.table):
            continue
        for some in batches(names, _PARTITIONS_IN_A_STATEMENT):
            condition = columns.condition(whole) & one_of_texts(columns.partition, some)
            connection.execute(delete(columns.database.table).where(condition))


def drop_from_transaction_tables(
    connection: Connection,
    name: ObjectName,
    *,
    catalog: str = DEFAULT_CATALOG,
    keep_write_ids: bool = False,
    keep_table_drops: bool = False,
    dropping_txn_id: int = 0,
) -> None:
    """Deletes rows of a dropped database, table or partition. Locks and write sets are left to their owners and to
    housekeeping.

    `keep_write_ids`: for a soft drop, whose files a later compaction removes; it is queued under `dropping_txn_id`.
    `keep_table_drops`: earlier soft drops stay queued (`is_table_drop`), and the name's write ids are kept. Only the
    default catalog has transactions.
    """
    if catalog != DEFAULT_CATALOG:
        return
    dropped = name.plain()
    features = features_of(connection)
    for columns in (_COMPONENTS, _COMPLETED, _QUEUE, _HISTORY, _METRICS):
        if not features.has(columns.database.table):
            continue
        condition = columns.condition(dropped)
        if columns is _QUEUE and dropping_txn_id > 0:
            owner = COMPACTION_QUEUE.c.CQ_TXN_ID
            condition &= owner.is_(None) | (owner != dropping_txn_id)
        if columns is _QUEUE and keep_table_drops and has_table_drops(features):
            condition &= not_(is_table_drop())
        connection.execute(delete(columns.database.table).where(condition))
    if dropped.partition is None and not keep_write_ids:
        for columns in (_NEXT_WRITE_ID, _WRITE_IDS):
            if not features.has(columns.database.table):
                continue
            condition = columns.condition(dropped)
            if keep_table_drops and has_table_drops(features):
                condition &= not_(_waits_for_a_cleaner(columns))
            connection.execute(delete(columns.database.table).where(condition))


def _waits_for_a_cleaner(columns: _NameColumns) -> ColumnElement[bool]:
    """A condition: a table of this name was dropped softly and is still queued.

    After cleaning, cleaners delete the name's records of aborted writes up to the entry's write id (Hive's
    `MarkCleanedFunction`). A new table of this name must not have write ids below that.
    """
    is_of_name = and_(_QUEUE.database == columns.database, _QUEUE.table == columns.table)
    return select(literal(1)).where(is_of_name, is_table_drop()).correlate(columns.database.table).exists()
