"""The tests of Iceberg's Hive catalog (JUnit, from Maven Central), run against this server."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients import junit
from tests.clients.junit import Outcome, dependency
from tests.databases import DatabaseServer, SqliteFiles
from tests.downloads import dependencies
from tests.servers import server_process

PACKAGE = "org.apache.iceberg.hive"
SOURCE = Path(__file__).parent / "java" / Path(*PACKAGE.split(".")) / "TestHiveMetastore.java"
#: The Hive whose client Iceberg is built for, and the other libraries of its build.
LIBRARIES = (
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "org.junit.jupiter:junit-jupiter:5.12.2",
    "org.junit.platform:junit-platform-console:1.12.2",
    "org.assertj:assertj-core:3.27.3",
    "org.awaitility:awaitility:4.3.0",
    "org.mockito:mockito-core:4.11.0",
    "org.mockito:mockito-inline:4.11.0",
    "org.slf4j:slf4j-simple:2.0.17",
)
_HIVE_VERSION = "2.3.10"
#: Of Hive's metastore, which does not run here, and of another Hadoop.
_NOT_NEEDED = (
    "org.apache.hadoop",
    "org.apache.hbase",
    "co.cask.tephra",
    "org.apache.logging.log4j",
    "org.pentaho",
    "jdk.tools",
)


def fetch(version: str) -> Path:
    """Returns the directory of the jars; Maven downloads them at the first use. Raises `FetchFailed`."""
    return dependencies(f"iceberg-tests-{version}", _project(version))


def classes_of_tests(version: str) -> set[str]:
    """Returns the names of the classes that are tests by JUnit's convention, without their package."""
    folder = PACKAGE.replace(".", "/")
    with zipfile.ZipFile(fetch(version) / f"iceberg-hive-metastore-{version}-tests.jar") as archive:
        found = [re.fullmatch(rf"{folder}/(Test\w+|\w+Test)\.class", name) for name in archive.namelist()]
    return {match.group(1) for match in found if match}


class CatalogTests:
    """Tests on a class path. This project's class of a metastore is compiled for them; it connects to a URI and its
    warehouse."""

    def __init__(self, directory: Path, uri: str, warehouse: Path, libraries: str, options: Sequence[str] = ()) -> None:
        self._directory = directory
        self._options = options
        self._properties = {
            "metastore.uri": uri,
            "metastore.warehouse": str(warehouse),
            "java.io.tmpdir": str(directory),
            "org.slf4j.simpleLogger.defaultLogLevel": "off",
        }
        classes = directory / "classes"
        classes.mkdir(parents=True)
        # Our class of their name comes first.
        self._class_path = f"{classes}:{libraries}"
        subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", str(classes), str(SOURCE)], check=True, timeout=300)

    def run(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Runs classes, given by full names. Raises AssertionError if JUnit did not finish, or found no tests."""
        return junit.run_classes(names, self._directory, self._class_path, self._properties, self._options)


def run_on_a_new_metastore(
    names: Sequence[str],
    databases: SqliteFiles | DatabaseServer,
    directory: Path,
    libraries: str,
    more: Mapping[str, object],
    options: Sequence[str] = (),
) -> dict[str, Outcome]:
    """Runs classes, given by full names, with a separate server that has `more` settings. The other arguments are those
    of `CatalogTests`."""
    url = databases.initialized_database()
    warehouse = directory / "warehouse"
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": "",  # Hive 2 only knows one directory
        "catalog.disallow_incompatible_column_type_changes": False,
        **more,
    }
    warehouse.mkdir(parents=True)
    with server_process(directory / "server", url, settings) as server:
        outcomes = CatalogTests(directory / "tests", server.uri, warehouse, libraries, options).run(names)
    databases.give_back(url)
    return outcomes


def _project(version: str) -> str:
    return junit.project(
        [
            dependency(f"org.apache.iceberg:iceberg-hive-metastore:{version}"),
            dependency(f"org.apache.iceberg:iceberg-core:{version}"),
            *[
                dependency(f"org.apache.iceberg:iceberg-{module}:{version}", "<classifier>tests</classifier>")
                for module in ("hive-metastore", "core", "api")
            ],
            dependency(f"org.apache.hive:hive-metastore:{_HIVE_VERSION}", without=_NOT_NEEDED),
            *map(dependency, LIBRARIES),
        ]
    )
