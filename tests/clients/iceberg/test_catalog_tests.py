"""The tests of Iceberg's own Hive catalog pass with our server, as they do with the Hive metastore that they start."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.iceberg.catalog_tests import PACKAGE, classes_of_tests, fetch, run_on_a_new_metastore
from tests.conftest import ServerLookup

NOT_RUN = {
    "TestHiveSchemaUtil": "converts schemas, without a metastore",
    "HiveTableBaseTest": "no test: a base class",
    "HiveMetastoreTest": "no test: a base class, of 1.4",
    "TestHiveMetastore": "no test: starts Hive's metastore, and ours stands in its place",
}
"""Classes of Iceberg's that are called like tests and are left out, with the reason."""

_TEXT = "expects Hive 2's text of the error for a missing table; Hive 4's begins with the catalog"

FAIL: dict[tuple[str, str], str] = {
    ("TestHiveTable", "testRegisterHadoopTableToHiveCatalog()"): _TEXT,
    # Its name in 1.9.
    ("HiveTableTest", "testRegisterHadoopTableToHiveCatalog()"): _TEXT,
}
"""Tests that fail with our server, with the reason."""

SETTINGS: dict[str, dict[str, object]] = {
    # What the class sets for the metastore that it starts.
    "TestHiveCommitLocks": {"transactions.timeout_s": 1},
    # They expect a name in backquotes to be refused; of special characters, Hive 2 only accepts the slash.
    "TestHiveCommits": {"catalog.special_characters_in_table_names": False},
    "TestHiveViewCommits": {"catalog.special_characters_in_table_names": False},
}
"""What classes need of the metastore."""

RELEASES = {"1.11.0": 279, "1.10.0": 261, "1.9.2": 258, "1.7.2": 234, "1.6.1": 177, "1.4.3": 106}
"""Of Iceberg, each with how many tests pass."""


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
@pytest.mark.parametrize(("release", "passing"), RELEASES.items())
def test_icebergs_catalog_tests_pass(
    database_servers: ServerLookup, tmp_path: Path, release: str, passing: int
) -> None:
    passed = 0
    failed: dict[tuple[str, str], str] = {}
    classes = classes_of_tests(release) - set(NOT_RUN)
    for name in sorted(classes):
        full_name, databases = f"{PACKAGE}.{name}", database_servers("mariadb")
        outcome = run_on_a_new_metastore(
            [full_name], databases, tmp_path / name, f"{fetch(release)}/*", SETTINGS.get(name, {})
        )[full_name]
        print(f"{name}: {len(outcome.passed)} passed, {len(outcome.unfit)} unfit, {sorted(outcome.failed)}", flush=True)
        passed += len(outcome.passed)
        failed.update({(name, test): outcome.output for test in outcome.failed})
    assert set(failed) == {test for test in FAIL if test[0] in classes}, "\n".join(failed.values())[:20000]
    assert passed == passing
