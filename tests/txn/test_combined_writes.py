"""Requests that wait at the same moment become one transaction, and nobody but its sender sees that one fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from hms_cache.config import Settings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.locks.lock_calls import MOST_COMPONENTS_TOGETHER
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
from hms_cache.store.transactions import opening
from hms_cache.store.transactions.committing import WriteConflict, commit_each
from hms_cache.store.transactions.opening import open_one_each
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.write_ids.allocation import allocate_for_one_each
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    HeartbeatRequest,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    OpenTxnRequest,
    TxnAbortedException,
    TxnType,
)
from tests.databases import DatabaseServer, SqliteFiles, closing, count_statements
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, component, write_component
from tests.txn.combining import combining

LIMIT_S = 60.0


def test_without_combining_nothing_can_share_a_transaction(sqlite_database: Database) -> None:
    settings = Settings(transactions={"max_combined": 1})
    assert not TxnStore(sqlite_database, MessageBuilder(), settings).combined
    assert "commit_txn" in TxnStore(sqlite_database, MessageBuilder()).combined


def test_calls_that_change_more_than_their_transaction_share_none(client: TxnClient) -> None:
    combined = client.store.combined
    assert not combined["open_txns"].admits(OpenTxnRequest(num_txns=2, user="u", hostname="h"))
    assert not combined["open_txns"].admits(OpenTxnRequest(1, "u", "h", replPolicy="p", replSrcTxnIds=[1]))
    assert not combined["commit_txn"].admits(CommitTxnRequest(txnid=1, replPolicy="d.t"))
    assert not combined["allocate_table_write_ids"].admits(AllocateTableWriteIdsRequest("d", "t", txnIds=[1, 2]))
    parts = [component(LockType.SHARED_READ, "t", f"p={number}") for number in range(MOST_COMPONENTS_TOGETHER + 1)]
    assert not combined["lock"].admits(LockRequest(component=parts, user="u", hostname="h"))


def test_an_unknown_outcome_is_told_to_each(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    txn_ids = [client.open() for _ in range(3)]

    def broken(connection: Connection) -> None:
        connection.rollback()
        raise OSError("lost under COMMIT")

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", broken)
        outcomes = client.store.combined["commit_txn"].carry_out([CommitTxnRequest(txnid=one) for one in txn_ids])
    assert outcomes is not None, "none of it is run again"
    assert [type(one) for one in outcomes] == [CommitOutcomeUnknown] * 3
    assert "lost under COMMIT" in str(outcomes[0])
    assert len({id(one) for one in outcomes}) == 3, "each thread raises its own"


def test_what_hive_answers_with_an_exception_is_one_calls_outcome(client: TxnClient) -> None:
    """The others of the batch are committed, given a write id, or beaten with it."""
    alive, aborted, committed = (client.open() for _ in range(3))
    client.abort(aborted)
    client.commit(committed)
    lock_id = client.lock(component(LockType.SHARED_READ, "l")).lockid
    unknown = 10_000
    txn_ids = (alive, aborted, committed, unknown)
    combined = client.store.combined
    given = combined["allocate_table_write_ids"].carry_out(
        [AllocateTableWriteIdsRequest("d", "t", txnIds=[one]) for one in txn_ids]
    )
    assert given is not None
    assert given[0].txnToWriteIds[0].txnId == alive
    assert [type(one) for one in given[1:]] == [MetaException] * 3
    client.age(1000)
    beaten = combined["heartbeat"].carry_out(
        [
            *(HeartbeatRequest(txnid=one) for one in txn_ids),
            HeartbeatRequest(lockid=lock_id),
            HeartbeatRequest(lockid=unknown),
            HeartbeatRequest(txnid=aborted, lockid=lock_id),
        ]
    )
    assert [type(one) for one in beaten or ()] == [
        type(None),
        TxnAbortedException,
        NoSuchTxnException,
        NoSuchTxnException,
        type(None),
        NoSuchLockException,
        TxnAbortedException,
    ]
    ended = combined["commit_txn"].carry_out([CommitTxnRequest(txnid=one) for one in txn_ids])
    assert [type(one) for one in ended or ()] == [type(None), TxnAbortedException, type(None), NoSuchTxnException]
    locked = combined["lock"].carry_out(
        [
            LockRequest(component=[], user="u", hostname="h"),
            LockRequest(component=[component(LockType.SHARED_READ, "t")], user="u", hostname="h"),
        ]
    )
    assert locked is not None
    assert isinstance(locked[0], MetaException)
    assert locked[1].state == LockState.ACQUIRED


def test_transactions_that_took_too_long_to_open_are_opened_anew(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers count gaps older than the time-out as closed: nothing may be written under such ids."""
    database, clock = client.database, ManualClock()
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time: there are no gaps")
    store = TxnStore(database, MessageBuilder(), clock=clock)
    open_in_time = opening.open_one_each

    def open_late(*arguments: Any) -> list[list[int]]:
        monkeypatch.setattr(opening, "open_one_each", open_in_time)
        clock.advance(2.0)
        return open_in_time(*arguments)

    monkeypatch.setattr(opening, "open_one_each", open_late)
    opened = store.combined["open_txns"].carry_out([opening_of("u"), opening_of("v")])
    assert opened is not None
    txn_ids = [one.txn_ids[0] for one in opened]
    states = dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))
    assert [states[one] for one in txn_ids] == ["o", "o"]
    assert sorted(states[one] for one in states if one and one not in txn_ids) == ["a", "a"]


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
        # More tables than have a statement each; some have no write ids yet, some writers may have none.
        table = draw.choice("tuvwxyz")
        if draw.random() < 0.6:
            client.allocate([client.open()], table)
        if draw.random() < 0.2:
            client.abort(writer)
        allocations.append(AllocateTableWriteIdsRequest(dbName="D", tableName=table, txnIds=[writer]))
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
                answers = {number: _outcome(client.store, allocations[number]) for number in by_table}
                given = [answers[number] for number in range(len(allocations))]
                for request in commits:
                    client.store.commit_txn(request)
            columns = {one: [column.name for column in one.c if column.name not in _TIMES] for one in _TABLES}
            rows = {one.name: client.rows(one, *names) for one, names in columns.items()}
            events = [(kind, _without_time(message)) for kind, message in client.events()]
            given = [repr(one) for one in given]
            found.append((given, rows, client.rows(TXN_TO_WRITE_ID), sorted(events, key=repr)))
        database_server.give_back(url)
    assert found[0] == found[1]


