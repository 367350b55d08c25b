"""The rows that a writer's calls read do not grow with the number of kept write ids.

While a transaction is open (replication keeps some open for days), the write ids of all later ones are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, insert, inspect, update

from hms_cache.store.engine.database import Database
from hms_cache.store.installation.foreign_key_indexes import (
    create_indexes_beside_writers,
    missing_transaction_indexes,
)
from hms_cache.store.schema import HIVE_LOCKS, NEXT_WRITE_ID, TXN_TO_WRITE_ID, TXNS, WRITE_SET
from hms_cache.store.transactions.codes import TXN_COMMITTED
from hms_cache.store.transactions.committed_writes import read_committed_writes
from hms_cache.store.write_ids import valid_write_ids
from hms_cache.thrift_gen.hive_metastore.ttypes import DataOperationType, LockState, LockType, TxnAbortedException
from hms_cache.txn import ValidTxnList
from tests.txn.client import TxnClient, component, write_component

KEPT = 3_000

Measure = Callable[[Callable[[], object]], int]


class RowsRead:
    """Rows that the connections have read, according to MariaDB's own counters."""

    def __init__(self, database: Database) -> None:
        self._connections: list[Any] = []
        for engine in database.engines:
            event.listen(engine, "checkout", self._connect_to)

    def _connect_to(self, connection: Any, *_: Any) -> None:
        if connection not in self._connections:
            self._connections.append(connection)

    def __call__(self, call: Callable[[], object]) -> int:
        call()  # statements are compiled, connections are known
        before = self._total()
        call()
        return self._total() - before

    def _total(self) -> int:
        total = 0
        for connection in self._connections:
            with connection.cursor() as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
                total += sum(int(row[1]) for row in cursor.fetchall())
        return total


