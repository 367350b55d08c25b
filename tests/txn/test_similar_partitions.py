"""Partitions whose names MySQL treats as equal in one schema or another: each has transactions of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert

from hms_cache.notifications.tjson import read_struct
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    TXN_COMPONENTS,
    WRITE_SET,
)
from hms_cache.store.transactions.name_changes import (
    ObjectName,
    drop_from_transaction_tables,
    drop_partitions_from_transaction_tables,
    rename_in_transaction_tables,
)
from hms_cache.store.transactions.write_notifications import TableWrite
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ttypes import CompactionInfoStruct, CompactionType, DataOperationType
from tests.txn.client import TxnClient, write_component
from tests.txn.conftest import store_of
from tests.txn.test_name_changes import fill

SIMILAR = ("p=a", "p=A", "p=a ", "p=á")

_TABLES: dict[Any, str] = {
    TXN_COMPONENTS: "TC_PARTITION",
    COMPLETED_TXN_COMPONENTS: "CTC_PARTITION",
    HIVE_LOCKS: "HL_PARTITION",
    COMPACTION_QUEUE: "CQ_PARTITION",
    COMPLETED_COMPACTIONS: "CC_PARTITION",
    COMPACTION_METRICS_CACHE: "CMC_PARTITION",
    WRITE_SET: "WS_PARTITION",
}
_METRIC = ttypes.CompactionMetricsMetricType.NUM_DELTAS


@pytest.fixture
def client(database_of_any_schema: Database) -> TxnClient:
    return TxnClient(store_of(database_of_any_schema), database_of_any_schema)


def _rows_of(client: TxnClient, partition: str) -> dict[str, list[dict[str, Any]]]:
    """Each row about the partition, by table."""
    found = {}
    for table, column in _TABLES.items():
        rows = [dict(zip(table.c.keys(), row, strict=True)) for row in client.rows(table)]
        found[table.name] = [row for row in rows if row[column] == partition]
    return found


def _queued(client: TxnClient, partition: str) -> int:
    rows = client.rows(COMPACTION_QUEUE, "CQ_ID", "CQ_PARTITION")
    return next(int(number) for number, name in rows if name == partition)


def _in_one(client: TxnClient, change: Callable[..., None], *arguments: Any) -> None:
    run_write(client.database, lambda transaction: change(transaction.connection, *arguments))


def _clean(client: TxnClient, partition: str, compaction_type: int) -> None:
    number = _queued(client, partition)
    client.store.mark_cleaned(
        CompactionInfoStruct(number, "d", "t", partition, type=compaction_type, highestWriteId=1000)
    )


def _report_metric(client: TxnClient, partition: str) -> None:
    client.store.update_compaction_metrics_data(
        ttypes.CompactionMetricsDataStruct("d", "t", partition, _METRIC, 77, 2, 1)
    )


_OPERATIONS: dict[str, Callable[[TxnClient, str], None]] = {
    "cleaned": lambda client, name: _clean(client, name, CompactionType.MAJOR),
    "cleaned of aborts": lambda client, name: _clean(client, name, CompactionType.ABORT_TXN_CLEANUP),
    "counted": _report_metric,
    "no longer counted": lambda client, name: client.store.remove_compaction_metrics_data(
        ttypes.CompactionMetricsDataRequest("d", "t", name, _METRIC)
    ),
    "renamed": lambda client, name: _in_one(
        client, rename_in_transaction_tables, ObjectName("d", "t", name), ObjectName("d", "t", f"{name}!")
    ),
    "dropped": lambda client, name: _in_one(client, drop_from_transaction_tables, ObjectName("d", "t", name)),
    "dropped with others": lambda client, name: _in_one(
        client, drop_partitions_from_transaction_tables, ("d", "t"), ["p=none", name]
    ),
}


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_what_is_done_to_one_is_done_to_no_other(client: TxnClient, operation: str) -> None:
    for name in SIMILAR:
        fill(client, "t", name)
        client.abort(client.write(table="t", partition=name)[0])
    before = {name: _rows_of(client, name) for name in SIMILAR}
    assert all(rows for of_one in before.values() for rows in of_one.values()), "each table knows each partition"
    for number, name in enumerate(SIMILAR):
        _OPERATIONS[operation](client, name)
        after = {other: _rows_of(client, other) for other in SIMILAR}
        assert after[name] != before[name]
        before[name] = after[name]
        assert after == before, (number, name)


def test_each_is_shown_alone(client: TxnClient) -> None:
    for name in SIMILAR:
        fill(client, "t", name)
    client.change(COMPLETED_COMPACTIONS.update().where(COMPLETED_COMPACTIONS.c.CC_STATE == "f").values(CC_STATE="s"))
    for name in SIMILAR:
        locks = client.store.show_locks(ttypes.ShowLocksRequest("d", "t", name)).locks
        assert {one.partname for one in locks} == {name}
        shown = client.store.show_compact(ttypes.ShowCompactRequest(dbName="d", tbName="t", partName=name)).compacts
        assert {one.partitionname for one in shown} == {name}
        request = ttypes.GetLatestCommittedCompactionInfoRequest("d", "t", [name, "p=none"])
        latest = client.store.get_latest_committed_compaction_info(request).compactions
        assert [one.partitionname for one in latest] == [name]


def test_writers_of_two_do_not_conflict_and_those_of_one_do(client: TxnClient) -> None:
    update = DataOperationType.UPDATE
    writers = [client.write(update, partition=name)[0] for name in SIMILAR]
    # Including writers of the same partitions: their locks do not matter here.
    losers = client.open_many(len(SIMILAR))
    for txn_id, write_id in client.allocate(losers).items():
        name = SIMILAR[losers.index(txn_id)]
        values = {"TC_DATABASE": "d", "TC_TABLE": "t", "TC_PARTITION": name, "TC_OPERATION_TYPE": "u"}
        client.change(insert(TXN_COMPONENTS).values(TC_TXNID=txn_id, TC_WRITEID=write_id, **values))
    for writer, loser in zip(writers, losers, strict=True):
        assert client.store.get_latest_txnid_in_conflict(loser) == 0
        client.commit(writer, exclWriteEnabled=False)
        assert client.store.get_latest_txnid_in_conflict(loser) == writer
        with pytest.raises(ttypes.TxnAbortedException, match="write conflict"):
            client.commit(loser, exclWriteEnabled=False)


ESCAPED, ESCAPED_AGAIN = "t=10%3A00/u=50%25", "t=10%253A00/u=50%2525"


def noted_writer(client: TxnClient, partition: str) -> int:
    """A transaction that changes rows of a partition recorded in this form, whichever metastore took its lock."""
    txn_id = client.open()
    [write_id] = client.allocate([txn_id]).values()
    values = {"TC_DATABASE": "d", "TC_TABLE": "t", "TC_PARTITION": partition, "TC_OPERATION_TYPE": "u"}
    client.change(insert(TXN_COMPONENTS).values(TC_TXNID=txn_id, TC_WRITEID=write_id, **values))
    return txn_id


@pytest.mark.parametrize("second", [ESCAPED, ESCAPED_AGAIN])
@pytest.mark.parametrize("first", [ESCAPED, ESCAPED_AGAIN])
def test_writers_conflict_whichever_metastore_has_noted_them(client: TxnClient, first: str, second: str) -> None:
    """Hive 4 escapes the partition of a lock once more, in TXN_COMPONENTS and so in WRITE_SET: without a conflict, the
    second writer would revert the first one's changes."""
    winner, loser = noted_writer(client, first), noted_writer(client, second)
    other = noted_writer(client, "t=10%3A01/u=50%25")
    client.commit(winner, exclWriteEnabled=False)
    assert client.store.get_latest_txnid_in_conflict(loser) == winner
    with pytest.raises(ttypes.TxnAbortedException, match="write conflict"):
        client.commit(loser, exclWriteEnabled=False)
    client.commit(other, exclWriteEnabled=False)


