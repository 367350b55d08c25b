"""Iceberg's own tests of its catalogs in Flink pass with our server, as with Hive 2's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.iceberg import flink_tests
from tests.clients.iceberg.catalog_tests import run_on_a_new_metastore
from tests.conftest import ServerLookup

CLASSES = {
    "TestCatalogLoader": 3,
    "TestCatalogTableLoader": 2,
    "TestFlinkCatalogDatabase": 19,
    "TestFlinkCatalogFactory": 5,
    "TestFlinkCatalogTable": 75,
    "TestFlinkCatalogTablePartitions": 36,
    "TestFlinkHiveCatalog": 2,
    "TestIcebergConnector": 36,
    "source.TestFlinkInputFormatReaderDeletes": 43,
    "source.TestIcebergSourceReaderDeletes": 43,
    "source.TestMetadataTableReadableMetrics": 4,
}
"""Those that use a Hive catalog, each with how many tests pass."""

_OPENS = (
    *(
        "java.lang",
        "java.lang.reflect",
        "java.net",
        "java.nio",
        "java.time",
        "java.util",
        "java.util.concurrent.atomic",
    ),
    "sun.nio.ch",
)


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
def test_icebergs_flink_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    outcomes = run_on_a_new_metastore(
        [f"{flink_tests.PACKAGE}.{name}" for name in CLASSES],
        database_servers("mariadb"),
        tmp_path,
        flink_tests.libraries(),
        {"warehouse.allowed_locations": f"file:{tmp_path}"},
        [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS],
    )
    by_class = {name: outcomes[f"{flink_tests.PACKAGE}.{name}"] for name in CLASSES}
    output = next(iter(by_class.values())).output
    failed = {(name, test) for name, outcome in by_class.items() for test in outcome.failed}
    assert not failed, output[:20000]
    assert {name: len(outcome.passed) for name, outcome in by_class.items()} == CLASSES
