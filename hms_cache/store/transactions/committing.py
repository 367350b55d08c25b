"""`commit_txn`, with detection of write conflicts.

Snapshot isolation, first committer wins: a transaction that updates or deletes leaves WRITE_SET rows with its *commit
id*, the highest transaction id at its commit. A later committer conflicts if it had begun by then (its id is not above
the commit id) and changes rows of the same table or partition: it has not seen that commit, and is aborted. The highest
id must not grow between the check and the commit, so such a commit locks all transactions exclusively.

Hive's algorithm (4.0, `CommitTxnFunction`) in fewer statements: the statement that marks the transaction committed also
reports which rows have to be moved and deleted; the others are skipped. See `commit_statements`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from hms_cache.clock import stored_s
from hms_cache.store.engine.direct_statements import Statement, supports_direct_statements
from hms_cache.store.engine.shared_packets import execute_parts
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    MATERIALIZATION_REBUILD_LOCKS,
    TABLE_PARAMS,
    TXN_COMPONENTS,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.abort_reasons import ABORTED_BY_WRITE_CONFLICT
from hms_cache.store.transactions.aborting import abort_open_txns
from hms_cache.store.transactions.codes import COMPACTION_TYPES, ROW_CHANGES, TXN_COMMITTED
from hms_cache.store.transactions.commit_statements import (
    CommittingTxn,
    MarkingOfAll,
    add_write_set,
    clean_up,
    clean_up_all,
    cleaning_up_all,
    conflicts_with,
    escaped_again,
    lock_all_and_complete,
    mark_all_committed,
    mark_committed,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import lock_all_txns_exclusive, now_ms
from hms_cache.store.transactions.errors import not_open_error, txn_name
from hms_cache.store.transactions.replicated_txns import forget_source_txn, is_replayed, own_txn_id
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CommitTxnKeyValue,
    CommitTxnRequest,
    CompactionType,
    MetaException,
    NoSuchTxnException,
    TxnAbortedException,
    TxnType,
)

T = TXNS.c
C = TXN_COMPONENTS.c
S = WRITE_SET.c

KEY_VALUE_PREFIX = "_meta"
"""Prefix that the key of a table parameter must have to be set by a commit."""


class WriteConflict(Exception):
    """A conflicting transaction has committed first: roll back, and abort this one with `abort_loser`."""

    def __init__(self, txn_id: int, error: TxnAbortedException) -> None:
        super().__init__(error.message)
        self.txn_id = txn_id
        self.error = error
        """The exception for the client."""


def abort_loser(transaction: WriteTransaction, context: TxnContext, txn_id: int) -> None:
    """Aborts a transaction after a `WriteConflict`. Another call may have aborted it meanwhile."""
    abort_open_txns(transaction, context, [txn_id], ABORTED_BY_WRITE_CONFLICT)


def commit_txn(transaction: WriteTransaction, context: TxnContext, request: CommitTxnRequest) -> None:
    """Commits the transaction; it is no error if it is committed already. Appends COMMIT_TXN.

    Raises WriteConflict, NoSuchTxnException, TxnAbortedException, MetaException.
    """
    connection = transaction.connection
    replayed = is_replayed(request.replPolicy, request.txn_type)
    txn_id = own_txn_id(connection, request)
    if txn_id is None:
        return
    txn = mark_committed(transaction, context, txn_id, allocates_event_id=not commits_alone(request))
    if txn is None:
        # As in Hive, a transaction that was not committed through its replication stays in the map.
        _check_is_committed(connection, txn_id)
        return
    if replayed:
        forget_source_txn(connection, request.replPolicy or "", request.txnid)
    allocates_event_id = not commits_alone(request)
    _finish(transaction, context, request, txn, replayed=replayed, allocates_event_id=allocates_event_id)


def _finish(
    transaction: WriteTransaction,
    context: TxnContext,
    request: CommitTxnRequest,
    txn: CommittingTxn,
    *,
    replayed: bool,
    allocates_event_id: bool,
) -> None:
    """Completes the commit of a transaction that is marked: conflicts, its writes, locks and history, its events.

    `allocates_event_id`: the id of its event may be taken with the last statement.
    """
    connection, txn_id = transaction.connection, txn.txn_id
    is_completed = replayed or not txn.completes_components
    if replayed:
        _add_replayed_components(connection, txn_id, request)
    else:
        if txn.records_next_txn:
            lock_all_txns_exclusive(connection)
        elif txn.joins_write_set and txn.has_row_changes:
            is_completed = lock_all_and_complete(connection, txn)
        if txn.joins_write_set and (txn.has_row_changes or not context.use_min_history_level):
            _add_write_set(connection, context, txn, request)
    if request.replLastIdInfo is not None:
        context.replication_marks.set_last_replicated_id(transaction, request.replLastIdInfo)
    if replayed and request.writeEventInfos:
        now_s = stored_s(context.clock.epoch_s())
        context.replication_marks.record_writes(transaction, txn_id, request.writeEventInfos, now_s)
    if request.keyValue is not None:
        _set_key_value(connection, txn_id, request.keyValue)
    is_last = not txn.records_next_txn and txn.txn_type != TxnType.MATER_VIEW_REBUILD
    allocates_event_id &= is_last and txn.txn_type != TxnType.READ_ONLY
    clean_up(transaction, txn, completes_components=not is_completed, allocates_event_id=allocates_event_id)
    if txn.txn_type == TxnType.MATER_VIEW_REBUILD:
        rebuild_locks = MATERIALIZATION_REBUILD_LOCKS
        connection.execute(delete(rebuild_locks).where(rebuild_locks.c.MRL_TXN_ID == txn_id))
    _append_events(transaction, context, request, txn)


def commits_alone(request: CommitTxnRequest) -> bool:
    """Whether the commit must not share a transaction: it changes more than its own rows, which must be locked as
    briefly as possible, or it names a transaction of a source, whose id is a different transaction here."""
    is_of_source = is_replayed(request.replPolicy, request.txn_type)
    return is_of_source or bool(request.replPolicy or request.replLastIdInfo or request.keyValue)


def commit_each(
    transaction: WriteTransaction, context: TxnContext, requests: Sequence[CommitTxnRequest]
) -> list[Exception | None]:
    """Like `commit_txn` for several requests, in their order; conflicts between them count, too.

    Transactions that changed no rows, which most are, are committed set-wise. Returns the exception of each that is not
    open. Raises WriteConflict: then nothing may be committed.
    """
    if supports_direct_statements(transaction.connection):
        [outcomes] = execute_parts(transaction, [Commits(transaction, context, requests)])
        return list(outcomes)
    connection = transaction.connection
    marked = mark_all_committed(connection, context, {request.txnid for request in requests})
    outcomes, plain = _finish_each(transaction, context, requests, marked)
    clean_up_all(connection, plain)
    return outcomes


class Commits:
    """Like `commit_each`, in packets shared with other calls (`shared_packets`)."""

    further_events = 0

    def __init__(
        self, transaction: WriteTransaction, context: TxnContext, requests: Sequence[CommitTxnRequest]
    ) -> None:
        self._transaction = transaction
        self._context = context
        self._requests = requests
        self._marking = MarkingOfAll(context, {request.txnid for request in requests})
        self._outcomes: list[Exception | None] = []

    def locking(self) -> Sequence[Statement]:
        """Locks the transactions' rows, reads their other rows, and sets their new state."""
        return self._marking.statements()

    def writing(self, found: Sequence[Any]) -> Sequence[Statement]:
        """Deletes rows of transactions that changed no rows of tables. The others are completed here, one by one."""
        marked = self._marking.marked(found)
        self._outcomes, plain = _finish_each(self._transaction, self._context, self._requests, marked)
        return cleaning_up_all(plain)

    def outcomes(self, written: Sequence[Any]) -> list[Exception | None]:
        """The result of `commit_each`."""
        return self._outcomes


