"""`commit_txn`, with the detection of conflicting writes.

Snapshot isolation, first committer wins: a transaction that updates or deletes leaves WRITE_SET rows with its *commit
id*, the highest transaction id there was at its commit. A later committer that had begun by then (its id is not above
the commit id) and changes rows of the same table or partition has not seen that commit, and is aborted. The highest id
must not grow between looking and committing, so such a commit takes the lock of all transactions exclusively.

Hive's algorithm (4.0, `CommitTxnFunction`), in fewer statements: what there is to move and to delete is asked along
with the state, and what need not be touched is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, exists, func, insert, literal, or_, select, text, update

from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    TABLE_PARAMS,
    TXN_COMPONENTS,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions import WriteTransaction
from hms_cache.store.txn.abort_reasons import ABORTED_BY_WRITE_CONFLICT
from hms_cache.store.txn.aborting import abort_open_txns
from hms_cache.store.txn.codes import (
    COMPACT,
    COMPACTION_TXN_TYPES,
    COMPACTION_TYPES,
    ROW_CHANGES,
    SHARED_WRITE,
    TXN_COMMITTED,
    TXN_OPEN,
)
from hms_cache.store.txn.context import TxnContext
from hms_cache.store.txn.database_values import is_mysql, is_postgresql, lock_all_txns_exclusive, now_ms
from hms_cache.store.txn.errors import not_open_error, txn_name
from hms_cache.store.txn.replicated_txns import forget_source_txn, is_replayed, target_txn_ids
from hms_cache.store.txn.replication_ids import set_last_replicated_id
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CommitTxnKeyValue,
    CommitTxnRequest,
    CompactionType,
    MetaException,
    TxnAbortedException,
    TxnType,
)

T = TXNS.c
C = TXN_COMPONENTS.c
S = WRITE_SET.c

KEY_VALUE_PREFIX = "_meta"
"""What the key of a table parameter must start with to be set by a commit."""


@dataclass(frozen=True, slots=True)
class CommittingTxn:
    """The transaction being committed, and what the database holds of it."""

    txn_id: int
    txn_type: int
    has_components: bool
    has_row_changes: bool
    has_locks: bool
    has_shared_write_locks: bool
    has_history: bool
    has_write_id_history: bool

    @property
    def is_compaction(self) -> bool:
        return self.txn_type in COMPACTION_TXN_TYPES


def commit_txn(
    transaction: WriteTransaction, context: TxnContext, request: CommitTxnRequest
) -> TxnAbortedException | None:
    """Commit the transaction; one that is committed already is no error. Appends COMMIT_TXN.

    On a conflict with a committed writer the transaction is aborted instead, and the error to raise *after* this
    database transaction is committed is returned. Raises NoSuchTxnException, TxnAbortedException, MetaException.
    """
    connection, txn_id = transaction.connection, request.txnid
    replayed = is_replayed(request.replPolicy, request.txn_type)
    if replayed:
        target = target_txn_ids(connection, request.replPolicy, [txn_id]).get(txn_id)
        if target is None:
            # Closed already, or its opening was never replicated.
            return None
        forget_source_txn(connection, request.replPolicy, txn_id)
        txn_id = target
    txn = _lock(connection, context, txn_id)
    if txn is None:
        return None
    if replayed:
        _add_replayed_components(connection, txn_id, request)
    elif txn.is_compaction or txn.txn_type == TxnType.SOFT_DELETE:
        lock_all_txns_exclusive(connection)
    elif txn.txn_type != TxnType.READ_ONLY and txn.has_components:
        if txn.has_row_changes:
            lock_all_txns_exclusive(connection)
            # Writers that exclude each other by lock take a new snapshot once they have it: no conflict then. Clients
            # of Hive 3 do not know the flag, which counts as set; their shared locks tell.
            is_exclusive = request.exclWriteEnabled and not txn.has_shared_write_locks
            conflict = None if is_exclusive else _conflict_of(connection, txn_id)
            if conflict is not None:
                abort_open_txns(transaction, context, [txn_id], ABORTED_BY_WRITE_CONFLICT)
                return conflict
        if txn.has_row_changes or not context.use_min_history_level:
            _add_write_set(connection, txn, only_row_changes=context.use_min_history_level)
        _complete_components(connection, txn)
    if request.replLastIdInfo is not None:
        set_last_replicated_id(connection, request.replLastIdInfo)
    if request.keyValue is not None:
        _set_key_value(connection, txn_id, request.keyValue)
    _clean_up(connection, txn)
    if txn.txn_type == TxnType.MATER_VIEW_REBUILD:
        rebuild_locks = MATERIALIZATION_REBUILD_LOCKS
        connection.execute(delete(rebuild_locks).where(rebuild_locks.c.MRL_TXN_ID == txn_id))
    connection.execute(update(TXNS).where(T.TXN_ID == txn_id).values(TXN_STATE=TXN_COMMITTED))
    _append_events(transaction, context, request, txn)
    return None


def _lock(connection: Connection, context: TxnContext, txn_id: int) -> CommittingTxn | None:
    """Lock the transaction's row; None when it is committed already."""
    own = C.TC_TXNID == txn_id
    levels, ids = context.use_min_history_level, context.use_min_history_write_id
    row = connection.execute(
        select(
            T.TXN_STATE,
            T.TXN_TYPE,
            _there_is(TXN_COMPONENTS, own, C.TC_OPERATION_TYPE != COMPACT).label("HAS_COMPONENTS"),
            _there_is(TXN_COMPONENTS, own, C.TC_OPERATION_TYPE.in_(ROW_CHANGES)).label("HAS_ROW_CHANGES"),
            _there_is(HIVE_LOCKS, HIVE_LOCKS.c.HL_TXNID == txn_id).label("HAS_LOCKS"),
            _there_is(HIVE_LOCKS, HIVE_LOCKS.c.HL_TXNID == txn_id, HIVE_LOCKS.c.HL_LOCK_TYPE == SHARED_WRITE).label(
                "HAS_SHARED_WRITE_LOCKS"
            ),
            (_there_is(MIN_HISTORY_LEVEL, MIN_HISTORY_LEVEL.c.MHL_TXNID == txn_id) if levels else literal(0)).label(
                "HAS_HISTORY"
            ),
            (_there_is(MIN_HISTORY_WRITE_ID, MIN_HISTORY_WRITE_ID.c.MH_TXNID == txn_id) if ids else literal(0)).label(
                "HAS_WRITE_ID_HISTORY"
            ),
        )
        .where(T.TXN_ID == txn_id)
        .with_for_update()
    ).first()
    if row is None or row.TXN_STATE != TXN_OPEN:
        if row is None and _was_completed(connection, txn_id):
            return None
        if row is not None and row.TXN_STATE == TXN_COMMITTED:
            return None
        raise not_open_error(txn_id, None if row is None else row.TXN_STATE)
    return CommittingTxn(
        txn_id,
        row.TXN_TYPE or TxnType.DEFAULT,
        bool(row.HAS_COMPONENTS),
        bool(row.HAS_ROW_CHANGES),
        bool(row.HAS_LOCKS),
        bool(row.HAS_SHARED_WRITE_LOCKS),
        bool(row.HAS_HISTORY),
        bool(row.HAS_WRITE_ID_HISTORY),
    )


