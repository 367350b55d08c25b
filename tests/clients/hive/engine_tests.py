"""Tests of Hive 4.0.1's engine (JUnit, from Maven Central), run with a running metastore."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from sqlalchemy import create_engine

from benchmarks import java_metastore
from tests.clients.hive import engine
from tests.clients.hive.client_tests import HIVE_4, LIBRARIES_OF_TESTS, METASTORE, METASTORE_SOURCE, Outcome, outcome
from tests.downloads import artifact

PACKAGE = "org.apache.hadoop.hive"
CLASS_TIMEOUT_S = 2400

_TESTS = f"org.apache.hive:hive-exec:{engine.VERSION}:jar:tests"
RUNNER = Path(__file__).parent / "java" / "EngineTestRunner.java"
_STORE = METASTORE_SOURCE.parent / "txn" / "TxnStoreOverThrift.java"
_SOURCES = (METASTORE_SOURCE, RUNNER, _STORE)
_FOLDER = f"{java_metastore.FOLDER}/engine-tests"

_FURTHER = (
    # Runs tests of JUnit 4 and of JUnit 5; some classes have both.
    "org.junit.platform:junit-platform-console-standalone:1.10.1",
    "org.hamcrest:hamcrest-library:1.3",
)

#: They mock final classes, too, which Hive's release of Mockito can do in older Javas only.
_MOCKS = (
    "org.mockito:mockito-core:4.11.0",
    "org.mockito:mockito-inline:4.11.0",
    "net.bytebuddy:byte-buddy:1.12.23",
    "net.bytebuddy:byte-buddy-agent:1.12.23",
    "org.objenesis:objenesis:3.3",
)


def fetch() -> list[Path]:
    """The jar with the test classes, and the other jars that they need besides Hive's. Raises `FetchFailed`."""
    replaced = tuple(one.rpartition(":")[0] for one in _MOCKS)
    kept = [one for one in LIBRARIES_OF_TESTS if not one.startswith(replaced)]
    return [artifact(one, _FOLDER) for one in (_TESTS, *kept, *_MOCKS, *_FURTHER)]


def fetch_hcatalog() -> list[Path]:
    """The jars of HCatalog and its tests. Raises `FetchFailed`."""
    hcatalog = f"org.apache.hive.hcatalog:hive-hcatalog-core:{engine.VERSION}"
    # A method of what the tests inherit has a class of Pig in its signature.
    return [artifact(one, _FOLDER) for one in (hcatalog, f"{hcatalog}:jar:tests", "org.apache.pig:pig:0.16.0")]


_VIEWED = ("COMPLETED_TXN_COMPONENTS", "HIVE_LOCKS")


@contextmanager
def lower_case_views(database_url: str) -> Iterator[None]:
    """While it runs, the database has views of the tables whose names tests write in lower case: MariaDB distinguishes
    them."""
    database = create_engine(database_url)
    try:
        with database.connect() as connection:
            for name in _VIEWED:
                connection.exec_driver_sql(f"CREATE VIEW {name.lower()} AS SELECT * FROM {name}")
        yield
        with database.connect() as connection:
            for name in _VIEWED:
                connection.exec_driver_sql(f"DROP VIEW {name.lower()}")
    finally:
        database.dispose()


STORE_OVER_THRIFT = {"metastore.txn.store.impl": f"{METASTORE}.txn.{_STORE.stem}"}
"""A property with which the store of transactions in the process of the tests calls the metastore."""


def properties_for_transactions(database_url: str) -> dict[str, str]:
    """What the classes need that run Hive's compactor in their process, or ask one query twice."""
    url = "javax.jdo.option.ConnectionURL"
    return {
        # Each thread of the compactor takes several; and it adds a row to AUX_TABLE, which the tests empty, beside one
        # that it has locked.
        "datanucleus.connectionPool.maxPoolSize": "32",
        url: f"{engine.of_database(database_url)[0][url]}?sessionVariables=tx_isolation='READ-COMMITTED'",
        # As in the settings of Hive's own tests.
        "hive.query.results.cache.enabled": "false",
    }