def _finish_each(
    transaction: WriteTransaction,
    context: TxnContext,
    requests: Sequence[CommitTxnRequest],
    marked: Sequence[CommittingTxn],
) -> tuple[list[Exception | None], list[CommittingTxn]]:
    """Returns the outcomes, and those marked transactions that still have to be cleaned up."""
    ours = {txn.txn_id: txn for txn in marked}
    outcomes: list[Exception | None] = [None] * len(requests)
    plain = []
    for number, request in enumerate(requests):
        # If two requests name one transaction, the second one finds it committed.
        txn = ours.pop(request.txnid, None)
        if txn is None:
            try:
                _check_is_committed(transaction.connection, request.txnid)
            except (NoSuchTxnException, TxnAbortedException) as error:
                outcomes[number] = error
        elif _is_plain(context, txn):
            plain.append(txn)
            _append_events(transaction, context, request, txn)
        else:
            # Event ids are taken when no remaining statement waits for locks.
            _finish(transaction, context, request, txn, replayed=False, allocates_event_id=False)
    return outcomes, plain


def _is_plain(context: TxnContext, txn: CommittingTxn) -> bool:
    """Whether the commit only records its writes and deletes the rows of an open transaction."""
    records_writes = txn.joins_write_set and (txn.has_row_changes or not context.use_min_history_level)
    return not (txn.records_next_txn or records_writes or txn.txn_type == TxnType.MATER_VIEW_REBUILD)