def _there_is(table: Any, *conditions: Any) -> Any:
    return exists(select(literal(1)).select_from(table).where(*conditions))


def _was_completed(connection: Connection, txn_id: int) -> bool:
    """Whether a transaction whose row is gone left something it had committed."""
    completed = COMPLETED_TXN_COMPONENTS.c.CTC_TXNID
    return connection.execute(select(completed).where(completed == txn_id).limit(1)).first() is not None


# Conflicts


def _conflict_of(connection: Connection, txn_id: int) -> TxnAbortedException | None:
    """The error about a committed transaction that changed rows where this one did and that it has not seen."""
    row = connection.execute(
        select(
            S.WS_TXNID,
            S.WS_COMMIT_ID,
            S.WS_OPERATION_TYPE,
            C.TC_OPERATION_TYPE,
            C.TC_DATABASE,
            C.TC_TABLE,
            C.TC_PARTITION,
            select(func.max(T.TXN_ID)).scalar_subquery().label("COMMIT_ID"),
        )
        .join_from(
            TXN_COMPONENTS,
            WRITE_SET,
            (S.WS_DATABASE == C.TC_DATABASE)
            & (S.WS_TABLE == C.TC_TABLE)
            & or_(S.WS_PARTITION == C.TC_PARTITION, S.WS_PARTITION.is_(None) & C.TC_PARTITION.is_(None)),
        )
        .where(
            C.TC_TXNID == txn_id,
            C.TC_OPERATION_TYPE.in_(ROW_CHANGES),
            S.WS_OPERATION_TYPE.in_(ROW_CHANGES),
            S.WS_TXNID != txn_id,
            S.WS_COMMIT_ID >= txn_id,
        )
        .limit(1)
    ).first()
    if row is None:
        return None
    where = "/".join(name for name in (row.TC_DATABASE, row.TC_TABLE, row.TC_PARTITION) if name is not None)
    return TxnAbortedException(
        f"Aborting [{txn_name(txn_id)},{row.COMMIT_ID}] due to a write conflict on {where} committed by "
        f"[{txn_name(row.WS_TXNID)},{row.WS_COMMIT_ID}] {row.TC_OPERATION_TYPE}/{row.WS_OPERATION_TYPE}"
    )


