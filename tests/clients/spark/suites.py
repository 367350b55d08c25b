"""Spark's own test suites of its Hive support (ScalaTest, from Maven Central), for a running metastore."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.clients import junit
from tests.clients.junit import Outcome, dependency
from tests.clients.spark.releases import pyspark
from tests.downloads import cache_folder, dependencies, kept

VERSION = "4.1.1"
"""The newest release whose test suites are on Maven Central; Spark itself is PySpark's of the same release."""

PACKAGE = "org.apache.spark.sql.hive"

_OTHER_PACKAGES = "org."
"""A suite of another package is called by its full name."""

_SCALA = "2.13"
_OF_SPARK = ("sql", "catalyst", "core", "tags", "common-utils")
_HIVE = f"org.apache.spark:spark-hive_{_SCALA}:{VERSION}"
_SCALATEST = "3.2.19"
_LIBRARIES = (
    f"org.scalatest:scalatest_{_SCALA}:{_SCALATEST}",
    f"org.scalatestplus:scalacheck-1-18_{_SCALA}:{_SCALATEST}.0",
    f"org.scalatestplus:mockito-5-12_{_SCALA}:{_SCALATEST}.0",
    "junit:junit:4.13.2",
)
#: Hive's engine looks for them when a suite uses it; Spark does not contain them.
_OF_HIVE = ("org.apache.hive:hive-llap-common:2.3.10", "org.apache.hive:hive-llap-client:2.3.10")
#: As Spark's own launcher opens them.
OPENS = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
_TIMEOUT_S = 5400


def fetch() -> tuple[Path, Path]:
    """Returns the unpacked classes and files of the suites, which are opened by path, and the directory of the jars
    that they need in addition to Spark's; Maven downloads them at the first use. Raises `FetchFailed`."""
    tests = "<classifier>tests</classifier>"
    project = junit.project(
        [
            *[
                dependency(f"org.apache.spark:spark-{one}_{_SCALA}:{VERSION}", tests, without=["*"])
                for one in _OF_SPARK
            ],
            *[dependency(one, without=["*"]) for one in _OF_HIVE],
            # The library of Scala and its XML library are Spark's.
            *[dependency(one, without=["org.scala-lang", "org.scala-lang.modules"]) for one in _LIBRARIES],
        ]
    )
    jars = dependencies(f"spark-tests-{VERSION}", project)
    suites = dependencies(f"spark-hive-tests-{VERSION}", junit.project([dependency(_HIVE, tests, without=["*"])]))

    def unpack(path: Path) -> None:
        with zipfile.ZipFile(next(suites.glob("*.jar"))) as archive:
            archive.extractall(path)

    return kept(f"spark-hive-tests-{VERSION}-unpacked", unpack), jars


def names_of_suites() -> set[str]:
    """Returns all suites in the package and its subpackages, without the package's name."""
    classes, _ = fetch()
    root = classes / Path(*PACKAGE.split("."))
    return {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*Suite.class")
        if "$" not in path.name
    }


def run(names: Sequence[str], directory: Path, uri: str) -> Outcome:
    """Runs these suites in one JVM; each test's name includes its suite. Raises AssertionError if ScalaTest did not
    finish, or a suite has no result."""
    return _outcome(names, directory, _run(names, directory, uri))


def run_with_client(name: str, version: str, directory: Path, uri: str, other_uri: str) -> Outcome:
    """Runs a suite that Spark has for each Hive client (`client.HiveClient` for its `HiveClientSuites`) with that of
    this version, which Ivy downloads at the first use.

    Such a suite creates its clients itself, each with a metastore of its own: the one that is not to use direct SQL
    gets the other address. Raises like `run`.
    """
    output = _run(
        (f"{name}Suites",),
        directory,
        uri,
        of_hadoop={
            "hive.metastore.try.direct.sql": "true",
            "uri.true": uri,
            "uri.false": other_uri,
            "hive.metastore.uris": "${uri.${hive.metastore.try.direct.sql}}",
            **_directories(directory),
        },
        environment={
            "SPARK_TEST_HIVE_CLIENT_VERSIONS": version,
            "SPARK_VERSIONS_SUITE_IVY_PATH": str(cache_folder() / f"spark-hive-client-{version}"),
        },
        # Hive's engine asserts that a view has a text; Spark's suites create some without one.
        options=("-da:org.apache.hadoop.hive.ql.metadata...",),
    )
    return _outcome((f"{name}Suite",), directory, output)


