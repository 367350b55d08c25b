"""How long a transaction or lock lives without a heartbeat, and the meaning of a metastore's answer to one."""

from __future__ import annotations

from thrift.Thrift import TException

from hms_cache.client import MetastoreClient
from hms_cache.config.quantities import parse_duration_s
from hms_cache.errors import HmsCacheError
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchLockException, NoSuchTxnException, TxnAbortedException

GONE = (NoSuchLockException, NoSuchTxnException, TxnAbortedException)
"""The lock or the transaction no longer exists."""

UNANSWERED = (HmsCacheError, TException)
"""All other errors, to be caught after `GONE`: no metastore answers, or it cannot use its database. It may recover
before the lock or the transaction times out."""

_TIMEOUT_S = 300.0
"""Hive's `metastore.txn.timeout`, used if the metastore does not report its own."""


def timeout_s(client: MetastoreClient) -> float:
    """The metastore's time after which what sends no heartbeat times out. Raises the errors of the metastore."""
    text = client.call("get_config_value", "metastore.txn.timeout", f"{_TIMEOUT_S}s")
    try:
        found_s = parse_duration_s(text, "s")
    except ValueError:
        return _TIMEOUT_S
    return found_s if found_s > 0 else _TIMEOUT_S
