"""Allocating write ids and listing the valid ones."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import delete

from hms_cache.store.schema import NEXT_WRITE_ID, TXN_TO_WRITE_ID
from hms_cache.store.write_ids import valid_write_ids
from hms_cache.store.write_ids.valid_write_ids import (
    WriteIdState,
    current_snapshot,
    valid_write_ids_of,
    write_id_states,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AllocateTableWriteIdsRequest,
    CompactionType,
    GetValidWriteIdsRequest,
    MaxAllocatedTableWriteIdRequest,
    MetaException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    ShowCompactRequest,
    TxnToWriteId,
    TxnType,
)
from hms_cache.txn import ValidWriteIdList
from tests.txn.client import TxnClient


def text(client: TxnClient, table: str = "d.t", **snapshot: object) -> str:
    return client.valid(table, **snapshot)[0].to_text().replace("9223372036854775807", "M")


def test_ids_are_dense_and_ascend_with_the_transactions(client: TxnClient) -> None:
    ids = client.open_many(3)
    assert client.allocate(reversed(ids), "T", "D") == dict(zip(ids, (1, 2, 3), strict=True))
    assert client.allocate(ids) == dict(zip(ids, (1, 2, 3), strict=True))
    more = client.open_many(2)
    assert client.allocate([ids[0], *more]) == {ids[0]: 1, more[0]: 4, more[1]: 5}
    assert client.allocate([more[0]], "u") == {more[0]: 1}
    highest = client.store.get_max_allocated_table_write_id
    assert highest(MaxAllocatedTableWriteIdRequest(dbName="D", tableName="T")).maxWriteId == 5
    assert highest(MaxAllocatedTableWriteIdRequest(dbName="d", tableName="x")).maxWriteId == 0
    allocations = [message for event, message in client.events() if event == "ALLOC_WRITE_ID_EVENT"]
    assert [(one["dbName"], one["tableName"], one["txnIdList"], one["writeIdList"]) for one in allocations] == [
        ("d", "t", ids, [1, 2, 3]),
        ("d", "t", more, [4, 5]),
        ("d", "u", [more[0]], [1]),
    ]


def test_reallocation(client: TxnClient) -> None:
    txn_id = client.open()
    client.allocate([txn_id])
    assert client.allocate([txn_id], reallocate=True) == {txn_id: 2}
    assert client.rows(TXN_TO_WRITE_ID, "T2W_TXNID", "T2W_WRITEID") == [(txn_id, 2)]


def test_only_open_writers_get_ids(client: TxnClient) -> None:
    committed, aborted, still_open = client.open_many(3)
    read_only = client.open(TxnType.READ_ONLY)
    client.commit(committed)
    client.abort(aborted)
    for txn_id in (committed, aborted, read_only, 99):
        with pytest.raises(MetaException, match=r"Write ID allocation on d\.t failed for input txns"):
            client.allocate([still_open, txn_id])
    with pytest.raises(MetaException):
        client.allocate([])
    assert client.count(NEXT_WRITE_ID) == client.count(TXN_TO_WRITE_ID) == 0


def test_lists_follow_the_writers(client: TxnClient) -> None:
    assert text(client) == "d.t:0:M::"
    first, second, third, fourth = client.open_many(4)
    client.allocate([first, second, third, fourth])
    assert text(client) == "d.t:1:1:1:"
    client.commit(second)
    assert text(client) == "d.t:4:1:1,3,4:"
    client.abort(third)
    assert text(client) == "d.t:4:1:1,4:3"
    client.commit(first)
    assert text(client) == "d.t:4:4:4:3"
    client.commit(fourth)
    assert text(client) == "d.t:4:M::3"
    assert text(client, snapshot=client.snapshot()) == "d.t:4:M::3"


def test_a_snapshot_decides_and_its_owner_sees_its_own_id(client: TxnClient) -> None:
    early, reader = client.open_many(2)
    client.allocate([early])
    snapshot = client.snapshot(reader)
    later = client.open()
    assert client.allocate([reader, later]) == {reader: 2, later: 3}
    client.commit(early)
    client.commit(later)
    assert text(client, snapshot=snapshot) == "d.t:2:1:1:"
    assert text(client, snapshot=client.snapshot(later)) == "d.t:3:2:2:"
    request = GetValidWriteIdsRequest(fullTableNames=["d.t"], writeId=2)
    own = ValidWriteIdList.from_thrift(client.store.get_valid_write_ids(request).tblValidWriteIds[0])
    assert own.is_valid(2)
    with pytest.raises(MetaException, match=r"invalid write id 9 for table d\.t"):
        client.store.get_valid_write_ids(GetValidWriteIdsRequest(fullTableNames=["d.t"], writeId=9))


def test_ids_above_the_snapshot_are_invalid_even_below_the_mark(client: TxnClient) -> None:
    early = client.open()
    snapshot = client.snapshot(early)
    late = client.open()
    client.allocate([late])
    client.allocate([early])
    client.commit(late)
    assert text(client, snapshot=snapshot) == "d.t:2:1:1:"


def test_compacted_writes_are_valid(client: TxnClient) -> None:
    ids = client.open_many(3)
    client.allocate(ids)
    client.commit(ids[0])
    client.commit(ids[1])
    client.change(delete(TXN_TO_WRITE_ID).where(TXN_TO_WRITE_ID.c.T2W_TXNID <= ids[1]))
    # No valid write is known (HIVE-22122): all remaining ones are below the lowest invalid id.
    assert text(client) == "d.t:3:3:3:"
    client.commit(ids[2])
    client.change(delete(TXN_TO_WRITE_ID))
    assert text(client) == "d.t:3:M::"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
def test_the_latest_write_ids_tell_as_much_as_all(
    seed: int, client: TxnClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the latest ones are: aborted, open, above the mark, deleted, or missing; and however those of invalid
    transactions are looked up."""
    chance = random.Random(seed)
    monkeypatch.setattr(valid_write_ids, "_LATEST", 3)
    valid_write_ids._latest_of.cache_clear()
    snapshots, compared = [client.snapshot()], set()
    tables = [("d", name) for name in "tuvwx"]
    for _ in range(25):
        ids = client.open_many(chance.randint(1, 4))
        for _, table in tables[:-1]:
            if some := chance.sample(ids, chance.randint(0, len(ids))):
                client.allocate(some, table)
        for one in chance.sample(ids, chance.randint(0, len(ids))):
            chance.choice([client.commit, client.abort])(one)
        if chance.random() < 0.2:
            W = TXN_TO_WRITE_ID.c
            client.change(delete(TXN_TO_WRITE_ID).where(W.T2W_WRITEID % 5 == chance.randrange(5), W.T2W_TABLE != "u"))
        snapshots.append(client.snapshot())
        for snapshot in chance.sample(snapshots, min(4, len(snapshots))):
            lists = []
            for most, way in ((20, "parameters"), (0, "parameters"), (20, "lists"), (20, "all"), (20, "dense")):
                monkeypatch.setattr(valid_write_ids, "_MAX_TABLES_BY_LATEST", most)
                monkeypatch.setattr(valid_write_ids, "_MAX_TXNS_IN_SQL", 500 if way == "parameters" else 0)
                monkeypatch.setattr(valid_write_ids, "_TXNS_AT_ONCE", 2)
                monkeypatch.setattr(valid_write_ids, "_MAX_TXNS_BY_ID", 0 if way == "all" else 1000)
                monkeypatch.setattr(valid_write_ids, "_DENSE", 1000 if way == "dense" else 0)
                with client.database.checking() as connection:
                    lists.append(valid_write_ids_of(connection, tables, snapshot))
            assert all(one == lists[0] for one in lists)
            compared.update(found.to_text() for found in lists[0].values())
    valid_write_ids._latest_of.cache_clear()
    assert len(compared) > 50


