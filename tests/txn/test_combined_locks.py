"""`lock`, `check_lock` and `unlock` of many clients in one transaction have the same result as one after the other."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, delete

from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.locks import earlier_locks, lock_batch, lock_calls, lock_rows, locking
from hms_cache.store.locks.lock_batch import LockCall
from hms_cache.store.locks.lock_rules import LockTarget, must_wait
from hms_cache.store.schema import HIVE_LOCKS, NEXT_LOCK_ID, TXN_COMPONENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CheckLockRequest,
    DataOperationType,
    LockComponent,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    UnlockRequest,
)
from tests.databases import DatabaseServer, SqliteFiles, closing, count_statements
from tests.txn.client import TxnClient, component, write_component
from tests.txn.combining import combining
from tests.txn.conftest import store_of

_TYPES = sorted(LockType._VALUES_TO_NAMES)
_NOT_THE_TIME = [one.name for one in HIVE_LOCKS.c if one.name not in ("HL_LAST_HEARTBEAT", "HL_ACQUIRED_AT")]


def request_of(*components: LockComponent, txn_id: int | None = None, **options: Any) -> LockRequest:
    return LockRequest(component=list(components), txnid=txn_id, user="u", hostname="h", agentInfo="a", **options)


def together(client: TxnClient, calls: Sequence[Any]) -> list[Any]:
    """Outcomes of calls that share a transaction."""
    requested: list[LockCall] = [
        locking.validated_lock_request(one) if isinstance(one, LockRequest) else one for one in calls
    ]
    context = client.store.context
    return run_write(client.database, lambda transaction: lock_calls.execute(transaction, context, requested))


def one_by_one(client: TxnClient, calls: Sequence[Any]) -> list[Any]:
    """Outcomes of the same calls in transactions of their own, in the order given by `lock_calls`."""
    turns = {UnlockRequest: 0, CheckLockRequest: 1, LockRequest: 2}
    outcomes: list[Any] = [None] * len(calls)
    for number in sorted(range(len(calls)), key=lambda one: turns[type(calls[one])]):
        call = calls[number]
        try:
            match call:
                case LockRequest():
                    outcomes[number] = client.store.lock(call)
                case CheckLockRequest():
                    outcomes[number] = client.store.check_lock(call)
                case _:
                    client.store.unlock(call)
        except Exception as error:
            outcomes[number] = error
    return outcomes


def some_component(draw: random.Random) -> LockComponent:
    table = draw.choice([None, "t", "t", "u", "v"])
    partition = draw.choice([None, None, "p=1", "p=2"]) if table else None
    operation = draw.choice([DataOperationType.SELECT, DataOperationType.INSERT, DataOperationType.UPDATE])
    return component(
        draw.choice(_TYPES),
        table,
        partition,
        database=draw.choice("ddde"),
        operation=operation,
        dynamic=draw.random() < 0.2,
    )


def some_request(draw: random.Random, txn_ids: Sequence[int]) -> LockRequest:
    options = {"zeroWaitReadEnabled": draw.random() < 0.3, "exclusiveCTAS": draw.random() < 0.1}
    txn_id = draw.choice([None, *txn_ids])
    return request_of(*(some_component(draw) for _ in range(draw.randint(1, 3))), txn_id=txn_id, **options)


def some_history(draw: random.Random, client: TxnClient) -> list[Any]:
    """Locks that are held or waiting, some of ended transactions; then calls about them."""
    txn_ids = [client.open() for _ in range(6)]
    for txn_id in txn_ids[:3]:
        client.allocate([txn_id], "t")
    lock_ids = [client.store.lock(some_request(draw, txn_ids)).lockid for _ in range(25)]
    of_open, of_aborted = (
        client.lock(component(LockType.SHARED_READ, database="own"), txn_id=txn_ids[number]).lockid for number in (0, 4)
    )
    client.abort(txn_ids[4])
    client.commit(txn_ids[5])
    for lock_id in draw.sample(lock_ids, 6):
        one_by_one(client, [UnlockRequest(lockid=lock_id)])
    calls: list[Any] = [some_request(draw, txn_ids) for _ in range(12)]
    calls += [CheckLockRequest(lockid=one) for one in draw.sample(lock_ids, 14)]
    calls += [UnlockRequest(lockid=one) for one in draw.sample(lock_ids, 6)]
    calls += [CheckLockRequest(lockid=one) for one in (of_aborted, 10_000, lock_ids[0])]
    calls += [UnlockRequest(lockid=one) for one in (of_open, 10_001)]
    calls += [
        request_of(component(LockType.EXCLUSIVE, database="free")),
        request_of(component(LockType.EXCLUSIVE, database="free")),
    ]
    calls.append(request_of(component(LockType.EXCLUSIVE, database="free"), txn_id=txn_ids[4]))
    draw.shuffle(calls)
    return calls


@pytest.mark.parametrize(("seed", "max_read"), [(0, 1000), (1, 1000), (2, 2)])
def test_together_they_are_what_they_are_one_by_one(
    seed: int, max_read: int, database_server: SqliteFiles | DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few earlier locks, which are read at once, and with more than are read at once."""
    monkeypatch.setattr(earlier_locks, "MAX_EARLIER_LOCKS", max_read)
    earlier_locks._query.cache_clear()
    earlier_locks.direct_query.cache_clear()
    found: list[Any] = []
    for execute in (together, one_by_one):
        url = database_server.initialized_database()
        with closing(Database(url)) as database:
            client = TxnClient(store_of(database), database)
            outcomes = execute(client, some_history(random.Random(seed), client))
            tables = client.rows(HIVE_LOCKS, *_NOT_THE_TIME), client.rows(TXN_COMPONENTS), client.rows(NEXT_LOCK_ID)
            found.append(([repr(one) for one in outcomes], *tables))
        database_server.give_back(url)
    earlier_locks._query.cache_clear()
    earlier_locks.direct_query.cache_clear()
    assert found[0] == found[1]
    kinds = " ".join(found[0][0])
    assert all(kind in kinds for kind in ("NoSuchLock", "TxnAborted", "TxnOpen", "state=1", "state=2", "None")), kinds