def _check_is_committed(connection: Connection, txn_id: int) -> None:
    """Raises TxnAbortedException or NoSuchTxnException for a transaction that is not open, unless it is committed."""
    row = connection.execute(select(T.TXN_STATE).where(T.TXN_ID == txn_id)).first()
    if row is None:
        # If the row of a committed transaction is gone, another row shows that it was committed.
        completed = COMPLETED_TXN_COMPONENTS.c.CTC_TXNID
        if connection.execute(select(completed).where(completed == txn_id).limit(1)).first() is not None:
            return
    elif row.TXN_STATE == TXN_COMMITTED:
        return
    raise not_open_error(txn_id, None if row is None else row.TXN_STATE)


# Conflicts


def _add_write_set(connection: Connection, context: TxnContext, txn: CommittingTxn, request: CommitTxnRequest) -> None:
    """Records the rows' changes. Raises WriteConflict."""
    # Writers that exclude each other by locks take a new snapshot after they get the lock, so they do not conflict.
    # Clients of Hive 3 do not know the flag, which counts as set; their shared locks decide.
    is_exclusive = request.exclWriteEnabled and not txn.has_shared_write_locks
    checked = txn.has_row_changes and not is_exclusive
    compares = checked and not txn.has_many_components
    if checked and not compares and (conflict := _conflict_of_many(connection, txn.txn_id)) is not None:
        raise WriteConflict(txn.txn_id, conflict)
    if add_write_set(connection, txn, only_row_changes=context.use_min_history_level, unless_conflict=compares):
        return
    conflict = _conflict_of(connection, txn.txn_id) if compares else None
    if conflict is not None:
        raise WriteConflict(txn.txn_id, conflict)


def _conflict_of(connection: Connection, txn_id: int) -> TxnAbortedException | None:
    """The error if a committed transaction, which this one has not seen, changed rows in the same places."""
    row = connection.execute(
        conflicts_with(
            S.WS_TXNID,
            S.WS_COMMIT_ID,
            S.WS_OPERATION_TYPE,
            C.TC_OPERATION_TYPE,
            C.TC_DATABASE,
            C.TC_TABLE,
            C.TC_PARTITION,
        ).limit(1),
        {"txn_id": txn_id},
    ).first()
    return None if row is None else _conflict_error(connection, txn_id, *row)


def _conflict_of_many(connection: Connection, txn_id: int) -> TxnAbortedException | None:
    """Like `_conflict_of`, compared in memory. The database would compare each component with each write of others,
    which takes seconds if both are many; meanwhile no transaction could be opened."""
    are_changes = (C.TC_TXNID == txn_id, C.TC_OPERATION_TYPE.in_(ROW_CHANGES), C.TC_TABLE.is_not(None))
    own: dict[tuple[str, str, str | None], str] = {}
    for database, table, partition, operation in connection.execute(
        select(C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION, C.TC_OPERATION_TYPE).where(*are_changes)
    ):
        own.setdefault((database, table, partition), operation)
    spelled = {(database, table, escaped_again(one)): (database, table, one) for database, table, one in own}
    spelled |= {one: one for one in own}
    are_unseen = [S.WS_COMMIT_ID >= txn_id, S.WS_TXNID != txn_id, S.WS_OPERATION_TYPE.in_(ROW_CHANGES)]
    tables = sorted({(database, table) for database, table, _ in own})
    if len(tables) <= _TABLES_IN_A_STATEMENT:
        are_unseen.append(or_(*((S.WS_DATABASE == database) & (S.WS_TABLE == table) for database, table in tables)))
    for other, commit_id, others_operation, database, table, partition in connection.execute(
        select(S.WS_TXNID, S.WS_COMMIT_ID, S.WS_OPERATION_TYPE, S.WS_DATABASE, S.WS_TABLE, S.WS_PARTITION).where(
            *are_unseen
        )
    ):
        again = (database, table, escaped_again(partition))
        found = spelled.get((database, table, partition)) or (again if again in own else None)
        if found is not None:
            return _conflict_error(connection, txn_id, other, commit_id, others_operation, own[found], *found)
    return None


