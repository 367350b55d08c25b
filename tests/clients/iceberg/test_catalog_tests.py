"""The tests of Iceberg's own Hive catalog pass with our server, as they do with the Hive metastore that they start."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.iceberg.catalog_tests import CatalogTests, classes_of_tests
from tests.conftest import ServerLookup
from tests.servers import server_process

NOT_RUN = {
    "TestHiveSchemaUtil": "converts schemas, without a metastore",
    "HiveTableBaseTest": "no test: a base class of 1.9.2",
    "TestHiveMetastore": "no test: starts Hive's metastore, and ours stands in its place",
}
"""Classes of Iceberg's that are called Test… and are left out, with the reason."""

_TEXT = "expects Hive 2's text of the error for a missing table; Hive 4's begins with the catalog"

FAIL: dict[str, dict[tuple[str, str], str]] = {
    "1.10.0": {("TestHiveTable", "testRegisterHadoopTableToHiveCatalog()"): _TEXT},
    "1.9.2": {("HiveTableTest", "testRegisterHadoopTableToHiveCatalog()"): _TEXT},
}
"""Tests that fail with our server, with the reason, by release."""

SETTINGS: dict[str, dict[str, object]] = {
    # What the class sets for the metastore that it starts.
    "TestHiveCommitLocks": {"transactions.timeout_s": 1},
    # They expect a name in back quotes to be refused; of special characters, Hive 2 takes the slash only.
    "TestHiveCommits": {"catalog.special_characters_in_table_names": False},
    "TestHiveViewCommits": {"catalog.special_characters_in_table_names": False},
}
"""What classes need of the metastore."""


@dataclass(frozen=True)
class Release:
    """A release of Iceberg: the classes with tests, and how many of them pass with Hive 2.3's metastore."""

    version: str
    classes: tuple[str, ...]
    passed: int


RELEASES = [
    Release(
        "1.10.0",
        (
            "TestHiveCatalog",
            "TestHiveViewCatalog",
            "TestHiveViewCommits",
            "TestHiveTable",
            "TestHiveTableConcurrency",
            "TestHiveCreateReplaceTable",
            "TestHiveCommits",
            "TestHiveCommitLocks",
            "TestHiveClientPool",
            "TestCachedClientPool",
            "TestLoadHiveCatalog",
        ),
        261,
    ),
    Release(
        "1.9.2",
        (
            "TestHiveCatalog",
            "TestHiveViewCatalog",
            "TestHiveViewCommits",
            "HiveTableTest",
            "TestHiveTableConcurrency",
            "HiveCreateReplaceTableTest",
            "TestHiveCommits",
            "TestHiveCommitLocks",
            "TestHiveClientPool",
            "TestCachedClientPool",
            "TestLoadHiveCatalog",
        ),
        258,
    ),
]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_icebergs_catalog_tests_pass(database_servers: ServerLookup, tmp_path: Path, release: Release) -> None:
    assert classes_of_tests(release.version) - set(NOT_RUN) == set(release.classes)
    passed = 0
    failed: dict[tuple[str, str], str] = {}
    databases = database_servers("mariadb")
    for name in release.classes:
        directory = tmp_path / name
        url = databases.initialized_database()
        warehouse = directory / "warehouse"
        settings: dict[str, object] = {
            "warehouse.directory": f"file:{warehouse}",
            "warehouse.external_directory": "",  # Hive 2 knows one directory only
            "catalog.disallow_incompatible_column_type_changes": False,
            **SETTINGS.get(name, {}),
        }
        warehouse.mkdir(parents=True)
        with server_process(directory / "server", url, settings) as server:
            outcome = CatalogTests(directory / "tests", server.uri, warehouse, release.version).run(name)
        databases.give_back(url)
        print(f"{name}: {len(outcome.passed)} passed, {len(outcome.unfit)} unfit, {sorted(outcome.failed)}", flush=True)
        passed += len(outcome.passed)
        failed.update({(name, test): outcome.output for test in outcome.failed})
    assert set(failed) == set(FAIL[release.version]), "\n".join(failed.values())[:20000]
    assert passed == release.passed
