"""How events raise the write-id tags of cached transactional tables.

A commit event names a transaction, not its tables. The tables are known from the transaction's ALLOC_WRITE_ID events if
its OPEN_TXN event was seen (then no allocation can have been missed) and none of the tables was renamed since
(otherwise the tag of another table with that name would be raised). If not, TXN_TO_WRITE_ID is read. If it has no rows,
the tables are unknown, and every tag is void, since the commit may concern any table (P5).

TXN_TO_WRITE_ID is read after the commit, and contains the names that tables have by then, so the tags of its tables are
not raised but loaded again. It may have forgotten a part (`store.transactions.housekeeping`): a tag that is not raised
for that reason covers fewer lists.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.txn.valid_write_ids import ValidWriteIdList

Raise = Callable[[ValidWriteIdList], ValidWriteIdList]

REMEMBERED_TRANSACTIONS = 100_000
"""Open transactions that are remembered: Hive's own limit of open ones (`metastore.max.open.txns`)."""


@dataclass(slots=True)
class TagChange:
    """The effect of an event on tags: of these tables, or of all."""

    raised: dict[TableName, Raise] = field(default_factory=dict)
    unknown: frozenset[TableName] = frozenset()
    """Tables whose tags have to be read again."""
    void_all: bool = False
    is_commit: bool = False


class TransactionTracker:
    """Remembers open transactions and their write ids. Guarded by the lock of the owning cache."""

    def __init__(self, *, has_peers: bool = False) -> None:
        """`has_peers`: other kinds of metastores open transactions, too."""
        self._has_peers = has_peers
        self._open: OrderedDict[int, list[tuple[TableName, int]]] = OrderedDict()
        self._writers: dict[DatabaseName, dict[TableName, set[int]]] = {}
        """Open transactions that have write ids of a table."""

    @property
    def databases(self) -> Collection[DatabaseName]:
        """Databases with tables of which open transactions have write ids."""
        return self._writers.keys()

    def forget(self) -> None:
        """Events were missed: nothing is known about any transaction."""
        self._open.clear()
        self._writers.clear()

    def forget_tables(self, tables: Iterable[TableName]) -> None:
        """These tables were created, dropped or renamed: the database has to say what transactions wrote to them."""
        for table in tables:
            for transaction in tuple(self._writers.get(table.in_database, {}).get(table, ())):
                self._pop(transaction)

    def forget_databases(self, databases: Iterable[DatabaseName]) -> None:
        """The same for all tables in these databases."""
        for database in databases:
            self.forget_tables(tuple(self._writers.get(database, ())))

    def _pop(self, transaction: int) -> list[tuple[TableName, int]] | None:
        written = self._open.pop(transaction, None)
        for table, _ in written or ():
            tables = self._writers.get(table.in_database, {})
            transactions = tables.get(table)
            if transactions is not None:
                transactions.discard(transaction)
                if not transactions:
                    del tables[table]
                    if not tables:
                        del self._writers[table.in_database]
        return written

    def unresolved_commits(self, events: Iterable[ev.Event]) -> list[int]:
        """Transactions that commit in this batch and whose opening was seen neither before it nor in it."""
        opened: set[int] = set()
        unknown: list[int] = []
        for event in events:
            if isinstance(event, ev.TransactionsOpened):
                opened.update(self._opened_by(event))
            elif (
                isinstance(event, ev.TransactionCommitted)
                and event.transaction_id not in opened
                and event.transaction_id not in self._open
            ):
                unknown.append(event.transaction_id)
        return unknown

    def apply(self, event: ev.Event, resolved: Mapping[int, Sequence[tuple[TableName, int]]]) -> TagChange:
        """Processes one transaction event, in the order of the log."""
        match event:
            case ev.TransactionsOpened():
                for transaction in self._opened_by(event):
                    # Its writes may be known already: the event of another call has named it, too.
                    self._open.setdefault(transaction, [])
                while len(self._open) > REMEMBERED_TRANSACTIONS:
                    self._pop(next(iter(self._open)))
                return TagChange()
            case ev.WriteIdsAllocated():
                return self._allocated(event)
            case ev.TransactionAborted():
                self._pop(event.transaction_id)
                # Open or aborted makes no difference: the id stays invalid.
                return TagChange()
            case ev.TransactionCommitted():
                return self._committed(event.transaction_id, resolved)
        return TagChange()

    def _opened_by(self, event: ev.TransactionsOpened) -> Collection[int]:
        """Those that began with this event for certain.

        Of several that a call opened Hive logs the first and the last. Ids between the two may be of others, on
        databases that give them out without waiting, and these may have begun, and got write ids, before the first
        event that was seen. Servers of this project log what they have opened in runs without others.
        """
        found = event.transaction_ids or ()
        if self._has_peers and isinstance(found, range) and len(found) > 2:
            return found[0], found[-1]
        return found

    def _allocated(self, event: ev.WriteIdsAllocated) -> TagChange:
        table = event.own_table
        if table is None:
            return TagChange(void_all=True)
        for transaction, write_id in event.write_ids:
            if transaction in self._open:
                self._open[transaction].append((table, write_id))
                self._writers.setdefault(table.in_database, {}).setdefault(table, set()).add(transaction)
        write_ids = [write_id for _, write_id in event.write_ids]

        def raised(tag: ValidWriteIdList) -> ValidWriteIdList:
            for write_id in write_ids:
                tag = tag.after_allocate(write_id)
            return tag

        return TagChange({table: raised})

    def _committed(self, transaction: int, resolved: Mapping[int, Sequence[tuple[TableName, int]]]) -> TagChange:
        written = self._pop(transaction)
        if written is None:
            known = resolved.get(transaction)
            if known is None:
                return TagChange(void_all=True, is_commit=True)
            return TagChange(unknown=frozenset(table for table, _ in known), is_commit=True)
        raised: dict[TableName, Raise] = {}
        for table, write_id in written:
            before = raised.get(table)
            raised[table] = _commit(write_id, before)
        return TagChange(raised, is_commit=True)


def _commit(write_id: int, before: Raise | None) -> Raise:
    def raised(tag: ValidWriteIdList) -> ValidWriteIdList:
        return (before(tag) if before is not None else tag).after_commit(write_id)

    return raised
