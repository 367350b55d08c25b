"""Transactions and locks belong to the user who opened or took them.

Their ids are small numbers that anybody can guess. So if a request names one, whatever its method, the transaction or
lock must belong to the session's user. A session opens and takes them under its own name only, whatever name the
request has. Services act for users: they may name any id and use any name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from thrift.Thrift import TType

from hms_cache.store.contract.environment import environment_options
from hms_cache.store.transactions.errors import no_such_lock_error, not_open_error
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import EnvironmentContext, MetaException, Table

_TXN_FIELDS = ("txnid", "txnId", "txnIds")
_LOCK_FIELD = "lockid"
_RANGE_METHOD = "heartbeat_txn_range"
TRANSFERRING = frozenset({"open_txns", "lock"})
"""Methods whose requests name the user for whom they are sent."""
RUN_BY = frozenset({"compact", "compact2", "scheduled_query_maintenance"})
"""Methods whose requests name the user as whom a service is to work later."""


def names_owned(method: str, arguments: Any) -> bool:
    """Whether a request is about transactions or locks at all."""
    return method in TRANSFERRING or method in RUN_BY or method == _RANGE_METHOD or any(_ids(arguments))


def claim(method: str, arguments: Any, user: str) -> None:
    """Makes the session's user the owner of what the request opens or takes, and the user as whom work is to be
    done."""
    if method in TRANSFERRING:
        arguments.rqst.user = user
    elif method == "scheduled_query_maintenance":
        # Altering a query defines anew what it runs; a query without a user would run as the service itself.
        if arguments.request.scheduledQuery is not None:
            arguments.request.scheduledQuery.user = user
    elif method in RUN_BY and arguments.rqst.runas:
        arguments.rqst.runas = user


def foreign(method: str, arguments: Any, user: str, transactions: TxnStore) -> Exception | None:
    """The error for the first transaction or lock that is not the user's, the same as for a missing one. None if all
    are.

    A missing one belongs to nobody: the handler reports it.
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
    """(field, id) of the arguments and of the requests in them. Ids start at 1; 0 and -1 mean none.

    The `txnId` of a table is stored data and does not make the request part of that transaction.
    """
    structs = [arguments, *_inside(arguments)]
    for struct in structs[1:]:
        structs += getattr(struct, "requestList", None) or ()  # of add_write_notification_log_in_batch
        structs += (one for one in _inside(struct) if isinstance(one, EnvironmentContext))
    for struct in structs:
        if isinstance(struct, EnvironmentContext):
            yield from _soft_drop(struct)
        for name in (*_TXN_FIELDS, _LOCK_FIELD):
            value = getattr(struct, name, None)
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, int) and one > 0:
                    yield name, one


_STRUCTS: dict[type[Any], tuple[str, ...]] = {}
"""Fields with structs other than tables, by class."""


def _inside(struct: Any) -> list[Any]:
    """The structs in its fields, except tables."""
    names = _STRUCTS.get(type(struct))
    if names is None:
        fields = filter(None, struct.thrift_spec)
        names = tuple(field[2] for field in fields if field[1] == TType.STRUCT and field[3][0] is not Table)
        _STRUCTS[type(struct)] = names
    values = [getattr(struct, name) for name in names]
    return [value for value in values if value is not None]


def _soft_drop(context: EnvironmentContext) -> Iterator[tuple[str, int]]:
    """The transaction that drops softly. A text that is not a number is left to the handler, which refuses it."""
    with suppress(MetaException):
        txn_id = environment_options(context).txn_id
        if txn_id > 0:
            yield _TXN_FIELDS[0], txn_id
