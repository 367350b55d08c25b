"""The server as one object in this process: what it starts, accepts while running, and leaves behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hms_cache.admin.siblings import Siblings
from hms_cache.app.service import Service
from hms_cache.config import Configuration, load
from hms_cache.errors import StartupError


def configured(directory: Path, **settings: object) -> Configuration:
    command_line: dict[str, object] = {
        "server.port": 0,
        "admin.enabled": False,
        "database.url": f"sqlite:///{directory / 'hms.db'}",
        "warehouse.directory": str(directory / "warehouse"),
    }
    return load(
        command_line=command_line | {name.replace("__", "."): value for name, value in settings.items()},
        environment={},
    )


@contextmanager
def client(uri: str) -> Iterator[HMSClient]:
    transport = TBufferedTransport(TSocket("127.0.0.1", int(uri.rpartition(":")[2])))
    transport.open()
    try:
        yield HMSClient(TBinaryProtocol(transport))
    finally:
        transport.close()


def table(name: str) -> Table:
    descriptor = StorageDescriptor(
        cols=[FieldSchema(name="a", type="int")],
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
    return Table(
        dbName="shop", tableName=name, sd=descriptor, partitionKeys=[], parameters={}, tableType="EXTERNAL_TABLE"
    )


def test_a_stopped_server_leaves_no_thread_and_no_port(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0))
    uri = service.start()
    with client(uri) as metastore:
        assert metastore.get_all_databases() == ["default"]
    service.stop()
    left = [thread.name for thread in threading.enumerate() if thread not in before and thread.is_alive()]
    assert left == []
    again = Service(configured(tmp_path, server__port=int(uri.rpartition(":")[2])))
    assert again.start() == uri
    again.stop()


def test_a_start_that_fails_leaves_nothing_running(tmp_path: Path) -> None:
    first = Service(configured(tmp_path))
    uri = first.start()
    before = {thread.name for thread in threading.enumerate()}
    second = Service(configured(tmp_path, server__port=int(uri.rpartition(":")[2])))
    with pytest.raises(StartupError, match="cannot listen"):
        second.start()
    assert {thread.name for thread in threading.enumerate()} == before
    with client(uri) as metastore:
        assert metastore.get_all_databases() == ["default"]
    first.stop()


def test_a_reload_changes_what_is_answered_from_memory(tmp_path: Path) -> None:
    service = Service(configured(tmp_path))
    uri = service.start()
    with client(uri) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_table(table("orders"))
        for _ in range(4):
            metastore.get_table("shop", "orders")
        reads = service.reads_by_outcome()
        assert reads["hit"] > 0
        assert "excluded" not in reads
        assert service.reload(configured(tmp_path, cache__exclude="shop.*")) == (["cache.exclude"], [])
        for _ in range(4):
            metastore.get_table("shop", "orders")
        after = service.reads_by_outcome()
        assert after["hit"] == reads["hit"], "what is held was let in by the old settings"
        assert after["excluded"] == 4
        assert service.reload(configured(tmp_path, server__threads=3)) == (["cache.exclude"], ["server.threads"])
    service.stop()


def test_with_the_cache_off_everything_is_answered_from_the_database(tmp_path: Path) -> None:
    service = Service(configured(tmp_path, cache__enabled=False))
    with client(service.start()) as metastore:
        metastore.create_database(Database(name="shop"))
        for _ in range(3):
            assert metastore.get_database("shop").name == "shop"
    assert service.reads_by_outcome() == {}
    assert service.calls_by_method()["get_database"] == 3
    service.stop()


def test_a_sequence_that_is_behind_its_table_is_raised_at_the_start(tmp_path: Path) -> None:
    service = Service(configured(tmp_path))
    with client(service.start()) as metastore:
        metastore.create_database(Database(name="shop"))
    service.stop()
    with closing(sqlite3.connect(tmp_path / "hms.db")) as connection, connection:
        connection.execute("UPDATE SEQUENCE_TABLE SET NEXT_VAL = 1 WHERE SEQUENCE_NAME LIKE '%MDatabase'")
    service = Service(configured(tmp_path))
    with client(service.start()) as metastore:
        metastore.create_database(Database(name="shop2"))
        assert metastore.get_all_databases() == ["default", "shop", "shop2"]
    service.stop()


@pytest.mark.parametrize("index", [0, 1])
def test_one_of_several_workers_keeps_the_list_of_the_most_used(index: int, tmp_path: Path) -> None:
    """Two that write it at the same time would use each other's incomplete file."""
    given = configured(tmp_path, cache__usage_file=str(tmp_path / "usage"))
    service = Service(given, siblings=Siblings(index, 2))
    with client(service.start()) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_table(table("orders"))
        for _ in range(4):
            metastore.get_table("shop", "orders")
    service.stop()
    assert (tmp_path / "usage").exists() is (index == 0)
