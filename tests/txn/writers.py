"""A process of writers: opens, allocates, writes and commits on shared tables. Run by `test_processes`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.engine.database import Database
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import DataOperationType, LockState, LockType, TxnAbortedException
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, component


@dataclass(frozen=True)
class Write:
    """One transaction of a writer. Returns its ids, and whether its commit was acknowledged."""

    txn_id: int
    table: str
    write_id: int
    changes_rows: bool
    is_committed: bool


def write_many(url: str, clients: int, rounds: int, tables: Sequence[str]) -> list[Write]:
    """`clients` threads, each with `rounds` transactions; every second one changes rows without excluding others."""
    database = Database(url)
    # A constant clock: on a busy machine, no transaction takes too long to open.
    store = TxnStore(database, MessageBuilder(), clock=ManualClock())
    writes: list[Write] = []
    errors: list[BaseException] = []
    start = threading.Barrier(clients, timeout=60)

    def run(number: int) -> None:
        try:
            client = TxnClient(store, database)
            start.wait(timeout=60)
            for turn in range(rounds):
                writes.append(write_once(client, tables[(number + turn) % len(tables)], (number + turn) % 2 == 0))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    database.close()
    if errors:
        raise errors[0]
    return writes


def write_once(client: TxnClient, table: str, changes_rows: bool) -> Write:
    txn_id = client.open()
    write_id = client.allocate([txn_id], table)[txn_id]
    operation = DataOperationType.UPDATE if changes_rows else DataOperationType.INSERT
    lock_type = LockType.SHARED_WRITE if changes_rows else LockType.SHARED_READ
    answer = client.lock(component(lock_type, table, operation=operation), txn_id=txn_id)
    assert answer.state == LockState.ACQUIRED
    try:
        client.commit(txn_id, exclWriteEnabled=False)
    except TxnAbortedException:
        return Write(txn_id, table, write_id, changes_rows, False)
    return Write(txn_id, table, write_id, changes_rows, True)
