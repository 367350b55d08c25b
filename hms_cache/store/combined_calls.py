"""Calls about transactions and locks that wait at the same moment become one transaction (group commit).

What waits is known where calls wait for a thread (`server.workers`): this module says which calls can share a
transaction, and carries some out together. Their statements run in one database transaction in the order of arrival,
their events are written together, and one COMMIT ends it: the more clients wait, the fewer statements and round trips
there are for each.

Calls stay as independent as they were. What Hive answers with an exception (a transaction that is not open, no such
lock) is the outcome of that call alone. If the transaction fails in any other way, it was rolled back, and each of its
calls is to be run by itself: the error of one is nobody else's. The exception is a COMMIT whose outcome is unknown:
that is what each is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.locks import lock_calls, unlocking
from hms_cache.store.transactions import committing, opening
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.write_ids import allocation

_log = logging.getLogger(__name__)

Outcomes = Sequence[Any]
"""Of each call, in their order, what it is answered: a value, or an exception to be raised to its client."""


@dataclass(frozen=True, slots=True)
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
    database: Database, context: TxnContext, answer_opened: Callable[[Sequence[Any], Outcomes], Outcomes]
) -> Mapping[str, CombinedCalls]:
    """By method. Empty where `transactions.max_combined` is 1.

    `answer_opened` makes answers of what `opening.open_one_each` has opened, and when it began.
    """
    most = context.transactions.max_combined
    if most == 1:
        return {}

    def together(work: Work) -> Callable[[Sequence[Any]], Outcomes | None]:
        return lambda requests: _carried_out(database, context, work, requests)

    def open_each(requests: Sequence[Any]) -> Outcomes | None:
        opened = _carried_out(database, context, _open_each, requests)
        # Of a COMMIT whose outcome is unknown, each is told so.
        is_unknown = opened is not None and isinstance(opened[0], Exception)
        return opened if opened is None or is_unknown else answer_opened(requests, opened)

    locks = CombinedCalls("locks", most, lock_calls.may_combine, together(lock_calls.carry_out_requests))
    return {
        "open_txns": CombinedCalls("open_txns", most, opening.opens_one, open_each),
        "allocate_table_write_ids": CombinedCalls(
            "allocate_table_write_ids", most, allocation.is_for_one_writer, together(allocation.allocate_for_one_each)
        ),
        "commit_txn": CombinedCalls(
            "commit_txn", most, lambda request: not committing.commits_alone(request), together(committing.commit_each)
        ),
        "heartbeat": CombinedCalls("heartbeat", most, lambda request: True, together(unlocking.heartbeat_each)),
        "lock": locks,
        "check_lock": locks,
        "unlock": locks,
    }


def _open_each(transaction: WriteTransaction, context: TxnContext, requests: Sequence[Any]) -> Outcomes:
    """The ids of each, and when the attempt that drew them began (seconds of the clock)."""
    started_s = context.clock.monotonic_s()
    return [(txn_ids, started_s) for txn_ids in opening.open_one_each(transaction, context, requests)]


def _carried_out(database: Database, context: TxnContext, work: Work, requests: Sequence[Any]) -> Outcomes | None:
    try:
        return run_write(database, lambda transaction: work(transaction, context, requests))
    except CommitOutcomeUnknown as error:
        return [CommitOutcomeUnknown(str(error), connection_lost=True) for _ in requests]
    except Exception as error:
        _log.info("%d calls that shared a transaction are run one by one: %s", len(requests), error)
        return None
