"""Calls about transactions and locks that wait at the same moment become one transaction (group commit).

What waits is known where calls wait for a thread (`server.workers`): this module says which calls can share a
transaction, and carries some out together. Their statements run in one database transaction, their events are written
together, and one COMMIT ends it: the more clients wait, the fewer statements and round trips there are for each.

Calls stay as independent as they were. What Hive answers with an exception (a transaction that is not open, no such
lock) is the outcome of that call alone. If the transaction fails in any other way, it was rolled back, and each of its
calls is to be run by itself: the error of one is nobody else's. The exception is a COMMIT whose outcome is unknown:
that is what each is told.

Those that ask which transactions are open share one read: it begins when all of them have come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import takes_direct_statements
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.sequences import NOTIFICATION_LOG
from hms_cache.store.engine.shared_packets import Part, carry_out_parts
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.locks import lock_calls, unlocking
from hms_cache.store.transactions import committing, opening, snapshots
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.write_ids import allocation
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

Outcomes = Sequence[Any]
"""Of each call, in their order, what it is answered: a value, or an exception to be raised to its client."""


@frozen
class CombinedCalls:
    """Calls of one kind."""

    name: str
    most: int
    """As many share a transaction."""
    admits: Callable[[Any], bool]
    """Whether the request of such a call may share a transaction. Cheap, whatever the request."""
    carry_out: Callable[[Sequence[Any]], Outcomes | None]
    """Takes requests; None: nothing was done, and each is to be run by itself."""


Work = Callable[[WriteTransaction, TxnContext, Sequence[Any]], Outcomes]


def combined_calls(
    database: Database,
    context: TxnContext,
    refuse_opening: Callable[[], None],
    answer_opened: Callable[[Sequence[Any], Outcomes], Outcomes],
) -> Mapping[str, CombinedCalls]:
    """By method. Empty where `transactions.max_combined` is 1.

    `refuse_opening` raises MetaException where too many transactions are open. `answer_opened` makes answers of the ids
    that were opened for each request, and when that began.
    """
    most = context.transactions.max_combined
    if most == 1:
        return {}

    def together(work: Work) -> Callable[[Sequence[Any]], Outcomes | None]:
        return lambda requests: _carried_out(database, context, work, requests)

    def change_txns(requests: Sequence[Any]) -> Outcomes | None:
        opening_ones = [number for number, one in enumerate(requests) if isinstance(one, ttypes.OpenTxnRequest)]
        if not opening_ones:
            return carry_out_txns(requests)
        try:
            refuse_opening()
        except ttypes.MetaException as error:
            return without(opening_ones, error, requests)
        except Exception as error:
            _tell_alone(requests, error)
            return None
        return carry_out_txns(requests)

    def without(refused: Collection[int], error: ttypes.MetaException, requests: Sequence[Any]) -> Outcomes | None:
        """The requests with these numbers are answered the exception, one of their own each; the others carried out."""
        others = [number for number in range(len(requests)) if number not in refused]
        found = carry_out_txns([requests[number] for number in others]) if others else []
        if found is None:
            return None
        outcomes: dict[int, Any] = {number: ttypes.MetaException(error.message) for number in refused}
        outcomes.update(zip(others, found, strict=True))
        return [outcomes[number] for number in range(len(requests))]

    def carry_out_txns(requests: Sequence[Any]) -> Outcomes | None:
        outcomes = _carried_out(database, context, _change_txns, requests, events=len(requests))
        if outcomes is None:
            return None
        # Of a COMMIT whose outcome is unknown, each is told so.
        opened = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, _Opened)]
        if not opened:
            return outcomes
        answers = list(outcomes)
        told = answer_opened([requests[number] for number in opened], [outcomes[number] for number in opened])
        for number, answer in zip(opened, told, strict=True):
            answers[number] = answer
        return answers

    def txns(admits: Callable[[Any], bool]) -> CombinedCalls:
        return CombinedCalls("transactions", most, admits, change_txns)

    def read_snapshot(requests: Sequence[Any]) -> Outcomes | None:
        try:
            snapshot = run_read(database, partial(snapshots.read_snapshot, open_txn_timeout_ms=open_timeout_ms))
        except Exception as error:
            _tell_alone(requests, error)
            return None
        return [snapshots.open_txns_response(snapshot, snapshots.excluded_types(one)) for one in requests]

    open_timeout_ms = context.transactions.open_timeout_ms
    snapshot = CombinedCalls("snapshots", most, lambda request: True, read_snapshot)
    locks = CombinedCalls("locks", most, lock_calls.may_combine, together(lock_calls.carry_out_requests))
    return {
        "open_txns": txns(opening.opens_one),
        "allocate_table_write_ids": txns(allocation.is_for_one_writer),
        "commit_txn": txns(lambda request: not committing.commits_alone(request)),
        "heartbeat": CombinedCalls("heartbeat", most, lambda request: True, together(unlocking.heartbeat_each)),
        "lock": locks,
        "check_lock": locks,
        "unlock": locks,
        "get_open_txns": snapshot,
        "get_open_txns_req": snapshot,
    }


class _Opened(NamedTuple):
    """What came of an `open_txns`."""

    txn_ids: Sequence[int]
    started_s: float
    """When the attempt that drew them began (seconds of the clock)."""


class _Kind(NamedTuple):
    """Calls about transactions of one kind, and the two ways to carry some of them out."""

    request: type
    each: Callable[[WriteTransaction, TxnContext, Sequence[Any]], Outcomes]
    part: Callable[[WriteTransaction, TxnContext, Sequence[Any]], Part]
    """With statements that share packets with those of the other kinds."""


_KINDS = (
    # First those that may take the lock of all transactions for themselves, which the last share.
    _Kind(ttypes.CommitTxnRequest, committing.commit_each, committing.Commits),
    _Kind(ttypes.AllocateTableWriteIdsRequest, allocation.allocate_for_one_each, allocation.Allocations),
    _Kind(ttypes.OpenTxnRequest, opening.open_one_each, opening.Openings),
)


def _change_txns(transaction: WriteTransaction, context: TxnContext, requests: Sequence[Any]) -> Outcomes:
    """By kind, in the order in which rows are locked; of one kind in the order of arrival. They have all been waiting,
    so any order is one that could have been."""
    started_s = context.clock.monotonic_s()
    numbers = {
        kind: [number for number, one in enumerate(requests) if isinstance(one, kind.request)] for kind in _KINDS
    }
    of_kinds = {kind: [requests[number] for number in found] for kind, found in numbers.items() if found}
    if takes_direct_statements(transaction.connection):
        parts = [kind.part(transaction, context, some) for kind, some in of_kinds.items()]
        found = carry_out_parts(transaction, parts)
    else:
        found = [kind.each(transaction, context, some) for kind, some in of_kinds.items()]
    outcomes: list[Any] = [None] * len(requests)
    for kind, answers in zip(of_kinds, found, strict=True):
        for number, answer in zip(numbers[kind], answers, strict=True):
            is_opened = kind.request is ttypes.OpenTxnRequest
            outcomes[number] = _Opened(answer, started_s) if is_opened else answer
    return outcomes


def _carried_out(
    database: Database, context: TxnContext, work: Work, requests: Sequence[Any], *, events: int = 1
) -> Outcomes | None:
    """`events`: how many are appended, as a rule; for so many there are ids at hand before it begins."""
    try:
        ids = {NOTIFICATION_LOG: events}
        return run_write(database, lambda transaction: work(transaction, context, requests), ids=ids)
    except CommitOutcomeUnknown as error:
        return [CommitOutcomeUnknown(str(error), connection_lost=True) for _ in requests]
    except Exception as error:
        _tell_alone(requests, error)
        return None


def _tell_alone(requests: Sequence[Any], error: Exception) -> None:
    _log.info("%d calls that shared a transaction are run one by one: %s", len(requests), error)
