"""Group commit: calls about transactions and locks that wait at the same time share one database transaction.

The server's thread pools know which calls wait (`server.thread_pool`). This module defines which of them can share a
transaction, and carries them out: all statements in one database transaction, one insert for all events, one COMMIT.
The more clients wait, the fewer statements and round trips each call costs.

Calls stay independent of each other. An exception of Hive's (a transaction that is not open, a lock that does not
exist) is the outcome of that call only. If the transaction fails for any other reason, it is rolled back and each call
is run again by itself, so that no call fails because of another. The exception is a COMMIT whose outcome is unknown:
then every call gets this error.

Calls that ask which transactions are open share one read, which begins after the last of them has arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.direct_statements import supports_direct_statements
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.sequences import NOTIFICATION_LOG
from hms_cache.store.engine.shared_packets import Part, execute_parts
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.locks import lock_calls, unlocking
from hms_cache.store.transactions import committing, opening, snapshots
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.write_ids import allocation
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

Outcomes = Sequence[Any]
"""One outcome per call, in the order of the calls: a result, or an exception to raise to the client."""


@frozen
class CombinedCalls:
    """How calls of one kind are combined."""

    name: str
    most: int
    """Maximum number of calls in one transaction."""
    admits: Callable[[Any], bool]
    """Whether a call with this request may share a transaction. Must be fast for any request."""
    execute: Callable[[Sequence[Any]], Outcomes | None]
    """Carries out these requests. None: nothing was done, and each has to be run by itself."""


Work = Callable[[WriteTransaction, TxnContext, Sequence[Any]], Outcomes]


def combined_calls(
    database: Database,
    context: TxnContext,
    refuse_opening: Callable[[], None],
    answer_opened: Callable[[Sequence[Any], Outcomes], Outcomes],
) -> Mapping[str, CombinedCalls]:
    """Combinable calls, by method name. Empty if `transactions.max_combined` is 1.

    `refuse_opening` raises MetaException if too many transactions are open. `answer_opened` turns the ids opened for
    each request, and the time at which opening them began, into replies.
    """
    most = context.transactions.max_combined
    if most == 1:
        return {}

    def together(work: Work) -> Callable[[Sequence[Any]], Outcomes | None]:
        return lambda requests: _execute(database, context, work, requests)

    def change_txns(requests: Sequence[Any]) -> Outcomes | None:
        opening_ones = [number for number, one in enumerate(requests) if isinstance(one, ttypes.OpenTxnRequest)]
        if not opening_ones:
            return execute_txns(requests)
        try:
            refuse_opening()
        except ttypes.MetaException as error:
            return without(opening_ones, error, requests)
        except Exception as error:
            _log_fallback(requests, error)
            return None
        return execute_txns(requests)

    def without(refused: Collection[int], error: ttypes.MetaException, requests: Sequence[Any]) -> Outcomes | None:
        """Answers the requests with these numbers with a copy of the exception, and carries out the others."""
        others = [number for number in range(len(requests)) if number not in refused]
        found = execute_txns([requests[number] for number in others]) if others else []
        if found is None:
            return None
        outcomes: dict[int, Any] = {number: ttypes.MetaException(error.message) for number in refused}
        outcomes.update(zip(others, found, strict=True))
        return [outcomes[number] for number in range(len(requests))]

    def execute_txns(requests: Sequence[Any]) -> Outcomes | None:
        outcomes = _execute(database, context, _change_txns, requests, events=len(requests))
        if outcomes is None:
            return None
        # If the outcome of the COMMIT is unknown, every outcome is an exception.
        opened = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, _Opened)]
        if not opened:
            return outcomes
        answers = list(outcomes)
        responses = answer_opened([requests[number] for number in opened], [outcomes[number] for number in opened])
        for number, answer in zip(opened, responses, strict=True):
            answers[number] = answer
        return answers

    def txns(admits: Callable[[Any], bool]) -> CombinedCalls:
        return CombinedCalls("transactions", most, admits, change_txns)

    def read_snapshot(requests: Sequence[Any]) -> Outcomes | None:
        try:
            snapshot = run_read(database, partial(snapshots.read_snapshot, open_txn_timeout_ms=open_timeout_ms))
        except Exception as error:
            _log_fallback(requests, error)
            return None
        return [snapshots.open_txns_response(snapshot, snapshots.excluded_types(one)) for one in requests]

    open_timeout_ms = context.transactions.open_timeout_ms
    snapshot = CombinedCalls("snapshots", most, lambda request: True, read_snapshot)
    locks = CombinedCalls("locks", most, lock_calls.may_combine, together(lock_calls.execute_requests))
    return {
        "open_txns": txns(opening.opens_single),
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
    """Result of one `open_txns`."""

    txn_ids: Sequence[int]
    started_s: float
    """Start of the attempt that allocated the ids (seconds of the monotonic clock)."""


class _Kind(NamedTuple):
    """One kind of calls about transactions, and the two ways to carry them out."""

    request: type
    each: Callable[[WriteTransaction, TxnContext, Sequence[Any]], Outcomes]
    part: Callable[[WriteTransaction, TxnContext, Sequence[Any]], Part]
    """Carries them out with statements that share packets with those of other kinds."""


_KINDS = (
    # The kinds that may lock all transactions exclusively come first; the last ones take that lock shared.
    _Kind(ttypes.CommitTxnRequest, committing.commit_each, committing.Commits),
    _Kind(ttypes.AllocateTableWriteIdsRequest, allocation.allocate_for_one_each, allocation.Allocations),
    _Kind(ttypes.OpenTxnRequest, opening.open_one_each, opening.Openings),
)


def _change_txns(transaction: WriteTransaction, context: TxnContext, requests: Sequence[Any]) -> Outcomes:
    """Carries out the requests by kind, in the order in which rows are locked, and within a kind in the order of
    arrival. All of them were waiting at the same time, so any order is a valid serialization."""
    started_s = context.clock.monotonic_s()
    numbers = {
        kind: [number for number, one in enumerate(requests) if isinstance(one, kind.request)] for kind in _KINDS
    }
    of_kinds = {kind: [requests[number] for number in found] for kind, found in numbers.items() if found}
    if supports_direct_statements(transaction.connection):
        parts = [kind.part(transaction, context, some) for kind, some in of_kinds.items()]
        found = execute_parts(transaction, parts)
    else:
        found = [kind.each(transaction, context, some) for kind, some in of_kinds.items()]
    outcomes: list[Any] = [None] * len(requests)
    for kind, answers in zip(of_kinds, found, strict=True):
        for number, answer in zip(numbers[kind], answers, strict=True):
            is_opened = kind.request is ttypes.OpenTxnRequest
            outcomes[number] = _Opened(answer, started_s) if is_opened else answer
    return outcomes


def _execute(
    database: Database, context: TxnContext, work: Work, requests: Sequence[Any], *, events: int = 1
) -> Outcomes | None:
    """`events`: how many events the work usually appends. This many ids are reserved before it begins."""
    try:
        ids = {NOTIFICATION_LOG: events}
        return run_write(database, lambda transaction: work(transaction, context, requests), ids=ids)
    except CommitOutcomeUnknown as error:
        return [CommitOutcomeUnknown(str(error), connection_lost=True) for _ in requests]
    except Exception as error:
        _log_fallback(requests, error)
        return None


def _log_fallback(requests: Sequence[Any], error: Exception) -> None:
    _log.info("%d calls that shared a transaction are run one by one: %s", len(requests), error)
