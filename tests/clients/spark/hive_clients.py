"""Jars of Hive's own metastore clients that Spark can use instead of its built-in 2.3.10."""

from __future__ import annotations

from pathlib import Path

from tests.protocol.releases import jar

_SHARED = (
    "org.apache.thrift:libfb303:0.9.3",
    "org.apache.httpcomponents:httpclient:4.5.14",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "javax.servlet:javax.servlet-api:3.1.0",
    "org.apache.hadoop:hadoop-hdfs:3.3.6",
    "commons-collections:commons-collections:3.2.2",
    "commons-io:commons-io:2.15.1",
    "commons-codec:commons-codec:1.15",
    "org.apache.commons:commons-math3:3.6.1",
)
#: Version to jars. ``hive-exec`` contains Hive's other modules; Hadoop's classes and the logging are Spark's.
HIVE_CLIENTS = {
    # Over HTTP, it needs the last one, too.
    "4.1.0": ("org.apache.hive:hive-exec:4.1.0", *_SHARED, "commons-logging:commons-logging:1.2"),
    "4.0.1": ("org.apache.hive:hive-exec:4.0.1", *_SHARED),
    "3.1.3": (
        "org.apache.hive:hive-exec:3.1.3",
        "org.apache.calcite:calcite-core:1.16.0",
        "org.apache.calcite:calcite-linq4j:1.16.0",
        "commons-logging:commons-logging:1.2",
        "commons-lang:commons-lang:2.6",
        "com.fasterxml.jackson.core:jackson-core:2.12.0",
        "com.fasterxml.jackson.core:jackson-databind:2.12.0",
        "com.fasterxml.jackson.core:jackson-annotations:2.12.0",
        *_SHARED,
    ),
}


def hive_client(version: str) -> dict[str, str]:
    """Spark's settings for this client."""
    jars: list[Path] = [jar(artifact) for artifact in HIVE_CLIENTS[version]]
    return {
        "spark.sql.hive.metastore.version": version,
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": ",".join(path.as_uri() for path in jars),
    }
