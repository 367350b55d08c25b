"""Requests that wait at the same moment become one transaction, and nobody but its sender sees that one fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import insert, select

from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.combined_writes import CombinedWrites
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions.committing import WriteConflict, commit_each
from hms_cache.store.transactions.opening import open_one_each
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.write_ids.allocation import allocate_for_one_each
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    HeartbeatRequest,
    LockType,
    MetaException,
    OpenTxnRequest,
    TxnAbortedException,
    TxnType,
)
from tests.databases import DatabaseServer, SqliteFiles, closing, count_statements
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, component, write_component

LIMIT_S = 60.0


class Batches:
    """A kind of write whose first transaction waits inside the database until it is let go, and then fails or not."""

    def __init__(self, database: Database, *, max_requests: int = 64) -> None:
        self.sizes: list[int] = []
        self._entered, self._proceed = threading.Event(), threading.Event()
        self.writes: CombinedWrites[int, int] = CombinedWrites(database, self._work, max_requests)

    def _work(self, transaction: WriteTransaction, requests: Sequence[int]) -> list[int]:
        transaction.connection.execute(select(TXNS.c.TXN_ID).limit(1))
        self._entered.set()
        assert self._proceed.wait(LIMIT_S)
        self.sizes.append(len(requests))
        if any(number < 0 for number in requests):
            raise MetaException(f"negative among {len(requests)}")
        return [number * 2 for number in requests]

    def run(self, first: int, others: Sequence[int]) -> list[Future[int]]:
        """Futures of all; the others have come while the first was being carried out."""
        with ThreadPoolExecutor(1 + len(others)) as pool:
            futures = [pool.submit(self.writes.run, first)]
            assert self._entered.wait(LIMIT_S)
            for number, other in enumerate(others):
                futures.append(pool.submit(self.writes.run, other))
                _wait(lambda wanted=number + 1: self.writes.waiting == wanted)
            self._proceed.set()
        return futures


def _wait(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(LIMIT_S / 0.002)):
        if holds():
            return
        pause.wait(0.002)
    raise AssertionError("not reached")


def test_what_waits_is_one_transaction_and_each_gets_its_own_answer(sqlite_database: Database) -> None:
    batches = Batches(sqlite_database)
    assert [one.result() for one in batches.run(1, [2, 3, 4, 5])] == [2, 4, 6, 8, 10]
    assert batches.sizes == [1, 4]
    assert batches.writes.run(6) == 12, "the queue has no leader any more"


def test_a_transaction_takes_no_more_than_it_may(sqlite_database: Database) -> None:
    batches = Batches(sqlite_database, max_requests=3)
    assert [one.result() for one in batches.run(0, range(1, 8))] == [2 * number for number in range(8)]
    assert batches.sizes == [1, 3, 3, 1]


def test_without_combining_each_has_its_own(sqlite_database: Database) -> None:
    writes: CombinedWrites[int, int] = CombinedWrites(sqlite_database, lambda _, requests: list(requests), 1)
    assert [writes.run(number) for number in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_request_that_fails_fails_alone(sqlite_database: Database, failing: int) -> None:
    batches = Batches(sqlite_database)
    numbers = [-1 if number == failing else number for number in range(3)]
    futures = batches.run(100, numbers)
    for number, future in zip([100, *numbers], futures, strict=True):
        if number < 0:
            with pytest.raises(MetaException, match="negative among 1"):
                future.result()
        else:
            assert future.result() == 2 * number
    assert sorted(batches.sizes) == [1, 1, 1, 1, 3]


def test_a_leader_that_fails_hands_the_queue_over(sqlite_database: Database) -> None:
    batches = Batches(sqlite_database)
    futures = batches.run(-1, [1, 2])
    with pytest.raises(MetaException):
        futures[0].result()
    assert [one.result() for one in futures[1:]] == [2, 4]


def test_an_unknown_outcome_is_told_to_each(sqlite_database: Database) -> None:
    batches = Batches(sqlite_database)
    is_batch = False

    def work(transaction: WriteTransaction, requests: Sequence[int]) -> list[int]:
        results = batches._work(transaction, requests)
        if len(requests) > 1:
            nonlocal is_batch
            is_batch = True
            # What a connection does that breaks under COMMIT.
            raise CommitOutcomeUnknown("lost under COMMIT", connection_lost=True)
        return results

    batches.writes = CombinedWrites(sqlite_database, work, 64)
    first, *others = batches.run(1, [2, 3])
    assert first.result() == 2
    for other in others:
        with pytest.raises(CommitOutcomeUnknown, match="lost under COMMIT"):
            other.result()
    assert is_batch
    assert batches.sizes == [1, 2], "none of it is run again"


# Set-wise, and as one after the other


def opening_of(user: str) -> OpenTxnRequest:
    return OpenTxnRequest(num_txns=1, user=user, hostname=f"host of {user}", agentInfo=user)


def test_transactions_that_are_opened_together_are_their_openers(client: TxnClient) -> None:
    users = [f"u{number}" for number in range(12)]
    requests = [opening_of(user) for user in users]
    context = client.store.context
    opened = run_write(client.database, lambda transaction: open_one_each(transaction, context, requests))
    rows = {row[0]: row[1:] for row in client.rows(TXNS, "TXN_ID", "TXN_USER", "TXN_HOST", "TXN_STATE") if row[0]}
    assert len(rows) == len(users)
    for user, txn_ids in zip(users, opened, strict=True):
        assert rows[txn_ids[0]] == (user, f"host of {user}", "o")
    assert [type_name for type_name, _ in client.events()] == ["OPEN_TXN"] * len(users)
    if not client.database.is_sqlite:
        lowest = min(txn_ids[0] for txn_ids in opened)
        histories = client.rows(MIN_HISTORY_LEVEL, "MHL_TXNID", "MHL_MIN_OPEN_TXNID")
        assert sorted(histories) == sorted((txn_ids[0], lowest) for txn_ids in opened)


def _histories(seed: int, client: TxnClient) -> tuple[list[CommitTxnRequest], list[AllocateTableWriteIdsRequest]]:
    """Transactions that read, wrote, changed rows, or are over: what is committed, and what more write ids are for."""
    draw = random.Random(seed)
    commits, allocations = [], []
    for number in range(10):
        match draw.randrange(7):
            case 0:
                txn_id = client.open()
            case 1:
                txn_id = client.open(TxnType.READ_ONLY)
            case 2:
                txn_id = client.open()
                client.lock(component(LockType.SHARED_READ, "t"), txn_id=txn_id)
            case 3:
                # Rows of tables that nobody else changes: no conflict.
                txn_id, _ = client.write(DataOperationType.UPDATE, f"own{number}")
            case 4:
                txn_id = client.open()
                client.commit(txn_id)
            case 5:
                txn_id = client.open(TxnType.SOFT_DELETE)
                client.lock(write_component(DataOperationType.DELETE, f"dropped{number}"), txn_id=txn_id)
            case _:
                txn_id, _ = client.write(DataOperationType.INSERT, draw.choice("tu"))
        commits.append(CommitTxnRequest(txnid=txn_id))
        writer = client.open()
        allocations.append(AllocateTableWriteIdsRequest(dbName="D", tableName=draw.choice("tuv"), txnIds=[writer]))
    draw.shuffle(commits)
    return [*commits, commits[0]], [*allocations, allocations[-1]]


_TABLES = (TXNS, TXN_COMPONENTS, COMPLETED_TXN_COMPONENTS, WRITE_SET, HIVE_LOCKS, MIN_HISTORY_LEVEL, NEXT_WRITE_ID)
_TIMES = ("TXN_STARTED", "TXN_LAST_HEARTBEAT", "CTC_TIMESTAMP", "HL_LAST_HEARTBEAT", "HL_ACQUIRED_AT")


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_leaves_what_its_requests_leave_one_after_the_other(
    seed: int, database_server: SqliteFiles | DatabaseServer
) -> None:
    found = []
    for is_batch in (True, False):
        url = database_server.initialized_database()
        with closing(Database(url)) as database:
            client = TxnClient(TxnStore(database, MessageBuilder(), clock=ManualClock()), database)
            commits, allocations = _histories(seed, client)
            context = client.store.context
            if is_batch:
                given = run_write(database, partial(allocate_for_one_each, context=context, requests=allocations))
                run_write(database, partial(commit_each, context=context, requests=commits))
            else:
                by_table = sorted(range(len(allocations)), key=lambda number: allocations[number].tableName)
                answers = {number: client.store.allocate_table_write_ids(allocations[number]) for number in by_table}
                given = [answers[number] for number in range(len(allocations))]
                for request in commits:
                    client.store.commit_txn(request)
            columns = {one: [column.name for column in one.c if column.name not in _TIMES] for one in _TABLES}
            rows = {one.name: client.rows(one, *names) for one, names in columns.items()}
            events = [(kind, _without_time(message)) for kind, message in client.events()]
            found.append((given, rows, client.rows(TXN_TO_WRITE_ID), sorted(events, key=repr)))
        database_server.give_back(url)
    assert found[0] == found[1]


def _without_time(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "timestamp"}


def test_a_conflict_within_a_batch_is_one(client: TxnClient) -> None:
    """Both began before either commits, and change rows of one table: the first committer wins."""
    first, second = client.open(), client.open()
    for txn_id in (first, second):
        client.allocate([txn_id], "t")
        with client.database.writing() as connection:
            values = {"TC_TXNID": txn_id, "TC_DATABASE": "d", "TC_TABLE": "t", "TC_OPERATION_TYPE": "u"}
            connection.execute(insert(TXN_COMPONENTS).values(TC_WRITEID=1, **values))
            connection.commit()
    context, requests = (
        client.store.context,
        [CommitTxnRequest(txnid=one, exclWriteEnabled=False) for one in (first, second)],
    )
    with pytest.raises(WriteConflict) as conflict:
        run_write(client.database, lambda transaction: commit_each(transaction, context, requests))
    assert conflict.value.txn_id == second
    states = {row[1] for row in client.rows(TXNS, "TXN_ID", "TXN_STATE") if row[0]}
    assert states == {"o"}, "the batch is rolled back"


@pytest.mark.parametrize("kind", ["open", "allocate", "commit"])
def test_a_batch_takes_fewer_statements_than_its_requests(client: TxnClient, kind: str) -> None:
    context, count = client.store.context, 8
    txn_ids = [client.open() for _ in range(2 * count)]
    for txn_id in txn_ids[:3]:
        client.allocate([txn_id], "t")
    work: Callable[[WriteTransaction, Sequence[Any]], list[Any]]
    requests: Sequence[Any]
    match kind:
        case "open":
            requests, alone = [opening_of("u")] * count, 5
            work = lambda transaction, some: open_one_each(transaction, context, some)  # noqa: E731
        case "allocate":
            requests = [AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[one]) for one in txn_ids[3:11]]
            work, alone = lambda transaction, some: allocate_for_one_each(transaction, context, some), 5
        case _:
            requests, alone = [CommitTxnRequest(txnid=one) for one in txn_ids[:count]], 5
            work = lambda transaction, some: commit_each(transaction, context, some)  # noqa: E731
    with count_statements(client.database) as seen:
        run_write(client.database, lambda transaction: work(transaction, requests))
    most = {"open": 6, "allocate": 3 + count, "commit": 6}[kind]
    if client.database.is_sqlite:
        # One row at a time, and the ids of the log inside of the transaction: there are no round trips to save.
        most = 3 + count * 2
    elif client.database.dialect == "postgresql" and kind == "open":
        most = 4 + count * 3
    assert seen.count <= most, seen.statements
    assert seen.count < alone * count


def test_calls_of_many_clients_at_once(client: TxnClient) -> None:
    """Heartbeats, write ids and commits of twenty clients, one of which is gone: each hears of its own transaction."""
    barrier = threading.Barrier(20)

    def cycle(number: int) -> str:
        barrier.wait(LIMIT_S)
        txn_id = client.store.open_txns(opening_of(f"u{number}")).txn_ids[0]
        client.store.allocate_table_write_ids(
            AllocateTableWriteIdsRequest(dbName="d", tableName=f"t{number % 3}", txnIds=[txn_id])
        )
        if number == 7:
            client.abort(txn_id)
        try:
            client.store.heartbeat(HeartbeatRequest(txnid=txn_id))
            client.store.commit_txn(CommitTxnRequest(txnid=txn_id))
        except TxnAbortedException:
            return "aborted"
        return "committed"

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(cycle, range(20)))
    assert outcomes == ["aborted" if number == 7 else "committed" for number in range(20)]
    states = [row[1] for row in client.rows(TXNS, "TXN_ID", "TXN_STATE") if row[0]]
    assert sorted(states) == ["a"] + ["c"] * 19
    for table in ("t0", "t1", "t2"):
        write_ids = sorted(
            row[1] for row in client.rows(TXN_TO_WRITE_ID, "T2W_TABLE", "T2W_WRITEID") if row[0] == table
        )
        assert write_ids == list(range(1, len(write_ids) + 1)), "dense"
    assert len(client.events()) == 60
