"""Acquires locks: `lock` and `check_lock`.

A lock request gets an external id; its components are rows with internal ids 1, 2, … and are granted all or none. Of
two conflicting requests the one with the smaller external id goes first, whatever their states, so the order in which
ids become visible is part of the protocol. Therefore the id is allocated under the row lock of NEXT_LOCK_ID and
committed together with the rows. While that row lock is held, every earlier request is committed and visible. So it can
be decided whether the new one has to wait before its rows are inserted, and they are written once, as granted or as
waiting. A waiting request holds no connection and no row lock; its client asks again with `check_lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, insert, or_, select

from hms_cache.store.locks.lock_rows import beat_locks, grant, lock_row, record_blocker, rows_of_locks
from hms_cache.store.locks.lock_rules import LockRow, LockTarget, earlier_locks_query, first_conflict
from hms_cache.store.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXN_COMPONENTS, TXN_TO_WRITE_ID
from hms_cache.store.transactions.codes import (
    EXCLUSIVE,
    EXCLUSIVE_WRITE,
    INSERT,
    LOCK_ACQUIRED,
    LOCK_STATES,
    LOCK_TYPE_CODES,
    LOCK_TYPES,
    LOCK_WAITING,
    OPERATION_CODES,
    ROW_CHANGES,
    SHARED_READ,
    SHARED_WRITE,
    UPDATE,
)
from hms_cache.store.transactions.database_values import allocate_id, now_ms, read_now_ms
from hms_cache.store.transactions.errors import no_such_lock_error, not_open_error
from hms_cache.store.transactions.names import (
    MAX_PARTITION_CHARACTERS,
    partition_escaped_again,
    plain_database,
    plain_partition,
    plain_table,
)
from hms_cache.store.transactions.txn_rows import heartbeat_txn, lock_open_txn
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckLockRequest,
    DataOperationType,
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    MetaException,
)
from hms_cache.values import frozen

L = HIVE_LOCKS.c

_OPERATION_OF_OLD_CLIENTS = {SHARED_WRITE: UPDATE, EXCLUSIVE_WRITE: UPDATE, EXCLUSIVE: INSERT}


@frozen
class ValidatedLockRequest:
    """A lock request whose components have been validated."""

    request: LockRequest
    txn_id: int
    """0: outside a transaction."""
    targets: Sequence[LockTarget]
    """The object of each component, in their order; then partitions again under their other spelling, see
    `_other_spellings`."""


Conflict = tuple[int, LockRow]
"""Position of the first component that must wait, and the oldest lock that it waits for."""


def validated_lock_request(request: LockRequest) -> ValidatedLockRequest:
    """Validates the request.

    Raises MetaException (no component, or an incomplete one), NoSuchTxnException (an id below 0).
    """
    if not request.component:
        raise MetaException("A lock request needs at least one component")
    txn_id = request.txnid or 0
    if txn_id < 0:
        # The rows would belong to a transaction that nobody can end, so they could never be released.
        raise not_open_error(txn_id, None)
    targets = [_target_of(component) for component in request.component]
    return ValidatedLockRequest(request, txn_id, targets + _other_spellings(targets))


def lock(connection: Connection, requested: ValidatedLockRequest) -> LockResponse:
    """Requests all locks at once; returns ACQUIRED or WAITING, or NOT_ACQUIRED if the request must not wait.

    In a transaction it also records what the transaction is about to write (TXN_COMPONENTS). Raises NoSuchTxnException,
    TxnAbortedException.
    """
    txn_id = requested.txn_id
    now: int | None = None
    if txn_id > 0:
        now = lock_open_txn(connection, txn_id)
        add_components(connection, [requested])
    elif len(requested.targets) > 1:
        now = read_now_ms(connection)
    external_id = allocate_id(connection, NEXT_LOCK_ID.c.NL_NEXT)

    def conflict_of(targets: Sequence[LockTarget]) -> Conflict | None:
        return conflict_in_database(connection, external_id, txn_id, targets)

    answer, rows = answer_and_rows(requested, external_id, now, conflict_of)
    if now is None:
        connection.execute(_INSERT_NEW_LOCK[answer.state], rows[0])
    elif rows:
        connection.execute(INSERT_LOCKS, rows)
    return answer


def _target_of(component: LockComponent) -> LockTarget:
    lock_type = LOCK_TYPE_CODES.get(component.type)
    if lock_type is None:
        raise MetaException(f"Unknown lock type: {component.type}")
    if not component.dbname:
        raise MetaException("A lock component needs a database name")
    table = plain_table(component.tablename) if component.tablename else None
    partition = plain_partition(component.partitionname) if component.partitionname else None
    if partition is not None and table is None:
        raise MetaException(f"A lock on partition {component.partitionname} needs a table name")
    return LockTarget(lock_type, plain_database(component.dbname), table, partition)


def _other_spellings(targets: Iterable[LockTarget]) -> list[LockTarget]:
    """The partitions among these whose names Hive 4 stores differently from Hive 3, with these names.

    Metastores compare texts. With both names, a lock conflicts with locks that either version takes on the same
    database.
    """
    others = []
    for target in targets:
        again = None if target.partition is None else partition_escaped_again(target.partition)
        if again is not None and len(again) <= MAX_PARTITION_CHARACTERS:
            others.append(LockTarget(target.lock_type, target.database, target.table, again))
    return others


# What the transaction is about to write


def add_components(connection: Connection, requested: Iterable[ValidatedLockRequest]) -> None:
    """Records what the transactions of these requests are about to write. Their rows in TXNS are locked."""
    if not (writing := writing_txns(requested)):
        return
    found = connection.execute(*write_ids_query(writing))
    connection.execute(INSERT_COMPONENTS, component_rows(writing, found))


def writing_txns(requested: Iterable[ValidatedLockRequest]) -> list[WritingTxn]:
    """What the transactions of these requests are about to write."""
    return [(one.txn_id, written) for one in requested if one.txn_id > 0 and (written := _written(one))]


def component_rows(writing: Iterable[WritingTxn], found: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows for TXN_COMPONENTS. `found`: the result of `write_ids_query`."""
    write_ids = {(txn_id, database, table): write_id for txn_id, database, table, write_id in found}
    return [row for txn_id, written in writing for row in _component_rows(txn_id, written, write_ids)]


