"""The statements of a commit, built once.

Marking a transaction committed and telling what it holds are one of them, and so are, on MySQL, noting what it wrote
as complete and taking the lock of all transactions. The order of the locks is Hive's all the same: the transaction's
row, then the lock of all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Delete,
    Insert,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.sql.elements import ColumnElement

from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    TXN_COMPONENTS,
    TXN_LOCK_TBL,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.codes import (
    COMPACT,
    COMPACTION_TXN_TYPES,
    ROW_CHANGES,
    SHARED_WRITE,
    TXN_COMMITTED,
    TXN_OPEN,
)
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import is_mysql, is_postgresql, lock_all_txns_exclusive
from hms_cache.store.transactions.errors import txn_name
from hms_cache.thrift_gen.hive_metastore.ttypes import TxnType

T = TXNS.c
C = TXN_COMPONENTS.c
S = WRITE_SET.c

#: The transaction's id, in every statement of this module.
_TXN_ID: ColumnElement[int] = bindparam("txn_id", type_=T.TXN_ID.type)


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

    @property
    def notes_next_txn(self) -> bool:
        """Whether it leaves old files to a cleaner, which waits for the transactions opened up to its commit."""
        return self.is_compaction or self.txn_type == TxnType.SOFT_DELETE

    @property
    def joins_write_set(self) -> bool:
        """Whether what it changes may conflict with others. A rebalance writes all rows anew: whoever changes rows at
        the same time has not seen where they went."""
        is_exempt = self.txn_type in (TxnType.READ_ONLY, TxnType.SOFT_DELETE, TxnType.COMPACTION)
        return self.has_components and not is_exempt

    @property
    def completes_components(self) -> bool:
        """Whether what it wrote becomes known to compaction and materialized views."""
        return self.has_components and self.txn_type != TxnType.READ_ONLY and not self.is_compaction


# Marking


def mark_committed(connection: Connection, context: TxnContext, txn_id: int) -> CommittingTxn | None:
    """Give an open transaction its new state, keep its row locked; None, and nothing is changed, if it is not open."""
    levels, ids = context.use_min_history_level, context.use_min_history_write_id
    if is_mysql(connection):
        # The number comes back with the acknowledgement, as the "last insert id".
        marked = connection.execute(_marking(levels, ids, on_mysql=True), {"txn_id": txn_id})
        if marked.rowcount == 0:
            return None
        facts = int(marked.lastrowid)
    else:
        row = connection.execute(_marking(levels, ids, on_mysql=False), {"txn_id": txn_id}).first()
        if row is None:
            return None
        facts = int(row[0])
    return _committing_txn(txn_id, facts)


_FACTS = 6
"""Lowest bits of the number that marking answers, in the order of `CommittingTxn`; then one that is always set, then
the type."""

_IS_TOLD = 1 << _FACTS


def mark_all_committed(connection: Connection, context: TxnContext, txn_ids: Collection[int]) -> list[CommittingTxn]:
    """As `mark_committed` for those of the transactions that are open, in the order of their ids.

    Their rows are locked first, by a statement of its own: whoever changes what a transaction holds locks its row, too,
    so that what is read after it is what there is.
    """
    parameters = {"txn_ids": sorted(txn_ids)}
    locked = [int(row[0]) for row in connection.execute(_LOCK_OPEN, parameters)]
    if not locked:
        return []
    parameters = {"txn_ids": locked}
    rows = connection.execute(_telling(context.use_min_history_level, context.use_min_history_write_id), parameters)
    told = {int(row[0]): int(row[1]) for row in rows}
    connection.execute(_MARK_ALL, parameters)
    return [_committing_txn(txn_id, told.get(txn_id, 0)) for txn_id in locked]


_TXN_IDS: Final = T.TXN_ID.in_(bindparam("txn_ids", expanding=True))
_LOCK_OPEN: Final = select(T.TXN_ID).where(_TXN_IDS, T.TXN_STATE == TXN_OPEN).order_by(T.TXN_ID).with_for_update()
_MARK_ALL: Final = update(TXNS).where(_TXN_IDS).values(TXN_STATE=TXN_COMMITTED)


@lru_cache
def _telling(use_levels: bool, use_write_ids: bool) -> Select[Any]:
    return select(T.TXN_ID, _facts_number(T.TXN_ID, use_levels, use_write_ids)).where(_TXN_IDS)


def _committing_txn(txn_id: int, facts: int) -> CommittingTxn:
    if not facts & _IS_TOLD:
        raise RuntimeError(f"the database has not told what {txn_name(txn_id)} holds: it cannot be committed")
    has = [bool(facts >> bit & 1) for bit in range(_FACTS)]
    return CommittingTxn(txn_id, facts >> (_FACTS + 1), *has)


def _facts_number(txn_id: ColumnElement[int], use_levels: bool, use_write_ids: bool) -> ColumnElement[int]:
    own = C.TC_TXNID == txn_id
    locks = HIVE_LOCKS.c.HL_TXNID == txn_id
    facts = (
        _there_is(TXN_COMPONENTS, own, C.TC_OPERATION_TYPE != COMPACT),
        _there_is(TXN_COMPONENTS, own, C.TC_OPERATION_TYPE.in_(ROW_CHANGES)),
        _there_is(HIVE_LOCKS, locks),
        _there_is(HIVE_LOCKS, locks, HIVE_LOCKS.c.HL_LOCK_TYPE == SHARED_WRITE),
        _there_is(MIN_HISTORY_LEVEL, MIN_HISTORY_LEVEL.c.MHL_TXNID == txn_id) if use_levels else None,
        _there_is(MIN_HISTORY_WRITE_ID, MIN_HISTORY_WRITE_ID.c.MH_TXNID == txn_id) if use_write_ids else None,
    )
    txn_type = func.coalesce(T.TXN_TYPE, literal(int(TxnType.DEFAULT)))
    number: ColumnElement[int] = txn_type * (2 * _IS_TOLD) + _IS_TOLD
    for bit, fact in enumerate(facts):
        if fact is not None:
            number = number + case((fact, 1 << bit), else_=0)
    return number


@lru_cache
def _marking(use_levels: bool, use_write_ids: bool, *, on_mysql: bool) -> Any:
    number = _facts_number(_TXN_ID, use_levels, use_write_ids)
    is_open = and_(T.TXN_ID == _TXN_ID, T.TXN_STATE == TXN_OPEN)
    statement = update(TXNS).where(is_open).values(TXN_STATE=TXN_COMMITTED)
    return statement.where(func.last_insert_id(number) > 0) if on_mysql else statement.returning(number)


def _there_is(table: Any, *conditions: Any) -> Any:
    return exists(select(literal(1)).select_from(table).where(*conditions))


# The write set


def conflicts_with(*columns: Any) -> Select[Any]:
    """Writes of committed transactions that the one with `txn_id` conflicts with: same rows may have been changed."""
    same_partition = or_(S.WS_PARTITION == C.TC_PARTITION, S.WS_PARTITION.is_(None) & C.TC_PARTITION.is_(None))
    return (
        select(*columns)
        .join_from(
            TXN_COMPONENTS,
            WRITE_SET,
            (S.WS_DATABASE == C.TC_DATABASE) & (S.WS_TABLE == C.TC_TABLE) & same_partition,
        )
        .where(
            C.TC_TXNID == _TXN_ID,
            C.TC_OPERATION_TYPE.in_(ROW_CHANGES),
            S.WS_OPERATION_TYPE.in_(ROW_CHANGES),
            S.WS_TXNID != _TXN_ID,
            S.WS_COMMIT_ID >= _TXN_ID,
        )
    )


def add_write_set(connection: Connection, txn: CommittingTxn, *, only_row_changes: bool, unless_conflict: bool) -> bool:
    """Note what the transaction writes under the highest transaction id; whether there was anything to note.

    `unless_conflict`: nothing is, if it `conflicts_with` a committed one.
    """
    statement = _adding_write_set(only_row_changes, unless_conflict)
    return connection.execute(statement, {"txn_id": txn.txn_id}).rowcount > 0


@lru_cache
def _adding_write_set(only_row_changes: bool, unless_conflict: bool) -> Insert:
    highest = select(func.max(T.TXN_ID)).scalar_subquery()
    own = TXN_COMPONENTS.alias("own").c
    condition = own.TC_OPERATION_TYPE.in_(ROW_CHANGES) if only_row_changes else own.TC_OPERATION_TYPE != COMPACT
    rows = (
        select(own.TC_DATABASE, own.TC_TABLE, own.TC_PARTITION, own.TC_TXNID, highest, own.TC_OPERATION_TYPE)
        .where(own.TC_TXNID == _TXN_ID, own.TC_TABLE.is_not(None), condition)
        .distinct()
    )
    if unless_conflict:
        rows = rows.where(~conflicts_with(literal(1)).exists())
    columns = ["WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_TXNID", "WS_COMMIT_ID", "WS_OPERATION_TYPE"]
    # The number of rows is to be had after the cursor is closed.
    return insert(WRITE_SET).from_select(columns, rows).execution_options(preserve_rowcount=True)


# What is left of the transaction


def lock_all_and_complete(connection: Connection, txn: CommittingTxn) -> bool:
    """Take the lock of all transactions exclusively; whether what the transaction wrote is noted as complete, too."""
    if not is_mysql(connection):
        lock_all_txns_exclusive(connection)
        return False
    connection.execute(_COMPLETION_UNDER_LOCK, {"txn_id": txn.txn_id})
    return True


def clean_up(connection: Connection, txn: CommittingTxn, *, completes_components: bool) -> None:
    """Delete what only an open transaction has: components, locks, history; in one statement where the database can.

    `completes_components`: what it wrote is first noted as complete.
    """
    # A soft delete takes away whole tables and partitions: Hive does not look which rows it changed.
    completion = _COMPLETIONS[txn.joins_write_set and txn.has_row_changes] if completes_components else None
    targets = (
        txn.has_components or txn.is_compaction,
        txn.has_locks,
        txn.has_history,
        txn.has_write_id_history,
    )
    parameters = {"txn_id": txn.txn_id}
    if is_postgresql(connection):
        statement = _moving_on_postgresql(targets, completion)
        if statement is not None:
            connection.execute(statement, parameters)
        return
    if completion is not None:
        connection.execute(completion, parameters)
    if is_mysql(connection) and sum(targets) > 1:
        connection.execute(_deleting_on_mysql(targets), parameters)
        return
    for is_target, deletion in zip(targets, _DELETIONS, strict=True):
        if is_target:
            connection.execute(deletion, parameters)


def clean_up_all(connection: Connection, txns: Sequence[CommittingTxn]) -> None:
    """As `clean_up` for transactions that changed no rows; what they wrote is first noted as complete."""
    completed = [txn.txn_id for txn in txns if txn.completes_components]
    if completed:
        connection.execute(_COMPLETE_ALL, {"txn_ids": completed})
    targets = (
        [txn.txn_id for txn in txns if txn.has_components],
        [txn.txn_id for txn in txns if txn.has_locks],
        [txn.txn_id for txn in txns if txn.has_history],
        [txn.txn_id for txn in txns if txn.has_write_id_history],
    )
    for txn_ids, deletion in zip(targets, _DELETE_ALL, strict=True):
        if txn_ids:
            connection.execute(deletion, {"txn_ids": txn_ids})


_TARGETS = (C.TC_TXNID, HIVE_LOCKS.c.HL_TXNID, MIN_HISTORY_LEVEL.c.MHL_TXNID, MIN_HISTORY_WRITE_ID.c.MH_TXNID)
_DELETIONS = tuple(delete(column.table).where(column == _TXN_ID) for column in _TARGETS)
_DELETE_ALL = tuple(delete(one.table).where(one.in_(bindparam("txn_ids", expanding=True))) for one in _TARGETS)
_Targets = tuple[bool, bool, bool, bool]


def _completing(
    update_delete: str, *, under_lock: bool = False, whose: ColumnElement[bool] = C.TC_TXNID == _TXN_ID
) -> Insert:
    rows = select(C.TC_TXNID, C.TC_DATABASE, C.TC_TABLE, C.TC_PARTITION, C.TC_WRITEID, literal(update_delete)).where(
        whose, C.TC_OPERATION_TYPE != COMPACT
    )
    if under_lock:
        # The lock's one row is joined, and locked with the components.
        rows = rows.join_from(TXN_COMPONENTS, TXN_LOCK_TBL, true()).with_for_update()
    return insert(COMPLETED_TXN_COMPONENTS).from_select(
        ["CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE"], rows
    )


_COMPLETION_UNDER_LOCK = _completing("Y", under_lock=True)
_COMPLETE_ALL = _completing("N", whose=C.TC_TXNID.in_(bindparam("txn_ids", expanding=True)))
_COMPLETIONS = {False: _completing("N"), True: _completing("Y")}


@lru_cache
def _moving_on_postgresql(targets: _Targets, completion: Insert | None) -> Insert | Delete | None:
    # All parts see the rows as they were before the statement.
    parts: list[Insert | Delete] = [] if completion is None else [completion]
    parts += [deletion for is_target, deletion in zip(targets, _DELETIONS, strict=True) if is_target]
    if not parts:
        return None
    first, *others = parts
    for number, other in enumerate(others):
        first = first.add_cte(other.cte(f"part_{number}"))
    return first


@lru_cache
def _deleting_on_mysql(targets: _Targets) -> Any:
    # One table of numbers, and each target joined to its own number: the rows add up instead of multiplying.
    columns = [column for is_target, column in zip(targets, _TARGETS, strict=True) if is_target]
    names = ", ".join(f"`{column.table.name}`" for column in columns)
    numbers = " UNION ALL ".join(f"SELECT {number} AS number" for number in range(len(columns)))
    joins = " ".join(
        f"LEFT JOIN `{column.table.name}` ON part.number = {number} AND `{column.name}` = :txn_id"
        for number, column in enumerate(columns)
    )
    return text(f"DELETE {names} FROM ({numbers}) AS part {joins}")