_TABLES_IN_A_STATEMENT = 100
"""If there are more, the writes of all tables are read."""


def _conflict_error(
    connection: Connection,
    txn_id: int,
    other: int,
    others_commit_id: int,
    others_operation: str,
    operation: str,
    *names: str | None,
) -> TxnAbortedException:
    highest = connection.execute(select(func.max(T.TXN_ID))).scalar_one()
    return TxnAbortedException(
        f"Aborting [{txn_name(txn_id)},{highest}] due to a write conflict on {'/'.join(filter(None, names))} committed "
        f"by [{txn_name(other)},{others_commit_id}] {operation}/{others_operation}"
    )


# What is left of the transaction


def _add_replayed_components(connection: Connection, txn_id: int, request: CommitTxnRequest) -> None:
    """Records what the source says the transaction wrote. It must be assumed that it changed rows."""
    if not request.writeEventInfos:
        return
    connection.execute(
        insert(COMPLETED_TXN_COMPONENTS),
        [
            {
                "CTC_TXNID": txn_id,
                "CTC_DATABASE": info.database.lower(),
                "CTC_TABLE": info.table.lower(),
                # The source logs an empty text for a table without partitions.
                "CTC_PARTITION": info.partition or None,
                "CTC_WRITEID": info.writeId,
                "CTC_UPDATE_DELETE": "Y",
            }
            for info in request.writeEventInfos
        ],
    )


def _set_key_value(connection: Connection, txn_id: int, key_value: CommitTxnKeyValue) -> None:
    """Sets a table parameter with the commit (Hive's way to store a Kafka offset, for example)."""
    about = f"with txnId={txn_id}, tableId={key_value.tableId}, key={key_value.key}, value={key_value.value}"
    if not key_value.key.startswith(KEY_VALUE_PREFIX):
        raise MetaException(
            f"Error updating key/value in the sql backend {about}. key should start with {KEY_VALUE_PREFIX}."
        )
    params = TABLE_PARAMS.c
    updated = connection.execute(
        update(TABLE_PARAMS)
        .where(params.TBL_ID == key_value.tableId, same_text(params.PARAM_KEY, key_value.key))
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
    is_logged = txn.txn_type != TxnType.READ_ONLY and not is_hives_own_replication
    # Without an event no reader of the log would learn of the changed table parameter.
    if is_logged or request.keyValue is not None:
        committed = context.messages.build_commit_transaction(txn.txn_id, keeps_tables=request.keyValue is None)
        transaction.append_event(committed)
    if txn.records_next_txn:
        _finish_compaction(transaction, context, txn)


def _finish_compaction(transaction: WriteTransaction, context: TxnContext, txn: CommittingTxn) -> None:
    """The old files may be deleted when all transactions have ended that may read them: those opened until now."""
    connection, queue = transaction.connection, COMPACTION_QUEUE.c
    following = select(func.max(T.TXN_ID) + 1).scalar_subquery()
    connection.execute(
        update(COMPACTION_QUEUE)
        .where(queue.CQ_TXN_ID == txn.txn_id)
        .values(CQ_NEXT_TXN_ID=following, CQ_COMMIT_TIME=now_ms())
    )
    row = connection.execute(
        select(queue.CQ_ID, queue.CQ_TYPE, queue.CQ_DATABASE, queue.CQ_TABLE, queue.CQ_PARTITION)
        .where(queue.CQ_TXN_ID == txn.txn_id)
        .order_by(queue.CQ_ID)
        .limit(1)
    ).first()
    if row is not None:
        type_name = CompactionType._VALUES_TO_NAMES[COMPACTION_TYPES[row.CQ_TYPE]]
        transaction.append_event(
            context.messages.build_commit_compaction(
                txn.txn_id, row.CQ_ID, type_name, row.CQ_DATABASE, row.CQ_TABLE, row.CQ_PARTITION
            )
        )
