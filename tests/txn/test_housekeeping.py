"""What housekeeping deletes, and above all what it must not delete yet."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import delete, insert, update

from hms_cache.config import Settings
from hms_cache.config.sections import TransactionSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.schema import (
    AUX_TABLE,
    COMPLETED_TXN_COMPONENTS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXN_WRITE_NOTIFICATION_LOG,
    TXNS,
    WRITE_SET,
)
from hms_cache.store.transactions import housekeeping
from hms_cache.store.transactions.mutexes import Mutex
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionRequest,
    CompactionType,
    DataOperationType,
    LockState,
    TxnType,
)
from hms_cache.txn import ValidTxnList
from tests.manual_clock import ManualClock
from tests.txn.client import TxnClient, write_component


def test_rows_of_finished_transactions_go_but_the_highest(client: TxnClient) -> None:
    ids = client.open_many(5)
    for txn_id in ids[:4]:
        client.commit(txn_id)
    client.abort(ids[4])
    assert client.store.clean().txns == 0
    client.age(2000)
    assert client.store.clean().txns == 5
    assert client.rows(TXNS, "TXN_ID") == [(5,)]
    assert client.store.get_open_txns().txn_high_water_mark == 5
    assert client.open() == 6


def test_aborted_writers_stay_until_their_files_are_gone(client: TxnClient) -> None:
    aborted, _ = client.write()
    client.abort(aborted)
    client.commit(client.open())
    client.age(2000)
    client.store.clean()
    assert client.rows(TXNS, "TXN_ID", "TXN_STATE")[0] == (aborted, "a")
    assert client.rows(TXN_TO_WRITE_ID, "T2W_TXNID") == [(aborted,)]
    assert client.valid("d.t")[0].is_aborted(1)
    client.change(delete(TXN_COMPONENTS))
    client.store.clean()
    assert (aborted, "a") not in client.rows(TXNS, "TXN_ID", "TXN_STATE")


def test_write_ids_stay_while_a_reader_may_have_seen_them_open(client: TxnClient) -> None:
    writer, write_id = client.write()
    reader = client.open()
    snapshot = client.snapshot(reader)
    client.commit(writer)
    client.age(2000)
    for _ in range(2):
        client.store.clean()
    assert not client.valid("d.t", snapshot=snapshot)[0].is_valid(write_id)
    client.commit(reader)
    client.age(2000)
    for _ in range(2):
        client.store.clean()
    assert client.count(TXN_TO_WRITE_ID) == client.count(WRITE_SET) == 0
    assert client.valid("d.t")[0].is_valid(write_id)


def test_write_sets_stay_while_somebody_can_still_conflict(client: TxnClient) -> None:
    older = client.open()
    writer, _ = client.write(DataOperationType.UPDATE)
    client.commit(writer)
    client.age(2000)
    client.store.clean()
    assert client.count(WRITE_SET) == 1
    client.commit(older)
    client.store.clean()
    assert client.count(WRITE_SET) == 0


def test_what_a_long_transaction_kept_goes_by_a_limited_number_of_rows(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one was open, the write ids of all later ones remained: millions, which no database deletes within the time
    limit of a statement; the deletion was rolled back."""
    monkeypatch.setattr(housekeeping, "_BATCH_SIZE", 10)
    older = client.open()
    for _ in range(25):
        client.commit(client.write(DataOperationType.UPDATE)[0])
    client.age(2000)
    client.store.clean()
    assert client.count(TXN_TO_WRITE_ID) == client.count(WRITE_SET) == 25
    client.commit(older)
    client.age(2000)
    steps = []
    while not steps or not steps[-1].is_complete:
        steps.append(client.store._write(housekeeping.clean, client.store.context))
    assert len(steps) > 2
    assert max(one.write_ids for one in steps) == max(one.write_sets for one in steps) == 10
    client.store.clean()
    assert client.count(TXN_TO_WRITE_ID) == client.count(WRITE_SET) == 0


def test_what_was_committed_is_not_hidden_by_what_was_aborted_below_it(client: TxnClient) -> None:
    """Its write id is the higher one of the table, its transaction the older one: only the aborted one is kept."""
    committed, aborted = client.open_many(2)
    for txn_id in (aborted, committed):
        client.allocate([txn_id])
        client.lock(write_component(DataOperationType.INSERT), txn_id=txn_id)
    client.abort(aborted)
    client.commit(committed)
    before = client.valid("d.t")
    assert (before[0].is_valid(1), before[0].is_valid(2)) == (False, True)
    client.age(2000)
    for _ in range(2):
        client.store.clean()
    assert client.rows(TXNS, "TXN_ID", "TXN_STATE")[0] == (aborted, "a"), "its files have not been removed"
    assert client.valid("d.t") == before
    client.change(delete(TXN_COMPONENTS))
    client.commit(client.open())
    client.age(2000)
    for _ in range(2):
        client.store.clean()
    assert client.count(TXN_TO_WRITE_ID) == 0
    assert client.valid("d.t")[0].is_valid(2)


