"""The compaction queue from request to history."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from hms_cache.config import Settings
from hms_cache.config.sections import CompactionSettings
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.store.compactions import compaction_listing, initiator
from hms_cache.store.engine.database import Database
from hms_cache.store.schema import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    CTLGS,
    DATABASE_PARAMS,
    DBS,
    TAB_COL_STATS,
    TABLE_PARAMS,
    TBLS,
    TXN_COMPONENTS,
)
from hms_cache.store.transactions.queued_drops import from_counted_map, to_counted_map
from hms_cache.store.txn_store import TxnStore
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortCompactionRequest,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    LockType,
    MetaException,
    ShowCompactRequest,
    TxnType,
)
from tests.txn.cleaner import ready_to_clean
from tests.txn.client import TxnClient, component, counted_statements

H = COMPLETED_COMPACTIONS


def ask(client: TxnClient, table: str = "t", partition: str | None = None, **other: object) -> CompactionResponse:
    fields = {"type": CompactionType.MAJOR, **other}
    return client.store.compact2(CompactionRequest(dbname="D", tablename=table, partitionname=partition, **fields))


def take(client: TxnClient, worker: str = "worker-1", pool: str | None = None) -> CompactionInfoStruct | None:
    request = FindNextCompactRequest(workerId=worker, workerVersion="4.0.1", poolName=pool)
    return client.store.find_next_compact2(request).ci


def shown(client: TxnClient, **conditions: object) -> list[tuple[int, str]]:
    answer = client.store.show_compact(ShowCompactRequest(**conditions))
    return [(one.id, one.state) for one in answer.compacts]


def test_from_request_to_history(client: TxnClient) -> None:
    store = client.store
    writer, write_id = client.write()
    client.commit(writer)
    aborted, aborted_id = client.write()
    client.abort(aborted)
    requested = ask(client, runas="u", properties={"a": "b"}, initiatorId="i", initiatorVersion="4")
    assert (requested.accepted, requested.state) == (True, "initiated")
    assert shown(client) == [(requested.id, "initiated")]
    (waiting,) = store.show_compact(ShowCompactRequest()).compacts
    assert (waiting.txnId, waiting.nextTxnId, waiting.commitTime, waiting.hightestTxnId) == (0, 0, 0, 0), "not absent"
    again = ask(client)
    assert (again.accepted, again.state, again.id) == (False, "refused", -1)
    assert again.errormessage == f"Compaction is already scheduled with state='initiated' and id={requested.id}"

    entry = take(client)
    assert entry is not None
    assert (entry.id, entry.dbname, entry.tablename, entry.type) == (requested.id, "d", "t", CompactionType.MAJOR)
    assert (entry.runas, entry.properties, entry.workerId) == ("u", "1:1:a1:b", "worker-1")
    assert take(client) is None

    compactor = client.open(TxnType.COMPACTION)
    entry.highestWriteId, entry.runas = aborted_id, "owner"
    store.update_compactor_state(entry, compactor)
    assert client.rows(COMPACTION_QUEUE, "CQ_RUN_AS", "CQ_TXN_ID") == [("owner", compactor)], "as the worker says"
    store.set_hadoop_jobid("job_1", entry.id)
    reader = client.open()
    client.lock(component(LockType.SHARED_READ), txn_id=reader)
    store.mark_compacted(entry)
    client.commit(compactor)
    logged = client.events()[-1]
    assert logged[0] == "COMMIT_COMPACTION_EVENT"
    assert (logged[1]["compactionId"], logged[1]["type"], logged[1]["tableName"]) == (entry.id, "MAJOR", "t")
    assert shown(client) == [(requested.id, "ready for cleaning")]
    latest = store.get_latest_committed_compaction_info(
        GetLatestCommittedCompactionInfoRequest(dbname="D", tablename="T")
    )
    # As they are stored, whatever the form of the request.
    assert [(one.id, one.dbname, one.tablename) for one in latest.compactions] == [(requested.id, "d", "t")]

    client.age(2000)
    assert ready_to_clean(store) == []
    client.commit(reader)
    assert [one.id for one in ready_to_clean(store)] == [requested.id]
    client.change(update(COMPACTION_QUEUE).values(CQ_COMMIT_TIME=0))
    (cleaning,) = ready_to_clean(store, retention_ms=1000)
    store.mark_cleaned(cleaning)
    # Its client may not have received the reply.
    store.mark_cleaned(cleaning)
    assert shown(client) == [(requested.id, "succeeded")]
    columns = ("CC_STATE", "CC_HADOOP_JOB_ID", "CC_HIGHEST_WRITE_ID", "CC_TXN_ID", "CC_WORKER_ID")
    assert client.rows(H, *columns) == [("s", "job_1", aborted_id, compactor, None)]
    for table in (COMPACTION_QUEUE, COMPLETED_TXN_COMPONENTS, TXN_COMPONENTS):
        assert client.count(table) == 0, table.name
    assert write_id < aborted_id
    assert (
        client.store.get_latest_committed_compaction_info(
            GetLatestCommittedCompactionInfoRequest(dbname="d", tablename="t", lastCompactionId=requested.id)
        ).compactions
        == []
    )


def test_a_reader_that_announced_its_write_ids_is_waited_for(client: TxnClient) -> None:
    ids = client.open_many(3)
    client.allocate(ids)
    for txn_id in ids:
        client.commit(txn_id)
    requested = ask(client)
    entry = take(client)
    assert entry is not None
    entry.highestWriteId = 3
    compactor = client.open(TxnType.COMPACTION)
    client.store.update_compactor_state(entry, compactor)
    client.store.mark_compacted(entry)
    client.commit(compactor)
    late_reader = client.open()
    client.age(2000)
    assert [one.id for one in ready_to_clean(client.store)] == [requested.id]
    client.store.add_write_ids_to_min_history(late_reader, {"d.t": 3})
    assert ready_to_clean(client.store) == []
    client.store.add_write_ids_to_min_history(late_reader, {"d.t": 4, "d.u": 1})
    assert [one.id for one in ready_to_clean(client.store)] == [requested.id]


@pytest.mark.parametrize("method", ["mark_failed", "mark_refused"])
@pytest.mark.parametrize("start", [None, 0, 5])
def test_what_was_never_queued_begins_when_it_ends(client: TxnClient, method: str, start: int | None) -> None:
    # Hive's metastores delete an entry from the history if its start is long ago, and take an absent one for 0.
    entry = CompactionInfoStruct(0, "d", "t", None, CompactionType.MINOR, start=start)
    getattr(client.store, method)(entry)
    ((stored, end),) = client.rows(H, "CC_START", "CC_END")
    assert end - 60_000 < stored <= end  # PostgreSQL reads the clock for each
    (listed,) = client.store.show_compact(ShowCompactRequest()).compacts
    assert listed.start == stored


def test_failures_refusals_and_withdrawals(client: TxnClient) -> None:
    store = client.store
    waiting, working, failing, refused = (ask(client, table).id for table in ("a", "b", "c", "d"))
    store.abort_compactions(AbortCompactionRequest(compactionIds=[waiting]))
    entries = {entry.id: entry for entry in (take(client), take(client), take(client)) if entry is not None}
    assert sorted(entries) == [working, failing, refused]
    entries[failing].errorMessage = "out of luck"
    store.mark_failed(entries[failing])
    store.mark_refused(entries[refused])
    answer = store.abort_compactions(AbortCompactionRequest(compactionIds=[working, 99])).abortedcompacts
    assert (answer[working].status, answer[99].status) == ("Error", "Error")
    assert answer[working].message == "Error while aborting compaction as compaction is in state-working"
    assert answer[99].message == "No Such Compaction Id Available"
    assert shown(client, order="CC_ID") == [
        (waiting, "aborted"),
        (working, "working"),
        (failing, "failed"),
        (refused, "refused"),
    ]
    messages = dict(client.rows(H, "CC_STATE", "CC_ERROR_MESSAGE"))
    assert messages == {"x": "Compaction Aborted by Abort Comapction request.", "f": "out of luck", "c": None}
    with pytest.raises(MetaException):
        store.mark_failed(entries[failing])
    with pytest.raises(MetaException):
        store.mark_cleaned(entries[failing])
    with pytest.raises(MetaException):
        store.abort_compactions(AbortCompactionRequest(compactionIds=[]))
    never_queued = CompactionInfoStruct(
        id=0, dbname="d", tablename="e", type=CompactionType.MINOR, state="a", errorMessage="no table"
    )
    store.mark_failed(never_queued)
    assert "did not initiate" in {state for _, state in shown(client)}
    # Nor those that Hive's initiator reports only as failed.
    never_queued.state, never_queued.tablename = None, "f"
    store.mark_failed(never_queued)
    assert [state for _, state in shown(client, tbName="f")] == ["did not initiate"]
    # An unknown value is not 0, the first time and the first transaction.
    unknown = ("CC_START", "CC_HIGHEST_WRITE_ID", "CC_TXN_ID", "CC_NEXT_TXN_ID", "CC_COMMIT_TIME")
    kept = {row[0]: row[1:] for row in client.rows(H, "CC_STATE", *unknown)}
    assert kept["a"][1:] == kept["f"][1:] == kept["c"][1:] == kept["x"][1:] == (None,) * 4
    # The fields of an entry that was never queued are stored, as in Hive.
    told = CompactionInfoStruct(0, "d", "g", None, CompactionType.MAJOR, highestWriteId=4, poolname="p")
    store.mark_refused(told)
    (shown_entry,) = store.show_compact(ShowCompactRequest(tbName="g")).compacts
    assert (shown_entry.state, shown_entry.poolName, shown_entry.hightestTxnId) == ("refused", "p", 4)


def test_show_selects_and_orders(client: TxnClient) -> None:
    first = ask(client, "a", poolName="p").id
    second = ask(client, "b", "P=1", type=CompactionType.MINOR).id
    take(client)
    assert shown(client) == [(second, "working"), (first, "initiated")]
    assert shown(client, order='"CC_ID" ASC') == [(first, "initiated"), (second, "working")]
    assert shown(client, order="table desc, CC_ID") == [(second, "working"), (first, "initiated")]
    assert shown(client, limit=1) == [(second, "working")]
    pools = {element.id: element.poolName for element in client.store.show_compact(ShowCompactRequest()).compacts}
    assert pools == {first: "p", second: "default"}
    for conditions in ({"dbName": "d", "tbName": "A"}, {"poolName": "p"}, {"state": "initiated"}, {"id": first}):
        assert shown(client, **conditions) == [(first, "initiated")], conditions
    for conditions in ({"partName": "p=1"}, {"poolName": "default"}, {"state": "w"}, {"type": CompactionType.MINOR}):
        assert shown(client, **conditions) == [(second, "working")], conditions
    assert shown(client, order="table desc, table, CC_ID") == [(second, "working"), (first, "initiated")]
    for order in ("1; DROP TABLE TXNS", "CC_NO_SUCH"):
        with pytest.raises(MetaException, match="cannot be ordered by"):
            shown(client, order=order)


@pytest.mark.parametrize(
    ("order", "max_read"),
    [
        (None, 5),
        *(
            (f'"CC_{name}"\t{way}', 5)
            for name in ("ID", "START", "END", "COMMIT_TIME", "TXN_ID")
            for way in ("ASC", "DESC")
        ),
        ("CC_CLEANER_START desc, CC_NEXT_TXN_ID, CC_HIGHEST_WRITE_ID desc, CC_ENQUEUE_TIME", 5),
        # Databases do not agree about the order of texts.
        ("CC_STATE, CC_ID desc", 63),
    ],
)
def test_the_first_of_many_are_not_looked_for_among_all(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch, order: str | None, max_read: int
) -> None:
    numbers = random.Random(1)
    columns = ("START", "END", "COMMIT_TIME", "ENQUEUE_TIME", "TXN_ID", "NEXT_TXN_ID", "HIGHEST_WRITE_ID")
    for number in range(3):
        ask(client, f"t{number}")
    take(client)
    rows = [
        {
            "CC_ID": number,
            "CC_DATABASE": "d",
            "CC_TABLE": "t",
            "CC_STATE": numbers.choice("sf"),
            "CC_TYPE": "a",
            **{f"CC_{column}": numbers.choice([None, 0, 1, 2, 3]) for column in columns},
        }
        for number in range(10, 70)
    ]
    client.change(insert(H).values(rows))
    everything = shown(client, order=order)
    assert len(everything) == 63
    sort, read = compaction_listing._sort, []

    def counted(rows: list[Any], columns: Mapping[str, bool]) -> None:
        read.append(len(rows))
        sort(rows, columns)

    monkeypatch.setattr(compaction_listing, "_sort", counted)
    assert shown(client, order=order, limit=5) == everything[:5]
    assert read == [max_read]
    assert shown(client, order=order, limit=64) == everything


def test_a_long_order_is_no_more_work_than_one_that_names_each_column(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [ask(client, f"t{number}").id for number in range(10)]
    looks = [0]
    sort_key = compaction_listing._sort_key

    def counted(value: object) -> tuple[bool, object]:
        looks[0] += 1
        return sort_key(value)

    monkeypatch.setattr(compaction_listing, "_sort_key", counted)
    assert shown(client, order=",".join(["CC_STATE", "CC_ID desc"] * 5_000)) == [
        (one, "initiated") for one in ids[::-1]
    ]
    assert looks[0] <= 2 * len(ids)


def test_cleaning_up_to_an_unknown_write_id_forgets_no_aborted_writer(client: TxnClient) -> None:
    client.abort(client.write()[0])
    requested = ask(client)
    client.store.mark_compacted(asked_entry := CompactionInfoStruct(requested.id, "d", "t", type=CompactionType.MAJOR))
    client.store.mark_cleaned(asked_entry)
    assert client.count(TXN_COMPONENTS) == 1
    client.age(600_000)
    client.open()
    client.store.clean()
    assert not client.valid("d.t")[0].is_valid(1)


@pytest.mark.parametrize("partition", [None, "p=1"])
def test_a_compaction_makes_the_retries_of_aborts_needless(client: TxnClient, partition: str | None) -> None:
    kinds = {"other": ("u", None), "whole": ("t", None), "same": ("t", "p=1"), "beside": ("t", "p=2")}
    for number, (table, of) in enumerate(kinds.values()):
        names = {"CQ_DATABASE": "d", "CQ_TABLE": table, "CQ_PARTITION": of}
        client.change(insert(COMPACTION_QUEUE).values(CQ_ID=100 + number, CQ_TYPE="c", CQ_STATE="r", **names))
    requested = ask(client, "v")
    entry = CompactionInfoStruct(requested.id, "d", "t", partition, type=CompactionType.MAJOR, highestWriteId=1)
    client.store.mark_cleaned(entry)
    left = [kind for number, kind in enumerate(kinds) if (100 + number,) in client.rows(COMPACTION_QUEUE, "CQ_ID")]
    assert left == (["other"] if partition is None else ["other", "whole", "beside"])
    # One finished retry says nothing about others.
    entry = CompactionInfoStruct(100, "d", "u", type=CompactionType.ABORT_TXN_CLEANUP)
    client.change(insert(COMPACTION_QUEUE).values(CQ_ID=200, CQ_DATABASE="d", CQ_TABLE="u", CQ_TYPE="c", CQ_STATE="r"))
    client.store.mark_cleaned(entry)
    assert {(200,)} <= set(client.rows(COMPACTION_QUEUE, "CQ_ID")) and not client.rows(H, "CC_ID")[1:]


def test_the_lowest_open_write_is_told_above_aborted_ones(client: TxnClient) -> None:
    for _ in range(2):
        client.abort(client.write()[0])
    _, open_id = client.write()
    (found,) = client.valid("d.t")
    assert (found.high_watermark, found.invalid, found.min_open_write_id) == (1, (1,), open_id)
    requested = ask(client)
    assert requested.accepted
    client.change(update(COMPACTION_QUEUE).values(CQ_STATE="r", CQ_HIGHEST_WRITE_ID=open_id - 1))
    # Everything that can be compacted is already waiting for the cleaner.
    assert not ask(client).accepted


def test_pools(client: TxnClient) -> None:
    pooled, plain = ask(client, "a", poolName="p").id, ask(client, "b").id
    assert (taken := take(client)) is not None and taken.id == plain
    assert take(client) is None
    assert (taken := take(client, pool="p")) is not None and taken.id == pooled
    overdue = ask(client, "c", poolName="p").id
    client.change(update(COMPACTION_QUEUE).values(CQ_ENQUEUE_TIME=0))
    assert (taken := take(client)) is not None and taken.id == overdue
    with pytest.raises(MetaException):
        take(client, worker="")


def test_entries_of_lost_workers_go_back_and_history_is_short(client: TxnClient) -> None:
    lost = ask(client, "lost").id
    take(client)
    client.change(update(COMPACTION_QUEUE).values(CQ_START=0))
    for number in range(6):
        for state in "sf":
            client.change(
                insert(H).values(
                    CC_ID=100 + 10 * number + (state == "f"),
                    CC_DATABASE="d",
                    CC_TABLE="t",
                    CC_STATE=state,
                    CC_TYPE="a",
                )
            )
    assert client.store.keep_compactions() == 1 + 6
    assert (taken := take(client)) is not None and taken.id == lost
    assert {number for (number,) in client.rows(H, "CC_ID")} == {130, 131, 140, 141, 150, 151}
    assert client.store.keep_compactions() == 0


def test_lists_are_longer_than_the_parameters_of_a_statement(client: TxnClient) -> None:
    """Of which PostgreSQL takes 65,535, and SQLite 250,000."""
    done, waiting = ask(client, "t", "p=1"), ask(client, "t", "p=2")
    client.store.mark_compacted(entry := CompactionInfoStruct(done.id, "d", "t", "p=1", type=CompactionType.MAJOR))
    names = [f"p={number}" for number in range(300_000)]
    for some, expected in ((names, [entry.id]), (names[2:], []), (names[:1_001], [entry.id]), (names[:2], [entry.id])):
        request = GetLatestCommittedCompactionInfoRequest("d", "t", some)
        assert [one.id for one in client.store.get_latest_committed_compaction_info(request).compactions] == expected
    ids = list(range(1, 300_001))
    answer = client.store.abort_compactions(AbortCompactionRequest(ids)).abortedcompacts
    assert [answer[one.id].status for one in (done, waiting)] == ["Error", "Success"]
    assert len(answer) == len(ids)


def test_old_failures_are_forgotten_once_one_has_succeeded(client: TxnClient) -> None:
    """As in Hive (PurgeCompactionHistoryFunction): a major compaction supersedes all, a minor one only minor ones."""
    day_ms = 86_400_000
    now_ms = int(time.time() * 1000)

    def ended(number: int, partition: str, state: str, kind: str, days: int) -> dict[str, object]:
        begun = now_ms - days * day_ms
        names = {"CC_DATABASE": "d", "CC_TABLE": "t", "CC_PARTITION": partition}
        return {"CC_ID": number, **names, "CC_STATE": state, "CC_TYPE": kind, "CC_START": begun, "CC_END": begun}

    rows = [
        ended(1, "p=minor", "f", "i", 9),
        ended(2, "p=minor", "f", "a", 9),
        ended(3, "p=minor", "c", "i", 6),
        ended(4, "p=minor", "s", "i", 1),
        ended(5, "p=minor", "a", "i", 9),
        ended(11, "p=major", "f", "i", 9),
        ended(12, "p=major", "a", "a", 9),
        ended(13, "p=major", "x", "i", 9),
        ended(14, "p=major", "s", "a", 30),
        ended(21, "p=none", "f", "i", 900),
        ended(22, "p=none", "c", "a", 900),
    ]
    client.change(insert(H).values(rows))
    assert client.store.keep_compactions() == 4
    assert {number for (number,) in client.rows(H, "CC_ID")} == {2, 3, 4, 5, 14, 21, 22}


def test_columns_with_statistics(client: TxnClient) -> None:
    client.make_table()
    names = {"CAT_NAME": "hive", "DB_NAME": "d", "TABLE_NAME": "t", "COLUMN_TYPE": "int"}
    for number, column in enumerate(("b", "a")):
        client.change(
            insert(TAB_COL_STATS).values(
                CS_ID=number, TBL_ID=70, COLUMN_NAME=column, NUM_NULLS=0, LAST_ANALYZED=0, ENGINE="hive", **names
            )
        )
    entry = CompactionInfoStruct(id=1, dbname="D", tablename="T", type=CompactionType.MAJOR)
    assert client.store.find_columns_with_stats(entry) == ["a", "b"]
    entry.partitionname = "p=1"
    assert client.store.find_columns_with_stats(entry) == []


def test_columns_are_those_of_the_table_in_the_default_catalog(client: TxnClient) -> None:
    """Only these are compacted. A worker that gets others fails to compute statistics of any."""
    client.make_table()
    client.change(insert(CTLGS).values(CTLG_ID=8, NAME="spark", LOCATION_URI="x"))
    client.change(insert(DBS).values(DB_ID=8, DB_LOCATION_URI="x", NAME="d", CTLG_NAME="spark"))
    times = {"CREATE_TIME": 0, "LAST_ACCESS_TIME": 0, "RETENTION": 0}
    client.change(insert(TBLS).values(TBL_ID=80, DB_ID=8, TBL_NAME="t", **times))
    names = {"DB_NAME": "d", "TABLE_NAME": "t", "COLUMN_TYPE": "int", "ENGINE": "hive"}
    for table_id, catalog, column in ((70, "hive", "a"), (80, "spark", "b")):
        numbers = {"CS_ID": table_id, "TBL_ID": table_id, "NUM_NULLS": 0, "LAST_ANALYZED": 0}
        client.change(insert(TAB_COL_STATS).values(CAT_NAME=catalog, COLUMN_NAME=column, **names, **numbers))
    entry = CompactionInfoStruct(id=1, dbname="d", tablename="t", type=CompactionType.MAJOR)
    assert client.store.find_columns_with_stats(entry) == ["a"]


def test_metrics(client: TxnClient) -> None:
    metric = CompactionMetricsMetricType.NUM_DELTAS
    report = client.store.update_compaction_metrics_data
    assert report(CompactionMetricsDataStruct("D", "T", None, metric, 50, 1, 10))
    assert report(CompactionMetricsDataStruct("d", "t", None, metric, 60, 1, 10))
    assert report(CompactionMetricsDataStruct("d", "t", "p=1", metric, 5, 1, 10))
    columns = ("CMC_PARTITION", "CMC_METRIC_TYPE", "CMC_METRIC_VALUE", "CMC_VERSION")
    assert client.rows(COMPACTION_METRICS_CACHE, *columns) == [(None, "NUM_DELTAS", 60, 2)]
    # One that has just reached its threshold counts, as in Hive.
    assert report(CompactionMetricsDataStruct("d", "t", None, metric, 10, 1, 10))
    assert client.rows(COMPACTION_METRICS_CACHE, *columns) == [(None, "NUM_DELTAS", 10, 3)]
    assert report(CompactionMetricsDataStruct("d", "t", None, metric, 9, 1, 10))
    assert client.count(COMPACTION_METRICS_CACHE) == 0
    report(CompactionMetricsDataStruct("d", "t", None, metric, 50, 1, 10))
    client.store.remove_compaction_metrics_data(CompactionMetricsDataRequest("d", "t", None, metric))
    assert client.count(COMPACTION_METRICS_CACHE) == 0


def write_times(client: TxnClient, count: int, table: str = "t") -> None:
    for _ in range(count):
        client.commit(client.write(table=table)[0])


def test_many_writes_start_a_minor_compaction(client: TxnClient) -> None:
    client.make_table()
    write_times(client, 10)
    assert client.store.initiate_compactions("here") == []
    write_times(client, 1)
    write_times(client, 11, "no_such_table")
    (started,) = client.store.initiate_compactions("here")
    entry = take(client)
    assert entry is not None
    assert (entry.id, entry.tablename, entry.type) == (started, "t", CompactionType.MINOR)
    assert client.store.initiate_compactions("here") == []


@pytest.mark.parametrize(("own", "needed"), [("3", 4), ("0", 1), ("12", 13), ("many", 11), ("-1", 11), (None, 11)])
def test_a_table_says_after_how_many_writes_it_is_compacted(client: TxnClient, own: str | None, needed: int) -> None:
    """As in Hive's initiator. A value that is not a number is ignored."""
    client.make_table({"compactorthreshold.hive.compactor.delta.num.threshold": own} if own is not None else None)
    write_times(client, needed - 1)
    assert client.store.initiate_compactions("here") == []
    write_times(client, 1)
    assert len(client.store.initiate_compactions("here")) == 1


