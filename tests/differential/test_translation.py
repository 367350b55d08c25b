"""Hive 4.0.1 with its metadata transformer, and ours with `metadata_translation = hive4`: what each client sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    ClientCapabilities,
    CreateTableRequest,
    GetDatabaseRequest,
    GetTableRequest,
    GetTablesExtRequest,
)
from tests.conftest import ServerLookup
from tests.differential.comparison import Call, Scenario, call, run
from tests.differential.metastores import Sides, java_metastore, our_metastore, own_database
from tests.differential.objects import database, descriptor, table, view

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]

TRANSFORMER = "org.apache.hadoop.hive.metastore.MetastoreDefaultTransformer"

WRITER = ["HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTWRITE", "HIVEFULLACIDREAD", "HIVEMANAGEDINSERTREAD"]

CAPABILITIES = (
    "EXTREAD",
    "EXTWRITE",
    "HIVEBUCKET2",
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "CONNECTORREAD",
    "CONNECTORWRITE",
    "HIVESQL",
    "HIVEMQT",
    "ACCEPTS_UNMODIFIED_METADATA",
)

CLIENTS = [[], ["MANAGERAWMETADATA"], ["X"], list(CAPABILITIES)]
CLIENTS += [[one] for one in CAPABILITIES] + [list(two) for two in combinations(CAPABILITIES, 2)]

ACID = {"transactional": "true"}
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}
EXTERNAL = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
BUCKETED = {"numBuckets": 4, "bucketCols": ["a"]}


def asking(*names: str, **parameters: str) -> dict[str, str]:
    return {**parameters, "OBJCAPABILITIES": ",".join(names)}


#: Full transactional tables are omitted: Java stores them without the parameters of their serde.
TABLES = (
    table("external", **EXTERNAL),
    table("bucketed", sd=descriptor(**BUCKETED), **EXTERNAL),
    table("plain"),
    table("plain_bucketed", sd=descriptor(**BUCKETED)),
    table("insert_only", parameters=INSERT_ONLY),
    view("v"),
    table("listed", tableType="EXTERNAL_TABLE", parameters=asking("extread", " EXTWRITE", EXTERNAL="TRUE")),
    table(
        "listed_bucketed",
        tableType="EXTERNAL_TABLE",
        sd=descriptor(**BUCKETED),
        parameters=asking("EXTREAD", "EXTWRITE", "HIVEBUCKET2", EXTERNAL="TRUE"),
    ),
    table("listed_insert", parameters=asking("HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE", **INSERT_ONLY)),
    view("listed_view", parameters=asking("HIVESQL")),
)


@pytest.fixture(scope="module")
def translating(tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup) -> Iterator[Sides]:
    """Both metastores, translating."""
    databases = database_servers("mariadb")
    with ExitStack() as stack:
        directories: list[Path] = [tmp_path_factory.mktemp(name) for name in ("java", "ours")]
        properties = {"metastore.metadata.transformer.class": TRANSFORMER}
        java = stack.enter_context(java_metastore(own_database(databases, stack), directories[0], **properties))
        settings = {"catalog.metadata_translation": "hive4"}
        ours = stack.enter_context(our_metastore(own_database(databases, stack), directories[1], **settings))
        yield Sides(java, ours)


def create(made: Any, has: list[str] | None, method: str = "create_table_req") -> Call:
    return call(method, CreateTableRequest(made, processorCapabilities=has, processorIdentifier="test"))


def get(name: str, has: list[str]) -> Call:
    request = GetTableRequest("d", name, ClientCapabilities([1, 2]), processorCapabilities=has)
    return call("get_table_req", request)


def compare(sides: Sides, *calls: Any) -> list[str]:
    """The differences."""
    return [str(one) for one in run(Scenario.of("translation", *calls), sides.java, sides.ours) if not one.is_equal]


def test_what_is_created_and_seen(translating: Sides) -> None:
    translating.java.empty()
    translating.ours.empty()
    acid = table("x", sd=descriptor(**ORC), parameters=ACID)
    outside = table("x", sd=descriptor(location="file:/elsewhere/x", **ORC), parameters=ACID)
    inside = table("x", sd=descriptor(location="{warehouse}/managed/d.db/x"), **EXTERNAL)
    dry_runs = [
        create(made, has, "translate_table_dryrun")
        for made in (*TABLES, acid, outside, inside, table("x", dbName="none"))
        for has in (None, ["X"], WRITER)
    ]
    databases = [
        call("get_database_req", GetDatabaseRequest(name, "hive", has))
        for name in ("d", "default", "none")
        for has in (None, ["X"], ["HIVEFULLACIDWRITE"], ["MANAGE_RAW_METADATA"])
    ]
    unequal = compare(
        translating,
        call("create_database", database("d")),
        call("create_database", database("m", locationUri="{warehouse}/managed/m.db")),
        databases,
        call("get_database_req", GetDatabaseRequest("m", "hive")),
        call("get_database_req", GetDatabaseRequest("m", "hive", WRITER)),
        dry_runs,
        [create(made, WRITER) for made in TABLES],
        [get(made.tableName, has) for made in TABLES for has in CLIENTS],
    )
    assert not unequal, "\n".join(unequal[:40])


def test_tables_listed_with_their_access(translating: Sides) -> None:
    """One table at a time: Java's answer for a table depends on those before it."""
    for made in TABLES:
        translating.java.empty()
        translating.ours.empty()
        calls = [
            call("get_tables_ext", GetTablesExtRequest("hive", "d", "*", 3, 10, processorCapabilities=has))
            for has in CLIENTS[2:18]
        ]
        unequal = compare(translating, call("create_database", database("d")), create(made, WRITER), calls)
        assert not unequal, "\n".join(unequal)
