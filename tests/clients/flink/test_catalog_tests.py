"""The tests of Flink's own Hive catalog pass with our server, as with a metastore in their own process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients import junit
from tests.clients.junit import Outcome, dependency
from tests.conftest import ServerLookup
from tests.downloads import dependencies
from tests.servers import server_process

CONNECTOR = "org.apache.flink:flink-connector-hive_2.12:3.0.0-1.20"
FLINK = "1.20.0"
HIVE = "2.3.10"
PACKAGE = "org.apache.flink.table.catalog.hive"
CLASSES = {"HiveCatalogHiveMetadataTest": 100, "HiveCatalogGenericMetadataTest": 97}
"""How many tests of each class pass. Tables of Hive's and of Flink's own kind: databases, tables, views, partitions,
functions, statistics, with all the exceptions that the catalog makes of the metastore's."""

_TESTS = "<classifier>tests</classifier>"
_MODULES = (
    "table-api-java-bridge",
    "table-runtime",
    "table-calcite-bridge",
    "table-planner_2.12",
    "clients",
    "csv",
    "json",
    "orc",
    "parquet",
    "connector-files",
    "test-utils",
    "test-utils-junit",
    "hadoop-compatibility_2.12",
)
_MODULES_OF_TESTS = ("table-planner_2.12", "table-common", "table-api-java", "streaming-java", "core", "runtime")
_LIBRARIES = (
    "org.apache.thrift:libfb303:0.9.3",
    "commons-lang:commons-lang:2.6",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "org.junit.jupiter:junit-jupiter:5.10.1",
    "org.junit.platform:junit-platform-console:1.10.1",
    "org.assertj:assertj-core:3.23.1",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.17.1",
    "org.apache.logging.log4j:log4j-1.2-api:2.17.1",
    "org.apache.logging.log4j:log4j-core:2.17.1",
)
#: Of Hadoop 2.2 and its dependencies, which Flink's modules require.
_NOT_COPIED = (
    "hadoop-common",
    "hadoop-hdfs",
    "hadoop-auth",
    "hadoop-annotations",
    "log4j",
    "slf4j-log4j12",
    "commons-configuration",
    "commons-httpclient",
    "jersey-core",
    "jersey-server",
    "jackson-core-asl",
    "jackson-mapper-asl",
    "asm",
)
_OPENS = ("java.lang", "java.lang.reflect", "java.net", "java.util")


def _fetch() -> Path:
    project = junit.project(
        [
            dependency(CONNECTOR),
            dependency(CONNECTOR, _TESTS),
            *[dependency(f"org.apache.flink:flink-{module}:{FLINK}") for module in _MODULES],
            *[dependency(f"org.apache.flink:flink-{module}:{FLINK}", _TESTS) for module in _MODULES_OF_TESTS],
            *[dependency(f"org.apache.hive:hive-{module}:{HIVE}", without=["*"]) for module in ("exec", "metastore")],
            *map(dependency, _LIBRARIES),
        ]
    )
    return dependencies("flink-tests-3.0.0-1.20", project, [f"-DexcludeArtifactIds={','.join(_NOT_COPIED)}"])


def _run(name: str, directory: Path, uri: str) -> Outcome:
    """Flink's tests read the metastore from the first `hive-site.xml`: without an address, one in their process."""
    site = directory / "site"
    site.mkdir(parents=True)
    (site / "hive-site.xml").write_text(
        f"<configuration><property><name>hive.metastore.uris</name><value>{uri}</value></property></configuration>"
    )
    (site / "log4j2-test.properties").write_text("rootLogger.level = off\n")
    libraries = _fetch()
    return junit.run_class(
        f"{PACKAGE}.{name}",
        directory,
        # Hive's program contains other libraries; Flink expects its own of the same names after it.
        f"{site}:{libraries}/hive-exec-{HIVE}.jar:{libraries}/*",
        {"java.io.tmpdir": str(directory)},
        [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS],
    )


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1800)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "java")), reason="needs mvn and Java")
def test_flinks_catalog_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    databases = database_servers("mariadb")
    passed: dict[str, int] = {}
    for name in CLASSES:
        directory = tmp_path / name
        url = databases.initialized_database()
        warehouse = directory / "warehouse"
        warehouse.mkdir(parents=True)
        settings: dict[str, object] = {
            "warehouse.directory": f"file:{warehouse}",
            "warehouse.external_directory": "",  # Hive 2 only knows one directory
            "warehouse.allowed_locations": f"file:{directory}",
        }
        with server_process(directory / "server", url, settings) as server:
            outcome = _run(name, directory / "tests", server.uri)
        databases.give_back(url)
        assert not outcome.failed, f"{name}: {sorted(outcome.failed)}\n{outcome.output[:20000]}"
        passed[name] = len(outcome.passed)
    assert passed == CLASSES
