"""A mount of the warehouse hangs, like a network file system whose server is down: a running server continues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.conftest import ServerLookup
from tests.hostile.silent_mount import SilentMount
from tests.processes.writers import connected
from tests.servers import server_process
from tests.store.contract.harness import table

KEYS = [("k", "string")]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mounts")


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long])]
)
def port(request: pytest.FixtureRequest, scratch: Path, database_servers: ServerLookup) -> Iterator[int]:
    settings: dict[str, object] = {
        "warehouse.directory": scratch / request.param,
        "warehouse.file_timeout_s": 1,
        "warehouse.file_wait_with_locks_s": 0.1,
        "warehouse.file_threads": 4,
    }
    databases = database_servers(request.param)
    url = databases.initialized_database()
    with server_process(scratch / f"server-{request.param}", url, settings) as server:
        yield server.port
    databases.give_back(url)


def partition(database: str, value: str) -> ttypes.Partition:
    return ttypes.Partition(values=[value], dbName=database, tableName="t", sd=table("x").sd, parameters={})


def altered(client: Any, database: str, name: str) -> None:
    new = client.get_table(database, "plain")
    new.tableName = name
    new.sd.cols.append(ttypes.FieldSchema("more", "int"))
    client.alter_table(database, "plain", new)


def renamed_partition(client: Any, database: str) -> None:
    client.rename_partition(database, "t", ["1"], partition(database, "9"))


CALLS: dict[str, Callable[[Any, str], object]] = {
    "create_table": lambda client, d: client.create_table(table("new", dbName=d)),
    "add_partitions": lambda client, d: client.add_partitions([partition(d, "2"), partition(d, "3")]),
    "alter_table": lambda client, d: altered(client, d, "plain"),
    "rename_table": lambda client, d: altered(client, d, "renamed"),
    "rename_partition": renamed_partition,
    "exchange_partition": lambda client, d: client.exchange_partition({"k": "1"}, d, "t", d, "v"),
    "truncate_table": lambda client, d: client.truncate_table(d, "t", ["k=1"]),
    "drop_partition": lambda client, d: client.drop_partition(d, "t", ["1"], True),
    "drop_table": lambda client, d: client.drop_table(d, "t", True),
    "drop_database": lambda client, d: client.drop_database(d, True, True),
}


def _database(client: Any, name: str) -> None:
    client.create_database(ttypes.Database(name=name))
    for each, keys in (("t", KEYS), ("v", KEYS), ("plain", [])):
        client.create_table(table(each, dbName=name, keys=keys))
    client.add_partitions([partition(name, "1")])


def _silenced(port: int, scratch: Path, warehouse: str, kind: str) -> None:
    with connected(port) as client, connected(port) as other:
        _database(client, kind)
        raised: list[TException] = []

        def call() -> None:
            try:
                CALLS[kind](client, kind)
            except TException as error:
                raised.append(error)

        waiting = threading.Thread(target=call)
        with SilentMount(scratch / warehouse / f"{kind}.db") as mount:
            waiting.start()
            assert mount.is_requested.wait(60)
            other.create_database(ttypes.Database(name=f"{kind}_meanwhile"))
            other.create_table(table("t", dbName=f"{kind}_meanwhile"))
            waiting.join(60)
            assert not waiting.is_alive()
            # There are more calls than the mount has threads, and the others still continue.
            for _ in range(5):
                with pytest.raises(TException, match=r"did not answer within|threads for this file system"):
                    other.create_table(table("never", dbName=kind))
            other.create_table(table("u", dbName=f"{kind}_meanwhile"))
        if kind == "drop_partition":
            # No file system is accessed before the commit: the partition is dropped, its files remain, and the log says
            # so.
            assert not raised
            assert client.get_partition_names(kind, "t", -1) == []
            return
        assert len(raised) == 1
        assert "did not answer within" in str(raised[0])
        # The mount answers again: the same call succeeds.
        CALLS[kind](client, kind)


@pytest.mark.soak
@pytest.mark.parametrize("kind", sorted(CALLS))
def test_a_mount_that_hangs(request: pytest.FixtureRequest, port: int, scratch: Path, kind: str) -> None:
    _silenced(port, scratch, request.node.callspec.params["port"], kind)
