"""Hudi's own tests of its Hive sync pass with our server, as with the metastore that they start."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import junit
from tests.clients.junit import dependency
from tests.conftest import ServerLookup
from tests.downloads import dependencies
from tests.servers import server_process

VERSION = "1.0.2"
HIVE = "2.3.10"
HADOOP = "2.10.2"
PACKAGE = "org.apache.hudi.hive"
CLASSES = {"TestHiveSyncTool": 230, "functional.TestHiveMetastoreBasedLockProvider": 5}
"""How many tests of each class pass: all. The sync by the metastore's client, by HiveQL and by JDBC; locks."""

SOURCE = Path(__file__).parent / "java" / Path(*PACKAGE.split(".")) / "testutils" / "HiveTestService.java"
_TESTS = "<classifier>tests</classifier>"
_LIBRARIES = (
    "com.fasterxml.jackson.core:jackson-core:2.15.2",
    "com.fasterxml.jackson.core:jackson-annotations:2.15.2",
    "com.esotericsoftware:kryo-shaded:4.0.2",
    f"org.apache.hadoop:hadoop-mapreduce-client-core:{HADOOP}",
    "org.apache.zookeeper:zookeeper:3.4.14",
    "org.apache.avro:avro:1.11.4",
    "org.apache.parquet:parquet-avro:1.10.1",
    "org.junit.jupiter:junit-jupiter:5.10.1",
    "org.junit.platform:junit-platform-console:1.10.1",
    "org.mockito:mockito-junit-jupiter:3.12.4",
    "org.objenesis:objenesis:3.2",
)
_NOT_NEEDED = ("org.apache.hbase", "jdk.tools", "org.pentaho")
_OPENS = ("java.lang", "java.net", "java.util", "java.util.concurrent", "java.io", "java.nio", "java.text")
CLASS_TIMEOUT_S = 1500


def _fetch() -> Path:
    modules = ("hive-sync", "common", "hadoop-common", "hadoop-mr", "io")
    project = junit.project(
        [
            *[dependency(f"org.apache.hudi:hudi-{module}:{VERSION}") for module in modules],
            *[
                dependency(f"org.apache.hudi:hudi-{module}:{VERSION}", _TESTS)
                for module in modules
                if module != "hadoop-mr"
            ],
            *[
                dependency(f"org.apache.hive:hive-{module}:{HIVE}", without=_NOT_NEEDED)
                for module in ("exec", "service", "jdbc")
            ],
            dependency(f"org.apache.hadoop:hadoop-common:{HADOOP}", without=_NOT_NEEDED),
            *map(dependency, _LIBRARIES),
        ]
    )
    return dependencies(f"hudi-tests-{VERSION}", project)


def _class_path() -> str:
    """Hive's program has other libraries within; Hudi means its own of the same names to come before it."""
    jars = sorted(_fetch().glob("*.jar"), key=lambda jar: (jar.name.startswith("hive-exec-"), jar.name))
    return ":".join(map(str, jars))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1800)
@pytest.mark.skipif(any(shutil.which(tool) is None for tool in ("mvn", "javac", "java")), reason="needs mvn and a JDK")
@pytest.mark.parametrize("name", CLASSES)
def test_hudis_sync_tests_pass(database_servers: ServerLookup, tmp_path: Path, name: str) -> None:
    databases = database_servers("mariadb")
    url = databases.initialized_database()
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)  # HiveServer2 insists on it
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{warehouse}",
        "warehouse.external_directory": "",  # Hive 2 knows one directory only
        "warehouse.allowed_locations": f"file:{tmp_path}",
        "catalog.disallow_incompatible_column_type_changes": False,
    }
    classes = tmp_path / "classes"
    classes.mkdir()
    libraries, full_name = _class_path(), f"{PACKAGE}.{name}"
    (classes / "log4j2-test.properties").write_text("rootLogger.level = off\n")
    subprocess.run(
        ["javac", "-nowarn", "-proc:none", "-cp", libraries, "-d", str(classes), str(SOURCE)], check=True, timeout=300
    )
    with server_process(tmp_path / "server", url, settings) as server:
        outcome = junit.run_classes(
            [full_name],
            tmp_path,
            f"{classes}:{libraries}",
            {
                "metastore.uri": server.uri,
                "metastore.warehouse": f"file:{warehouse}",
                "metastore.scratch": f"file:{scratch}",
                "java.io.tmpdir": str(tmp_path),
                "test.build.data": str(tmp_path),
            },
            ["-Xmx2g", *[f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS]],
            timeout_s=CLASS_TIMEOUT_S,
        )[full_name]
    databases.give_back(url)
    (tmp_path / "junit.txt").write_text(outcome.output)
    print(f"{name}: {len(outcome.passed)} passed, {len(outcome.unfit)} unfit, {sorted(outcome.failed)}", flush=True)
    assert not outcome.failed, outcome.output[:20000]
    assert len(outcome.passed) == CLASSES[name]