@contextmanager
def _statements(database: Database) -> Iterator[list[tuple[str, Any]]]:
    found: list[tuple[str, Any]] = []

    def executed(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            found.append((statement, parameters))

    for engine in database.engines:
        event.listen(engine, "before_cursor_execute", executed)
    try:
        yield found
    finally:
        for engine in database.engines:
            event.remove(engine, "before_cursor_execute", executed)


def _scans(database: Database) -> Measure:
    """On SQLite, by the plans of the statements: how many scan all write ids."""

    def measure(call: Callable[[], object]) -> int:
        with _statements(database) as found:
            call()
        with database.checking() as connection:
            plans = [
                row.detail
                for statement, parameters in found
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
        assert plans
        return sum(plan.replace('"', "").startswith(f"SCAN {TXN_TO_WRITE_ID.name}") for plan in plans)

    return measure


def steps_of_sqlite(database: Database) -> Measure:
    """On SQLite: tens of instructions of its machine."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    for engine in database.engines:
        event.listen(engine, "checkout", lambda driver, *_: driver.set_progress_handler(step, 10))

    def measure(call: Callable[[], object]) -> int:
        call()  # as above
        before = count
        call()
        return count - before

    return measure


def _costs(client: TxnClient, measure: Measure) -> dict[str, int]:
    snapshot = client.snapshot()

    def of_own_writers(call: Callable[[int], object]) -> Callable[[], object]:
        return lambda: call(client.open())

    part = write_component(DataOperationType.INSERT)
    return {
        "open_txns": measure(client.open),
        "allocate_table_write_ids": measure(of_own_writers(lambda txn_id: client.allocate([txn_id]))),
        "get_valid_write_ids": measure(lambda: client.valid("d.t", snapshot=snapshot)),
        "lock": measure(of_own_writers(lambda txn_id: client.lock(part, txn_id=txn_id))),
        "commit_txn": measure(of_own_writers(client.commit)),
        "abort_txn": measure(of_own_writers(client.abort)),
        "of a commit whose beginning a cache has not seen": measure(
            lambda: read_committed_writes(client.database, [snapshot.high_watermark])
        ),
    }


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_no_call_goes_through_all_write_ids(client: TxnClient) -> None:
    database = client.database
    measure: Measure = _scans(database) if database.is_sqlite else RowsRead(database)
    client.commit(client.write()[0])
    before = _costs(client, measure)
    rows = [
        {"T2W_TXNID": number, "T2W_DATABASE": "d", "T2W_TABLE": f"other{number % 7}", "T2W_WRITEID": number}
        for number in range(1_000_000, 1_000_000 + KEPT)
    ]
    others = [{"NWI_DATABASE": "d", "NWI_TABLE": f"other{number}", "NWI_NEXT": 2_000_000} for number in range(7)]
    client.change(insert(NEXT_WRITE_ID).values(others))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[: KEPT // 2]))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[KEPT // 2 :]))
    after = _costs(client, measure)
    assert all(after[name] < before[name] + KEPT // 10 for name in before), (before, after)
    if database.is_sqlite:
        assert set(after.values()) == {0}, after


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_no_call_goes_through_all_write_ids_of_its_table(client: TxnClient) -> None:
    """A table that is written all the time: its own write ids are most of those that are kept."""
    database = client.database
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    client.commit(client.write()[0])
    before = _costs(client, measure)
    first = 1_000_000
    rows = [
        {"T2W_TXNID": number, "T2W_DATABASE": "d", "T2W_TABLE": "t", "T2W_WRITEID": number}
        for number in range(first, first + KEPT)
    ]
    now_ms = int(client.rows(TXNS, "TXN_STARTED")[-1][0])
    last = {"TXN_ID": first + KEPT, "TXN_STATE": TXN_COMMITTED, "TXN_USER": "u", "TXN_HOST": "h"}
    client.change(insert(TXNS).values(**last, TXN_STARTED=now_ms, TXN_LAST_HEARTBEAT=now_ms))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[: KEPT // 2]))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[KEPT // 2 :]))
    client.change(update(NEXT_WRITE_ID).values(NWI_NEXT=first + KEPT))
    assert client.valid("d.t")[0].high_watermark == first + KEPT - 1
    after = _costs(client, measure)
    assert all(after[name] < before[name] + KEPT // 10 for name in before), (before, after)


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_of_many_aborted_transactions_their_own_write_ids_are_read(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more than 500 of them, all write ids of the tables were read from the oldest one on: a million for one
    table, while another one was not compacted."""
    monkeypatch.setattr(valid_write_ids, "_MAX_TXNS_IN_SQL", 10)
    database = client.database
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    rows = [
        {"T2W_TXNID": number, "T2W_DATABASE": "d", "T2W_TABLE": "t", "T2W_WRITEID": number}
        for number in range(1, KEPT + 1)
    ]
    client.change(insert(NEXT_WRITE_ID).values(NWI_DATABASE="d", NWI_TABLE="t", NWI_NEXT=KEPT + 1))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[: KEPT // 2]))
    client.change(insert(TXN_TO_WRITE_ID).values(rows[KEPT // 2 :]))
    few = ValidTxnList(KEPT, [1], 1)
    many = ValidTxnList(KEPT, [1 + 100 * number for number in range(20)], 2**20 - 1)
    found = client.valid("d.t", snapshot=many)[0]
    assert list(found.invalid) == list(many.exceptions)
    before = measure(lambda: client.valid("d.t", snapshot=few))
    assert measure(lambda: client.valid("d.t", snapshot=many)) < before + KEPT // 10


def make_indexes(database: Database) -> None:
    """On a database server, they remain for later tests, which inspect the schema once."""
    with database.checking() as connection:
        there = {each["name"] for each in inspect(connection).get_indexes("WRITE_SET")}
    if there:
        return
    assert len(create_indexes_beside_writers(database, missing_transaction_indexes)) == 2
    if database.is_sqlite:
        assert create_indexes_beside_writers(database, missing_transaction_indexes) == []


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_with_their_index_locks_that_nobody_waits_for_are_not_read(client: TxnClient) -> None:
    """Hive's schema has none: each new lock is compared with all existing ones."""
    database = client.database
    make_indexes(database)
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    client.lock(component(LockType.SHARED_READ, "t"))

    def take(lock_type: int, table: str) -> Callable[[], object]:
        return lambda: client.lock(component(lock_type, table))

    requested = {(LockType.SHARED_READ, "t"), (LockType.SHARED_WRITE, "t"), (LockType.EXCL_WRITE, "other")}
    before = {one: measure(take(*one)) for one in requested}
    names = {"HL_DB": "d", "HL_USER": "u", "HL_HOST": "h", "HL_LOCK_STATE": "a", "HL_LOCK_TYPE": "r"}
    rows = [
        {
            **names,
            "HL_LOCK_EXT_ID": -number,
            "HL_LOCK_INT_ID": 1,
            "HL_TXNID": 0,
            "HL_LAST_HEARTBEAT": 0,
            "HL_TABLE": "t",
        }
        for number in range(1, KEPT + 1)
    ]
    for some in (rows[: KEPT // 2], rows[KEPT // 2 :]):
        client.change(insert(HIVE_LOCKS).values(some))
    after = {one: measure(take(*one)) for one in requested}
    assert all(after[one] < before[one] + KEPT // 10 for one in requested), (before, after)
    assert client.lock(component(LockType.EXCLUSIVE, "t")).state == LockState.WAITING


@pytest.mark.parametrize("database_kind", ["sqlite", "mariadb"], indirect=True)
def test_with_their_index_changes_that_a_committer_has_seen_are_not_read(client: TxnClient) -> None:
    """They are kept while any older transaction is open. Hive's schema has no index for them."""
    database = client.database
    make_indexes(database)
    measure = steps_of_sqlite(database) if database.is_sqlite else RowsRead(database)
    oldest = client.open()

    def begin() -> int:
        txn_id = client.open()
        client.allocate([txn_id], "t")
        client.lock(component(LockType.SHARED_WRITE, "t", operation=DataOperationType.UPDATE), txn_id=txn_id)
        return txn_id

    def change() -> None:
        client.commit(begin())

    before = measure(change)
    rows = [
        {
            "WS_DATABASE": "d",
            "WS_TABLE": "t",
            "WS_PARTITION": f"p={number}",
            "WS_TXNID": oldest,
            "WS_COMMIT_ID": oldest,
            "WS_OPERATION_TYPE": "u",
        }
        for number in range(KEPT)
    ]
    for some in (rows[: KEPT // 2], rows[KEPT // 2 :]):
        client.change(insert(WRITE_SET).values(some))
    assert measure(change) < before + KEPT // 10
    early = begin()
    change()
    with pytest.raises(TxnAbortedException, match="write conflict"):
        client.commit(early)
