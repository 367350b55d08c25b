"""Times out transactions and locks whose clients send no heartbeats.

A heartbeat that could not arrive says nothing about its client. So each run records its time, by the database's clock,
in a row of AUX_TABLE that all servers share. If the previous run was too long ago (the database or all servers were
down), nothing is timed out, neither by this run nor by others during one whole timeout: by then every live client has
sent a heartbeat.

The database's clock may be set back, or a failover may lead to a host whose clock is behind. Times in the future would
keep dead transactions until that time: a run that finds them replaces them with its own time.
"""

from __future__ import annotations

import logging

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from hms_cache.config.quantities import whole_milliseconds
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import AUX_TABLE, HIVE_LOCKS, TXNS
from hms_cache.store.transactions.abort_reasons import ABORTED_BY_TIME_OUT
from hms_cache.store.transactions.aborting import abort_open_txns
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms, read_now_ms
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.rebuild_locks import release_dead_rebuild_locks
from hms_cache.thrift_gen.hive_metastore.ttypes import TxnType
from hms_cache.values import frozen

T = TXNS.c
L = HIVE_LOCKS.c

_LOGGER = logging.getLogger(__name__)

_BATCH_SIZE = 1000


@frozen
class TimedOut:
    """Results of one step."""

    txns: int
    locks: int
    rebuild_locks: int

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to time out."""
        return self.txns < _BATCH_SIZE


def give_up_timed_out(
    transaction: WriteTransaction, context: TxnContext, longest_pause_ms: int | None, locks_only: bool = False
) -> TimedOut:
    """Deletes locks and aborts transactions, at most 1,000, whose last heartbeat is too old; appends ABORT_TXN events.

    `longest_pause_ms`: maximum time since the previous run; None: the caller guarantees that runs were regular.
    `locks_only`: only locks outside transactions.
    """
    connection, settings = transaction.connection, context.transactions
    timeout_ms = whole_milliseconds(settings.timeout_s)
    hold_mutex(connection, Mutex.HOUSEKEEPER)
    _replace_times_to_come(connection, timeout_ms)
    if longest_pause_ms is not None and _is_in_grace(connection, longest_pause_ms, timeout_ms):
        return TimedOut(0, 0, 0)
    locks = connection.execute(
        delete(HIVE_LOCKS).where(L.HL_TXNID <= 0, L.HL_LAST_HEARTBEAT < now_ms() - timeout_ms)
    ).rowcount
    if locks_only:
        return TimedOut(0, locks, 0)
    is_replicated = func.coalesce(T.TXN_TYPE, TxnType.DEFAULT) == TxnType.REPL_CREATED
    timed_out = or_(
        and_(~is_replicated, T.TXN_LAST_HEARTBEAT < now_ms() - timeout_ms),
        and_(is_replicated, T.TXN_LAST_HEARTBEAT < now_ms() - whole_milliseconds(settings.replication_timeout_s)),
    )
    found = connection.execute(
        select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN, timed_out).order_by(T.TXN_ID).limit(_BATCH_SIZE)
    )
    txn_ids = list(found.scalars())
    # A heartbeat may have arrived meanwhile: the condition is checked again with the rows locked.
    aborted = abort_open_txns(transaction, context, txn_ids, ABORTED_BY_TIME_OUT, only_if=timed_out) if txn_ids else []
    return TimedOut(len(aborted), locks, release_dead_rebuild_locks(connection))


def _replace_times_to_come(connection: Connection, timeout_ms: int) -> None:
    """Replaces heartbeats that are in the future by more than a timeout: properly synchronized clocks are never set
    back that far."""
    for table, heartbeat, is_meant in (
        (HIVE_LOCKS, L.HL_LAST_HEARTBEAT, L.HL_TXNID <= 0),
        (TXNS, T.TXN_LAST_HEARTBEAT, T.TXN_STATE == TXN_OPEN),
    ):
        is_to_come = and_(is_meant, heartbeat > now_ms() + timeout_ms)
        if connection.execute(select(heartbeat).where(is_to_come).limit(1)).first() is None:
            continue
        replaced = connection.execute(update(table).where(is_to_come).values({heartbeat: now_ms()})).rowcount
        _LOGGER.warning(
            "the database's clock was set back: %d heartbeats of %s count from now on", replaced, table.name
        )


_KEY = "HmsCacheTimeOuts"
"""Key of the row in AUX_TABLE. Its comment is `time of the last run:end of the grace period`, in ms of the database's
clock."""


def _is_in_grace(connection: Connection, longest_pause_ms: int, timeout_ms: int) -> bool:
    """Records this run. Returns whether clients still have time to send a heartbeat after a pause."""
    own = AUX_TABLE.c.MT_KEY1 == _KEY
    row = connection.execute(select(now_ms(), AUX_TABLE.c.MT_COMMENT).where(own)).first()
    if row is None:
        now, last, grace_end = read_now_ms(connection), 0, 0
    else:
        now = int(row[0])
        last, grace_end = (int(part) for part in row[1].split(":"))
    if now - last > longest_pause_ms:
        grace_end = now + timeout_ms
        if row is not None:
            _LOGGER.warning(
                "no time-outs ran for %d s: transactions and locks get %d s for a heartbeat",
                (now - last) // 1000,
                timeout_ms // 1000,
            )
    # The maximum; the stored value was further ahead if the clock was set back.
    grace_end = min(grace_end, now + timeout_ms)
    comment = f"{now}:{grace_end}"
    if row is None:
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=_KEY, MT_KEY2=0, MT_COMMENT=comment))
    else:
        connection.execute(update(AUX_TABLE).where(own).values(MT_COMMENT=comment))
    return now < grace_end
