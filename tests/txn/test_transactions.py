"""Opening, committing and aborting transactions, and the resulting events."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, update

from hms_cache.config import Settings
from hms_cache.config.sections import LimitsSettings, TransactionSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.schema import (
    COMPLETED_TXN_COMPONENTS,
    DATABASE_PARAMS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    REPL_TXN_MAP,
    TABLE_PARAMS,
    TXN_COMPONENTS,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions import opening
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortTxnRequest,
    AbortTxnsRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    DataOperationType,
    GetOpenTxnsRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchTxnException,
    OpenTxnRequest,
    ReplLastIdInfo,
    SeedTxnIdRequest,
    TxnAbortedException,
    TxnState,
    TxnType,
    WriteEventInfo,
)
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, component, write_component


def test_ids_are_consecutive_and_listed(client: TxnClient) -> None:
    assert client.snapshot().to_text() == "0:9223372036854775807::"
    assert client.open_many(3) == [1, 2, 3]
    client.commit(2)
    client.abort(1)
    answer = client.store.get_open_txns()
    assert (answer.txn_high_water_mark, answer.open_txns, answer.min_open_txn) == (3, [1, 3], 3)
    assert answer.abortedBits == b"\x01"
    assert client.events() == [
        ("OPEN_TXN", client.events()[0][1]),
        ("COMMIT_TXN", client.events()[1][1]),
        ("ABORT_TXN", client.events()[2][1]),
    ]
    opened, committed, aborted = (message for _, message in client.events())
    assert (opened["fromTxnId"], opened["toTxnId"]) == (1, 3)
    assert committed["txnid"] == 2
    assert (aborted["txnid"], aborted["dbsUpdated"]) == (1, [])


def test_info_names_users_and_reasons(client: TxnClient) -> None:
    client.open_many(2)
    client.store.abort_txn(AbortTxnRequest(txnid=1, errorCode=50005))
    answer = client.store.get_open_txns_info()
    assert answer.txn_high_water_mark == 2
    aborted, still_open = answer.open_txns
    assert (aborted.state, aborted.metaInfo) == (TxnState.ABORTED, "rollback")
    assert (still_open.state, still_open.user, still_open.hostname, still_open.agentInfo) == (
        TxnState.OPEN,
        "u",
        "h",
        "a",
    )
    # PostgreSQL reads its clock for each of them.
    assert 1_600_000_000_000 < still_open.startedTime <= still_open.lastHeartbeatTime < still_open.startedTime + 10_000


def test_excluded_types_are_left_out(client: TxnClient) -> None:
    default, read_only = client.open(), client.open(TxnType.READ_ONLY)
    assert client.store.get_open_txns().open_txns == [default]
    answer = client.store.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[TxnType.READ_ONLY]))
    assert (answer.txn_high_water_mark, answer.open_txns) == (read_only, [default])
    assert client.store.get_open_txns_req(GetOpenTxnsRequest()).open_txns == [default, read_only]


def test_read_only_transactions_leave_no_event(client: TxnClient) -> None:
    committed, aborted = client.open_many(2, TxnType.READ_ONLY)
    client.commit(committed)
    client.abort(aborted)
    assert client.events() == []


def test_a_young_gap_counts_as_open_and_an_old_one_does_not(client: TxnClient) -> None:
    client.open_many(4)
    client.commit(4)
    for left_out in (2, 3):
        client.change(delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID == left_out))
        client.change(delete(TXNS).where(TXNS.c.TXN_ID == left_out))
    # In the future: young, however slow the machine is.
    client.age(-600_000)
    assert client.store.get_open_txns().open_txns == [1, 2, 3]
    assert [one.user for one in client.store.get_open_txns_info().open_txns] == ["u", "", ""]
    client.age(602_000)
    assert client.store.get_open_txns().open_txns == [1]
    assert client.store.get_open_txns().txn_high_water_mark == 4
    assert client.open() == 5
    assert client.store.get_open_txns().open_txns == [1, 5]


def test_ending_twice(client: TxnClient) -> None:
    committed, aborted = client.open_many(2)
    for _ in range(2):
        client.commit(committed)
        client.abort(aborted)
    with pytest.raises(TxnAbortedException, match=f"Transaction txnid:{aborted} already aborted"):
        client.commit(aborted)
    with pytest.raises(NoSuchTxnException, match=f"Transaction txnid:{committed} is already committed."):
        client.abort(committed)
    with pytest.raises(NoSuchTxnException, match="No such transaction txnid:77"):
        client.commit(77)
    with pytest.raises(NoSuchTxnException, match="No such transaction txnid:77"):
        client.abort(77)
    assert [event for event, _ in client.events()] == ["OPEN_TXN", "COMMIT_TXN", "ABORT_TXN"]


def test_commit_moves_what_was_written_and_frees_the_rest(client: TxnClient) -> None:
    inserted, insert_id = client.write(table="t")
    changed, change_id = client.write(DataOperationType.UPDATE, "u", partition="p=1")
    for txn_id in (inserted, changed):
        client.store.add_write_ids_to_min_history(txn_id, {"d.t": 1, "d.u": 1})
    client.commit(inserted)
    client.commit(changed)
    assert client.rows(
        COMPLETED_TXN_COMPONENTS,
        *("CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE"),
    ) == [(inserted, "d", "t", None, insert_id, "N"), (changed, "d", "u", "p=1", change_id, "Y")]
    for table in (TXN_COMPONENTS, HIVE_LOCKS, MIN_HISTORY_LEVEL, MIN_HISTORY_WRITE_ID):
        assert client.count(table) == 0, table.name
    assert set(client.rows(TXNS, "TXN_ID", "TXN_STATE")) == {(0, "c"), (inserted, "c"), (changed, "c")}


@pytest.mark.soak
@pytest.mark.long
def test_a_request_may_name_as_many_tables_as_the_limit_lets_in(client: TxnClient) -> None:
    txn_id = client.open()
    names = [f"d.t{number}" for number in range(LimitsSettings().request_tables)]
    for lowest in (1, 2):
        client.store.add_write_ids_to_min_history(txn_id, dict.fromkeys(names, lowest))
        rows = client.rows(MIN_HISTORY_WRITE_ID, "MH_TXNID", "MH_WRITEID")
        assert (len(rows), set(rows)) == (len(names), {(txn_id, lowest)})
    assert len(client.valid(*names)) == len(names)


def test_abort_keeps_what_was_written(client: TxnClient) -> None:
    txn_id, _ = client.write()
    client.store.add_write_ids_to_min_history(txn_id, {"d.t": 1})
    client.abort(txn_id)
    assert client.count(TXN_COMPONENTS) == 1
    for table in (COMPLETED_TXN_COMPONENTS, HIVE_LOCKS, MIN_HISTORY_LEVEL, MIN_HISTORY_WRITE_ID):
        assert client.count(table) == 0, table.name
    assert client.events()[-1][1]["dbsUpdated"] == ["d"]


def test_abort_of_several(client: TxnClient) -> None:
    ids = client.open_many(4)
    client.commit(ids[0])
    aborted = client.store.abort_txns(AbortTxnsRequest(txn_ids=[*ids[:3], 99], errorCode=50001))
    assert aborted == ids[1:3]
    assert client.store.get_open_txns_info().open_txns[0].metaInfo == "abort by query command"


# Conflicts


def write_shared(client: TxnClient, operation: int, **where: str) -> int:
    """A writer that does not exclude others by lock."""
    txn_id = client.open()
    client.allocate([txn_id])
    client.lock(component(LockType.SHARED_WRITE, operation=operation, **where), txn_id=txn_id)
    return txn_id


@pytest.mark.parametrize("first", [DataOperationType.UPDATE, DataOperationType.DELETE])
@pytest.mark.parametrize("second", [DataOperationType.UPDATE, DataOperationType.DELETE])
def test_the_second_committer_loses(client: TxnClient, first: int, second: int) -> None:
    winner, loser = write_shared(client, first), write_shared(client, second)
    client.commit(winner, exclWriteEnabled=False)
    letters = {DataOperationType.UPDATE: "u", DataOperationType.DELETE: "d"}
    with pytest.raises(TxnAbortedException) as error:
        client.commit(loser, exclWriteEnabled=False)
    assert error.value.message == (
        f"Aborting [txnid:{loser},{loser}] due to a write conflict on d/t committed by "
        f"[txnid:{winner},{loser}] {letters[second]}/{letters[first]}"
    )
    assert [event for event, _ in client.events()][-2:] == ["COMMIT_TXN", "ABORT_TXN"]
    assert client.store.get_open_txns().open_txns == [loser]
    assert client.store.get_open_txns_info().open_txns[0].metaInfo == "write conflicts"


def test_what_is_no_conflict(client: TxnClient) -> None:
    committed = write_shared(client, DataOperationType.UPDATE)
    inserting = write_shared(client, DataOperationType.INSERT)
    elsewhere = write_shared(client, DataOperationType.UPDATE, table="u")
    in_partition = write_shared(client, DataOperationType.UPDATE, partition="p=1")
    client.commit(committed, exclWriteEnabled=False)
    later = write_shared(client, DataOperationType.UPDATE)
    for txn_id in (inserting, elsewhere, in_partition, later):
        client.commit(txn_id, exclWriteEnabled=False)


def test_writers_that_hold_exclusive_locks_do_not_conflict(client: TxnClient) -> None:
    first = client.open()
    second = client.open()
    client.lock(write_component(DataOperationType.UPDATE), txn_id=first)
    waiting = client.lock(write_component(DataOperationType.UPDATE), txn_id=second)
    client.commit(first)
    client.check(waiting.lockid)
    # It requests the lock, takes a new snapshot, and continues in the same transaction.
    assert client.store.get_latest_txnid_in_conflict(second) == first
    client.commit(second)


def test_clients_of_hive_3_do_not_know_the_flag(client: TxnClient) -> None:
    winner, loser = (write_shared(client, DataOperationType.UPDATE) for _ in range(2))
    client.commit(winner)
    with pytest.raises(TxnAbortedException):
        client.commit(loser)


def test_latest_transaction_in_conflict(client: TxnClient) -> None:
    observer = write_shared(client, DataOperationType.UPDATE)
    assert client.store.get_latest_txnid_in_conflict(observer) == 0
    others = [write_shared(client, DataOperationType.DELETE, table=table) for table in ("t", "u")]
    for txn_id in others:
        client.commit(txn_id, exclWriteEnabled=False)
    assert client.store.get_latest_txnid_in_conflict(observer) == others[0]


#: Per type: whether a change of rows is added to the write set, and how its completion is recorded (Hive's
#: `CommitTxnFunction`).
LEFT_BY_COMMIT = {
    TxnType.DEFAULT: (True, "Y"),
    TxnType.REPL_CREATED: (True, "Y"),
    TxnType.READ_ONLY: (False, None),
    TxnType.COMPACTION: (False, None),
    TxnType.MATER_VIEW_REBUILD: (True, "Y"),
    TxnType.SOFT_DELETE: (False, "N"),
    TxnType.REBALANCE_COMPACTION: (True, None),
}


def test_what_a_commit_leaves_for_others_by_type(client: TxnClient) -> None:
    assert LEFT_BY_COMMIT.keys() == TxnType._VALUES_TO_NAMES.keys()
    for txn_type, (joins, completion) in LEFT_BY_COMMIT.items():
        for operation in (DataOperationType.INSERT, DataOperationType.UPDATE):
            table = f"t{txn_type}_{operation}"
            txn_id = client.open(txn_type)
            client.lock(write_component(operation, table), txn_id=txn_id)
            client.commit(txn_id)
            changes = operation == DataOperationType.UPDATE
            joined = joins and (changes or not client.store.context.use_min_history_level)
            sets = [row for row in client.rows(WRITE_SET, "WS_TXNID", "WS_TABLE") if row[0] == txn_id]
            assert sets == [(txn_id, table)] * joined, TxnType._VALUES_TO_NAMES[txn_type]
            noted = client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TXNID", "CTC_UPDATE_DELETE")
            flag = completion if changes or completion is None else "N"
            expected = [] if flag is None else [(txn_id, flag)]
            assert [row for row in noted if row[0] == txn_id] == expected, TxnType._VALUES_TO_NAMES[txn_type]


@pytest.mark.parametrize("txn_type", [TxnType.DEFAULT, TxnType.REBALANCE_COMPACTION, TxnType.MATER_VIEW_REBUILD])
def test_an_update_that_waited_for_a_writer_learns_of_it_and_loses_without_a_new_snapshot(
    client: TxnClient, txn_type: int
) -> None:
    first, second = client.open(txn_type), client.open()
    client.lock(component(LockType.EXCL_WRITE, operation=DataOperationType.UPDATE), txn_id=first)
    waiting = client.lock(component(LockType.EXCL_WRITE, operation=DataOperationType.UPDATE), txn_id=second)
    assert waiting.state == LockState.WAITING
    client.allocate([second])
    client.commit(first)
    assert client.check(waiting.lockid) == LockState.ACQUIRED
    assert client.store.get_latest_txnid_in_conflict(second) == first
    with pytest.raises(TxnAbortedException):
        client.commit(second, exclWriteEnabled=False)


def test_a_rebalance_loses_against_an_update_that_committed_first(client: TxnClient) -> None:
    rebalance, writer = client.open(TxnType.REBALANCE_COMPACTION), client.open()
    for txn_id in (writer, rebalance):
        client.lock(component(LockType.SHARED_WRITE, operation=DataOperationType.UPDATE), txn_id=txn_id)
    client.commit(writer, exclWriteEnabled=False)
    with pytest.raises(TxnAbortedException):
        client.commit(rebalance, exclWriteEnabled=False)


def test_write_sets_keep_inserts_where_history_levels_do_not(client: TxnClient) -> None:
    txn_id, _ = client.write()
    client.commit(txn_id)
    assert client.count(WRITE_SET) == (0 if client.store.context.use_min_history_level else 1)


# What else a commit can contain


def test_key_value(client: TxnClient) -> None:
    table_id = client.make_table({"_meta_offset": "1", "other": "1"})

    def commit_with(key: str) -> None:
        client.commit(client.open(), keyValue=CommitTxnKeyValue(tableId=table_id, key=key, value="2"))

    commit_with("_meta_offset")
    for wrong in ("other", "_meta_unknown"):
        with pytest.raises(MetaException, match="Error updating key/value"):
            commit_with(wrong)
    assert client.rows(TABLE_PARAMS, "PARAM_KEY", "PARAM_VALUE") == [("_meta_offset", "2"), ("other", "1")]
    assert len(client.store.get_open_txns().open_txns) == 2


def replicated(client: TxnClient, source_ids: list[int]) -> list[int]:
    request = OpenTxnRequest(
        num_txns=len(source_ids),
        user="u",
        hostname="h",
        replPolicy="p",
        replSrcTxnIds=source_ids,
        txn_type=TxnType.REPL_CREATED,
    )
    return client.store.open_txns(request).txn_ids


def test_the_transactions_of_a_source_need_a_policy(client: TxnClient) -> None:
    request = OpenTxnRequest(num_txns=1, user="u", hostname="h", replSrcTxnIds=[101], txn_type=TxnType.REPL_CREATED)
    with pytest.raises(MetaException, match="send replPolicy"):
        client.store.open_txns(request)
    assert client.store.get_open_txns().open_txns == []


def test_what_was_committed_past_its_replication_stays_in_the_map(client: TxnClient) -> None:
    """As in Hive 4.0.1: only the replay that commits a transaction deletes the record of its origin."""
    [target] = replicated(client, [101])
    client.store.commit_txn(CommitTxnRequest(txnid=target))
    client.store.commit_txn(CommitTxnRequest(txnid=101, replPolicy="p", txn_type=TxnType.REPL_CREATED))
    assert client.store.get_replayed_txns_for_policy("p").replTxnMapEntry == {"101": str(target)}


def test_replayed_transactions(client: TxnClient) -> None:
    client.make_table({})
    targets = replicated(client, [101, 102])
    assert replicated(client, [101, 102]) == targets
    # A repeated event returns what is still open, as in Hive.
    assert replicated(client, [102, 103]) == targets[1:]
    assert client.store.get_replayed_txns_for_policy("p").replTxnMapEntry == {
        "101": str(targets[0]),
        "102": str(targets[1]),
    }
    request = CommitTxnRequest(
        txnid=101,
        replPolicy="p",
        txn_type=TxnType.REPL_CREATED,
        writeEventInfos=[WriteEventInfo(writeId=5, database="D", table="T", files="", partition="p=1")],
        replLastIdInfo=ReplLastIdInfo(database="d", lastReplId=42, table="t"),
    )
    client.store.commit_txn(request)
    client.store.commit_txn(request)
    assert client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TXNID", "CTC_TABLE", "CTC_WRITEID") == [(targets[0], "t", 5)]
    assert client.rows(DATABASE_PARAMS, "PARAM_KEY", "PARAM_VALUE") == [("repl.last.id", "42")]
    assert client.rows(TABLE_PARAMS, "PARAM_KEY", "PARAM_VALUE") == [("repl.last.id", "42")]
    assert [kind for kind, _ in client.events()][-3:] == ["ALTER_DATABASE", "ALTER_TABLE", "COMMIT_TXN"]
    for _ in range(2):
        client.store.abort_txn(AbortTxnRequest(txnid=102, replPolicy="p", txn_type=TxnType.REPL_CREATED))
    assert client.count(REPL_TXN_MAP) == 0
    assert client.store.get_open_txns().open_txns == [targets[1]]


@pytest.mark.parametrize("names", [("hive", "d", "t"), (" HIVE", "D ", "T"), (None, "@Hive#D", "t")])
def test_what_was_replicated_is_marked_however_it_is_spelled(
    client: TxnClient, names: tuple[str | None, str, str]
) -> None:
    client.make_table({})
    [target] = replicated(client, [101])
    catalog, database, table = names
    mark = ReplLastIdInfo(database=database, lastReplId=42, table=table, catalog=catalog)
    client.store.commit_txn(CommitTxnRequest(txnid=target, replLastIdInfo=mark))
    assert client.rows(DATABASE_PARAMS, "PARAM_KEY", "PARAM_VALUE") == [("repl.last.id", "42")]
    assert client.rows(TABLE_PARAMS, "PARAM_KEY", "PARAM_VALUE") == [("repl.last.id", "42")]


def test_a_replayed_write_to_a_table_without_partitions_is_one_to_the_table(client: TxnClient) -> None:
    """The log of writes, from which the request comes, has an empty name there (`WNL_PARTITION`)."""
    client.make_table({})
    [target] = replicated(client, [101])
    write = WriteEventInfo(writeId=5, database="d", table="t", files="", partition="")
    client.store.commit_txn(
        CommitTxnRequest(txnid=101, replPolicy="p", txn_type=TxnType.REPL_CREATED, writeEventInfos=[write])
    )
    assert client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TXNID", "CTC_PARTITION") == [(target, None)]


@pytest.mark.parametrize("number", [99, -1, 2**31 - 1, -(2**31)])
def test_a_number_that_names_no_type_is_none(client: TxnClient, number: int) -> None:
    """As Java reads it. Two such transactions, since several are committed differently than one."""
    ids = [client.open(number) for _ in range(3)]
    assert {kind for (kind,) in client.rows(TXNS, "TXN_TYPE")} - {None} == {TxnType.DEFAULT}
    client.commit(ids[0])
    ended = client.store.combined["commit_txn"].execute([CommitTxnRequest(txnid=one) for one in ids[1:]])
    assert ended == [None, None]
    assert [kind for kind, _ in client.events()] == ["OPEN_TXN"] * 3 + ["COMMIT_TXN"] * 3


def test_a_batch_is_replayed_again_after_part_of_it_has_ended(client: TxnClient) -> None:
    targets = replicated(client, [101, 102, 103])
    client.store.commit_txn(CommitTxnRequest(txnid=102, replPolicy="p", txn_type=TxnType.REPL_CREATED))
    assert replicated(client, [101, 102, 103]) == [targets[0], targets[2]]
    assert client.snapshot().high_watermark == targets[2]


def test_aborting_a_replicated_transaction_here_breaks_replication(client: TxnClient) -> None:
    """The database is the policy's, as in Hive, also before the transaction has a write id."""
    client.make_table({})
    request = OpenTxnRequest(1, "u", "h", replPolicy="D.*", replSrcTxnIds=[101], txn_type=TxnType.REPL_CREATED)
    (target,) = client.store.open_txns(request).txn_ids
    client.abort(target)
    assert client.rows(DATABASE_PARAMS, "DB_ID", "PARAM_KEY", "PARAM_VALUE") == [(7, "repl.incompatible", "true")]
    assert [kind for kind, _ in client.events()][-2:] == ["ALTER_DATABASE", "ABORT_TXN"]
    assert client.count(REPL_TXN_MAP) == 0


