"""The reads of a write include everything committed by then, at any `max_staleness`, although clients' reads may
not."""

from __future__ import annotations

import copy
from math import isfinite
from types import SimpleNamespace
from typing import Any

import pytest

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.call_context import call_context, for_write
from hms_cache.metadata.object_names import TableName
from hms_cache.server.calls import Call
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, partition, table
from tests.databases import count_statements

T = (CATALOG, "d", "t")
KEYS = (("p", "int"),)
HANDLERS = all_handlers()


@pytest.fixture(params=[0.0, 1_000_000.0, float("inf")], ids=["0", "a number", "inf"])
def pair(request: pytest.FixtureRequest, servers: MakeServer) -> tuple[Server, Server]:
    """`here` has d.t with partition 1 in memory, and does not have to check for changes as long as its staleness is
    allowed."""
    here, elsewhere = servers(CacheOptions(max_staleness_s=request.param)), servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", KEYS))
    here.store.writes.partitions.add_partitions(TableName(*T), [partition(table("d", "t"), ("1",))])
    assert columns(here) == ["a", "b"]
    assert names(here) == ["p=1"]
    return here, elsewhere


def columns(server: Server) -> list[str]:
    return [one.name for one in server.store.reads.tables.get_table(TableName(*T)).sd.cols]


def names(server: Server) -> list[str]:
    return server.store.reads.partitions.get_partition_names(PartitionQuery(TableName(*T)))


def call(server: Server, method: str, **arguments: Any) -> None:
    stores = Stores(server.store.reads, server.store.writes, None, None, None, None)  # type: ignore[arg-type]
    session = Session("test")
    session.variables["metastore.expression.proxy"] = "org.apache.hadoop.hive.ql.exec.MsckPartitionExpressionProxy"
    HANDLERS[method].function(Call(method, session, stores), SimpleNamespace(**arguments))


def add_column(server: Server) -> None:
    changed = changed_table(server.objects, "d", "t")
    changed.sd = copy.deepcopy(changed.sd)
    changed.sd.cols = [*changed.sd.cols, ttypes.FieldSchema("c", "int", None)]
    server.objects.writes.tables.alter_table(TableName(*T), changed)


@pytest.mark.parametrize("paused", [False, True], ids=["", "paused"])
def test_a_partition_that_is_appended_has_the_columns_of_the_table_as_it_is(
    paused: bool, pair: tuple[Server, Server]
) -> None:
    here, elsewhere = pair
    if paused:
        here.poller.pause()
    add_column(elsewhere)
    if here.options.max_staleness_s and not (paused and isfinite(here.options.max_staleness_s)):
        assert columns(here) == ["a", "b"], "readers may be shown what was"
    call(here, "append_partition", db_name="d", tbl_name="t", part_vals=["2"])
    made = here.objects.reads.partitions.get_partition(TableName(*T), ["2"])
    assert [one.name for one in made.sd.cols] == ["a", "b", "c"]


def test_a_drop_by_expressions_drops_what_there_is(pair: tuple[Server, Server]) -> None:
    here, elsewhere = pair
    elsewhere.objects.writes.partitions.add_partitions(
        TableName(*T), [partition(table("d", "t"), (value,)) for value in "234"]
    )
    if here.options.max_staleness_s:
        assert names(here) == ["p=1"], "readers may be shown what was"
    expressions = [ttypes.DropPartitionsExpr(expr=f"p = {value}".encode()) for value in (1, 3)]
    parts = ttypes.RequestPartsSpec(exprs=expressions)
    call(here, "drop_partitions_req", req=ttypes.DropPartitionsRequest(dbName="d", tblName="t", parts=parts))
    assert here.objects.reads.partitions.get_partition_names(PartitionQuery(TableName(*T))) == ["p=2", "p=4"]


def test_a_covered_list_proves_nothing_to_a_write(servers: MakeServer) -> None:
    modes = ReadModes(trust_write_ids=True)
    here, elsewhere = servers(CacheOptions(max_staleness_s=float("inf"), modes=modes)), servers()
    create_database(here.store, "d")
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    here.store.writes.tables.create_table(table("d", "t", version="old", **kind))
    valid = here.transactions.valid("d.t")[0].to_text()
    table_id = here.objects.reads.tables.get_table(TableName(*T)).id

    def version() -> str:
        found = here.store.reads.tables.get_table(
            TableName(*T), version=ReadVersion(valid_write_ids=valid, table_id=table_id)
        )
        return found.parameters["version"]

    for _ in range(2):
        assert version() == "old"
    elsewhere.objects.writes.tables.alter_table(
        TableName(*T), changed_table(elsewhere.objects, "d", "t", version="new")
    )
    with count_statements(here.database) as seen:
        assert version() == "old"
    assert seen.count == 0
    assert for_write(version)() == "new"


def serves_a_write() -> bool:
    return call_context.serves_a_write


def test_it_ends_with_the_write() -> None:
    @for_write
    def write() -> bool:
        assert for_write(serves_a_write)()
        return serves_a_write()

    @for_write
    def fail() -> None:
        raise ValueError

    assert not serves_a_write()
    assert write()
    with pytest.raises(ValueError):
        fail()
    assert not serves_a_write()
