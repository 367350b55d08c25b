"""Taking locks: `lock` and `check_lock`.

A lock request gets an external id; its components are rows under internal ids 1, 2, … and are granted all or none. Of
two conflicting requests the one with the smaller external id goes first, whatever their states: that makes the order in
which ids become visible part of the protocol. The id is therefore drawn under the row lock of NEXT_LOCK_ID and
committed together with the rows. While that row lock is held every earlier request is committed and visible, so the
question whether the new one has to wait is answered before its rows are written, and they are written once, as granted
or as waiting. A request that waits holds no connection and no row lock; its client asks again with `check_lock`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from hms_cache.store.locks.lock_rules import LockRow, LockTarget, earlier_locks_query, first_conflict
from hms_cache.store.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXN_COMPONENTS, TXN_TO_WRITE_ID
from hms_cache.store.transactions.codes import (
    EXCLUSIVE,
    EXCLUSIVE_WRITE,
    INSERT,
    LOCK_ACQUIRED,
    LOCK_TYPE_CODES,
    LOCK_WAITING,
    OPERATION_CODES,
    ROW_CHANGES,
    SHARED_READ,
    SHARED_WRITE,
    UPDATE,
)
from hms_cache.store.transactions.database_values import now_ms, read_now_ms, take_id
from hms_cache.store.transactions.errors import no_such_lock_error
from hms_cache.store.transactions.names import plain_database, plain_partition, plain_table
from hms_cache.store.transactions.txn_rows import heartbeat_txn, lock_open_txn
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckLockRequest,
    DataOperationType,
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    MetaException,
)

L = HIVE_LOCKS.c

_OPERATION_OF_OLD_CLIENTS = {SHARED_WRITE: UPDATE, EXCLUSIVE_WRITE: UPDATE, EXCLUSIVE: INSERT}


def lock(connection: Connection, request: LockRequest) -> LockResponse:
    """Ask for all locks of the request at once; answers ACQUIRED or WAITING, and NOT_ACQUIRED where it must not wait.

    Inside a transaction it also notes what the transaction is about to write (TXN_COMPONENTS). Raises
    NoSuchTxnException, TxnAbortedException, MetaException (no component, or one that is incomplete).
    """
    if not request.component:
        raise MetaException("A lock request needs at least one component")
    txn_id = request.txnid or 0
    targets = [_target_of(component) for component in request.component]
    if txn_id > 0:
        now = lock_open_txn(connection, txn_id)
        _add_components(connection, txn_id, request.component, targets)
    else:
        now = read_now_ms(connection)
    external_id = take_id(connection, NEXT_LOCK_ID.c.NL_NEXT)
    conflict = _conflict_of(connection, external_id, txn_id, targets)
    if conflict is not None and txn_id > 0:
        blocker = _blocker_not_waited_for(connection, request, external_id, targets, conflict[1])
        if blocker is not None:
            text = _refusal_text(request, blocker)
            return LockResponse(lockid=external_id, state=LockState.NOT_ACQUIRED, errorMessage=text)
    _insert_locks(connection, request, external_id, txn_id, targets, now, conflict)
    return LockResponse(lockid=external_id, state=LockState.ACQUIRED if conflict is None else LockState.WAITING)


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


# What the transaction is about to write


def _add_components(
    connection: Connection, txn_id: int, components: Sequence[LockComponent], targets: Sequence[LockTarget]
) -> None:
    written = [
        (component, target, operation)
        for component, target in zip(components, targets, strict=True)
        if (operation := _operation_of(component, target)) is not None and target.table is not None
    ]
    if not written:
        return
    write_ids = _write_ids_of(connection, txn_id)
    row_changing = {
        (target.database, target.table)
        for component, target, operation in written
        if component.isDynamicPartitionWrite and operation in ROW_CHANGES
    }
    noted_tables: set[tuple[str, str | None]] = set()
    rows: list[dict[str, Any]] = []
    for component, target, operation in written:
        table, partition = (target.database, target.table), target.partition
        if component.isDynamicPartitionWrite:
            # Which partitions is known only later (add_dynamic_partitions); one row stands for the table until then,
            # none where an earlier component has noted the table or one of its partitions (Hive 4.0.1's
            # InsertTxnComponentsCommand).
            if table in noted_tables:
                continue
            operation, partition = (UPDATE if table in row_changing else INSERT), None
        noted_tables.add(table)
        rows.append(
            {
                "TC_TXNID": txn_id,
                "TC_DATABASE": target.database,
                "TC_TABLE": target.table,
                "TC_PARTITION": partition,
                "TC_OPERATION_TYPE": operation,
                "TC_WRITEID": write_ids.get((target.database, target.table)),
            }
        )
    connection.execute(insert(TXN_COMPONENTS), rows)


def _operation_of(component: LockComponent, target: LockTarget) -> str | None:
    """The code of what the component writes, None when it writes nothing that matters to transactions."""
    if component.isTransactional is False:
        return None
    if component.operationType in (None, DataOperationType.UNSET):
        # Clients of Hive before 2.2 do not say; the lock's type does.
        return _OPERATION_OF_OLD_CLIENTS.get(target.lock_type)
    return OPERATION_CODES.get(component.operationType)


def _write_ids_of(connection: Connection, txn_id: int) -> dict[tuple[str, str | None], int]:
    t2w = TXN_TO_WRITE_ID.c
    rows = connection.execute(select(t2w.T2W_DATABASE, t2w.T2W_TABLE, t2w.T2W_WRITEID).where(t2w.T2W_TXNID == txn_id))
    return {(row.T2W_DATABASE, row.T2W_TABLE): row.T2W_WRITEID for row in rows}


# Granting


def _conflict_of(
    connection: Connection, external_id: int, txn_id: int, targets: Sequence[LockTarget]
) -> tuple[int, LockRow] | None:
    rows = connection.execute(earlier_locks_query(external_id, txn_id, targets, limit=1))
    return first_conflict(targets, map(_lock_row, rows))


def _lock_row(row: Any) -> LockRow:
    target = LockTarget(row.HL_LOCK_TYPE, row.HL_DB, row.HL_TABLE, row.HL_PARTITION)
    return LockRow(row.HL_LOCK_EXT_ID, row.HL_LOCK_INT_ID, row.HL_TXNID, target)


def _blocker_not_waited_for(
    connection: Connection, request: LockRequest, external_id: int, targets: Sequence[LockTarget], blocker: LockRow
) -> LockRow | None:
    """The earlier lock for which the request is refused instead of made to wait; None where it may wait.

    With `zeroWaitReadEnabled` reads do not wait; a request of which only writes are blocked does.
    """
    if request.exclusiveCTAS:
        return blocker
    if not request.zeroWaitReadEnabled:
        return None
    reads = [target for target in targets if target.lock_type == SHARED_READ]
    conflict = _conflict_of(connection, external_id, request.txnid or 0, reads) if reads else None
    return None if conflict is None else conflict[1]


def _refusal_text(request: LockRequest, blocker: LockRow) -> str:
    held = ".".join(
        part for part in (blocker.target.database, blocker.target.table, blocker.target.partition) if part is not None
    )
    info = f"lockid:{blocker.external_id} intLockId:{blocker.internal_id} txnid:{blocker.txn_id} {held}"
    if request.exclusiveCTAS:
        return f"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {info}"
    return f"Unable to acquire read lock due to an existing exclusive lock {{{info}}}"


def _insert_locks(
    connection: Connection,
    request: LockRequest,
    external_id: int,
    txn_id: int,
    targets: Sequence[LockTarget],
    now: int,
    conflict: tuple[int, LockRow] | None,
) -> None:
    rows = [
        {
            "HL_LOCK_EXT_ID": external_id,
            "HL_LOCK_INT_ID": position + 1,
            "HL_TXNID": txn_id,
            "HL_DB": target.database,
            "HL_TABLE": target.table,
            "HL_PARTITION": target.partition,
            "HL_LOCK_STATE": LOCK_ACQUIRED if conflict is None else LOCK_WAITING,
            "HL_LOCK_TYPE": target.lock_type,
            # The heartbeat of a lock inside a transaction is the transaction's.
            "HL_LAST_HEARTBEAT": 0 if txn_id > 0 else now,
            "HL_ACQUIRED_AT": now if conflict is None else None,
            "HL_USER": request.user,
            "HL_HOST": request.hostname,
            "HL_HEARTBEAT_COUNT": None,
            "HL_AGENT_INFO": request.agentInfo,
            "HL_BLOCKEDBY_EXT_ID": None,
            "HL_BLOCKEDBY_INT_ID": None,
        }
        for position, target in enumerate(targets)
    ]
    if conflict is not None:
        position, blocker = conflict
        rows[position]["HL_BLOCKEDBY_EXT_ID"] = blocker.external_id
        rows[position]["HL_BLOCKEDBY_INT_ID"] = blocker.internal_id
    connection.execute(insert(HIVE_LOCKS), rows)


# Asking again


def check_lock(connection: Connection, request: CheckLockRequest) -> LockResponse:
    """Whether a waiting lock can be taken now; takes it if so. Counts as a heartbeat of the lock and its transaction.

    Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException.
    """
    external_id = request.lockid
    rows = connection.execute(
        select(
            L.HL_LOCK_EXT_ID,
            L.HL_LOCK_INT_ID,
            L.HL_TXNID,
            L.HL_LOCK_TYPE,
            L.HL_DB,
            L.HL_TABLE,
            L.HL_PARTITION,
            L.HL_LOCK_STATE,
            L.HL_BLOCKEDBY_EXT_ID,
            L.HL_BLOCKEDBY_INT_ID,
        )
        .where(L.HL_LOCK_EXT_ID == external_id)
        .order_by(L.HL_LOCK_INT_ID)
    ).all()
    if not rows:
        raise no_such_lock_error(external_id)
    txn_id = rows[0].HL_TXNID
    heartbeat_lock_or_txn(connection, external_id, txn_id)
    if all(row.HL_LOCK_STATE == LOCK_ACQUIRED for row in rows):
        return LockResponse(lockid=external_id, state=LockState.ACQUIRED)
    conflict = _conflict_of(connection, external_id, txn_id, [_lock_row(row).target for row in rows])
    if conflict is None:
        _grant(connection, external_id, len(rows))
        return LockResponse(lockid=external_id, state=LockState.ACQUIRED)
    position, blocker = conflict
    waiting = rows[position]
    if (waiting.HL_BLOCKEDBY_EXT_ID, waiting.HL_BLOCKEDBY_INT_ID) != (blocker.external_id, blocker.internal_id):
        connection.execute(
            update(HIVE_LOCKS)
            .where(L.HL_LOCK_EXT_ID == external_id, L.HL_LOCK_INT_ID == waiting.HL_LOCK_INT_ID)
            .values(HL_BLOCKEDBY_EXT_ID=blocker.external_id, HL_BLOCKEDBY_INT_ID=blocker.internal_id)
        )
    return LockResponse(lockid=external_id, state=LockState.WAITING)


def _grant(connection: Connection, external_id: int, expected: int) -> None:
    result = connection.execute(
        update(HIVE_LOCKS)
        .where(L.HL_LOCK_EXT_ID == external_id)
        .values(
            HL_LOCK_STATE=LOCK_ACQUIRED, HL_ACQUIRED_AT=now_ms(), HL_BLOCKEDBY_EXT_ID=None, HL_BLOCKEDBY_INT_ID=None
        )
    )
    if result.rowcount < expected:
        # Released or timed out meanwhile: raising undoes the rest.
        raise no_such_lock_error(external_id)


def heartbeat_lock_or_txn(connection: Connection, external_id: int, txn_id: int) -> None:
    """Note that the client of a lock is alive: on its transaction if it has one, else on the lock itself.

    Raises NoSuchLockException, NoSuchTxnException, TxnAbortedException.
    """
    if txn_id > 0:
        heartbeat_txn(connection, txn_id)
    else:
        heartbeat_lock(connection, external_id)


def heartbeat_lock(connection: Connection, external_id: int) -> None:
    """Note that the client of a lock is alive. Raises NoSuchLockException."""
    result = connection.execute(
        update(HIVE_LOCKS).where(L.HL_LOCK_EXT_ID == external_id).values(HL_LAST_HEARTBEAT=now_ms())
    )
    if result.rowcount == 0:
        raise no_such_lock_error(external_id)


def release_locks_of_txns(connection: Connection, txn_ids: Iterable[int]) -> None:
    """Give up all locks of these transactions."""
    connection.execute(delete(HIVE_LOCKS).where(L.HL_TXNID.in_(list(txn_ids))))