def test_a_write_is_noted_as_hive_4_looks_for_it(client: TxnClient) -> None:
    """Hive compares the records of its own transaction with WRITE_SET, text by text."""
    long = "t=" + "%3A" * 254
    for name in (ESCAPED, "t=1/u=1", long):
        client.commit(client.write(DataOperationType.UPDATE, partition=name)[0], exclWriteEnabled=False)
    # For the longest names, the other text would not fit into the column.
    assert sorted(client.rows(WRITE_SET, "WS_PARTITION")) == sorted(
        (name,) for name in (ESCAPED, ESCAPED_AGAIN, "t=1/u=1", long)
    )


def test_one_that_writes_all_is_noted_for_all(client: TxnClient) -> None:
    txn_id = client.open()
    client.allocate([txn_id])
    client.lock(*(write_component(DataOperationType.UPDATE, partition=name) for name in SIMILAR), txn_id=txn_id)
    client.commit(txn_id, exclWriteEnabled=False)
    assert sorted(client.rows(WRITE_SET, "WS_PARTITION")) == sorted((name,) for name in SIMILAR)


def _completed(partition: str, write_id: int) -> dict[str, Any]:
    return {
        "CTC_TXNID": write_id,
        "CTC_DATABASE": "d",
        "CTC_TABLE": "t",
        "CTC_PARTITION": partition,
        "CTC_WRITEID": write_id,
        "CTC_UPDATE_DELETE": "N",
    }