def _outcome(store: TxnStore, request: AllocateTableWriteIdsRequest) -> Any:
    try:
        return store.allocate_table_write_ids(request)
    except MetaException as error:
        return error


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


@pytest.mark.parametrize("kind", ["open", "allocate", "allocate of many tables", "commit"])
def test_a_batch_takes_fewer_statements_than_its_requests(client: TxnClient, kind: str) -> None:
    context, count = client.store.context, 8
    txn_ids = [client.open() for _ in range(2 * count)]
    for txn_id in txn_ids[:3]:
        for table in ("t", *(f"t{number}" for number in range(count))):
            client.allocate([txn_id], table)
    work: Callable[[WriteTransaction, Sequence[Any]], list[Any]]
    requests: Sequence[Any]
    match kind:
        case "open":
            requests, alone = [opening_of("u")] * count, 5
            work = lambda transaction, some: open_one_each(transaction, context, some)  # noqa: E731
        case "allocate" | "allocate of many tables":
            tables = ["t"] * count if kind == "allocate" else [f"t{number}" for number in range(count)]
            requests = [
                AllocateTableWriteIdsRequest(dbName="d", tableName=table, txnIds=[one])
                for table, one in zip(tables, txn_ids[3:11], strict=True)
            ]
            work, alone = lambda transaction, some: allocate_for_one_each(transaction, context, some), 5
        case _:
            requests, alone = [CommitTxnRequest(txnid=one) for one in txn_ids[:count]], 5
            work = lambda transaction, some: commit_each(transaction, context, some)  # noqa: E731
    with count_statements(client.database) as seen:
        run_write(client.database, lambda transaction: work(transaction, requests))
    most = {"open": 5, "allocate": 3 + count, "allocate of many tables": 6, "commit": 6}[kind]
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
        txn_id = store.open_txns(opening_of(f"u{number}")).txn_ids[0]
        store.allocate_table_write_ids(
            AllocateTableWriteIdsRequest(dbName="d", tableName=f"t{number % 3}", txnIds=[txn_id])
        )
        if number == 7:
            client.abort(txn_id)
        try:
            store.heartbeat(HeartbeatRequest(txnid=txn_id))
            store.commit_txn(CommitTxnRequest(txnid=txn_id))
        except TxnAbortedException:
            return "aborted"
        return "committed"

    with combining(client.store) as (store,), ThreadPoolExecutor(20) as pool:
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