def _add_write_set(connection: Connection, txn: CommittingTxn, *, only_row_changes: bool) -> None:
    highest = select(func.max(T.TXN_ID)).scalar_subquery()
    condition = C.TC_OPERATION_TYPE.in_(ROW_CHANGES) if only_row_changes else C.TC_OPERATION_TYPE != COMPACT
    rows = (
        select(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION, C.TC_TXNID, highest, C.TC_OPERATION_TYPE)
        .where(C.TC_TXNID == txn.txn_id, C.TC_TABLE.is_not(None), condition)
        .distinct()
    )
    columns = ["WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_TXNID", "WS_COMMIT_ID", "WS_OPERATION_TYPE"]
    connection.execute(insert(WRITE_SET).from_select(columns, rows))


# What is left of the transaction


def _complete_components(connection: Connection, txn: CommittingTxn) -> None:
    """What it wrote becomes known to compaction and to materialized views."""
    rows = select(
        C.TC_TXNID,
        C.TC_DATABASE,
        C.TC_TABLE,
        C.TC_PARTITION,
        C.TC_WRITEID,
        literal("Y" if txn.has_row_changes else "N"),
    ).where(C.TC_TXNID == txn.txn_id, C.TC_OPERATION_TYPE != COMPACT)
    connection.execute(
        insert(COMPLETED_TXN_COMPONENTS).from_select(
            ["CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE"], rows
        )
    )


def _add_replayed_components(connection: Connection, txn_id: int, request: CommitTxnRequest) -> None:
    """What the source says the transaction wrote; that it changed rows must be assumed."""
    if not request.writeEventInfos:
        return
    connection.execute(
        insert(COMPLETED_TXN_COMPONENTS),
        [
            {
                "CTC_TXNID": txn_id,
                "CTC_DATABASE": info.database.lower(),
                "CTC_TABLE": info.table.lower(),
                "CTC_PARTITION": info.partition,
                "CTC_WRITEID": info.writeId,
                "CTC_UPDATE_DELETE": "Y",
            }
            for info in request.writeEventInfos
        ],
    )