class Writers:
    """Transactions that wrote to some tables, in any order, and readers that began meanwhile."""

    def __init__(self, client: TxnClient, chance: random.Random, number: int) -> None:
        self._client = client
        self._chance = chance
        self._tables = [f"t{number}_{one}" for one in range(3)]
        self._owners: dict[str, list[int]] = {table: [] for table in self._tables}
        """Of the write ids 1, 2, … of each table."""
        self._committed: set[int] = set()
        self._readers: dict[int, tuple[ValidTxnList, frozenset[int]]] = {}
        """What each may see: as a snapshot of transactions, and as the ids of those that had been committed."""
        self._has_aborted_files = True
        self._left = client.open_many(8)
        for txn_id in chance.sample(self._left, len(self._left)):
            for table in chance.sample(self._tables, chance.randint(1, 3)):
                client.allocate([txn_id], table)
                client.lock(write_component(DataOperationType.INSERT, table), txn_id=txn_id)
                self._owners[table].append(txn_id)
        # Approximately the older ones first.
        self._left.sort(key=lambda txn_id: txn_id + chance.uniform(0, 4), reverse=True)

    def end_one(self) -> None:
        """A writer or a reader, if any remains."""
        client, chance = self._client, self._chance
        if self._readers and chance.random() < 0.5:
            reader = chance.choice(sorted(self._readers))
            del self._readers[reader]
            client.commit(reader)
        elif self._left:
            txn_id = self._left.pop()
            if chance.random() < 0.1:
                client.abort(txn_id)
            else:
                client.commit(txn_id)
                self._committed.add(txn_id)
            if chance.random() < 0.2:
                reader = client.open()
                self._readers[reader] = client.snapshot(reader), frozenset(self._committed)

    def end(self) -> None:
        """All of them; and the files of the aborted ones are removed."""
        while self._left or self._readers:
            self.end_one()
        self._client.change(delete(TXN_COMPONENTS))
        self._has_aborted_files = False

    def check(self) -> None:
        """Each reader sees what it saw before, and a new one everything that is committed."""
        for snapshot, seen in [*self._readers.values(), (self._client.snapshot(), frozenset(self._committed))]:
            found = self._client.valid(*(f"d.{table}" for table in self._tables), snapshot=snapshot)
            for table, valid in zip(self._tables, found, strict=True):
                for write_id, owner in enumerate(self._owners[table], start=1):
                    if owner in seen or self._has_aborted_files:
                        assert valid.is_valid(write_id) is (owner in seen), (table, write_id, owner, valid)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 3))])
