"""How many statements the calls of a query send, however many objects they concern (each is a round trip).

SQLite has no round trips, and needs more statements for two reasons: it deletes from one table at a time, and assigns
the ids of the notification log inside the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.store.schema import HIVE_LOCKS
from hms_cache.store.transactions.write_notifications import TableWrite
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CommitTxnRequest,
    DataOperationType,
    GetOpenTxnsRequest,
    InsertEventRequestData,
    LockState,
    LockType,
    OpenTxnRequest,
    Table,
    TxnType,
    UnlockRequest,
    WriteEventInfo,
)
from tests.txn.client import TxnClient, component, counted_statements, write_component
from tests.txn.database_statements import DatabaseStatements


@pytest.fixture
def count(client: TxnClient) -> Callable[[Callable[[], object]], int]:
    """Statements of a call, on warm connections and with reserved ids."""
    client.commit(client.open())

    def counted(call: Callable[[], object]) -> int:
        with counted_statements(client.database) as statements:
            call()
        return len(statements)

    return counted


@pytest.fixture
def at_database(client: TxnClient, tmp_path: Path) -> Iterator[DatabaseStatements]:
    """The database's count, after each kind of connection has been used."""
    seen = DatabaseStatements(client.database, tmp_path)
    client.commit(client.write()[0])
    client.snapshot()
    client.valid("d.t")
    yield seen
    client.database.close()
    seen.close()


def test_the_database_counts_no_more(client: TxnClient, at_database: DatabaseStatements) -> None:
    """Of each call of a short query and of a write. MariaDB counts COMMIT and each statement of a packet, too."""
    store, limit = client.store, 6 if client.database.dialect == "postgresql" else 7
    counts = {"open_txns": at_database.count(client.open)}
    txn_id = client.snapshot().high_watermark
    snapshot = client.snapshot(txn_id)
    counts["get_open_txns_req"] = at_database.count(
        lambda: store.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[TxnType.READ_ONLY]))
    )
    counts["get_valid_write_ids"] = at_database.count(lambda: client.valid("d.t", "d.u", snapshot=snapshot))
    counts["lock"] = at_database.count(lambda: client.lock(component(LockType.SHARED_READ), txn_id=txn_id))
    counts["add_write_ids"] = at_database.count(lambda: store.add_write_ids_to_min_history(txn_id, {"d.t": 1}))
    counts["commit_txn"] = at_database.count(lambda: client.commit(txn_id))
    writer = client.open()
    counts["allocate_table_write_ids"] = at_database.count(lambda: client.allocate([writer]))
    assert min(counts.values()) >= 1, counts
    assert sum(counts.values()) >= 20, counts
    assert max(counts.values()) <= limit, counts


def test_a_lock_that_waits_costs_nothing_while_nobody_asks(client: TxnClient, at_database: DatabaseStatements) -> None:
    client.lock(component(LockType.SHARED_READ))
    waiting = client.lock(component(LockType.EXCLUSIVE))
    assert waiting.state == LockState.WAITING
    assert at_database.count(lambda: None) == 0
    requested = at_database.count(lambda: client.check(waiting.lockid))
    assert 1 <= requested <= 4


Counter = Callable[[Callable[[], object]], int]


def test_a_short_select(client: TxnClient, count: Counter) -> None:
    store = client.store
    client.write(table="u")
    client.abort(client.write()[0])
    counts = {"open_txns": count(client.open)}
    txn_id = client.store.get_open_txns().txn_high_water_mark
    snapshot = client.snapshot(txn_id)
    counts["get_open_txns_req"] = count(
        lambda: store.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[TxnType.READ_ONLY]))
    )
    counts["get_valid_write_ids"] = count(lambda: client.valid("d.t", "d.u", snapshot=snapshot))
    counts["lock"] = count(lambda: client.lock(component(LockType.SHARED_READ), txn_id=txn_id))
    counts["add_write_ids_to_min_history"] = count(lambda: store.add_write_ids_to_min_history(txn_id, {"d.t": 1}))
    counts["commit_txn"] = count(lambda: client.commit(txn_id))
    assert max(counts.values()) <= (7 if client.database.is_sqlite else 6), counts
    assert sum(counts.values()) <= 23, counts


def test_the_number_of_things_does_not_matter(client: TxnClient, count: Counter) -> None:
    def costs(size: int) -> dict[str, int]:
        txn_id = client.open()
        tables = [f"d.t{number}" for number in range(size)]
        found = {}
        found["allocate"] = count(lambda: client.allocate([txn_id], f"w{size}"))
        found["lock"] = count(
            lambda: client.lock(
                *(write_component(table=f"w{size}", partition=f"p={number}") for number in range(size)), txn_id=txn_id
            )
        )
        found["valid"] = count(lambda: client.valid(*tables, snapshot=client.snapshot()))
        found["history"] = count(lambda: client.store.add_write_ids_to_min_history(txn_id, dict.fromkeys(tables, 1)))
        found["commit"] = count(lambda: client.commit(txn_id))
        return found

    assert costs(1) == costs(150)


