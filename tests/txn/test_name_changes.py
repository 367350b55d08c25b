"""Renames and drops in the transaction tables, combined with other work of their transaction."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, insert

from hms_cache.store.engine.work_units import run_write
from hms_cache.store.schema import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_WRITE_ID,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    WRITE_SET,
)
from hms_cache.store.transactions.name_changes import (
    ObjectName,
    drop_from_transaction_tables,
    drop_partitions_from_transaction_tables,
    rename_in_transaction_tables,
)
from hms_cache.store.transactions.queued_drops import dropped_tables, forget_entries
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionInfoStruct,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
    CompactionRequest,
    CompactionType,
    DataOperationType,
    FindNextCompactRequest,
    LockState,
    LockType,
    ShowLocksRequest,
    TxnType,
)
from tests.txn.cleaner import ready_to_clean
from tests.txn.client import TxnClient, component

NAMES: dict[Any, tuple[str, ...]] = {
    TXN_COMPONENTS: ("TC_DATABASE", "TC_TABLE", "TC_PARTITION"),
    COMPLETED_TXN_COMPONENTS: ("CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"),
    HIVE_LOCKS: ("HL_DB", "HL_TABLE", "HL_PARTITION"),
    COMPACTION_QUEUE: ("CQ_DATABASE", "CQ_TABLE", "CQ_PARTITION"),
    COMPLETED_COMPACTIONS: ("CC_DATABASE", "CC_TABLE", "CC_PARTITION"),
    COMPACTION_METRICS_CACHE: ("CMC_DATABASE", "CMC_TABLE", "CMC_PARTITION"),
    WRITE_SET: ("WS_DATABASE", "WS_TABLE", "WS_PARTITION"),
    TXN_TO_WRITE_ID: ("T2W_DATABASE", "T2W_TABLE"),
    NEXT_WRITE_ID: ("NWI_DATABASE", "NWI_TABLE"),
    MIN_HISTORY_WRITE_ID: ("MH_DATABASE", "MH_TABLE"),
    MATERIALIZATION_REBUILD_LOCKS: ("MRL_DB_NAME", "MRL_TBL_NAME"),
}


def fill(client: TxnClient, table: str, partition: str | None) -> None:
    """Leaves a row about the table in each transaction table."""
    store = client.store
    committed, _ = client.write(DataOperationType.UPDATE, table, partition=partition)
    client.commit(committed)
    writing, _ = client.write(table=table, partition=partition)
    store.add_write_ids_to_min_history(writing, {f"d.{table}": 1})
    store.get_lock_materialization_rebuild("d", table, writing)
    compaction = CompactionRequest(dbname="d", tablename=table, partitionname=partition, type=CompactionType.MAJOR)
    store.compact2(compaction)
    store.mark_failed(store.find_next_compact2(FindNextCompactRequest(workerId="w")).ci)
    assert store.compact2(compaction).accepted
    store.find_next_compact2(FindNextCompactRequest(workerId="w"))
    metric = CompactionMetricsMetricType.NUM_DELTAS
    store.update_compaction_metrics_data(CompactionMetricsDataStruct("d", table, partition, metric, 5, 1, 1))


def names_in(client: TxnClient) -> dict[str, set[tuple[Any, ...]]]:
    return {table.name: set(client.rows(table, *columns)) for table, columns in NAMES.items()}


@pytest.fixture
def filled(client: TxnClient) -> TxnClient:
    fill(client, "t", "p=1")
    fill(client, "other", None)
    return client


def test_a_table_is_renamed_everywhere(filled: TxnClient) -> None:
    before = names_in(filled)

    def rename(connection: Connection) -> None:
        # Left by a dropped table of the new name.
        connection.execute(insert(NEXT_WRITE_ID).values(NWI_DATABASE="e", NWI_TABLE="new", NWI_NEXT=99))
        rename_in_transaction_tables(connection, ObjectName("D", "T"), ObjectName("E", "New"))

    run_write(filled.database, lambda transaction: rename(transaction.connection))
    for name, rows in names_in(filled).items():
        expected = {("e", "new", *row[2:]) if row[:2] == ("d", "t") else row for row in before[name]}
        assert any(row[:2] == ("d", "t") for row in before[name]), name
        assert rows == expected, name
    assert filled.valid("e.new")[0].high_watermark == 2
    assert filled.valid("d.t")[0].high_watermark == 0


def test_a_partition_is_renamed_where_there_are_partitions(filled: TxnClient) -> None:
    before = names_in(filled)
    run_write(
        filled.database,
        lambda transaction: rename_in_transaction_tables(
            transaction.connection, ObjectName("d", "t", "P=1"), ObjectName("d", "t", "P=2")
        ),
    )
    for name, rows in names_in(filled).items():
        assert rows == {("d", "t", "p=2") if row == ("d", "t", "p=1") else row for row in before[name]}, name


def test_the_other_name_of_a_partition_follows(client: TxnClient) -> None:
    """Locks and write sets have such a partition under a second name, for metastores of Hive 4 on the same database. It
    remained, and was treated as the lock of another partition."""
    old, new = "t=10%3A00", "t=11%3A00"
    late = client.open()
    client.commit(client.write(DataOperationType.UPDATE, partition=old)[0])
    held = client.lock(component(LockType.EXCLUSIVE, partition=old))
    # A partition of that name.
    apart = client.lock(component(LockType.SHARED_READ, "u", "t=10%253A00"))

    def rename(before: str, after: str) -> None:
        names = ObjectName("d", "t", before), ObjectName("d", "t", after)
        run_write(client.database, lambda transaction: rename_in_transaction_tables(transaction.connection, *names))

    def shown() -> list[tuple[int, str | None]]:
        return [(one.lockid, one.partname) for one in client.store.show_locks(ShowLocksRequest()).locks]

    rename(old, new)
    assert shown() == [(apart.lockid, "t=10%253A00"), (held.lockid, new)]
    assert set(client.rows(WRITE_SET, "WS_PARTITION")) == {(new,), ("t=11%253A00",)}
    assert client.lock(component(LockType.EXCLUSIVE, partition=old), txn_id=late).state == LockState.ACQUIRED
    assert client.lock(component(LockType.EXCLUSIVE, partition=new), txn_id=late).state == LockState.WAITING
    client.commit(late)
    rename(new, "t=11")
    assert shown() == [(apart.lockid, "t=10%253A00"), (held.lockid, "t=11")]
    assert set(client.rows(WRITE_SET, "WS_PARTITION")) == {("t=11",)}


def test_a_dropped_table_is_forgotten_but_for_locks_and_write_sets(filled: TxnClient) -> None:
    before = names_in(filled)
    run_write(
        filled.database,
        lambda transaction: drop_from_transaction_tables(transaction.connection, ObjectName("d", "T")),
    )
    kept = {table.name for table in (HIVE_LOCKS, WRITE_SET, MIN_HISTORY_WRITE_ID, MATERIALIZATION_REBUILD_LOCKS)}
    for name, rows in names_in(filled).items():
        assert rows == (before[name] if name in kept else {row for row in before[name] if row[1] != "t"}), name


def test_a_dropped_partition_and_a_dropped_database(filled: TxnClient) -> None:
    drop = drop_from_transaction_tables
    run_write(filled.database, lambda transaction: drop(transaction.connection, ObjectName("d", "t", "p=1")))
    assert ("d", "t", "p=1") not in names_in(filled)["TXN_COMPONENTS"]
    assert ("d", "t") in names_in(filled)["TXN_TO_WRITE_ID"]
    run_write(filled.database, lambda transaction: drop(transaction.connection, ObjectName("d"), keep_write_ids=True))
    assert names_in(filled)["TXN_COMPONENTS"] == set()
    assert names_in(filled)["NEXT_WRITE_ID"] == {("d", "t"), ("d", "other")}
    run_write(filled.database, lambda transaction: drop(transaction.connection, ObjectName("d")))
    assert names_in(filled)["NEXT_WRITE_ID"] == set()


def test_other_catalogs_have_no_transactions(filled: TxnClient) -> None:
    before = names_in(filled)

    def work(connection: Connection) -> None:
        drop_from_transaction_tables(connection, ObjectName("d", "t"), catalog="spark")
        rename_in_transaction_tables(connection, ObjectName("d", "t"), ObjectName("d", "u"), catalog="spark")

    run_write(filled.database, lambda transaction: work(transaction.connection))
    assert names_in(filled) == before


def test_all_is_undone_with_the_rest_of_the_transaction(filled: TxnClient) -> None:
    before = names_in(filled)

    def work(connection: Connection) -> None:
        rename_in_transaction_tables(connection, ObjectName("d", "t"), ObjectName("d", "u"))
        drop_from_transaction_tables(connection, ObjectName("d", "other"))
        raise LookupError("the metadata change fails")

    with pytest.raises(LookupError):
        run_write(filled.database, lambda transaction: work(transaction.connection))
    assert names_in(filled) == before


def test_tables_dropped_softly_before_stay_queued_where_that_is_asked_for(client: TxnClient) -> None:
    """And nothing else: no compaction, no partition, and not what only looks similar."""
    store = client.store
    txn_id = client.open()
    major = CompactionType.MAJOR
    for partition, properties in ((None, {"location": "file:/w/é"}), ("p=1", {"location": "file:/w/p"})):
        store.submit_for_cleanup(CompactionRequest("d", "t", partition, major, "u", properties), 1, txn_id)
    store.submit_for_cleanup(CompactionRequest("d", "t", None, major, "u", {"k": "8:location4:/any"}), 1, txn_id)
    store.submit_for_cleanup(CompactionRequest("e", "t", None, major, "u", {"location": "file:/e"}), 1, txn_id)
    store.compact2(CompactionRequest("d", "u", None, major, "u", {"k": "8:location"}))
    store.compact2(CompactionRequest("d", "v", None, major))
    drop = drop_from_transaction_tables
    run_write(client.database, lambda transaction: drop(transaction.connection, ObjectName("D"), keep_table_drops=True))
    assert client.rows(COMPACTION_QUEUE, "CQ_DATABASE", "CQ_TABLE", "CQ_PARTITION") == [
        ("d", "t", None),
        ("d", "t", None),
        ("e", "t", None),
    ]

    def forget(connection: Connection) -> list[str | None]:
        found = dropped_tables(connection, "d", "T")
        forget_entries(connection, [entry_id for entry_id, place in found.items() if place is None])
        return list(found.values())

    dropped = run_write(client.database, lambda transaction: forget(transaction.connection))
    assert sorted(dropped, key=str) == [None, "file:/w/é"]
    assert client.count(COMPACTION_QUEUE) == 2
    run_write(client.database, lambda transaction: drop(transaction.connection, ObjectName("d")))
    assert client.rows(COMPACTION_QUEUE, "CQ_DATABASE") == [("e",)]


def test_write_ids_of_a_name_go_on_while_a_table_that_was_dropped_softly_waits(client: TxnClient) -> None:
    """The cleaner deletes the aborted writes of the name up to the write id of what it has cleaned: those to a table
    created again under it counted as committed if its ids had started at 1 again."""
    store, database, drop = client.store, client.database, drop_from_transaction_tables
    for table in ("t", "t", "other"):
        client.commit(client.write(table=table)[0])
    dropping = client.open(TxnType.SOFT_DELETE)
    table = ObjectName("d", "t")
    run_write(database, lambda transaction: drop(transaction.connection, table, keep_write_ids=True))
    request = CompactionRequest("d", "t", None, CompactionType.MAJOR, "u", {"location": "file:/w/t"})
    store.submit_for_cleanup(request, 2, dropping)
    client.commit(dropping)
    [(entry_id,)] = client.rows(COMPACTION_QUEUE, "CQ_ID")
    run_write(database, lambda transaction: drop(transaction.connection, ObjectName("d"), keep_table_drops=True))
    assert names_in(client)["NEXT_WRITE_ID"] == {("d", "t")}
    aborted, write_id = client.write()
    client.abort(aborted)
    client.commit(client.open())
    cleaned = CompactionInfoStruct(entry_id, "d", "t", type=CompactionType.MAJOR, highestWriteId=2)
    store.mark_cleaned(cleaned)
    client.age(2000)
    store.clean()
    assert client.valid("d.t")[0].is_aborted(write_id)
    run_write(database, lambda transaction: drop(transaction.connection, table, keep_table_drops=True))
    assert names_in(client)["NEXT_WRITE_ID"] == set()


def test_a_table_renamed_to_the_name_of_one_that_was_dropped_softly_keeps_its_aborted_writes(client: TxnClient) -> None:
    """A table is often replaced in this way. The cleaner deleted the writes of the name up to the dropped one's write
    id: a failed load became visible beside the successful one."""
    store, database = client.store, client.database
    for _ in range(3):
        client.commit(client.write()[0])
    failed, aborted = client.write(table="new")
    client.abort(failed)
    loaded, valid = client.write(table="new")
    client.commit(loaded)
    dropping = client.open(TxnType.SOFT_DELETE)
    table, new = ObjectName("d", "t"), ObjectName("d", "new")
    drop, rename = drop_from_transaction_tables, rename_in_transaction_tables
    run_write(database, lambda transaction: drop(transaction.connection, table, keep_write_ids=True))
    request = CompactionRequest("d", "t", None, CompactionType.MAJOR, "u", {"location": "file:/w/t"})
    store.submit_for_cleanup(request, 3, dropping)
    client.commit(dropping)
    run_write(database, lambda transaction: rename(transaction.connection, new, table))
    client.commit(client.open())
    client.age(2000)
    [entry] = ready_to_clean(store)
    store.mark_cleaned(entry)
    store.clean()
    seen = client.valid("d.t")[0]
    assert (seen.is_aborted(aborted), seen.is_valid(valid)) == (True, True)


@pytest.mark.parametrize("is_read_before", [False, True])
def test_a_partition_renamed_to_the_name_of_one_that_was_dropped_softly_keeps_its_writes(
    client: TxnClient, is_read_before: bool
) -> None:
    """Like a table. The cleaner may have read its entry before the rename, and reports only then that it has
    finished."""
    store, database = client.store, client.database
    failed, aborted = client.write(partition="p=2")
    client.abort(failed)
    loaded, valid = client.write(partition="p=2")
    client.commit(loaded)
    dropping = client.open(TxnType.SOFT_DELETE)
    highest = client.allocate([dropping])[dropping]
    drop, rename = drop_partitions_from_transaction_tables, rename_in_transaction_tables
    run_write(database, lambda transaction: drop(transaction.connection, ("d", "t"), ["p=1"]))
    request = CompactionRequest("d", "t", "p=1", CompactionType.MAJOR, "u", {"location": "file:/w/t/p=1"})
    store.submit_for_cleanup(request, highest, dropping)
    client.commit(dropping)
    client.commit(client.open())
    client.age(2000)
    before = ready_to_clean(store)
    old, new = ObjectName("d", "t", "p=2"), ObjectName("d", "t", "p=1")
    run_write(database, lambda transaction: rename(transaction.connection, old, new))
    [entry] = before if is_read_before else ready_to_clean(store)
    store.mark_cleaned(entry)
    store.clean()
    seen = client.valid("d.t")[0]
    assert (seen.is_aborted(aborted), seen.is_valid(valid)) == (True, True)
    completed = client.rows(COMPLETED_TXN_COMPONENTS, "CTC_PARTITION", "CTC_WRITEID")
    assert ("p=1", valid) in completed, "views that are made from it are told by these that it has changed"