def test_completed_writes_are_thinned_out_for_each(client: TxnClient) -> None:
    rows = [_completed("p=a", 1), *(_completed(name, number) for name in SIMILAR[1:] for number in range(2, 61))]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    assert client.store.clean().completed_components == 3 * 9
    left = client.rows(COMPLETED_TXN_COMPONENTS, "CTC_PARTITION", "CTC_WRITEID")
    kept = {name: [number for found, number in left if found == name] for name in SIMILAR}
    assert kept.pop("p=a") == [1]
    assert all(sorted(numbers) == list(range(11, 61)) for numbers in kept.values())


def test_compactions_are_started_for_those_that_need_them(client: TxnClient) -> None:
    client.make_table()
    client.make_partitions(*SIMILAR[1:])
    rows = [_completed(name, number) for name in SIMILAR for number in range(1, 7)]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    assert client.store.initiate_compactions("here") == [], "no one has eleven writes"
    client.change(
        insert(COMPLETED_TXN_COMPONENTS).values(
            [_completed(name, number) for name in SIMILAR[1:] for number in range(7, 12)]
        )
    )
    # The last ones of another failed, which does not affect this one.
    failed = {"CC_DATABASE": "d", "CC_TABLE": "t", "CC_PARTITION": "p=a", "CC_STATE": "f", "CC_TYPE": "i"}
    now_ms = 10**14
    client.change(
        insert(COMPLETED_COMPACTIONS).values([{**failed, "CC_ID": n, "CC_ENQUEUE_TIME": now_ms} for n in range(9)])
    )
    assert len(client.store.initiate_compactions("here")) == 3
    assert set(client.rows(COMPACTION_QUEUE, "CQ_PARTITION")) == {(name,) for name in SIMILAR[1:]}


def test_old_aborts_start_a_compaction_of_each(client: TxnClient) -> None:
    client.make_table()
    client.make_partitions(*SIMILAR[1:])
    for name in SIMILAR[1:]:
        client.abort(client.write(partition=name)[0])
    client.age(13 * 3_600_000)
    assert len(client.store.initiate_compactions("here")) == len(SIMILAR) - 1


def test_what_was_written_is_told_for_each(client: TxnClient) -> None:
    names = [*SIMILAR, "p=a%2Fb", "p=A%2FB", ""]
    txn_id, write_id = client.write()
    table = ttypes.Table(dbName="d", tableName="t")

    def write(name: str, file: str) -> TableWrite:
        partition = ttypes.Partition(values=[name]) if name else None
        return TableWrite(txn_id, write_id, table, partition, name, ttypes.InsertEventRequestData(filesAdded=[file]))

    for number in range(2):
        client.store.add_write_notifications([write(name, f"/{name}/{number}") for name in names])
    found = client.store.get_all_write_event_info(ttypes.GetAllWriteEventInfoRequest(txnId=txn_id))
    told = {
        one.partition: (one.files, one.partitionObj and read_struct(one.partitionObj, ttypes.Partition).values)
        for one in found
    }
    assert told == {name: (f"/{name}/1###]/{name}/0###", [name] if name else None) for name in names}


def test_a_lock_on_a_similar_name_hides_no_other(client: TxnClient) -> None:
    """Names of tables are ASCII, but a lock may be on a name of no table."""

    def lock(kind: int, database: str, table: str) -> int:
        part = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, database, table)
        return int(client.lock(part).state)

    for name in ("tàble", "tablé"):
        assert lock(ttypes.LockType.SHARED_READ, "d", name) == ttypes.LockState.ACQUIRED
    assert lock(ttypes.LockType.SHARED_READ, "dé", "table") == ttypes.LockState.ACQUIRED
    assert lock(ttypes.LockType.EXCLUSIVE, "d", "table") == ttypes.LockState.ACQUIRED
    for kind in (ttypes.LockType.EXCLUSIVE, ttypes.LockType.SHARED_WRITE, ttypes.LockType.SHARED_READ):
        assert lock(kind, "d", "table") == ttypes.LockState.WAITING, kind
    assert lock(ttypes.LockType.EXCLUSIVE, "de", "table") == ttypes.LockState.ACQUIRED
