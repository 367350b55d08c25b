"""Two real servers with sixteen clients on one database: nothing is lost, assigned twice or omitted."""

from __future__ import annotations

import threading

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    DataOperationType,
    LockRequest,
    LockState,
    LockType,
    OpenTxnRequest,
    TxnAbortedException,
)
from tests.conftest import ServerStarter
from tests.databases import closing
from tests.txn.client import TxnClient, component
from tests.txn.conftest import store_of
from tests.txn.test_processes import (
    TABLES,
    conflicts_are_those_of_the_definition,
    every_commit_is_there_and_nothing_else,
    ids_are_dense_and_unique,
    outcomes_are_those_of_the_model,
)
from tests.txn.writers import Write

CLIENTS = 16
ROUNDS = 6


def write_once(client: MetastoreClient, table: str, changes_rows: bool) -> Write:
    """As `writers.write_once`, over the wire."""
    opening = OpenTxnRequest(num_txns=1, user="u", hostname="h", agentInfo="a")
    txn_id = client.call("open_txns", opening).txn_ids[0]
    allocation = AllocateTableWriteIdsRequest(dbName="d", tableName=table, txnIds=[txn_id])
    write_id = client.call("allocate_table_write_ids", allocation).txnToWriteIds[0].writeId
    operation = DataOperationType.UPDATE if changes_rows else DataOperationType.INSERT
    lock_type = LockType.SHARED_WRITE if changes_rows else LockType.SHARED_READ
    locks = [component(lock_type, table, operation=operation)]
    answer = client.call("lock", LockRequest(component=locks, txnid=txn_id, user="u", hostname="h"))
    assert answer.state == LockState.ACQUIRED
    try:
        client.call("commit_txn", CommitTxnRequest(txnid=txn_id, exclWriteEnabled=False))
    except TxnAbortedException:
        return Write(txn_id, table, write_id, changes_rows, False)
    return Write(txn_id, table, write_id, changes_rows, True)


@pytest.mark.soak
@pytest.mark.mariadb
def test_two_servers_and_sixteen_clients(start_server: ServerStarter) -> None:
    first = start_server("mariadb", "a")
    second = start_server(first.database_url, "b")
    ports = [first.port, second.port]
    writes: list[Write] = []
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            with MetastoreClient(f"thrift://127.0.0.1:{ports[number % 2]}") as client:
                for turn in range(ROUNDS):
                    table = TABLES[(number + turn) % len(TABLES)]
                    writes.append(write_once(client, table, (number + turn) % 2 == 0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert len(writes) == CLIENTS * ROUNDS
    with closing(Database(first.database_url)) as database:
        client = TxnClient(store_of(database), database)
        ids_are_dense_and_unique(client, writes)
        every_commit_is_there_and_nothing_else(client, writes)
        conflicts_are_those_of_the_definition(client, writes)
        outcomes_are_those_of_the_model(client, writes)
    assert any(not write.is_committed for write in writes), "nobody was in anybody's way"
