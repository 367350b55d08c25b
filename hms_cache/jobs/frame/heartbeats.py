"""Meaning of a metastore's answer to a heartbeat."""

from __future__ import annotations

from thrift.Thrift import TException

from hms_cache.errors import HmsCacheError
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchLockException, NoSuchTxnException, TxnAbortedException

GONE = (NoSuchLockException, NoSuchTxnException, TxnAbortedException)
"""The lock or the transaction no longer exists."""

UNANSWERED = (HmsCacheError, TException)
"""All other errors, to be caught after `GONE`: no metastore answers, or it cannot use its database. It may recover
before the lock or the transaction times out."""
