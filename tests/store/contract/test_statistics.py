"""Contract of column statistics."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import ByValues, PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.rows.parameters import accurate_columns
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest

KEYS = (("dt", "string"),)
T = (CATALOG, DATABASE, "t")
NAMES = ["dt=a", "dt=b", "dt=c"]


def longs(column: str = "id", low: int = 0, high: int = 9, nulls: int = 0, distinct: int = 5) -> Any:
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(low, high, nulls, distinct))
    return ttypes.ColumnStatisticsObj(column, "bigint", data)


def strings(column: str = "v", longest: int = 9, distinct: int = 4) -> Any:
    data = ttypes.ColumnStatisticsData(stringStats=ttypes.StringColumnStatsData(longest, 2.5, 1, distinct))
    return ttypes.ColumnStatisticsObj(column, "string", data)


def of_table(*objects: Any, engine: str = "hive") -> ttypes.ColumnStatistics:
    return ttypes.ColumnStatistics(ttypes.ColumnStatisticsDesc(True, DATABASE, "t"), list(objects), engine=engine)


def of_partition(name: str, *objects: Any) -> ttypes.ColumnStatistics:
    return ttypes.ColumnStatistics(ttypes.ColumnStatisticsDesc(False, DATABASE, "t", name), list(objects))


@pytest.fixture
def flat(catalog: StoreUnderTest) -> StoreUnderTest:
    catalog.create_table()
    return catalog


@pytest.fixture
def parted(catalog: StoreUnderTest) -> StoreUnderTest:
    catalog.create_table(keys=KEYS)
    catalog.add_partitions("t", ("a",), ("b",), ("c",))
    return catalog


def test_tables(flat: StoreUnderTest) -> None:
    store = flat.store
    assert (
        store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["id", "v"])).statsObj == []
    )
    store.writes.statistics.update_table_column_statistics(of_table(strings(), longs()))
    found = store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["V", "absent", "ID"]))
    assert found.statsObj == [longs(), strings()]
    assert (found.statsDesc.isTblLevel, found.statsDesc.lastAnalyzed) == (True, 1_700_000_000)
    assert store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["v"])).statsObj == [
        strings()
    ]
    assert store.reads.tables.get_table(TableName(*T), statistics_engine="hive").colStats.statsObj == [
        longs(),
        strings(),
    ]
    assert '"COLUMN_STATS":{"id":"true","v":"true"}' in flat.get().parameters["COLUMN_STATS_ACCURATE"]
    assert flat.events()[-1] == ("UPDATE_TBL_COL_STAT_EVENT", DATABASE, "t")


def test_updates_replace_columns_and_engines_are_apart(flat: StoreUnderTest) -> None:
    store = flat.store
    store.writes.statistics.update_table_column_statistics(of_table(longs(high=1), strings()))
    store.writes.statistics.update_table_column_statistics(of_table(longs(high=2)))
    store.writes.statistics.update_table_column_statistics(of_table(longs(high=3), engine="other"))
    assert store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["id", "v"])).statsObj == [
        longs(high=2),
        strings(),
    ]
    assert store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(TableName(*T), ["id", "v"], "other")
    ).statsObj == [longs(high=3)]
    store.writes.statistics.delete_table_column_statistics(TableName(*T), ["id"], engine="hive")
    assert store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["id", "v"])).statsObj == [
        strings()
    ]
    assert store.reads.statistics.get_table_column_statistics(
        StatisticsQuery(TableName(*T), ["id", "v"], "other")
    ).statsObj == [longs(high=3)]


def test_partitions(parted: StoreUnderTest) -> None:
    store = parted.store
    assert store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES) == []
    store.writes.statistics.update_partition_column_statistics(
        [of_partition("dt=c", longs(high=3), strings()), of_partition("dt=a", longs(high=1))]
    )
    found = store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["id", "v"]), [*NAMES, "dt=x"]
    )
    assert [(one.statsDesc.partName, one.statsObj) for one in found] == [
        ("dt=a", [longs(high=1)]),
        ("dt=c", [longs(high=3), strings()]),
    ]
    only_c = store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["v"]), ["dt=c"])
    assert [one.statsObj for one in only_c] == [[strings()]]
    parameters = parted.partitions("t")[0].parameters
    assert '"COLUMN_STATS":{"id":"true"}' in parameters["COLUMN_STATS_ACCURATE"]
    store.writes.statistics.delete_partition_column_statistics(TableName(*T), ["dt=c"])
    assert [
        one.statsDesc.partName
        for one in store.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(TableName(*T), ["id", "v"]), NAMES
        )
    ] == ["dt=a"]


def test_aggregates_follow_writes(parted: StoreUnderTest) -> None:
    store = parted.store
    store.writes.statistics.update_partition_column_statistics(
        [of_partition(name, longs(low=n, high=10 * n, nulls=n, distinct=n + 1)) for n, name in enumerate(NAMES)]
    )
    found = store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES)
    assert (found.partsFound, found.colStats) == (3, [longs(low=0, high=20, nulls=3, distinct=3)])
    assert store.reads.statistics.get_aggregate_statistics(
        StatisticsQuery(TableName(*T), ["id"]), NAMES[:2]
    ).colStats == [longs("id", 0, 10, 1, 2)]
    store.writes.statistics.update_partition_column_statistics([of_partition("dt=a", longs(high=500, distinct=77))])
    changed = store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES)
    assert changed.colStats == [longs(low=0, high=500, nulls=3, distinct=77)]
    assert (
        store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["id", "v"]), NAMES).partsFound
        == 0
    )
    assert store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*T), ["id"]), []).colStats == []


def test_merging(flat: StoreUnderTest) -> None:
    store = flat.store
    store.writes.statistics.update_table_column_statistics(of_table(longs()))
    store.writes.statistics.merge_column_statistics([of_table(longs(low=-4, high=3, nulls=2, distinct=6), strings())])
    found = store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*T), ["id", "v"]))
    assert found.statsObj == [longs(low=-4, high=9, nulls=2, distinct=6)], "v was not marked as accurate"


def test_statistics_go_with_their_object(parted: StoreUnderTest) -> None:
    store = parted.store
    store.writes.statistics.update_partition_column_statistics([of_partition(name, longs()) for name in NAMES])
    store.writes.partitions.drop_partitions(TableName(*T), ByValues(("a",)), delete_data=False)
    assert (
        len(store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES)) == 2
    )
    parted.add_partitions("t", ("a",))
    assert (
        len(store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES)) == 2
    )


def test_a_renamed_partition_keeps_its_statistics(parted: StoreUnderTest) -> None:
    store = parted.store
    store.writes.statistics.update_partition_column_statistics([of_partition("dt=a", longs())])
    renamed = parted.partitions("t")[0]
    renamed.values = ["z"]
    store.writes.partitions.rename_partition(TableName(*T), ["a"], renamed)
    [found] = store.reads.statistics.get_partition_column_statistics(
        StatisticsQuery(TableName(*T), ["id"]), ["dt=a", "dt=z"]
    )
    assert (found.statsDesc.partName, found.statsObj) == ("dt=z", [longs()])


def test_refusals(parted: StoreUnderTest) -> None:
    store = parted.store
    absent = (CATALOG, DATABASE, "absent")
    with pytest.raises(ttypes.NoSuchObjectException):
        store.reads.statistics.get_table_column_statistics(StatisticsQuery(TableName(*absent), ["id"]))
    with pytest.raises(ttypes.NoSuchObjectException):
        store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*absent), ["id"]), NAMES)
    with pytest.raises(ttypes.NoSuchObjectException):
        store.reads.statistics.get_aggregate_statistics(StatisticsQuery(TableName(*absent), ["id"]), NAMES)
    with pytest.raises(ttypes.MetaException):
        store.writes.statistics.update_table_column_statistics(of_table(longs("nothing")))
    with pytest.raises(ttypes.InvalidObjectException):
        empty = ttypes.ColumnStatisticsObj("id", "bigint", ttypes.ColumnStatisticsData())
        store.writes.statistics.update_table_column_statistics(of_table(empty))
    with pytest.raises(ttypes.NoSuchObjectException):
        store.writes.statistics.update_partition_column_statistics(
            [of_partition("dt=a", longs()), of_partition("dt=x", longs())]
        )
    assert store.reads.statistics.get_partition_column_statistics(StatisticsQuery(TableName(*T), ["id"]), NAMES) == []
    with pytest.raises(ttypes.NoSuchObjectException):
        store.writes.statistics.delete_table_column_statistics(TableName(*T), ["id"])


COUNTED = {"numFiles": "1", "totalSize": "7", "numFilesErasureCoded": "0"}


@pytest.mark.parametrize("counted", [{}, COUNTED, {"numFiles": "1"}], ids=["never", "all", "numFiles"])
@pytest.mark.parametrize(
    ("claims", "kept"),
    [
        ('{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true","v":"true"}}', {"id", "v"}),
        ('{"COLUMN_STATS":{"v":"true"}}', {"v"}),
        ('{"BASIC_STATS":"true","COLUMN_STATS":{"v":"true","x":"true"}}', {"v"}),
        ('{"BASIC_STATS":"true"}', set()),
        (None, set()),
    ],
)
def test_a_renamed_partition_claims_what_it_claimed_of_its_columns(
    parted: StoreUnderTest, counted: dict[str, str], claims: str | None, kept: set[str]
) -> None:
    """Whether or not its files were counted before: otherwise, its statistics would never be merged or used."""
    store, table = parted.store, TableName(*T)
    store.writes.statistics.update_partition_column_statistics([of_partition("dt=a", longs(), strings())])
    [stored] = store.reads.partitions.get_partitions(PartitionQuery(table, ByValues(("a",)))).partitions
    stored.parameters = {"COLUMN_STATS_ACCURATE": stored.parameters["COLUMN_STATS_ACCURATE"], **counted}
    options = environment_options(ttypes.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))
    store.writes.partitions.alter_partitions(table, [stored], writer=Writer(options=options))
    [renamed] = store.reads.partitions.get_partitions(PartitionQuery(table, ByValues(("a",)))).partitions
    assert accurate_columns(renamed.parameters) == {"id", "v"}
    assert {name: value for name, value in renamed.parameters.items() if name in COUNTED} == counted
    renamed.values = ["z"]
    renamed.parameters.pop("COLUMN_STATS_ACCURATE")
    if claims is not None:
        renamed.parameters["COLUMN_STATS_ACCURATE"] = claims
    store.writes.partitions.rename_partition(table, ["a"], renamed)
    [found] = store.reads.partitions.get_partitions(PartitionQuery(table, ByValues(("z",)))).partitions
    if counted == COUNTED:  # nothing was checked: the client's claim
        kept = set(accurate_columns({"COLUMN_STATS_ACCURATE": claims or ""}))
    assert accurate_columns(found.parameters) == kept
    [statistics] = store.reads.statistics.get_partition_column_statistics(StatisticsQuery(table, ["id", "v"]), ["dt=z"])
    assert statistics.statsObj == [longs(), strings()]