def test_what_replication_aborts_says_so(client: TxnClient) -> None:
    """Its clients send no reason, since the server determines it by the type (Hive 4.0.1, AbortTxnFunction)."""
    replicated(client, [101, 102])
    request = OpenTxnRequest(1, "u", "h", replPolicy="p")
    (own,) = client.store.open_txns(request).txn_ids
    client.store.abort_txn(AbortTxnRequest(101, replPolicy="p", txn_type=TxnType.REPL_CREATED))
    client.store.abort_txn(AbortTxnRequest(102, replPolicy="p"))  # from Hive 3, which has no types
    client.store.abort_txn(AbortTxnRequest(own, replPolicy="p", txn_type=TxnType.DEFAULT))
    replayed, itself = (f"Replication:{kind} replication transaction abort" for kind in ("replayed", "default"))
    reasons = [txn.metaInfo for txn in client.store.get_open_txns_info().open_txns]
    assert reasons == [replayed, replayed, itself]
    # None of those that replication opened for itself: they are no writes that another replication could repeat.
    assert [kind for kind, _ in client.events()] == ["OPEN_TXN", "ABORT_TXN", "ABORT_TXN"]


# Limits


def test_seeding(client: TxnClient) -> None:
    client.open()
    client.store.seed_txn_id(SeedTxnIdRequest(seedTxnId=2))
    assert client.open() == 2
    client.store.seed_txn_id(SeedTxnIdRequest(seedTxnId=1_000_000_000))
    assert client.open() == 1_000_000_000
    assert client.store.get_open_txns().open_txns == [1, 2, 1_000_000_000]
    with pytest.raises(MetaException, match="Invalid txnId seed 5, the highWaterMark is 1000000000"):
        client.store.seed_txn_id(SeedTxnIdRequest(seedTxnId=5))


