"""PyIceberg's own tests of its catalogs (from PyPI) pass with our server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import ServerLookup
from tests.downloads import FetchFailed, kept, run
from tests.servers import server_process

_PLUGIN = Path(__file__).with_name("own_tests_plugin.py")
_LIBRARIES = (
    "pytest-lazy-fixtures==1.4.1",
    "pytest-mock==3.17.0",
    "fastavro==1.13.1",
    "requests-mock==1.12.1",
    "pytz==2026.6",
)
_FILES = (
    "tests/integration/test_catalog.py",
    "tests/integration/test_partition_evolution.py",
    "tests/integration/test_sort_order_update.py",
    "tests/integration/test_writes/test_writes.py",
    "tests/catalog/test_catalog_behaviors.py",
)

_LEVELS = "namespaces of several levels"
_TEXT = "the text of an error that the catalog in memory has"
_PLACE = "Hive's metastore gives every database a place, and every place a scheme"
_DEFAULT = "Hive's metastore has a database default"
_CLIENT = "what PyIceberg's Hive catalog does not do"

FAIL = {
    **dict.fromkeys(
        (
            "test_create_namespaces_sharing_same_prefix",
            "test_create_table_without_namespace",
            "test_list_namespaces",
            "test_list_namespaces_fuzzy_match",
            "test_list_tables_under_a_namespace",
            "test_namespace_exists",
        ),
        _LEVELS,
    ),
    **dict.fromkeys(
        (
            "test_drop_namespace_raises_error_when_namespace_not_empty",
            "test_get_namespace_metadata_raises_error_when_namespace_does_not_exist",
            "test_table_raises_error_on_table_not_found",
            "test_update_namespace_metadata_raises_error_when_namespace_does_not_exist",
        ),
        _TEXT,
    ),
    **dict.fromkeys(
        (
            "test_create_namespace",
            "test_create_namespace_with_comment_and_location",
            "test_create_table_with_default_warehouse_location",
            "test_delete_metadata_multiple",
            "test_load_empty_namespace_properties",
            "test_load_namespace_properties",
            "test_update_namespace_properties",
        ),
        _PLACE,
    ),
    **dict.fromkeys(
        (
            "test_append_invalid_input_type_raises",
            "test_append_record_batch_reader",
            "test_append_record_batch_reader_empty",
            "test_append_record_batch_reader_microbatched",
            "test_append_record_batch_reader_to_partitioned_table_raises",
            "test_overwrite_record_batch_reader",
            "test_record_batch_reader_consumed_exactly_once",
            "test_record_batch_reader_schema_mismatch_writes_no_files",
        ),
        _DEFAULT,
    ),
    **dict.fromkeys(
        (
            "test_create_namespace_with_empty_identifier",
            "test_create_namespace_with_null_properties",
            "test_create_tables_idempotency",
            "test_list_non_existing_namespaces",
            "test_list_tables_when_missing_namespace",
            "test_purge_table",
        ),
        _CLIENT,
    ),
}
"""Those that are about any catalog and fail with PyIceberg's Hive catalog, with the reason."""

PASSED = 139
"""At least so many pass."""


def _fetch() -> Path:
    """The directory with the tests of the installed release and the libraries that they need."""
    release = version("pyiceberg")

    def unpack(path: Path) -> None:
        pip = [sys.executable, "-m", "pip"]
        run([*pip, "install", "-q", "--no-deps", "--target", str(path / "libraries"), *_LIBRARIES])
        own = ["--no-deps", "--no-binary", "pyiceberg", f"pyiceberg=={release}"]
        run([*pip, "download", "-q", "-d", str(path), *own])
        with tarfile.open(next(path.glob("*.tar.gz"))) as archive:
            archive.extractall(path, filter="data")
        (path / f"pyiceberg-{release}" / "pyiceberg").rename(path / "unused")  # the installed one is run

    try:
        return kept(f"pyiceberg-tests-{release}", unpack) / f"pyiceberg-{release}"
    except FetchFailed as error:
        pytest.skip(str(error))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_pyicebergs_own_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    tests = _fetch()
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": "",
        "warehouse.allowed_locations": f"file:{tmp_path}",
        # Iceberg identifies columns by number.
        "catalog.disallow_incompatible_column_type_changes": False,
    }
    databases = database_servers("sqlite")
    url = databases.create_database()
    report = tmp_path / "report.xml"
    # Separately: their tests are a package of the same name as these.
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    shutil.copy(_PLUGIN, plugin)
    with server_process(tmp_path / "server", url, settings) as server:
        finished = subprocess.run(
            [
                *[sys.executable, "-m", "pytest", "-p", _PLUGIN.stem],
                *["-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--tb=short"],
                *[f"--basetemp={tmp_path / 'tmp'}", f"--junit-xml={report}", *_FILES],
            ],
            cwd=tests,
            env={
                **os.environ,
                "HMS_CACHE_URI": server.uri,
                "PYTHONPATH": f"{plugin}{os.pathsep}{tests.parent / 'libraries'}",
                "AWS_DEFAULT_REGION": "us-east-1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1000,
            check=False,
        )
    databases.drop_database(url)
    assert report.exists(), finished.stdout[-4000:]
    failed: set[str] = set()
    passed = 0
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(case.attrib["name"].partition("[")[0])
        elif case.find("skipped") is None:
            passed += 1
    assert failed == set(FAIL), finished.stdout[-20000:]
    assert passed >= PASSED