def _clean_up(connection: Connection, txn: CommittingTxn) -> None:
    """Delete what only an open transaction has: components, locks, history; in one statement where the database can."""
    targets = [
        column
        for there, column in (
            (txn.has_components or txn.is_compaction, C.TC_TXNID),
            (txn.has_locks, HIVE_LOCKS.c.HL_TXNID),
            (txn.has_history, MIN_HISTORY_LEVEL.c.MHL_TXNID),
            (txn.has_write_id_history, MIN_HISTORY_WRITE_ID.c.MH_TXNID),
        )
        if there
    ]
    if len(targets) > 1 and is_mysql(connection):
        _delete_from_several_on_mysql(connection, txn.txn_id, targets)
    elif len(targets) > 1 and is_postgresql(connection):
        first, *others = (delete(column.table).where(column == txn.txn_id) for column in targets)
        for number, other in enumerate(others):
            first = first.add_cte(other.cte(f"deletion_{number}"))
        connection.execute(first)
    else:
        for column in targets:
            connection.execute(delete(column.table).where(column == txn.txn_id))


def _delete_from_several_on_mysql(connection: Connection, txn_id: int, targets: list[Any]) -> None:
    # One table of numbers, and each target joined to its own number: the rows add up instead of multiplying.
    names = ", ".join(f"`{column.table.name}`" for column in targets)
    numbers = " UNION ALL ".join(f"SELECT {number} AS number" for number in range(len(targets)))
    joins = " ".join(
        f"LEFT JOIN `{column.table.name}` ON part.number = {number} AND `{column.name}` = :txn_id"
        for number, column in enumerate(targets)
    )
    connection.execute(text(f"DELETE {names} FROM ({numbers}) AS part {joins}"), {"txn_id": txn_id})


def _set_key_value(connection: Connection, txn_id: int, key_value: CommitTxnKeyValue) -> None:
    """Set a parameter of a table with the commit (Hive's way to note a Kafka offset, say)."""
    about = f"with txnId={txn_id}, tableId={key_value.tableId}, key={key_value.key}, value={key_value.value}"
    if not key_value.key.startswith(KEY_VALUE_PREFIX):
        raise MetaException(
            f"Error updating key/value in the sql backend {about}. key should start with {KEY_VALUE_PREFIX}."
        )
    params = TABLE_PARAMS.c
    updated = connection.execute(
        update(TABLE_PARAMS)
        .where(params.TBL_ID == key_value.tableId, params.PARAM_KEY == key_value.key)
        .values(PARAM_VALUE=key_value.value)
    )
    if updated.rowcount != 1:
        raise MetaException(
            f"Error updating key/value in the sql backend {about}. "
            f"Only one row should have been affected but {updated.rowcount} rows where affected."
        )


def _append_events(
    transaction: WriteTransaction, context: TxnContext, request: CommitTxnRequest, txn: CommittingTxn
) -> None:
    is_hives_own_replication = bool(request.replPolicy) and request.txn_type == TxnType.DEFAULT
    if txn.txn_type != TxnType.READ_ONLY and not is_hives_own_replication:
        transaction.append_event(context.messages.build_commit_transaction(txn.txn_id))
    if txn.is_compaction or txn.txn_type == TxnType.SOFT_DELETE:
        _finish_compaction(transaction, context, txn)


def _finish_compaction(transaction: WriteTransaction, context: TxnContext, txn: CommittingTxn) -> None:
    """The old files may go once every transaction is over that may still read them: those opened up to now."""
    connection, queue = transaction.connection, COMPACTION_QUEUE.c
    following = select(func.max(T.TXN_ID) + 1).scalar_subquery()
    connection.execute(
        update(COMPACTION_QUEUE)
        .where(queue.CQ_TXN_ID == txn.txn_id)
        .values(CQ_NEXT_TXN_ID=following, CQ_COMMIT_TIME=now_ms())
    )
    if not txn.is_compaction:
        return
    row = connection.execute(
        select(queue.CQ_ID, queue.CQ_TYPE, queue.CQ_DATABASE, queue.CQ_TABLE, queue.CQ_PARTITION).where(
            queue.CQ_TXN_ID == txn.txn_id
        )
    ).first()
    if row is not None:
        type_name = CompactionType._VALUES_TO_NAMES[COMPACTION_TYPES[row.CQ_TYPE]]
        transaction.append_event(
            context.messages.build_commit_compaction(
                txn.txn_id, row.CQ_ID, type_name, row.CQ_DATABASE, row.CQ_TABLE, row.CQ_PARTITION
            )
        )
