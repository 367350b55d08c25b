"""Random histories of several clients against a model of transactions, write ids and locks.

The model is the definition: sets of committed transactions, a list of lock requests in order, and times. Housekeeping
runs in between and must not change any answer.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, update

from hms_cache.store.locks.lock_rules import LockTarget, must_wait
from hms_cache.store.schema import HIVE_LOCKS, TXNS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnsRequest,
    DataOperationType,
    HeartbeatRequest,
    LockComponent,
    LockState,
    LockType,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    TxnAbortedException,
    TxnOpenException,
    UnlockRequest,
)
from hms_cache.txn import ValidTxnList
from tests.txn.client import TxnClient, component

TIME_OUT_MS = 300_000
STEP_MS = 90_000

LETTERS = {
    LockType.SHARED_READ: "r",
    LockType.SHARED_WRITE: "w",
    LockType.EXCL_WRITE: "x",
    LockType.EXCLUSIVE: "e",
}

Where = tuple[str, str | None]


@dataclass
class ModelTxn:
    """The expected state of a transaction."""

    txn_id: int
    snapshot: ValidTxnList
    seen: frozenset[int]
    state: str = "open"
    heartbeat_ms: int = 0
    write_ids: dict[str, int] = field(default_factory=dict)
    written: dict[Where, set[str]] = field(default_factory=dict)
    commit_id: int = 0
    may_be_forgotten: bool = False

    @property
    def changed(self) -> set[Where]:
        return {where for where, operations in self.written.items() if operations & {"u", "d"}}


@dataclass
class ModelLock:
    """The expected state of a lock request."""

    lock_id: int
    txn_id: int | None
    targets: list[LockTarget]
    is_granted: bool
    heartbeat_ms: int


class TransactionMachine(RuleBasedStateMachine):
    """Bound to a client by the test below."""

    client: TxnClient
    numbers = itertools.count()

    txns = Bundle("txns")
    locks = Bundle("locks")

    def __init__(self) -> None:
        super().__init__()
        self.prefix = f"run{next(self.numbers)}_"
        self.now_ms = 0
        self.model: dict[int, ModelTxn] = {}
        self.requests: dict[int, ModelLock] = {}
        self.owners: dict[str, list[int]] = {}
        self.committed: set[int] = set()

    def teardown(self) -> None:
        left = [txn.txn_id for txn in self.model.values() if txn.state == "open"]
        if left:
            self.client.store.abort_txns(AbortTxnsRequest(txn_ids=left))
        self.client.change(delete(HIVE_LOCKS))

    tables = st.sampled_from(["t", "u"])
    partitions = st.sampled_from([None, "p=1", "p=2"])
    operations = st.sampled_from([DataOperationType.INSERT, DataOperationType.UPDATE, DataOperationType.DELETE])
    lock_types = st.sampled_from(sorted(LETTERS))

    @rule(target=txns, count=st.integers(1, 3))
    def open_txns(self, count: int) -> object:
        ids = self.client.open_many(count)
        assert ids == sorted(ids) and min(ids) > max(self.model, default=0)
        seen = frozenset(self.committed)
        snapshots = {txn_id: self.client.snapshot(txn_id) for txn_id in ids}
        for txn_id in ids:
            self.model[txn_id] = ModelTxn(txn_id, snapshots[txn_id], seen, heartbeat_ms=self.now_ms)
        return multiple(*ids)

    @rule(txn_id=txns, table=tables)
    def allocate(self, txn_id: int, table: str) -> None:
        txn, table = self.model[txn_id], self.prefix + table
        if txn.state != "open":
            with pytest.raises(MetaException):
                self.client.allocate([txn_id], table)
            return
        owners = self.owners.setdefault(table, [])
        if table not in txn.write_ids:
            owners.append(txn_id)
            txn.write_ids[table] = len(owners)
        assert self.client.allocate([txn_id], table) == {txn_id: txn.write_ids[table]}

    @rule(target=locks, txn_id=txns, table=tables, partition=partitions, operation=operations, lock_type=lock_types)
    def lock_to_write(self, txn_id: int, table: str, partition: str | None, operation: int, lock_type: int) -> object:
        txn, table = self.model[txn_id], self.prefix + table
        one = component(lock_type, table, partition, operation=operation)
        if txn.state != "open":
            with pytest.raises(self.error_of(txn)):
                self.client.lock(one, txn_id=txn_id)
            return multiple()
        letter = {DataOperationType.INSERT: "i", DataOperationType.UPDATE: "u", DataOperationType.DELETE: "d"}
        txn.written.setdefault((table, partition), set()).add(letter[operation])
        return self.expect_lock(txn_id, one)

    @rule(target=txns, operation=operations)
    def open_and_write(self, operation: int) -> object:
        """What most transactions do, so that enough of them conflict."""
        txn_id = self.client.open()
        self.model[txn_id] = ModelTxn(
            txn_id, self.client.snapshot(txn_id), frozenset(self.committed), heartbeat_ms=self.now_ms
        )
        self.allocate(txn_id, "t")
        self.lock_to_write(txn_id, "t", None, operation, LockType.SHARED_WRITE)
        return txn_id

    @rule(target=locks, table=st.none() | tables, lock_type=lock_types)
    def lock_alone(self, table: str | None, lock_type: int) -> object:
        return self.expect_lock(None, component(lock_type, None if table is None else self.prefix + table))

    def expect_lock(self, txn_id: int | None, one: LockComponent) -> int:
        answer = self.client.lock(one, txn_id=txn_id)
        target = LockTarget(LETTERS[one.type], one.dbname, one.tablename, one.partitionname)
        request = ModelLock(answer.lockid, txn_id, [target], False, self.now_ms)
        request.is_granted = not self.must_wait(request)
        assert answer.lockid > max(self.requests, default=0)
        assert answer.state == (LockState.ACQUIRED if request.is_granted else LockState.WAITING)
        self.requests[answer.lockid] = request
        return answer.lockid

    def must_wait(self, request: ModelLock) -> bool:
        return any(
            must_wait(mine, theirs)
            for other in self.requests.values()
            if other.lock_id < request.lock_id and (request.txn_id is None or other.txn_id != request.txn_id)
            for mine in request.targets
            for theirs in other.targets
        )

    @rule(lock_id=locks)
    def check_lock(self, lock_id: int) -> None:
        request = self.requests.get(lock_id)
        if request is None:
            with pytest.raises(NoSuchLockException):
                self.client.check(lock_id)
            return
        request.is_granted = request.is_granted or not self.must_wait(request)
        assert self.client.check(lock_id) == (LockState.ACQUIRED if request.is_granted else LockState.WAITING)
        if request.txn_id is None:
            request.heartbeat_ms = self.now_ms
        else:
            self.model[request.txn_id].heartbeat_ms = self.now_ms

    @rule(lock_id=consumes(locks))
    def unlock(self, lock_id: int) -> None:
        request = self.requests.get(lock_id)
        if request is not None and request.txn_id is not None and request.is_granted:
            with pytest.raises(TxnOpenException):
                self.client.store.unlock(UnlockRequest(lockid=lock_id))
            return
        self.client.store.unlock(UnlockRequest(lockid=lock_id))
        self.requests.pop(lock_id, None)

    @rule(txn_id=txns, is_exclusive=st.booleans())
    def commit(self, txn_id: int, is_exclusive: bool) -> None:
        txn = self.model[txn_id]
        if txn.state != "open" and txn.may_be_forgotten:
            return
        if txn.state == "aborted":
            with pytest.raises(TxnAbortedException):
                self.client.commit(txn_id, exclWriteEnabled=is_exclusive)
            return
        if txn.state == "open" and self.conflicts(txn, is_exclusive):
            with pytest.raises(TxnAbortedException, match="due to a write conflict"):
                self.client.commit(txn_id, exclWriteEnabled=is_exclusive)
            self.end(txn, "aborted")
            return
        self.client.commit(txn_id, exclWriteEnabled=is_exclusive)
        if txn.state == "open":
            txn.commit_id = max(self.model)
            self.committed.add(txn_id)
            self.end(txn, "committed")

    def conflicts(self, txn: ModelTxn, is_exclusive: bool) -> bool:
        mine = (request for request in self.requests.values() if request.txn_id == txn.txn_id)
        has_shared = any(target.lock_type == "w" for request in mine for target in request.targets)
        if is_exclusive and not has_shared:
            return False
        return any(
            other.state == "committed" and other.commit_id >= txn.txn_id and other.changed & txn.changed
            for other in self.model.values()
        )

    @rule(txn_id=txns)
    def abort(self, txn_id: int) -> None:
        txn = self.model[txn_id]
        if txn.state != "open" and txn.may_be_forgotten:
            return
        if txn.state == "committed":
            with pytest.raises(NoSuchTxnException):
                self.client.abort(txn_id)
            return
        self.client.abort(txn_id)
        if txn.state == "open":
            self.end(txn, "aborted")

    def error_of(self, txn: ModelTxn) -> tuple[type[Exception], ...]:
        """What a call in an ended transaction raises."""
        if txn.may_be_forgotten:
            return TxnAbortedException, NoSuchTxnException
        return (TxnAbortedException,) if txn.state == "aborted" else (NoSuchTxnException,)

    def end(self, txn: ModelTxn, state: str) -> None:
        txn.state = state
        self.requests = {number: one for number, one in self.requests.items() if one.txn_id != txn.txn_id}

    @rule(txn_id=txns)
    def heartbeat(self, txn_id: int) -> None:
        txn = self.model[txn_id]
        if txn.state != "open":
            with pytest.raises(self.error_of(txn)):
                self.client.store.heartbeat(HeartbeatRequest(txnid=txn_id))
            return
        self.client.store.heartbeat(HeartbeatRequest(txnid=txn_id))
        txn.heartbeat_ms = self.now_ms

    @rule()
    def time_passes(self) -> None:
        self.now_ms += STEP_MS
        self.client.age(STEP_MS)

    @rule()
    def time_out(self) -> None:
        silent = [
            txn for txn in self.model.values() if txn.state == "open" and self.now_ms - txn.heartbeat_ms > TIME_OUT_MS
        ]
        lost = [
            request.lock_id
            for request in self.requests.values()
            if request.txn_id is None and self.now_ms - request.heartbeat_ms > TIME_OUT_MS
        ]
        given_up = self.client.store.give_up_timed_out()
        assert (given_up.txns, given_up.locks) == (len(silent), len(lost))
        for txn in silent:
            self.end(txn, "aborted")
        for lock_id in lost:
            del self.requests[lock_id]

    @rule()
    def housekeeping(self) -> None:
        self.client.change(update(TXNS).values(TXN_STARTED=TXNS.c.TXN_STARTED - 2000))
        self.client.store.clean()
        for txn in self.model.values():
            txn.may_be_forgotten |= txn.state != "open"

    @precondition(lambda self: self.owners)
    @rule(txn_id=txns)
    def read(self, txn_id: int) -> None:
        txn = self.model[txn_id]
        if txn.state != "open":
            return
        tables = sorted(self.owners)
        found = self.client.valid(*(f"d.{table}" for table in tables), snapshot=txn.snapshot)
        for table, write_ids in zip(tables, found, strict=True):
            for write_id, owner in enumerate(self.owners[table], start=1):
                visible = owner in txn.seen or owner == txn_id
                if self.has_trace(owner):
                    assert write_ids.is_valid(write_id) is visible, (table, write_id, write_ids)

    def has_trace(self, owner: int) -> bool:
        """Aborted transactions that wrote nothing are deleted with their ids, under which there is no data."""
        return self.model[owner].state != "aborted" or bool(self.model[owner].written)

    @invariant()
    def the_open_are_listed(self) -> None:
        listed = set(self.client.store.get_open_txns().open_txns)
        for txn in self.model.values():
            if txn.state == "open":
                assert txn.txn_id in listed
            elif txn.state == "committed":
                assert txn.txn_id not in listed
            elif txn.written:
                assert txn.txn_id in listed


@pytest.mark.parametrize(
    ("database_kind", "examples"),
    [
        pytest.param("sqlite", 15, id="sqlite"),
        pytest.param("mariadb", 7, id="mariadb", marks=pytest.mark.mariadb),
        pytest.param("postgresql", 7, id="postgresql", marks=pytest.mark.postgresql),
    ],
    indirect=["database_kind"],
)
def test_any_history_of_several_clients(client: TxnClient, examples: int) -> None:
    class BoundMachine(TransactionMachine):
        pass

    BoundMachine.client = client
    run_state_machine_as_test(
        BoundMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
