"""Trino's own tests of a metastore pass with our server, through the client of its Hive connector."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import junit
from tests.clients.trino import distribution
from tests.conftest import ServerLookup
from tests.downloads import FetchFailed, dependencies
from tests.servers import server_process

SOURCE = Path(__file__).parent / "java" / "io" / "trino" / "plugin" / "hive" / "metastore" / "MetastoreTest.java"
CLASS = "io.trino.plugin.hive.metastore.MetastoreTest"
"""Ours, of Trino's class of tests that is to be given a metastore."""

PASSING = 3

_MODULES = (
    *("hive", "main", "spi", "testing", "tpch", "testing-containers", "testing-services"),
    *("hive:test-jar", "main:test-jar", "spi:test-jar", "filesystem:test-jar"),
)
_JUNIT = ("org.junit.jupiter:junit-jupiter:5.13.1", "org.junit.platform:junit-platform-console:1.13.1")


def _fetch() -> Path:
    """The directory of the jars. Raises `FetchFailed`."""
    modules = []
    for module in _MODULES:
        name, _, kind = module.partition(":")
        more = f"<type>{kind}</type>" if kind else ""
        modules.append(junit.dependency(f"io.trino:trino-{name}:{distribution.VERSION}", more))
    versions = junit.dependency(f"io.trino:trino-root:{distribution.VERSION}", "<type>pom</type><scope>import</scope>")
    managed = f"<dependencyManagement><dependencies>{versions}</dependencies></dependencyManagement>"
    project = junit.project([*modules, *map(junit.dependency, _JUNIT)])
    return dependencies(
        f"trino-tests-{distribution.VERSION}", project.replace("<dependencies>", f"{managed}<dependencies>", 1)
    )


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(2400)
@pytest.mark.skipif(shutil.which("mvn") is None, reason="needs mvn")
def test_trinos_metastore_tests_pass(database_servers: ServerLookup, tmp_path: Path) -> None:
    try:
        java, libraries = distribution.java(), _fetch()
        # Their helpers name Hadoop's file systems, which the server brings.
        class_path = f"{libraries}/*:{distribution.fetch()}/plugin/hive/hdfs/*"
    except (distribution.TrinoMissing, FetchFailed) as missing:
        pytest.skip(str(missing))
    databases = database_servers("mariadb")
    url = databases.initialized_database()
    classes = tmp_path / "classes"
    classes.mkdir()
    javac = [str(java.with_name("javac")), "-nowarn", "-proc:none", "-cp", class_path, "-d", str(classes), str(SOURCE)]
    subprocess.run(javac, check=True, timeout=300)
    settings: dict[str, object] = {
        "warehouse.directory": f"file:{tmp_path}/warehouse",
        "warehouse.external_directory": "",
        "warehouse.allowed_locations": "file:/tmp/location",  # of a table of theirs
    }
    with server_process(tmp_path / "server", url, settings) as server:
        outcome = junit.run_class(
            CLASS,
            tmp_path,
            f"{classes}:{class_path}",
            {"metastore.uri": server.uri, "java.io.tmpdir": str(tmp_path)},
            java=str(java),
        )
    databases.give_back(url)
    assert not outcome.failed, outcome.output[:20000]
    assert len(outcome.passed) == PASSING
