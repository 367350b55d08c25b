"""`open_txns`: new transactions.

Ids come from TXNS' auto-increment column, so a transaction that is being opened leaves a gap that others may see before
its row is visible. Two rules of Hive make that safe (4.0, `OpenTxnsFunction`, HIVE-23048): readers count gaps younger
than a timeout as open, and a server that took longer than that to open transactions aborts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Integer, Select, bindparam, case, func, insert, literal, select, text

from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectRows,
    Statement,
    execute_directly,
    supports_direct_statements,
)
from hms_cache.store.engine.shared_packets import execute_parts
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.schema import MIN_HISTORY_LEVEL, TXN_LOCK_TBL, TXNS
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import is_mysql, lock_all_txns_shared, now_ms, time_after_waiting_ms
from hms_cache.store.transactions.replicated_txns import map_txns, target_txn_ids
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, OpenTxnRequest, TxnType

T = TXNS.c


class OpenedTxns(NamedTuple):
    """The result of a request to open transactions."""

    txn_ids: list[int]
    are_new: bool
    """False: transactions of a source that had been opened before."""


def open_txns(transaction: WriteTransaction, context: TxnContext, request: OpenTxnRequest) -> list[int]:
    """Like `open_or_find_txns`, but returns only the ids."""
    return open_or_find_txns(transaction, context, request).txn_ids


def open_or_find_txns(transaction: WriteTransaction, context: TxnContext, request: OpenTxnRequest) -> OpenedTxns:
    """Opens the requested transactions, at most `max_open_batch`, and returns their ids, ascending.

    If any transactions to replay are open already, returns their ids and opens none. Appends OPEN_TXN, except for
    read-only transactions and those that Hive's replication opens for itself (HIVE-24909). Raises MetaException.
    """
    if request.num_txns <= 0:
        raise MetaException(f"Invalid input for number of txns: {request.num_txns}")
    connection = transaction.connection
    source_ids = list(request.replSrcTxnIds or ())
    policy = request.replPolicy or ""
    if source_ids and not policy:
        raise MetaException("Transactions of a source can only be opened under a replication policy: send replPolicy")
    count = min(request.num_txns, context.transactions.max_open_batch)
    locks_itself = count == 1 and not source_ids and is_mysql(connection)
    if not locks_itself:
        lock_all_txns_shared(connection)
    if source_ids:
        known = target_txn_ids(connection, policy, source_ids)
        if known:
            # A repeated event. Nothing is known any more of transactions that have ended.
            return OpenedTxns(sorted(known.values()), are_new=False)
    row = _row_of(request)
    if locks_itself:
        txn_ids = [_open_one_on_mysql(transaction, context, request)]
    else:
        txn_ids = _insert(connection, row, count)
        _record_lowest_open(connection, context, txn_ids)
    if source_ids:
        map_txns(connection, policy, source_ids, txn_ids)
    _append_event(transaction, context, request, txn_ids)
    return OpenedTxns(txn_ids, are_new=True)


def opens_single(request: OpenTxnRequest) -> bool:
    """Whether the request is for one new transaction, so that several such requests can be combined."""
    return request.num_txns == 1 and not request.replSrcTxnIds


def open_one_each(
    transaction: WriteTransaction, context: TxnContext, requests: Sequence[OpenTxnRequest]
) -> list[list[int]]:
    """Like `open_txns` for requests of one transaction each (`opens_single`), in their order; set-wise on MySQL."""
    if not supports_direct_statements(transaction.connection):
        return [open_txns(transaction, context, request) for request in requests]
    [opened] = execute_parts(transaction, [Openings(transaction, context, requests)])
    return list(opened)


class Openings:
    """Like `open_one_each`, in packets shared with other calls (`shared_packets`). Only writes, without locking
    first."""

    def __init__(self, transaction: WriteTransaction, context: TxnContext, requests: Sequence[OpenTxnRequest]) -> None:
        self._transaction = transaction
        self._context = context
        self._requests = requests
        self.further_events = sum(map(is_logged, requests))

    def locking(self) -> Sequence[Statement]:
        """Nothing, so that the lock of all transactions is held as briefly as possible."""
        return ()

    def writing(self, found: Sequence[Any]) -> Sequence[Statement]:
        """Takes the lock of all transactions and inserts the new rows and their histories."""
        connection, rows = self._transaction.connection, [_row_of(request) for request in self._requests]
        statements: list[Statement] = [(_LOCK_ALL_TXNS_SHARED, {}), (_INSERT_ROWS, rows)]
        after_first = _ids_from(connection, 0, len(rows))
        if self._context.use_min_history_level:
            lowest = _lowest_open(connection, self._context)
            histories = [{"further": further, "lowest": lowest} for further in after_first]
            statements.append((_RECORD_LOWEST_OPEN_OF_NEW, histories))
        return statements

    def outcomes(self, written: Sequence[Any]) -> list[list[int]]:
        """The ids for each request."""
        connection = self._transaction.connection
        txn_ids = _ids_from(connection, written[1].last_id, len(self._requests))
        for request, txn_id in zip(self._requests, txn_ids, strict=True):
            _append_event(self._transaction, self._context, request, [txn_id])
        return [[txn_id] for txn_id in txn_ids]


def _type_of(request: OpenTxnRequest) -> int:
    if request.replSrcTxnIds:
        return int(TxnType.REPL_CREATED)
    # An unknown type counts as none, as in Java.
    return int(request.txn_type if request.txn_type in TxnType._VALUES_TO_NAMES else TxnType.DEFAULT)


def _row_of(request: OpenTxnRequest) -> dict[str, Any]:
    return {
        "TXN_STATE": TXN_OPEN,
        "TXN_USER": request.user,
        "TXN_HOST": request.hostname,
        "TXN_AGENT_INFO": request.agentInfo,
        "TXN_TYPE": _type_of(request),
    }


def _lowest_open(connection: Connection, context: TxnContext) -> int:
    """The oldest transaction that new ones see as open, including gaps; Java cleaners use it (MIN_HISTORY_LEVEL).

    Reading it takes longer than everything else in opening a transaction, so it is cached. A value that is too low only
    keeps files slightly longer.
    """
    lowest = context.lowest_open.known()
    if lowest is None:
        timeout_ms = context.transactions.open_timeout_ms
        lowest = int(connection.execute(_READ_LOWEST_OPEN, {"timeout_ms": timeout_ms}).scalar_one())
        context.lowest_open.seen(lowest)
    return lowest


def _record_lowest_open(connection: Connection, context: TxnContext, txn_ids: list[int]) -> None:
    if context.use_min_history_level:
        lowest = _lowest_open(connection, context)
        rows = [{"MHL_TXNID": txn_id, "MHL_MIN_OPEN_TXNID": lowest} for txn_id in txn_ids]
        connection.execute(_RECORD_LOWEST_OPEN, rows)


def is_logged(request: OpenTxnRequest) -> bool:
    """Whether the requested transactions have an OPEN_TXN event."""
    is_hives_own_replication = bool(request.replPolicy) and not request.replSrcTxnIds
    return _type_of(request) != TxnType.READ_ONLY and not is_hives_own_replication


def _append_event(
    transaction: WriteTransaction, context: TxnContext, request: OpenTxnRequest, txn_ids: list[int]
) -> None:
    if is_logged(request):
        for first, last in _runs(txn_ids):
            transaction.append_event(context.messages.build_open_transactions(first, last))


_INSERT_ONE = insert(TXNS).values(
    {
        **{name: bindparam(name) for name in ("TXN_STATE", "TXN_USER", "TXN_HOST", "TXN_AGENT_INFO", "TXN_TYPE")},
        "TXN_STARTED": now_ms(),
        "TXN_LAST_HEARTBEAT": now_ms(),
    }
)

_INSERT_ONE_UNDER_LOCK = Direct(
    insert(TXNS).from_select(
        ["TXN_STATE", "TXN_USER", "TXN_HOST", "TXN_AGENT_INFO", "TXN_TYPE", "TXN_STARTED", "TXN_LAST_HEARTBEAT"],
        select(
            *(bindparam(name) for name in ("TXN_STATE", "TXN_USER", "TXN_HOST", "TXN_AGENT_INFO", "TXN_TYPE")),
            # Not the time at which the statement began to wait: readers count gaps below an old row as closed.
            time_after_waiting_ms(),
            time_after_waiting_ms(),
        )
        .select_from(TXN_LOCK_TBL)
        .with_for_update(read=True),
    )
)
"""The shared lock and the row in one statement: the lock's row is read and locked before an id is generated."""