def _run(
    names: Sequence[str],
    directory: Path,
    uri: str,
    of_hadoop: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> str:
    """Returns ScalaTest's output; `of_hadoop` are settings of each Hadoop configuration."""
    classes, jars = fetch()
    site = directory / "site"
    reports = directory / "reports"
    for each in (site, directory / "home", directory / "tmp", directory / "target"):
        each.mkdir(parents=True)
    # Where suites look for Hive's answers for comparison.
    resources = directory / "home" / "sql" / "hive" / "src" / "test" / "resources"
    resources.parent.mkdir(parents=True)
    resources.symlink_to(classes)
    _write_settings(
        site / "hive-site.xml", {"hive.in.test": "true", "hive.metastore.uris": uri, **_directories(directory)}
    )
    _write_settings(site / "core-site.xml", of_hadoop or {})
    (site / "log4j2.properties").write_text("rootLogger.level = off\n")
    properties = {
        "spark.testing": "true",
        "spark.test.home": directory / "home",
        # The suites' own sessions remove their metastore's address, and then what is set for Hadoop here.
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.memory.debugFill": "true",
        "java.io.tmpdir": directory / "tmp",
        "jdk.reflect.useDirectMethodHandle": "false",
        "io.netty.tryReflectionSetAccessible": "true",
        "derby.system.durability": "test",
    }
    finished = subprocess.run(
        [
            "java",
            *["-Xmx2g", "-Xss4m", "-XX:+UseSerialGC", "-ea", "--add-modules=jdk.incubator.vector", *options],
            *[f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS],
            *[f"-D{key}={value}" for key, value in properties.items()],
            "-cp",
            f"{site}:{classes}:{jars}/*:{pyspark(VERSION) / 'pyspark' / 'jars'}/*",
            "org.scalatest.tools.Runner",
            *["-R", str(classes), "-oW", "-u", str(reports)],
            *[option for name in names for option in ("-s", _full_name(name))],
        ],
        cwd=directory,
        env={
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_TESTING": "1",
            "SPARK_HOME": str(directory / "home"),
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    return finished.stdout


def _full_name(suite: str) -> str:
    return suite if suite.startswith(_OTHER_PACKAGES) else f"{PACKAGE}.{suite}"


def _outcome(names: Sequence[str], directory: Path, output: str) -> Outcome:
    reports = directory / "reports"
    cases: dict[str, ElementTree.Element] = {}
    for name in names:
        report = reports / f"TEST-{_full_name(name)}.xml"
        assert report.exists(), f"{name}: {output[-4000:]}"
        suite = {f"{name}: {case.attrib['name']}": case for case in ElementTree.parse(report).iter("testcase")}
        assert suite, f"{name}: {output[-4000:]}"
        cases |= suite
    failed = {test for test, case in cases.items() if case.find("failure") is not None}
    failed |= {test for test, case in cases.items() if case.find("error") is not None}
    unfit = {test for test, case in cases.items() if case.find("skipped") is not None}
    return Outcome(frozenset(cases) - failed - unfit, frozenset(failed), frozenset(unfit), output)


def _directories(directory: Path) -> dict[str, str]:
    """Of Hive's engine within a client."""
    return {
        "hive.exec.scratchdir": f"file:{directory}/scratch",
        "hive.exec.local.scratchdir": f"{directory}/local-scratch",
    }


def _write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """Suites that make a client of their own read them."""
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
