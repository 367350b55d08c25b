"""What a metastore's answer to a heartbeat means for what it is to keep alive."""

from __future__ import annotations

from thrift.Thrift import TException

from hms_cache.errors import HmsCacheError
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchLockException, NoSuchTxnException, TxnAbortedException

GONE = (NoSuchLockException, NoSuchTxnException, TxnAbortedException)
"""The lock or the transaction is no more."""

UNANSWERED = (HmsCacheError, TException)
"""All else, to be caught after `GONE`: no metastore answers, or the one that does cannot ask its database now. It may
be well again before the time of the lock or the transaction is over."""