def test_many_tables_many_exceptions(client: TxnClient) -> None:
    ids = client.open_many(700)
    client.allocate(ids[:600], "a")
    client.allocate(ids[300:], "b")
    client.commit(ids[10])
    client.commit(ids[650])
    names = ["D.A", "d.b", *(f"d.other{number}" for number in range(300))]
    lists = client.valid(*names)
    assert [one.table_name for one in lists] == names
    assert lists[0].invalid == tuple(number for number in range(1, 601) if number != 11)
    assert lists[1].invalid == tuple(number for number in range(1, 401) if number != 351)
    assert all((one.high_watermark, one.invalid) == (0, ()) for one in lists[2:])


def test_the_answer_names_the_table_id(client: TxnClient) -> None:
    client.make_table()
    request = GetValidWriteIdsRequest(fullTableNames=["D.T", "_dummy_database._dummy_table"], validTxnList="5:5:5:")
    found, dummy = client.store.get_valid_write_ids(request).tblValidWriteIds
    assert (found.fullTableName, found.tableId) == ("D.T", 70)
    assert (dummy.tableId, dummy.writeIdHighWaterMark, dummy.invalidWriteIds, dummy.minOpenWriteId) == (
        None,
        0,
        [],
        None,
    )


@pytest.mark.parametrize(
    "request_fields",
    [{"fullTableNames": ["t"]}, {"fullTableNames": ["d."]}, {"fullTableNames": ["d.t"], "validTxnList": "x"}],
)
def test_requests_that_cannot_be_answered(sqlite_client: TxnClient, request_fields: dict[str, object]) -> None:
    with pytest.raises(MetaException):
        sqlite_client.store.get_valid_write_ids(GetValidWriteIdsRequest(**request_fields))


