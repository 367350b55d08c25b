"""Calls about locks as packets, for MySQL and MariaDB: most take one round trip, and one more with COMMIT.

The first packet releases locks, records heartbeats, reads the locks that are checked again, allocates ids for new
requests and reads the locks that block them. The last one inserts the new rows and commits: it does not wait for locks,
since NEXT_LOCK_ID has been locked since the first packet.

Rows are locked in the order of `lock_batch`: locks outside transactions, transactions, NEXT_LOCK_ID. The transactions
of locks that are checked again are known only after these are read. If there are any, the first packet allocates no id,
and a second one locks the transactions first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Integer, Select, bindparam, func, insert, select, update

from hms_cache.store.engine.direct_statements import Direct, DirectQuery, DirectRows, Statement
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.locks.earlier_locks import EarlierLocks, direct_query, earlier_locks, earlier_locks_parameters
from hms_cache.store.locks.lock_batch import (
    LOCK_TXNS,
    STILL_HELD,
    UNLOCK,
    Conflicts,
    LockBatch,
    LockCall,
    Outcome,
    WaitingLock,
)
from hms_cache.store.locks.lock_rows import ROWS, rows_by_lock
from hms_cache.store.locks.lock_rules import earlier_locks_query
from hms_cache.store.locks.locking import (
    INSERT_COMPONENTS,
    WritingTxn,
    component_rows,
    write_ids_query,
    writing_txns,
)
from hms_cache.store.locks.unlocking import held_by_txn_error
from hms_cache.store.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXN_COMPONENTS, TXNS
from hms_cache.store.transactions.codes import LOCK_ACQUIRED, LOCK_WAITING, TXN_OPEN
from hms_cache.store.transactions.database_values import now_ms

L = HIVE_LOCKS.c
T = TXNS.c

_ABOVE_ALL: Final = 2**63 - 1
"""While NEXT_LOCK_ID is locked, no lock is younger than the new ones."""


class _Packet:
    """Statements to send together, and their results by name."""

    def __init__(self) -> None:
        self._statements: dict[str, Statement] = {}
        self._answers: dict[str, Any] = {}

    def add(self, name: str, statement: Direct, values: Mapping[str, Any]) -> None:
        self._statements[name] = statement, values

    def send(self, transaction: WriteTransaction, *, commits: bool = False) -> None:
        statements = list(self._statements.values())
        if commits:
            answers = transaction.execute_and_commit(statements, only_own_rows=True)
        else:
            answers = transaction.execute_directly(statements)
        self._answers = dict(zip(self._statements, answers, strict=True))

    @property
    def names(self) -> Iterable[str]:
        """The names of its statements."""
        return self._statements.keys()

    def rows(self, name: str) -> Sequence[Any]:
        """The result of a query; empty if it was not sent."""
        found: Sequence[Any] = self._answers.get(name, ())
        return found

    def __getitem__(self, name: str) -> Any:
        return self._answers[name]


class LockPackets(LockBatch):
    """Like `LockBatch`."""

    def __init__(self, transaction: WriteTransaction, calls: Sequence[LockCall]) -> None:
        super().__init__(transaction.connection, calls)
        self._transaction = transaction
        self._writing: list[WritingTxn] = []
        self._stored: EarlierLocks | None = None

    def execute(self) -> list[Outcome]:
        packet = _Packet()
        if self._unlocked:
            given_back = {"lock_ids": sorted(self._unlocked)}
            packet.add("unlock", _UNLOCK, given_back)
            packet.add("held", _STILL_HELD, given_back)
        if self._checked:
            packet.add("beat", _BEAT_OUTSIDE, {"ids": sorted(self._checked)})
            packet.add("rows", _ROWS, {"lock_ids": sorted(self._checked)})
        of_txns = {requested.txn_id for requested in self._requested.values()} - {0}
        if self._requested and not (self._checked and of_txns):
            self._add_requested(packet, of_txns, unless=sorted(self._checked))
        packet.send(self._transaction, commits=not self._checked and not self._requested)
        for lock_id, txn_id in packet.rows("held"):
            self._set_outcomes(self._unlocked[lock_id], held_by_txn_error(lock_id, txn_id))
        rows = rows_by_lock(packet.rows("rows"))
        self._refuse_unknown(rows)
        txn_of = {lock_id: int(found[0].HL_TXNID) for lock_id, found in rows.items()}
        of_checked = set(txn_of.values()) - {0}
        is_requested = "take" in packet.names and packet["take"].rows > 0
        if of_checked or (self._requested and not is_requested):
            packet = _Packet()
            if locked := of_txns | of_checked:
                packet.add("states", _LOCK_TXNS, {"txn_ids": sorted(locked)})
            if of_checked:
                packet.add("beat", _BEAT_OPEN_TXNS, {"ids": sorted(of_checked)})
            if self._requested and not is_requested:
                self._add_requested(packet, set())
            packet.send(self._transaction)
        states = dict(packet.rows("states"))
        self._refuse_checked_of_ended(states, rows, txn_of)
        waiting = self._answer_granted(rows)
        if self._requested:
            self._answer_requested(packet, states)
        if waiting:
            self._recheck(waiting)
        return self._outcomes

    def _add_requested(self, packet: _Packet, of_txns: set[int], unless: Sequence[int] = ()) -> None:
        """Adds the queries for new requests. `of_txns`: transactions that still have to be locked. No id is allocated
        if one of the locks `unless` belongs to a transaction."""
        if of_txns:
            packet.add("states", _LOCK_TXNS, {"txn_ids": sorted(of_txns)})
        self._writing = writing_txns(self._requested.values())
        if self._writing:
            query, values = write_ids_query(self._writing)
            packet.add("write_ids", _direct(query), values)
        count = {"count": len(self._requested)}
        if unless:
            packet.add("take", _ALLOCATE_UNLESS, {**count, "unless": unless})
        else:
            packet.add("take", _ALLOCATE, count)
        packet.add("conflicts", *self._conflicts_of_requested())

    def _conflicts_of_requested(self) -> tuple[DirectQuery, Mapping[str, Any]]:
        """The query for locks that block the new requests. For one request on few tables the oldest lock is sufficient,
        unless reads must not wait."""
        first, *more = self._requested.values()
        if not more and len(first.targets) <= _FEW_TARGETS and not first.request.zeroWaitReadEnabled:
            query, values = earlier_locks_query(_ABOVE_ALL, first.txn_id, first.targets, limit=1)
            return _direct(query), values
        shape, values = earlier_locks_parameters(
            _ABOVE_ALL, [one for requested in self._requested.values() for one in requested.targets]
        )
        return direct_query(*shape), values

    def _answer_requested(self, packet: _Packet, states: Mapping[int, str]) -> None:
        allocated = packet["take"]
        if not allocated.rows:
            raise RuntimeError(f"counter table {NEXT_LOCK_ID.name} has no row")
        drawn = len(self._requested)
        self._refuse_requested_of_ended(states)
        statements: list[Statement] = []
        if drawn > len(self._requested):
            statements.append((_ALLOCATE, {"count": len(self._requested) - drawn}))
        writing = [one for one in self._writing if states.get(one[0]) == TXN_OPEN]
        if writing:
            statements.append((_INSERT_COMPONENTS, component_rows(writing, packet.rows("write_ids"))))
        ids = dict(zip(self._requested, range(allocated.last_id, allocated.last_id + drawn), strict=False))
        conflicts = Conflicts(self._connection, earlier_locks(packet.rows("conflicts")))
        rows = self._answer(ids, None, conflicts)
        for (state, is_of_txn), statement in _INSERT_LOCKS.items():
            if alike := [row for row in rows if row["HL_LOCK_STATE"] == state and (row["HL_TXNID"] > 0) == is_of_txn]:
                statements.append((statement, alike))
        self._transaction.defer_to_commit(statements)

    def _recheck(self, waiting: Sequence[WaitingLock]) -> None:
        """Checks whether waiting locks can be granted now."""
        targets = [target for one in waiting for target in one.targets]
        shape, values = earlier_locks_parameters(max(one.lock_id for one in waiting), targets)
        [found] = self._transaction.execute_directly([(direct_query(*shape), values)])
        self._grant_waiting(waiting, Conflicts(self._connection, earlier_locks(found)))


_FEW_TARGETS: Final = 3


@lru_cache(512)
def _direct(query: Select[Any]) -> DirectQuery:
    return DirectQuery(query)


_UNLOCK = Direct(UNLOCK)
_STILL_HELD = DirectQuery(STILL_HELD)
_ROWS = DirectQuery(ROWS)
_LOCK_TXNS = DirectQuery(LOCK_TXNS)
_BEAT_OUTSIDE = Direct(
    update(HIVE_LOCKS)
    .where(L.HL_LOCK_EXT_ID.in_(bindparam("ids", expanding=True)), L.HL_TXNID == 0)
    .values(HL_LAST_HEARTBEAT=now_ms())
)
"""Their rows are locked, and exist until the transaction ends."""
_BEAT_OPEN_TXNS = Direct(
    update(TXNS)
    .where(T.TXN_ID.in_(bindparam("ids", expanding=True)), T.TXN_STATE == TXN_OPEN)
    .values(TXN_LAST_HEARTBEAT=now_ms())
)

_ALLOCATION = update(NEXT_LOCK_ID).values(
    NL_NEXT=func.last_insert_id(NEXT_LOCK_ID.c.NL_NEXT) + bindparam("count", type_=Integer())
)
_ALLOCATE = Direct(_ALLOCATION)
_ALLOCATE_UNLESS = Direct(
    _ALLOCATION.where(
        ~select(L.HL_LOCK_EXT_ID)
        .where(L.HL_LOCK_EXT_ID.in_(bindparam("unless", expanding=True)), L.HL_TXNID > 0)
        .exists()
    )
)

_INSERT_COMPONENTS = DirectRows(INSERT_COMPONENTS, [column.name for column in TXN_COMPONENTS.c])
_COLUMNS = [column.name for column in L if column.name not in ("HL_LAST_HEARTBEAT", "HL_ACQUIRED_AT")]


def _inserting(state: str, is_of_txn: bool) -> DirectRows:
    given = {name: bindparam(name, type_=L[name].type) for name in _COLUMNS}
    # The heartbeat of a lock in a transaction is the transaction's.
    heartbeat: Any = 0 if is_of_txn else now_ms()
    acquired: Any = now_ms() if state == LOCK_ACQUIRED else None
    return DirectRows(insert(HIVE_LOCKS).values(**given, HL_LAST_HEARTBEAT=heartbeat, HL_ACQUIRED_AT=acquired))


_INSERT_LOCKS = {
    (state, is_of_txn): _inserting(state, is_of_txn)
    for state in (LOCK_ACQUIRED, LOCK_WAITING)
    for is_of_txn in (False, True)
}
"""By state of the lock, and whether it belongs to a transaction."""
