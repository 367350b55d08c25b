"""Writers that write between the last listing of the files and the write of the statistics.

Whatever they do, and whether they notify the metastore or not: what is claimed as exact afterwards is exact, as Hive
answers queries from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from hms_cache.client import MetastoreClient
from hms_cache.jobs.statistics import writing
from hms_cache.jobs.statistics.columns import statistics_columns
from hms_cache.jobs.statistics.data_files import RECORDED, FigureLister
from hms_cache.jobs.statistics.recording import CHANGED, GONE, record_partitions, record_table
from hms_cache.jobs.statistics.rows.small_files import Files, reader
from hms_cache.jobs.statistics.writing import FILES_CHANGED, Target, _Connections, _writer
from hms_cache.metadata.object_names import TableName
from hms_cache.store.rows.parameters import accurate_columns, are_basic_statistics_accurate
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    EnvironmentContext,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.conftest import ServerStarter

ROWS, OTHER_ROWS = 3, 5
COLUMNS = {"a", "b"}


class Scene:
    """A table behind a server, and the job that writes its statistics."""

    def __init__(self, uri: str, root: Path, *, is_partitioned: bool) -> None:
        self.uri, self.root = uri, root
        self.client = MetastoreClient(uri)
        self.unit = "p=1" if is_partitioned else None
        keys = [FieldSchema("p", "string", None)] if is_partitioned else []
        (root / "t").mkdir()
        self.client.call("create_table", self.table_at("t", keys))
        self.write("data", ROWS)
        if is_partitioned:
            self.client.call("add_partition", self.partition_at(self.place.relative_to(root)))
        self.table = self.client.call("get_table", "default", "t")

    def descriptor(self, place: Path | str) -> StorageDescriptor:
        package = "org.apache.hadoop.hive.ql.io.parquet"
        return StorageDescriptor(
            cols=[FieldSchema(name, "int", None) for name in sorted(COLUMNS)],
            location=f"file:{self.root / place}",
            inputFormat=f"{package}.MapredParquetInputFormat",
            outputFormat=f"{package}.MapredParquetOutputFormat",
            numBuckets=-1,
            serdeInfo=SerDeInfo("t", f"{package}.serde.ParquetHiveSerDe", {}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def table_at(self, place: str, keys: list[FieldSchema]) -> Table:
        return Table(
            dbName="default",
            tableName="t",
            owner="me",
            sd=self.descriptor(place),
            partitionKeys=keys,
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )

    def partition_at(self, place: Path | str) -> Partition:
        return Partition(["1"], "default", "t", sd=self.descriptor(place), parameters={})

    @property
    def place(self) -> Path:
        return self.root / "t" / (self.unit or "")

    def write(self, name: str, rows: int) -> None:
        self.place.mkdir(exist_ok=True)
        numbers = pa.array(range(rows), pa.int32())
        parquet.write_table(pa.table(dict.fromkeys(sorted(COLUMNS), numbers)), self.place / name)

    def object(self) -> Any:
        if self.unit is None:
            return self.client.call("get_table", "default", "t")
        return self.client.call("get_partition_by_name", "default", "t", self.unit)

    def alter(self, change: Callable[[Any], None]) -> None:
        """As an engine that has counted does."""
        altered = self.object()
        change(altered)
        context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        method = "alter_table" if self.unit is None else "alter_partition"
        self.client.call(f"{method}_with_environment_context", "default", "t", altered, context)

    def run(self) -> list[tuple[str | None, str]]:
        """Failures of one run over the table."""
        columns = statistics_columns(self.table)
        target = Target(
            self.uri, TableName("hive", "default", "t"), "hive", 10, last_pass=tuple(one.name for one in columns)
        )
        figures, problem = FigureLister().figures(f"file:{self.place}")
        assert problem is None
        units = [{"name": self.unit, "location": f"file:{self.place}", "files": str(figures)}]
        with Files() as files, _Connections() as connections:
            read = reader(files, self.table, columns)(units)
            assert read.left == []
            write = _writer(target, columns, self.table, connections)
            rows = [row for batch in write(iter([(read.rows, [])])) for row in batch.to_pylist()]
        written = sum(row["written"] for row in rows)
        failures = [(row["partition"], row["failure"]) for row in rows if row["failure"] is not None]
        assert written == 1 - len(failures)
        return failures

    def claims(self) -> tuple[bool, set[str], str | None, bool]:
        """Whether the number of rows is claimed as exact, of which columns the statistics are, the number, and whether
        there is a mark."""
        parameters = self.object().parameters
        is_marked = RECORDED in parameters
        rows = parameters.get("numRows")
        return are_basic_statistics_accurate(parameters), set(accurate_columns(parameters)), rows, is_marked


@pytest.fixture(params=[True, False], ids=["partition", "table"])
def scene(request: pytest.FixtureRequest, start_server: ServerStarter, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(start_server("sqlite").uri, tmp_path, is_partitioned=request.param)
    yield made
    made.client.close()


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """Executes something once, at one of the moments of a write."""

    def arrange(moment: str, work: Callable[[], None]) -> None:
        todo = [work]

        def happening(function: Callable[..., Any], is_before: bool, *arguments: Any, **named: Any) -> Any:
            if is_before and todo:
                todo.pop()()
            answer = function(*arguments, **named)
            if not is_before and todo:
                todo.pop()()
            return answer

        if moment in ("before statistics", "after statistics"):
            write, is_before = Target.write, moment.startswith("before")
            # Not a partial: it is called as a method.
            monkeypatch.setattr(Target, "write", lambda *arguments: happening(write, is_before, *arguments))
            return
        for name, function in (("record_partitions", record_partitions), ("record_table", record_table)):
            monkeypatch.setattr(writing, name, partial(happening, function, False))

    return arrange


MOMENTS = ("before statistics", "after statistics", "after numbers")
Between = Callable[[str, Callable[[], None]], None]


def test_without_another_writer(scene: Scene) -> None:
    assert scene.run() == []
    assert scene.claims() == (True, COLUMNS, str(ROWS), True)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("names", [("data",), ("more",)], ids=["overwrites", "appends"])
def test_files_of_a_writer_that_tells_nobody(scene: Scene, between: Between, moment: str, names: Sequence[str]) -> None:
    between(moment, lambda: scene.write(names[0], OTHER_ROWS))
    assert scene.run() == [(scene.unit, FILES_CHANGED)]
    is_exact, columns, _, is_marked = scene.claims()
    assert (is_exact, columns, is_marked) == (False, set(), False)
    assert scene.run() == []
    assert scene.claims() == (True, COLUMNS, str(OTHER_ROWS + (ROWS if names == ("more",) else 0)), True)


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_insert_overwrite_of_hive(scene: Scene, between: Between, moment: str) -> None:
    """It moves its files, then reports how many rows they have. Its claim may be lost, and remains true if it is
    not."""

    def count(altered: Any) -> None:
        altered.parameters |= {"numRows": str(OTHER_ROWS), "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}

    def overwrite() -> None:
        scene.write("data", OTHER_ROWS)
        scene.alter(count)

    between(moment, overwrite)
    assert scene.run() == [(scene.unit, FILES_CHANGED)]
    is_exact, columns, rows, _ = scene.claims()
    assert columns == set()
    assert not is_exact or rows == str(OTHER_ROWS)
    assert scene.run() == []
    assert scene.claims() == (True, COLUMNS, str(OTHER_ROWS), True)


def test_a_place_that_was_changed_meanwhile(scene: Scene, between: Between) -> None:
    """The statistics of columns are written by name, although the data is elsewhere by then."""
    (scene.root / "elsewhere").mkdir()

    def move(altered: Any) -> None:
        altered.sd.location = f"file:{scene.root}/elsewhere"
        altered.parameters |= {"numRows": "0", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}

    between("before statistics", lambda: scene.alter(move))
    assert scene.run() == [(scene.unit, GONE if scene.unit else CHANGED)]
    is_exact, columns, rows, is_marked = scene.claims()
    assert (columns, is_marked) == (set(), False)
    assert not is_exact or rows == "0"
    assert scene.object().sd.location == f"file:{scene.root}/elsewhere"


def test_a_table_that_was_made_anew_meanwhile(scene: Scene, between: Between) -> None:
    def make_anew() -> None:
        scene.client.call("drop_table", "default", "t", False)
        (scene.root / "anew").mkdir()
        scene.client.call("create_table", scene.table_at("anew", scene.table.partitionKeys))
        if scene.unit is not None:
            scene.client.call("add_partition", scene.partition_at("anew/p"))

    between("before statistics", make_anew)
    assert scene.run() == [(scene.unit, GONE if scene.unit else CHANGED)]
    _, columns, _, is_marked = scene.claims()
    assert (columns, is_marked) == (set(), False)
