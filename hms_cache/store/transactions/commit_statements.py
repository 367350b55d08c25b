"""The statements of a commit, compiled once.

One statement marks the transaction committed and reports which rows it has. On MySQL another one records its writes as
complete and locks all transactions. The lock order is Hive's: first the transaction's row, then the lock of all
transactions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Delete,
    Insert,
    Select,
    Update,
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
    union_all,
    update,
)
from sqlalchemy.sql.elements import ColumnElement

from hms_cache.store.engine.direct_statements import (
    Direct,
    DirectQuery,
    Statement,
    row_count,
    supports_direct_statements,
)
from hms_cache.store.engine.log_writes import ALLOCATING_EVENT_IDS
from hms_cache.store.engine.read_plans import PlannedQuery, fetch_together
from hms_cache.store.engine.text_conditions import ExactText, same_text
from hms_cache.store.engine.work_units import WriteTransaction
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
from hms_cache.store.transactions.names import MAX_PARTITION_CHARACTERS
from hms_cache.thrift_gen.hive_metastore.ttypes import TxnType
from hms_cache.values import frozen

T = TXNS.c
C = TXN_COMPONENTS.c
S = WRITE_SET.c

#: The transaction's id, a parameter of every statement in this module.
_TXN_ID: ColumnElement[int] = bindparam("txn_id", type_=T.TXN_ID.type)


@frozen
class CommittingTxn:
    """A transaction being committed, and what the database has of it."""

    txn_id: int
    txn_type: int
    has_components: bool
    """Whether it wrote anything."""

    has_row_changes: bool
    has_component_rows: bool
    """Also true for a compaction that ran in it: clients of Hive 3 do not give such transactions a type."""

    has_locks: bool
    has_shared_write_locks: bool
    has_history: bool
    has_write_id_history: bool
    has_many_components: bool
    """Too many to compare them with all other changes in one statement, whose cost is the product of both."""

    @property
    def is_compaction(self) -> bool:
        return self.txn_type in COMPACTION_TXN_TYPES

    @property
    def records_next_txn(self) -> bool:
        """Whether it leaves old files to a cleaner, which waits for transactions opened before its commit."""
        return self.is_compaction or self.txn_type == TxnType.SOFT_DELETE

    @property
    def joins_write_set(self) -> bool:
        """Whether its changes may conflict with others. A rebalance rewrites all rows: a concurrent change of rows has
        not seen their new places."""
        is_exempt = self.txn_type in (TxnType.READ_ONLY, TxnType.SOFT_DELETE, TxnType.COMPACTION)
        return self.has_components and not is_exempt

    @property
    def completes_components(self) -> bool:
        """Whether its writes become visible to compaction and materialized views."""
        return self.has_components and self.txn_type != TxnType.READ_ONLY and not self.is_compaction


# Marking


def mark_committed(
    transaction: WriteTransaction, context: TxnContext, txn_id: int, *, allocates_event_id: bool
) -> CommittingTxn | None:
    """Sets the new state of an open transaction and keeps its row locked. Returns None, without a change, if it is not
    open.

    On MySQL its history is deleted as well. `allocates_event_id`: also takes the id of its one event, if it has no
    other rows.
    """
    levels, ids = context.use_min_history_level, context.use_min_history_write_id
    connection, values = transaction.connection, {"txn_id": txn_id}
    if supports_direct_statements(connection):
        # The number is returned in the acknowledgement as the "last insert id".
        statements: list[Statement] = [(_marking_on_mysql(ids), values)]
        if levels:
            statements.append((_FORGET_HISTORY, values))
        if allocates_event_id:
            marked, *_ = transaction.execute_and_allocate_event_ids(statements, 1, _ALLOCATE_IF_PLAIN)
        else:
            marked, *_ = transaction.execute_directly(statements)
        return _committing_txn(txn_id, marked.last_id) if marked.rows else None
    if is_postgresql(connection):
        # A statement that waits for the row lock sees other rows as they were before the wait, without what the lock's
        # holder has added. Only the next statement sees that. Both are sent together.
        locking = PlannedQuery(_LOCK_ONE, values)
        _, marked = fetch_together(connection, [locking, PlannedQuery(_marking_on_postgresql(levels, ids), values)])
        return _committing_txn(txn_id, int(marked[0][0])) if marked else None
    row = connection.execute(_marking(levels, ids), values).first()
    return None if row is None else _committing_txn(txn_id, int(row[0]))


_FACTS = 7
"""Number of the lowest bits of the number that marking returns: two for the components (`_COMPACTING` …), then one each
for other rows, in the order of `CommittingTxn`. Above them are a bit that is always set, and the type."""

_COMPACTING, _WRITING, _CHANGING_ROWS = 1, 2, 3
"""The highest of these that applies to a transaction's components; 0: it has none."""

