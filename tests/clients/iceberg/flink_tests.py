"""The tests of Iceberg in Flink (JUnit, from Maven Central)."""

from __future__ import annotations

from tests.clients import junit
from tests.clients.iceberg.catalog_tests import LIBRARIES
from tests.clients.junit import dependency
from tests.downloads import dependencies

VERSION = "1.10.0"
FLINK = "1.20.0"
PACKAGE = "org.apache.iceberg.flink"
HIVE = "2.3.10"

_TESTS = "<classifier>tests</classifier>"
_MODULES_OF_TESTS = ("flink-1.20", "hive-metastore", "core", "api", "data", "parquet", "orc")
_OF_FLINK = (
    "table-api-java-bridge",
    "table-runtime",
    "table-planner_2.12",
    "clients",
    "connector-base",
    "connector-files",
    "connector-test-utils",
    "metrics-dropwizard",
    "test-utils",
    "test-utils-junit",
)
_OF_FLINK_TESTS = ("streaming-java", "core", "runtime")
_NOT_NEEDED = ("org.apache.hadoop", "org.junit.vintage")
#: Dependencies of the tests' Hive client; the metastore itself does not run here.
_OF_HIVE = (
    "org.apache.thrift:libfb303:0.9.3",
    "org.apache.thrift:libthrift:0.14.1",
    "commons-lang:commons-lang:2.6",
    "org.xerial:sqlite-jdbc:3.46.0.0",
)


def libraries() -> str:
    """The class path of the tests; Maven downloads the jars at the first use. Raises `FetchFailed`."""
    project = junit.project(
        [
            # Flink requires another JUnit: the first one is used.
            *map(dependency, LIBRARIES),
            *[dependency(one, without=["*"]) for one in _OF_HIVE],
            dependency(f"org.apache.iceberg:iceberg-flink-1.20:{VERSION}", without=_NOT_NEEDED),
            *[
                dependency(f"org.apache.iceberg:iceberg-{module}:{VERSION}", _TESTS, without=["*"])
                for module in _MODULES_OF_TESTS
            ],
            dependency(f"org.apache.iceberg:iceberg-hive-metastore:{VERSION}"),
            dependency(f"org.apache.iceberg:iceberg-data:{VERSION}"),
            *[dependency(f"org.apache.flink:flink-{module}:{FLINK}", without=_NOT_NEEDED) for module in _OF_FLINK],
            *[
                dependency(f"org.apache.flink:flink-{module}:{FLINK}", _TESTS, without=["*"])
                for module in _OF_FLINK_TESTS
            ],
            *[dependency(f"org.apache.hive:hive-{module}:{HIVE}", without=["*"]) for module in ("exec", "metastore")],
        ]
    )
    jars = dependencies(f"iceberg-flink-tests-{VERSION}", project)
    # Hive's program contains other libraries; those that Iceberg and Flink expect come first.
    first = [str(jar) for jar in sorted(jars.glob("*.jar")) if not jar.name.startswith("hive-exec-")]
    return ":".join([*first, str(jars / f"hive-exec-{HIVE}.jar")])
