"""Where engines create databases, tables and partitions, with default settings: what worked with Hive works."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from hmsclient import HMSClient

from hms_cache.config.sections.warehouse import KNOWN_SCHEMES
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.conftest import ServerLookup
from tests.servers import metastore_client, server_process
from tests.store.contract.harness import external, table

#: As Spark, Trino, Iceberg and Hive write them: with and without an authority, with blanks and special characters.
LOCATIONS = (
    "{scratch}/plain/path",
    "file:{scratch}/one slash",
    "file://{scratch}/three slashes",
    "hdfs:///without/authority",
    "hdfs://nn.example.com:8020/with/port",
    "s3://iceberg-bucket/warehouse/table-0b5f7b2a",
    "s3a://bucket/a=b/c%20d",
    "abfss://container@account.dfs.core.windows.net/path",
    "jfs://volume/path",
    "alluxio://master:19998/path",
    "dbfs:/mnt/path",
    *(f"{scheme}://authority/path" for scheme in KNOWN_SCHEMES if scheme != "file"),
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locations")


@pytest.fixture(scope="module")
def client(scratch: Path, database_servers: ServerLookup) -> Iterator[HMSClient]:
    """Of a server with a warehouse and no other setting about files."""
    databases = database_servers("sqlite")
    url = databases.initialized_database()
    with server_process(scratch / "server", url) as server, metastore_client(server.port) as connected:
        yield connected
    databases.give_back(url)


@pytest.mark.parametrize("pattern", LOCATIONS)
def test_objects_are_put_changed_and_dropped_anywhere(client: HMSClient, scratch: Path, pattern: str) -> None:
    """A host or bucket that does not exist delays no call: it is not accessed."""
    location = pattern.format(scratch=scratch)
    # A managed table in a database elsewhere, where Spark writes a new table's rows itself.
    client.create_database(ttypes.Database("away", "", f"{location}/away.db", {}))
    client.create_table(table("inside", dbName="away"))
    inside = client.get_table("away", "inside").sd.location
    assert inside.endswith("/away.db/inside") and inside.partition(":")[0] == _scheme(location)

    # CREATE EXTERNAL TABLE … LOCATION, tables of Trino and Iceberg, and Spark's CREATE TABLE … LOCATION.
    for made in (external("out", dbName="away", keys=(("p", "string"),)), table("kept", dbName="away")):
        made.sd.location = f"{location}/{made.tableName}"
        client.create_table(made)
        stored = client.get_table("away", made.tableName)
        assert stored.sd.location.endswith(f"/{made.tableName}")

    # A partition beside its table, and one that is moved.
    partition = ttypes.Partition(["1"], "away", "out", 0, 0, deepcopy(client.get_table("away", "out").sd), {})
    partition.sd.location = f"{location}/beside/p=1"
    client.add_partitions([partition])
    partition.sd.location = f"{location}/moved/p=1"
    client.alter_partition("away", "out", partition)
    assert client.get_partition("away", "out", ["1"]).sd.location.endswith("/moved/p=1")

    # ALTER TABLE … SET LOCATION, and RENAME: an external table's files remain.
    moved = client.get_table("away", "out")
    moved.sd.location = f"{location}/elsewhere"
    client.alter_table("away", "out", moved)
    moved.tableName = "renamed"
    client.alter_table("away", "out", moved)
    assert client.get_table("away", "renamed").sd.location.endswith("/elsewhere")
    client.drop_partition("away", "renamed", ["1"], True)

    client.drop_database("away", True, True)
    assert "away" not in client.get_all_databases()


def _scheme(location: str) -> str:
    return "file" if location.startswith("/") else location.partition(":")[0]


def test_local_directories_are_made_and_what_others_keep_in_them_stays(client: HMSClient, scratch: Path) -> None:
    """An engine that creates its directory first, and one that expects the metastore to do so."""
    for name, is_there in (("made", False), ("empty", True), ("full", True)):
        directory = scratch / "outside" / name
        if is_there:
            directory.mkdir(parents=True)
        if name == "full":
            (directory / "rows").write_text("1")
        client.create_table(table(f"at_{name}", dbName="default", location=directory.as_uri()))
        assert directory.is_dir()
        (directory / "rows").write_text("1")
        client.drop_table("default", f"at_{name}", True)
        assert (directory / "rows").exists(), "outside of the warehouse files are the user's"
