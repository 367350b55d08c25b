"""What a repair writes to a table if tables and partitions have changed since directories were listed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_cache.jobs.files.repair import Repair, repair_table
from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema
from tests.conftest import ServerStarter
from tests.jobs.repair.test_job import Lake

TABLE = TableName("hive", "default", "t")


@pytest.fixture
def lake(start_server: ServerStarter, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(start_server("sqlite"), tmp_path)
    made.table()
    yield made
    made.client.close()


def found(lake: Lake, action: str, *names: str) -> list[Repair]:
    return [Repair(action, name, f"file:{lake.directory('t', name)}") for name in names]


def test_a_partition_that_has_another_directory_by_now_is_not_dropped(lake: Lake) -> None:
    lake.partition("1", "a", "day=1/region=a")
    lake.partition("2", "b", "day=2/region=b")
    planned = found(lake, "drop", "day=1/region=a", "day=2/region=b", "day=3/region=c")
    for day in ("day=1", "day=2"):
        shutil.rmtree(lake.directory("t", day))
    lake.make("restored")
    moved = lake.client.call("get_partition", "default", "t", ["1", "a"])
    moved.sd.location = f"file:{lake.directory('t', 'restored')}"
    lake.client.call("alter_partition", "default", "t", moved)
    outcome = repair_table(lake.client, TABLE, planned, 10)
    assert (outcome.dropped, outcome.unchanged, outcome.failures) == (1, 2, [])
    assert lake.known() == {"1/a": "restored"}


@pytest.mark.parametrize("change", ["place", "keys", "engine", "gone", "columns"])
def test_of_a_table_that_is_another_one_by_now(lake: Lake, change: str) -> None:
    lake.make("day=1/region=a")
    (lake.directory("t", "day=1/region=a") / "data").write_bytes(b"1")
    planned = found(lake, "add", "day=1/region=a")
    table = lake.client.call("get_table", "default", "t")
    lake.client.call("drop_table", "default", "t", False)
    if change == "place":
        table.sd.location = f"file:{lake.directory('elsewhere')}"
    if change == "keys":
        table.partitionKeys = [FieldSchema("day", "int", None), FieldSchema("shop", "string", None)]
    if change == "engine":
        table.parameters["table_type"] = "ICEBERG"
    if change == "columns":
        table.sd.cols = [FieldSchema("another", "bigint", None)]
    if change != "gone":
        lake.client.call("create_table", table)
    outcome = repair_table(lake.client, TABLE, planned, 10)
    added = int(change == "columns")
    assert (outcome.added, outcome.unchanged, outcome.failures) == (added, 1 - added, [])
    if change == "columns":
        [partition] = lake.client.call("get_partitions", "default", "t", -1)
        assert [column.name for column in partition.sd.cols] == ["another"]