@pytest.mark.parametrize("setting", ["common", "own"])
def test_housekeeping_leaves_the_writes_that_are_counted(client: TxnClient, setting: str) -> None:
    """Those of a table are thinned out while it is not compacted, but never below its threshold."""
    settings = Settings(compactions={"delta_count_threshold": 120} if setting == "common" else {})
    store = TxnStore(client.database, MessageBuilder(), settings)
    client.make_table({"compactorthreshold.hive.compactor.delta.num.threshold": "120"} if setting == "own" else None)

    def complete(write_ids: range) -> None:
        common = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_UPDATE_DELETE": "N"}
        rows = [{**common, "CTC_TXNID": number, "CTC_WRITEID": number} for number in write_ids]
        client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))

    complete(range(1, 121))
    assert store.clean().completed_components == 0
    assert store.initiate_compactions("here") == []
    complete(range(121, 201))
    assert store.clean().completed_components == 79
    assert len(store.initiate_compactions("here")) == 1


def test_an_old_abort_starts_a_major_compaction(client: TxnClient) -> None:
    client.make_table()
    client.abort(client.write()[0])
    assert client.store.initiate_compactions("here") == []
    client.age(13 * 3_600_000)
    (started,) = client.store.initiate_compactions("here")
    entry = take(client)
    assert entry is not None
    assert (entry.id, entry.type) == (started, CompactionType.MAJOR)


