"""Releases locks (`unlock`) and records heartbeats (`heartbeat`, `heartbeat_txn_range`)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, delete, or_, select, update

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.locks.lock_rows import beat_locks
from hms_cache.store.locks.locking import heartbeat_lock
from hms_cache.store.schema import HIVE_LOCKS, TXNS
from hms_cache.store.transactions.codes import LOCK_WAITING, TXN_ABORTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.errors import lock_name, no_such_lock_error, not_open_error, txn_name
from hms_cache.store.transactions.txn_rows import heartbeat_txn, states_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    HeartbeatTxnRangeResponse,
    MetaException,
    TxnOpenException,
    UnlockRequest,
)

L = HIVE_LOCKS.c


def unlock(connection: Connection, request: UnlockRequest) -> None:
    """Releases the lock. A lock that does not exist is no error (a client may repeat a call whose reply was lost).

    Raises TxnOpenException for a lock that a transaction holds: commit or abort releases it.
    """
    deleted = connection.execute(_UNLOCK, {"lock_id": request.lockid})
    if deleted.rowcount > 0:
        return
    held = connection.execute(_HELD, {"lock_id": request.lockid}).first()
    if held is not None:
        raise held_by_txn_error(request.lockid, held.HL_TXNID)


def may_be_unlocked() -> ColumnElement[bool]:
    """A condition: the rows that `unlock` may delete, which no transaction holds."""
    return or_(L.HL_TXNID == 0, L.HL_LOCK_STATE == LOCK_WAITING)


def held_by_txn_error(lock_id: int, txn_id: int) -> TxnOpenException:
    """The exception for unlocking a lock that a transaction holds."""
    return TxnOpenException(
        f"Unlocking locks associated with transaction not permitted. {lock_name(lock_id)} is held by {txn_name(txn_id)}"
    )


_IS_REQUESTED = L.HL_LOCK_EXT_ID == bindparam("lock_id")
_UNLOCK = delete(HIVE_LOCKS).where(_IS_REQUESTED, may_be_unlocked())
_HELD = select(L.HL_TXNID).where(_IS_REQUESTED).limit(1)


def heartbeat(connection: Connection, request: HeartbeatRequest) -> None:
    """Records a heartbeat of a lock, a transaction, or both.

    Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException.
    """
    # In Hive's order: if neither exists any more, the exception is about the transaction.
    if request.txnid:
        heartbeat_txn(connection, request.txnid)
    if request.lockid:
        heartbeat_lock(connection, request.lockid)


def heartbeat_each(
    transaction: WriteTransaction, context: TxnContext, requests: Sequence[HeartbeatRequest]
) -> list[Exception | None]:
    """Like `heartbeat` for each request, with as many statements as for one. Returns the exceptions of those that have
    ended."""
    connection = transaction.connection
    outcomes: list[Exception | None] = [None] * len(requests)
    if txn_ids := sorted({one.txnid for one in requests if one.txnid}):
        beaten = connection.execute(_BEAT_OPEN_TXNS, {"ids": txn_ids}).rowcount
        states = {} if beaten == len(txn_ids) else states_of(connection, txn_ids)
        for number, one in enumerate(requests):
            if one.txnid and beaten < len(txn_ids) and states.get(one.txnid) != TXN_OPEN:
                outcomes[number] = not_open_error(one.txnid, states.get(one.txnid))
    locks = {number: one.lockid for number, one in enumerate(requests) if one.lockid and outcomes[number] is None}
    if locks:
        lock_ids = set(locks.values())
        beat_locks(connection, lock_ids)
        # The existing rows are locked now. A lock may have several.
        found = set(connection.execute(_THERE, {"ids": sorted(lock_ids)}).scalars())
        for number, lock_id in locks.items():
            if lock_id not in found:
                outcomes[number] = no_such_lock_error(lock_id)
    return outcomes


_BEAT_OPEN_TXNS = (
    update(TXNS)
    .where(TXNS.c.TXN_ID.in_(bindparam("ids", expanding=True)), TXNS.c.TXN_STATE == TXN_OPEN)
    .values(TXN_LAST_HEARTBEAT=now_ms())
)
_THERE = select(L.HL_LOCK_EXT_ID).where(L.HL_LOCK_EXT_ID.in_(bindparam("ids", expanding=True))).distinct()


def heartbeat_txn_range(connection: Connection, request: HeartbeatTxnRangeRequest) -> HeartbeatTxnRangeResponse:
    """Records heartbeats of the transactions `min`..`max`; returns which of them are aborted or unknown.

    Committed ones count as unknown, as in Hive. Raises MetaException if the range is reversed or far too wide.
    """
    first, last = request.min, request.max
    if last < first:
        raise MetaException(f"Invalid range of transactions: {first} to {last}")
    most = input_limits().heartbeat_range_txns
    if last - first >= most:
        setting = exceeded("heartbeat_range_txns")
        raise MetaException(f"Invalid range of transactions: {first} to {last}; it may span {most} ({setting})")
    t = TXNS.c
    in_range = t.TXN_ID.between(first, last)
    updated = connection.execute(
        update(TXNS).where(in_range, t.TXN_STATE == TXN_OPEN).values(TXN_LAST_HEARTBEAT=now_ms())
    )
    if updated.rowcount == last - first + 1:
        return HeartbeatTxnRangeResponse(aborted=set(), nosuch=set())
    rows = connection.execute(select(t.TXN_ID, t.TXN_STATE).where(in_range))
    states = {row.TXN_ID: row.TXN_STATE for row in rows}
    aborted = {txn_id for txn_id, state in states.items() if state == TXN_ABORTED}
    still_open = {txn_id for txn_id, state in states.items() if state == TXN_OPEN}
    return HeartbeatTxnRangeResponse(
        aborted=aborted, nosuch=set(range(first, last + 1)).difference(aborted, still_open)
    )