_IS_SET = 1 << _FACTS

_FEW_COMPONENTS: Final = 4


def mark_all_committed(connection: Connection, context: TxnContext, txn_ids: Collection[int]) -> list[CommittingTxn]:
    """Like `mark_committed` for those of the transactions that are open, in the order of their ids, without event ids.

    First locks their rows with a statement of its own. Every change of a transaction's rows locks its row, too, so what
    is read after that is complete.
    """
    parameters = {"txn_ids": sorted(txn_ids)}
    locked = [int(row[0]) for row in connection.execute(_LOCK_OPEN, parameters)]
    if not locked:
        return []
    parameters = {"txn_ids": locked}
    facts_rows = connection.execute(
        _facts_query(context.use_min_history_level, context.use_min_history_write_id), parameters
    )
    found = _committing_txns(locked, facts_rows)
    connection.execute(_MARK_ALL, parameters)
    return found


class MarkingOfAll:
    """Like `mark_all_committed`, as statements of a packet. On MySQL the histories are deleted as well."""

    def __init__(self, context: TxnContext, txn_ids: Collection[int]) -> None:
        self._context = context
        self._txn_ids = sorted(txn_ids)

    def statements(self) -> list[Statement]:
        """The statements to send."""
        values = {"txn_ids": self._txn_ids}
        facts_query = _facts_query_on_mysql(self._context.use_min_history_write_id)
        statements: list[Statement] = [
            (_LOCK_OPEN_ON_MYSQL, values),
            (facts_query, values),
            (_MARK_ALL_ON_MYSQL, values),
        ]
        if self._context.use_min_history_level:
            # A transaction that is not open has no history.
            statements.append((_FORGET_HISTORIES, values))
        return statements

    def marked(self, answers: Sequence[Any]) -> list[CommittingTxn]:
        """Parses the results of the statements."""
        locked, facts_rows, *_ = answers
        return _committing_txns([int(row[0]) for row in locked], facts_rows)


def _committing_txns(locked: Sequence[int], facts_rows: Iterable[Any]) -> list[CommittingTxn]:
    numbers = {int(row[0]): int(row[1]) for row in facts_rows}
    return [_committing_txn(txn_id, numbers.get(txn_id, 0)) for txn_id in locked]


_TXN_IDS: Final = T.TXN_ID.in_(bindparam("txn_ids", expanding=True))
_LOCK_OPEN: Final = select(T.TXN_ID).where(_TXN_IDS, T.TXN_STATE == TXN_OPEN).order_by(T.TXN_ID).with_for_update()
_LOCK_OPEN_ON_MYSQL: Final = DirectQuery(_LOCK_OPEN)
_MARK_ALL: Final = update(TXNS).where(_TXN_IDS, T.TXN_STATE == TXN_OPEN).values(TXN_STATE=TXN_COMMITTED)
_MARK_ALL_ON_MYSQL: Final = Direct(_MARK_ALL)
_FORGET_HISTORIES: Final = Direct(
    delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID.in_(bindparam("txn_ids", expanding=True)))
)


@lru_cache
def _facts_query(use_levels: bool, use_write_ids: bool) -> Select[Any]:
    return select(T.TXN_ID, _facts_number(T.TXN_ID, use_levels, use_write_ids)).where(_TXN_IDS)


@lru_cache
def _facts_query_on_mysql(use_write_ids: bool) -> DirectQuery:
    return DirectQuery(_facts_query(False, use_write_ids))