def test_tables_that_forbid_it_or_keep_failing_are_left_alone(client: TxnClient) -> None:
    client.make_table({"no_auto_compaction": "TRUE"})
    write_times(client, 11)
    assert client.store.initiate_compactions("here") == []


def test_the_word_of_a_database_counts_before_a_tables(client: TxnClient) -> None:
    """As in Hive (`MetaStoreUtils.isNoAutoCompactSet`), with the first spelling of the parameter before the second."""
    client.make_table({"no_auto_compaction": "true"})
    write_times(client, 11)
    word = DATABASE_PARAMS.c.PARAM_KEY == "NO_AUTO_COMPACTION"
    client.change(insert(DATABASE_PARAMS).values(DB_ID=7, PARAM_KEY="NO_AUTO_COMPACTION", PARAM_VALUE="true"))
    assert client.store.initiate_compactions("here") == []
    client.change(update(DATABASE_PARAMS).where(word).values(PARAM_VALUE="False"))
    client.change(insert(DATABASE_PARAMS).values(DB_ID=7, PARAM_KEY="other", PARAM_VALUE="true"))
    assert len(client.store.initiate_compactions("here")) == 1


@pytest.mark.parametrize("of_database", [True, False])
def test_what_replication_has_only_copied_is_left_alone(client: TxnClient, of_database: bool) -> None:
    """The first loaded events may concern what was copied already (HIVE-21197)."""
    client.make_table()
    write_times(client, 11)
    pending = {"PARAM_KEY": "hive.repl.first.inc.pending", "PARAM_VALUE": "TRUE"}
    table, owner = (DATABASE_PARAMS, {"DB_ID": 7}) if of_database else (TABLE_PARAMS, {"TBL_ID": 70})
    client.change(insert(table).values(**owner, **pending))
    assert client.store.initiate_compactions("here") == []
    client.change(delete(table))
    assert len(client.store.initiate_compactions("here")) == 1