def test_no_step_of_housekeeping_changes_what_readers_may_see(
    seed: int, client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order transactions got their write ids, and however few rows a step deletes."""
    chance = random.Random(seed)
    monkeypatch.setattr(housekeeping, "_TABLES_AT_ONCE", 2)
    early = 0
    for number in range(4):
        writers = Writers(client, chance, number)
        monkeypatch.setattr(housekeeping, "_BATCH_SIZE", chance.randint(1, 5))

        def step(writers: Writers = writers) -> int:
            writers.check()
            client.age(2000)
            cleaned = client.store._write(housekeeping.clean, client.store.context)
            assert cleaned.write_ids <= housekeeping._BATCH_SIZE
            writers.check()
            return cleaned.write_ids

        for _ in range(15):
            writers.end_one()
            early += step()
        writers.end()
        while client.count(TXN_TO_WRITE_ID):
            client.commit(client.open())
            step()
    assert early > 2


def test_completed_writes_are_thinned_out(client: TxnClient) -> None:
    def completed(table: str, write_id: int, changes: str) -> dict[str, object]:
        return {
            "CTC_TXNID": write_id,
            "CTC_DATABASE": "d",
            "CTC_TABLE": table,
            "CTC_WRITEID": write_id,
            "CTC_UPDATE_DELETE": changes,
        }

    rows = [completed("t", number, "Y" if number in (7, 9) else "N") for number in range(1, 201)]
    rows += [completed("u", number, "N") for number in range(1, 50)]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    assert client.store.clean().completed_components == 149
    left = client.rows(COMPLETED_TXN_COMPONENTS, "CTC_TABLE", "CTC_WRITEID")
    assert sorted(number for table, number in left if table == "t") == [9, *range(151, 201)]
    assert len([table for table, _ in left if table == "u"]) == 49
    assert client.store.clean().completed_components == 0


def test_old_write_notifications_go(client: TxnClient) -> None:
    now_s = int(client.store.context.clock.epoch_s())
    for number, age_s in enumerate((90_000, 100)):
        client.change(
            insert(TXN_WRITE_NOTIFICATION_LOG).values(
                WNL_ID=number,
                WNL_TXNID=number,
                WNL_WRITEID=1,
                WNL_DATABASE="d",
                WNL_TABLE="t",
                WNL_PARTITION="",
                WNL_TABLE_OBJ="",
                WNL_EVENT_TIME=now_s - age_s,
            )
        )
    assert client.store.clean().write_notifications == 1
    assert client.rows(TXN_WRITE_NOTIFICATION_LOG, "WNL_ID") == [(1,)]


def test_write_ids_stay_for_who_was_opened_before_the_setting_was_changed(client: TxnClient) -> None:
    """A reader that had seen a writer open treated its write id as valid after the next housekeeping."""
    database = client.database
    kept, not_kept = (
        TxnStore(
            database,
            MessageBuilder(),
            Settings(transactions=TransactionSettings(min_history_level=level)),
            clock=ManualClock(),
        )
        for level in ("on", "off")
    )
    before = TxnClient(kept, database)
    writer, write_id = before.write()
    reader = before.open()
    snapshot = before.snapshot(reader)
    before.commit(writer)
    client.age(2000)
    not_kept.clean()
    assert not before.valid("d.t", snapshot=snapshot)[0].is_valid(write_id)
    before.commit(reader)
    client.age(2000)
    not_kept.clean()
    assert client.count(TXN_TO_WRITE_ID) == 0


def test_write_ids_stay_for_who_was_opened_before_the_setting_was_switched_on(client: TxnClient) -> None:
    """What it saw was not recorded, and with the setting enabled, commits record no writes except changes of rows."""
    database = client.database
    not_kept, kept = (
        TxnStore(
            database,
            MessageBuilder(),
            Settings(transactions=TransactionSettings(min_history_level=level)),
            clock=ManualClock(),
        )
        for level in ("off", "on")
    )
    before, after = TxnClient(not_kept, database), TxnClient(kept, database)
    writer, write_id = before.write()
    reader = before.open()
    snapshot = before.snapshot(reader)
    after.commit(writer)
    client.age(2000)
    for _ in range(2):
        kept.clean()
    assert not after.valid("d.t", snapshot=snapshot)[0].is_valid(write_id)
    later, _ = after.write()
    after.commit(reader)
    after.commit(later)
    after.commit(after.open())
    client.age(2000)
    for _ in range(2):
        kept.clean()
    assert client.count(TXN_TO_WRITE_ID) == 0


@pytest.mark.parametrize("is_combined", [False, True])
@pytest.mark.parametrize("txn_type", [TxnType.DEFAULT, TxnType.COMPACTION, TxnType.REPL_CREATED, TxnType.READ_ONLY])
def test_a_commit_leaves_no_component_whatever_it_is_of(client: TxnClient, txn_type: int, is_combined: bool) -> None:
    """That of a compaction in a transaction of another type remained, and with it the transaction's row,
    permanently."""
    store = client.store
    entry = CompactionInfoStruct(
        store.compact2(CompactionRequest("d", "t", type=CompactionType.MAJOR)).id, "d", "t", highestWriteId=1
    )
    txn_id = client.open(txn_type)
    store.update_compactor_state(entry, txn_id)
    if is_combined:
        assert store.combined["commit_txn"].execute([CommitTxnRequest(txn_id), CommitTxnRequest(client.open())])
    else:
        client.commit(txn_id)
    assert client.count(TXN_COMPONENTS) == 0
    assert client.count(COMPLETED_TXN_COMPONENTS) == 0
    client.commit(client.open())
    client.age(2000)
    store.clean()
    assert (txn_id,) not in client.rows(TXNS, "TXN_ID")


def test_what_a_committed_transaction_left_goes_with_it(client: TxnClient) -> None:
    """Hive leaves the components of readers, and earlier versions left those of compactions."""
    committed, aborted = client.open_many(2)
    client.commit(committed)
    client.abort(aborted)
    names = {"TC_DATABASE": "d", "TC_TABLE": "t", "TC_OPERATION_TYPE": "c", "TC_WRITEID": 1}
    client.change(insert(TXN_COMPONENTS).values([{"TC_TXNID": one, **names} for one in (committed, aborted)]))
    client.commit(client.open())
    client.age(2000)
    client.store.clean()
    assert client.rows(TXN_COMPONENTS, "TC_TXNID") == [(aborted,)]
    assert committed not in [txn_id for (txn_id,) in client.rows(TXNS, "TXN_ID")]


def test_rebuild_locks_of_dead_transactions_go(client: TxnClient) -> None:
    store = client.store
    alive, silent, ended = client.open_many(3)
    for txn_id, view in ((alive, "v1"), (silent, "v2"), (ended, "v3")):
        assert store.get_lock_materialization_rebuild("D", view, txn_id).state == LockState.ACQUIRED
    assert store.get_lock_materialization_rebuild("d", "V1", silent).state == LockState.NOT_ACQUIRED
    assert store.get_lock_materialization_rebuild("d", "v1", alive).state == LockState.ACQUIRED
    client.abort(ended)
    lock = MATERIALIZATION_REBUILD_LOCKS
    client.change(update(lock).where(lock.c.MRL_TXN_ID != ended).values(MRL_LAST_HEARTBEAT=0))
    assert store.heartbeat_lock_materialization_rebuild("d", "v1", alive)
    assert not store.heartbeat_lock_materialization_rebuild("d", "v9", alive)
    # As in Hive (`ReleaseMaterializationRebuildLocks`): while a rebuild may still be committed, there is no other.
    assert store.give_up_timed_out().rebuild_locks == 1
    assert client.rows(lock, "MRL_TXN_ID") == [(alive,), (silent,)]
    assert store.get_lock_materialization_rebuild("d", "v2", alive).state == LockState.NOT_ACQUIRED
    client.change(update(TXNS).where(TXNS.c.TXN_ID == silent).values(TXN_LAST_HEARTBEAT=1))
    given_up = store.give_up_timed_out()
    assert (given_up.txns, given_up.rebuild_locks) == (1, 1)
    assert client.rows(lock, "MRL_TXN_ID") == [(alive,)]


@pytest.mark.parametrize("end", ["commit", "abort", "forgotten"])
def test_a_view_is_rebuilt_anew_after_a_rebuild_that_is_over(client: TxnClient, end: str) -> None:
    """A request between its end and the next housekeeping got the reply that another one rebuilds the view."""
    store = client.store
    first, second = client.open_many(2)
    assert store.get_lock_materialization_rebuild("d", "v", first).state == LockState.ACQUIRED
    if end == "commit":
        client.commit(first)  # without a type, as Hive 3 opens it
    else:
        client.abort(first)
    if end == "forgotten":
        client.change(delete(TXNS).where(TXNS.c.TXN_ID == first))
    assert store.get_lock_materialization_rebuild("d", "v", second).state == LockState.ACQUIRED
    assert client.rows(MATERIALIZATION_REBUILD_LOCKS, "MRL_TXN_ID") == [(second,)]
    assert not store.heartbeat_lock_materialization_rebuild("d", "v", first)
    third = client.open()
    assert store.get_lock_materialization_rebuild("d", "v", third).state == LockState.NOT_ACQUIRED
    assert store.get_lock_materialization_rebuild("d", "w", second).state == LockState.NOT_ACQUIRED, "it has one row"
    assert store.get_lock_materialization_rebuild("d", "w", third).state == LockState.ACQUIRED


def test_each_kind_of_work_holds_its_mutex(client: TxnClient) -> None:
    client.store.clean()
    client.store.give_up_timed_out()
    client.store.initiate_compactions("here")
    assert {name for name, _ in client.rows(AUX_TABLE, "MT_KEY1", "MT_KEY2")} >= {
        Mutex.TXN_CLEANER,
        Mutex.HOUSEKEEPER,
        Mutex.INITIATOR,
    }


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_transactions_saw_is_forgotten_when_they_are_over_whatever_the_setting_was(
    client: TxnClient, is_kept: bool
) -> None:
    """They were opened with the settings enabled, and ended by a server, Hive's or ours, that has them disabled."""
    writer, _ = client.write()
    client.commit(writer)
    over, still_open = client.open(), client.open()
    client.commit(over)
    for txn_id in (over, still_open):
        client.change(delete(MIN_HISTORY_LEVEL).where(MIN_HISTORY_LEVEL.c.MHL_TXNID == txn_id))
        client.change(insert(MIN_HISTORY_LEVEL).values(MHL_TXNID=txn_id, MHL_MIN_OPEN_TXNID=txn_id))
        values = {"MH_TXNID": txn_id, "MH_DATABASE": "d", "MH_TABLE": "t", "MH_WRITEID": 1}
        client.change(insert(MIN_HISTORY_WRITE_ID).values(values))
    settings = {"min_history_level": "on" if is_kept else "off", "min_history_write_id": is_kept}
    store = TxnStore(client.database, MessageBuilder(), Settings(transactions=settings), clock=ManualClock())
    client.age(2000)
    for _ in range(2):
        store.clean()
    assert client.rows(MIN_HISTORY_LEVEL, "MHL_TXNID") == [(still_open,)]
    assert client.rows(MIN_HISTORY_WRITE_ID, "MH_TXNID") == [(still_open,)]
    assert client.rows(TXNS, "TXN_ID") == [(still_open,)]
    client.commit(still_open)
    client.age(2000)
    for _ in range(2):
        store.clean()
    assert client.rows(TXN_TO_WRITE_ID, "T2W_TXNID") == []
