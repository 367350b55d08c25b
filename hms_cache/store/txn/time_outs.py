"""What is over because its client is gone: transactions and locks without a heartbeat."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, delete, func, or_, select

from hms_cache.store.schema import HIVE_LOCKS, TXNS
from hms_cache.store.transactions import WriteTransaction
from hms_cache.store.txn.abort_reasons import ABORTED_BY_TIME_OUT
from hms_cache.store.txn.aborting import abort_open_txns
from hms_cache.store.txn.codes import TXN_OPEN
from hms_cache.store.txn.context import TxnContext
from hms_cache.store.txn.database_values import now_ms
from hms_cache.store.txn.materializations import release_dead_rebuild_locks
from hms_cache.store.txn.mutexes import Mutex, hold_mutex
from hms_cache.thrift_gen.hive_metastore.ttypes import TxnType

T = TXNS.c
L = HIVE_LOCKS.c

_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True)
class TimedOut:
    """What one step gave up."""

    txns: int
    locks: int
    rebuild_locks: int

    @property
    def is_complete(self) -> bool:
        """Whether there was nothing left to give up."""
        return self.txns < _BATCH_SIZE


def give_up_timed_out(transaction: WriteTransaction, context: TxnContext) -> TimedOut:
    """Delete locks and abort transactions, 1,000 at most, whose last heartbeat is too old; appends ABORT_TXN events."""
    connection, options = transaction.connection, context.options
    hold_mutex(connection, Mutex.HOUSEKEEPER)
    locks = connection.execute(
        delete(HIVE_LOCKS).where(L.HL_TXNID == 0, L.HL_LAST_HEARTBEAT < now_ms() - options.timeout_ms)
    ).rowcount
    is_replicated = func.coalesce(T.TXN_TYPE, TxnType.DEFAULT) == TxnType.REPL_CREATED
    timed_out = or_(
        and_(~is_replicated, T.TXN_LAST_HEARTBEAT < now_ms() - options.timeout_ms),
        and_(is_replicated, T.TXN_LAST_HEARTBEAT < now_ms() - options.replication_timeout_ms),
    )
    found = connection.execute(
        select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN, timed_out).order_by(T.TXN_ID).limit(_BATCH_SIZE)
    )
    txn_ids = list(found.scalars())
    # A heartbeat may have come in between: the condition is put again under the rows' locks.
    aborted = abort_open_txns(transaction, context, txn_ids, ABORTED_BY_TIME_OUT, only_if=timed_out) if txn_ids else []
    return TimedOut(len(aborted), locks, release_dead_rebuild_locks(connection, context))
