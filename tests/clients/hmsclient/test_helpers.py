"""hmsclient: each helper that it has in addition to the raw calls."""

from __future__ import annotations

import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes
from hmsclient.hmsclient import INPUT_FORMAT, OUTPUT_FORMAT, SIMPLE_SERDE
from thrift.Thrift import TApplicationException

from tests.clients.conftest import ServerStarter

PARTITIONS = ["day=1/hour=0", "day=1/hour=1", "day=2/hour=0"]


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak])])
def client(request: pytest.FixtureRequest, start_server: ServerStarter) -> HMSClient:
    server = start_server(request.param, **{"warehouse.files": "leave"})
    # Its own way to connect, unlike that of the other tests.
    with HMSClient(host=f"127.0.0.1:{server.port}") as connected:
        connected.create_database(ttypes.Database(name="shop"))
        yield connected


def create_table(client: HMSClient) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(
        cols=client.make_schema(["id:int", "name", "note:"]),
        location="file:/shop/orders",
        inputFormat=INPUT_FORMAT,
        outputFormat=OUTPUT_FORMAT,
        serdeInfo=ttypes.SerDeInfo(name="orders", serializationLib=SIMPLE_SERDE, parameters={}),
        parameters={},
    )
    table = ttypes.Table(
        tableName="orders",
        dbName="shop",
        owner="me",
        sd=descriptor,
        partitionKeys=client.make_schema(["day", "hour:int"]),
        parameters={},
        tableType="MANAGED_TABLE",
    )
    client.create_table(table)
    return client.get_table("shop", "orders")


def test_schemas(client: HMSClient) -> None:
    table = create_table(client)
    assert list(client.parse_schema(table.sd.cols)) == ["id\tint", "name\tstring", "note\tstring"]
    assert list(client.parse_schema(client.get_schema("shop", "orders"))) == [
        *("id\tint", "name\tstring", "note\tstring", "day\tstring", "hour\tint"),
    ]


def test_partitions(client: HMSClient) -> None:
    table = create_table(client)
    for values in (["2", "0"], ["1", "1"], ["1", "0"]):
        client.add_partition(table, values)
    assert client.get_partition_names("shop", "orders", -1) == PARTITIONS
    assert client.get_partition("shop", "orders", ["1", "1"]).sd.location == "file:/shop/orders/day=1/hour=1"
    assert client.check_for_named_partition("shop", "orders", "day=1/hour=1")
    assert not client.check_for_named_partition("shop", "orders", "day=1/hour=2")
    with pytest.raises(ttypes.AlreadyExistsException):
        client.add_partition(table, ["1", "1"])
    with pytest.raises(ValueError, match="do not match"):
        client.make_partition(table, ["1"])


def test_dropping_partitions(client: HMSClient) -> None:
    table = create_table(client)
    client.add_partitions([client.make_partition(table, values) for values in (["1", "0"], ["1", "1"], ["2", "0"])])
    assert client.drop_partitions("shop", "orders", []) is None
    dropped = client.drop_partitions("shop", "orders", ["day=1/hour=1"])
    assert [partition.values for partition in dropped.partitions or []] in ([], [["1", "1"]])
    assert client.get_partition_names("shop", "orders", -1) == ["day=1/hour=0", "day=2/hour=0"]
    client.drop_partitions("shop", "orders", ["day=1/hour=1"])  # hmsclient asks for "if exists"
    # What drop_all_partitions is meant to do; in hmsclient 0.1.1, it omits an argument of its own get_partition_names.
    client.drop_partitions("shop", "orders", client.get_partition_names("shop", "orders", -1))
    assert client.get_partition_names("shop", "orders", -1) == []


def test_there_are_no_indexes(client: HMSClient) -> None:
    """Hive 2 requests those of each table of a MapReduce query if hive.optimize.index.filter is on: without a reply,
    the query fails. There are none, as since Hive 3."""
    create_table(client)
    for table in ("orders", "absent"):
        assert client.get_indexes("shop", table, -1) == []
        assert client.get_index_names("shop", table, -1) == []
        with pytest.raises(ttypes.NoSuchObjectException, match=f"shop.{table} has no index by_name"):
            client.get_index_by_name("shop", table, "by_name")
    with pytest.raises(TApplicationException, match="Invalid method name: 'add_index'"):
        client.add_index(ttypes.Index(indexName="by_name", dbName="shop", origTableName="orders"), None)
    assert client.get_all_tables("shop") == ["orders"]


def test_the_notification_id_counts_each_change(client: HMSClient) -> None:
    before = client.get_current_notification_id()
    table = create_table(client)
    client.add_partition(table, ["1", "0"])
    assert client.get_current_notification_id() == before + 2
    answer = client.get_next_notification(ttypes.NotificationEventRequest(lastEvent=before))
    assert [(event.eventId, event.eventType) for event in answer.events] == [
        (before + 1, "CREATE_TABLE"),
        (before + 2, "ADD_PARTITION"),
    ]
