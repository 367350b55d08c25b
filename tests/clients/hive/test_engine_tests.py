"""Tests of Hive 4.0.1's engine pass with our server as with a metastore in their own process.

Partition expressions, repairs, batches, privileges, temporary tables: they make all of their reads and writes through a
client. Those of transactions and compactions also use a store of transactions in their process, on the same database.
In some of them, what a metastore has a call for goes to our server instead (`java/…/TxnStoreOverThrift.java`).
"""

from __future__ import annotations

import getpass
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from tests.clients.hive.client_tests import TRASH_INTERVAL_MIN, Outcome
from tests.clients.hive.engine_tests import (
    PACKAGE,
    STORE_OVER_THRIFT,
    EngineTests,
    lower_case_views,
    properties_for_transactions,
)
from tests.clients.hive.test_client_tests import with_password
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, SqliteFiles
from tests.servers import server_process

_HIVE = ("testGetPartitionsWithMaxLimit", "testMetaStoreApiTiming", "testTable", "testThriftTable")
_ON_HIVE = "fails on Hive 4.0.1's metastore as well, when it runs in a process of its own"
_OF_CLIENT = "the client answers it itself for temporary tables, with a class that is not set here"

_SETTING = "changes a setting in the metastore's process"
_NULLS = "expects rows without a value to be the greatest of an order, as in Derby; in MariaDB they are the least"

_COMPACTOR_TEST = f"{PACKAGE}.ql.txn.compactor.CompactorTest"
_ACID_FORMATS = [
    f"{family}{direction}Format"
    for family in (f"{PACKAGE}.ql.io.orc.Orc", f"{_COMPACTOR_TEST}$Mock")
    for direction in ("Input", "Output")
]

_METRICS = "reads metrics of the metastore's process, whose classes have another name in the jar of Hive's engine"
_ANALYSIS = "expects the first ANALYZE after an aborted write to be exact; here it is the second (`compatibility.md`)"

_WITH_STORE = (
    "ql.TestTxnCommands2",
    "ql.TestTxnCommandsForMmTable",
    "ql.TestTxnConcatenate",
    "ql.TestTxnExIm",
    "ql.TestTxnLoadData",
    "ql.TestTxnNoBuckets",
    "ql.stats.",
    "ql.txn.compactor.TestWorker",
    "ql.util.",
    "metastore.txn.",
)
_ON_TRANSACTIONS = ("ql.TestTxnCommands", "ql.txn.compactor.", *_WITH_STORE)

_TEMPORARY = "ql.metadata.TestSessionHiveMetastoreClient{}TempTable"