def test_seeding_a_converted_table(client: TxnClient) -> None:
    client.store.seed_write_id(SeedTableWriteIdsRequest(dbName="D", tableName="T", seedWriteId=1000))
    assert text(client) == "d.t:1000:M::"
    txn_id = client.open()
    assert client.allocate([txn_id]) == {txn_id: 1001}
    with pytest.raises(MetaException, match="has write ids already"):
        client.store.seed_write_id(SeedTableWriteIdsRequest(dbName="d", tableName="t", seedWriteId=1))
    with pytest.raises(MetaException):
        client.store.seed_write_id(SeedTableWriteIdsRequest(dbName="d", tableName="u", seedWriteId=-1))


def test_the_state_of_a_replicated_table(client: TxnClient) -> None:
    request = ReplTblWriteIdStateRequest(
        validWriteIdlist="d.t:9:3:3,7:5", user="u", hostName="h", dbName="D", tableName="T"
    )
    client.store.repl_tbl_writeid_state(request)
    # No committed write is known here, so all valid ones are below the lowest invalid id.
    assert text(client) == "d.t:3:M::3"
    states = {one.metaInfo for one in client.store.get_open_txns_info().open_txns}
    assert states == {"Replication:abort of allocated txns for referring mapped write ids as aborted ones"}
    txn_id = client.open()
    assert client.allocate([txn_id]) == {txn_id: 10}
    client.store.repl_tbl_writeid_state(request)
    assert client.store.get_open_txns().txn_high_water_mark == txn_id


@pytest.mark.parametrize("partitions", [None, [], ["P=1", "p=2", "p=1"]], ids=str)
def test_what_the_source_aborted_is_to_be_compacted(client: TxnClient, partitions: list[str] | None) -> None:
    """As in Hive 3.1 and 4.0 (`replTableWriteIdState`): no write of this catalog causes a compaction."""
    fields = {"user": "u", "hostName": "h", "dbName": "D", "tableName": "T", "partNames": partitions}
    for _ in range(2):
        client.store.repl_tbl_writeid_state(ReplTblWriteIdStateRequest(validWriteIdlist="d.t:9:3::5", **fields))
    fields["tableName"] = "clean"
    client.store.repl_tbl_writeid_state(ReplTblWriteIdStateRequest(validWriteIdlist="d.clean:9:3::", **fields))
    requested = client.store.show_compact(ShowCompactRequest(order="CC_ID")).compacts
    expected = [None] if partitions is None else sorted(set(map(str.lower, partitions)))
    assert [(one.dbname, one.tablename, one.partitionname) for one in requested] == [
        ("d", "t", one) for one in expected
    ]
    assert {(one.type, one.state) for one in requested} <= {(CompactionType.MAJOR, "initiated")}
    assert [one.id for one in requested] == list(range(1, len(requested) + 1))


def test_replicated_allocation_takes_the_sources_ids(client: TxnClient) -> None:
    opening = OpenTxnRequest(
        num_txns=2, user="u", hostname="h", replPolicy="p", replSrcTxnIds=[50, 51], txn_type=TxnType.REPL_CREATED
    )
    targets = client.store.open_txns(opening).txn_ids
    pairs = [TxnToWriteId(txnId=51, writeId=21), TxnToWriteId(txnId=50, writeId=20)]
    request = AllocateTableWriteIdsRequest(dbName="d", tableName="t", replPolicy="p", srcTxnToWriteIdList=pairs)
    answer = client.store.allocate_table_write_ids(request).txnToWriteIds
    assert [(one.txnId, one.writeId) for one in answer] == [(targets[0], 20), (targets[1], 21)]
    unknown = [TxnToWriteId(txnId=99, writeId=22)]
    request = AllocateTableWriteIdsRequest(dbName="d", tableName="t", replPolicy="p", srcTxnToWriteIdList=unknown)
    assert client.store.allocate_table_write_ids(request).txnToWriteIds == []


def test_states_of_write_ids(client: TxnClient) -> None:
    ids = client.open_many(3)
    client.allocate(ids)
    client.commit(ids[0])
    client.abort(ids[1])
    with client.database.checking() as connection:
        assert write_id_states(connection, ("d", "t"), [0, 1, 2, 3, 4]) == {
            0: WriteIdState.COMMITTED,
            1: WriteIdState.COMMITTED,
            2: WriteIdState.ABORTED,
            3: WriteIdState.OPEN,
            4: WriteIdState.COMMITTED,
        }
    with client.database.loading() as connection:
        snapshot = current_snapshot(connection, client.store.context)
        tag = valid_write_ids_of(connection, [("d", "t"), ("d", "u")], snapshot)
    assert tag["d", "t"].to_text() == "d.t:3:3:3:2"
    assert tag["d", "u"].high_watermark == 0
