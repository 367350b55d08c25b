"""The tests of Iceberg in Spark (JUnit, from Maven Central)."""

from __future__ import annotations

from tests.clients import junit
from tests.clients.iceberg.catalog_tests import LIBRARIES
from tests.clients.junit import dependency
from tests.clients.spark.releases import pyspark
from tests.downloads import dependencies

VERSION = "1.11.0"
SPARK = "4.1.1"
PACKAGE = "org.apache.iceberg.spark"

_MODULES = ("spark-4.1_2.13", "spark-extensions-4.1_2.13")
_MODULES_OF_TESTS = (*_MODULES, "hive-metastore", "core", "api", "data", "parquet", "orc")
#: Of Iceberg's REST catalog, which the tests start for comparison.
_OF_REST = (
    "org.eclipse.jetty:jetty-server:12.1.5",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-server:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.5",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
#: Spark's own have to fit each other.
_OF_SPARK = (
    *("jackson-annotations", "jackson-core", "jackson-databind", "jackson-datatype-jsr310"),
    *("commons-lang3", "scala-library"),
)


def libraries() -> str:
    """Returns the class path of the tests, Spark's jars last; Maven downloads the others. Raises `FetchFailed`."""
    of_tests = "<classifier>tests</classifier>"
    rest = dependency(f"org.apache.iceberg:iceberg-open-api:{VERSION}", "<classifier>test-fixtures</classifier>")
    project = junit.project(
        [
            *[dependency(f"org.apache.iceberg:iceberg-{module}:{VERSION}") for module in (*_MODULES, "hive-metastore")],
            *[dependency(f"org.apache.iceberg:iceberg-{module}:{VERSION}", of_tests) for module in _MODULES_OF_TESTS],
            rest,
            *[dependency(one) for one in (*_OF_REST, *LIBRARIES) if "hadoop" not in one],
        ]
    )
    jars = dependencies(f"iceberg-spark-tests-{VERSION}", project, [f"-DexcludeArtifactIds={','.join(_OF_SPARK)}"])
    return f"{jars}/*:{pyspark(SPARK) / 'pyspark' / 'jars'}/*"
