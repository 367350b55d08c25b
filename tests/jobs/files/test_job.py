"""The job on a real server over a damaged tree: it reports exactly the damage; a repair fixes what it may."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hms_cache.client import MetastoreClient
from hms_cache.jobs.files.definition import JOB
from hms_cache.jobs.files.results import Results
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AddPartitionsRequest,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.clients.conftest import ServerStarter
from tests.clients.spark.session import SparkProcess
from tests.jobs.statistics.catalog import run_job
from tests.servers import ServerProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(290)]

SIZE = 100
COLUMNS = 3


def run_files(spark: SparkSession, dry_run: bool = False, **options: Any) -> dict[str, Any]:
    return run_job(spark, JOB, dry_run, options)


def descriptor(location: Path) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(f"c{number}", "int", None) for number in range(COLUMNS)],
        location=f"file:{location}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        numBuckets=-1,
        serdeInfo=SerDeInfo("t", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


@dataclass
class Tree:
    """A table of `count` partitions by `a` and `b`, each with two files; then the damage done to it."""

    root: Path
    count: int
    damage: dict[str, set[str]] = field(default_factory=dict)

    def name(self, number: int) -> str:
        return f"a={number % 50}/b={number}"

    def location(self, name: str) -> str:
        return f"file:{self.root / name}"

    def write(self, name: str, files: int = 2) -> None:
        directory = self.root / name
        directory.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            (directory / f"part-{number}").write_bytes(b"x" * SIZE)

    def create(self, client: MetastoreClient) -> None:
        keys = [FieldSchema("a", "int", None), FieldSchema("b", "string", None)]
        table = Table(
            dbName="default",
            tableName="sales",
            owner="me",
            sd=descriptor(self.root),
            partitionKeys=keys,
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )
        client.call("create_table", table)
        for start in range(0, self.count, 1_000):
            parts = []
            for number in range(start, min(start + 1_000, self.count)):
                self.write(self.name(number))
                parts.append(
                    Partition(
                        values=[str(number % 50), str(number)],
                        dbName="default",
                        tableName="sales",
                        sd=descriptor(self.root / self.name(number)),
                        parameters={"numFiles": "2", "totalSize": str(2 * SIZE)},
                    )
                )
            client.call("add_partitions_req", AddPartitionsRequest("default", "sales", parts, True, needResult=False))

    def break_it(self) -> None:
        """A tenth of the partitions lose their directories, a twentieth each their files or one of them; and
        directories appear that belong to no partition."""
        missing = {self.name(number) for number in range(0, self.count, 10)}
        empty = {self.name(number) for number in range(1, self.count, 20)}
        outdated = {self.name(number) for number in range(2, self.count, 20)}
        for name in missing:
            shutil.rmtree(self.root / name)
        for name in empty:
            for file in (self.root / name).iterdir():
                file.unlink()
        for name in outdated:
            (self.root / name / "part-0").unlink()
        unregistered = {f"a={number % 50}/b=new {number}%2F" for number in range(self.count // 10)}
        for name in unregistered:
            self.write(name, 1)
        nothing_in = {f"a=99/b={number}" for number in range(3)}
        for name in nothing_in:
            self.write(name, 0)
        orphan = {"lost+found", "a=1/c=1"}
        for name in orphan:
            self.write(name, 1)
        left_empty = {path.name for path in self.root.iterdir() if not any(path.iterdir())}
        self.damage = {
            "missing": missing,
            "empty": empty | nothing_in | left_empty,
            "outdated": outdated,
            "unregistered": unregistered,
            "orphan": orphan,
        }


def found_by(report: dict[str, Any], tree: Tree) -> dict[str, set[str]]:
    """The names, relative to the table, of the differences by kind."""
    found: dict[str, set[str]] = {}
    for _, _, _, kind, _, location, _ in report["tables"]["Differences"]:
        found.setdefault(kind, set()).add(location.removeprefix(f"file:{tree.root}/"))
    return found


class Scene:
    """A damaged tree behind a server, and the job on it."""

    def __init__(self, spark: SparkProcess, server: ServerProcess, directory: Path, count: int) -> None:
        self.spark = spark
        self.client = MetastoreClient(server.uri)
        self.tree = Tree(directory / "lake" / "sales", count)
        self.tree.create(self.client)
        self.tree.break_it()
        self.options = {"metastore": server.uri, "shown": 10 * count, "slices": 2, "tables": ["default.sales"]}

    def run(self, **options: Any) -> dict[str, Any]:
        report: dict[str, Any] = self.spark.call(run_files, **self.options | options)
        return report

    def names(self) -> set[str]:
        return set(self.client.call("get_partition_names", "default", "sales", -1))

    def check_plan(self) -> None:
        """All damage is reported, nothing else; a dry run changes nothing."""
        tree, names = self.tree, self.names()
        planned = self.run(dry_run=True, repair="all")
        assert found_by(planned, tree) == tree.damage
        assert planned["exit_status"] == 3
        to_add, to_drop = len(tree.damage["unregistered"]), len(tree.damage["missing"])
        assert planned["tables"]["Plan"] == [["default.sales", to_add, to_drop]]
        files = 2 * (tree.count - to_drop - len(range(1, tree.count, 20))) - len(tree.damage["outdated"])
        [table] = planned["tables"]["Tables"]
        rule = tree.count * 2048 + tree.count * COLUMNS * 400 + files * 500 + files * 150
        assert table[:10] == ["hive", "default", "sales", tree.count, COLUMNS, files, files * SIZE, files, files, rule]
        assert table[10] > tree.count * 100
        assert self.names() == names

    def check_repair(self) -> None:
        """Exactly what was planned is added and dropped."""
        tree, names = self.tree, self.names()
        added, dropped = tree.damage["unregistered"], tree.damage["missing"]
        summary = self.run(repair="all", limit=len(added) + len(dropped))["summary"]
        assert (summary["added"], summary["dropped"], summary["unchanged"]) == (len(added), len(dropped), 0)
        assert self.names() == (names - dropped) | added
        for name in sorted(added)[:3]:
            partition = self.client.call("get_partition_by_name", "default", "sales", name)
            assert partition.sd.location == tree.location(name)


@pytest.fixture
def make_scene(job_spark: SparkProcess, start_server: ServerStarter, tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    with ExitStack() as stack:

        def make(database_kind: str, count: int) -> Scene:
            scene = Scene(job_spark, start_server(database_kind), tmp_path, count)
            stack.enter_context(scene.client)
            return scene

        yield make


@pytest.mark.soak
def test_a_damaged_tree_is_repaired(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene("sqlite", 200)
    scene.check_plan()
    scene.check_repair()


@pytest.mark.soak
@pytest.mark.mariadb
def test_what_a_repair_leaves_alone(make_scene: Callable[..., Scene], tmp_path: Path) -> None:
    """More than its limit; differences of unknown cause; partitions of a table whose own directory is gone."""
    scene = make_scene("mariadb", 200)
    tree, names = scene.tree, scene.names()
    planned = len(tree.damage["unregistered"]) + len(tree.damage["missing"])
    too_much = scene.run(repair="all", limit=planned - 1)
    assert too_much["summary"]["added"] == 0
    assert "nothing was changed" in too_much["tables"]["Notes"][-1][1]
    assert scene.names() == names
    scene.check_repair()
    left = {kind: tree.damage[kind] for kind in ("empty", "outdated", "orphan")}
    after = scene.run()
    assert found_by(after, tree) == left
    names = scene.names()
    shutil.move(tree.root, tmp_path / "unmounted")
    unmounted = scene.run(repair="drop")
    assert unmounted["summary"]["missing directories"] == len(names)
    assert unmounted["summary"]["dropped"] == 0
    assert scene.names() == names


@pytest.mark.soak
def test_directories_of_values_that_are_spelled_otherwise(make_scene: Callable[..., Scene]) -> None:
    """Two of one partition are not added, nor is a value that its key does not have; the others are reported under
    their kind."""
    scene = make_scene("sqlite", 20)
    tree = scene.tree
    scene.check_repair()
    before = scene.names()
    for name in ("a=07/b=q", "a=007/b=q", "A=8/b=z", "a=x/b=1"):
        tree.write(name)
    found = scene.run(repair="all")
    assert scene.names() == before | {"a=8/b=z"}
    assert scene.client.call("get_partition_by_name", "default", "sales", "a=8/b=z").sd.location == tree.location(
        "A=8/b=z"
    )
    [note] = [text for _, text in found["tables"]["Notes"] if "several directories" in text]
    assert note.startswith("a=7/b=q")
    assert "a=x" in found_by(scene.run(), tree)["orphan"]


def kept(spark: SparkSession, output: str, file_format: str = "parquet") -> dict[str, Any]:
    """The contents of an output's tables: the changes of each run, and the currently known directories."""
    results = Results(spark, output, file_format)
    runs = [row["run"] for row in results.runs()]
    changes = []
    for run in runs:
        found = results.directories([run]).collect()
        changes.append(sorted((row["change"], row["kind"], row["location"]) for row in found))
    now = {row["location"]: row["kind"] for row in results.latest().collect()}
    return {"changes": changes, "latest": now, "runs": runs, "bases": [row["base"] for row in results.runs()]}


