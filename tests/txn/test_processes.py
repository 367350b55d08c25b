"""Two server processes with many clients on one database: nothing is lost, assigned twice or omitted."""

from __future__ import annotations

import multiprocessing
from collections import defaultdict

import pytest

from hms_cache.store.engine.database import Database
from hms_cache.store.schema import COMPLETED_TXN_COMPONENTS, HIVE_LOCKS, TXN_TO_WRITE_ID, TXNS, WRITE_SET
from hms_cache.thrift_gen.hive_metastore.ttypes import LockType
from tests.txn.client import TxnClient, component
from tests.txn.writers import Write, write_many

PROCESSES = 2
TABLES = ("t", "u", "v")


@pytest.fixture
def writes(client: TxnClient) -> list[Write]:
    """What two processes of eight (SQLite: two) clients each did to the client's database."""
    database: Database = client.database
    clients, rounds = (2, 8) if database.is_sqlite else (8, 8)
    url = database.url.render_as_string(hide_password=False)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        jobs = [pool.apply_async(write_many, (url, clients, rounds, TABLES)) for _ in range(PROCESSES)]
        found = [write for job in jobs for write in job.get(timeout=240)]
    assert len(found) == PROCESSES * clients * rounds
    return found


def test_concurrent_writers(client: TxnClient, writes: list[Write]) -> None:
    ids_are_dense_and_unique(client, writes)
    every_commit_is_there_and_nothing_else(client, writes)
    conflicts_are_those_of_the_definition(client, writes)
    outcomes_are_those_of_the_model(client, writes)
    # Locks are ordered by an id that continued.
    assert client.count(HIVE_LOCKS) == 0
    assert client.lock(component(LockType.EXCLUSIVE)).lockid == len(writes) + 1
    events = [event for event, _ in client.events()]
    committed = sum(write.is_committed for write in writes)
    assert events.count("OPEN_TXN") == events.count("ALLOC_WRITE_ID_EVENT") == len(writes)
    assert (events.count("COMMIT_TXN"), events.count("ABORT_TXN")) == (committed, len(writes) - committed)


def ids_are_dense_and_unique(client: TxnClient, writes: list[Write]) -> None:
    assert len({write.txn_id for write in writes}) == len(writes)
    per_table: dict[str, list[int]] = defaultdict(list)
    for write in writes:
        per_table[write.table].append(write.write_id)
    for table, ids in per_table.items():
        assert sorted(ids) == list(range(1, len(ids) + 1)), table
    assert client.rows(TXN_TO_WRITE_ID, "T2W_TXNID", "T2W_TABLE", "T2W_WRITEID") == sorted(
        ((write.txn_id, write.table, write.write_id) for write in writes), key=repr
    )


def every_commit_is_there_and_nothing_else(client: TxnClient, writes: list[Write]) -> None:
    states = dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))
    assert {write.txn_id: states[write.txn_id] for write in writes} == {
        write.txn_id: "c" if write.is_committed else "a" for write in writes
    }
    completed = set(client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TXNID", "CTC_TABLE", "CTC_WRITEID"))
    assert completed == {(write.txn_id, write.table, write.write_id) for write in writes if write.is_committed}
    for write_ids in client.valid(*(f"d.{table}" for table in TABLES)):
        expected = {
            write.write_id for write in writes if write.is_committed and f"d.{write.table}" == write_ids.table_name
        }
        assert {write_id for write_id in range(1, write_ids.high_watermark + 1) if write_ids.is_valid(write_id)} == (
            expected
        )


def conflicts_are_those_of_the_definition(client: TxnClient, writes: list[Write]) -> None:
    commit_ids: dict[str, dict[int, int]] = defaultdict(dict)
    for txn_id, table, commit_id, operation in client.rows(
        WRITE_SET, "WS_TXNID", "WS_TABLE", "WS_COMMIT_ID", "WS_OPERATION_TYPE"
    ):
        if operation == "u":
            commit_ids[table][txn_id] = commit_id
    for write in writes:
        winners = commit_ids[write.table]
        assert not (write.changes_rows and write.is_committed) or write.txn_id in winners
        assert write.changes_rows or write.is_committed
        if write.changes_rows and not write.is_committed:
            # Another transaction committed that it had not seen.
            assert any(commit_id >= write.txn_id for commit_id in winners.values()), write
    for winners in commit_ids.values():
        for first, first_commit in winners.items():
            for second, second_commit in winners.items():
                # Of two that both changed rows, one had ended before the other began.
                assert first == second or first_commit < second or second_commit < first


def outcomes_are_those_of_the_model(client: TxnClient, writes: list[Write]) -> None:
    """The first to commit succeeds, according to the log alone: a change of rows is lost exactly if another one of the
    table was committed between its own transaction's opening and its end."""
    by_txn = {write.txn_id: write for write in writes}
    opened: dict[int, int] = {}
    last_change: dict[str, int] = {}
    for position, (event, message) in enumerate(client.events()):
        if event == "OPEN_TXN":
            opened |= dict.fromkeys(range(int(message["fromTxnId"]), int(message["toTxnId"]) + 1), position)
        if event not in ("COMMIT_TXN", "ABORT_TXN"):
            continue
        write = by_txn.get(int(message["txnid"]))
        if write is None or not write.changes_rows:
            assert event == "COMMIT_TXN"
            continue
        is_conflict = last_change.get(write.table, -1) > opened[write.txn_id]
        assert is_conflict is (event == "ABORT_TXN"), write
        if not is_conflict:
            last_change[write.table] = position
