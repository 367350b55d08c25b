"""Two transactions with a lock each: the second one's answer while the first one holds its lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnsRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
)
from tests.differential.metastores import Side

TYPES = tuple(LockType._VALUES_TO_NAMES)
LEVELS = tuple(LockLevel._VALUES_TO_NAMES)
#: What Hive sends with a lock of a type.
USUAL_OPERATION = {
    LockType.SHARED_READ: DataOperationType.SELECT,
    LockType.SHARED_WRITE: DataOperationType.UPDATE,
    LockType.EXCL_WRITE: DataOperationType.UPDATE,
    LockType.EXCLUSIVE: DataOperationType.NO_TXN,
}
_PLACES = {
    LockLevel.DB: {"dbname": "locked"},
    LockLevel.TABLE: {"dbname": "locked", "tablename": "t"},
    LockLevel.PARTITION: {"dbname": "locked", "tablename": "t", "partitionname": "k=1"},
}


@dataclass(frozen=True)
class Lock:
    """One component of a lock request, and how the request waits."""

    type: int
    level: int = LockLevel.TABLE
    operation: int | None = None
    zero_wait: bool = False
    table: str | None = None

    def component(self) -> LockComponent:
        place = dict(_PLACES[self.level])
        if self.table is not None:
            place["tablename"] = self.table
        operation = USUAL_OPERATION[self.type] if self.operation is None else self.operation
        # Java refuses a transactional component without an operation; Iceberg's are not transactional.
        is_transactional = operation != DataOperationType.UNSET
        return LockComponent(self.type, self.level, **place, operationType=operation, isTransactional=is_transactional)

    def __str__(self) -> str:
        operation = "" if self.operation is None else f" {DataOperationType._VALUES_TO_NAMES[self.operation]}"
        waits = " zero-wait" if self.zero_wait else ""
        return f"{LockType._VALUES_TO_NAMES[self.type]} {LockLevel._VALUES_TO_NAMES[self.level]}{operation}{waits}"


def pairs() -> Iterator[tuple[Lock, Lock]]:
    """Returns every pair of types and levels, of types and operations, readers that do not wait, and pairs with another
    table."""
    plain = [Lock(kind, level) for kind in TYPES for level in LEVELS]
    yield from ((one, other) for one in plain for other in plain)
    operations = [
        Lock(LockType.SHARED_READ, operation=DataOperationType.INSERT),
        Lock(LockType.SHARED_WRITE, operation=DataOperationType.INSERT),
        Lock(LockType.SHARED_WRITE, operation=DataOperationType.DELETE),
        Lock(LockType.EXCL_WRITE, operation=DataOperationType.INSERT),
        Lock(LockType.EXCL_WRITE, operation=DataOperationType.DELETE),
        Lock(LockType.EXCLUSIVE, operation=DataOperationType.INSERT),
        Lock(LockType.EXCLUSIVE, operation=DataOperationType.UNSET),
    ]
    of_tables = [Lock(kind) for kind in TYPES]
    yield from ((one, other) for one in operations for other in (*operations, *of_tables))
    yield from ((one, other) for one in of_tables for other in operations)
    for held in plain:
        for level in LEVELS:
            for kind in (LockType.SHARED_READ, LockType.SHARED_WRITE):
                yield held, Lock(kind, level, zero_wait=True)
    yield from ((one, Lock(kind, table="u")) for one in of_tables for kind in TYPES)


def answer_of(side: Side, held: Lock, requested: Lock) -> str:
    """Returns the states of both locks, or how the second request was refused. Releases all locks."""
    txns = side.call("open_txns", OpenTxnRequest(2, "u", "h")).txn_ids
    try:
        return " then ".join(_ask(side, lock, txn) for lock, txn in zip((held, requested), txns, strict=True))
    finally:
        side.call("abort_txns", AbortTxnsRequest(txns))


def _ask(side: Side, lock: Lock, txn_id: int) -> str:
    request = LockRequest([lock.component()], txn_id, "u", "h", zeroWaitReadEnabled=lock.zero_wait)
    try:
        return str(LockState._VALUES_TO_NAMES[side.call("lock", request).state])
    except TException as error:
        return type(error).__name__
