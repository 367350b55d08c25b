"""Hive 4.0.1's engine prints the same through our server as through Hive 4.0.1's own metastore."""

from __future__ import annotations

import difflib
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import pytest

from benchmarks.java_metastore import JavaMetastore
from tests.clients.hive import engine
from tests.conftest import ServerLookup, ServerStarter
from tests.differential.metastores import own_database

STATEMENTS = Path(__file__).with_name("statements.sql").read_text()
JAVA_FORGETS = ("Storage Desc Params:", "serialization.format")
"""Hive's metastore forgets the SerDe's parameters of a transactional table whose partitions an insert has made."""


def java_metastore(directory: Path, database_url: str) -> JavaMetastore:
    """Hive's own, not started yet, with its warehouse below the directory."""
    return JavaMetastore(
        database_url,
        directory / "metastore",
        cached=False,
        properties={
            "metastore.metadata.transformer.class": " ",
            "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
            "metastore.users.in.admin.role": "root",
            "metastore.warehouse.dir": f"file:{directory}/wh",
            "metastore.warehouse.external.dir": f"file:{directory}/ext",
        },
        # It evaluates Hive's expressions with Hive's own functions.
        classes=tuple(engine.fetch() / name for name in (f"hive-exec-{engine.VERSION}.jar", "commons-math3-3.6.1.jar")),
    )


def our_settings(directory: Path) -> dict[str, object]:
    """Of our server, as those of Hive's metastore."""
    return {
        "warehouse.directory": f"file:{directory}/wh",
        "warehouse.external_directory": f"file:{directory}/ext",
        "catalog.users_in_admin_role": "root",
    }


def through_java(directory: Path, database_url: str) -> list[str]:
    metastore = java_metastore(directory, database_url)
    address = metastore.start()
    try:
        return engine.run(STATEMENTS, f"thrift://{address}", directory)
    finally:
        metastore.stop()


def comparable(lines: list[str]) -> list[str]:
    """Without what Hive's metastore loses; statistics, which threads print, in the order of their partitions."""
    kept: list[str] = []
    for is_of_threads, group in groupby(lines, key=lambda line: line.startswith("Partition ") and " stats: [" in line):
        found = list(group)
        kept += sorted(found) if is_of_threads else found
    return [line for line in kept if not line.strip().startswith(JAVA_FORGETS)]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1800)
def test_every_statement_prints_what_it_prints_through_hives_metastore(
    start_server: ServerStarter, database_servers: ServerLookup, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    server = start_server("mariadb", **our_settings(ours))
    printed = engine.run(STATEMENTS, server.uri, ours)
    (tmp_path / "ours.txt").write_text("\n".join(printed))
    assert "ERROR" not in server.log
    with ExitStack() as stack:
        expected = through_java(theirs, own_database(database_servers("mariadb"), stack))
    (tmp_path / "theirs.txt").write_text("\n".join(expected))
    assert len(expected) > 300, "Hive itself did not work"
    assert not [line for line in expected if "TezTask" in line], "no statement with a task ran"
    differences = list(
        difflib.unified_diff(comparable(expected), comparable(printed), "Hive", "ours", n=2, lineterm="")
    )
    assert not differences, "\n".join(differences)
