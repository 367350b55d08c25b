"""`lock`, `check_lock`, `unlock`, `heartbeat` and `show_locks`."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from hms_cache.store.schema import HIVE_LOCKS, TXN_COMPONENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddDynamicPartitions,
    CheckLockRequest,
    DataOperationType,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchLockException,
    NoSuchTxnException,
    ShowLocksRequest,
    TxnAbortedException,
    TxnOpenException,
    UnlockRequest,
)
from hms_cache.wire.codec import decode_struct, encode_struct
from tests.txn.client import TxnClient, component, write_component


def iceberg_lock(agent: str) -> LockRequest:
    """As Iceberg and PyIceberg do before a commit."""
    one = LockComponent(
        type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname="Db", tablename="Tbl", isTransactional=True
    )
    return LockRequest(component=[one], user="u", hostname="h", agentInfo=agent)


def test_iceberg_commits_take_turns(client: TxnClient) -> None:
    store = client.store
    first, second = store.lock(iceberg_lock("Iceberg-1")), store.lock(iceberg_lock("Iceberg-2"))
    assert (first.state, second.state) == (LockState.ACQUIRED, LockState.WAITING)
    assert client.check(second.lockid) == LockState.WAITING
    shown = store.show_locks(ShowLocksRequest(dbname="db", tablename="TBL")).locks
    assert [(one.lockid, one.state, one.agentInfo, one.blockedByExtId) for one in shown] == [
        (first.lockid, LockState.ACQUIRED, "Iceberg-1", None),
        (second.lockid, LockState.WAITING, "Iceberg-2", first.lockid),
    ]
    assert {one.txnid for one in shown} == {None}
    store.heartbeat(HeartbeatRequest(lockid=first.lockid))
    store.unlock(UnlockRequest(lockid=first.lockid))
    assert client.check(second.lockid) == LockState.ACQUIRED
    store.unlock(UnlockRequest(lockid=second.lockid))
    assert client.count(HIVE_LOCKS) == client.count(TXN_COMPONENTS) == 0


def test_of_two_that_wait_the_older_goes_first(client: TxnClient) -> None:
    held = client.lock(component(LockType.SHARED_READ))
    exclusive = client.lock(component(LockType.EXCLUSIVE))
    reader = client.lock(component(LockType.SHARED_READ))
    assert (exclusive.state, reader.state) == (LockState.WAITING, LockState.WAITING)
    client.store.unlock(UnlockRequest(lockid=held.lockid))
    assert client.check(reader.lockid) == LockState.WAITING
    assert client.check(exclusive.lockid) == LockState.ACQUIRED
    client.store.unlock(UnlockRequest(lockid=exclusive.lockid))
    assert client.check(reader.lockid) == LockState.ACQUIRED


@pytest.mark.parametrize("other", ["p=a ", "p=A"])
def test_a_lock_of_a_similar_partition_hides_no_other(client: TxnClient, other: str) -> None:
    """Databases may find one partition's locks by another's name; the oldest of them was used for all."""
    assert client.lock(component(LockType.EXCLUSIVE, partition=other)).state == LockState.ACQUIRED
    first = client.lock(component(LockType.EXCLUSIVE, partition="p=a"))
    assert first.state == LockState.ACQUIRED
    assert client.lock(component(LockType.EXCLUSIVE, partition="p=a")).state == LockState.WAITING


ESCAPED = "t=2024-01-01 10%3A00%3A00/u=a"
OF_HIVE_4 = "t=2024-01-01 10%253A00%253A00/u=a"


@pytest.mark.parametrize("stored", [ESCAPED, OF_HIVE_4], ids=["Hive 3", "Hive 4"])
def test_other_metastores_escape_partitions_of_locks_once_or_twice(client: TxnClient, stored: str) -> None:
    """Hive 4 escapes the name that its client has escaped. Metastores compare the texts in HIVE_LOCKS."""
    ours = client.lock(component(LockType.EXCLUSIVE, partition=ESCAPED))
    # The name that a Java metastore looks up for a lock request on this partition.
    assert (ours.lockid, stored) in client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID", "HL_PARTITION")
    shown = client.store.show_locks(ShowLocksRequest()).locks
    assert [(one.lockid, one.partname) for one in shown] == [(ours.lockid, ESCAPED)]
    client.store.unlock(UnlockRequest(lockid=ours.lockid))
    assert client.count(HIVE_LOCKS) == 0
    theirs = client.lock(component(LockType.EXCLUSIVE, partition="t=1/u=a"))
    client.change(update(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_LOCK_EXT_ID == theirs.lockid).values(HL_PARTITION=stored))
    waiting = client.lock(component(LockType.SHARED_READ, partition=ESCAPED))
    assert waiting.state == LockState.WAITING
    assert client.check(waiting.lockid) == LockState.WAITING
    client.store.unlock(UnlockRequest(lockid=theirs.lockid))
    assert client.check(waiting.lockid) == LockState.ACQUIRED


def test_all_components_or_none(client: TxnClient) -> None:
    client.lock(component(LockType.EXCLUSIVE, "u"))
    both = client.lock(component(LockType.SHARED_READ, "t"), component(LockType.SHARED_READ, "u"))
    assert both.state == LockState.WAITING
    states = set(client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID", "HL_LOCK_INT_ID", "HL_LOCK_STATE"))
    assert {(both.lockid, 1, "w"), (both.lockid, 2, "w")} <= states
    assert client.lock(component(LockType.EXCLUSIVE, "t")).state == LockState.WAITING


def test_a_transaction_does_not_wait_for_itself(client: TxnClient) -> None:
    txn_id = client.open()
    assert client.lock(component(LockType.EXCLUSIVE), txn_id=txn_id).state == LockState.ACQUIRED
    assert client.lock(component(LockType.EXCLUSIVE), txn_id=txn_id).state == LockState.ACQUIRED
    assert client.lock(component(LockType.SHARED_READ), txn_id=client.open()).state == LockState.WAITING


def test_a_reader_that_must_not_wait(client: TxnClient) -> None:
    held = client.lock(component(LockType.EXCLUSIVE))
    txn_id = client.open()
    answer = client.lock(component(LockType.SHARED_READ), txn_id=txn_id, zeroWaitReadEnabled=True)
    assert answer.state == LockState.NOT_ACQUIRED
    assert answer.errorMessage == (
        f"Unable to acquire read lock due to an existing exclusive lock {{lockid:{held.lockid} intLockId:1 txnid:0"
        " db:d table:t partition:null state:ACQUIRED type:EXCLUSIVE}"
    )
    waiting = client.lock(component(LockType.EXCL_WRITE), txn_id=txn_id, zeroWaitReadEnabled=True)
    assert waiting.state == LockState.WAITING
    table_as_select = client.lock(component(LockType.EXCL_WRITE), txn_id=client.open(), exclusiveCTAS=True)
    assert table_as_select.state == LockState.NOT_ACQUIRED
    assert "concurrent CTAS operation" in table_as_select.errorMessage
    outside = client.lock(component(LockType.SHARED_READ), zeroWaitReadEnabled=True)
    assert outside.state == LockState.WAITING
    assert client.count(HIVE_LOCKS) == 3


def test_a_reader_that_must_not_wait_for_one_that_waits(client: TxnClient) -> None:
    """The text names the lock as in Hive: clients show it."""
    client.lock(component(LockType.SHARED_READ, partition="p=1"))
    writer = client.open()
    held_up = client.lock(component(LockType.EXCLUSIVE, partition="p=1"), txn_id=writer)
    assert held_up.state == LockState.WAITING
    reader = component(LockType.SHARED_READ, partition="p=1")
    answer = client.lock(reader, txn_id=client.open(), zeroWaitReadEnabled=True)
    assert answer.errorMessage == (
        f"Unable to acquire read lock due to an existing exclusive lock {{lockid:{held_up.lockid} intLockId:1"
        f" txnid:{writer} db:d table:t partition:p=1 state:WAITING type:EXCLUSIVE}}"
    )


@pytest.mark.parametrize("blocked", sorted(LockType._VALUES_TO_NAMES))
@pytest.mark.parametrize("held", sorted(LockType._VALUES_TO_NAMES))
def test_only_a_blocked_read_is_refused(sqlite_client: TxnClient, held: int, blocked: int) -> None:
    """A request that reads one table and requests `blocked` on another, on which a client holds `held`."""
    client = sqlite_client
    client.lock(component(held, "u"))
    for order in (1, -1):
        parts = [component(LockType.SHARED_READ, "t"), component(blocked, "u")][::order]
        plain = client.lock(*parts, txn_id=client.open())
        client.change(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID > 0))
        txn_id = client.open()
        answer = client.lock(*parts, txn_id=txn_id, zeroWaitReadEnabled=True)
        is_refused = plain.state == LockState.WAITING and blocked == LockType.SHARED_READ
        assert answer.state == (LockState.NOT_ACQUIRED if is_refused else plain.state)
        assert bool(answer.errorMessage) is is_refused
        assert ((answer.lockid,) in client.rows(HIVE_LOCKS, "HL_LOCK_EXT_ID")) is not is_refused
        client.change(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID > 0))


def test_a_read_is_refused_though_an_older_lock_blocks_a_write(client: TxnClient) -> None:
    client.lock(component(LockType.EXCLUSIVE, "u"))
    client.lock(component(LockType.EXCLUSIVE, "t"))
    parts = component(LockType.EXCL_WRITE, "u"), component(LockType.SHARED_READ, "t")
    answer = client.lock(*parts, txn_id=client.open(), zeroWaitReadEnabled=True)
    assert answer.state == LockState.NOT_ACQUIRED
    assert "db:d table:t " in answer.errorMessage


def test_unlock(client: TxnClient) -> None:
    client.store.unlock(UnlockRequest(lockid=4711))
    txn_id = client.open()
    held = client.lock(component(LockType.EXCLUSIVE), txn_id=txn_id)
    with pytest.raises(TxnOpenException, match=f"lockid:{held.lockid} is held by txnid:{txn_id}"):
        client.store.unlock(UnlockRequest(lockid=held.lockid))
    waiting = client.lock(component(LockType.EXCLUSIVE), txn_id=client.open())
    client.store.unlock(UnlockRequest(lockid=waiting.lockid))
    with pytest.raises(NoSuchLockException, match=f"No such lock lockid:{waiting.lockid}"):
        client.check(waiting.lockid)
    client.commit(txn_id)
    assert client.count(HIVE_LOCKS) == 0


def test_locks_of_a_transaction_that_is_over(client: TxnClient) -> None:
    committed, aborted = client.open(), client.open()
    client.commit(committed)
    client.abort(aborted)
    with pytest.raises(NoSuchTxnException, match=f"Transaction txnid:{committed} is already committed."):
        client.lock(component(LockType.SHARED_READ), txn_id=committed)
    with pytest.raises(TxnAbortedException, match=f"Transaction txnid:{aborted} already aborted"):
        client.lock(component(LockType.SHARED_READ), txn_id=aborted)
    with pytest.raises(NoSuchTxnException, match="No such transaction txnid:999"):
        client.lock(component(LockType.SHARED_READ), txn_id=999)
    assert client.count(HIVE_LOCKS) == 0


@pytest.mark.parametrize("txn_id", [-1, -(2**63)])
def test_a_number_below_all_ids_is_no_transaction(client: TxnClient, txn_id: int) -> None:
    """As in Hive. Neither its client, nor a time-out, nor an administrator could have released the lock."""
    request = LockRequest([component(LockType.EXCLUSIVE)], txn_id, "u", "h")
    with pytest.raises(NoSuchTxnException, match=f"No such transaction txnid:{txn_id}"):
        client.store.lock(request)
    good = LockRequest([component(LockType.EXCLUSIVE, "u")], None, "u", "h")
    refused, given = client.store.combined["lock"].execute([request, good]) or ()
    assert isinstance(refused, NoSuchTxnException)
    assert given.state == LockState.ACQUIRED
    assert client.lock(component(LockType.EXCLUSIVE)).state == LockState.ACQUIRED


def test_what_was_held_under_such_a_number_ends_in_time(client: TxnClient) -> None:
    """Earlier releases have granted such locks."""
    client.lock(component(LockType.EXCLUSIVE))
    client.change(update(HIVE_LOCKS).values(HL_TXNID=-1))
    client.age(400_000)
    assert client.store.give_up_timed_out().locks == 1
    assert client.lock(component(LockType.EXCLUSIVE)).state == LockState.ACQUIRED


@pytest.mark.parametrize(
    "components",
    [
        [],
        [LockComponent(type=9, level=1, dbname="d")],
        [LockComponent(type=1, level=1, dbname="")],
        [LockComponent(type=1, level=3, dbname="d", partitionname="p=1")],
    ],
)
def test_requests_that_make_no_sense(sqlite_client: TxnClient, components: list[LockComponent]) -> None:
    with pytest.raises(MetaException):
        sqlite_client.lock(*components)


def test_check_lock_is_a_heartbeat(client: TxnClient) -> None:
    store = client.store
    txn_id = client.open()
    in_txn = client.lock(component(LockType.SHARED_READ), txn_id=txn_id)
    alone = client.lock(component(LockType.SHARED_READ))
    silent = client.lock(component(LockType.SHARED_READ))
    silent_txn = client.open()
    client.age(400_000)
    assert client.check(in_txn.lockid) == client.check(alone.lockid) == LockState.ACQUIRED
    given_up = store.give_up_timed_out()
    assert (given_up.txns, given_up.locks) == (1, 1)
    assert client.check(alone.lockid) == LockState.ACQUIRED
    store.heartbeat(HeartbeatRequest(txnid=txn_id, lockid=alone.lockid))
    with pytest.raises(NoSuchLockException):
        store.heartbeat(HeartbeatRequest(lockid=silent.lockid))
    with pytest.raises(TxnAbortedException):
        store.heartbeat(HeartbeatRequest(txnid=silent_txn))
    with pytest.raises(NoSuchTxnException):
        store.heartbeat(HeartbeatRequest(txnid=12345))
    client.abort(txn_id)
    with pytest.raises(NoSuchLockException):
        store.check_lock(CheckLockRequest(lockid=in_txn.lockid))


def test_of_a_transaction_and_a_lock_that_are_gone_the_transaction_is_named(client: TxnClient) -> None:
    txn_id = client.open()
    client.abort(txn_id)
    with pytest.raises(TxnAbortedException):
        client.store.heartbeat(HeartbeatRequest(txnid=txn_id, lockid=77))


def test_heartbeat_of_a_range(client: TxnClient) -> None:
    first = client.open_many(5)[0]
    client.commit(first + 1)
    client.abort(first + 2)
    answer = client.store.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=first, max=first + 6))
    assert answer.aborted == {first + 2}
    assert answer.nosuch == {first + 1, first + 5, first + 6}
    answer = client.store.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=first + 3, max=first + 4))
    assert (answer.aborted, answer.nosuch) == (set(), set())
    for ends in ((5, 4), (1, 10**9)):
        with pytest.raises(MetaException):
            client.store.heartbeat_txn_range(HeartbeatTxnRangeRequest(min=ends[0], max=ends[1]))


def test_locks_note_what_will_be_written(client: TxnClient) -> None:
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    client.lock(
        component(LockType.SHARED_READ, "source"),
        write_component(DataOperationType.INSERT, "T"),
        write_component(DataOperationType.UPDATE, "t", partition="P=A"),
        write_component(DataOperationType.DELETE, "u"),
        write_component(DataOperationType.INSERT, "plain", transactional=False),
        component(LockType.EXCLUSIVE, "ddl", operation=DataOperationType.NO_TXN),
        component(LockType.EXCL_WRITE, "old", operation=DataOperationType.UNSET),
        txn_id=txn_id,
    )
    columns = ("TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_OPERATION_TYPE", "TC_WRITEID")
    assert set(client.rows(TXN_COMPONENTS, *columns)) == {
        (txn_id, "d", "t", None, "i", write_id),
        (txn_id, "d", "t", "p=A", "u", write_id),
        (txn_id, "d", "u", None, "d", None),
        (txn_id, "d", "old", None, "u", None),
    }


def test_a_write_lock_on_a_whole_database_is_no_write(client: TxnClient) -> None:
    """It names no table that a write set could contain, and does not block commits."""
    txn_id = client.open()
    client.lock(component(LockType.EXCL_WRITE, None, operation=DataOperationType.UPDATE), txn_id=txn_id)
    assert client.count(TXN_COMPONENTS) == 0
    client.commit(txn_id)


def test_partitions_of_a_dynamic_write_come_later(client: TxnClient) -> None:
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    client.lock(
        write_component(DataOperationType.INSERT, dynamic=True),
        write_component(DataOperationType.DELETE, partition="p=1", dynamic=True),
        txn_id=txn_id,
    )
    columns = ("TC_PARTITION", "TC_OPERATION_TYPE", "TC_WRITEID")
    assert client.rows(TXN_COMPONENTS, *columns) == [(None, "u", write_id)]
    client.store.add_dynamic_partitions(
        AddDynamicPartitions(
            txnid=txn_id,
            writeid=write_id,
            dbname="D",
            tablename="T",
            partitionnames=["P=1", "p=2"],
            operationType=DataOperationType.DELETE,
        )
    )
    assert client.rows(TXN_COMPONENTS, *columns) == [("p=1", "d", write_id), ("p=2", "d", write_id)]
    client.abort(txn_id)
    with pytest.raises(TxnAbortedException):
        client.store.add_dynamic_partitions(
            AddDynamicPartitions(txnid=txn_id, writeid=1, dbname="d", tablename="t", partitionnames=["p=1"])
        )


@pytest.mark.parametrize(
    ("components", "noted"),
    [
        ([("INSERT", "p=1", False), ("DELETE", None, True)], [("p=1", "i")]),
        ([("INSERT", None, True), ("UPDATE", "p=1", False)], [("p=1", "u"), (None, "i")]),
        ([("INSERT", None, True), ("UPDATE", None, True)], [(None, "u")]),
    ],
)
def test_a_dynamic_write_is_noted_once_for_its_table(
    client: TxnClient, components: list[tuple[str, str | None, bool]], noted: list[tuple[str | None, str]]
) -> None:
    """As Hive 4.0.1 (InsertTxnComponentsCommand): not after another component; its kind is that of dynamic ones."""
    requested = [
        write_component(DataOperationType._NAMES_TO_VALUES[operation], partition=partition, dynamic=dynamic)
        for operation, partition, dynamic in components
    ]
    client.lock(*requested, txn_id=client.open())
    assert sorted(client.rows(TXN_COMPONENTS, "TC_PARTITION", "TC_OPERATION_TYPE"), key=repr) == sorted(noted, key=repr)


def test_show_locks_selects(client: TxnClient) -> None:
    store, txn_id = client.store, client.open()
    client.lock(component(LockType.SHARED_READ, "t", "p=1"), component(LockType.SHARED_READ, None), txn_id=txn_id)
    client.lock(component(LockType.SHARED_READ, "t", database="e"))

    def shown(**conditions: object) -> list[tuple[str, str | None, str | None, int | None]]:
        locks = store.show_locks(ShowLocksRequest(**conditions)).locks
        return [(one.dbname, one.tablename, one.partname, one.txnid) for one in locks]

    of_txn = [("d", "t", "p=1", txn_id), ("d", None, None, txn_id)]
    assert shown() == [*of_txn, ("e", "t", None, None)]
    assert shown(txnid=txn_id) == shown(dbname="D") == of_txn
    assert shown(txnid=0) == [("e", "t", None, None)]
    assert shown(dbname="d", tablename="t", partname="P=1") == of_txn[:1]
    assert shown(dbname="x") == []


def test_a_client_that_does_not_say_whether_its_table_is_transactional(client: TxnClient) -> None:
    """As Hive Streaming: its writes are recorded. Otherwise, its aborted writes would count as committed one day."""
    write = component(LockType.SHARED_READ, operation=DataOperationType.INSERT, transactional=None)
    txn_id = client.open()
    write_id = client.allocate([txn_id])[txn_id]
    request = LockRequest(component=[write], txnid=txn_id, user="u", hostname="h")
    client.store.lock(decode_struct(LockRequest, encode_struct(request)))
    assert client.rows(TXN_COMPONENTS, "TC_TXNID", "TC_TABLE", "TC_WRITEID") == [(txn_id, "t", write_id)]
    client.abort(txn_id)
    client.open()
    client.age(10_000)
    client.store.clean()
    assert client.valid("d.t")[0].invalid == (write_id,)
