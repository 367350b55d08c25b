"""The tests of Iceberg's Hive catalog (JUnit, from Maven Central), run against a metastore that runs already."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PACKAGE = "org.apache.iceberg.hive"
SOURCE = Path(__file__).parent / "java" / Path(*PACKAGE.split(".")) / "TestHiveMetastore.java"
CLASS_TIMEOUT_S = 600

#: The Hive whose client Iceberg is built for, and the other libraries of its build.
_LIBRARIES = (
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


@dataclass(frozen=True)
class Outcome:
    """The tests of one class by name; a test with arguments has one name for each of them.

    `unfit` are those that the class itself leaves out (an assumption is not met); `output` is what JUnit printed.
    """

    passed: frozenset[str]
    failed: frozenset[str]
    unfit: frozenset[str]
    output: str


def fetch(version: str) -> Path:
    """The directory of the jars; Maven brings them at the first use. Raises CalledProcessError when it cannot."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hms-cache" / f"iceberg-tests-{version}"
    if not (base / ".complete").exists():
        base.mkdir(parents=True, exist_ok=True)
        (base / "pom.xml").write_text(_project(version))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        subprocess.run(command, cwd=base, check=True, stdin=subprocess.DEVNULL, timeout=900)
        (base / ".complete").touch()
    return base / "lib"


def classes_of_tests(version: str) -> set[str]:
    """Names of the classes that JUnit's convention takes for tests, without their package."""
    folder = PACKAGE.replace(".", "/")
    with zipfile.ZipFile(fetch(version) / f"iceberg-hive-metastore-{version}-tests.jar") as archive:
        found = [re.fullmatch(rf"{folder}/(Test\w+|\w+Test)\.class", name) for name in archive.namelist()]
    return {match.group(1) for match in found if match}


class CatalogTests:
    """The tests of one release, compiled for the metastore at a URI and its warehouse."""

    def __init__(self, directory: Path, uri: str, warehouse: Path, version: str) -> None:
        self._directory = directory
        self._properties = {
            "metastore.uri": uri,
            "metastore.warehouse": str(warehouse),
            "java.io.tmpdir": str(directory),
            "org.slf4j.simpleLogger.defaultLogLevel": "off",
        }
        libraries = f"{fetch(version)}/*"
        classes = directory / "classes"
        classes.mkdir(parents=True)
        # Our class of their name comes first.
        self._class_path = f"{classes}:{libraries}"
        subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", str(classes), str(SOURCE)], check=True, timeout=300)

    def run(self, name: str) -> Outcome:
        """Runs one class. Raises AssertionError when JUnit did not come to its end, or found no tests."""
        reports = self._directory / f"reports-{name}"
        finished = subprocess.run(
            [
                "java",
                *[f"-D{key}={value}" for key, value in self._properties.items()],
                "-cp",
                self._class_path,
                "org.junit.platform.console.ConsoleLauncher",
                "execute",
                "--disable-banner",
                "--disable-ansi-colors",
                "--details=summary",
                f"--reports-dir={reports}",
                f"--select-class={PACKAGE}.{name}",
            ],
            capture_output=True,
            text=True,
            timeout=CLASS_TIMEOUT_S,
            cwd=self._directory,
        )
        report = reports / "TEST-junit-jupiter.xml"
        assert report.exists(), finished.stdout[-2000:] + finished.stderr[-2000:]
        cases = {case.attrib["name"]: case for case in ElementTree.parse(report).iter("testcase")}
        failed = {test for test, case in cases.items() if case.find("failure") is not None}
        failed |= {test for test, case in cases.items() if case.find("error") is not None}
        unfit = {test for test, case in cases.items() if case.find("skipped") is not None}
        assert cases, finished.stdout[-2000:]
        # What fails before or after all tests of a class is no test case.
        assert finished.returncode == 0 or failed, finished.stdout[-4000:]
        return Outcome(
            frozenset(cases) - failed - unfit, frozenset(failed), frozenset(unfit), finished.stdout + finished.stderr
        )


def _project(version: str) -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in _NOT_NEEDED
    )
    dependencies = [
        _dependency(f"org.apache.iceberg:iceberg-hive-metastore:{version}"),
        _dependency(f"org.apache.iceberg:iceberg-core:{version}"),
        *[
            _dependency(f"org.apache.iceberg:iceberg-{module}:{version}", "<classifier>tests</classifier>")
            for module in ("hive-metastore", "core", "api")
        ],
        _dependency(f"org.apache.hive:hive-metastore:{_HIVE_VERSION}", f"<exclusions>{exclusions}</exclusions>"),
        *map(_dependency, _LIBRARIES),
    ]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>tests</groupId>'
        f"<artifactId>tests</artifactId><version>1</version><dependencies>{''.join(dependencies)}</dependencies></project>"
    )


def _dependency(artifact: str, more: str = "") -> str:
    group, name, version = artifact.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"{more}</dependency>"
    )
