"""Hive's own client tests (JUnit, from Maven Central) of two releases, for a running metastore."""

from __future__ import annotations

import re
import subprocess
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.engine import make_url

from benchmarks.java_metastore import FOLDER as JAVA_METASTORE
from benchmarks.java_metastore import VERSION, fetch
from tests.downloads import artifact, unpacked

METASTORE = "org.apache.hadoop.hive.metastore"
"""Package of the metastore's other tests."""
PACKAGE = f"{METASTORE}.client"
"""Package of the tests that take whichever metastore a factory gives them."""

#: Each replaces a class of Hive's tests and names the running metastore in it.
_JAVA = Path(__file__).parent / "java" / Path(*METASTORE.split("."))
METASTORE_SOURCE = _JAVA / "MetaStoreTestUtils.java"
_SOURCES = (_JAVA / "client" / "MetaStoreFactoryForTests.java", METASTORE_SOURCE, _JAVA / "txn" / "TxnDbUtil.java")
CLASS_TIMEOUT_S = 900

#: Each configuration of a metastore is read from the class path.
_SITE_FILE = "metastore-site.xml"

_FOLDER = f"{JAVA_METASTORE}/client-tests"

#: The tests look for dropped files in the trash: server and tests must agree that there is one.
TRASH_INTERVAL_MIN = 30

LIBRARIES_OF_TESTS = (
    # Of Hadoop, and not part of Hive 3.1.3's distribution.
    "commons-logging:commons-logging:1.2",
    "junit:junit:4.13.2",
    "org.hamcrest:hamcrest-core:1.3",
    "org.mockito:mockito-core:3.4.4",
    "net.bytebuddy:byte-buddy:1.10.13",
    "net.bytebuddy:byte-buddy-agent:1.10.13",
    "org.objenesis:objenesis:3.1",
    "com.github.tomakehurst:wiremock-jre8-standalone:2.32.0",
)


@dataclass(frozen=True)
class Release:
    """A release of Hive whose tests and client are used: artifacts of its distribution and its tests. `client` may be
    another release's whose tests are not published; it comes before the release's own."""

    version: str
    distribution: str
    tests: str
    client: str = ""

    def home(self) -> Path:
        """Returns the unpacked distribution; downloads it at the first use. Raises `FetchFailed`."""
        if self.version == VERSION:
            return fetch()
        return unpacked(self.distribution, f"{JAVA_METASTORE}/apache-hive-metastore-{self.version}-bin")

    def jar_of_tests(self) -> Path:
        """The jar with the test classes."""
        return artifact(self.tests, _FOLDER)


HIVE_4 = Release(
    VERSION,
    f"org.apache.hive:hive-standalone-metastore-server:{VERSION}:tar.gz:bin",
    f"org.apache.hive:hive-standalone-metastore-server:{VERSION}:jar:tests",
)
HIVE_4_WITH_LATER_CLIENT = replace(HIVE_4, client="org.apache.hive:hive-standalone-metastore-common:4.1.0")
HIVE_3 = Release(
    "3.1.3",
    "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin",
    "org.apache.hive:hive-standalone-metastore:3.1.3:jar:tests",
)
_FAILURE = re.compile(r"^\d+\) (\w+)(?:\[\w+\])?\(", re.MULTILINE)
_COUNT = re.compile(r"^(?:OK \((\d+) tests?\)|Tests run: (\d+),)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The number of tests that a class ran, and the names of those that failed; `output` is what JUnit printed."""

    ran: int
    failed: frozenset[str]
    output: str


class ClientTests:
    """The tests, compiled for the metastore at a URI; they access its warehouse and database."""

    def __init__(
        self,
        directory: Path,
        uri: str,
        warehouse: Path,
        database_url: str,
        release: Release,
        package: str = PACKAGE,
    ) -> None:
        self._directory = directory
        self._package = package
        clients = [artifact(release.client, _FOLDER)] if release.client else []
        jars = [*clients, release.jar_of_tests(), *(artifact(each, _FOLDER) for each in LIBRARIES_OF_TESTS)]
        libraries = [f"{release.home() / 'lib'}/*", f"{fetch().parent / 'jars'}/*"]
        classes = directory / "classes"
        classes.mkdir(parents=True)
        self._class_path = ":".join([str(classes), str(directory), *map(str, jars), *libraries])
        (directory / "log4j2.properties").write_text("rootLogger.level = off\n")
        (directory / _SITE_FILE).write_text(_site(uri, warehouse, database_url))
        subprocess.run(
            ["javac", "-nowarn", "-cp", self._class_path, "-d", str(classes), *map(str, _SOURCES)],
            check=True,
            timeout=300,
        )

    def run(self, name: str) -> Outcome:
        """Runs one class. Raises AssertionError if JUnit did not finish."""
        finished = subprocess.run(
            [
                "java",
                f"-Dclient.site={self._directory / _SITE_FILE}",
                f"-Dtest.tmp.dir={self._directory}",
                f"-Djava.io.tmpdir={self._directory}",
                f"-Duser.home={Path.home()}",
                "-cp",
                self._class_path,
                "org.junit.runner.JUnitCore",
                f"{self._package}.{name}",
            ],
            capture_output=True,
            text=True,
            timeout=CLASS_TIMEOUT_S,
            cwd=self._directory,
        )
        return outcome(finished.stdout, finished.stderr)


def outcome(stdout: str, stderr: str) -> Outcome:
    """The result in JUnit's output. Raises AssertionError if it did not finish, or found no tests."""
    counted = _COUNT.search(stdout)
    assert counted, stdout[-2000:] + stderr[-2000:]
    ran = int(counted.group(1) or counted.group(2))
    assert ran, stdout[:2000]
    return Outcome(ran, frozenset(_FAILURE.findall(stdout)), stdout)


def classes_of_tests(release: Release) -> list[str]:
    """Names of the test classes, without their package."""
    folder = PACKAGE.replace(".", "/")
    with zipfile.ZipFile(release.jar_of_tests()) as archive:
        found = [re.fullmatch(rf"{folder}/(Test\w+)\.class", name) for name in archive.namelist()]
    return sorted(match.group(1) for match in found if match)


def _site(uri: str, warehouse: Path, database_url: str) -> str:
    database = make_url(database_url)
    properties = {
        "metastore.thrift.uris": uri,
        # The Hive 2 client among the tests cannot shuffle addresses in a current Java.
        "metastore.thrift.uri.selection": "SEQUENTIAL",
        "metastore.warehouse.dir": f"file:{warehouse}",
        "metastore.warehouse.external.dir": f"file:{warehouse}-external",
        "fs.trash.interval": str(TRASH_INTERVAL_MIN),
        "metastore.try.direct.sql": "false",
        # Some tests open a store in their own process, without Hive's engine and on whichever schema there is.
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.schema.verification": "false",
        # Some tests write old rows directly to the database.
        "javax.jdo.option.ConnectionURL": (
            f"jdbc:mysql://{database.host}:{database.port or 3306}/{database.database}"
            # For the tests that connect only with this.
            f"?user={database.username}&amp;password={database.password}"
        ),
        "javax.jdo.option.ConnectionDriverName": "com.mysql.cj.jdbc.Driver",
        "javax.jdo.option.ConnectionUserName": database.username or "",
        "javax.jdo.option.ConnectionPassword": str(database.password or ""),
    }
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()]
    return "\n".join(["<configuration>", *lines, "</configuration>"])
