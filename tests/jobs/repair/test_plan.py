"""The plan for a table: whose table it is, and which directories are in use."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_cache.jobs.frame.own_partitions import refusal
from hms_cache.jobs.repair.catalog_partitions import PartitionLocation
from hms_cache.jobs.repair.directories import UNREADABLE, Directories, Entries
from hms_cache.jobs.repair.plan import ADD, CLAIMED, DROP, UNDECIDED, Change, Scope, plan_table
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, StorageDescriptor, Table


def table(location: str = "s3a://b/t", input_format: str = "", **parameters: str) -> Table:
    descriptor = StorageDescriptor(location=location, inputFormat=input_format)
    return Table("t", "d", sd=descriptor, partitionKeys=[FieldSchema("day", "string")], parameters=parameters)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (table(), None),
        (table(input_format="org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), None),
        (table(table_type="iceberg"), "Iceberg"),
        (table(**{"spark.sql.sources.provider": "hudi"}), "Hudi"),
        (table(input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat"), "Hudi"),
        (table(input_format="org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"), "Hudi"),
        (table(input_format="com.uber.hoodie.hadoop.HoodieInputFormat"), "Hudi"),
        (table(storage_handler="org.apache.paimon.hive.PaimonStorageHandler"), "PaimonStorageHandler"),
        (table(transactional="TRUE"), "transactional"),
    ],
)
def test_whose_partitions_are_left_alone(of: Table, reason: str | None) -> None:
    found = refusal(of)
    assert found is None if reason is None else reason in (found or "")


class Tree(Directories):
    """Directories of one table, by their names."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def entries(self, location: Location) -> Entries:
        return Entries(list(self._names), [])

    def exists(self, location: Location) -> bool:
        return location.name in self._names


class Known:
    """Partitions by their locations."""

    def __init__(self, locations: dict[str, str]) -> None:
        self._locations = locations

    def names(self, table: Table) -> list[str]:
        return list(self._locations)

    def locations(self, table: Table, names: Collection[str]) -> Iterator[PartitionLocation]:
        return (PartitionLocation(name, self._locations[name], 1) for name in names)

    def notable(self, table: Table, created_before_s: int = 0) -> Iterator[PartitionLocation]:
        return self.locations(table, self._locations)


@pytest.mark.parametrize(
    ("of_table", "of_partition"),
    [
        ("s3a://b/t", "s3a://b/t"),
        ("s3a://b/t", "s3://b/t"),
        ("s3://b/t/", "s3n://b//t"),
        ("hdfs://NameNode:8020/t", "hdfs://namenode:8020/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "wasbs://c@a.blob.core.windows.net/t"),
    ],
)
def test_a_directory_of_another_partition_in_any_spelling(of_table: str, of_partition: str) -> None:
    """Hive, Spark and EMR write the location of one bucket with one scheme or another."""
    known = Known({"day=1": f"{of_partition}/day=1", "day=2": f"{of_partition}/day=3"})
    with ThreadPoolExecutor(1) as pool:
        plan = plan_table(table(of_table), known, Tree("day=1", "day=3", "day=4"), pool, Scope())
    root = Location.parse(of_table)
    assert plan.changes[ADD] == [Change("day=4", f"{root}/day=4")]
    assert plan.changes[DROP] == []
    assert [note[:2] for note in plan.notes] == [(CLAIMED, f"{root}/day=3")]


@pytest.mark.parametrize(
    "of_partition", ["s3a://b/t/day=3/v2", "s3://b/t/day=3/a/b", "s3a://b/t/day=3", "s3a://b/t", "s3n://b"]
)
def test_a_directory_with_data_of_another_partition_is_not_added(of_partition: str) -> None:
    """Its rows would be read twice."""
    known = Known({"day=1": of_partition})
    with ThreadPoolExecutor(1) as pool:
        plan = plan_table(table(), known, Tree("day=3"), pool, Scope(drops=False))
    assert plan.changes[ADD] == []
    assert [note[:2] for note in plan.notes] == [(CLAIMED, "s3a://b/t/day=3")]


@pytest.mark.parametrize("of_table", ["s3a://b", "s3a://b/", "file:/"])
def test_a_table_at_the_top_of_its_file_system(of_table: str) -> None:
    top = str(Location.parse(of_table)).rstrip("/")
    known = Known({"day=1": f"{top}/day=1", "day=2": f"{top}/day=3"})
    with ThreadPoolExecutor(1) as pool:
        plan = plan_table(table(of_table), known, Tree("day=1", "day=3", "day=4"), pool, Scope())
    assert plan.changes[ADD] == [Change("day=4", f"{top}/day=4")]
    assert [note[:2] for note in plan.notes] == [(CLAIMED, f"{top}/day=3")]


class PartlyRefusing(Directories):
    """Directories of two levels, some of which are refused; access to single ones there fails the test."""

    def __init__(self, refused: str, tree: dict[str, list[str]]) -> None:
        super().__init__()
        self._refused = refused
        self._tree = tree

    def entries(self, location: Location) -> Entries:
        if str(location) == self._refused:
            raise PermissionError("403")
        return Entries(self._tree.get(str(location), []), [])

    def exists(self, location: Location) -> bool:
        if str(location).startswith(f"{self._refused}/"):
            pytest.fail(f"{location} is asked for")
        return location.name in self._tree.get(str(location.parent), [])


@pytest.mark.parametrize("refused", ["s3a://b/t", "s3a://b/t/DAY=1"])
def test_where_a_listing_is_refused_no_partition_is_asked_for(refused: str) -> None:
    """There may be a million of them; none is dropped, and the rest of the table is examined."""
    tree = {"s3a://b/t": ["DAY=1", "day=2"], "s3a://b/t/day=2": ["hour=1"]}
    locations = {f"day={day}/hour={hour}": f"s3a://b/t/day={day}/hour={hour}" for day in (1, 2) for hour in (1, 2)}
    of = table()
    of.partitionKeys = [FieldSchema("day", "string"), FieldSchema("hour", "string")]
    with ThreadPoolExecutor(1) as pool:
        plan = plan_table(of, Known(locations), PartlyRefusing(refused, tree), pool, Scope())
    is_all = refused == "s3a://b/t"
    assert plan.changes[DROP] == ([] if is_all else [Change("day=2/hour=2", "s3a://b/t/day=2/hour=2")])
    count = 4 if is_all else 2
    assert [note[:2] for note in plan.notes] == [(UNREADABLE, refused), (UNDECIDED, refused)]
    assert plan.notes[1][2].startswith(f"{count} partitions")
