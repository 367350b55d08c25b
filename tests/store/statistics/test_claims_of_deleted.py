"""Deleting statistics of columns withdraws the claim that they are exact, for each reader on each server.

A claim without statistics means that there are no rows: what is merged then is stored as the whole, and Hive answers
`max()` from it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.contract.partitions import PartitionQuery
from hms_cache.store.contract.statistics import StatisticsQuery
from hms_cache.store.rows.parameters import (
    COLUMN_STATS_ACCURATE,
    accurate_columns,
    add_columns_to_accuracy,
    claim_nothing_there,
    remove_columns_from_accuracy,
    without_claims_about_columns,
)
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, Server, create_database, encoded, partition, table

FLAT, PARTED, OTHER = (TableName(CATALOG, "d", name) for name in ("flat", "parted", "other"))
PARTS = ["k=1", "k=2"]


def statistics(of: TableName, part: str | None, high: int) -> ttypes.ColumnStatistics:
    about = ttypes.ColumnStatisticsDesc(part is None, "d", of.table, part, catName=CATALOG)
    data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(0, high, 1, 5))
    objects = [ttypes.ColumnStatisticsObj(column, "int", data) for column in ("a", "b")]
    return ttypes.ColumnStatistics(about, objects, engine="hive")


def make(store: MetadataStore) -> None:
    create_database(store, "d")
    for name in (FLAT, PARTED, OTHER):
        made = table("d", name.table, () if name == FLAT else (("k", "string"),))
        made.sd.cols = [ttypes.FieldSchema(column, "int", None) for column in ("a", "b")]
        store.writes.tables.create_table(made)
    parted = store.reads.tables.get_table(PARTED)
    store.writes.partitions.add_partitions(PARTED, [partition(parted, (value,)) for value in ("1", "2")])
    store.writes.statistics.update_table_column_statistics(statistics(FLAT, None, 100))
    store.writes.statistics.update_partition_column_statistics([statistics(PARTED, name, 100) for name in PARTS])


def change_type(store: MetadataStore) -> None:
    changed = copy.deepcopy(store.reads.tables.get_table(PARTED))
    changed.sd.cols[0].type = "bigint"
    store.writes.tables.alter_table(PARTED, changed)


WAYS: dict[str, Callable[[MetadataStore], Any]] = {
    "one of a table": lambda store: store.writes.statistics.delete_table_column_statistics(FLAT, ["A"]),
    "all of a table": lambda store: store.writes.statistics.delete_table_column_statistics(FLAT),
    "one of partitions": lambda store: store.writes.statistics.delete_partition_column_statistics(PARTED, PARTS, ["A"]),
    "all of a partition": lambda store: store.writes.statistics.delete_partition_column_statistics(PARTED, PARTS[:1]),
    "all of all partitions": lambda store: store.writes.statistics.delete_column_statistics(PARTED),
    "one of all partitions": lambda store: store.writes.statistics.delete_column_statistics(PARTED, (), ["A"]),
    "some of those that are there": lambda store: store.writes.statistics.delete_column_statistics(
        PARTED, ["K=2", "k=3"], ["a", "none"]
    ),
    "what there is without keys": lambda store: store.writes.statistics.delete_column_statistics(FLAT, PARTS, ["b"]),
    "another type": change_type,
    "exchange": lambda store: store.writes.partitions.exchange_partitions({"k": "1"}, PARTED, OTHER),
}


def answers(store: MetadataStore) -> list[Any]:
    tables, partitions, of = store.reads.tables, store.reads.partitions, store.reads.statistics
    requested: list[Callable[[], Any]] = [lambda: of.get_table_column_statistics(StatisticsQuery(FLAT, ["a", "b"]))]
    for name in (FLAT, PARTED, OTHER):
        requested.append(lambda name=name: tables.get_table(name, statistics_engine="hive"))
    for name in (PARTED, OTHER):
        requested += [
            lambda name=name: partitions.get_partitions(PartitionQuery(name)),
            lambda name=name: of.get_partition_column_statistics(StatisticsQuery(name, ["a", "b"]), PARTS),
            lambda name=name: of.get_aggregate_statistics(StatisticsQuery(name, ["a", "b"]), PARTS),
        ]
    return [encoded(fetch) for fetch in requested]


def claimed_and_kept(store: MetadataStore) -> Iterator[tuple[str, frozenset[str], set[str]]]:
    """For the table and each partition: columns claimed as exact, and columns with statistics."""
    flat = store.reads.tables.get_table(FLAT)
    found = store.reads.statistics.get_table_column_statistics(StatisticsQuery(FLAT, ["a", "b"]))
    yield "flat", accurate_columns(flat.parameters), {one.colName for one in found.statsObj}
    for name in (PARTED, OTHER):
        for one in store.reads.partitions.get_partitions(PartitionQuery(name)).partitions:
            part = f"k={one.values[0]}"
            of_part = store.reads.statistics.get_partition_column_statistics(StatisticsQuery(name, ["a", "b"]), [part])
            kept = {each.colName for each in (of_part[0].statsObj if of_part else ())}
            yield f"{name.table}/{part}", accurate_columns(one.parameters), kept


@pytest.mark.parametrize("retains", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "database_kind",
    ["sqlite", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("mariadb", "postgresql"))],
    indirect=True,
)
def test_what_is_deleted_is_claimed_no_more(
    initialized_database_url: str, tmp_path: Path, way: str, retains: bool
) -> None:
    settings = Settings(catalog=CatalogSettings(retain_column_statistics_on_column_removal=retains))
    with (
        closing(Server(initialized_database_url, tmp_path, settings=settings)) as here,
        closing(Server(initialized_database_url, tmp_path, settings=settings)) as there,
    ):
        make(here.objects)
        before = answers(here.objects)
        for server in (here, there):
            server.poller.step()
            for _ in range(2):
                assert answers(server.store) == before
        WAYS[way](here.store)
        told = list(claimed_and_kept(here.objects))
        assert [(name, claimed) for name, claimed, _ in told] == [(name, frozenset(kept)) for name, _, kept in told]
        assert any(len(kept) < 2 for _, _, kept in told)
        for server in (here, there):
            server.poller.step()
            assert answers(server.store) == answers(here.objects)
        there.store.writes.statistics.merge_column_statistics([statistics(FLAT, None, 3)])
        there.store.writes.statistics.merge_column_statistics([statistics(PARTED, PARTS[1], 3)])
        for name, claimed, kept in claimed_and_kept(here.objects):
            assert claimed == kept, name
        for of_part in here.objects.reads.statistics.get_partition_column_statistics(
            StatisticsQuery(PARTED, ["a", "b"]), PARTS
        ):
            assert {one.statsData.longStats.highValue for one in of_part.statsObj} == {100}
        of_table = here.objects.reads.statistics.get_table_column_statistics(StatisticsQuery(FLAT, ["a", "b"]))
        assert {one.statsData.longStats.highValue for one in of_table.statsObj} <= {100}


@pytest.mark.parametrize(
    ("text", "columns", "left"),
    [
        (
            '{"BASIC_STATS":"true","COLUMN_STATS":{"A":"true","b":"true"}}',
            ["a"],
            '{"BASIC_STATS":"true","COLUMN_STATS":{"b":"true"}}',
        ),
        ('{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}', [], '{"BASIC_STATS":"true"}'),
        ('{"COLUMN_STATS":{"a":"true"}}', ["a", "c"], "{}"),
        ('{"COLUMN_STATS": {"a": "true"}}', ["c"], '{"COLUMN_STATS": {"a": "true"}}'),
        ("TRUE", [], "TRUE"),
        ("", [], ""),
    ],
)
def test_claims_that_are_taken_back(text: str, columns: list[str], left: str) -> None:
    before = {COLUMN_STATS_ACCURATE: text, "k": "v"}
    after = without_claims_about_columns(before, columns)
    assert after == {COLUMN_STATS_ACCURATE: left, "k": "v"}
    assert before[COLUMN_STATS_ACCURATE] == text
    assert (after is before) == (text == left)
    assert without_claims_about_columns({}, columns) == {}


def test_names_are_written_as_hive_writes_them() -> None:
    """Not as escapes: programs show the text, and compare it."""
    parameters: dict[str, str] = {}
    add_columns_to_accuracy(parameters, ["größe", "列"])
    claim_nothing_there(parameters, ["a"])
    assert parameters[COLUMN_STATS_ACCURATE] == (
        '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","größe":"true","列":"true"}}'
    )
    remove_columns_from_accuracy(parameters, ["a", "列"])
    assert parameters[COLUMN_STATS_ACCURATE] == '{"BASIC_STATS":"true","COLUMN_STATS":{"größe":"true"}}'
    escaped = {COLUMN_STATS_ACCURATE: r'{"COLUMN_STATS":{"gr\u00f6\u00dfe":"true"}}'}
    assert accurate_columns(escaped) == {"größe"}
