"""A client that reads everything once leaves memory to others: `setMetaConf("hms-cache.fill.cache", "false")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hms_cache.cache.reads.assembly import Cache
from hms_cache.call_context import FILL_CACHE
from hms_cache.client import MetastoreClient
from hms_cache.jobs.sources.origin import Origin
from hms_cache.jobs.statistics.table_level import merged, partials
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Running, Serve, database, table

PARTITIONS = 8

Read = Callable[[Link], Any]

READS: dict[str, Read] = {
    "table": lambda link: link.call("get_table", dbname="d", tbl_name="t"),
    "tables": lambda link: link.call("get_table_objects_by_name", dbname="d", tbl_names=["t"]),
    "names of tables": lambda link: link.call("get_all_tables", db_name="d"),
    "database": lambda link: link.call("get_database", name="d"),
    "databases": lambda link: link.call("get_all_databases"),
    "partition": lambda link: link.call("get_partition_by_name", db_name="d", tbl_name="t", part_name="p=1"),
    "partitions": lambda link: link.call("get_partitions", db_name="d", tbl_name="t", max_parts=-1),
    "by names": lambda link: link.call("get_partitions_by_names", db_name="d", tbl_name="t", names=["p=1", "p=2"]),
    "by filter": lambda link: link.call(
        "get_partitions_by_filter", db_name="d", tbl_name="t", filter='p = "1"', max_parts=-1
    ),
    "names": lambda link: link.call("get_partition_names", db_name="d", tbl_name="t", max_parts=-1),
    "statistics": lambda link: link.call(
        "get_partitions_statistics_req",
        request=ttypes.PartitionsStatsRequest("d", "t", ["a"], ["p=1"], engine="hive"),
    ),
    "constraints": lambda link: link.call("get_primary_keys", request=ttypes.PrimaryKeysRequest("d", "t")),
    "functions": lambda link: link.call("get_all_functions"),
}


def cache_of(server: Running) -> Cache:
    caching = server.service._caching
    assert caching is not None
    return caching.cache


def loads(server: Running) -> int:
    return cache_of(server).loader.loads


@pytest.fixture
def server(serve: Serve) -> Running:
    """A table of eight partitions, of which nothing is in memory."""
    started = serve(**{"cache.warm": "off"})
    writer = started.link()
    writer.call("create_database", database=database("d"))
    made = table("d", "t")
    made.partitionKeys = [ttypes.FieldSchema("p", "string", None)]
    writer.call("create_table", tbl=made)
    parts = [
        ttypes.Partition([str(number)], "d", "t", sd=made.sd, parameters={"number": str(number)})
        for number in range(PARTITIONS)
    ]
    writer.call("add_partitions", new_parts=parts)
    return started


def reader_of_everything(server: Running) -> Link:
    link = server.link()
    link.call("setMetaConf", key=FILL_CACHE, value="false")
    assert link.call("getMetaConf", key=FILL_CACHE) == "false"
    return link


@pytest.mark.parametrize("name", READS)
def test_it_is_answered_and_loads_nothing(name: str, server: Running) -> None:
    link = reader_of_everything(server)
    before = loads(server)
    answers = [READS[name](link) for _ in range(4)]
    assert loads(server) == before
    assert cache_of(server).background.waiting == 0
    assert answers == [READS[name](server.link())] * 4


@pytest.mark.parametrize("name", READS)
def test_what_is_in_memory_answers_it_and_does_not_stay_there_for_it(name: str, server: Running) -> None:
    expected = READS[name](server.link())
    shared = cache_of(server).shared
    with shared.view():
        read_s = {key: entry.last_read for key, entry in shared.tables.items()}
        order = [*shared.tables]
    link = reader_of_everything(server)
    before = loads(server)
    assert READS[name](link) == expected
    assert loads(server) == before
    with shared.view():
        assert {key: entry.last_read for key, entry in shared.tables.items()} == read_s
        assert [*shared.tables] == order


def test_its_own_writes_are_seen_by_it_and_by_others(server: Running) -> None:
    other = server.link()
    assert len(READS["partitions"](other)) == PARTITIONS
    link = reader_of_everything(server)
    found = READS["partitions"](link)
    for one in found:
        one.parameters = {**one.parameters, "seen": "yes"}
    link.call("alter_partitions", db_name="d", tbl_name="t", new_parts=found)
    for reader in (link, other):
        assert {one.parameters["seen"] for one in READS["partitions"](reader)} == {"yes"}


def test_others_fill_memory_as_before(server: Running) -> None:
    reader_of_everything(server)
    before = loads(server)
    READS["partitions"](server.link())
    assert loads(server) > before
    entry = cache_of(server).shared.entry(TableName("hive", "d", "t"))
    assert entry is not None
    assert entry.last_read > 0


def test_our_client_asks_for_it_at_each_of_its_connections(server: Running) -> None:
    with MetastoreClient(f"thrift://127.0.0.1:{server.port}", fills_cache=False) as client:
        before = loads(server)
        assert client.call("getMetaConf", FILL_CACHE) == "false"
        assert len(client.call("get_partitions", "d", "t", -1)) == PARTITIONS
        client.close()
        assert client.call("get_table", "d", "t").tableName == "t"
        assert loads(server) == before
    with MetastoreClient(f"thrift://127.0.0.1:{server.port}") as client:
        assert client.call("getMetaConf", FILL_CACHE) == "true"


def test_merging_the_statistics_of_all_partitions_loads_nothing(server: Running) -> None:
    names = [f"p={number}" for number in range(PARTITIONS)]
    part = {"catalog": "hive", "database": "d", "table": "t", "columns": ["a"], "partitions": names}
    before = loads(server)
    for _ in range(3):
        found = [
            bytes(one["statistics"]) for one in partials([part], Origin(f"thrift://127.0.0.1:{server.port}"), "hive")
        ]
        assert merged(found, ["a"]).partsFound == 0
    assert loads(server) == before
    assert cache_of(server).background.waiting == 0
