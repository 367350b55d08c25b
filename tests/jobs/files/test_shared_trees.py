"""Directories below a table that contain data of others: a partition with another location, a table inside a table, two
tables at one location. None of them is reported as unused, since unused directories are deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.thrift_gen.hive_metastore.ttypes import AddPartitionsRequest, FieldSchema, Partition, Table
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess
from tests.jobs.files.test_job import descriptor, run_files

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(290)]


class Lake:
    """Tables in one directory, each partition with one file."""

    def __init__(self, client: MetastoreClient, root: Path) -> None:
        self.client = client
        self.root = root
        root.mkdir()

    def write(self, *names: str) -> None:
        for name in names:
            (self.root / name).mkdir(parents=True, exist_ok=True)
            (self.root / name / "f").write_bytes(b"x")

    def create(
        self, name: str, location: Path, *keys: str, table_type: str = "EXTERNAL_TABLE", **parameters: str
    ) -> None:
        table = Table(
            dbName="default",
            tableName=name,
            owner="me",
            sd=descriptor(location),
            partitionKeys=[FieldSchema(key, "string", None) for key in keys],
            parameters=({"EXTERNAL": "TRUE"} if table_type == "EXTERNAL_TABLE" else {}) | parameters,
            tableType=table_type,
        )
        self.client.call("create_table", table)

    def add(self, table: str, values: str, location: Path) -> None:
        sd = descriptor(location)
        partition = Partition(values=values.split(), dbName="default", tableName=table, sd=sd, parameters={})
        self.client.call("add_partitions_req", AddPartitionsRequest("default", table, [partition], True))

    def differences(self, report: dict[str, Any], table: str = "t") -> set[tuple[str, str]]:
        return {
            (kind, location.removeprefix(f"file:{self.root}/"))
            for _, _, name, kind, _, location, _ in report["tables"]["Differences"]
            if name == table
        }


def test_what_holds_data_of_the_catalog_is_nobodys_orphan(
    start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path
) -> None:
    server = start_server("sqlite")
    with MetastoreClient(server.uri) as client:
        lake = Lake(client, tmp_path / "lake")
        root, link = lake.root / "t", tmp_path / "link"
        link.symlink_to(root)
        lake.create("t", root, "a", "b")
        for values, name in (
            ("1 home", "a=1/b=home"),
            ("1 elsewhere", "archive/2020"),
            ("1 below", "a=1/b=below/v2"),
            ("1 other", "a=1/b=free/v2"),
            ("2 above", "a=2"),
        ):
            lake.write(f"t/{name}")
            lake.add("t", values, root / name)
        lake.write("t/a=1/b=linked")
        lake.add("t", "1 linked", link / "a=1" / "b=linked")
        lake.write("t/nested/table", "t/c=1", "t/a=1/c=2")
        lake.create("nested", root / "nested" / "table")
        lake.create("twin", root, "c")
        lake.add("twin", "1", root / "c=1")
        lake.create("twin_below", root / "a=1", "c")
        lake.add("twin_below", "2", root / "a=1" / "c=2")
        lake.create("without_data", root / "reserved" / "later", "x")
        lake.write("t/lost", "t/a=1/lost", "t/a=3", "t/a=1/b=new")
        options = {"metastore": server.uri, "shown": 100, "tables": ["default.*"]}
        found = job_spark.call(run_files, **options)
        nobodys = {("orphan", "t/lost"), ("orphan", "t/a=1/lost"), ("orphan", "t/a=3"), ("unregistered", "t/a=1/b=new")}
        assert lake.differences(found) == nobodys
        repaired = job_spark.call(run_files, **options, repair="add")
        assert repaired["summary"]["added"] == 1
        names = client.call("get_partition_names", "default", "t", -1)
        assert "a=1/b=new" in names and "a=1/b=free" not in names


def test_transactional_tables_are_not_repaired(
    start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path
) -> None:
    """What an open or aborted write left looks like a partition: adding it needs a write id and a lock."""
    server = start_server("sqlite")
    with MetastoreClient(server.uri) as client:
        lake = Lake(client, tmp_path / "lake")
        lake.create("t", lake.root / "t", "a")
        lake.write("t/a=1/delta_0000001_0000001_0000", "t/a=2/delta_0000001_0000001_0000")
        lake.add("t", "2", lake.root / "t" / "a=2")
        lake.add("t", "3", lake.root / "t" / "a=3")
        table = client.call("get_table", "default", "t")
        table.parameters |= {"transactional": "true", "transactional_properties": "insert_only"}
        table.tableType = "MANAGED_TABLE"
        del table.parameters["EXTERNAL"]
        client.call("alter_table", "default", "t", table)
        options = {"metastore": server.uri, "repair": "all", "tables": ["default.t"]}
        report = job_spark.call(run_files, **options)
        assert client.call("get_partition_names", "default", "t", -1) == ["a=2", "a=3"]
        assert (report["summary"]["added"], report["summary"]["dropped"], report["exit_status"]) == (0, 0, 3)
        assert [note for note in report["tables"]["Notes"] if "transactional" in note[1]]


def test_the_data_of_a_materialized_view_is_its_own(
    start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path
) -> None:
    """It is counted, is no unused directory if it is inside a table, and its partitions are left to Hive."""
    server = start_server("sqlite")
    with MetastoreClient(server.uri) as client:
        lake = Lake(client, tmp_path / "lake")
        lake.create("t", lake.root / "t", "a")
        lake.create("sums", lake.root / "t" / "sums", table_type="MATERIALIZED_VIEW")
        lake.create("by_day", lake.root / "by_day", "day", table_type="MATERIALIZED_VIEW")
        lake.write("t/a=1", "t/sums", "t/lost", "by_day/day=1", "by_day/day=2")
        lake.add("t", "1", lake.root / "t" / "a=1")
        lake.add("by_day", "1", lake.root / "by_day" / "day=1")
        options = {"metastore": server.uri, "shown": 100, "tables": ["default.*"], "repair": "all"}
        report = job_spark.call(run_files, **options)
        assert lake.differences(report) == {("orphan", "t/lost")}
        assert lake.differences(report, "by_day") == {("unregistered", "by_day/day=2")}
        assert client.call("get_partition_names", "default", "by_day", -1) == ["day=1"]
        assert [note for note in report["tables"]["Notes"] if "materialized view" in note[1]]
        assert report["summary"]["files"] == 3
