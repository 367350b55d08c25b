"""`lock`, `check_lock` and `unlock` of several clients in one transaction, with as many statements as for one of each.

The order in the transaction does not depend on the order of arrival (all calls were waiting, so any order is a valid
serialization):

1. Locks are released, so that calls that wait for them find them gone.
2. Transactions of the calls are locked in the order of their ids, and locks that are checked again get heartbeats.
3. New requests get ids, in the order of arrival, under the row lock of NEXT_LOCK_ID.
4. All locks that may block any request are read once, and the rule of `lock_rules` is applied in memory: to the locks
   that are checked again, then to the new requests, each of which also sees those before it.
5. Granted locks are updated, and new rows inserted.

A call that Hive answers with an exception (no such lock, a transaction that is not open) gets it as its outcome and
writes nothing, without an effect on the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.store.engine.direct_statements import supports_direct_statements
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.locks import locking, unlocking
from hms_cache.store.locks.lock_batch import LockBatch, LockCall, Outcome
from hms_cache.store.locks.lock_packets import LockPackets
from hms_cache.store.locks.locking import ValidatedLockRequest, validated_lock_request
from hms_cache.store.transactions.context import TxnContext
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckLockRequest,
    LockRequest,
    LockResponse,
    MetaException,
    NoSuchTxnException,
    UnlockRequest,
)

MAX_COMPONENTS_TOGETHER = 32
"""A request with more components gets a transaction of its own: other calls would wait for its rows."""

_MAX_COMPONENTS_IN_A_PACKET = 1024
"""More are written by the driver's bulk insert, which splits them into statements of a safe length."""


def may_combine(request: LockRequest | CheckLockRequest | UnlockRequest) -> bool:
    """Whether the call may share a transaction."""
    return not isinstance(request, LockRequest) or len(request.component or ()) <= MAX_COMPONENTS_TOGETHER


def execute_requests(
    transaction: WriteTransaction,
    context: TxnContext,
    requests: Sequence[LockRequest | CheckLockRequest | UnlockRequest],
) -> list[Outcome]:
    """Like `execute`, for unchecked requests: an invalid lock request fails by itself."""
    outcomes: list[Outcome] = [None] * len(requests)
    calls: dict[int, LockCall] = {}
    for number, request in enumerate(requests):
        try:
            calls[number] = validated_lock_request(request) if isinstance(request, LockRequest) else request
        except (MetaException, NoSuchTxnException) as error:
            outcomes[number] = error
    for number, outcome in zip(calls, execute(transaction, context, list(calls.values())), strict=True):
        outcomes[number] = outcome
    return outcomes


def execute(transaction: WriteTransaction, context: TxnContext, calls: Sequence[LockCall]) -> list[Outcome]:
    """Returns the outcome of each call."""
    if supports_direct_statements(transaction.connection):
        return LockPackets(transaction, calls).execute()
    return LockBatch(transaction.connection, calls).execute()


def lock(transaction: WriteTransaction, context: TxnContext, request: LockRequest) -> LockResponse:
    """Like `locking.lock`."""
    requested = validated_lock_request(request)
    if len(requested.targets) > _MAX_COMPONENTS_IN_A_PACKET or not supports_direct_statements(transaction.connection):
        return locking.lock(transaction.connection, requested)
    return _answered(_alone(transaction, requested))


def check_lock(transaction: WriteTransaction, context: TxnContext, request: CheckLockRequest) -> LockResponse:
    """Like `locking.check_lock`."""
    if not supports_direct_statements(transaction.connection):
        return locking.check_lock(transaction.connection, request)
    return _answered(_alone(transaction, request))


def unlock(transaction: WriteTransaction, context: TxnContext, request: UnlockRequest) -> None:
    """Like `unlocking.unlock`."""
    if supports_direct_statements(transaction.connection):
        _alone(transaction, request)
    else:
        unlocking.unlock(transaction.connection, request)


def _alone(
    transaction: WriteTransaction, call: ValidatedLockRequest | CheckLockRequest | UnlockRequest
) -> LockResponse | None:
    [outcome] = LockPackets(transaction, [call]).execute()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _answered(outcome: LockResponse | None) -> LockResponse:
    assert outcome is not None
    return outcome
