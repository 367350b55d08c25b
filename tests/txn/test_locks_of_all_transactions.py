"""Waiting for the lock of all transactions: commits that change rows wait for those that are opening, no others.

SQLite has no such lock: its writing transactions run one after another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, insert, select, text

from hms_cache.store.schema import TXNS, WRITE_SET
from hms_cache.store.transactions.database_values import (
    lock_all_txns_exclusive,
    lock_all_txns_shared,
    now_ms,
    read_now_ms,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import DataOperationType, TxnType
from tests.database_kinds import SERVER_KINDS
from tests.txn.client import TxnClient

LIMIT_S = 60.0

pytestmark = pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@contextmanager
def opening(client: TxnClient) -> Iterator[int]:
    """A transaction that another server is just opening. Yields its id; it is committed at the end."""
    with client.database.writing() as connection:
        lock_all_txns_shared(connection)
        row = {"TXN_STATE": "o", "TXN_STARTED": now_ms(), "TXN_LAST_HEARTBEAT": now_ms(), "TXN_TYPE": 0}
        inserted = connection.execute(insert(TXNS).values(TXN_USER="u", TXN_HOST="h", **row)).inserted_primary_key
        assert inserted is not None
        yield int(inserted[0])
        connection.commit()


def wait_for_waiter(client: TxnClient, waiter: Future[None]) -> None:
    """Waits until a statement waits for a lock."""
    kind = client.database.dialect
    waiting = (
        # Not INNODB_TRX: its contents are not refreshed while it is read more than ten times a second.
        "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"
        if kind == "mysql"
        else "SELECT COUNT(*) FROM pg_locks WHERE NOT granted"
    )
    deadline_s = time.monotonic() + LIMIT_S
    while True:
        assert not waiter.done(), "it did not wait"
        assert time.monotonic() < deadline_s, "nobody waits for a lock"
        with client.database.checking() as connection:
            if int(connection.execute(text(waiting)).all()[0][-1]):
                return


def test_a_commit_of_changed_rows_waits_and_sees_who_was_opening(client: TxnClient, pool: ThreadPoolExecutor) -> None:
    txn_id, _ = client.write(DataOperationType.UPDATE)
    with opening(client) as opened:
        commit = pool.submit(client.commit, txn_id)
        wait_for_waiter(client, commit)
    commit.result(LIMIT_S)
    assert client.rows(WRITE_SET, "WS_TXNID", "WS_COMMIT_ID") == [(txn_id, opened)]


@pytest.mark.parametrize("kind", ["nothing written", "rows added", "read-only"])
def test_other_commits_do_not_wait(client: TxnClient, pool: ThreadPoolExecutor, kind: str) -> None:
    if kind == "rows added":
        txn_id, _ = client.write()
    else:
        txn_id = client.open(TxnType.READ_ONLY if kind == "read-only" else TxnType.DEFAULT)
    with opening(client):
        pool.submit(client.commit, txn_id).result(LIMIT_S)
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[txn_id] == "c"


def test_who_opens_does_not_wait_for_others_that_open(client: TxnClient, pool: ThreadPoolExecutor) -> None:
    with opening(client) as opened:
        assert pool.submit(client.open).result(LIMIT_S) > opened


def test_a_transaction_that_waited_to_be_opened_is_as_young_as_its_row(
    client: TxnClient, pool: ThreadPoolExecutor
) -> None:
    """Readers treat gaps below a sufficiently old row as closed: its time must not be that of the start of the wait."""

    def hold(connection: Connection) -> int:
        lock_all_txns_exclusive(connection)
        opening = pool.submit(client.open)
        wait_for_waiter(client, opening)
        waited_at = read_now_ms(connection)
        connection.commit()
        txn_id = opening.result(LIMIT_S)
        with client.database.checking() as other:
            started = other.execute(select(TXNS.c.TXN_STARTED).where(TXNS.c.TXN_ID == txn_id)).scalar_one()
        return int(started) - waited_at

    with client.database.writing() as connection:
        assert hold(connection) >= 0
