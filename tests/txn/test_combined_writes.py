"""Requests that wait at the same moment become one transaction, and only its sender sees that one fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, insert, make_url

from hms_cache.config import Settings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import CommitOutcomeUnknown
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.locks.lock_calls import MAX_COMPONENTS_TOGETHER
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    NEXT_WRITE_ID,
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions import opening, snapshots
from hms_cache.store.transactions.committing import WriteConflict, commit_each
from hms_cache.store.transactions.opening import open_one_each
from hms_cache.store.txn_store import TxnStore
from hms_cache.store.write_ids.allocation import allocate_for_one_each
from hms_cache.thrift_gen.hive_metastore.ThriftHiveMetastore import get_open_txns_args
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnsRequest,
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    CommitTxnRequest,
    DataOperationType,
    GetOpenTxnsRequest,
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
from tests.server.counting_relay import CountingRelay
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
    # Its id belongs to the source; committed together with others, our transaction of the same id was committed.
    assert not combined["commit_txn"].admits(CommitTxnRequest(txnid=1, txn_type=TxnType.REPL_CREATED))
    assert not combined["allocate_table_write_ids"].admits(AllocateTableWriteIdsRequest("d", "t", txnIds=[1, 2]))
    parts = [component(LockType.SHARED_READ, "t", f"p={number}") for number in range(MAX_COMPONENTS_TOGETHER + 1)]
    assert not combined["lock"].admits(LockRequest(component=parts, user="u", hostname="h"))


def test_calls_that_share_a_transaction_open_no_more_than_others(client: TxnClient) -> None:
    """`transactions.max_open` also applies if many clients come at once; their other requests are executed."""
    settings = Settings(transactions={"max_open": 10})
    clock = ManualClock()
    store = TxnStore(client.database, MessageBuilder(), settings, clock=clock)
    many = [OpenTxnRequest(num_txns=1, user="u", hostname="h") for _ in range(6)]
    execute = store.combined["open_txns"].execute
    assert [len(one.txn_ids) for one in execute(many) or ()] == [1] * 6
    clock.advance(1.5)
    assert [len(one.txn_ids) for one in execute(many) or ()] == [1] * 6
    clock.advance(1.5)
    refused = execute(many) or ()
    assert [type(one) for one in refused] == [MetaException] * 6
    assert "hive.max.open.txns" in refused[0].message
    assert len({id(one) for one in refused}) == 6, "each thread raises its own"
    open_ids = store.get_open_txns().open_txns
    assert len(open_ids) == 12
    mixed = [
        many[0],
        CommitTxnRequest(txnid=open_ids[0]),
        many[1],
        AllocateTableWriteIdsRequest("d", "t", txnIds=[open_ids[1]]),
        CommitTxnRequest(txnid=10_000),
    ]
    outcomes = execute(mixed) or ()
    kinds = [MetaException, type(None), MetaException, AllocateTableWriteIdsResponse, NoSuchTxnException]
    assert [type(one) for one in outcomes] == kinds
    assert store.get_open_txns().open_txns == open_ids[1:]
    store.abort_txns(AbortTxnsRequest(open_ids[1:6]))
    clock.advance(1.5)
    assert [len(one.txn_ids) for one in execute(many[:2]) or ()] == [1, 1]


def test_an_unknown_outcome_is_told_to_each(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    txn_ids = [client.open() for _ in range(3)]

    def broken(connection: Connection) -> None:
        connection.rollback()
        raise OSError("lost under COMMIT")

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "commit", broken)
        outcomes = client.store.combined["commit_txn"].execute([CommitTxnRequest(txnid=one) for one in txn_ids])
    assert outcomes is not None, "none of it is run again"
    assert [type(one) for one in outcomes] == [CommitOutcomeUnknown] * 3
    assert "lost under COMMIT" in str(outcomes[0])
    assert len({id(one) for one in outcomes}) == 3, "each thread raises its own"


def test_what_hive_answers_with_an_exception_is_one_calls_outcome(client: TxnClient) -> None:
    """The others of the batch are committed, and get write ids and heartbeats."""
    alive, aborted, committed = (client.open() for _ in range(3))
    client.abort(aborted)
    client.commit(committed)
    lock_id = client.lock(component(LockType.SHARED_READ, "l")).lockid
    unknown = 10_000
    txn_ids = (alive, aborted, committed, unknown)
    combined = client.store.combined
    given = combined["allocate_table_write_ids"].execute(
        [AllocateTableWriteIdsRequest("d", "t", txnIds=[one]) for one in txn_ids]
    )
    assert given is not None
    assert given[0].txnToWriteIds[0].txnId == alive
    assert [type(one) for one in given[1:]] == [MetaException] * 3
    client.age(1000)
    beaten = combined["heartbeat"].execute(
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
    ended = combined["commit_txn"].execute([CommitTxnRequest(txnid=one) for one in txn_ids])
    assert [type(one) for one in ended or ()] == [type(None), TxnAbortedException, type(None), NoSuchTxnException]
    locked = combined["lock"].execute(
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
    """Readers treat gaps older than the time-out as closed: nothing may be written under such ids."""
    database, clock = client.database, ManualClock()
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time: there are no gaps")
    store = TxnStore(database, MessageBuilder(), clock=clock)
    row_in_time = opening._row_of

    def row_late(request: OpenTxnRequest) -> dict[str, Any]:
        monkeypatch.setattr(opening, "_row_of", row_in_time)
        clock.advance(2.0)
        return row_in_time(request)

    monkeypatch.setattr(opening, "_row_of", row_late)
    opened = store.combined["open_txns"].execute([opening_of("u"), opening_of("v")])
    assert opened is not None
    txn_ids = [one.txn_ids[0] for one in opened]
    states = dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))
    assert [states[one] for one in txn_ids] == ["o", "o"]
    assert sorted(states[one] for one in states if one and one not in txn_ids) == ["a", "a"]


# Combined, and one after the other


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
    """Transactions that read, wrote, changed rows, or are over: which are committed, and for which write ids are
    allocated."""
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
                # Rows of tables that no other changes: no conflict.
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
        # More tables than get a statement each; some have no write ids yet, some writers may get none.
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


def test_who_asks_what_is_open_shares_one_read(client: TxnClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """And repeats its request alone if that fails."""
    for kind in (TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.COMPACTION):
        client.store.open_txns(OpenTxnRequest(1, "u", "h", txn_type=kind))
    excluded = GetOpenTxnsRequest([TxnType.READ_ONLY, TxnType.COMPACTION])
    requests = [get_open_txns_args(), GetOpenTxnsRequest(), excluded]
    combined = client.store.combined["get_open_txns_req"]
    assert combined is client.store.combined["get_open_txns"]
    with count_statements(client.database) as seen:
        answers = combined.execute(requests)
    assert answers == [client.store.get_open_txns(), *map(client.store.get_open_txns_req, requests[1:])]
    assert seen.count == 1, seen.statements
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "read_snapshot", lambda *arguments, **options: 1 // 0)
        assert combined.execute(requests) is None


def test_a_conflict_within_a_batch_is_one(client: TxnClient) -> None:
    """Both began before either commits, and change rows of one table: the first to commit succeeds."""
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


def _batch(client: TxnClient, kind: str, count: int) -> list[Any]:
    """Requests of one kind, or of all."""
    txn_ids = client.open_many(2 * count)
    if kind.startswith("allocate"):
        for table in ("t", *(f"t{number}" for number in range(count))):
            client.allocate([txn_ids[0]], table)
    match kind:
        case "open":
            return [opening_of("u")] * count
        case "open to read":
            return [OpenTxnRequest(1, "u", "h", txn_type=TxnType.READ_ONLY)] * count
        case "allocate" | "allocate of many tables":
            tables = ["t"] * count if kind == "allocate" else [f"t{number}" for number in range(count)]
            return [
                AllocateTableWriteIdsRequest(dbName="d", tableName=table, txnIds=[one])
                for table, one in zip(tables, txn_ids[count:], strict=True)
            ]
        case "commit":
            return [CommitTxnRequest(txnid=one) for one in txn_ids[:count]]
        case "commit of inserts":
            for txn_id in txn_ids[:count]:
                client.lock(write_component(), txn_id=txn_id)
            return [CommitTxnRequest(txnid=one) for one in txn_ids[:count]]
        case _:
            of_kinds = [_batch(client, one, count) for one in ("open", "allocate of many tables", "commit of inserts")]
            return [request for together in zip(*of_kinds, strict=True) for request in together]


_ROUND_TRIPS = {
    "open": 2,
    "open to read": 1,
    "allocate": 3,
    "allocate of many tables": 3,
    "commit": 3,
    "commit of inserts": 3,
    "all": 3,
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "all" else pytest.mark.soak) for kind in _ROUND_TRIPS]
)
def test_round_trips_of_a_batch(initialized_database_url: str, kind: str) -> None:
    """On MySQL and MariaDB, including COMMIT, for any number of requests."""
    real = make_url(initialized_database_url)
    if real.get_backend_name() != "mysql":
        pytest.skip("statement after statement")
    relay = CountingRelay(str(real.host), int(real.port or 0))
    url = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    try:
        with closing(Database(url)) as database:
            client = TxnClient(TxnStore(database, MessageBuilder(), clock=ManualClock()), database)
            execute = client.store.combined["commit_txn"].execute
            requested: dict[int, list[list[bytes]]] = {2: [], 7: []}
            for count in (2, 7, 2, 7, 2, 7):
                requests = _batch(client, kind, count)
                relay.begin()
                outcomes = execute(requests)
                requested[count].append(relay.questions())
                assert outcomes is not None
                assert not [one for one in outcomes if isinstance(one, Exception)]
    finally:
        relay.close()
    # The first run opens connections, and sometimes one reserves a block of ids.
    found = {count: min(map(len, tries)) for count, tries in requested.items()}
    assert found == dict.fromkeys((2, 7), _ROUND_TRIPS[kind]), requested


@pytest.mark.parametrize("kind", ["open", "allocate", "allocate of many tables", "commit", "commit of inserts", "all"])
def test_a_batch_takes_fewer_statements_than_its_requests(client: TxnClient, kind: str) -> None:
    count = 8
    requests = _batch(client, kind, count)
    with count_statements(client.database) as seen:
        outcomes = client.store.combined["open_txns"].execute(requests)
    assert outcomes is not None
    most = {"open": 5, "allocate": 3 + count, "allocate of many tables": 7, "commit": 6, "commit of inserts": 8}
    limit = most.get(kind, 5 + 7 + 8)
    if client.database.is_sqlite:
        # One row at a time, and the ids of the log inside of the transaction: there are no round trips to save.
        limit = 3 + len(requests) * (2 if kind in most and kind != "commit of inserts" else 5)
    elif client.database.dialect == "postgresql" and kind in ("open", "all"):
        limit += count * 3
    elif client.database.dialect == "mysql":
        limit = 4  # each is a packet, including the log's rows; one may be for a block of ids
    assert seen.count <= limit, seen.statements
    assert seen.count <= 5 * len(requests)


def test_ids_of_the_log_are_at_hand_for_batches_of_any_size(client: TxnClient) -> None:
    """They were allocated one batch at a time, inside its transaction, once fewer remained than a batch needs."""
    if client.database.is_sqlite:
        pytest.skip("there all ids are taken inside of the transaction")
    execute = client.store.combined["open_txns"].execute
    events = 0
    with count_statements(client.database) as seen:
        while events < 1_100:
            for count in (3, 7, 30):
                execute([opening_of("u")] * count)
                events += count
    assert len(client.events()) == events
    assert 1 <= sum("SEQUENCE_TABLE" in one for one in seen.statements) <= 2, "blocks of a thousand"


def test_kinds_that_share_a_transaction_leave_what_they_leave_one_after_the_other(
    database_server: SqliteFiles | DatabaseServer,
) -> None:
    """Commits of one transaction and of its neighbours, write ids, new transactions: in the order of the kinds."""
    found = []
    for is_batch in (True, False):
        url = database_server.initialized_database()
        with closing(Database(url)) as database:
            client = TxnClient(TxnStore(database, MessageBuilder(), clock=ManualClock()), database)
            commits, allocations = _histories(7, client)
            openings = [opening_of("u"), OpenTxnRequest(1, "v", "h", txn_type=TxnType.READ_ONLY), opening_of("w")]
            # Of a transaction committed in the same batch, too late.
            allocations.append(AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[commits[0].txnid]))
            requests = [*openings, *allocations, *commits]
            random.Random(1).shuffle(requests)
            if is_batch:
                outcomes = client.store.combined["open_txns"].execute(requests)
                assert outcomes is not None
            else:
                requests.sort(key=_turn)
                outcomes = [_outcome_of(client.store, request) for request in requests]
            answers = sorted(
                f"{type(one).__name__} {_named(one)}: {outcome!r}"
                for one, outcome in zip(requests, outcomes, strict=True)
                if not isinstance(one, OpenTxnRequest)
            )
            opened = sorted(
                outcome.txn_ids
                for one, outcome in zip(requests, outcomes, strict=True)
                if isinstance(one, OpenTxnRequest)
            )
            columns = {one: [column.name for column in one.c if column.name not in _TIMES] for one in _TABLES}
            names = {TXNS: ("TXN_ID", "TXN_STATE")}
            rows = {one.name: client.rows(one, *names.get(one, of_table)) for one, of_table in columns.items()}
            users = sorted(row for row in client.rows(TXNS, "TXN_USER", "TXN_TYPE") if row[0] in ("u", "v", "w"))
            events = [(kind, _without_time(message)) for kind, message in client.events()]
            found.append((answers, opened, rows, users, client.rows(TXN_TO_WRITE_ID), sorted(events, key=repr)))
        database_server.give_back(url)
    for in_batch, one_by_one in zip(*found, strict=True):
        assert in_batch == one_by_one


def _turn(request: Any) -> tuple[Any, ...]:
    """By kind, and write ids of a table in the order of the transactions."""
    if isinstance(request, AllocateTableWriteIdsRequest):
        return 1, request.tableName, request.txnIds[0]
    return (0 if isinstance(request, CommitTxnRequest) else 2,)


def _named(request: AllocateTableWriteIdsRequest | CommitTxnRequest) -> str:
    is_commit = isinstance(request, CommitTxnRequest)
    return str(request.txnid) if is_commit else f"{request.tableName} {request.txnIds}"


def _outcome_of(store: TxnStore, request: Any) -> Any:
    methods: dict[type, Callable[[Any], Any]] = {
        CommitTxnRequest: store.commit_txn,
        AllocateTableWriteIdsRequest: store.allocate_table_write_ids,
        OpenTxnRequest: store.open_txns,
    }
    try:
        return methods[type(request)](request)
    except (MetaException, TxnAbortedException, NoSuchTxnException) as error:
        return error


def test_one_that_fails_among_all_kinds_fails_alone(client: TxnClient) -> None:
    """Each kind has one that is refused; the other requests of the batch are executed, and logged without a gap."""
    alive, aborted = client.open(), client.open()
    writer = client.open()
    client.allocate([client.open()])
    client.abort(aborted)
    before = len(client.events())
    requests = [
        opening_of("u"),
        CommitTxnRequest(txnid=aborted),
        AllocateTableWriteIdsRequest("d", "t", txnIds=[writer]),
        AllocateTableWriteIdsRequest("d", "t", txnIds=[aborted]),
        CommitTxnRequest(txnid=alive),
        CommitTxnRequest(txnid=10_000),
        AllocateTableWriteIdsRequest("d", "never written", txnIds=[writer]),
        AllocateTableWriteIdsRequest("d", "t", txnIds=[alive]),
    ]
    outcomes = client.store.combined["open_txns"].execute(requests)
    assert outcomes is not None
    assert [type(one).__name__ for one in outcomes] == [
        "OpenTxnsResponse",
        "TxnAbortedException",
        "AllocateTableWriteIdsResponse",
        "MetaException",
        "NoneType",
        "NoSuchTxnException",
        "AllocateTableWriteIdsResponse",
        "MetaException",
    ]
    states = dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))
    assert (states[alive], states[aborted], states[writer]) == ("c", "a", "o")
    assert states[outcomes[0].txn_ids[0]] == "o"
    given = {(row[0], row[1]): row[2] for row in client.rows(TXN_TO_WRITE_ID, "T2W_TABLE", "T2W_TXNID", "T2W_WRITEID")}
    assert given["t", writer] == 2
    assert given["never written", writer] == 1
    told = [kind for kind, _ in client.events()[before:]]
    assert sorted(told) == ["ALLOC_WRITE_ID_EVENT", "ALLOC_WRITE_ID_EVENT", "COMMIT_TXN", "OPEN_TXN"]
    ids = sorted(row[0] for row in client.rows(NOTIFICATION_LOG, "EVENT_ID"))
    assert ids == list(range(1, len(ids) + 1))
    assert client.rows(NOTIFICATION_SEQUENCE, "NEXT_EVENT_ID") == [(len(ids) + 1,)]


def test_calls_of_many_clients_at_once(client: TxnClient) -> None:
    """Heartbeats, write ids and commits of twenty clients, one of which is gone: each gets the result for its
    transaction."""
    barrier = threading.Barrier(20, timeout=60)

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