def test_of_a_partitioned_table_only_partitions_that_are_there_are_compacted(client: TxnClient) -> None:
    """A dynamic insert that wrote nothing names the table, and one that failed leaves that permanently. A worker of
    Hive 3 treats the directories of the partitions as the table's files."""
    client.make_table()
    client.make_partitions("p=1")
    write_times(client, 11)
    client.abort(client.write()[0])
    for name in ("p=1", "P=1", "p=gone", "p=1 "):
        for _ in range(6 if name.lower() == "p=1" else 11):
            client.commit(client.write(partition=name)[0])
    client.age(13 * 3_600_000)
    assert len(client.store.initiate_compactions("here")) == 1
    assert client.rows(COMPACTION_QUEUE, "CQ_TABLE", "CQ_PARTITION") == [("t", "p=1")]


def test_of_a_table_without_partitions_an_empty_one_is_the_table(client: TxnClient) -> None:
    """Hive records this for what it has replayed."""
    client.make_table()
    names = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_PARTITION": "", "CTC_UPDATE_DELETE": "Y"}
    rows = [{**names, "CTC_TXNID": number, "CTC_WRITEID": number} for number in range(1, 12)]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    assert len(client.store.initiate_compactions("here")) == 1
    assert client.rows(COMPACTION_QUEUE, "CQ_TABLE", "CQ_PARTITION") == [("t", None)]
    assert client.store.initiate_compactions("here") == []


