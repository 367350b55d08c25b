"""Events of transactions, write ids and compactions."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events.base import Event
from hms_cache.notifications.events.tables import PartitionsEvent
from hms_cache.notifications.scope import EVERYTHING, PartitionValues, Scope, scope_of_partitions
from hms_cache.values import frozen


@frozen
class TransactionsOpened(Event):
    """OPEN_TXN: a range, a set, or ``None`` if the message does not tell."""

    transaction_ids: Collection[int] | None = None

    @property
    def scope(self) -> Scope:
        if self.transaction_ids is None:
            return Scope(all_transactions=True)
        return Scope(transactions=self.transaction_ids)


@frozen
class TransactionCommitted(Event):
    """COMMIT_TXN. ``tables`` only if the message names them, which no Hive release does (c.3).

    A commit may also change parameters of a table that it does not name (``commit_txn`` with a key and value).
    """

    transaction_id: int = 0
    tables: frozenset[TableName] | None = None

    @property
    def scope(self) -> Scope:
        return Scope(transactions=frozenset([self.transaction_id]), tables=self.tables or frozenset())


@frozen
class TransactionAborted(Event):
    """ABORT_TXN; ``databases`` are those to which it wrote (Hive 4)."""

    transaction_id: int = 0
    databases: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return Scope(transactions=frozenset([self.transaction_id]))


class TransactionWriteId(NamedTuple):
    """A write id and its transaction."""

    transaction_id: int
    write_id: int


@frozen
class WriteIdsAllocated(Event):
    """ALLOC_WRITE_ID_EVENT: the table's new write ids, which are open until their transactions end."""

    write_ids: tuple[TransactionWriteId, ...] = ()

    @property
    def scope(self) -> Scope:
        table = self.own_table
        if table is None:
            return EVERYTHING
        return Scope(
            tables=frozenset([table]), transactions=frozenset(entry.transaction_id for entry in self.write_ids)
        )


@frozen
class AcidDataWritten(Event):
    """ACID_WRITE_EVENT; Hive writes it to TXN_WRITE_NOTIFICATION_LOG, not to the notification log."""

    transaction_id: int = 0
    write_id: int = 0
    partition_values: PartitionValues | None = None
    table_json: str | None = None
    partition_json: str | None = None
    files: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        return scope_of_partitions(self.own_table, None if self.partition_values is None else [self.partition_values])


@frozen
class CompactionCommitted(PartitionsEvent):
    """COMMIT_COMPACTION_EVENT; ``partitions`` is ``None`` for an unpartitioned table."""

    transaction_id: int = 0
    compaction_id: int = 0
    compaction_type: str | None = None
