"""Calls about locks that share a transaction, with as many statements as for one call of each kind (`lock_calls`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.locks.earlier_locks import EarlierLocks, read_earlier_locks
from hms_cache.store.locks.lock_rows import beat_locks, grant, lock_row, record_blocker, rows_of_locks
from hms_cache.store.locks.lock_rules import LockRow, LockTarget
from hms_cache.store.locks.locking import (
    INSERT_LOCKS,
    Conflict,
    ValidatedLockRequest,
    add_components,
    answer_and_rows,
    conflict_in_database,
)
from hms_cache.store.locks.unlocking import held_by_txn_error, may_be_unlocked
from hms_cache.store.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXNS
from hms_cache.store.transactions.codes import LOCK_ACQUIRED, TXN_OPEN
from hms_cache.store.transactions.database_values import allocate_id, now_ms, read_now_ms
from hms_cache.store.transactions.errors import no_such_lock_error, not_open_error
from hms_cache.thrift_gen.hive_metastore.ttypes import CheckLockRequest, LockResponse, LockState, UnlockRequest

L = HIVE_LOCKS.c
T = TXNS.c

LockCall = ValidatedLockRequest | CheckLockRequest | UnlockRequest

Outcome = LockResponse | Exception | None
"""The outcome of a call: an exception is raised to its client; None is the result of `unlock`."""


@dataclass(slots=True)
class WaitingLock:
    """A waiting lock that its client checks again."""

    lock_id: int
    rows: Sequence[Any]
    calls: list[int] = field(default_factory=list)

    @property
    def txn_id(self) -> int:
        return int(self.rows[0].HL_TXNID)

    @property
    def targets(self) -> list[LockTarget]:
        return [lock_row(row).target for row in self.rows]


class LockBatch:
    """Calls that share a transaction. For one attempt: a transaction that runs again uses a new object."""

    def __init__(self, connection: Connection, calls: Sequence[LockCall]) -> None:
        self._connection = connection
        self._outcomes: list[Outcome] = [None] * len(calls)
        self._unlocked: dict[int, list[int]] = {}
        """Numbers of the calls by lock, as in `_checked`."""
        self._checked: dict[int, list[int]] = {}
        self._requested: dict[int, ValidatedLockRequest] = {}
        """Requests by number of the call, in the order of arrival."""
        for number, call in enumerate(calls):
            match call:
                case ValidatedLockRequest():
                    self._requested[number] = call
                case CheckLockRequest():
                    self._checked.setdefault(call.lockid, []).append(number)
                case _:
                    self._unlocked.setdefault(call.lockid, []).append(number)

    def execute(self) -> list[Outcome]:
        if self._unlocked:
            self._unlock()
        waiting = self._beat_and_find_waiting()
        if not waiting and not self._requested:
            return self._outcomes
        external_ids: dict[int, int] = {}
        now = 0
        if self._requested:
            add_components(
                self._connection, [requested for requested in self._requested.values() if requested.txn_id > 0]
            )
            first = allocate_id(self._connection, NEXT_LOCK_ID.c.NL_NEXT, len(self._requested))
            external_ids = dict(zip(self._requested, range(first, first + len(self._requested)), strict=True))
            now = read_now_ms(self._connection)
        last = max([one.lock_id for one in waiting] + list(external_ids.values()), default=0)
        targets = [target for one in waiting for target in one.targets]
        targets += [target for requested in self._requested.values() for target in requested.targets]
        conflicts = Conflicts(self._connection, read_earlier_locks(self._connection, last, targets))
        if waiting:
            self._grant_waiting(waiting, conflicts)
        if self._requested:
            self._insert(external_ids, now, conflicts)
        return self._outcomes

    def _set_outcomes(self, numbers: Iterable[int], outcome: Outcome) -> None:
        for number in numbers:
            self._outcomes[number] = outcome

    # Giving back

    def _unlock(self) -> None:
        lock_ids = {"lock_ids": sorted(self._unlocked)}
        self._connection.execute(UNLOCK, lock_ids)
        for lock_id, txn_id in self._connection.execute(STILL_HELD, lock_ids):
            self._set_outcomes(self._unlocked[lock_id], held_by_txn_error(lock_id, txn_id))

    # Heartbeats

    def _beat_and_find_waiting(self) -> list[WaitingLock]:
        """Locks the transactions, records heartbeats, and answers for locks that are granted already; returns those
        that wait."""
        rows = rows_of_locks(self._connection, self._checked) if self._checked else {}
        self._refuse_unknown(rows)
        txn_of = {lock_id: int(found[0].HL_TXNID) for lock_id, found in rows.items()}
        states = self._lock_txns(
            {*txn_of.values(), *(requested.txn_id for requested in self._requested.values())} - {0}
        )
        self._refuse_requested_of_ended(states)
        self._refuse_checked_of_ended(states, rows, txn_of)
        if alive := {txn_id for txn_id in txn_of.values() if txn_id > 0}:
            self._connection.execute(_BEAT_TXNS, {"ids": sorted(alive)})
        outside = [lock_id for lock_id, txn_id in txn_of.items() if txn_id == 0]
        self._change_rows(beat_locks, outside, sum(len(rows[lock_id]) for lock_id in outside))
        return self._answer_granted(rows)

    def _refuse_unknown(self, rows: Mapping[int, Any]) -> None:
        for lock_id in self._checked.keys() - rows.keys():
            self._set_outcomes(self._checked[lock_id], no_such_lock_error(lock_id))

    def _refuse_requested_of_ended(self, states: Mapping[int, str]) -> None:
        for number, requested in list(self._requested.items()):
            if requested.txn_id > 0 and states.get(requested.txn_id) != TXN_OPEN:
                self._outcomes[number] = not_open_error(requested.txn_id, states.get(requested.txn_id))
                del self._requested[number]

    def _refuse_checked_of_ended(
        self, states: Mapping[int, str], rows: dict[int, list[Any]], txn_of: dict[int, int]
    ) -> None:
        for lock_id, txn_id in list(txn_of.items()):
            if txn_id > 0 and states.get(txn_id) != TXN_OPEN:
                self._set_outcomes(self._checked[lock_id], not_open_error(txn_id, states.get(txn_id)))
                del rows[lock_id], txn_of[lock_id]

    def _answer_granted(self, rows: Mapping[int, list[Any]]) -> list[WaitingLock]:
        """Answers for locks that are granted already, and returns the others."""
        waiting = []
        for lock_id, found in rows.items():
            if all(row.HL_LOCK_STATE == LOCK_ACQUIRED for row in found):
                self._set_outcomes(self._checked[lock_id], LockResponse(lockid=lock_id, state=LockState.ACQUIRED))
            else:
                waiting.append(WaitingLock(lock_id, found, self._checked[lock_id]))
        return waiting

    def _lock_txns(self, txn_ids: set[int]) -> dict[int, str]:
        """States of the existing transactions, whose rows stay locked."""
        if not txn_ids:
            return {}
        rows = self._connection.execute(LOCK_TXNS, {"txn_ids": sorted(txn_ids)})
        return {row.TXN_ID: row.TXN_STATE for row in rows}

    def _change_rows(
        self, change: Callable[[Connection, Collection[int]], int], lock_ids: Sequence[int], expected: int
    ) -> None:
        """Changes all rows of these locks. Raises RetryableConflict if some were released since they were read."""
        if lock_ids and change(self._connection, lock_ids) < expected:
            raise RetryableConflict("locks were released at the moment when their clients asked for them")

    # Granting

    def _grant_waiting(self, waiting: Sequence[WaitingLock], conflicts: Conflicts) -> None:
        granted: list[WaitingLock] = []
        blocked: dict[tuple[int, int, int], list[int]] = {}
        for one in waiting:
            conflict = conflicts.of(one.lock_id, one.txn_id, one.targets)
            state = LockState.ACQUIRED if conflict is None else LockState.WAITING
            self._set_outcomes(one.calls, LockResponse(lockid=one.lock_id, state=state))
            if conflict is None:
                granted.append(one)
                continue
            position, blocker = conflict
            row, by = one.rows[position], (blocker.external_id, blocker.internal_id)
            if (row.HL_BLOCKEDBY_EXT_ID, row.HL_BLOCKEDBY_INT_ID) != by:
                blocked.setdefault((*by, row.HL_LOCK_INT_ID), []).append(one.lock_id)
        self._change_rows(grant, [one.lock_id for one in granted], sum(len(one.rows) for one in granted))
        # Locks that wait for the same lock, as most do, need one statement.
        for (by_external, by_internal, internal_id), lock_ids in blocked.items():
            record_blocker(self._connection, lock_ids, internal_id, by_external, by_internal)

    # New requests

    def _insert(self, external_ids: dict[int, int], now: int, conflicts: Conflicts) -> None:
        if rows := self._answer(external_ids, now, conflicts):
            self._connection.execute(INSERT_LOCKS, rows)

    def _answer(self, external_ids: dict[int, int], now: int | None, conflicts: Conflicts) -> list[dict[str, Any]]:
        """Answers the new requests, and returns the rows to insert."""
        rows: list[dict[str, Any]] = []
        for number, requested in self._requested.items():
            external_id, txn_id = external_ids[number], requested.txn_id
            answer, own = answer_and_rows(requested, external_id, now, partial(conflicts.of, external_id, txn_id))
            self._outcomes[number] = answer
            if own:
                conflicts.add(
                    LockRow(external_id, position, txn_id, target, own[0]["HL_LOCK_STATE"])
                    for position, target in enumerate(requested.targets, start=1)
                )
            rows += own
        return rows


class Conflicts:
    """Locks that may block requests: those in the database, and those that this transaction is about to insert."""

    def __init__(self, connection: Connection, stored: EarlierLocks | None) -> None:
        """`stored`: all blocking locks in the database; None: query the database for each request."""
        self._connection = connection
        self._stored = stored
        self._new = EarlierLocks()

    def add(self, rows: Iterable[LockRow]) -> None:
        """Adds locks that are about to be inserted, younger than all before."""
        self._new.add(rows)

    def of(self, external_id: int, txn_id: int, targets: Sequence[LockTarget]) -> Conflict | None:
        """The oldest lock below this id that blocks the targets."""
        if self._stored is None:
            conflict = conflict_in_database(self._connection, external_id, txn_id, targets)
        else:
            conflict = self._stored.conflict_of(external_id, txn_id, targets)
        return conflict or self._new.conflict_of(external_id, txn_id, targets)


_LOCK_IDS = L.HL_LOCK_EXT_ID.in_(bindparam("lock_ids", expanding=True))
UNLOCK = delete(HIVE_LOCKS).where(_LOCK_IDS, may_be_unlocked())
STILL_HELD = select(L.HL_LOCK_EXT_ID, L.HL_TXNID).where(_LOCK_IDS).distinct()
LOCK_TXNS = (
    select(T.TXN_ID, T.TXN_STATE)
    .where(T.TXN_ID.in_(bindparam("txn_ids", expanding=True)))
    .order_by(T.TXN_ID)
    .with_for_update()
)
_BEAT_TXNS = update(TXNS).where(T.TXN_ID.in_(bindparam("ids", expanding=True))).values(TXN_LAST_HEARTBEAT=now_ms())
