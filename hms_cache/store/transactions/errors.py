"""The exceptions of transactions and locks, with Hive's texts."""

from __future__ import annotations

from hms_cache.store.transactions.codes import TXN_ABORTED, TXN_COMMITTED
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchLockException, NoSuchTxnException, TxnAbortedException


def txn_name(txn_id: int) -> str:
    """A transaction in Hive's messages."""
    return f"txnid:{txn_id}"


def lock_name(lock_id: int) -> str:
    """A lock in Hive's messages."""
    return f"lockid:{lock_id}"


def not_open_error(txn_id: int, state: str | None) -> NoSuchTxnException | TxnAbortedException:
    """The exception for a transaction that is not open. `state`: its code, None if it does not exist."""
    if state == TXN_ABORTED:
        return TxnAbortedException(f"Transaction {txn_name(txn_id)} already aborted")
    if state == TXN_COMMITTED:
        return NoSuchTxnException(f"Transaction {txn_name(txn_id)} is already committed.")
    return NoSuchTxnException(f"No such transaction {txn_name(txn_id)}")


def no_such_lock_error(lock_id: int) -> NoSuchLockException:
    """The exception for a lock that does not exist (released, timed out, never acquired)."""
    return NoSuchLockException(f"No such lock {lock_name(lock_id)}")
