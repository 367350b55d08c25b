"""Hive's own tests of its metastore, outside the client's package, pass with our server as with their own metastore.

`java/…/MetaStoreTestUtils.java` replaces the class that starts a metastore in the process of the tests. Omitted are
tests that call the classes of Hive's server (stores, handlers, caches, tools) and use no Thrift, those about what is
installed into its process (listeners, faults, delays, kinds of properties, a check of passwords), and those of an
embedded metastore, which expect its answers to be the caller's own objects.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.hive.client_tests import HIVE_3, HIVE_4, METASTORE, Release
from tests.clients.hive.test_client_tests import run_on_a_new_metastore
from tests.conftest import ServerLookup

_IN_PROCESS = "looks into the metastore's process: its listeners, its hooks, its pools, or a fault injected there"
_UNDECLARED = "expects an undeclared exception of an embedded metastore; over Thrift no client gets one"
_BROKEN_OFF = "the client itself refuses to write a field, and writes the next call behind the half of this one"
_CONFIGURATION = "drops by MSCK's filter texts without telling the metastore, whose configuration is to announce them"
_NO_CATALOG = "the client of Hive 2 cannot write Hive 4's request, which requires a catalog"
_SAME_OBJECT = "expects what an embedded metastore answers with the caller's own object"

_OF_SITE = "asks for a setting that the site file of these tests changes"

_META = "expects no catalog and owner in a table's short description, which Hive 4 answers"

_SIGNS = "expects other signs than letters, digits and underscores to be refused in names; Hive 4 takes them"
_ERASURE = "expects no count of erasure coded files among the parameters of a partition, which Hive 4 adds"
_TEXT = "expects the text that Hive 3 has for a table that is not there"

_REMOTE = ("testGetSchemaWithNoClassDefFoundError", "testJDOPersistenceManagerCleanup")

#: What the tests set for the metastores that they start themselves, in addition to the common settings.
_SETTINGS: dict[str, dict[str, object]] = {
    "TestMetastoreTransformer": {"catalog.metadata_translation": "hive4"},
    # As long as the tests set it for the metastore, by properties of its process.
    "TestMarkPartition": {"events.marker_retention_s": 2},
    "TestMarkPartitionRemote": {"events.marker_retention_s": 2},
    "TestPartitionNameWhitelistValidation": {
        "catalog.partition_name_whitelist_pattern": r"[\x20-\x7E&&[^,]]*",
    },
    "TestHiveMetastoreHttpHeaders": {"server.transport_mode": "http"},
    "TestRemoteHiveHttpMetaStore": {"server.transport_mode": "http"},
}

#: The classes that run, each with its failing tests and the reasons.
HIVE_4_CLASSES: dict[str, dict[str, str]] = {
    "TestCatalogNonDefaultClient": {},
    "TestCatalogOldClient": {
        **dict.fromkeys(("defaultConstraints", "notNullConstraint", "uniqueConstraint"), _NO_CATALOG),
        **dict.fromkeys(("createTableWithConstraints", "primaryKeyAndForeignKey"), _SAME_OBJECT),
    },
    "TestFilterHooks": {"testHMSServerWithFilter": _IN_PROCESS},
    "TestGetPartitionsUsingProjectionAndFilterSpecs": {},
    "TestHiveMetaStorePartitionSpecs": {},
    "TestHiveMetaStoreSchemaMethods": dict.fromkeys(
        (
            "addSchemaVersion",
            "addSchemaVersionOtherDb",
            "iSchema",
            "multipleSchemaVersions",
            "setVersionState",
            "setVersionStateOtherDb",
        ),
        _IN_PROCESS,
    ),
    "TestHiveMetaStoreTxns": {
        **dict.fromkeys(
            ("testAllocateTableWriteIdForReadOnlyTxn", "testTxNWithKeyValueNoTableId", "testTxNWithKeyWrongPrefix"),
            _UNDECLARED,
        ),
        **dict.fromkeys(
            ("testGetLatestCommittedCompactionInfo", "testOpenReadOnlyTxnExcluded", "testTxnTypePersisted"),
            _BROKEN_OFF,
        ),
    },
    "TestHiveMetaStoreGetMetaConf": {"testGetMetaConfDefault": _OF_SITE},
    "TestHiveMetastoreHttpHeaders": {},
    "TestMarkPartition": {},
    "TestMarkPartitionRemote": {},
    "TestMetastoreTransformer": {},
    "TestPartitionManagement": dict.fromkeys(
        (
            "testNoPartitionDiscoveryForReplTable",
            "testNoPartitionRetentionForReplTarget",
            "testPartitionDiscoveryEnabledBothTableTypes",
            "testPartitionDiscoveryTransactionalTable",
            "testPartitionExprFilter",
            "testPartitionRetention",
        ),
        _CONFIGURATION,
    ),
    "TestPartitionNameWhitelistValidation": {},
    "TestRemoteHiveHttpMetaStore": dict.fromkeys(_REMOTE, _IN_PROCESS),
    "TestRemoteHiveMetaStore": dict.fromkeys(_REMOTE, _IN_PROCESS),
    "TestRemoteHiveMetaStoreIpAddress": {},
    "TestRemoteUGIHiveMetaStoreIpAddress": {},
    **dict.fromkeys(
        ("TestSetUGIOnBothClientServer", "TestSetUGIOnOnlyClient", "TestSetUGIOnOnlyServer"),
        dict.fromkeys(_REMOTE, _IN_PROCESS),
    ),
    "TestStats": {},
}

_REMOTE_3 = {
    "testAlterTable": _SIGNS,
    "testGetSchemaWithNoClassDefFoundError": _IN_PROCESS,
    "testPartition": _ERASURE,
    "testPartitionFilter": _TEXT,
}

#: Those of Hive 3.1.3 that run, in the same form.
HIVE_3_CLASSES: dict[str, dict[str, str]] = {
    "TestCatalogNonDefaultClient": {"getTableMeta": _META},
    "TestCatalogOldClient": {**HIVE_4_CLASSES["TestCatalogOldClient"], "getTableMeta": _META},
    "TestFilterHooks": {},
    "TestHiveMetaStorePartitionSpecs": {},
    "TestHiveMetaStoreSchemaMethods": HIVE_4_CLASSES["TestHiveMetaStoreSchemaMethods"],
    "TestHiveMetaStoreTxns": {},
    "TestMarkPartition": {},
    "TestMarkPartitionRemote": {},
    "TestPartitionNameWhitelistValidation": {},
    "TestRemoteHiveMetaStore": _REMOTE_3,
    "TestRemoteHiveMetaStoreIpAddress": {},
    "TestRemoteUGIHiveMetaStoreIpAddress": {},
    "TestSetUGIOnBothClientServer": _REMOTE_3,
    "TestSetUGIOnOnlyClient": _REMOTE_3,
    "TestSetUGIOnOnlyServer": _REMOTE_3,
    "TestStats": {},
}


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1200)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
@pytest.mark.parametrize(
    ("release", "name", "known"),
    [
        pytest.param(release, name, set(known), id=f"{release.version}-{name}")
        for release, classes in ((HIVE_4, HIVE_4_CLASSES), (HIVE_3, HIVE_3_CLASSES))
        for name, known in classes.items()
    ],
)
def test_hives_metastore_tests_pass(
    database_servers: ServerLookup, tmp_path: Path, release: Release, name: str, known: set[str]
) -> None:
    outcome = run_on_a_new_metastore(
        name, database_servers("mariadb"), tmp_path / name, release, METASTORE, _SETTINGS.get(name)
    )
    print(f"{name}: {outcome.ran} tests, failed: {sorted(outcome.failed)}", flush=True)
    assert outcome.failed == known, outcome.output[:20000]
