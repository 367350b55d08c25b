"""Iceberg's own tests of its catalogs, procedures and actions in Spark pass with our server, as with Hive 2's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.iceberg import spark_tests
from tests.clients.iceberg.catalog_tests import run_on_a_new_metastore
from tests.clients.spark.suites import OPENS
from tests.conftest import ServerLookup

CLASSES = {
    "TestSparkCatalogOperations": 12,
    "TestSparkSessionCatalog": 2,
    "actions.TestCreateActions": 52,
    "extensions.TestAddFilesProcedure": 119,
    "extensions.TestMigrateTableProcedure": 17,
    "extensions.TestSnapshotTableProcedure": 47,
    "sql.TestCreateTable": 58,
    "sql.TestDropTable": 16,
    "sql.TestNamespaceSQL": 24,
}
"""Those that ask the metastore for more than to commit to a table, each with how many tests pass."""

FAIL = {
    ("extensions.TestAddFilesProcedure", f"addWeirdCaseHiveTable()[{catalog}]"): (
        "expects no partitions for a key in another case than stored: Hive's answer without direct SQL only"
    )
    for catalog in (1, 2, 3)
}
"""Tests that fail with our server, with the reason."""


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
def test_icebergs_spark_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    outcomes = run_on_a_new_metastore(
        [f"{spark_tests.PACKAGE}.{name}" for name in CLASSES],
        database_servers("mariadb"),
        tmp_path,
        spark_tests.libraries(),
        # Spark creates databases in the directory where it runs.
        {"warehouse.allowed_locations": f"file:{tmp_path}"},
        [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS],
    )
    by_class = {name: outcomes[f"{spark_tests.PACKAGE}.{name}"] for name in CLASSES}
    output = next(iter(by_class.values())).output
    failed = {(name, test) for name, outcome in by_class.items() for test in outcome.failed}
    assert failed == set(FAIL), output[:20000]
    assert {name: len(outcome.passed) for name, outcome in by_class.items()} == CLASSES
