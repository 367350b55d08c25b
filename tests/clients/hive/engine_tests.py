"""Tests of Hive 4.0.1's engine (JUnit, from Maven Central), run with a running metastore."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks import java_metastore
from tests.clients.hive import engine
from tests.clients.hive.client_tests import HIVE_4, LIBRARIES_OF_TESTS, METASTORE_SOURCE, Outcome, outcome
from tests.downloads import artifact

PACKAGE = "org.apache.hadoop.hive"
CLASS_TIMEOUT_S = 2400

_TESTS = f"org.apache.hive:hive-exec:{engine.VERSION}:jar:tests"
RUNNER = Path(__file__).parent / "java" / "EngineTestRunner.java"
_SOURCES = (METASTORE_SOURCE, RUNNER)
_FOLDER = f"{java_metastore.FOLDER}/engine-tests"


def fetch() -> list[Path]:
    """The jar with the test classes, and the other jars that they need besides Hive's. Raises `FetchFailed`."""
    return [artifact(one, _FOLDER) for one in (_TESTS, *LIBRARIES_OF_TESTS)]


class EngineTests:
    """Tests of the metastore at a URI, whose warehouse and database (for a user with a password) they access."""

    def __init__(
        self, directory: Path, uri: str, warehouse: Path, database_url: str, properties: Mapping[str, str]
    ) -> None:
        self._directory = directory
        # Classes with a directory of their own expect the warehouse in it.
        self._link = warehouse.parent
        configuration = directory / "conf"
        configuration.mkdir(parents=True)
        (configuration / "log4j2.properties").write_text("rootLogger.level = off\n")
        of_database, jars = engine.of_database(database_url)
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
        classes = directory / "classes"
        classes.mkdir()
        libraries = [*fetch(), HIVE_4.jar_of_tests(), *jars]
        path = [str(classes), engine.class_path(configuration, engine.fetch()), *map(str, libraries)]
        self._class_path = ":".join(path)
        subprocess.run(
            [*("javac", "-nowarn", "-proc:none", "-cp", self._class_path), *("-d", str(classes)), *map(str, _SOURCES)],
            check=True,
            timeout=300,
        )

    def run(self, name: str) -> Outcome:
        """Runs one class, with its full name. Raises AssertionError if JUnit did not finish."""
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
                str(self._link),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLASS_TIMEOUT_S,
            cwd=self._directory,
        )
        return outcome(finished.stdout, finished.stderr)
