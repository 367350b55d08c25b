"""Reading and locking single rows of TXNS."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select, update

from hms_cache.store.schema import TXNS
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.store.transactions.database_values import now_ms
from hms_cache.store.transactions.errors import not_open_error

T = TXNS.c

_LOCK_TXN = select(T.TXN_STATE, now_ms()).where(T.TXN_ID == bindparam("txn_id")).with_for_update()
_HEARTBEAT = (
    update(TXNS).where(T.TXN_ID == bindparam("id"), T.TXN_STATE == TXN_OPEN).values(TXN_LAST_HEARTBEAT=now_ms())
)


def lock_open_txn(connection: Connection, txn_id: int) -> int:
    """Locks the row of an open transaction until this database transaction ends; returns the database's time (ms).

    Raises TxnAbortedException or NoSuchTxnException if it is not open.
    """
    row = connection.execute(_LOCK_TXN, {"txn_id": txn_id}).first()
    if row is None or row[0] != TXN_OPEN:
        raise not_open_error(txn_id, None if row is None else row[0])
    return int(row[1])


def states_of(connection: Connection, txn_ids: Collection[int]) -> dict[int, str]:
    """State codes of those transactions that exist."""
    rows = connection.execute(select(T.TXN_ID, T.TXN_STATE).where(T.TXN_ID.in_(txn_ids)))
    return {row.TXN_ID: row.TXN_STATE for row in rows}


def heartbeat_txn(connection: Connection, txn_id: int) -> None:
    """Records a heartbeat of an open transaction.

    Raises TxnAbortedException or NoSuchTxnException if it is not open.
    """
    result = connection.execute(_HEARTBEAT, {"id": txn_id})
    if result.rowcount == 0:
        raise not_open_error(txn_id, states_of(connection, [txn_id]).get(txn_id))