def _committing_txn(txn_id: int, facts: int) -> CommittingTxn:
    if not facts & _IS_SET:
        raise RuntimeError(f"the database did not report what {txn_name(txn_id)} holds: it cannot be committed")
    components, has = facts & 0b11, [bool(facts >> bit & 1) for bit in range(2, _FACTS)]
    return CommittingTxn(
        txn_id,
        facts >> (_FACTS + 1),
        components >= _WRITING,
        components >= _CHANGING_ROWS,
        components >= _COMPACTING,
        *has,
    )


def _facts_number(txn_id: ColumnElement[int], use_levels: bool, use_write_ids: bool) -> ColumnElement[int]:
    own = C.TC_TXNID == txn_id
    locks = HIVE_LOCKS.c.HL_TXNID == txn_id
    # One lookup per table.
    operation = C.TC_OPERATION_TYPE
    components = case((operation.in_(ROW_CHANGES), _CHANGING_ROWS), (operation == COMPACT, _COMPACTING), else_=_WRITING)
    writes = select(func.max(components) + case((func.count() > _FEW_COMPONENTS, 1 << 6), else_=0)).where(own)
    held = select(func.max(case((HIVE_LOCKS.c.HL_LOCK_TYPE == SHARED_WRITE, 0b1100), else_=0b0100))).where(locks)
    txn_type = func.coalesce(T.TXN_TYPE, literal(int(TxnType.DEFAULT)))
    number: ColumnElement[int] = txn_type * (2 * _IS_SET) + _IS_SET
    number = number + func.coalesce(writes.scalar_subquery(), 0) + func.coalesce(held.scalar_subquery(), 0)
    if use_levels:
        number = number + case((_there_is(MIN_HISTORY_LEVEL, MIN_HISTORY_LEVEL.c.MHL_TXNID == txn_id), 1 << 4), else_=0)
    if use_write_ids:
        history = _there_is(MIN_HISTORY_WRITE_ID, MIN_HISTORY_WRITE_ID.c.MH_TXNID == txn_id)
        number = number + case((history, 1 << 5), else_=0)
    return number


@lru_cache
def _marking(use_levels: bool, use_write_ids: bool) -> Any:
    return _mark_committed().returning(_facts_number(_TXN_ID, use_levels, use_write_ids))


@lru_cache
def _marking_on_postgresql(use_levels: bool, use_write_ids: bool) -> DirectQuery:
    return DirectQuery(_marking(use_levels, use_write_ids))


_LOCK_ONE: Final = DirectQuery(select(T.TXN_ID).where(T.TXN_ID == _TXN_ID).with_for_update())


@lru_cache
def _marking_on_mysql(use_write_ids: bool) -> Direct:
    number = _facts_number(_TXN_ID, False, use_write_ids)
    return Direct(_mark_committed().where(func.last_insert_id(number) > 0))


def _mark_committed() -> Update:
    return update(TXNS).where(and_(T.TXN_ID == _TXN_ID, T.TXN_STATE == TXN_OPEN)).values(TXN_STATE=TXN_COMMITTED)


_FORGET_HISTORY = Direct(delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID == _TXN_ID))

_ALLOCATE_IF_PLAIN = Direct(
    # If it is not open, there is no history, and the number is that of an earlier statement.
    ALLOCATING_EVENT_IDS.where(row_count() == 1, func.last_insert_id() == int(TxnType.DEFAULT) * 2 * _IS_SET + _IS_SET)
)
"""Sent after marking: if no remaining statement waits for others' locks, the event's id is taken at once."""


def _there_is(table: Any, *conditions: Any) -> Any:
    return exists(select(literal(1)).select_from(table).where(*conditions))


# The write set


def _escaped_again(partition: ColumnElement[str]) -> ColumnElement[str]:
    """The spelling in which Hive 4 records a partition named by a lock: it escapes the client's escaped name again.

    As `partition_escaped_again`: in an escaped name only the escape character itself can be escaped.
    """
    return func.replace(partition, "%", "%25")


def escaped_again(partition: str | None) -> str | None:
    """Like `_escaped_again`, for a text."""
    return None if partition is None else partition.replace("%", "%25")