def test_the_new_ones_wait_for_each_other(client: TxnClient) -> None:
    requested = [request_of(component(LockType.EXCLUSIVE)), request_of(component(LockType.SHARED_READ))]
    first, second, third = together(client, [*requested, request_of(component(LockType.SHARED_READ, "u"))])
    assert (first.state, second.state, third.state) == (LockState.ACQUIRED, LockState.WAITING, LockState.ACQUIRED)
    assert first.lockid < second.lockid < third.lockid, "in the order in which they came"
    blockers = client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID", "HL_BLOCKEDBY_EXT_ID", "HL_BLOCKEDBY_INT_ID")
    assert (second.lockid, first.lockid, 1) in blockers


def test_who_waits_gets_what_is_given_back_at_the_same_moment(client: TxnClient) -> None:
    held = client.lock(component(LockType.EXCLUSIVE))
    waiting = client.lock(component(LockType.EXCLUSIVE))
    calls = [CheckLockRequest(lockid=waiting.lockid), request_of(component(LockType.EXCLUSIVE))]
    checked, new, _ = together(client, [*calls, UnlockRequest(lockid=held.lockid)])
    assert (checked.state, new.state) == (LockState.ACQUIRED, LockState.WAITING)


def test_their_owners_live(client: TxnClient) -> None:
    """Requesting a lock again counts as a heartbeat, of its transaction if it has one."""
    txn_id = client.open()
    of_txn, alone, silent = (
        client.lock(component(LockType.EXCLUSIVE, table), txn_id=owner)
        for table, owner in (("t", txn_id), ("u", None), ("v", None))
    )
    client.age(2 * 1000 * int(client.store.timeout_s))
    together(client, [CheckLockRequest(lockid=of_txn.lockid), CheckLockRequest(lockid=alone.lockid)])
    client.store.give_up_timed_out()
    assert {row[0] for row in client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID")} == {of_txn.lockid, alone.lockid}
    assert silent.state == LockState.ACQUIRED


@pytest.mark.parametrize("count", [3, 12])
def test_statements_do_not_grow_with_the_calls(client: TxnClient, count: int) -> None:
    """All kinds of calls, half of them of transactions; those that wait get a new blocker."""
    txn_ids = [client.open() for _ in range(count)]
    held = [client.lock(component(LockType.EXCLUSIVE, f"h{number}")).lockid for number in range(count)]
    blocker = client.lock(component(LockType.EXCLUSIVE, "w")).lockid
    waiting = [client.lock(component(LockType.SHARED_READ, "w")).lockid for _ in range(count)]
    freed = [client.lock(component(LockType.EXCLUSIVE, f"h{number}")).lockid for number in range(count)]
    calls: list[Any] = [request_of(component(LockType.EXCLUSIVE, f"n{number}")) for number in range(count)]
    calls += [request_of(write_component(table=f"o{number}"), txn_id=txn_ids[number]) for number in range(count)]
    calls += [CheckLockRequest(lockid=one) for one in (*waiting, *freed)]
    calls += [UnlockRequest(lockid=one) for one in held]
    with count_statements(client.database) as seen:
        outcomes = together(client, calls)
    states = [one.state for one in outcomes if one is not None]
    assert states.count(LockState.WAITING) == count, (states, blocker)
    # Two to unlock, one to read, two for transactions and heartbeats, two for what is written, the ids, the time, the
    # conflicts, the granted, the new blocker, the new rows; COMMIT.
    assert seen.count <= 13, seen.statements


def test_a_lock_that_goes_at_that_moment(server_client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client released it after it was read and before it was granted: only its own client gets an error."""
    client = server_client
    if client.database.dialect == "mysql":
        pytest.skip("who reads it has locked it: nothing comes between")
    first, second = (client.lock(component(LockType.EXCLUSIVE, table)) for table in "tu")
    read = lock_rows.rows_of_locks

    def read_and_release(connection: Connection, lock_ids: Collection[int]) -> dict[int, list[Any]]:
        found = read(connection, lock_ids)
        monkeypatch.setattr(lock_batch, "rows_of_locks", read)
        with ThreadPoolExecutor(1) as other:
            other.submit(client.change, delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_LOCK_EXT_ID == first.lockid)).result()
        return found

    monkeypatch.setattr(lock_batch, "rows_of_locks", read_and_release)
    gone, there = together(client, [CheckLockRequest(lockid=one.lockid) for one in (first, second)])
    assert isinstance(gone, NoSuchLockException)
    assert there.state == LockState.ACQUIRED


@pytest.fixture
def server_client(client: TxnClient) -> TxnClient:
    if client.database.is_sqlite:
        pytest.skip("SQLite has one writer at a time: nothing comes between")
    return client


# Many clients at once


@dataclass(frozen=True)
class Held:
    lock_id: int
    targets: tuple[LockTarget, ...]

    def excludes(self, other: Held) -> bool:
        """Whether both cannot be held at the same time: the one with the larger id would have to wait."""
        first, second = sorted((self, other), key=lambda one: one.lock_id)
        return any(must_wait(late, early) for late in second.targets for early in first.targets)


@dataclass
class Monitor:
    """The locks that clients hold, from the acknowledgement until their release."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: set[Held] = field(default_factory=set)
    wrong: list[tuple[Held, Held]] = field(default_factory=list)
    granted: int = 0
    max_at_once: int = 0

    @contextmanager
    def holding(self, own: Held) -> Iterator[None]:
        with self.lock:
            self.wrong += [(own, other) for other in self.held if own.excludes(other)]
            self.held.add(own)
            self.granted += 1
            self.max_at_once = max(self.max_at_once, len(self.held))
        yield
        with self.lock:
            self.held.remove(own)


def take_turns(store: Any, monitor: Monitor, draw: random.Random, rounds: int) -> None:
    pause = threading.Event()
    for _ in range(rounds):
        parts = [some_component(draw) for _ in range(draw.randint(1, 2))]
        answer = store.lock(request_of(*parts))
        while answer.state == LockState.WAITING:
            pause.wait(0.001)
            answer = store.check_lock(CheckLockRequest(lockid=answer.lockid))
        assert answer.state == LockState.ACQUIRED
        with monitor.holding(Held(answer.lockid, tuple(locking.validated_lock_request(request_of(*parts)).targets))):
            pause.wait(draw.random() * 0.002)
        store.unlock(UnlockRequest(lockid=answer.lockid))


def test_no_two_that_exclude_each_other_are_granted(client: TxnClient) -> None:
    """Clients of two servers, with random tables and types; the older of two that wait goes first, so all get their
    locks."""
    monitor, rounds, clients = Monitor(), 6, 8
    with (
        combining(client.store, store_of(client.database)) as stores,
        ThreadPoolExecutor(2 * clients) as pool,
    ):
        work: list[Callable[[], None]] = [
            partial(take_turns, stores[number % 2], monitor, random.Random(number), rounds)
            for number in range(2 * clients)
        ]
        for done in [pool.submit(one) for one in work]:
            done.result()
    assert not monitor.wrong
    assert monitor.granted == len(work) * rounds
    assert monitor.max_at_once > 1, "some can be held at the same moment"
    assert client.count(HIVE_LOCKS) == 0
