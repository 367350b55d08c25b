"""Transactions opened by replication: maps the source's transaction ids to local ones (REPL_TXN_MAP)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from hms_cache.store.schema import REPL_TXN_MAP
from hms_cache.thrift_gen.hive_metastore.ttypes import AbortTxnRequest, CommitTxnRequest, MetaException, TxnType

R = REPL_TXN_MAP.c


def target_txn_ids(connection: Connection, policy: str, source_ids: Sequence[int]) -> dict[int, int]:
    """The local id of each of the source's transactions that is known under this policy."""
    rows = connection.execute(
        select(R.RTM_SRC_TXN_ID, R.RTM_TARGET_TXN_ID).where(
            R.RTM_REPL_POLICY == policy, R.RTM_SRC_TXN_ID.in_(list(source_ids))
        )
    )
    return {row.RTM_SRC_TXN_ID: row.RTM_TARGET_TXN_ID for row in rows}


def map_txns(connection: Connection, policy: str, source_ids: Sequence[int], target_ids: Sequence[int]) -> None:
    """Stores which local transactions correspond to the source's.

    Raises MetaException if their numbers differ, or if a source transaction is named twice.
    """
    if len(source_ids) != len(target_ids):
        raise MetaException(
            f"target txn id number {len(target_ids)} is not matching with source txn id number {len(source_ids)}"
        )
    if len(set(source_ids)) != len(source_ids):
        raise MetaException("source txn ids are named twice")
    connection.execute(
        insert(REPL_TXN_MAP),
        [
            {"RTM_REPL_POLICY": policy, "RTM_SRC_TXN_ID": source, "RTM_TARGET_TXN_ID": target}
            for source, target in zip(source_ids, target_ids, strict=True)
        ],
    )


def forget_source_txn(connection: Connection, policy: str, source_id: int) -> None:
    """Deletes the mapping of a source transaction that has ended."""
    connection.execute(delete(REPL_TXN_MAP).where(R.RTM_REPL_POLICY == policy, R.RTM_SRC_TXN_ID == source_id))


def replayed_txns(connection: Connection, policy: str) -> dict[str, str]:
    """Source id to local id, both as texts, of all transactions that are open under this policy."""
    rows = connection.execute(select(R.RTM_SRC_TXN_ID, R.RTM_TARGET_TXN_ID).where(R.RTM_REPL_POLICY == policy))
    return {str(row.RTM_SRC_TXN_ID): str(row.RTM_TARGET_TXN_ID) for row in rows}


def is_replayed(policy: str | None, txn_type: int | None) -> bool:
    """Whether a commit or abort names a source transaction: 4.x marks it by the type, 3.1 by the policy only."""
    return txn_type == TxnType.REPL_CREATED or (bool(policy) and txn_type is None)


def own_txn_id(connection: Connection, request: CommitTxnRequest | AbortTxnRequest) -> int | None:
    """The local id of the transaction to end. None: a source transaction that has ended already or was never opened
    here."""
    if not is_replayed(request.replPolicy, request.txn_type):
        return request.txnid
    return target_txn_ids(connection, request.replPolicy or "", [request.txnid]).get(request.txnid)
