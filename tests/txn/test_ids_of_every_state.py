"""Each method that has the id of a transaction, a lock or a compaction, with ids of each state, twice.

Whatever the state of the id, the reply is a value or an exception of Hive's, which the client knows: never an internal
error. If a method declares none, the error says what is wrong.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select
from thrift.Thrift import TApplicationException, TException

from hms_cache.app.service import Service
from hms_cache.client import MetastoreClient
from hms_cache.config import load
from hms_cache.server.handlers import transactions as handlers_of_transactions
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import HIVE_LOCKS, MIN_HISTORY_LEVEL, MIN_HISTORY_WRITE_ID, TXNS
from hms_cache.store.transactions.codes import TXN_OPEN
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.txn.client import write_component

Ids = Mapping[str, int]

_LOCK = write_component(t.DataOperationType.UPDATE)
_REPLAYED = {"replPolicy": "p", "txn_type": t.TxnType.REPL_CREATED}


def _compaction(compaction_id: int, **fields: Any) -> t.CompactionInfoStruct:
    return t.CompactionInfoStruct(compaction_id, "d", "t", type=t.CompactionType.MAJOR, **fields)


#: Arguments of each method, with an id.
OF_TRANSACTIONS: dict[str, list[Callable[[int], tuple[Any, ...]]]] = {
    "abort_txn": [
        lambda i: (t.AbortTxnRequest(i),),
        lambda i: (t.AbortTxnRequest(i, **_REPLAYED),),
        lambda i: (t.AbortTxnRequest(i, errorCode=-7),),
    ],
    "abort_txns": [lambda i: (t.AbortTxnsRequest([i]),), lambda i: (t.AbortTxnsRequest([i, i, 1, 2]),)],
    "add_dynamic_partitions": [
        lambda i: (t.AddDynamicPartitions(i, 1, "d", "t", ["p=1"], t.DataOperationType.UPDATE),),
        lambda i: (t.AddDynamicPartitions(i, 1, "d", "t", ["p=1", "p=1"]),),
    ],
    "add_write_ids_to_min_history": [lambda i: (i, {"d.t": 1}), lambda i: (i, {"d.t": i, "D.T": i})],
    "allocate_table_write_ids": [
        lambda i: (t.AllocateTableWriteIdsRequest("d", "t", [i]),),
        lambda i: (t.AllocateTableWriteIdsRequest("d", "t", [i, i]),),
        lambda i: (t.AllocateTableWriteIdsRequest("d", "t", [i], reallocate=True),),
        lambda i: (
            t.AllocateTableWriteIdsRequest("d", "t", replPolicy="p", srcTxnToWriteIdList=[t.TxnToWriteId(i, 5)]),
        ),
    ],
    "commit_txn": [
        lambda i: (t.CommitTxnRequest(i),),
        lambda i: (t.CommitTxnRequest(i, **_REPLAYED),),
        lambda i: (t.CommitTxnRequest(i, exclWriteEnabled=False),),
    ],
    "get_latest_txnid_in_conflict": [lambda i: (i,)],
    "get_lock_materialization_rebuild": [lambda i: ("d", "v", i)],
    "get_lock_materialization_rebuild_req": [lambda i: (t.LockMaterializationRebuildRequest("hive", "d", "v", i),)],
    "get_all_write_event_info": [lambda i: (t.GetAllWriteEventInfoRequest(i),)],
    "heartbeat": [lambda i: (t.HeartbeatRequest(txnid=i),), lambda i: (t.HeartbeatRequest(lockid=99, txnid=i),)],
    "heartbeat_lock_materialization_rebuild": [lambda i: ("d", "v", i)],
    "heartbeat_lock_materialization_rebuild_req": [
        lambda i: (t.LockMaterializationRebuildRequest("hive", "d", "v", i),)
    ],
    "heartbeat_txn_range": [
        lambda i: (t.HeartbeatTxnRangeRequest(i, i),),
        lambda i: (t.HeartbeatTxnRangeRequest(i, i + 2),),
        lambda i: (t.HeartbeatTxnRangeRequest(i, i - 1),),
    ],
    "lock": [
        lambda i: (t.LockRequest([_LOCK], i, "u", "h"),),
        lambda i: (t.LockRequest([_LOCK, _LOCK], i, "u", "h", zeroWaitReadEnabled=True),),
        lambda i: (t.LockRequest([_LOCK], i, "u", "h", exclusiveCTAS=True),),
    ],
    "open_txns": [
        lambda i: (t.OpenTxnRequest(1, "u", "h", replPolicy="p", replSrcTxnIds=[i], txn_type=t.TxnType.REPL_CREATED),),
        lambda i: (
            t.OpenTxnRequest(2, "u", "h", replPolicy="p", replSrcTxnIds=[i, 102], txn_type=t.TxnType.REPL_CREATED),
        ),
    ],
    "repl_tbl_writeid_state": [
        lambda i: (t.ReplTblWriteIdStateRequest(f"d.r{i}:{i}:9223372036854775807::", "u", "h", "d", f"r{i}"),),
    ],
    "seed_txn_id": [lambda i: (t.SeedTxnIdRequest(min(i, 200)),)],
    "submit_for_cleanup": [lambda i: (t.CompactionRequest("d", "t", type=t.CompactionType.MAJOR), 1, i)],
    "update_compactor_state": [lambda i: (_compaction(1, highestWriteId=1), i)],
    "update_transaction_statistics": [],
    "get_valid_write_ids": [
        lambda i: (t.GetValidWriteIdsRequest(["d.t"], f"{i}:{i}:{i}:"),),
        lambda i: (t.GetValidWriteIdsRequest(["d.t"], None, i),),
    ],
}
OF_LOCKS: dict[str, list[Callable[[int], tuple[Any, ...]]]] = {
    "check_lock": [lambda i: (t.CheckLockRequest(i),), lambda i: (t.CheckLockRequest(i, 1, 10),)],
    "heartbeat": [lambda i: (t.HeartbeatRequest(lockid=i),), lambda i: (t.HeartbeatRequest(lockid=i, txnid=4),)],
    "unlock": [lambda i: (t.UnlockRequest(i),)],
}
OF_COMPACTIONS: dict[str, list[Callable[[int], tuple[Any, ...]]]] = {
    "abort_Compactions": [
        lambda i: (t.AbortCompactionRequest([i]),),
        lambda i: (t.AbortCompactionRequest([i, i, 999]),),
        lambda i: (t.AbortCompactionRequest([]),),
    ],
    "find_columns_with_stats": [lambda i: (_compaction(i),), lambda i: (_compaction(i, partitionname="p=1"),)],
    "get_latest_committed_compaction_info": [
        lambda i: (t.GetLatestCommittedCompactionInfoRequest("d", "t", lastCompactionId=i),)
    ],
    "mark_compacted": [lambda i: (_compaction(i),)],
    "mark_cleaned": [lambda i: (_compaction(i, highestWriteId=1),), lambda i: (_compaction(i),)],
    "mark_failed": [lambda i: (_compaction(i, errorMessage="e"),)],
    "mark_refused": [lambda i: (_compaction(i, errorMessage="e"),)],
    "set_hadoop_jobid": [lambda i: ("job", i)],
    "show_compact": [lambda i: (t.ShowCompactRequest(id=i),), lambda i: (t.ShowCompactRequest(type=i % 100),)],
    "update_compactor_state": [lambda i: (_compaction(i, highestWriteId=1), 3)],
}
WITHOUT_IDS = {
    *("compact", "compact2", "find_next_compact", "find_next_compact2", "get_open_txns", "get_open_txns_info"),
    *("get_open_txns_req", "get_replayed_txns_for_policy", "get_max_allocated_table_write_id", "show_locks"),
    *("get_materialization_invalidation_info", "seed_write_id", "update_compaction_metrics_data"),
    # Files of tables: each name must be a table.
    *("remove_compaction_metrics_data", "add_write_notification_log", "add_write_notification_log_in_batch"),
}


@dataclass
class World:
    """A server whose database has transactions, locks and compactions of every state."""

    client: MetastoreClient
    transactions: Ids
    locks: Ids
    compactions: Ids


@pytest.fixture
def world(initialized_database: Database, tmp_path: Path) -> Iterator[World]:
    url = initialized_database.url.render_as_string(hide_password=False)
    given = {"server.port": 0, "admin.enabled": False, "database.url": url, "warehouse.directory": str(tmp_path)}
    service = Service(load(command_line=given, environment={}))
    client = MetastoreClient(service.start(), call_timeout_s=60)
    try:
        yield World(client, _transactions(client, initialized_database), _locks(client), _compactions(client))
    finally:
        client.close()
        service.stop()


def _transactions(client: MetastoreClient, database: Database) -> Ids:
    opened = client.call("open_txns", t.OpenTxnRequest(6, "u", "h")).txn_ids
    committed, aborted, kept, forgotten, replaying, rebuilding = opened
    client.call("allocate_table_write_ids", t.AllocateTableWriteIdsRequest("d", "t", opened))
    client.call("get_lock_materialization_rebuild", "d", "v", rebuilding)
    client.call("commit_txn", t.CommitTxnRequest(committed))
    client.call("commit_txn", t.CommitTxnRequest(forgotten))
    client.call("abort_txn", t.AbortTxnRequest(aborted))
    with database.writing() as connection:
        connection.execute(delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID == forgotten))
        connection.execute(delete(TXNS).where(TXNS.c.TXN_ID == forgotten))
        connection.commit()
    replay = t.OpenTxnRequest(2, "u", "h", replPolicy="p", replSrcTxnIds=[101, 102], txn_type=t.TxnType.REPL_CREATED)
    client.call("open_txns", replay)
    read_only = client.call("open_txns", t.OpenTxnRequest(1, "u", "h", txn_type=t.TxnType.READ_ONLY)).txn_ids[0]
    return {
        "committed": committed,
        "aborted": aborted,
        "open": kept,
        "forgotten": forgotten,
        "other": replaying,
        "rebuilding": rebuilding,
        "at the source": 101,
        "read-only": read_only,
        "unknown": 5_000,
        "none": 0,
        "negative": -1,
        "far": 2**62,
    }


def _locks(client: MetastoreClient) -> Ids:
    def ask(txn_id: int | None) -> int:
        return int(client.call("lock", t.LockRequest([write_component(table="l")], txn_id, "u", "h")).lockid)

    (txn_id,) = client.call("open_txns", t.OpenTxnRequest(1, "u", "h")).txn_ids
    component = t.LockComponent(t.LockType.EXCLUSIVE, t.LockLevel.TABLE, "d", "x")
    held, waiting = (int(client.call("lock", t.LockRequest([component], None, "u", "h")).lockid) for _ in range(2))
    in_txn, released = ask(txn_id), ask(None)
    client.call("unlock", t.UnlockRequest(released))
    (over,) = client.call("open_txns", t.OpenTxnRequest(1, "u", "h")).txn_ids
    of_over = ask(over)
    client.call("commit_txn", t.CommitTxnRequest(over))
    return {
        "held": held,
        "waiting": waiting,
        "of a transaction": in_txn,
        "released": released,
        "of one over": of_over,
        "unknown": 5_000,
        "none": 0,
        "negative": -1,
        "far": 2**62,
    }


def _compactions(client: MetastoreClient) -> Ids:
    def ask(table: str) -> int:
        return int(client.call("compact2", t.CompactionRequest("d", table, type=t.CompactionType.MAJOR)).id)

    working, ready, failed, initiated = (ask(f"c{number}") for number in range(4))
    for _ in range(3):
        client.call("find_next_compact2", t.FindNextCompactRequest(workerId="w"))
    client.call("mark_compacted", _compaction(ready))
    client.call("mark_failed", _compaction(failed))
    return {
        "initiated": initiated,
        "working": working,
        "ready": ready,
        "failed": failed,
        "unknown": 5_000,
        "none": 0,
        "negative": -1,
        "far": 2**62,
    }


def test_the_table_knows_every_method() -> None:
    served = set(handlers_of_transactions.handlers.entries)
    listed = {*OF_TRANSACTIONS, *OF_LOCKS, *OF_COMPACTIONS, *WITHOUT_IDS}
    assert served - listed == set()


def test_no_id_is_an_internal_error(world: World, caplog: pytest.LogCaptureFixture) -> None:
    wrong = []
    answers: set[str] = set()
    families = (
        (OF_TRANSACTIONS, world.transactions),
        (OF_LOCKS, world.locks),
        (OF_COMPACTIONS, world.compactions),
    )
    # Calls that end something come last, so that the others meet each state; then all once more.
    for (methods, ids), _ in itertools.product(families, range(2)):
        for method, requests in methods.items():
            declared = tuple(METHODS[method].exceptions)
            for (state, given), request in itertools.product(ids.items(), requests):
                with caplog.at_level(logging.WARNING):
                    caplog.clear()
                    outcome = _outcome(world.client, method, request(given), declared)
                answers.add(outcome.split(":")[0])
                if outcome.startswith("undeclared") or any(record.exc_info for record in caplog.records):
                    traces = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
                    wrong.append(f"{method} with {state} id {given}: {outcome} {traces}")
    assert not wrong, "\n".join(wrong)
    assert {"value", "NoSuchTxnException", "TxnAbortedException", "NoSuchLockException"} <= answers


def test_nothing_is_held_in_the_name_of_what_is_no_open_transaction(
    world: World, initialized_database: Database
) -> None:
    """It could not be released: a lock of a transaction ends with it, and so does what it has recorded."""
    for method, requests in OF_TRANSACTIONS.items():
        for given, request in itertools.product(world.transactions.values(), requests):
            _outcome(world.client, method, request(given), ())
            with initialized_database.checking() as connection:
                rows = connection.execute(select(TXNS.c.TXN_ID, TXNS.c.TXN_STATE)).all()
                held = set(
                    connection.execute(select(HIVE_LOCKS.c.HL_TXNID).where(HIVE_LOCKS.c.HL_TXNID != 0)).scalars()
                )
                history = set(connection.execute(select(MIN_HISTORY_WRITE_ID.c.MH_TXNID)).scalars())
            still_open = {row.TXN_ID for row in rows if row.TXN_STATE == TXN_OPEN}
            assert held | history <= still_open, f"{method} with id {given}"


def _outcome(client: MetastoreClient, method: str, arguments: tuple[Any, ...], declared: tuple[type, ...]) -> str:
    try:
        client.call(method, *arguments)
    except TApplicationException as error:
        is_told = not declared and "Internal error processing" not in str(error)
        return f"fault: {error}" if is_told else f"undeclared: {error}"
    except TException as error:
        return type(error).__name__
    return "value"
