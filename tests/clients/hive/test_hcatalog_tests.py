"""Tests of HCatalog, with which MapReduce jobs read and write tables, pass with our server.

Left out are those that start a cluster (`MiniMRCluster`), those that take long because they write and read each file
format, and `TestPermsGrp`, which fails on Hive 4.0.1's metastore as well, when it runs in a process of its own.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.hive.engine_tests import fetch_hcatalog
from tests.clients.hive.test_engine_tests import run_engine_class
from tests.conftest import ServerLookup

_CLASSES: dict[str, dict[str, object]] = {
    "cli.TestSemanticAnalysis": {"catalog.disallow_incompatible_column_type_changes": False},
    "cli.TestUseDatabase": {},
    "common.TestHiveClientCache": {},
    "data.TestReaderWriter": {},
    "mapreduce.TestHCatInputFormat": {},
    "mapreduce.TestHCatInputFormatMethods": {},
    "mapreduce.TestHCatOutputFormat": {},
    "mapreduce.TestPassProperties": {},
}
"""Each with the settings that it changes for the metastore in its process."""


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1200)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "java")), reason="needs mvn and Java")
@pytest.mark.parametrize("name", _CLASSES)
def test_hcatalogs_tests_pass(database_servers: ServerLookup, tmp_path: Path, name: str) -> None:
    outcome = run_engine_class(
        database_servers("mariadb"),
        tmp_path,
        f"org.apache.hive.hcatalog.{name}",
        _CLASSES[name],
        {},
        jars=fetch_hcatalog(),
    )
    assert not outcome.failed, outcome.output[:20000]
