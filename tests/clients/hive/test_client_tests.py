"""Hive's own client tests pass with our server as they do with Hive's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.hive.client_tests import TRASH_INTERVAL_MIN, ClientTests, Outcome, classes_of_tests
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, SqliteFiles
from tests.servers import server_process

#: Tests that fail with Hive 4.0.1's metastore as well when it runs in a process of its own, each with the reason.
FAIL_WITH_HIVE: dict[tuple[str, str], str] = {}

#: Tests that fail with ours only, each with the reason why that is right.
FAIL_WITH_OURS: dict[tuple[str, str], str] = {}


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
    assert ran > 900
    assert set(failed) == set(FAIL_WITH_HIVE) | set(FAIL_WITH_OURS)


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
        outcome = ClientTests(directory / "tests", server.uri, warehouse, url).run(name)
    databases.give_back(url)
    return outcome