CLASSES: dict[str, dict[str, str]] = {
    "ql.TestTxnCommands3": {},
    "ql.TestTxnCommands": {
        "testShowCompactionFilterSortingAndLimit": _NULLS,
        "testTxnStatsOnOff": _SETTING,
    },
    "ql.TestTxnCommands2": {
        **dict.fromkeys(("testAbortCompaction", "testShowCompactionOrder"), _NULLS),
        "testOpenTxnsCounter": _SETTING,
    },
    "ql.TestTxnCommandsForMmTable": {},
    "ql.TestTxnConcatenate": {},
    "ql.TestTxnExIm": {},
    "ql.TestTxnLoadData": {},
    "ql.TestTxnNoBuckets": {},
    "metastore.txn.TestTxnHandler": {
        "allocateNextWriteIdRetriesAfterDetectingConflictingConcurrentInsert": (
            "commits on a connection that commits each statement, which MySQL's driver refuses"
        ),
        "testHeartbeatLockMaterializationRebuild": "locks for a transaction that does not exist",
        "testReplOpenTxn": "opens 50,000 transactions at once, after a change of a setting in the metastore's process",
        **dict.fromkeys(("testAbortTxns", "testReplAllocWriteId"), "quotes names in a way that MariaDB reads as texts"),
    },
    "metastore.txn.TestCompactionTxnHandler": {
        **dict.fromkeys(
            (
                "testFindNextToClean",
                "testFindNextToClean_limitFetchSize",
                "testMarkCleaned",
                "testMarkCleanedCleansTxnsAndTxnComponents",
            ),
            "compacts in a transaction that does not exist",
        ),
        "testMarkFailed": "expects an undeclared exception; over Thrift no client gets one",
    },
    "ql.txn.compactor.TestCleaner": {},
    "ql.txn.compactor.TestInitiator": {},
    "ql.txn.compactor.TestWorker": {},
    "ql.txn.compactor.handler.TestAbortedTxnCleaner": {},
    "ql.TestTxnAddPartition": dict.fromkeys(
        ("addPartitionMMVectorized", "addPartitionRename", "addPartitionVectorized"), _ON_HIVE
    ),
    "metastore.TestListPartitionsWithXIncludeParams": {
        "otherCatalog": "runs twice, the first time for an embedded metastore, and leaves a catalog behind",
    },
    "metastore.TestMetastoreExpr": {
        "testPartitionExpr": "has the metastore compute `instr`, which is left to the client; on Hive's it fails later",
    },
    "ql.lockmgr.TestDbTxnManager": dict.fromkeys(("testHeartbeater", "testHeartbeaterReplicationTxn"), _METRICS),
    "ql.lockmgr.TestDbTxnManagerIsolationProperties": dict.fromkeys(
        ("gapOpenTxnsDirtyRead", "gapOpenTxnsNoDirtyRead", "multipleGapOpenTxnsNoDirtyRead"),
        "opens transactions in the database itself, by a connection of a kind that MySQL's driver does not have",
    ),
    "ql.lockmgr.TestDbTxnManager2": {},
    "ql.lockmgr.TestDummyTxnManager": {},
    "ql.metadata.TestHive": dict.fromkeys(_HIVE, _ON_HIVE),
    "ql.metadata.TestHiveRemote": dict.fromkeys(_HIVE, _ON_HIVE),
    "ql.metadata.TestHiveMetaStoreChecker": {"testTableCheck": _ON_HIVE},
    "ql.metadata.TestMSCKRepairOnAcid": dict.fromkeys(
        ("testAddPartitionHighVisibilityId", "testAddPartitionMajorCompacted", "testBackUpAndRestorePartition"),
        _ON_HIVE,
    ),
    _TEMPORARY.format("AddPartitionsFromSpec"): {
        "testAddPartitionSpecUnsupportedPartSpecType": "the client itself refuses it"
    },
    **{
        _TEMPORARY.format(what): {}
        for what in (
            "AddPartitions",
            "AlterPartitions",
            "AppendPartition",
            "DropPartitions",
            "ExchangePartitions",
            "GetPartitions",
        )
    },
    _TEMPORARY.format("ListPartitions"): dict.fromkeys(
        (
            "testGetNumPartitionsByFilter",
            "testListPartitionNames",
            "testListPartitionsByExpr",
            "testListPartitionsByExprDefMaxParts",
            "testListPartitionsByExprHighMaxParts",
            "testListPartitionsByExprNullResult",
            "testListPartitionsByFilter",
            "testListPartitionsByFilterCaseInsensitive",
            "testListPartitionsByFilterCaseSensitive",
            "testListPartitionsSpecByExpr",
            "testListPartitionsSpecByExprDefMaxParts",
            "testListPartitionsSpecByExprHighMaxParts",
            "testListPartitionsSpecByExprNullResult",
            "testListPartitionsSpecsByFilter",
        ),
        _OF_CLIENT,
    ),
    "ql.exec.TestGetPartitionAuthWithBatches": {},
    "ql.exec.TestGetPartitionInBatches": {},
    "ql.exec.TestMsckCreatePartitionsInBatches": {},
    "ql.exec.TestMsckDropPartitionsInBatches": {},
    "ql.hooks.TestHiveHooks": {},
    "ql.hooks.TestHooks": {},
    "ql.metadata.TestTempAcidTable": {},
    "ql.parse.TestColumnAccess": {},
    "ql.parse.TestDMLSemanticAnalyzer": {},
    "ql.parse.authorization.TestHiveAuthorizationTaskFactory": {},
    "ql.parse.authorization.TestPrivilegesV1": {},
    "ql.parse.authorization.TestPrivilegesV2": {},
    "ql.plan.TestReadEntityDirect": {},
    "ql.plan.TestViewEntity": {},
    "ql.plan.mapping.TestReOptimization": {"testReOptimizationCanSendBackStatsToCBO": _ON_HIVE},
    "ql.schq.TestScheduledQueryService": {},
    "ql.schq.TestScheduledQueryStatements": {},
    "ql.security.authorization.plugin.TestHivePrivilegeObjectOwnerNameAndType": {},
    "ql.stats.TestStatsUpdaterThread": {"testTxnPartitions": _ANALYSIS},
    "ql.util.TestHiveStrictManagedMigration": dict.fromkeys(
        ("testUpgrade", "testUsingControlDirUrl", "testUsingControlFileUrl"), _ON_HIVE
    ),
    "ql.util.TestUpgradeTool": {},
}
"""Each with its tests that fail and why."""

