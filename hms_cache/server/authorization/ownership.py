"""Transactions and locks belong to who opened and took them.

Ids are small numbers that everybody can guess, so a request that names one is looked at, whatever its method: the
transaction or lock must be of the session's user. A session opens and takes them under its own name alone, whatever
name its request has. Services, which do so for users, may name any and give any name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hms_cache.store.transactions.errors import no_such_lock_error, not_open_error
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

_TXN_FIELDS = ("txnid", "txnId", "txnIds")
_LOCK_FIELD = "lockid"
_RANGE_METHOD = "heartbeat_txn_range"
TAKING = frozenset({"open_txns", "lock"})
"""Methods whose requests say for whom."""
RUN_BY = frozenset({"compact", "compact2"})
"""Methods whose requests may say as whom a service is to work later."""


def names_owned(method: str, arguments: Any) -> bool:
    """Whether a request is about transactions or locks at all."""
    return method in TAKING or method in RUN_BY or method == _RANGE_METHOD or any(_ids(arguments))


def claim(method: str, arguments: Any, user: str) -> None:
    """Makes the user of the session the owner of what the request opens or takes, and whom it asks to be run as."""
    if method in TAKING:
        arguments.rqst.user = user
    elif method in RUN_BY and arguments.rqst.runas:
        arguments.rqst.runas = user


def foreign(method: str, arguments: Any, user: str, transactions: TxnStore) -> Exception | None:
    """What is told of the first transaction or lock that is not the user's: as of one that is not there.

    None if all are. Those that are not there are nobody's: the handler says what there is to say.
    """
    if method == _RANGE_METHOD:
        first, last = arguments.txns.min, arguments.txns.max
        users = transactions.users_of_range(first, last)
        return not_open_error(first, None) if users - {user} else None
    found = list(_ids(arguments))
    txn_ids = sorted({one for field, one in found if field != _LOCK_FIELD})
    owners = transactions.users_of_txns(txn_ids) if txn_ids else {}
    for txn_id in txn_ids:
        if owners.get(txn_id, user) != user:
            return not_open_error(txn_id, None)
    for lock_id in {one for field, one in found if field == _LOCK_FIELD}:
        if transactions.users_of_lock(lock_id) - {user}:
            return no_such_lock_error(lock_id)
    return None


def _ids(arguments: Any) -> Iterator[tuple[str, int]]:
    """(field, id) of the arguments and of the requests among them; ids from 1 on: 0 and -1 mean none.

    A table's `txnId` is part of what is stored, and no request is made in its name.
    """
    structs = [arguments]
    for field in filter(None, arguments.thrift_spec):
        value = getattr(arguments, field[2])
        if hasattr(value, "thrift_spec") and not isinstance(value, Table):
            structs.append(value)
            structs += getattr(value, "requestList", None) or ()  # of add_write_notification_log_in_batch
    for struct in structs:
        for name in (*_TXN_FIELDS, _LOCK_FIELD):
            value = getattr(struct, name, None)
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, int) and one > 0:
                    yield name, one
