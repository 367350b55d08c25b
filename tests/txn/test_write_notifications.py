"""The log of what transactions wrote."""

from __future__ import annotations

from hms_cache.notifications.tjson import read_struct
from hms_cache.store.transactions.write_notifications import TableWrite
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    GetAllWriteEventInfoRequest,
    InsertEventRequestData,
    Partition,
    Table,
)
from tests.txn.client import TxnClient


def test_writes_are_logged_and_added_up(client: TxnClient) -> None:
    txn_id, write_id = client.write()
    table = Table(dbName="D", tableName="T", owner="me")
    partition = Partition(dbName="d", tableName="t", values=["1"])

    def write(files: list[str], partition_name: str = "", table: Table = table, **other: object) -> TableWrite:
        data = InsertEventRequestData(filesAdded=files, **other)
        return TableWrite(txn_id, write_id, table, partition if partition_name else None, partition_name, data)

    client.store.add_write_notifications(
        [write(["/a"]), write(["/b", "/c"], "p=1", subDirectoryList=["delta_1", "delta_1"])]
    )
    client.store.add_write_notifications([write(["/d"]), write([], table=Table(dbName="d", tableName="u"))])

    def found(**conditions: object) -> list[tuple[str, str | None, str]]:
        infos = client.store.get_all_write_event_info(GetAllWriteEventInfoRequest(txnId=txn_id, **conditions))
        assert {one.writeId for one in infos} <= {write_id}
        return [(one.table, one.partition, one.files) for one in infos]

    of_t = [("t", "", "/d###]/a###"), ("t", "p=1", "/b###delta_1]/c###delta_1")]
    assert found() == [*of_t, ("u", "", "")]
    assert found(dbName="D", tableName="T") == of_t
    assert found(dbName="x") == []
    infos = client.store.get_all_write_event_info(GetAllWriteEventInfoRequest(txnId=txn_id, tableName="t"))
    assert read_struct(infos[0].tableObj, Table).owner == "me"
    assert infos[0].partitionObj is None
    assert read_struct(infos[1].partitionObj, Partition).values == ["1"]


def test_a_call_that_is_repeated_adds_nothing(client: TxnClient) -> None:
    """As in Hive (DbNotificationListener): clients repeat calls whose replies they did not get."""
    txn_id, write_id = client.write()

    def note(*files: str) -> str | None:
        data = InsertEventRequestData(filesAdded=list(files), subDirectoryList=["delta_1"] * len(files))
        table = Table(dbName="d", tableName="t")
        client.store.add_write_notifications([TableWrite(txn_id, write_id, table, None, "", data)])
        [found] = client.store.get_all_write_event_info(GetAllWriteEventInfoRequest(txnId=txn_id))
        return found.files

    a, b, c = (f"/{name}###delta_1" for name in "abc")
    assert note() == ""
    assert note("/a", "/b") == f"{a}]{b}"
    assert note("/a", "/b") == f"{a}]{b}"
    assert note() == f"{a}]{b}", "a write without files has none"
    assert note("/b", "/c") == f"{c}]{a}]{b}"