_Written = tuple[LockComponent, LockTarget, str]
"""A component that writes to a table, and the code of its operation."""

WritingTxn = tuple[int, Sequence[_Written]]
"""A transaction and its writes."""


def _written(requested: ValidatedLockRequest) -> list[_Written]:
    return [
        (component, target, operation)
        for component, target in zip(requested.request.component, requested.targets, strict=False)
        if (operation := _operation_of(component, target)) is not None and target.table is not None
    ]


def _component_rows(
    txn_id: int, written: Sequence[_Written], write_ids: Mapping[tuple[int, str, str | None], int]
) -> list[dict[str, Any]]:
    row_changing = {
        (target.database, target.table)
        for component, target, operation in written
        if component.isDynamicPartitionWrite and operation in ROW_CHANGES
    }
    recorded_tables: set[tuple[str, str | None]] = set()
    rows: list[dict[str, Any]] = []
    for component, target, operation in written:
        table, partition = (target.database, target.table), target.partition
        if component.isDynamicPartitionWrite:
            # The partitions become known later (add_dynamic_partitions). Until then one row represents the table; none
            # if an earlier component has recorded the table or one of its partitions (Hive 4.0.1's
            # InsertTxnComponentsCommand).
            if table in recorded_tables:
                continue
            operation, partition = (UPDATE if table in row_changing else INSERT), None
        recorded_tables.add(table)
        rows.append(
            {
                "TC_TXNID": txn_id,
                "TC_DATABASE": target.database,
                "TC_TABLE": target.table,
                "TC_PARTITION": partition,
                "TC_OPERATION_TYPE": operation,
                "TC_WRITEID": write_ids.get((txn_id, target.database, target.table)),
            }
        )
    return rows


def _operation_of(component: LockComponent, target: LockTarget) -> str | None:
    """The code of the component's write; None if it writes nothing that concerns transactions."""
    if component.isTransactional is False:
        return None
    if component.operationType in (None, DataOperationType.UNSET):
        # Clients of Hive before 2.2 do not set it; the lock's type decides.
        return _OPERATION_OF_OLD_CLIENTS.get(target.lock_type)
    return OPERATION_CODES.get(component.operationType)


W = TXN_TO_WRITE_ID.c
INSERT_COMPONENTS = insert(TXN_COMPONENTS)

