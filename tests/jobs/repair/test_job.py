"""The job on a real server: what is added, dropped and left alone, read from the database and through the metastore."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.client import MetastoreClient, OutcomeUnknownError
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.frame import Progress
from hms_cache.jobs.repair.catalog_partitions import PartitionsOfMetastore
from hms_cache.jobs.repair.definition import JOB
from hms_cache.jobs.repair.plan_file import Batch
from hms_cache.jobs.repair.writing import RepairWriter
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Catalog,
    CreateCatalogRequest,
    Database,
    FieldSchema,
    InvalidObjectException,
    Partition,
    Table,
)
from tests.conftest import ServerStarter
from tests.jobs.catalogs import descriptor
from tests.servers import ServerProcess

KEYS = (("day", "int"), ("region", "string"))


class Lake:
    """Tables with directories of their own behind a server."""

    def __init__(self, server: ServerProcess, root: Path) -> None:
        self.server = server
        self.root = root
        self.client = MetastoreClient(server.uri)

    def table(self, name: str = "t", database: str = "default", catalog: str = "hive", **parameters: str) -> None:
        directory = self.directory(name)
        directory.mkdir(parents=True)
        table = Table(
            catName=catalog,
            dbName=database,
            tableName=name,
            owner="ann",
            sd=descriptor(f"file:{directory}"),
            partitionKeys=[FieldSchema(key, kind, None) for key, kind in KEYS],
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )
        self.client.call("create_table", table)

    def directory(self, table: str, name: str = "") -> Path:
        return self.root / "warehouse" / "lake" / table / name

    def make(self, *names: str, table: str = "t") -> None:
        for name in names:
            self.directory(table, name).mkdir(parents=True)

    def partition(self, day: str, region: str, location: str, table: str = "t", created_s: int = 0) -> None:
        added = Partition(
            values=[day, region],
            dbName="default",
            tableName=table,
            sd=descriptor(f"file:{self.directory(table, location)}"),
            parameters={},
            createTime=created_s,
        )
        self.client.call("add_partition", added)

    def known(self, table: str = "t", database: str = "default") -> dict[str, str]:
        """Names with their directories, relative to the table's."""
        prefix = f"file:{self.directory(table)}/"
        return {
            "/".join(one.values): one.sd.location.removeprefix(prefix)
            for one in self.client.call("get_partitions", database, table, -1)
        }

    def options(self, **options: Any) -> dict[str, Any]:
        return {"metastore": self.server.uri} | options

    def run(self, dry_run: bool = False, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
        result = JOB.run(None, self.options(**options), dry_run=dry_run, progress=progress)
        tables = {table.title: [tuple(row) for row in table.rows] for table in result.tables}
        return {"summary": dict(result.summary), "tables": tables, "exit_status": result.exit_status}


@pytest.fixture
def lake(start_server: ServerStarter, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(start_server("sqlite"), tmp_path)
    yield made
    made.client.close()


def damage(lake: Lake, table: str) -> None:
    """One of each kind of difference."""
    lake.table(table)
    # Correct ones: at the default location, in another directory, at a location in another spelling.
    lake.partition("1", "a", "day=1/region=a", table)
    lake.partition("2", "b", "elsewhere/b", table)
    lake.partition("03", "c", "day=03/region=c", table)
    # Missing: at the default location, and elsewhere. The default directory of the last exists, so it is not missing.
    lake.partition("4", "d", "day=4/region=d", table)
    lake.partition("5", "e", "elsewhere/e", table)
    lake.partition("6", "f", "elsewhere/f", table)
    # In a directory whose name belongs to another partition.
    lake.partition("7", "g", "day=8/region=h", table)
    for name in ("day=4", "elsewhere/e", "elsewhere/f"):
        shutil.rmtree(lake.directory(table, name))
    lake.make("day=6/region=f", table=table)
    # New: plain, escaped, typed, in another spelling, one of two directories.
    new = ("day=9/region=i", "day=9/region=x%2Fy z", "day=010/region=j", "DAY=11/Region=K", "day=12/region=l")
    lake.make(*new, "day=012/region=l", "day=13/region=__HIVE_DEFAULT_PARTITION__", table=table)
    lake.make("day=x/region=m", "lost+found", "_temporary/day=1/region=z", table=table)


ADDED = {
    "9/i": "day=9/region=i",
    "9/x/y z": "day=9/region=x%2Fy z",
    "10/j": "day=010/region=j",
    "11/K": "DAY=11/Region=K",
    "13/__HIVE_DEFAULT_PARTITION__": "day=13/region=__HIVE_DEFAULT_PARTITION__",
}
DROPPED = {"4/d", "5/e"}
NOTES = {
    ("day=12/region=l", "found twice"),
    ("day=012/region=l", "found twice"),
    ("day=8/region=h", "another partition's"),
    ("day=x", "no partition"),
    ("lost+found", "no partition"),
    ("elsewhere", "no partition"),
}


def directories(lake: Lake) -> set[Path]:
    return {path for path in lake.directory("t").rglob("*") if path.is_dir()}


@pytest.mark.parametrize(
    ("database", "from_database"),
    [
        ("sqlite", True),
        pytest.param("sqlite", False, marks=pytest.mark.soak),
        pytest.param("mariadb", True, marks=[pytest.mark.soak, pytest.mark.mariadb]),
        pytest.param("postgresql", True, marks=[pytest.mark.soak, pytest.mark.postgresql]),
    ],
)
def test_every_difference(start_server: ServerStarter, tmp_path: Path, database: str, from_database: bool) -> None:
    lake = Lake(start_server(database), tmp_path)
    damage(lake, "t")
    options: dict[str, Any] = {"database": lake.server.database_url} if from_database else {}
    before, there = lake.known(), directories(lake)
    planned = lake.run(dry_run=True, **options)
    assert planned["tables"]["Plan"] == [("default.t", 7, 11, len(ADDED), len(DROPPED), 0)]
    prefix = f"file:{lake.directory('t')}/"
    assert {(row[2].removeprefix(prefix), row[1]) for row in planned["tables"]["Notes"]} == NOTES
    assert planned["exit_status"] == 3
    assert lake.known() == before

    added = lake.run(mode="add", **options)
    assert (added["summary"]["added"], added["summary"]["dropped"]) == (len(ADDED), 0)
    assert lake.known() == before | ADDED
    dropped = lake.run(mode="drop", **options)
    assert (dropped["summary"]["added"], dropped["summary"]["dropped"]) == (0, len(DROPPED))
    after = {name: place for name, place in (before | ADDED).items() if name not in DROPPED}
    assert lake.known() == after

    again = lake.run(**options)
    assert again["tables"]["Plan"] == []
    assert lake.known() == after
    assert directories(lake) == there, "no directory is made or deleted"


@pytest.mark.soak
def test_which_tables_and_which_of_them_not_at_all(lake: Lake) -> None:
    """By pattern, by discover.partitions, in each catalog; tables of other engines; one whose directory is gone."""
    lake.client.call("create_catalog", CreateCatalogRequest(Catalog(name="c2", locationUri=f"file:{lake.root}/c2")))
    lake.client.call(
        "create_database", Database(name="d2", catalogName="c2", locationUri=f"file:{lake.root}/d2", parameters={})
    )
    lake.table("discovered", **{"discover.partitions": "True"})
    lake.table("plain")
    lake.table("ice", table_type="ICEBERG")
    lake.table("other", "d2", "c2")
    lake.table("unmounted")
    lake.partition("1", "a", "day=1/region=a", "unmounted")
    shutil.move(lake.directory("unmounted"), lake.root / "away")
    for table in ("discovered", "plain", "ice", "other"):
        lake.make("day=1/region=a", table=table)
    assert lake.run(discover=True)["tables"]["Partitions"] == [
        ("default.discovered", "add", "day=1/region=a", f"file:{lake.directory('discovered', 'day=1/region=a')}")
    ]
    rest = lake.run()
    assert [row[0] for row in rest["tables"]["Plan"]] == ["c2.d2.other", "default.plain"]
    assert {(row[0], row[1]) for row in rest["tables"]["Notes"]} == {
        ("default.ice", "left alone"),
        ("default.unmounted", "no directory"),
    }
    assert (rest["summary"]["added"], rest["exit_status"]) == (2, 3)
    assert set(lake.known("other", "@c2#d2")) == {"1/a"}
    assert set(lake.known("unmounted")) == {"1/a"}
    assert lake.known("ice") == {}
    assert lake.run(tables=["default.pl*"])["summary"]["tables"] == 1


@pytest.mark.soak
@pytest.mark.parametrize("from_database", [False, True])
def test_what_is_past_its_period(lake: Lake, from_database: bool) -> None:
    options: dict[str, Any] = {"database": lake.server.database_url} if from_database else {}
    lake.table("kept", **{"partition.retention.period": "7d", "external.table.purge": "true"})
    lake.table("said_wrong", **{"partition.retention.period": "a week"})
    for table in ("kept", "said_wrong"):
        lake.partition("1", "old", "day=1/region=old", table)
        lake.partition("2", "new", "day=2/region=new", table)
        old = copy.deepcopy(lake.client.call("get_partition", "default", table, ["1", "old"]))
        old.createTime -= 8 * 86_400
        lake.client.call("alter_partition", "default", table, old)
    assert lake.run(**options)["tables"]["Plan"] == []
    found = lake.run(retention=True, **options)
    assert (found["summary"]["expired"], found["exit_status"]) == (1, 3)
    assert [row[:2] for row in found["tables"]["Notes"]] == [("default.said_wrong", "undecided")]
    assert set(lake.known("kept")) == {"2/new"}
    assert not lake.directory("kept", "day=1/region=old").exists()
    assert set(lake.known("said_wrong")) == {"1/old", "2/new"}


@pytest.mark.soak
def test_what_one_table_fails_with_does_not_end_the_others(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in ("a", "b", "c"):
        lake.table(table)
        lake.make("day=1/region=a", table=table)
    names = PartitionsOfMetastore.names
    fault: Exception = OSError("gone")

    def failing(self: PartitionsOfMetastore, table: Table) -> list[str]:
        if table.tableName == "b":
            raise fault
        return names(self, table)

    monkeypatch.setattr(PartitionsOfMetastore, "names", failing)
    for added, one in (
        (2, fault),
        (0, InvalidObjectException("no such value")),
        (0, TApplicationException(6, "Internal error")),
    ):
        fault = one
        found = lake.run()
        assert (found["summary"]["added"], found["exit_status"]) == (added, 3)
        ((table, kind, _, reason),) = found["tables"]["Notes"]
        assert (table, kind) == ("default.b", "failed") and reason in str(fault)


@pytest.mark.soak
def test_too_many_to_drop(lake: Lake) -> None:
    lake.table()
    for day in range(4):
        lake.partition(str(day), "a", f"day={day}/region=a")
    for day in range(3):
        shutil.rmtree(lake.directory("t", f"day={day}"))
    lake.make("day=9/region=a")
    limited = lake.run(drop_limit=2)
    assert [row[1] for row in limited["tables"]["Notes"]] == ["too many"]
    assert (limited["summary"]["added"], limited["summary"]["dropped"], limited["exit_status"]) == (1, 0, 3)
    assert lake.run(drop_limit=3)["summary"]["dropped"] == 3


@pytest.mark.soak
def test_what_the_metastore_refuses_stands_alone(start_server: ServerStarter, tmp_path: Path) -> None:
    whitelist = {"catalog.partition_name_whitelist_pattern": "[^!]*"}
    lake = Lake(start_server("sqlite", **whitelist), tmp_path)
    lake.table()
    lake.make(*(f"day={day}/region={'!' if day in (3, 11) else 'a'}" for day in range(16)))
    found = lake.run()
    assert found["summary"]["added"] == 14
    assert [row[1] for row in found["tables"]["Failures"]] == ["day=11/region=!", "day=3/region=!"]
    assert found["exit_status"] == 3


class Killed(Progress):
    """Ends the run when its plan is written."""

    def _begun(self) -> None:
        if self.steps[-1] == "Writing":
            raise KeyboardInterrupt


@pytest.mark.parametrize("action", ["drop", "expire"])
def test_nothing_is_dropped_of_a_table_whose_directory_is_away(lake: Lake, action: str) -> None:
    """The file system is not mounted when a killed run is continued: all directories seem to be gone."""
    is_expiry = action == "expire"
    lake.table(**{"partition.retention.period": "10d"} if is_expiry else {})
    lake.partition("1", "a", "day=1/region=a")
    if is_expiry:
        old = copy.deepcopy(lake.client.call("get_partition", "default", "t", ["1", "a"]))
        old.createTime -= 30 * 86_400
        lake.client.call("alter_partition", "default", "t", old)
    else:
        shutil.rmtree(lake.directory("t", "day=1"))
    state = str(lake.root / "plan.json")
    with pytest.raises(KeyboardInterrupt):
        lake.run(state=state, retention=is_expiry, progress=Killed())
    lake.directory("t", "day=1/region=a").mkdir(parents=True, exist_ok=True)  # exists again
    shutil.move(lake.directory("t"), lake.root / "away")
    resumed = lake.run(state=state, retention=is_expiry)
    assert resumed["summary"]["resumed"]
    assert (resumed["summary"]["dropped"], resumed["summary"]["expired"], resumed["exit_status"]) == (0, 0, 3)
    [(_, partition, reason)] = resumed["tables"]["Failures"]
    assert partition == "day=1/region=a" and "does not exist" in reason
    assert set(lake.known()) == {"1/a"}
    shutil.move(lake.root / "away", lake.directory("t"))
    assert lake.run(state=state)["exit_status"] == 0
    assert set(lake.known()) == {"1/a"}


def test_a_table_without_a_storage_descriptor_is_passed_over(lake: Lake) -> None:
    """As left by another program; so is a partition without one."""
    lake.table("broken")
    lake.table()
    lake.partition("1", "a", "day=1/region=a")
    lake.partition("2", "b", "day=2/region=b")
    database_file = lake.server.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(database_file, isolation_level=None)) as connection:
        connection.execute("UPDATE TBLS SET SD_ID = NULL WHERE TBL_NAME = 'broken'")
        connection.execute("UPDATE PARTITIONS SET SD_ID = NULL WHERE PART_NAME = 'day=2/region=b'")
    lake.make("day=3/region=c")
    found = lake.run()
    assert (found["summary"]["added"], found["summary"]["dropped"]) == (1, 0)
    names = [f"day={day}/region={region}" for day, region in ((1, "a"), (2, "b"), (3, "c"))]
    assert lake.client.call("get_partition_names", "default", "t", -1) == names


@pytest.mark.soak
def test_a_plan_that_was_left_is_looked_at_again(lake: Lake) -> None:
    """A run that ends after its plan is written: what changed until the next one is no longer written."""
    lake.table()
    lake.partition("1", "a", "day=1/region=a")
    lake.partition("2", "b", "day=2/region=b")
    shutil.rmtree(lake.directory("t", "day=1"))
    shutil.rmtree(lake.directory("t", "day=2"))
    lake.make("day=3/region=c", "day=4/region=d")
    state = str(lake.root / "plan.json")
    with pytest.raises(KeyboardInterrupt):
        lake.run(state=state, progress=Killed())
    lake.make("day=1/region=a")  # exists again
    shutil.rmtree(lake.directory("t", "day=3"))  # is gone
    lake.make("day=5/region=e")  # not in the plan
    with pytest.raises(ConfigurationError, match="other options"):
        lake.run(state=state, mode="add")
    resumed = lake.run(state=state)["summary"]
    counts = {name: resumed[name] for name in ("resumed", "added", "dropped", "unchanged", "failures")}
    assert counts == {"resumed": True, "added": 1, "dropped": 1, "unchanged": 2, "failures": 0}
    assert set(lake.known()) == {"1/a", "4/d"}
    assert not Path(state).exists()
    assert lake.run(state=state)["summary"]["added"] == 1


@pytest.mark.parametrize("change", ["place", "keys", "same"])
def test_a_plan_for_a_table_that_was_made_anew(lake: Lake, change: str) -> None:
    """Directories of the previous table are not partitions of the one that has its name now."""
    lake.table()
    lake.make("day=1/region=a", "day=2/region=b")
    state = str(lake.root / "plan.json")
    with pytest.raises(KeyboardInterrupt):
        lake.run(state=state, progress=Killed())
    table = lake.client.call("get_table", "default", "t")
    lake.client.call("drop_table", "default", "t", False)
    if change == "place":
        table.sd.location = f"file:{lake.directory('elsewhere')}"
    if change == "keys":
        table.partitionKeys = [FieldSchema("month", "int", None), FieldSchema("region", "string", None)]
    lake.client.call("create_table", table)
    resumed = lake.run(state=state)["summary"]
    count = 2 if change == "same" else 0
    assert (resumed["added"], resumed["unchanged"], resumed["failures"]) == (count, 2 - count, 0)
    assert len(lake.known()) == count


def test_a_table_that_another_engine_takes_over_in_the_middle(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is checked with the table as it is then."""
    lake.table()
    lake.make(*(f"day={day}/region=a" for day in range(4)))
    write = RepairWriter.write

    def altering(self: RepairWriter, batch: Batch) -> None:
        write(self, batch)
        if len(lake.known()) == 2:
            table = lake.client.call("get_table", "default", "t")
            table.parameters["table_type"] = "ICEBERG"
            lake.client.call("alter_table", "default", "t", table)

    monkeypatch.setattr(RepairWriter, "write", altering)
    found = lake.run(batch_partitions=1)["summary"]
    assert (found["added"], found["unchanged"]) == (2, 2)


@pytest.mark.soak
def test_the_command_needs_no_spark(lake: Lake) -> None:
    lake.table()
    lake.make("day=1/region=a")
    hidden = "import sys; sys.modules['pyspark'] = None; from hms_cache.cli.main import main; main()"
    command = [sys.executable, "-c", hidden, "jobs", "repair", "--metastore", lake.server.uri, "--json"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["added"] == 1


@pytest.mark.soak
def test_a_run_killed_again_and_again_ends(lake: Lake) -> None:
    """SIGKILL between batches: each run continues where the previous one ended, and nothing is written twice."""
    lake.table()
    lake.make(*(f"day={day}/region=a" for day in range(400)))
    state = lake.root / "plan.json"
    command = [sys.executable, "-m", "hms_cache.cli", "jobs", "repair", "--metastore", lake.server.uri, "--json"]
    command += ["--state", str(state), "--batch-partitions", "5"]
    kills, written = 0, 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
        while process.poll() is None and kills < 3:
            lines = state.read_text().count('"done"') if state.exists() else 0
            if lines >= written + 10:
                process.send_signal(signal.SIGKILL)
                process.wait(60)
                kills, written = kills + 1, lines
        output, _ = process.communicate(timeout=100)
        if process.returncode == 0:
            break
    assert kills == 3
    report = json.loads(output)["summary"]
    assert report["resumed"]
    assert len(lake.known()) == 400
    # A batch that was written but not recorded is written again, which changes nothing.
    assert 400 - report["added"] >= 5 * written - 5
    events = lake.client.call("get_next_notification", _since(0)).events
    added = [json.loads(event.message) for event in events if event.eventType == "ADD_PARTITION"]
    assert sum(len(message["partitions"]) for message in added) == 400


def _since(position: int) -> Any:
    from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest

    return NotificationEventRequest(lastEvent=position)


@pytest.mark.parametrize(
    "database",
    [
        "sqlite",
        pytest.param("mariadb", marks=[pytest.mark.soak, pytest.mark.mariadb]),
        pytest.param("postgresql", marks=[pytest.mark.soak, pytest.mark.postgresql]),
    ],
)
def test_runs_at_once_report_what_each_did_itself(start_server: ServerStarter, tmp_path: Path, database: str) -> None:
    """All have planned before the first one writes; the sum of their reports is the total number of changes."""
    lake = Lake(start_server(database), tmp_path)
    runs, count = 3, 40
    lake.table()
    for day in range(count):
        lake.partition(str(day), "gone", f"day={day}/region=gone")
    shutil.rmtree(lake.directory("t"))
    lake.make(*(f"day={day}/region=new" for day in range(count)))
    planned = threading.Barrier(runs, timeout=60)

    class StatisticsMerger(Progress):
        def _begun(self) -> None:
            if self.steps[-1] == "Writing":
                planned.wait(60)

    with ThreadPoolExecutor(runs) as pool:
        waiting = [pool.submit(lake.run, progress=StatisticsMerger(), batch_partitions=7) for _ in range(runs)]
        found = [one.result(120) for one in waiting]
    assert all(one["tables"]["Plan"] == [("default.t", count, count, count, count, 0)] for one in found)
    summaries = [one["summary"] for one in found]
    assert [sum(one[name] for one in summaries) for name in ("added", "dropped", "failures")] == [count, count, 0]
    assert sum(one["unchanged"] for one in summaries) == 2 * count * (runs - 1)
    assert set(lake.known()) == {f"{day}/new" for day in range(count)}


@pytest.mark.soak
def test_what_was_sent_twice_is_told_apart(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks after the write, before its reply: it is unknown which run added them."""
    lake.table()
    lake.make("day=1/region=a", "day=2/region=b")
    call = MetastoreClient.call
    broken: list[str] = []

    def breaking(client: MetastoreClient, method: str, *arguments: Any, **options: Any) -> Any:
        answer = call(client, method, *arguments, **options)
        if method == "add_partitions_req" and not broken:
            broken.append(method)
            raise OutcomeUnknownError("the connection broke")
        return answer

    monkeypatch.setattr(MetastoreClient, "call", breaking)
    summary = lake.run()["summary"]
    assert (summary["added"], summary["unchanged"], summary["done by this or another run"]) == (0, 0, 2)
    assert set(lake.known()) == {"1/a", "2/b"}
