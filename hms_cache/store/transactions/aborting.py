"""`abort_txn` and `abort_txns`.

The rows of an aborted transaction's writes (TXN_COMPONENTS) and write ids (TXN_TO_WRITE_ID) are kept: they keep its
write ids invalid until a cleaner has removed the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, select, tuple_, update

from hms_cache.batches import batches
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    NEXT_WRITE_ID,
    REPL_TXN_MAP,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_cache.store.transactions.abort_reasons import (
    ABORTED_AS_REPLAYED,
    ABORTED_BY_REPLICATION_ITSELF,
    reason_text,
)
from hms_cache.store.transactions.codes import READY_FOR_CLEANING, TXN_ABORTED, TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.errors import not_open_error
from hms_cache.store.transactions.names import plain_database
from hms_cache.store.transactions.replicated_txns import forget_source_txn, is_replayed, own_txn_id
from hms_cache.thrift_gen.hive_metastore.ttypes import AbortTxnRequest, AbortTxnsRequest, TxnType

T = TXNS.c

_BATCH_SIZE = 1000
"""Transactions per round of statements, as in Hive (`metastore.direct.sql.max.elements.in.clause`)."""


def abort_txn(transaction: WriteTransaction, context: TxnContext, request: AbortTxnRequest) -> None:
    """Aborts one transaction; it is no error if it is aborted already. Appends ABORT_TXN, except for a transaction that
    Hive's replication opened for itself: that one has no OPEN_TXN either.

    Raises NoSuchTxnException if it is committed or unknown.
    """
    connection = transaction.connection
    replayed = is_replayed(request.replPolicy, request.txn_type)
    txn_id = own_txn_id(connection, request)
    if txn_id is None:
        return
    if replayed:
        forget_source_txn(connection, request.replPolicy or "", request.txnid)
    row = connection.execute(select(T.TXN_STATE).where(T.TXN_ID == txn_id).with_for_update()).first()
    if row is not None and row.TXN_STATE == TXN_ABORTED:
        return
    if row is None or row.TXN_STATE != TXN_OPEN:
        raise not_open_error(txn_id, None if row is None else row.TXN_STATE)
    of_replication = bool(request.replPolicy) and request.txn_type == TxnType.DEFAULT
    error_code = (
        # Clients of replication send no code.
        ABORTED_AS_REPLAYED if replayed else ABORTED_BY_REPLICATION_ITSELF if of_replication else request.errorCode
    )
    abort_open_txns(transaction, context, [txn_id], error_code, is_replayed=replayed, is_logged=not of_replication)


def abort_txns(transaction: WriteTransaction, context: TxnContext, request: AbortTxnsRequest) -> list[int]:
    """Aborts those of the transactions that are open, and returns their ids. Appends an ABORT_TXN for each."""
    aborted: list[int] = []
    requested = sorted(set(request.txn_ids))
    for batch in batches(requested, _BATCH_SIZE):
        aborted += abort_open_txns(transaction, context, batch, request.errorCode)
    return aborted


def abort_late_txns(
    transaction: WriteTransaction, context: TxnContext, txn_ids: Sequence[int], is_logged: bool
) -> None:
    """Aborts transactions that took too long to open and whose ids no client has been sent.

    This does not make replication incompatible with its source: it opens others in their place. `is_logged`: they have
    an OPEN_TXN event.
    """
    column = REPL_TXN_MAP.c.RTM_TARGET_TXN_ID
    for batch in batches(txn_ids, _BATCH_SIZE):
        abort_open_txns(transaction, context, batch, None, is_replayed=True, is_logged=is_logged)
        transaction.connection.execute(delete(REPL_TXN_MAP).where(column.in_(batch)))


def abort_open_txns(
    transaction: WriteTransaction,
    context: TxnContext,
    txn_ids: Sequence[int],
    error_code: int | None,
    *,
    only_if: ColumnElement[bool] | None = None,
    is_replayed: bool = False,
    is_logged: bool = True,
) -> list[int]:
    """Aborts those of the transactions that are open and match `only_if` (a condition on TXNS), in ascending order.

    Appends an ABORT_TXN for each if `is_logged`, except for read-only ones. At most 1,000 ids per call. Returns the
    aborted ids.
    """
    connection = transaction.connection
    condition = T.TXN_ID.in_(list(txn_ids)) & (T.TXN_STATE == TXN_OPEN)
    if only_if is not None:
        condition &= only_if
    rows = connection.execute(select(T.TXN_ID, T.TXN_TYPE).where(condition).order_by(T.TXN_ID).with_for_update()).all()
    aborted = [row.TXN_ID for row in rows]
    if not aborted:
        return []
    connection.execute(
        update(TXNS).where(T.TXN_ID.in_(aborted)).values(TXN_STATE=TXN_ABORTED, TXN_META_INFO=reason_text(error_code))
    )
    connection.execute(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID.in_(aborted)))
    forget_history(connection, context, aborted)
    dropping = [row.TXN_ID for row in rows if row.TXN_TYPE == TxnType.SOFT_DELETE]
    if dropping:
        _keep_dropped_for_readers(connection, dropping)
    logged = [row.TXN_ID for row in rows if is_logged and row.TXN_TYPE != TxnType.READ_ONLY]
    databases = _databases_of(connection, logged) if logged else {}
    if not is_replayed:
        _break_replication(transaction, context, aborted)
    for txn_id in logged:
        transaction.append_event(context.messages.build_abort_transaction(txn_id, databases.get(txn_id, ())))
    return aborted


def _keep_dropped_for_readers(connection: Connection, txn_ids: Sequence[int]) -> None:
    """Objects that these transactions have dropped softly stay dropped, and their files wait for readers as after a
    commit."""
    queue = COMPACTION_QUEUE.c
    connection.execute(
        update(COMPACTION_QUEUE)
        .where(queue.CQ_TXN_ID.in_(txn_ids), queue.CQ_STATE == READY_FOR_CLEANING)
        .values(CQ_NEXT_TXN_ID=select(func.max(T.TXN_ID) + 1).scalar_subquery())
    )


def forget_history(connection: Connection, context: TxnContext, txn_ids: Collection[int]) -> None:
    """The transactions have ended: cleaners no longer wait for them."""
    if context.use_min_history_level:
        connection.execute(delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID.in_(list(txn_ids))))
    if context.use_min_history_write_id:
        connection.execute(delete(MIN_HISTORY_WRITE_ID).where(MIN_HISTORY_WRITE_ID.c.MH_TXNID.in_(list(txn_ids))))


def _databases_of(connection: Connection, txn_ids: Sequence[int]) -> dict[int, list[str]]:
    """The databases in which each transaction has write ids, ascending.

    Searches by the tables that have write ids, since there is no index by transaction: while one transaction stays open
    for long, all later write ids are kept.
    """
    t2w, tables = TXN_TO_WRITE_ID.c, NEXT_WRITE_ID.c
    rows = connection.execute(
        select(t2w.T2W_TXNID, t2w.T2W_DATABASE)
        .where(
            tuple_(t2w.T2W_DATABASE, t2w.T2W_TABLE).in_(select(tables.NWI_DATABASE, tables.NWI_TABLE)),
            t2w.T2W_TXNID.in_(txn_ids),
        )
        .distinct()
        .order_by(t2w.T2W_TXNID, t2w.T2W_DATABASE)
    )
    databases: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        databases[row.T2W_TXNID].append(row.T2W_DATABASE)
    return databases


def _break_replication(transaction: WriteTransaction, context: TxnContext, txn_ids: Sequence[int]) -> None:
    """If transactions of replication are aborted, the target misses changes: marks the databases and deletes the
    mapping.

    As in Hive 4.0.1 (AbortTxnsFunction), the databases are those of the policies (`database.tables`), even if the
    transactions have not written anything.
    """
    connection = transaction.connection
    column = REPL_TXN_MAP.c.RTM_TARGET_TXN_ID
    found = connection.execute(select(column, REPL_TXN_MAP.c.RTM_REPL_POLICY).where(column.in_(txn_ids))).all()
    if not found:
        return
    connection.execute(delete(REPL_TXN_MAP).where(column.in_([row.RTM_TARGET_TXN_ID for row in found])))
    names = {plain_database(row.RTM_REPL_POLICY.partition(".")[0]) for row in found}
    context.replication_marks.mark_incompatible(transaction, names)