def test_the_number_of_partitions_that_were_written_to_does_not_matter(client: TxnClient, count: Counter) -> None:
    def tell(txn_id: int, size: int, file: str) -> None:
        table, data = Table(dbName="d", tableName="t"), InsertEventRequestData(filesAdded=[file])
        client.store.add_write_notifications(
            [TableWrite(txn_id, 1, table, None, f"p={number}", data) for number in range(size)]
        )

    def costs(size: int) -> list[int]:
        txn_id = client.open()
        return [count(lambda file=file: tell(txn_id, size, file)) for file in ("/new", "/more", "/more")]

    costs(1)
    # More than the reserved ids.
    assert costs(20) == costs(900)


def test_the_number_of_partitions_that_a_replayed_transaction_wrote_to_does_not_matter(
    client: TxnClient, count: Counter
) -> None:
    """A commit of replication read the table and the partition for each, while the transaction, the database and the
    table were locked."""
    client.make_table()
    names = [f"p={number}" for number in range(900)]
    client.make_partitions(*names)

    def costs(source_id: int, size: int) -> int:
        of_source: dict[str, Any] = {"replPolicy": "p", "txn_type": TxnType.REPL_CREATED}
        client.store.open_txns(OpenTxnRequest(1, "u", "h", replSrcTxnIds=[source_id], **of_source))
        infos = [WriteEventInfo(1, "d", "t", "file:/s/t/f", name) for name in names[:size]]
        request = CommitTxnRequest(source_id, writeEventInfos=infos, **of_source)
        return count(lambda: client.store.commit_txn(request))

    costs(101, 1)
    assert costs(102, 20) == costs(103, 900)


@pytest.mark.parametrize(("tables", "databases", "most"), [(5_000, 3, 13), (250, 250, 13)])
def test_thousands_of_tables_take_a_few_statements(
    client: TxnClient, count: Counter, tables: int, databases: int, most: int
) -> None:
    """It was a statement with a condition for each table, for 200 at a time: ten thousand took nine seconds."""
    names = [f"d{number % databases}.t{number}" for number in range(tables)]
    snapshot = client.snapshot()
    assert count(lambda: client.valid(*names, snapshot=snapshot)) <= most


def test_an_insert(client: TxnClient, count: Counter) -> None:
    is_sqlite = client.database.is_sqlite
    # The first write ids of a table take one more.
    client.allocate([client.open()])
    opening = count(client.open)
    inserting = client.store.get_open_txns().txn_high_water_mark
    allocating = count(lambda: client.allocate([inserting]))
    locking = count(lambda: client.lock(write_component(), txn_id=inserting))
    assert opening <= (4 if client.database.dialect != "postgresql" else 5)
    assert allocating <= (5 if is_sqlite else 4)
    assert locking <= 6
    client.store.add_write_ids_to_min_history(inserting, {"d.t": 1})
    assert count(lambda: client.commit(inserting)) <= (9 if is_sqlite else 5)


@pytest.mark.parametrize("is_exclusive", [False, True], ids=["conflicts are looked for", "exclusive"])
def test_an_update(client: TxnClient, count: Counter, is_exclusive: bool) -> None:
    """In addition to those of an insert: the lock of all transactions, conflicts, and the write set."""
    txn_id, _ = client.write(DataOperationType.UPDATE)
    client.store.add_write_ids_to_min_history(txn_id, {"d.t": 1})
    taken = count(lambda: client.commit(txn_id, exclWriteEnabled=is_exclusive))
    assert taken <= (9 if client.database.is_sqlite else 6)


def test_a_lock_that_waits_costs_the_same_each_time(client: TxnClient, count: Counter) -> None:
    held = [client.lock(component(LockType.SHARED_READ)) for _ in range(20)]
    waiting = client.lock(component(LockType.EXCLUSIVE))
    costs = {count(lambda: client.check(waiting.lockid)) for _ in range(5)}
    # One packet reads it and records the heartbeat, another reads the blocking locks.
    assert costs == ({2} if client.database.dialect == "mysql" else {3})
    assert len(held) == 20


def test_a_lock_outside_of_transactions(client: TxnClient, count: Counter) -> None:
    """As Iceberg's clients take one for a commit: the id, the blocking locks, the row; and its end."""
    is_mysql = client.database.dialect == "mysql"  # one packet has all except the row, which is sent with COMMIT
    assert count(lambda: client.lock(component(LockType.EXCLUSIVE))) == (2 if is_mysql else 3)
    [(lock_id,)] = client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID")
    assert count(lambda: client.store.unlock(UnlockRequest(lockid=lock_id))) == 1


def test_a_lock_that_comes_free(client: TxnClient, count: Counter) -> None:
    held = client.lock(component(LockType.EXCLUSIVE))
    waiting = client.lock(component(LockType.EXCLUSIVE))
    client.store.unlock(UnlockRequest(lockid=held.lockid))
    # Read, heartbeat, blocking locks, granted.
    assert count(lambda: client.check(waiting.lockid)) == (3 if client.database.dialect == "mysql" else 4)
