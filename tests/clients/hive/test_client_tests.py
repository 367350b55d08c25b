"""Hive's own client tests pass with our server as they do with Hive's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from tests.clients.hive.client_tests import TRASH_INTERVAL_MIN, ClientTests, Outcome, classes_of_tests
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, SqliteFiles
from tests.servers import server_process

_TRANSLATED = "expects the transformer to make an external table of a managed one"
_OWN_PROCESS = "looks into the metastore's process: counts its connections, or disables queries by its settings"

#: Tests that fail with Hive 4.0.1's metastore as well when it runs in a process of its own on MariaDB, with the reason.
FAIL_WITH_HIVE: dict[tuple[str, str], str] = {
    **{
        ("TestAlterPartitions", f"testAlterPartition{rest}"): _TRANSLATED
        for rest in ("", "WithEnvironmentCtx", "s", "sUnknownPartition", "sWithEnvironmentCtx")
    },
    ("TestAddPartitionsFromPartSpec", "testAddPartitionSpecUnsupportedPartSpecType"): "the client itself refuses it",
    **{
        ("TestHiveMetaStoreClient", test): _OWN_PROCESS
        for test in ("testCloseClient", "testReconnect", "testTTransport")
    },
    **{
        ("TestMetastoreScheduledQueries", test): _OWN_PROCESS
        for test in ("testDisable1", "testDisable2", "testOutdatedCleanup", "testSkip2")
    },
    **{
        ("TestPartitionStat", test): "expects sketches that a remote client is not answered by default"
        for test in ("testUpdateStatMultiple", "testUpdateStatSingle")
    },
    (
        "TestTablesCreateDropAlterTruncate",
        "testDropManagedTableWithoutStoragePermission",
    ): "takes a permission away, which does not keep a superuser out",
}


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
def test_hives_client_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    failed: dict[tuple[str, str], str] = {}
    ran = 0
    for name in classes_of_tests():
        outcome = run_on_a_new_metastore(name, database_servers("mariadb"), tmp_path / name)
        ran += outcome.ran
        print(f"{name}: {outcome.ran} tests, failed: {sorted(outcome.failed)}", flush=True)
        failed.update({(name, test): outcome.output for test in outcome.failed})
    assert ran > 850
    assert set(failed) == set(FAIL_WITH_HIVE)


def run_on_a_new_metastore(name: str, databases: SqliteFiles | DatabaseServer, directory: Path) -> Outcome:
    """The classes leave objects behind, and expect none."""
    url = databases.initialized_database()
    warehouse = directory / "warehouse"
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": f"file:{warehouse}-external",
        "warehouse.trash_interval_min": TRASH_INTERVAL_MIN,
        # What the tests set for the metastores that they start themselves.
        "catalog.partition_request_limit": 100,
        "catalog.batch_retrieve_max": 2,
    }
    with server_process(directory / "server", url, settings) as server:
        outcome = ClientTests(directory / "tests", server.uri, warehouse, with_password(url)).run(name)
    databases.give_back(url)
    return outcome


def with_password(url: str) -> str:
    """The database for a user with a password, which Hive's ObjectStore does not do without."""
    granted = make_url(url).set(username="client_tests", password="client_tests")
    engine = create_engine(url)
    with engine.connect() as connection:
        for host in ("localhost", "127.0.0.1"):
            connection.exec_driver_sql(f"CREATE USER IF NOT EXISTS client_tests@{host!r} IDENTIFIED BY 'client_tests'")
            connection.exec_driver_sql(f"GRANT ALL ON `{granted.database}`.* TO client_tests@{host!r}")
    engine.dispose()
    return granted.render_as_string(hide_password=False)
