"""Hadoop's S3A for the Spark of the tests, from Maven Central."""

from __future__ import annotations

from pathlib import Path

from tests.downloads import dependencies

_HADOOP = "3.4.2"  # of PySpark 4.1
_SDK = "2.29.52"  # of Hadoop 3.4.2; in parts, since its bundle is thirty times as large
_PARTS = ("s3-transfer-manager", "sts", "kms", "apache-client")
_SPARK_HAS = ("netty-", "slf4j-", "commons-logging-", "commons-codec-")


def fetch() -> list[Path]:
    """The jars; Maven brings them at the first use. Raises `FetchFailed`."""
    lib = dependencies(f"hadoop-aws-{_HADOOP}", _project(), ["-DincludeScope=runtime"])
    return sorted(jar for jar in lib.glob("*.jar") if not jar.name.startswith(_SPARK_HAS))


def _project() -> str:
    bundle = "<groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId>"
    parts = "".join(
        f"<dependency><groupId>software.amazon.awssdk</groupId><artifactId>{part}</artifactId>"
        f"<version>{_SDK}</version></dependency>"
        for part in _PARTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>tests</groupId>'
        "<artifactId>hadoop-aws</artifactId><version>1</version><dependencies><dependency>"
        f"<groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>{_HADOOP}</version>"
        f"<exclusions><exclusion>{bundle}</exclusion></exclusions></dependency>{parts}</dependencies></project>"
    )
