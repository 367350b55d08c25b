"""Partitions whose values are spelled unusually: every read through a cache equals the read on the database, also after
a change made elsewhere. A partition is told apart by its name, and an event or a request may spell its values in
another way than they are stored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import DEFAULT_PARTITION_VALUE, escape_path_name, make_partition_name
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import AllPartitions, ByFilter, ByNames, ByPartialValues
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

T = TableName(CATALOG, "d", "t")
VALUES = ("", DEFAULT_PARTITION_VALUE, "plain", " x ", "a/b=c", "%41", "a%2Fb", "é", "e\u0301", "日本", "01", "X", "x")

Change = Callable[[MetadataStore, ttypes.Table, str], object]


def name_of(value: str) -> str:
    return make_partition_name(["p", "q"], [value, "1"])


def statistics(name: str, maximum: int) -> ttypes.ColumnStatistics:
    numbers = ttypes.LongColumnStatsData(lowValue=1, highValue=maximum, numNulls=0, numDVs=3)
    return ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=False, dbName="d", tableName="t", partName=name),
        statsObj=[ttypes.ColumnStatisticsObj("a", "bigint", ttypes.ColumnStatisticsData(longStats=numbers))],
        engine="hive",
    )


def stored(store: MetadataStore, value: str) -> ttypes.Partition:
    return copy.deepcopy(store.reads.partitions.get_partition(T, [value, "1"]))


def alter(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    changed = stored(store, value)
    changed.parameters = {**(changed.parameters or {}), "k": "v"}
    store.writes.partitions.alter_partitions(T, [changed])


def alter_columns(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    """Takes the statistics of the column along."""
    changed = stored(store, value)
    changed.sd.cols = changed.sd.cols[1:]
    store.writes.partitions.alter_partitions(T, [changed])


def rename(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    changed = stored(store, value)
    changed.values = ["new", "1"]
    store.writes.partitions.rename_partition(T, [value, "1"], changed)


def rename_hither(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    rename(store, made, value)
    changed = stored(store, "new")
    changed.values = [value, "1"]
    changed.parameters = {**(changed.parameters or {}), "k": "v"}
    store.writes.partitions.rename_partition(T, ["new", "1"], changed)


def drop(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    store.writes.partitions.drop_partitions(T, ByNames((name_of(value),)), delete_data=False)


def drop_and_add(store: MetadataStore, made: ttypes.Table, value: str) -> None:
    drop(store, made, value)
    store.writes.partitions.add_partitions(T, [partition(made, (value, "1"), k="v")])


CHANGES: dict[str, Change] = {
    "alter": alter,
    "alter columns": alter_columns,
    "rename": rename,
    "rename hither": rename_hither,
    "drop": drop,
    "drop and add": drop_and_add,
    "truncate": lambda store, made, value: store.writes.tables.truncate_table(T, partition_names=[name_of(value)]),
    "statistics": lambda store, made, value: store.writes.statistics.update_partition_column_statistics(
        [statistics(name_of(value), 77)]
    ),
    "merged statistics": lambda store, made, value: store.writes.statistics.merge_column_statistics(
        [statistics(name_of(value), 77)]
    ),
    "deleted statistics": lambda store, made, value: store.writes.statistics.delete_partition_column_statistics(
        T, [name_of(value)], ["a"]
    ),
}


def reads(value: str) -> Iterator[tuple[str, Callable[[MetadataStore], Any]]]:
    """Reads that the partition may be in, spelled in each way that names it."""
    names = [name_of(value), name_of(value).replace("p=", "P="), f"p={value}/q=1", f"p={escape_path_name(value)}/q=1/"]
    for name in dict.fromkeys(names):
        yield (
            f"statistics {name}",
            lambda store, n=name: store.reads.statistics.get_partition_column_statistics(T, [n], ["a"]),
        )
        yield f"aggregate {name}", lambda store, n=name: store.reads.statistics.get_aggregate_statistics(T, [n], ["A"])
        yield f"by name {name}", lambda store, n=name: store.reads.partitions.get_partitions(T, ByNames((n,)))
    for spelled in dict.fromkeys((value, value or DEFAULT_PARTITION_VALUE, value.strip(), value.upper())):
        values = (spelled, "1")
        yield f"one {values}", lambda store, v=values: store.reads.partitions.get_partition(T, list(v))
        yield f"ps {values}", lambda store, v=values: store.reads.partitions.get_partitions(T, ByPartialValues(v))
        yield (
            f"ps {spelled}",
            lambda store, v=values: store.reads.partitions.get_partition_names(T, ByPartialValues(v[:1])),
        )
        text = f'p = "{spelled}"'
        yield f"filter {text}", lambda store, f=text: store.reads.partitions.get_partitions(T, ByFilter(f))
    yield "all", lambda store: store.reads.partitions.get_partitions(T, AllPartitions())
    yield "values", lambda store: store.reads.partitions.get_partition_values(T, ["p"])


def check(server: Server, value: str) -> None:
    for label, ask in reads(value):
        expected = encoded(lambda ask=ask: ask(server.objects))
        for _ in range(2):
            assert encoded(lambda ask=ask: ask(server.store)) == expected, label


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_elsewhere_is_seen(servers: MakeServer, change: str, value: str) -> None:
    here, elsewhere = servers(), servers()
    create_database(elsewhere.store, "d")
    made = table("d", "t", (("p", "string"), ("q", "int")))
    made.sd.cols[0].type = "bigint"
    elsewhere.store.writes.tables.create_table(made)
    same_name = {"", DEFAULT_PARTITION_VALUE}
    others = [one for one in VALUES if one != value and not {one, value} <= same_name and one != ""]
    added = [partition(made, (one, "1")) for one in (value, *others)]
    elsewhere.store.writes.partitions.add_partitions(T, added)
    elsewhere.store.writes.statistics.update_partition_column_statistics(
        [statistics(name_of(one), 5) for one in (value, *others)]
    )
    check(here, value)
    assert here.reasons().count(Reason.HIT) > 20
    CHANGES[change](elsewhere.store, made, value)
    check(here, value)