_RECORD_LOWEST_OPEN_OF_LAST = Direct(
    insert(MIN_HISTORY_LEVEL).values(
        MHL_TXNID=func.last_insert_id(), MHL_MIN_OPEN_TXNID=bindparam("lowest", type_=T.TXN_ID.type)
    )
)


def _open_one_on_mysql(transaction: WriteTransaction, context: TxnContext, request: OpenTxnRequest) -> int:
    """Sends all rows of a new transaction, and the id of its event, in one packet."""
    statements: list[Statement] = [(_INSERT_ONE_UNDER_LOCK, _row_of(request))]
    if context.use_min_history_level:
        lowest = _lowest_open(transaction.connection, context)
        statements.append((_RECORD_LOWEST_OPEN_OF_LAST, {"lowest": lowest}))
    if is_logged(request):
        opened, *_ = transaction.execute_and_allocate_event_ids(statements, 1)
    else:
        # If it is executed twice, an unused transaction remains, as after a client that does not receive its id.
        opened, *_ = transaction.execute_and_commit(statements)
    if opened.rows != 1:
        raise MetaException(f"TXN_LOCK_TBL must have one row, as Hive's schema script makes it: found {opened.rows}")
    return int(opened.last_id)


def _insert(connection: Connection, row: Mapping[str, Any], count: int) -> list[int]:
    if count == 1:
        inserted = connection.execute(_INSERT_ONE, row).inserted_primary_key
        assert inserted is not None
        return [int(inserted[0])]
    if is_mysql(connection):
        return _insert_on_mysql(connection, [row] * count)
    rows = [{**row, "TXN_STARTED": now_ms(), "TXN_LAST_HEARTBEAT": now_ms()}] * count
    inserted_ids = connection.execute(insert(TXNS).values(rows).returning(T.TXN_ID)).scalars()
    return sorted(inserted_ids)