def test_what_may_not_be_compacted_keeps_nothing_else_from_it(
    client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: what waits, runs, fails, is forbidden or missing is skipped before the limit applies."""
    monkeypatch.setattr(initiator, "_MAX_INITIATED", 1)
    client.make_table()
    places = [*(f"p={number}" for number in range(5)), "p=failing", "p=waiting", "p=wanted"]
    client.make_partitions(*places[5:])
    names = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_UPDATE_DELETE": "N"}
    rows = [
        {**names, "CTC_PARTITION": place, "CTC_TXNID": number, "CTC_WRITEID": number}
        for place in places
        for number in range(1, 12)
    ]
    rows += [{**row, "CTC_TABLE": "a_table_that_is_gone", "CTC_PARTITION": None} for row in rows[:11]]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    ask(client, partition="p=waiting")
    failed = {"CC_DATABASE": "d", "CC_TABLE": "t", "CC_PARTITION": "p=failing", "CC_STATE": "f", "CC_TYPE": "i"}
    client.change(insert(H).values([{**failed, "CC_ID": 900 + n, "CC_ENQUEUE_TIME": 10**14} for n in range(2)]))
    assert len(client.store.initiate_compactions("here")) == 1
    assert sorted(client.rows(COMPACTION_QUEUE, "CQ_PARTITION")) == [("p=waiting",), ("p=wanted",)]
    assert client.store.initiate_compactions("here") == []


def test_what_transactions_there_are_is_read_once_for_all_that_are_initiated(client: TxnClient) -> None:
    """It was read for each, a thousand times: with as many aborted transactions as make compactions necessary, no other
    client could request one for minutes."""
    client.make_table()
    places = [f"p={number}" for number in range(30)]
    client.make_partitions(*places)
    names = {"CTC_DATABASE": "d", "CTC_TABLE": "t", "CTC_UPDATE_DELETE": "N"}
    rows = [
        {**names, "CTC_PARTITION": place, "CTC_TXNID": number, "CTC_WRITEID": number}
        for place in places
        for number in range(1, 12)
    ]
    client.change(insert(COMPLETED_TXN_COMPONENTS).values(rows))
    with counted_statements(client.database) as statements:
        assert len(client.store.initiate_compactions("here")) == 30
    assert len([one for one in statements if "TXN_STARTED" in one and "COMPONENTS" not in one]) == 1


def test_after_repeated_failures_nothing_is_initiated_for_a_while(client: TxnClient) -> None:
    client.make_table()
    write_times(client, 11)
    for _ in range(2):
        (started,) = client.store.initiate_compactions("here")
        entry = take(client)
        assert entry is not None and entry.id == started
        client.store.mark_failed(entry)
    assert client.store.initiate_compactions("here") == []
    client.change(update(H).values(CC_ENQUEUE_TIME=0))
    assert len(client.store.initiate_compactions("here")) == 1


def test_failures_are_kept_as_long_as_they_count(initialized_database: Database) -> None:
    """As in Hive (PurgeCompactionHistoryFunction): otherwise, a table that always fails would be compacted for ever."""
    settings = Settings(compactions=CompactionSettings(max_failed=5, history_failed=1))
    client = TxnClient(TxnStore(initialized_database, MessageBuilder(), settings), initialized_database)
    client.make_table()
    write_times(client, 11)
    for _ in range(5):
        assert client.store.initiate_compactions("here")
        entry = take(client)
        assert entry is not None
        client.store.mark_failed(entry)
        client.store.keep_compactions()
    assert client.store.initiate_compactions("here") == []


def test_cleanup_only(client: TxnClient) -> None:
    request = CompactionRequest(dbname="d", tablename="t", type=CompactionType.MAJOR)
    dropper = client.open(TxnType.SOFT_DELETE)
    assert client.store.submit_for_cleanup(request, 7, dropper)
    client.age(2000)
    client.commit(dropper)
    ((_, following, commit_time),) = client.rows(COMPACTION_QUEUE, "CQ_STATE", "CQ_NEXT_TXN_ID", "CQ_COMMIT_TIME")
    assert following == dropper + 1
    assert commit_time > 0


def test_counted_maps() -> None:
    assert to_counted_map({"key": "value", "": "x", "n": ""}) == "3:3:key5:value0:1:x1:n0:"


def read_as_java(text: str) -> dict[str, str]:
    """As Hive's StringableMap reads it: lengths count UTF-16 units, and what follows the last one is ignored."""
    units = text.encode("utf-16-le", "surrogatepass")

    def number() -> int:
        nonlocal units
        digits, _, units = units.partition(":".encode("utf-16-le"))
        return int(digits.decode("utf-16-le"))

    def taken() -> str:
        nonlocal units
        length = 2 * number()
        piece, units = units[:length], units[length:]
        return piece.decode("utf-16-le", "surrogatepass")

    return {taken(): taken() for _ in range(number())}


@pytest.mark.parametrize(
    "properties",
    [
        {"k": "v", "": "", "a:b": "3:x"},
        {"k": "\U0001f600" * 20 + "8:location4:/any", "other": "x"},
        {"\U0001f600\U0001f600" + "8:location4:/any": "value", "k": "v"},
        {"k": "\ud83d", "l": "\ude00"},
    ],
)
def test_java_reads_what_was_given_and_nothing_else(properties: dict[str, str]) -> None:
    assert read_as_java(to_counted_map(properties)) == properties
    assert from_counted_map(to_counted_map(properties)) == properties


@pytest.mark.parametrize("key", ["location", "ifPurge", "LOCATION", " location "])
def test_nobody_asks_a_cleaner_to_delete_a_directory_by_a_compaction(client: TxnClient, key: str) -> None:
    """Hive's cleaner deletes the directory that an entry names: this is for dropped objects."""
    with pytest.raises(MetaException, match="cleaners delete"):
        ask(client, properties={"compactor.mapreduce.map.memory.mb": "3072", key: "/warehouse/of/others"})
    assert client.count(COMPACTION_QUEUE) == 0
    assert ask(client, properties={"compactor.mapreduce.map.memory.mb": "3072", "tblprops.x": "y"}).accepted


@pytest.mark.parametrize("table", ["", " "])
def test_a_compaction_is_of_a_table(client: TxnClient, table: str) -> None:
    """Hive 4.0.1 splits `database.table` and finds no second part."""
    with pytest.raises(MetaException, match="needs the name of a table"):
        ask(client, table)
    assert client.count(COMPACTION_QUEUE) == 0


def test_states_are_written_by_hives_letters(client: TxnClient) -> None:
    """Java's metastore fails on a list with an unknown letter (`CompactionState`, 4.0)."""
    assert client.store.abort_compactions(AbortCompactionRequest([ask(client).id])).abortedcompacts
    assert client.rows(H, "CC_STATE") == [("x",)]
    assert [state for _, state in shown(client, state="aborted")] == ["aborted"]
    client.change(update(H).values(CC_STATE="b"))
    assert [state for _, state in shown(client)] == ["aborted"]


def test_what_is_submitted_for_cleanup_waits_for_transactions_that_are_open(client: TxnClient) -> None:
    """A cleaner immediately deletes what has no transaction to wait for."""
    request = CompactionRequest("d", "t", None, CompactionType.MAJOR, "u")
    over, aborting = client.open_many(2, TxnType.SOFT_DELETE)
    client.commit(over)
    reader = client.open()
    for txn_id in (over, aborting):
        client.store.submit_for_cleanup(request, 1, txn_id)
    noted = [(over, reader + 1), (aborting, reader + 1)]
    assert client.rows(COMPACTION_QUEUE, "CQ_TXN_ID", "CQ_NEXT_TXN_ID") == noted, "whoever drops may be gone"
    client.age(2000)
    assert ready_to_clean(client.store) == []
    later = client.open()
    client.abort(aborting)
    noted[1] = aborting, later + 1
    assert client.rows(COMPACTION_QUEUE, "CQ_TXN_ID", "CQ_NEXT_TXN_ID") == noted
    client.age(2000)
    assert ready_to_clean(client.store) == []
    client.commit(reader)
    client.commit(later)
    assert len(ready_to_clean(client.store)) == 1, "of a table one at a time"