_MAX_TABLES_BY_KEY = 128
"""Tables in one query. With more, it reads the write ids of all tables."""


def write_ids_query(writing: Iterable[WritingTxn]) -> tuple[Select[Any], dict[str, Any]]:
    """The statement, and its parameters, for these transactions' write ids of the tables that they write to.

    It searches by table, since there is no index by transaction alone: while one transaction stays open for long, all
    later write ids are kept.
    """
    writing = list(writing)
    tables = sorted({(target.database, target.table or "") for _, written in writing for _, target, _ in written})
    parameters: dict[str, Any] = {"txn_ids": sorted({txn_id for txn_id, _ in writing})}
    if len(tables) > _MAX_TABLES_BY_KEY:
        return _write_ids_of(0), parameters
    # A statement for each power of two is sufficient: the last table fills the rest.
    size = 1 << (len(tables) - 1).bit_length()
    for number in range(size):
        of_number = tables[min(number, len(tables) - 1)]
        parameters[f"database_{number}"], parameters[f"table_{number}"] = of_number
    return _write_ids_of(size), parameters


@lru_cache
def _write_ids_of(tables: int) -> Select[Any]:
    """For this many tables; 0: for all tables."""
    query = select(W.T2W_TXNID, W.T2W_DATABASE, W.T2W_TABLE, W.T2W_WRITEID)
    are_theirs = W.T2W_TXNID.in_(bindparam("txn_ids", expanding=True))
    if not tables:
        return query.where(are_theirs)
    return query.where(
        or_(
            *(
                and_(
                    W.T2W_DATABASE == bindparam(f"database_{number}"),
                    W.T2W_TABLE == bindparam(f"table_{number}"),
                    are_theirs,
                )
                for number in range(tables)
            )
        )
    )


# Granting


def conflict_in_database(
    connection: Connection, external_id: int, txn_id: int, targets: Sequence[LockTarget]
) -> Conflict | None:
    """The oldest earlier lock of another transaction that blocks `targets`, or None."""
    rows = connection.execute(*earlier_locks_query(external_id, txn_id, targets, limit=1))
    return first_conflict(targets, map(lock_row, rows))


def answer_and_rows(
    requested: ValidatedLockRequest,
    external_id: int,
    now: int | None,
    conflict_of: Callable[[Sequence[LockTarget]], Conflict | None],
) -> tuple[LockResponse, list[dict[str, Any]]]:
    """The reply to a request with this id, and the rows to insert: none if the request is refused.

    `conflict_of` finds the oldest lock before this id that blocks targets. Without `now` the rows have no times: the
    statement that inserts them sets these.
    """
    conflict = conflict_of(requested.targets)
    if conflict is not None and requested.txn_id > 0:
        blocker = _blocker_not_waited_for(requested, conflict[1], conflict_of)
        if blocker is not None:
            text = _refusal_text(requested.request, blocker)
            return LockResponse(lockid=external_id, state=LockState.NOT_ACQUIRED, errorMessage=text), []
    state = LockState.ACQUIRED if conflict is None else LockState.WAITING
    return LockResponse(lockid=external_id, state=state), _lock_rows(requested, external_id, now, conflict)


def _blocker_not_waited_for(
    requested: ValidatedLockRequest, blocker: LockRow, conflict_of: Callable[[Sequence[LockTarget]], Conflict | None]
) -> LockRow | None:
    """The earlier lock because of which the request is refused instead of waiting; None if it may wait.

    With `zeroWaitReadEnabled` reads do not wait; a request waits if only its writes are blocked.
    """
    if requested.request.exclusiveCTAS:
        return blocker
    if not requested.request.zeroWaitReadEnabled:
        return None
    reads = [target for target in requested.targets if target.lock_type == SHARED_READ]
    conflict = conflict_of(reads) if reads else None
    return None if conflict is None else conflict[1]


def _refusal_text(request: LockRequest, blocker: LockRow) -> str:
    target = blocker.target
    info = (
        f"lockid:{blocker.external_id} intLockId:{blocker.internal_id} txnid:{blocker.txn_id}"
        f" db:{target.database} table:{target.table or 'null'} partition:{target.partition or 'null'}"
        f" state:{LockState._VALUES_TO_NAMES[LOCK_STATES[blocker.state]]}"
        f" type:{LockType._VALUES_TO_NAMES[LOCK_TYPES[target.lock_type]]}"
    )
    if request.exclusiveCTAS:
        return f"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {info}"
    return f"Unable to acquire read lock due to an existing exclusive lock {{{info}}}"