def _insert_on_mysql(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the ids of the rows, in their order."""
    [inserted] = execute_directly(connection, [(_INSERT_ROWS, rows)])
    return _ids_from(connection, inserted.last_id, len(rows))


def _ids_from(connection: Connection, first: int, count: int) -> list[int]:
    """The ids of the rows of one INSERT … VALUES on MySQL.

    InnoDB gives them consecutive ids in every innodb_autoinc_lock_mode; a Galera cluster counts in steps.
    """
    step = 1 if count == 1 else connection.info.get(_STEP)
    if step is None:
        step = int(connection.execute(text("SELECT @@auto_increment_increment")).scalar_one())
        connection.info[_STEP] = step
    return list(range(first, first + count * step, step))


_STEP = "hms_cache.auto_increment_increment"
"""Key of the session's value in the connection's info."""

_INSERT_ROWS = DirectRows(_INSERT_ONE)

_RECORD_LOWEST_OPEN_OF_NEW = DirectRows(
    insert(MIN_HISTORY_LEVEL).values(
        MHL_TXNID=func.last_insert_id() + bindparam("further", type_=Integer()),
        MHL_MIN_OPEN_TXNID=bindparam("lowest", type_=T.TXN_ID.type),
    )
)
"""One row for each transaction that was just inserted."""

_LOCK_ALL_TXNS_SHARED = Direct(text("SELECT `TXN_LOCK` INTO @hms_cache_lock FROM `TXN_LOCK_TBL` LOCK IN SHARE MODE"))
"""Like `lock_all_txns_shared`, without returning rows."""


def _reading_lowest_open() -> Select[Any]:
    # Not `min`: the first open id in order is sufficient.
    lowest_open = select(T.TXN_ID).where(T.TXN_STATE == TXN_OPEN).order_by(T.TXN_ID).limit(1).scalar_subquery()
    is_old = T.TXN_STARTED < now_ms() - bindparam("timeout_ms", type_=BigInteger())
    newest_old = select(T.TXN_ID).where(is_old).order_by(T.TXN_ID.desc()).limit(1).scalar_subquery()
    low_boundary = func.coalesce(newest_old, literal(0)) + 1
    # Without an open transaction: those being opened are above the boundary.
    return select(case((lowest_open < low_boundary, lowest_open), else_=low_boundary))


_READ_LOWEST_OPEN = _reading_lowest_open()
_RECORD_LOWEST_OPEN = insert(MIN_HISTORY_LEVEL)


def _runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive ids."""
    first = last = None
    for txn_id in ids:
        if first is None or last is None:
            first = last = txn_id
        elif txn_id == last + 1:
            last = txn_id
        else:
            yield first, last
            first = last = txn_id
    if first is not None and last is not None:
        yield first, last


def count_open_txns(connection: Connection) -> int:
    """The number of open transactions."""
    return int(connection.execute(select(func.count()).where(T.TXN_STATE == TXN_OPEN)).scalar_one())