def test_too_many_open_transactions(sqlite_client: TxnClient) -> None:
    clock = ManualClock()
    settings = Settings(transactions=TransactionSettings(max_open=10, max_open_batch=6))
    store = TxnStore(sqlite_client.database, MessageBuilder(), settings, clock=clock)
    client = TxnClient(store, sqlite_client.database)
    assert len(client.open_many(100)) == 6
    assert len(client.open_many(6)) == 6
    clock.advance(1.5)
    with pytest.raises(MetaException, match="Maximum allowed number of open transactions has been reached"):
        client.open()
    for txn_id in (1, 2, 3):
        client.commit(txn_id)
    clock.advance(1.5)
    with pytest.raises(MetaException):
        client.open()
    client.commit(4)
    clock.advance(1.5)
    client.open()
    with pytest.raises(MetaException, match="Invalid input for number of txns: 0"):
        client.open_many(0)


class SlowClock(ManualClock):
    """Each time it is read, some time has passed."""

    def monotonic_s(self) -> float:
        self.advance(0.6)
        return super().monotonic_s()


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_transactions_that_took_too_long_to_open_are_given_up(client: TxnClient) -> None:
    store = TxnStore(
        client.database,
        MessageBuilder(),
        Settings(transactions=TransactionSettings(open_timeout_ms=500)),
        clock=SlowClock(),
    )
    with pytest.raises(MetaException, match="OpenTxnTimeOut exceeded"):
        TxnClient(store, client.database).open_many(2)
    assert {state for _, state in client.rows(TXNS, "TXN_ID", "TXN_STATE")} == {"c", "a"}
    assert client.store.get_open_txns().min_open_txn is None


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_a_slow_moment_of_the_database_does_not_break_replication(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction aborted because it took too long to open is opened again: this does not mean that the target cannot
    follow its source, and must not be recorded as such."""
    client.make_table({})
    clock = ManualClock()
    store = TxnStore(client.database, MessageBuilder(), clock=clock)
    row_in_time = opening._row_of

    def row_late(request: OpenTxnRequest) -> dict[str, Any]:
        monkeypatch.setattr(opening, "_row_of", row_in_time)
        clock.advance(2.0)
        return row_in_time(request)

    monkeypatch.setattr(opening, "_row_of", row_late)
    request = OpenTxnRequest(2, "u", "h", replPolicy="d.*", replSrcTxnIds=[101, 102], txn_type=TxnType.REPL_CREATED)
    targets = store.open_txns(request).txn_ids
    assert client.count(DATABASE_PARAMS) == 0
    assert store.get_replayed_txns_for_policy("d.*").replTxnMapEntry == {"101": str(targets[0]), "102": str(targets[1])}
    states = dict(client.rows(TXNS, "TXN_ID", "TXN_STATE"))
    assert [states[one] for one in targets] == ["o", "o"]
    assert sorted(states[one] for one in states if one and one not in targets) == ["a", "a"]
    assert [kind for kind, _ in client.events()] == ["OPEN_TXN", "ABORT_TXN", "ABORT_TXN", "OPEN_TXN"]


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_a_repeated_opening_that_takes_long_gives_up_nothing(client: TxnClient) -> None:
    """The transactions have been open since the first attempt, and may have written."""
    client.make_table({})
    request = OpenTxnRequest(1, "u", "h", replPolicy="d.*", replSrcTxnIds=[101], txn_type=TxnType.REPL_CREATED)
    targets = client.store.open_txns(request).txn_ids
    slow = Settings(transactions=TransactionSettings(open_timeout_ms=500))
    store = TxnStore(client.database, MessageBuilder(), slow, clock=SlowClock())
    assert store.open_txns(request).txn_ids == targets
    assert client.store.get_open_txns().min_open_txn == targets[0]
    assert client.count(DATABASE_PARAMS) == 0


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_what_replication_opens_for_itself_is_given_up_without_an_event(client: TxnClient) -> None:
    slow = Settings(transactions=TransactionSettings(open_timeout_ms=500))
    store = TxnStore(client.database, MessageBuilder(), slow, clock=SlowClock())
    with pytest.raises(MetaException, match="OpenTxnTimeOut exceeded"):
        store.open_txns(OpenTxnRequest(1, "u", "h", replPolicy="d.*"))
    assert client.store.get_open_txns().min_open_txn is None
    assert client.events() == []


def test_time_out_of_replicated_transactions_is_longer(client: TxnClient) -> None:
    replicated(client, [5])
    client.open()
    client.age(10 * 86_400_000)
    assert client.store.give_up_timed_out().txns == 1
    client.age(2 * 86_400_000)
    assert client.store.give_up_timed_out().txns == 1
    assert client.store.get_open_txns().min_open_txn is None
    assert {one.metaInfo for one in client.store.get_open_txns_info().open_txns} == {"heartbeat time-out"}


def test_a_heartbeat_keeps_a_transaction(client: TxnClient) -> None:
    txn_id = client.open()
    client.age(299_000)
    assert client.store.give_up_timed_out().txns == 0
    client.change(update(TXNS).where(TXNS.c.TXN_ID == txn_id).values(TXN_LAST_HEARTBEAT=0))
    assert client.store.give_up_timed_out().txns == 1
    assert [event for event, _ in client.events()] == ["OPEN_TXN", "ABORT_TXN"]
