"""Transaction and write-id lists as pure values: what a reader may see, and what a cached entry may answer."""

from hms_cache.txn.id_lists import LONG_MAX, IdListFormatError
from hms_cache.txn.valid_txn_list import ValidTxnList
from hms_cache.txn.valid_txn_write_ids import ValidTxnWriteIdList
from hms_cache.txn.valid_write_ids import RangeAnswer, ValidWriteIdList, WriteIdGapTooLargeError

__all__ = [
    "LONG_MAX",
    "IdListFormatError",
    "RangeAnswer",
    "ValidTxnList",
    "ValidTxnWriteIdList",
    "ValidWriteIdList",
    "WriteIdGapTooLargeError",
]