def _make_source_tree(directory: Path, configuration: Path) -> None:
    """Some classes look for the directories of Hive's sources, and take their configuration from there."""
    for name in ("itests", "metastore", "ql", "target/tmp"):
        (directory / name).mkdir(parents=True)
    copied = directory / "data" / "conf"
    shutil.copytree(configuration, copied)
    (copied / "tez").mkdir()
    (copied / "hivemetastore-site.xml").write_text("<configuration/>")


class EngineTests:
    """Tests of the metastore at a URI, whose warehouse and database (for a user with a password) they access.

    The parent of the warehouse is the directory of the tests, if they have one. `jars` are further ones.
    """

    def __init__(
        self,
        directory: Path,
        uri: str,
        warehouse: Path,
        database_url: str,
        properties: Mapping[str, str],
        jars: Sequence[Path] = (),
    ) -> None:
        self._directory = directory
        # Classes with a directory of their own expect the warehouse in it.
        self._data = warehouse.parent
        configuration = directory / "conf"
        configuration.mkdir(parents=True)
        (configuration / "log4j2.properties").write_text("rootLogger.level = off\n")
        of_database, of_store = engine.of_database(database_url)
        all_properties = {
            "hive.metastore.uris": uri,
            "hive.metastore.warehouse.dir": f"file:{warehouse}",
            "hive.metastore.warehouse.external.dir": f"file:{warehouse}-external",
            "hive.metastore.client.capabilities": engine.CAPABILITIES,
            "hive.exec.scratchdir": f"file:{directory}/scratch",
            "hive.exec.local.scratchdir": f"{directory}/local",
            "hive.in.test": "true",
            "fs.defaultFS": "file:///",
            "hive.execution.engine": "mr",
            # A join of this kind starts a separate program, of an installed Hadoop.
            "hive.auto.convert.join": "false",
            "hive.metastore.schema.verification": "false",
            "hive.exec.counters.pull.interval": "50",
            **of_database,
            **properties,
        }
        body = "".join(
            f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
            for name, value in all_properties.items()
        )
        for site in ("hive-site.xml", "core-site.xml"):
            (configuration / site).write_text(f"<configuration>{body}</configuration>")
        _make_source_tree(directory, configuration)
        classes = directory / "classes"
        classes.mkdir()
        libraries = [*jars, *fetch(), HIVE_4.jar_of_tests(), *of_store]
        path = [str(classes), engine.class_path(configuration, engine.fetch()), *map(str, libraries)]
        self._class_path = ":".join(path)
        subprocess.run(
            [*("javac", "-nowarn", "-proc:none", "-cp", self._class_path), *("-d", str(classes)), *map(str, _SOURCES)],
            check=True,
            timeout=300,
        )

    def run(self, name: str, omitted: Collection[str] = ()) -> Outcome:
        """Runs one class, with its full name, without the omitted tests. Raises AssertionError if JUnit did not
        finish."""
        finished = subprocess.run(
            [
                "java",
                "-Xmx2g",
                *engine.OPTIONS,
                f"-Dtest.tmp.dir={self._directory}",
                f"-Dtest.warehouse.dir=file:{self._directory}/warehouse",
                f"-Djava.io.tmpdir={self._directory}",
                # The location of the trash: the server's, except for temporary tables, which exist only in the client.
                f"-Duser.home={self._directory if 'TempTable' in name else Path.home()}",
                f"-Dbuild.dir={self._directory}",
                "-Dhive.in.test=true",
                "-cp",
                self._class_path,
                RUNNER.stem,
                name,
                str(self._data),
                *omitted,
            ],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLASS_TIMEOUT_S,
            cwd=self._directory,
        )
        return outcome(finished.stdout, finished.stderr)
