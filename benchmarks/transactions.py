"""Transactions per second: open, allocate a write id, commit, with the given number of clients, each on its own table;
and locks per second: lock, check_lock, unlock on one of 1,000 tables.

Each client has its own table because writers of one table wait for each other by definition. This measures how the
metastore processes the calls, and the locks that all transactions share.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import make_url

from benchmarks.client import connect
from benchmarks.cycles import Cycle, Note
from benchmarks.java_metastore import statement_counter
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE = "bench_transactions"
CAPABILITIES = ["HIVEFULLACIDWRITE", "HIVEFULLACIDREAD", "HIVEMANAGEDINSERTWRITE", "HIVEMANAGEDINSERTREAD"]
"""Without them Hive 4 creates no transactional table."""

CALLS = ("open_txns", "allocate_table_write_ids", "commit_txn")

LOCKED_TABLES = 1_000
"""Number of tables to lock at random, so that two clients rarely lock the same one."""


def _transaction(client: Any, number: int, note: Note) -> None:
    table = f"t{number}"
    began = time.perf_counter()
    request = ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench", agentInfo="bench")
    txn_id = client.open_txns(request).txn_ids[0]
    opened = time.perf_counter()
    client.allocate_table_write_ids(
        ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=table, txnIds=[txn_id])
    )
    allocated = time.perf_counter()
    client.commit_txn(ttypes.CommitTxnRequest(txnid=txn_id))
    committed = time.perf_counter()
    for call, seconds in zip(CALLS, (opened - began, allocated - opened, committed - allocated), strict=True):
        note(call, seconds)


def _lock(client: Any, number: int, note: Note) -> None:
    """Takes a table's lock like Iceberg for a commit: exclusive, outside of transactions. Calls `check_lock` at least
    once."""
    table = f"l{random.randrange(LOCKED_TABLES)}"
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=DATABASE, tablename=table
    )
    request = ttypes.LockRequest(component=[component], user="bench", hostname="bench", agentInfo=f"bench-{number}")
    began = time.perf_counter()
    lock_id = client.lock(request).lockid
    locked = time.perf_counter()
    note("lock", locked - began)
    while True:
        state = client.check_lock(ttypes.CheckLockRequest(lockid=lock_id)).state
        checked = time.perf_counter()
        note("check_lock", checked - locked)
        if state == ttypes.LockState.ACQUIRED:
            break
        locked = checked
    client.unlock(ttypes.UnlockRequest(lockid=lock_id))
    note("unlock", time.perf_counter() - checked)


def prepare(address: str, tables: int) -> None:
    """Creates the database and the transactional tables `t0`, `t1`, … if they are missing."""
    client = connect(address)
    if DATABASE not in client.get_all_databases():
        client.create_database(ttypes.Database(name=DATABASE, description="bench", parameters={}))
    known = set(client.get_all_tables(DATABASE))
    for number in range(tables):
        if f"t{number}" not in known:
            request = ttypes.CreateTableRequest(
                table=_table(f"t{number}"), processorCapabilities=CAPABILITIES, processorIdentifier="bench"
            )
            client.create_table_req(request)


TRANSACTIONS = Cycle("transactions", CALLS, _transaction, prepare)
LOCKS = Cycle("locks", ("lock", "check_lock", "unlock"), _lock, prepare)


def _table(name: str) -> ttypes.Table:
    return ttypes.Table(
        tableName=name,
        dbName=DATABASE,
        owner="bench",
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("a", "int", None)],
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters={"transactional": "true", "transactional_properties": "insert_only"},
        tableType="MANAGED_TABLE",
    )


def with_password(url: str) -> str:
    """Returns the URL with an account that has a password: Hive takes an empty one for "not set" and sends a
    default."""
    connection = statement_counter(url)
    with connection.cursor() as cursor:
        for host in ("127.0.0.1", "localhost"):
            cursor.execute(f"CREATE OR REPLACE USER 'bench'@'{host}' IDENTIFIED BY 'bench'")
            cursor.execute(f"GRANT ALL PRIVILEGES ON *.* TO 'bench'@'{host}'")
    connection.close()
    return make_url(url).set(username="bench", password="bench").render_as_string(hide_password=False)


def statements_per_call(address: str, counter: Callable[[], int], cycles: int = 20) -> dict[str, float]:
    """Returns the SQL statements of each call while no other client uses the metastore; `counter` returns their number
    so far."""
    prepare(address, 1)
    client = connect(address)
    txn_ids: list[int] = []

    def open_one() -> None:
        request = ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench", agentInfo="bench")
        txn_ids.append(client.open_txns(request).txn_ids[0])

    def allocate() -> None:
        client.allocate_table_write_ids(
            ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName="t0", txnIds=[txn_ids[-1]])
        )

    def commit() -> None:
        client.commit_txn(ttypes.CommitTxnRequest(txnid=txn_ids[-1]))

    totals = dict.fromkeys(CALLS, 0)
    own = counter()
    own = counter() - own  # what asking costs
    for _ in range(cycles):
        for call, action in zip(CALLS, (open_one, allocate, commit), strict=True):
            before = counter()
            action()
            totals[call] += counter() - before - own
    return {call: total / cycles for call, total in totals.items()}
