"""Locations and names outside of the allowed places, sent to a server without credentials: nothing else is accessed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hmsclient import HMSClient
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.conftest import ServerLookup
from tests.servers import metastore_client, server_process
from tests.store.contract.harness import table


class SilentHost:
    """Accepts connections and never answers."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self.connected = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            self.accepted.append(accepted)
            self.connected.set()

    def close(self) -> None:
        # Closing alone does not wake a thread in accept().
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)
        for accepted in self.accepted:
            accepted.close()


@pytest.fixture(scope="module")
def silent_host() -> Iterator[SilentHost]:
    host = SilentHost()
    yield host
    host.close()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locations")


@pytest.fixture(scope="module")
def port(scratch: Path, database_servers: ServerLookup, silent_host: SilentHost) -> Iterator[int]:
    """A server whose operator also allows a remote place, which has stopped answering."""
    settings: dict[str, object] = {
        "warehouse.directory": scratch / "warehouse",
        "warehouse.allowed_locations": f"ftp://127.0.0.1:{silent_host.port}/allowed",
        "warehouse.file_timeout_s": 1,
        "warehouse.file_threads": 2,
    }
    databases = database_servers("sqlite")
    url = databases.initialized_database()
    with server_process(scratch / "server", url, settings) as server:
        yield server.port
    databases.give_back(url)


@pytest.fixture
def client(port: int) -> Iterator[HMSClient]:
    with metastore_client(port) as connected:
        yield connected


def filled(directory: Path) -> Path:
    """Returns a directory with a file."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "data").write_bytes(b"1")
    return directory / "data"


def test_a_partition_above_its_table(client: HMSClient, scratch: Path) -> None:
    client.create_database(ttypes.Database(name="above"))
    client.create_table(table("sibling", dbName="above"))
    client.create_table(table("t", dbName="above", keys=[("k", "string")]))
    kept = filled(scratch / "warehouse" / "above.db" / "sibling")
    own = table("t").sd
    own.location = f"file:{scratch}/warehouse/above.db/t/.."
    client.add_partitions([ttypes.Partition(values=["1"], dbName="above", tableName="t", sd=own, parameters={})])
    client.drop_partition("above", "t", ["1"], True)
    assert kept.exists()


def test_a_table_at_the_parent_of_a_directory(client: HMSClient, scratch: Path) -> None:
    kept = filled(scratch / "jail")
    location = f"file:{scratch}/warehouse/x/../../jail/x/.."
    client.create_table(table("jailed", dbName="default", location=location))
    client.drop_table("default", "jailed", True)
    assert kept.exists()


def test_two_colons_in_a_location(client: HMSClient, scratch: Path) -> None:
    kept = filled(scratch / "warehouse" / "ev")
    client.create_table(table("ev2", dbName="default", location=f"file:{scratch}/warehouse/ev::v2"))
    assert (scratch / "warehouse" / "ev::v2").is_dir()
    client.drop_table("default", "ev2", True)
    assert kept.exists()
    assert not (scratch / "warehouse" / "ev::v2").exists()


@pytest.mark.parametrize("name", ["../evil", "../../evil", "/evil", "a/../../evil", "..", "."])
def test_names_with_slashes(client: HMSClient, scratch: Path, name: str) -> None:
    before = {path.name for path in scratch.iterdir()}
    client.create_database(ttypes.Database(name=name))
    try:
        location = client.get_database(name).locationUri
        assert location.startswith(f"file:{scratch}/warehouse/")
        assert Path(location.removeprefix("file:")).is_dir()
        client.create_table(table("../../t", dbName=name))
        assert client.get_table(name, "../../t").sd.location.startswith(f"{location}/")
    finally:
        client.drop_database(name, True, True)
    assert {path.name for path in scratch.iterdir()} <= before | {"warehouse"}


def test_what_lies_outside_is_neither_told_nor_deleted(client: HMSClient, scratch: Path) -> None:
    kept = filled(scratch / "outside")
    client.create_table(table("outside", dbName="default", location=f"file:{kept.parent}"))
    assert "numFiles" not in client.get_table("default", "outside").parameters
    client.drop_table("default", "outside", True)
    assert kept.exists()


def test_a_database_is_put_where_others_have_files(client: HMSClient, scratch: Path) -> None:
    """It is registered, but gives no right to what is there or below."""
    kept = filled(scratch / "others" / "deep")
    for place in (kept.parent.parent, kept.parent):
        client.create_database(ttypes.Database(name="widening", locationUri=f"file:{place}"))
        found = client.get_database("widening")
        client.alter_database("widening", found)
        client.create_table(table("t", dbName="widening", location=f"file:{kept.parent}"))
        assert "numFiles" not in client.get_table("widening", "t").parameters
        client.drop_table("widening", "t", True)
        client.drop_database("widening", True, True)
    assert kept.exists()


def test_a_database_at_a_directory_of_its_own(client: HMSClient, scratch: Path) -> None:
    """As clients' test suites do: the server creates the directory, so tables below it are created and deleted."""
    client.create_database(ttypes.Database(name="own", locationUri=f"file:{scratch}/made/own.db"))
    client.create_table(table("t", dbName="own"))
    data = filled(scratch / "made" / "own.db" / "t")
    client.drop_table("own", "t", True)
    assert not data.parent.exists()
    client.drop_database("own", True, True)
    assert not (scratch / "made" / "own.db").exists()
    assert (scratch / "made").is_dir()


def test_a_host_that_is_not_allowed_is_not_connected_to(client: HMSClient) -> None:
    other = SilentHost()
    try:
        for scheme in ("ftp", "sftp", "http"):
            with pytest.raises(TException, match="No FileSystem for scheme") if scheme != "ftp" else nullcontext():
                client.create_database(
                    ttypes.Database(name=f"remote_{scheme}", locationUri=f"{scheme}://127.0.0.1:{other.port}/x")
                )
        client.create_database(ttypes.Database(name="remote", locationUri=f"hdfs://127.0.0.1:{other.port}/x"))
        client.create_table(table("below", dbName="remote"))
        client.drop_database("remote", True, True)
        client.create_table(table("remote", dbName="default", location=f"hdfs://127.0.0.1:{other.port}/x"))
        client.drop_table("default", "remote", True)
        assert not other.accepted
    finally:
        other.close()


def test_a_silent_host_holds_no_lock(client: HMSClient, port: int, silent_host: SilentHost) -> None:
    """The operator allows it, so it is accessed; other writers continue meanwhile, and the caller gets an error."""
    raised: list[BaseException] = []

    def create() -> None:
        with metastore_client(port) as waiting:
            try:
                waiting.create_table(
                    table("silent", dbName="default", location=f"ftp://127.0.0.1:{silent_host.port}/allowed/x")
                )
            except TException as error:
                raised.append(error)

    waiting = threading.Thread(target=create)
    waiting.start()
    assert silent_host.connected.wait(30)
    client.create_database(ttypes.Database(name="meanwhile"))
    waiting.join(60)
    assert len(raised) == 1
    assert "did not answer within 1 s (warehouse.file_timeout_s)" in str(raised[0])
