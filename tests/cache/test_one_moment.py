"""P1: a reply made of several reads shows one state, whatever is written between them."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import update

from hms_cache.metadata.object_names import TableName
from hms_cache.server.calls import Call, Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataReads, MetadataStore
from hms_cache.store.schema import TABLE_PARAMS
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, changed_table, create_database, partition, table

KEYS = (("p", "string"),)
REQUESTS: dict[str, dict[str, Any]] = {
    "get_partition_by_name": {"db_name": "d", "tbl_name": "t", "part_name": "p=1"},
    "get_partitions_by_names_req": {
        "req": ttypes.GetPartitionsByNamesRequest("d", "t", ["p=1"], get_col_stats=True, engine="hive")
    },
    "get_partitions_pspec": {"db_name": "d", "tbl_name": "t", "max_parts": -1},
    "get_part_specs_by_filter": {"db_name": "d", "tbl_name": "t", "filter": "p = '1'", "max_parts": -1},
    "get_partitions_with_specs": {"request": ttypes.GetPartitionsRequest(dbName="d", tblName="t")},
    "get_table_objects_by_name_req": {"req": ttypes.GetTablesRequest(dbName="d", tablesPattern="*")},
}


def statistics(maximum: int) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=maximum, numNulls=0, numDVs=3)
    described = ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName="d", tableName="t", partName="p=1")
    column = ttypes.ColumnStatisticsObj("a", "bigint", ttypes.ColumnStatisticsData(longStats=numbers))
    return ttypes.ColumnStatistics(statsDesc=described, statsObj=[column], engine="hive")


def change(server: Server, number: int) -> None:
    """Everything in the replies changes."""
    store = server.objects
    store.writes.tables.alter_table(TableName(CATALOG, "d", "t"), changed_table(store, "d", "t", k=str(number)))
    altered = copy.deepcopy(store.reads.partitions.get_partition(TableName(CATALOG, "d", "t"), ["1"]))
    altered.parameters = {**(altered.parameters or {}), "k": str(number)}
    store.writes.partitions.alter_partitions(TableName(CATALOG, "d", "t"), [altered])
    store.writes.statistics.update_partition_column_statistics([statistics(number)])
    store.writes.tables.create_table(table("d", f"t{number}", KEYS))


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("method", REQUESTS)
def test_a_write_between_the_reads_of_a_reply(
    servers: MakeServer, monkeypatch: pytest.MonkeyPatch, method: str, warm: bool
) -> None:
    here, elsewhere = servers(), servers()
    create_database(elsewhere.objects, "d")
    made = table("d", "t", KEYS)
    made.sd.cols = [ttypes.FieldSchema("a", "bigint", None)]
    elsewhere.objects.writes.tables.create_table(made)
    elsewhere.objects.writes.partitions.add_partitions(TableName(CATALOG, "d", "t"), [partition(made, ("1",))])
    elsewhere.objects.writes.statistics.update_partition_column_statistics([statistics(1)])
    site = SimpleNamespace(config_value=lambda name: None, counters=dict)
    handler = all_handlers()[method]
    assert handler.kind is Kind.READ

    def ask(store: MetadataStore) -> Any:
        stores = Stores(store.reads, store.writes, here.transactions.store, here.log, site, here.auxiliary)
        arguments = METHODS[method].args_class(**copy.deepcopy(REQUESTS[method]))
        return handler.function(Call(method, Session(peer="test"), stores), arguments)

    if warm:
        ask(here.store)
    before = ask(elsewhere.objects)
    look, reads = here.cache.reading.answer, 0

    def answer(*arguments: Any, **options: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 2:
            change(elsewhere, 7)
        return look(*arguments, **options)

    monkeypatch.setattr(here.cache.reading, "answer", answer)
    shown = ask(here.store)
    assert reads >= 2, "the reply is made of one read"
    after = ask(elsewhere.objects)
    assert before != after
    assert repr(shown) in (repr(before), repr(after))


def test_a_reset_to_another_history_between_the_reads_of_a_reply(servers: MakeServer) -> None:
    """Memory is valid at the same event id as before, but of other events."""
    here = servers()
    create_database(here.store, "d")
    here.store.writes.tables.create_table(table("d", "t", version="before"))
    shared, position = here.cache.shared, here.objects.reads.current_event_id()

    def version(reads: MetadataReads) -> str:
        return str(reads.tables.get_table(TableName(CATALOG, "d", "t")).parameters["version"])

    def ask(reads: MetadataReads) -> tuple[str, str]:
        first = version(reads)
        if len(found) == 0:
            # As after a failover to a server with as many, but different, events.
            is_version = TABLE_PARAMS.c.PARAM_KEY == "version"
            with here.database.writing() as connection:
                connection.execute(update(TABLE_PARAMS).where(is_version).values(PARAM_VALUE="after"))
                connection.commit()
            shared.reset("another history", shared.position)
        found.append((first, version(reads)))
        return found[-1]

    found: list[tuple[str, str]] = []
    assert version(here.store.reads) == "before"
    assert here.store.reads.in_one_snapshot(ask) == ("after", "after")
    assert shared.position == position
    assert found == [("before", "after"), ("after", "after")], "the first two were answered from memory"
