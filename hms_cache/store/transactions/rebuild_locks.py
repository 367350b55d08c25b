"""Locks for rebuilding materialized views. Source: Hive 4.0 `LockMaterializationRebuildFunction`."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, insert, select, update

from hms_cache.store.schema import MATERIALIZATION_REBUILD_LOCKS, TXNS
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.mutexes import Mutex, hold_mutex
from hms_cache.store.transactions.names import plain_database, plain_table
from hms_cache.store.transactions.txn_rows import lock_open_txn
from hms_cache.thrift_gen.hive_metastore.ttypes import LockResponse, LockState

M = MATERIALIZATION_REBUILD_LOCKS.c


def lock_materialization_rebuild(connection: Connection, database: str, table: str, txn_id: int) -> LockResponse:
    """Gives the transaction the lock to rebuild the view unless another one holds it: ACQUIRED or NOT_ACQUIRED, with
    the transaction's own id.

    A lock of a transaction that has ended (left by Hive's own aborts, and by commits of Hive 3, which has no
    transaction types) does not block the next one, even before housekeeping deletes it.

    Raises NoSuchTxnException, TxnAbortedException.
    """
    database, table = plain_database(database), plain_table(table)
    lock_open_txn(connection, txn_id)
    hold_mutex(connection, Mutex.MATERIALIZATION_REBUILD)
    holders = connection.execute(
        select(M.MRL_TXN_ID, TXNS.c.TXN_STATE)
        .select_from(MATERIALIZATION_REBUILD_LOCKS.outerjoin(TXNS, TXNS.c.TXN_ID == M.MRL_TXN_ID))
        .where(M.MRL_DB_NAME == database, M.MRL_TBL_NAME == table)
    ).all()
    open_holders = [holder for holder, state in holders if state == TXN_OPEN]
    if open_holders:
        state = LockState.ACQUIRED if txn_id in open_holders else LockState.NOT_ACQUIRED
        return LockResponse(lockid=txn_id, state=state)
    if connection.execute(select(M.MRL_TXN_ID).where(M.MRL_TXN_ID == txn_id)).first() is not None:
        # A transaction has only one row, and this one is for another view.
        return LockResponse(lockid=txn_id, state=LockState.NOT_ACQUIRED)
    if holders:
        dead = [holder for holder, _ in holders]
        connection.execute(delete(MATERIALIZATION_REBUILD_LOCKS).where(M.MRL_TXN_ID.in_(dead)))
    connection.execute(
        insert(MATERIALIZATION_REBUILD_LOCKS).values(
            MRL_TXN_ID=txn_id, MRL_DB_NAME=database, MRL_TBL_NAME=table, MRL_LAST_HEARTBEAT=now_ms()
        )
    )
    return LockResponse(lockid=txn_id, state=LockState.ACQUIRED)


def heartbeat_materialization_rebuild(connection: Connection, database: str, table: str, txn_id: int) -> bool:
    """Records a heartbeat of the rebuild. Returns whether it still holds its lock."""
    updated = connection.execute(
        update(MATERIALIZATION_REBUILD_LOCKS)
        .where(M.MRL_TXN_ID == txn_id, M.MRL_DB_NAME == plain_database(database), M.MRL_TBL_NAME == plain_table(table))
        .values(MRL_LAST_HEARTBEAT=now_ms())
    )
    return bool(updated.rowcount)


def release_dead_rebuild_locks(connection: Connection) -> int:
    """Deletes rebuild locks of transactions that have ended; returns their number.

    The lock of an open transaction stays, as in Hive, regardless of its last heartbeat: its rebuild may still be
    committed, and a second rebuild would add the same rows. If its client is gone, the transaction times out.
    """
    is_open = exists().where(TXNS.c.TXN_ID == M.MRL_TXN_ID, TXNS.c.TXN_STATE == TXN_OPEN)
    return connection.execute(delete(MATERIALIZATION_REBUILD_LOCKS).where(~is_open)).rowcount