_BY_THE_CLOCK = {"recoverFailedRemoteWorkers", "testRevokeTimedOutWorkers"}
"""Tests that pass or do not by when they run: times of the database, in whole seconds, are compared."""

_OMITTED = {"metastore.txn.TestTxnHandler": ("testRecoverManyTimeouts", "testReplTimeouts")}
"""Tests that never end: Hive's housekeeping in their process selects transactions by the time limit of the test, and
aborts them by that of the settings."""

_SETTINGS: dict[str, dict[str, object]] = {
    # Tables of the compactor's tests have formats of their own, which implement Hive's interfaces. They count rows that
    # housekeeping deletes.
    **{
        name.rpartition(".")[2]: {
            "catalog.acid_formats": _ACID_FORMATS,
            "transactions.housekeeping_interval_s": float("inf"),
        }
        for name in CLASSES
        if name.startswith(_ON_TRANSACTIONS)
    },
    "TestDbTxnManager": {"transactions.timeout_s": 10, "transactions.replication_timeout_s": 15},
    "TestListPartitionsWithXIncludeParams": {"catalog.partition_request_limit": 100},
    "TestScheduledQueryStatements": {"catalog.users_in_admin_role": [getpass.getuser()]},
}
"""What classes set for the metastore in their process."""


_SHORT_TIMES = {
    # Tests sleep as long as a transaction lives without a heartbeat.
    "hive.txn.timeout": "10s",
    "metastore.txn.timeout": "10s",
    "metastore.repl.txn.timeout": "15s",
}

_PROPERTIES: dict[str, dict[str, str]] = {
    "TestDbTxnManager": {**STORE_OVER_THRIFT, **_SHORT_TIMES},
    **{name: {"hive.support.concurrency": "true"} for name in ("TestDMLSemanticAnalyzer", "TestTempAcidTable")},
}
"""What classes do not set themselves, though they need it."""


def run_engine_class(
    databases: SqliteFiles | DatabaseServer,
    directory: Path,
    name: str,
    settings: Mapping[str, object],
    properties: Mapping[str, str],
    *,
    is_transactional: bool = False,
    omitted: Collection[str] = (),
    jars: Sequence[Path] = (),
) -> Outcome:
    """Runs a class, with its full name, with a new server on an empty MariaDB database."""
    url = databases.initialized_database()
    warehouse = directory / "of-class" / "warehouse"
    all_settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": f"file:{warehouse}-external",
        "warehouse.allowed_locations": f"file:{directory}",
        "warehouse.trash_interval_min": TRASH_INTERVAL_MIN,
        **settings,
    }
    granted = with_password(url)
    all_properties = {**(properties_for_transactions(granted) if is_transactional else {}), **properties}
    with server_process(directory / "server", url, all_settings) as server, lower_case_views(url):
        tests = EngineTests(directory / "tests", server.uri, warehouse, granted, all_properties, jars)
        outcome = tests.run(name, omitted)
    databases.give_back(url)
    (directory / "junit.txt").write_text(outcome.output)
    print(f"{name}: {outcome.ran} tests, failed: {sorted(outcome.failed)}", flush=True)
    return outcome


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(2700)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "java")), reason="needs mvn and Java")
@pytest.mark.parametrize("name", CLASSES)
def test_hives_engine_tests_pass(database_servers: ServerLookup, tmp_path: Path, name: str) -> None:
    simple = name.rpartition(".")[2]
    outcome = run_engine_class(
        database_servers("mariadb"),
        tmp_path,
        f"{PACKAGE}.{name}",
        _SETTINGS.get(simple, {}),
        {**(STORE_OVER_THRIFT if name.startswith(_WITH_STORE) else {}), **_PROPERTIES.get(simple, {})},
        is_transactional=name.startswith(_ON_TRANSACTIONS),
        omitted=_OMITTED.get(name, ()),
    )
    assert outcome.failed - _BY_THE_CLOCK == set(CLASSES[name]), outcome.output[:20000]
