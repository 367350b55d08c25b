"""Hive's own client tests pass with our server as they do with Hive's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from tests.clients.hive.client_tests import (
    HIVE_3,
    HIVE_4,
    HIVE_4_WITH_LATER_CLIENT,
    PACKAGE,
    TRASH_INTERVAL_MIN,
    ClientTests,
    Outcome,
    Release,
    classes_of_tests,
)
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, SqliteFiles
from tests.servers import server_process

_TRANSLATED = "expects the transformer to make an external table of a managed one"
_OWN_PROCESS = "looks into the metastore's process: counts its connections, or disables queries by its settings"

#: Tests that fail with Hive 4.0.1's metastore as well if it runs in a separate process on MariaDB, with the reason.
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

#: The same for 4.1.0's client. The two fail with Hive 4.0.1's metastore as well.
FAIL_WITH_LATER_CLIENT = FAIL_WITH_HIVE | {
    ("TestTablesGetExists", test): "the client takes the database's name for no pattern, and asks by a filter of names"
    for test in ("getTablesBogusCatalog", "testGetTables")
}


_NULLS = "expects what a metastore's null pointer or unnamed fault does to the client; Hive 4 answers MetaException"
_SIGNS = "expects other signs than letters, digits and underscores to be refused in names; Hive 4 takes them"
_META = "expects no catalog and owner in a table's short description"
_LIMIT = "expects the limit on the number asked for; Hive 4 counts the partitions that there are"
_NAMES = "expects NoSuchObjectException for the names of a missing table's partitions; Hive 4 answers none"
_TRUNCATE = (
    "expects a fault of the protocol for a missing table; this server answers the MetaException that is declared"
)
_CLIENT = "the client itself fails"

#: Tests of Hive 3.1.3's client that expect something else than Hive 4.0.1's tests or metastore, with the difference.
CONTRADICT_HIVE_4: dict[tuple[str, str], str] = {
    ("TestAddPartitions", "testAddPartitionsNullList"): _NULLS,
    ("TestAddPartitionsFromPartSpec", "testAddPartitionSpecUnsupportedPartSpecType"): _CLIENT,
    **{
        ("TestAddPartitionsFromPartSpec", test): _NULLS
        for test in (
            "testAddPartitionSpecNoDB",
            "testAddPartitionSpecNoDBAndTableInPartition",
            "testAddPartitionSpecNoTable",
            "testAddPartitionSpecWithSharedSDNoValue",
            "testAddPartitionSpecWithSharedSDNullSd",
        )
    },
    **{
        ("TestAlterPartitions", test): _NULLS
        for test in (
            "testAlterPartitionNullPartition",
            "testAlterPartitionWithEnvironmentCtxNullPartition",
            "testAlterPartitionsNullPartitionList",
            "testAlterPartitionsWithEnvironmentCtxNullPartitionList",
            "testRenamePartitionNullNewPart",
        )
    },
    ("TestDatabases", "testCreateDatabaseInvalidName"): _SIGNS,
    **{
        ("TestFunctions", test): _NULLS
        for test in (
            "testAlterFunctionEmptyNameInNew",
            "testAlterFunctionInvalidNameInNew",
            "testAlterFunctionNoSuchDatabaseInNew",
            "testAlterFunctionNullClassInNew",
            "testAlterFunctionNullDatabase",
            "testAlterFunctionNullDatabaseNameInNew",
            "testAlterFunctionNullFunction",
            "testAlterFunctionNullFunctionName",
            "testAlterFunctionNullFunctionNameInNew",
            "testAlterFunctionNullFunctionTypeInNew",
            "testAlterFunctionNullOwnerTypeInNew",
            "testCreateFunctionNullDatabaseName",
            "testCreateFunctionNullFunctionName",
            "testCreateFunctionNullFunctionType",
            "testCreateFunctionNullOwnerType",
            "testDropFunctionNullDatabase",
            "testDropFunctionNullFunctionName",
        )
    },
    **{
        ("TestGetPartitions", test): _NULLS
        for test in (
            "testGetPartitionWithAuthInfoNullDbName",
            "testGetPartitionWithAuthInfoNullTblName",
            "testGetPartitionsByNamesNullDbName",
            "testGetPartitionsByNamesNullTblName",
        )
    },
    **{
        ("TestGetTableMeta", test): _META
        for test in (
            "tablesInDifferentCatalog",
            "testGetTableMeta",
            "testGetTableMetaCaseSensitive",
            "testGetTableMetaNullOrEmptyDb",
            "testGetTableMetaNullOrEmptyTbl",
            "testGetTableMetaNullOrEmptyTypes",
        )
    },
    **{
        ("TestListPartitions", test): _LIMIT
        for test in (
            "testListPartitionSpecsByFilterHighMaxParts",
            "testListPartitionSpecsHighMaxParts",
            "testListPartitionsAllHighMaxParts",
            "testListPartitionsByFilterHighMaxParts",
            "testListPartitionsWithAuthHighMaxParts",
        )
    },
    **{
        ("TestListPartitions", test): _NAMES
        for test in (
            "listPartitionNamesBogusCatalog",
            "testListPartitionNamesNoDb",
            "testListPartitionNamesNoTable",
        )
    },
    **{
        ("TestListPartitions", test): _NULLS
        for test in (
            "testListPartitionNamesByValuesNullDbName",
            "testListPartitionNamesByValuesNullTblName",
            "testListPartitionNamesNullDbName",
            "testListPartitionNamesNullTblName",
            "testListPartitionSpecsNullTblName",
            "testListPartitionValuesEmptySchema",
            "testListPartitionsAllNullDbName",
            "testListPartitionsAllNullTblName",
            "testListPartitionsByFilterNullDbName",
            "testListPartitionsByFilterNullTblName",
            "testListPartitionsWithAuthByValuesNullDbName",
            "testListPartitionsWithAuthByValuesNullTblName",
        )
    },
    **{
        ("TestTablesCreateDropAlterTruncate", test): _NULLS
        for test in (
            "testAlterTableNullNewTable",
            "testCreateTableNullDatabase",
        )
    },
    **{
        ("TestTablesCreateDropAlterTruncate", test): _SIGNS
        for test in (
            "testAlterTableInvalidTableNameInNew",
            "testCreateTableInvalidTableName",
        )
    },
    **{
        ("TestTablesCreateDropAlterTruncate", test): _TRUNCATE
        for test in (
            "tablesInOtherCatalogs",
            "truncateTableBogusCatalog",
        )
    },
}


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(3600)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
@pytest.mark.parametrize(
    ("release", "least", "known"),
    [
        pytest.param(HIVE_4, 850, FAIL_WITH_HIVE, id="4.0.1"),
        pytest.param(HIVE_4_WITH_LATER_CLIENT, 850, FAIL_WITH_LATER_CLIENT, id="4.0.1 with 4.1.0's client"),
        pytest.param(HIVE_3, 788, CONTRADICT_HIVE_4, id="3.1.3"),
    ],
)
def test_hives_client_tests_pass(
    database_servers: ServerLookup, tmp_path: Path, release: Release, least: int, known: dict[tuple[str, str], str]
) -> None:
    failed: dict[tuple[str, str], str] = {}
    ran = 0
    for name in classes_of_tests(release):
        outcome = run_on_a_new_metastore(name, database_servers("mariadb"), tmp_path / name, release)
        ran += outcome.ran
        print(f"{name}: {outcome.ran} tests, failed: {sorted(outcome.failed)}", flush=True)
        failed.update({(name, test): outcome.output for test in outcome.failed})
    assert ran > least
    assert set(failed) == set(known), "\n".join(text for test, text in failed.items() if test not in known)[:20000]


def run_on_a_new_metastore(
    name: str,
    databases: SqliteFiles | DatabaseServer,
    directory: Path,
    release: Release,
    package: str = PACKAGE,
    more: Mapping[str, object] | None = None,
) -> Outcome:
    """The classes leave objects behind, and expect none. `more` are additional settings of the server."""
    url = databases.initialized_database()
    warehouse = directory / "warehouse"
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        # Hive 3 only knows one directory.
        "warehouse.external_directory": "" if release is HIVE_3 else f"file:{warehouse}-external",
        # Where some tests create managed tables that they truncate, `test.tmp.dir`.
        "warehouse.allowed_locations": f"file:{directory / 'tests'}",
        "warehouse.trash_interval_min": TRASH_INTERVAL_MIN,
        # What the tests set for the metastores that they start themselves.
        "catalog.partition_request_limit": 100,
        "catalog.batch_retrieve_max": 2,
        **(more or {}),
    }
    with server_process(directory / "server", url, settings) as server:
        tests = ClientTests(directory / "tests", server.uri, warehouse, with_password(url), release, package)
        outcome = tests.run(name)
    databases.give_back(url)
    return outcome


def with_password(url: str) -> str:
    """The database for a user with a password, which Hive's ObjectStore requires."""
    granted = make_url(url).set(username="client_tests", password="client_tests")
    engine = create_engine(url)
    with engine.connect() as connection:
        for host in ("localhost", "127.0.0.1"):
            connection.exec_driver_sql(f"CREATE USER IF NOT EXISTS client_tests@{host!r} IDENTIFIED BY 'client_tests'")
            connection.exec_driver_sql(f"GRANT ALL ON `{granted.database}`.* TO client_tests@{host!r}")
    engine.dispose()
    return granted.render_as_string(hide_password=False)
