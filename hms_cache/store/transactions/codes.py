"""The one-letter codes in the transaction tables, and the enumerations of Hive that they represent.

Source of the letters: Hive's `TxnHandler`, `TxnStatus`, `OperationType`, `LockInfo`, `CompactionState` (4.0).
"""

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionType,
    DataOperationType,
    LockState,
    LockType,
    TxnState,
    TxnType,
)

TXN_OPEN = "o"
TXN_ABORTED = "a"
TXN_COMMITTED = "c"

TXN_STATES = {TXN_OPEN: TxnState.OPEN, TXN_ABORTED: TxnState.ABORTED, TXN_COMMITTED: TxnState.COMMITTED}

LOCK_WAITING = "w"
LOCK_ACQUIRED = "a"

LOCK_STATES = {LOCK_WAITING: LockState.WAITING, LOCK_ACQUIRED: LockState.ACQUIRED}

SHARED_READ = "r"
SHARED_WRITE = "w"
EXCLUSIVE_WRITE = "x"
EXCLUSIVE = "e"

LOCK_TYPE_CODES = {
    LockType.SHARED_READ: SHARED_READ,
    LockType.SHARED_WRITE: SHARED_WRITE,
    LockType.EXCL_WRITE: EXCLUSIVE_WRITE,
    LockType.EXCLUSIVE: EXCLUSIVE,
}
LOCK_TYPES = {code: lock_type for lock_type, code in LOCK_TYPE_CODES.items()}

INSERT = "i"
UPDATE = "u"
DELETE = "d"
COMPACT = "c"

OPERATION_CODES = {DataOperationType.INSERT: INSERT, DataOperationType.UPDATE: UPDATE, DataOperationType.DELETE: DELETE}

#: Operations that conflict with concurrent ones on the same rows.
ROW_CHANGES = (UPDATE, DELETE)

#: Transactions that compact: later compactions and materialized views ignore their writes.
COMPACTION_TXN_TYPES = (TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION)

COMPACTION_TYPE_CODES = {
    CompactionType.MAJOR: "a",
    CompactionType.MINOR: "i",
    CompactionType.REBALANCE: "r",
    CompactionType.ABORT_TXN_CLEANUP: "c",
    CompactionType.SMART_OPTIMIZE: "*",
    CompactionType.DEFERRED_CLEANUP: "d",
}
COMPACTION_TYPES = {code: compaction_type for compaction_type, code in COMPACTION_TYPE_CODES.items()}

INITIATED = "i"
WORKING = "w"
READY_FOR_CLEANING = "r"
SUCCEEDED = "s"
FAILED = "f"
DID_NOT_INITIATE = "a"
REFUSED = "c"
ABORTED = "x"
_ABORTED_FORMERLY = "b"
"""Written by earlier versions of this program."""

#: The state of a compaction as clients see it.
COMPACTION_STATE_NAMES = {
    INITIATED: "initiated",
    WORKING: "working",
    READY_FOR_CLEANING: "ready for cleaning",
    SUCCEEDED: "succeeded",
    FAILED: "failed",
    DID_NOT_INITIATE: "did not initiate",
    REFUSED: "refused",
    _ABORTED_FORMERLY: "aborted",
    ABORTED: "aborted",
}