@pytest.mark.soak
@pytest.mark.parametrize("file_format", ["parquet", "iceberg"])
def test_what_runs_keep(make_scene: Callable[..., Scene], tmp_path: Path, file_format: str) -> None:
    """Each run stores what changed since the previous one; a killed one nothing; every second one everything."""
    scene = make_scene("sqlite", 40)
    tree, spark = scene.tree, scene.spark
    output = str(tmp_path / "found")
    if file_format == "iceberg":
        output = "kept.files"
        spark.call(iceberg_catalog, warehouse=str(tmp_path / "iceberg"))
    keeping = {"output": output, "format": file_format, "full_every": 3}
    first = scene.run(**keeping)
    found = spark.call(kept, output=output, file_format=file_format)
    assert len(found["latest"]) == first["summary"]["directories written"]
    kinds = [kind for _, kind, _ in found["changes"][0]]
    by_kind = {kind: len(places) for kind, places in tree.damage.items()}
    assert {kind: kinds.count(kind) for kind in by_kind} == by_kind
    assert {change for change, _, _ in found["changes"][0]} == {"new"}

    assert scene.run(**keeping)["summary"]["directories written"] == 0
    new = tree.root / "a=3" / "b=added"
    new.mkdir()
    (new / "f").write_bytes(b"x")
    good = tree.name(13)
    (tree.root / good / "one-more").write_bytes(b"y")
    shutil.rmtree(tree.root / "lost+found")
    third = scene.run(**keeping)
    assert third["summary"]["directories written"] == 3
    found = spark.call(kept, output=output, file_format=file_format)
    assert found["changes"][1:] == [
        [],
        [
            ["changed", "outdated", tree.location(good)],
            ["gone", "orphan", f"file:{tree.root}/lost+found"],
            ["new", "unregistered", f"file:{new}"],
        ],
    ]
    assert len(found["latest"]) == first["summary"]["directories written"]

    fourth = scene.run(**keeping)
    assert fourth["summary"]["directories written"] == len(found["latest"])
    again = spark.call(kept, output=output, file_format=file_format)
    assert again["latest"] == found["latest"]
    assert again["bases"] == [again["runs"][0]] * 3 + [again["runs"][3]]
    assert again["runs"] == sorted(again["runs"])
    if file_format == "parquet":
        # A run that was killed: its directories exist, its row does not.
        shutil.copytree(
            f"{output}/directories/run={again['runs'][3]}", f"{output}/directories/run=99991231T000000.000000Z"
        )
        assert spark.call(kept, output=output)["latest"] == found["latest"]
        assert scene.run(**keeping)["summary"]["directories written"] == 0