def is_same_partition(one: ColumnElement[str], other: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether two names are of one partition, even if a Hive 4 metastore on the same database has recorded one of
    them."""
    return or_(same_text(one, other), same_text(one, _escaped_again(other)), same_text(_escaped_again(one), other))


def conflicts_with(*columns: Any) -> Select[Any]:
    """Writes of committed transactions with which the transaction `txn_id` conflicts: both may have changed the same
    rows."""
    same_partition = or_(
        is_same_partition(S.WS_PARTITION, C.TC_PARTITION), S.WS_PARTITION.is_(None) & C.TC_PARTITION.is_(None)
    )
    return (
        select(*columns)
        .join_from(
            TXN_COMPONENTS, WRITE_SET, (S.WS_DATABASE == C.TC_DATABASE) & (S.WS_TABLE == C.TC_TABLE) & same_partition
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
    """Records the transaction's writes under the highest transaction id; returns whether there were any.

    `unless_conflict`: records nothing if it `conflicts_with` a committed one. A partition is also recorded in Hive 4's
    spelling, so that transactions of a Hive 4 metastore on the same database detect the conflict.
    """
    statement = _adding_write_set(only_row_changes, unless_conflict)
    return connection.execute(statement, {"txn_id": txn.txn_id}).rowcount > 0


@lru_cache
def _adding_write_set(only_row_changes: bool, unless_conflict: bool) -> Insert:
    highest = select(func.max(T.TXN_ID)).scalar_subquery()
    own = TXN_COMPONENTS.alias("own").c
    condition = own.TC_OPERATION_TYPE.in_(ROW_CHANGES) if only_row_changes else own.TC_OPERATION_TYPE != COMPACT
    keys = (own.TC_DATABASE, own.TC_TABLE, own.TC_PARTITION, own.TC_TXNID, own.TC_OPERATION_TYPE)
    rows = (
        select(*keys[:-1], highest, own.TC_OPERATION_TYPE)
        .where(own.TC_TXNID == _TXN_ID, own.TC_TABLE.is_not(None), condition)
        .group_by(*keys, ExactText(own.TC_PARTITION))
    )
    if unless_conflict:
        rows = rows.where(~conflicts_with(literal(1)).exists())
    again = _escaped_again(own.TC_PARTITION)
    fits = func.char_length(again) <= MAX_PARTITION_CHARACTERS
    as_hive_4 = rows.with_only_columns(*keys[:2], again, own.TC_TXNID, highest, own.TC_OPERATION_TYPE)
    both = union_all(rows, as_hive_4.where(own.TC_PARTITION.contains("%", autoescape=True), fits))
    columns = ["WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_TXNID", "WS_COMMIT_ID", "WS_OPERATION_TYPE"]
    # so that the number of rows is available after the cursor is closed
    return insert(WRITE_SET).from_select(columns, both).execution_options(preserve_rowcount=True)


# What is left of the transaction


def lock_all_and_complete(connection: Connection, txn: CommittingTxn) -> bool:
    """Locks all transactions exclusively. Returns whether the transaction's writes are recorded as complete as well."""
    if not is_mysql(connection):
        lock_all_txns_exclusive(connection)
        return False
    connection.execute(_COMPLETION_UNDER_LOCK, {"txn_id": txn.txn_id})
    return True


def clean_up(
    transaction: WriteTransaction, txn: CommittingTxn, *, completes_components: bool, allocates_event_id: bool
) -> None:
    """Deletes the rows that only an open transaction has: components, locks, history; in one round trip if possible.

    `completes_components`: first records its writes as complete. `allocates_event_id`: these are its last statements,
    and it logs one event.
    """
    connection = transaction.connection
    # A soft delete removes whole tables and partitions: Hive does not record which rows it changed.
    has_changed = txn.joins_write_set and txn.has_row_changes
    completion = _COMPLETIONS[has_changed] if completes_components else None
    targets = (txn.has_component_rows, txn.has_locks, txn.has_history, txn.has_write_id_history)
    parameters = {"txn_id": txn.txn_id}
    if is_postgresql(connection):
        statement = _moving_on_postgresql(targets, completion)
        if statement is not None:
            connection.execute(statement, parameters)
        return
    if supports_direct_statements(connection):
        statements: list[Statement] = []
        if completes_components:
            statements.append((_COMPLETIONS_ON_MYSQL[has_changed], parameters))
        if any(targets):
            statements.append((_deleting_on_mysql(targets), parameters))
        if allocates_event_id and statements:
            transaction.execute_and_allocate_event_ids(statements, 1)
        elif statements:
            transaction.execute_directly(statements)
        return
    if completion is not None:
        connection.execute(completion, parameters)
    for is_target, deletion in zip(targets, _DELETIONS, strict=True):
        if is_target:
            connection.execute(deletion, parameters)


def clean_up_all(connection: Connection, txns: Sequence[CommittingTxn]) -> None:
    """Like `clean_up` for transactions that changed no rows, after recording their writes as complete."""
    for number, values in _cleanings(txns):
        connection.execute(_CLEAN_ALL[number], values)


def cleaning_up_all(txns: Sequence[CommittingTxn]) -> list[Statement]:
    """Like `clean_up_all`, as statements of a packet."""
    return [(_CLEAN_ALL_ON_MYSQL[number], values) for number, values in _cleanings(txns)]


def _cleanings(txns: Sequence[CommittingTxn]) -> list[tuple[int, dict[str, list[int]]]]:
    """Which statements of `_CLEAN_ALL` to execute, and their values."""
    completed = [txn.txn_id for txn in txns if txn.completes_components]
    targets = (
        [txn.txn_id for txn in txns if txn.has_component_rows],
        [txn.txn_id for txn in txns if txn.has_locks],
        [txn.txn_id for txn in txns if txn.has_history],
        [txn.txn_id for txn in txns if txn.has_write_id_history],
    )
    return [(number, {"txn_ids": txn_ids}) for number, txn_ids in enumerate((completed, *targets)) if txn_ids]


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
        # The lock's single row is joined, and locked together with the components.
        rows = rows.join_from(TXN_COMPONENTS, TXN_LOCK_TBL, true()).with_for_update()
    return insert(COMPLETED_TXN_COMPONENTS).from_select(
        ["CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE"], rows
    )


_COMPLETION_UNDER_LOCK = _completing("Y", under_lock=True)
_COMPLETE_ALL = _completing("N", whose=C.TC_TXNID.in_(bindparam("txn_ids", expanding=True)))
_CLEAN_ALL: Final = (_COMPLETE_ALL, *_DELETE_ALL)
_CLEAN_ALL_ON_MYSQL: Final = tuple(map(Direct, _CLEAN_ALL))
_COMPLETIONS = {False: _completing("N"), True: _completing("Y")}
_COMPLETIONS_ON_MYSQL = {has_changed: Direct(completion) for has_changed, completion in _COMPLETIONS.items()}


@lru_cache
def _moving_on_postgresql(targets: _Targets, completion: Insert | None) -> Insert | Delete | None:
    # All parts of the statement see the rows as they were before it.
    parts: list[Insert | Delete] = [] if completion is None else [completion]
    parts += [deletion for is_target, deletion in zip(targets, _DELETIONS, strict=True) if is_target]
    if not parts:
        return None
    first, *others = parts
    for number, other in enumerate(others):
        first = first.add_cte(other.cte(f"part_{number}"))
    return first


@lru_cache
def _deleting_on_mysql(targets: _Targets) -> Direct:
    deletions = [deletion for is_target, deletion in zip(targets, _DELETIONS, strict=True) if is_target]
    if len(deletions) == 1:
        return Direct(deletions[0])
    # A table of numbers with each target joined to its own number: the rows are added instead of multiplied.
    columns = [column for is_target, column in zip(targets, _TARGETS, strict=True) if is_target]
    names = ", ".join(f"`{column.table.name}`" for column in columns)
    numbers = " UNION ALL ".join(f"SELECT {number} AS number" for number in range(len(columns)))
    joins = " ".join(
        f"LEFT JOIN `{column.table.name}` ON part.number = {number} AND `{column.name}` = :txn_id"
        for number, column in enumerate(columns)
    )
    return Direct(text(f"DELETE {names} FROM ({numbers}) AS part {joins}"))