INSERT_LOCKS = insert(HIVE_LOCKS)

_INSERT_NEW_LOCK = {
    LockState.ACQUIRED: insert(HIVE_LOCKS).values(HL_LAST_HEARTBEAT=now_ms(), HL_ACQUIRED_AT=now_ms()),
    LockState.WAITING: insert(HIVE_LOCKS).values(HL_LAST_HEARTBEAT=now_ms(), HL_ACQUIRED_AT=None),
}
"""One row, with the time of its insertion. With expressions, PyMySQL would send several rows as several statements."""


def _lock_rows(
    requested: ValidatedLockRequest, external_id: int, now: int | None, conflict: Conflict | None
) -> list[dict[str, Any]]:
    request, txn_id = requested.request, requested.txn_id
    rows: list[dict[str, Any]] = [
        {
            "HL_LOCK_EXT_ID": external_id,
            "HL_LOCK_INT_ID": position + 1,
            "HL_TXNID": txn_id,
            "HL_DB": target.database,
            "HL_TABLE": target.table,
            "HL_PARTITION": target.partition,
            "HL_LOCK_STATE": LOCK_ACQUIRED if conflict is None else LOCK_WAITING,
            "HL_LOCK_TYPE": target.lock_type,
            "HL_USER": request.user,
            "HL_HOST": request.hostname,
            "HL_HEARTBEAT_COUNT": None,
            "HL_AGENT_INFO": request.agentInfo,
            "HL_BLOCKEDBY_EXT_ID": None,
            "HL_BLOCKEDBY_INT_ID": None,
        }
        for position, target in enumerate(requested.targets)
    ]
    if now is not None:
        # The heartbeat of a lock in a transaction is the transaction's.
        times = {"HL_LAST_HEARTBEAT": 0 if txn_id > 0 else now, "HL_ACQUIRED_AT": now if conflict is None else None}
        rows = [row | times for row in rows]
    if conflict is not None:
        position, blocker = conflict
        rows[position]["HL_BLOCKEDBY_EXT_ID"] = blocker.external_id
        rows[position]["HL_BLOCKEDBY_INT_ID"] = blocker.internal_id
    return rows


# Checking again


def check_lock(connection: Connection, request: CheckLockRequest) -> LockResponse:
    """Grants a waiting lock if it can be granted now. Counts as a heartbeat of the lock and its transaction.

    Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException.
    """
    external_id = request.lockid
    rows = rows_of_locks(connection, [external_id]).get(external_id)
    if not rows:
        raise no_such_lock_error(external_id)
    txn_id = rows[0].HL_TXNID
    heartbeat_lock_or_txn(connection, external_id, txn_id)
    if all(row.HL_LOCK_STATE == LOCK_ACQUIRED for row in rows):
        return LockResponse(lockid=external_id, state=LockState.ACQUIRED)
    conflict = conflict_in_database(connection, external_id, txn_id, [lock_row(row).target for row in rows])
    if conflict is None:
        if grant(connection, [external_id]) < len(rows):
            # Released or timed out meanwhile. The exception rolls back the rest.
            raise no_such_lock_error(external_id)
        return LockResponse(lockid=external_id, state=LockState.ACQUIRED)
    position, blocker = conflict
    waiting = rows[position]
    if (waiting.HL_BLOCKEDBY_EXT_ID, waiting.HL_BLOCKEDBY_INT_ID) != (blocker.external_id, blocker.internal_id):
        record_blocker(connection, [external_id], waiting.HL_LOCK_INT_ID, blocker.external_id, blocker.internal_id)
    return LockResponse(lockid=external_id, state=LockState.WAITING)


def heartbeat_lock_or_txn(connection: Connection, external_id: int, txn_id: int) -> None:
    """Records a heartbeat: of the lock's transaction if it has one, otherwise of the lock itself.

    Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException.
    """
    if txn_id > 0:
        heartbeat_txn(connection, txn_id)
    else:
        heartbeat_lock(connection, external_id)


def heartbeat_lock(connection: Connection, external_id: int) -> None:
    """Records a heartbeat of a lock. Raises NoSuchLockException."""
    if beat_locks(connection, [external_id]) == 0:
        raise no_such_lock_error(external_id)