def iceberg_catalog(spark: SparkSession, warehouse: str) -> None:
    for name, value in (
        ("spark.sql.catalog.kept", "org.apache.iceberg.spark.SparkCatalog"),
        ("spark.sql.catalog.kept.type", "hadoop"),
        ("spark.sql.catalog.kept.warehouse", f"file:{warehouse}"),
    ):
        spark.conf.set(name, value)


@pytest.mark.soak
def test_what_cannot_be_read_of_a_table_is_a_row(make_scene: Callable[..., Scene]) -> None:
    """The other tables are compared anyway, and the stored state of the unread one does not count as missing."""
    scene = make_scene("sqlite", 20)
    client, tree = scene.client, scene.tree
    table = client.call("get_table", "default", "sales")
    table.tableName, table.sd.location = "broken", "hdfs://host.invalid:1/lake"
    client.call("create_table", table)
    report = scene.run(tables=[])
    assert ["default", "broken"] in [row[1:3] for row in report["tables"]["Differences"] if row[3] == "unreadable"]
    assert found_by(report, tree)["unregistered"] == tree.damage["unregistered"]
    assert report["exit_status"] == 3


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.mariadb
@pytest.mark.timeout(1_200)
def test_a_damaged_tree_of_ten_thousand_directories(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene("mariadb", 10_000)
    scene.check_plan()
    scene.check_repair()
