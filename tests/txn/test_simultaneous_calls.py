"""A transaction that is ended while another of its calls is running: the end includes everything the call has written.

Clients send one call after the other, but one that gave up waiting for a reply sends the next while the first is still
being executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import insert

from hms_cache.store.schema import COMPLETED_TXN_COMPONENTS, TXN_COMPONENTS, TXNS, WRITE_SET
from hms_cache.store.transactions.txn_rows import lock_open_txn
from hms_cache.thrift_gen.hive_metastore.ttypes import DataOperationType, TxnAbortedException
from tests.database_kinds import SERVER_KINDS
from tests.txn.client import TxnClient
from tests.txn.test_locks_of_all_transactions import LIMIT_S, wait_for_waiter

pytestmark = pytest.mark.parametrize("database_kind", SERVER_KINDS, indirect=True)


@contextmanager
def noting_a_write(client: TxnClient, txn_id: int, write_id: int) -> Iterator[None]:
    """A running call like `lock` or `add_dynamic_partitions`: its records are committed at the end."""
    with client.database.writing() as connection:
        lock_open_txn(connection, txn_id)
        written = {"TC_TXNID": txn_id, "TC_DATABASE": "d", "TC_TABLE": "t", "TC_PARTITION": None}
        connection.execute(insert(TXN_COMPONENTS).values(TC_OPERATION_TYPE="u", TC_WRITEID=write_id, **written))
        yield
        connection.commit()


def test_a_commit_sees_what_a_call_before_it_notes(client: TxnClient) -> None:
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    with ThreadPoolExecutor(1) as pool:
        with noting_a_write(client, txn_id, write_id):
            commit = pool.submit(client.commit, txn_id)
            wait_for_waiter(client, commit)
        commit.result(LIMIT_S)
    assert client.count(TXN_COMPONENTS) == 0
    assert client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TXNID", "CTC_UPDATE_DELETE") == [(txn_id, "Y")]
    assert client.rows(WRITE_SET, "WS_TXNID") == [(txn_id,)]


def test_a_commit_conflicts_by_what_a_call_before_it_notes(client: TxnClient) -> None:
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    other, _ = client.write(DataOperationType.UPDATE)
    client.commit(other, exclWriteEnabled=False)
    with ThreadPoolExecutor(1) as pool:
        with noting_a_write(client, txn_id, write_id):
            commit = pool.submit(client.commit, txn_id, exclWriteEnabled=False)
            wait_for_waiter(client, commit)
        with pytest.raises(TxnAbortedException):
            commit.result(LIMIT_S)
    assert dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))[txn_id] == "a"
