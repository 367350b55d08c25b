"""Spark's own test suites of its Hive support pass with our server, except for tests that expect Hive 2.3's
behavior."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.spark import suites
from tests.conftest import ServerLookup
from tests.servers import server_process

_LOCATION = "execution.command.AlterNamespaceSetLocationSuite: ALTER NAMESPACE ... SET LOCATION using Hive V1 catalog"

_ERASURE_CODED = "the metastore writes numFilesErasureCoded, as Hive 4.0.1's does; Spark lists what Hive 2.3's writes"
_PROPERTIES = (
    "execution.command.AlterTable{}TblPropertiesSuite: ALTER TABLE .. {} TBLPROPERTIES using Hive V1 catalog V1"
)
_SHOW_CREATE = "execution.command.ShowCreateTableSuite: SHOW CREATE TABLE using Hive V1 catalog"

FAIL: dict[str, str] = {
    **{
        f"{_PROPERTIES.format(verb.title(), verb)} command: alter table {verb.lower()} {what}": _ERASURE_CODED
        for verb, what in (("SET", "properties"), ("UNSET", "properties"), ("UNSET", "non-existent properties"))
    },
    **{
        f"{_SHOW_CREATE} {version} command: {what}": _ERASURE_CODED
        for version in ("V1", "V2")
        for what in (
            "bucketed data source table",
            "data source table CTAS",
            "data source table with a comment",
            "data source table with table properties",
            "simple external hive table",
            "sort bucketed data source table",
        )
    },
    **{
        f"{_LOCATION} {version} command: Hive catalog not supported": (
            "expects that the metastore changes no location; Hive's does since 3.0"
        )
        for version in ("V1", "V2")
    },
    **{
        f"execution.HiveDDLSuite: CREATE TABLE LIKE {kind}": _ERASURE_CODED
        for kind in (
            "a temporary view",
            "a data source table",
            "an external data source table",
            "a managed Hive serde table",
            "a view",
        )
    },
    "execution.SQLQuerySuite: SPARK-36905: read hive views without without explicit column names": (
        "the engine of Hive 2.3 writes into the directory of its own settings, which are not the server's"
    ),
    "execution.HiveDDLSuite: drop default database": (
        "expects Hive 2's text of the error; Hive's since 3.0 names the catalog"
    ),
    "execution.HiveDDLSuite: create table with the same name as an index table": (
        "has Hive 2's engine make an index; Hive's metastore has none since 3.0"
    ),
}
"""Tests that fail with our server, with the reason."""


def _commands(*names: str) -> tuple[str, ...]:
    return tuple(f"execution.command.{name}Suite" for name in names)


GROUPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "catalog": (83, ("HiveExternalCatalogSuite",)),
    "statements": (232, ("execution.HiveDDLSuite",)),
    "statistics": (52, ("StatisticsSuite",)),
    "tables of data sources": (
        254,
        (
            "DataSourceWithHiveMetastoreCatalogSuite",
            "HiveExternalSessionCatalogSuite",
            "HiveMetastoreCatalogSuite",
            "HiveSchemaInferenceSuite",
            "ListTablesSuite",
            "MetastoreDataSourcesSuite",
            "MultiDatabaseSuite",
            "OptimizeHiveMetadataOnlyQuerySuite",
            "PartitionProviderCompatibilitySuite",
            "PartitionedTablePerfStatsSuite",
            "QueryPartitionSuite",
            "execution.PruneHiveTablePartitionsSuite",
        ),
    ),
    "queries": (
        297,
        (
            "HiveCharVarcharDDLTestSuite",
            "HiveCharVarcharTestSuite",
            "HiveParquetMetastoreSuite",
            "InsertSuite",
            "UDFSuite",
            "execution.HiveCommandSuite",
            "execution.HiveSQLViewSuite",
            "execution.HiveUDFSuite",
        ),
    ),
    "databases": (
        46,
        _commands("AlterNamespaceSetLocation", "AlterNamespaceSetProperties", "AlterNamespaceUnsetProperties")
        + _commands("CreateNamespace", "DropNamespace"),
    ),
    "tables": (22, _commands("AlterTableAddColumns", "AlterTableRename", "AlterTableSetLocation", "DropTable")),
    "partitions": (
        84,
        _commands("AlterTableAddPartition", "AlterTableDropPartition", "AlterTableRecoverPartitions")
        + _commands("AlterTableRenamePartition", "MsckRepairTable", "ShowPartitions", "TruncateTable"),
    ),
    "descriptions": (
        251,
        _commands("AlterTableClusterBy", "AlterTableDropColumn", "AlterTableRenameColumn", "AlterTableSetSerde")
        + _commands("AlterTableSetTblProperties", "AlterTableUnsetTblProperties", "CreateTableClusterBy")
        + _commands("DescribeNamespace", "DescribeTable", "ShowColumns", "ShowCreateTable", "ShowFunctions")
        + _commands("ShowNamespaces", "ShowTables", "ShowTblProperties", "TableConstraint", "V1WriteHiveCommand"),
    ),
    "caches": (
        142,
        (
            "CachedTableSuite",
            "CompressionCodecSuite",
            "ErrorPositionSuite",
            "HiveMetadataCacheSuite",
            "HiveParquetSourceSuite",
            "HiveParquetSuite",
            "HiveSQLInsertTestSuite",
            "HiveSharedStateSuite",
            "HiveTableRelationResolverSuite",
            "ParquetHiveCompatibilitySuite",
        ),
    ),
    "answers of Hive": (138, ("execution.HiveQuerySuite",)),
    "files of Hive": (489, ("execution.HiveCompatibilitySuite",)),
    "reading": (
        105,
        (
            "execution.HiveExplainSuite",
            "execution.HiveResolutionSuite",
            "execution.HiveSerDeReadWriteSuite",
            "execution.HiveSerDeSuite",
            "execution.HiveTableScanSuite",
            "execution.HiveTypeCoercionSuite",
            "execution.PruningSuite",
        ),
    ),
    "windows": (
        56,
        (
            "execution.HiveUDAFSuite",
            "execution.HiveWindowFunctionQueryFileSuite",
            "execution.HiveWindowFunctionQuerySuite",
            "execution.WindowQuerySuite",
        ),
    ),
    "aggregates": (36, ("execution.HashAggregationQuerySuite", "execution.HashUDAQuerySuite")),
    "buckets": (33, ("org.apache.spark.sql.sources.BucketedReadWithHiveSupportSuite",)),
    "sessions": (
        59,
        (
            "HiveContextCompatibilitySuite",
            "HiveSessionStateSuite",
            "HiveUserDefinedTypeSuite",
            "HiveUtilsSuite",
            "HiveVariableSubstitutionSuite",
            "TestHiveSuite",
            "connector.HiveSourceRowLevelOperationSuite",
            "execution.BigDataBenchmarkSuite",
            "execution.ConcurrentHiveSuite",
            "execution.HiveScriptTransformationSuite",
        ),
    ),
    "types of columns": (4, ("execution.HiveIncompatibleColTypeChangeSuite",)),
    "SQL": (115, ("execution.SQLQuerySuite",)),
    "ORC": (82, ("orc.HiveOrcPartitionDiscoverySuite", "orc.HiveOrcQuerySuite", "orc.HiveOrcSourceSuite")),
}
"""How many tests of these suites pass. Those of a group share a JVM and a server."""


_SETTINGS: dict[str, dict[str, object]] = {
    "types of columns": {"catalog.disallow_incompatible_column_type_changes": True},
}
"""What groups need of the server besides what all need."""

CLIENT_SUITES = {"client.HiveClient": 74, "client.HivePartitionFiltering": 45, "client.HiveClientUserName": 3}
"""Suites that Spark has for the client of each Hive, and how many tests they have."""

_FILTERS = "expects that a metastore without direct SQL refuses a condition on integers; ours evaluates any"
_PLACE = "the client's engine writes into the directory of its own settings, which are not the server's"
_FALLBACK = "spark.sql.hive.metastorePartitionPruningFallbackOnException"

CLIENT_FAIL: dict[str, dict[str, str]] = {
    version: {
        f"client.HivePartitionFilteringSuite: {version}: getPartitionsByFilter {what}": _FILTERS
        for what in (f"returns all partitions when {_FALLBACK}=true", f"should fail when {_FALLBACK}=false")
    }
    | {f"client.HiveClientSuite: {version}: {test}": reason for test, reason in more.items()}
    for version, more in {
        "2.3": {
            "alterDatabase": "expects that the metastore changes no location; Hive's does since 3.0",
            "sql create index and reset": "has Hive 2's engine make an index; Hive's metastore has none since 3.0",
            "read table written by Hive": _PLACE,
        },
        "3.1": {},
        "4.0": {"read table written by Hive": _PLACE},
        "4.1": {"read table written by Hive": _PLACE},
    }.items()
}
"""Their tests that fail with our server, by the version of the client, with the reason."""


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.spark
@pytest.mark.timeout(6000)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "java")), reason="needs mvn and Java")
@pytest.mark.parametrize("group", GROUPS)
def test_sparks_own_suites_pass(database_servers: ServerLookup, tmp_path: Path, group: str) -> None:
    expected, names = GROUPS[group]
    settings = _settings(tmp_path) | _SETTINGS.get(group, {})
    databases = database_servers("sqlite")
    url = databases.create_database()
    with server_process(tmp_path / "server", url, settings) as server:
        outcome = suites.run(names, tmp_path / "spark", server.uri)
    databases.drop_database(url)
    print(f"{group}: {len(outcome.passed)} passed, {len(outcome.unfit)} unfit, {sorted(outcome.failed)}", flush=True)
    known = {test for test in FAIL if test.partition(":")[0] in names}
    assert outcome.failed == known, outcome.output[:20000]
    assert len(outcome.passed) == expected


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.spark
@pytest.mark.timeout(6000)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "java")), reason="needs mvn and Java")
@pytest.mark.parametrize("version", CLIENT_FAIL)
def test_sparks_suites_of_hives_clients_pass(database_servers: ServerLookup, tmp_path: Path, version: str) -> None:
    databases = database_servers("sqlite")
    for name, count in CLIENT_SUITES.items():
        directory = tmp_path / name
        settings = _settings(directory)
        urls = [databases.create_database() for _ in range(2)]
        with (
            server_process(directory / "server", urls[0], settings) as server,
            server_process(directory / "other", urls[1], settings) as other,
        ):
            outcome = suites.run_with_client(name, version, directory / "spark", server.uri, other.uri)
        for url in urls:
            databases.drop_database(url)
        print(f"{name} {version}: {len(outcome.passed)} passed, {sorted(outcome.failed)}", flush=True)
        known = {test for test in CLIENT_FAIL[version] if test.startswith(f"{name}Suite:")}
        assert outcome.failed == known, outcome.output[:20000]
        assert len(outcome.passed) == count - len(known)


def _settings(directory: Path) -> dict[str, object]:
    warehouse = directory / "warehouse"
    warehouse.mkdir(parents=True)
    return {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": "",  # Hive 2 only knows one directory
        # Databases and tables of the suites are in temporary directories.
        "warehouse.allowed_locations": f"file:{directory}",
        # As the suites set it for the metastore in their process.
        "catalog.disallow_incompatible_column_type_changes": False,
    }
