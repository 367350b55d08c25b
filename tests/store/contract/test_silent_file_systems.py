"""Writes whose file system stops answering at any operation: no other waits, and the write is complete or not done.

The fault is in the functions that access this machine's files: one of them does not return before the test releases it.
On SQLite, where a write that holds its locks blocks all others, another client's write succeeds meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.warehouse import local_files
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, table

FUNCTIONS = (
    *(
        "is_within",
        "is_directory",
        "is_vacant",
        "exists",
        "make_directory",
        "make_directories",
        "names",
        "visible_files",
    ),
    *("remove_empty_directory", "rename", "delete", "delete_file", "write_file", "read_file"),
    *("owner_id", "modified_s", "inode", "directory_within", "is_link", "delete_in"),
)
KEYS = [("k", "string")]
LONG_S = 60.0
"""More than any of this takes on a busy machine: what waits for it fails."""


class Disk:
    """Stops answering at one of the following operations."""

    def __init__(self) -> None:
        self.silent_at = 0
        self.count = 0
        self.names: list[str] = []
        self.is_requested = threading.Event()
        self.answers = threading.Event()
        self._lock = threading.Lock()
        self._within = threading.local()

    def begin(self, silent_at: int) -> None:
        """Counts from here; the operation of this number (from 1) hangs until `answers` is set."""
        self.count, self.silent_at, self.names = 0, silent_at, []
        self.is_requested.clear()
        self.answers.clear()

    def end(self) -> None:
        self.silent_at = 0
        self.answers.set()

    @contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        """Around an operation. Its parts are not counted separately."""
        if getattr(self._within, "operation", False):
            yield
            return
        self._within.operation = True
        try:
            self._requested(name)
            yield
        finally:
            self._within.operation = False

    def _requested(self, name: str) -> None:
        with self._lock:
            self.count += 1
            self.names.append(name)
            is_silent = self.count == self.silent_at
        if is_silent:
            self.is_requested.set()
            self.answers.wait(LONG_S)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()

    def silenced(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def asks(*arguments: Any, **options: Any) -> Any:
            with disk.at_work(function.__name__):
                return function(*arguments, **options)

        return asks

    for name in FUNCTIONS:
        monkeypatch.setattr(local_files, name, silenced(getattr(local_files, name)))
    yield disk
    disk.end()


@pytest.fixture(params=["object"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """The cache does not affect files."""
    kind: str = request.param
    return kind


@pytest.fixture(params=["sqlite"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """The one where a write blocks all others."""
    kind: str = request.param
    return kind


@pytest.fixture
def limit_s(request: pytest.FixtureRequest) -> float:
    """`file_timeout_s`: long, unless the test waits for it."""
    return float(getattr(request, "param", LONG_S))


@pytest.fixture
def warehouse_settings(tmp_path: Path, limit_s: float) -> WarehouseSettings:
    return WarehouseSettings(
        directory=f"file:{tmp_path}/warehouse",
        file_timeout_s=limit_s,
        file_move_timeout_s=limit_s,
        listing_timeout_s=limit_s,
        file_wait_with_locks_s=0.05,
    )


class World:
    """A database with tables and files, and their state afterwards."""

    def __init__(self, t: StoreUnderTest, name: str) -> None:
        self.t = t
        self.name = name
        t.store.writes.databases.create_database(ttypes.Database(name=name))
        self.directory = t.directory / f"{name}.db"
        for each, keys in (("t", KEYS), ("v", KEYS), ("plain", [])):
            t.store.writes.tables.create_table(table(each, dbName=name, keys=keys))
        acid = table("acid", dbName=name, parameters={"transactional": "true"}, keys=KEYS)
        t.store.writes.tables.create_table(acid)
        t.store.writes.partitions.add_partitions(TableName(CATALOG, name, "acid"), [self.partition("acid", "1")])
        t.store.writes.partitions.add_partitions(
            TableName(CATALOG, name, "t"), [self.partition("t", value) for value in ("1", "2")]
        )
        for path in ("t/k=1/a", "t/k=2/b", "plain/c", "acid/k=1/d", "other/e"):
            place = self.directory / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(path)

    def partition(self, owner: str, value: str, location: str | None = None) -> ttypes.Partition:
        sd = table("x").sd
        sd.location = location
        return ttypes.Partition(values=[value], dbName=self.name, tableName=owner, sd=sd, parameters={})

    def state(self) -> tuple[Any, ...]:
        """Rows and files, without hidden files and the database's name."""
        store = self.t.store
        rows: dict[str, Any] = {}
        if self.name in store.reads.databases.get_database_names(CATALOG):
            for name in store.reads.tables.get_table_names(DatabaseName(CATALOG, self.name)):
                found = store.reads.tables.get_table(TableName(CATALOG, self.name, name))
                rows[name] = found.sd.location.replace(str(self.directory), ""), found.parameters.get("numFiles")
                for each in store.reads.partitions.get_partitions(
                    PartitionQuery(TableName(CATALOG, self.name, name))
                ).partitions:
                    place = each.sd.location.replace(str(self.directory), "")
                    rows[f"{name}/{each.values}"] = place, each.parameters.get("numFiles")
        files = sorted(path.relative_to(self.directory).as_posix() for path in self.directory.rglob("*"))
        return rows, [path for path in files if "/." not in f"/{path}"]


def altered(world: World, name: str, change: Callable[[ttypes.Table], object]) -> None:
    new = world.t.get(name, world.name)
    change(new)
    world.t.store.writes.tables.alter_table(TableName(CATALOG, world.name, name), new)


def alter_partition(world: World) -> None:
    new = world.partition("t", "1", f"file:{world.directory}/other")
    world.t.store.writes.partitions.alter_partitions(TableName(CATALOG, world.name, "t"), [new])


def rename_partition(world: World) -> None:
    world.t.store.writes.partitions.rename_partition(
        TableName(CATALOG, world.name, "t"), ["1"], world.partition("t", "9")
    )


@dataclass(frozen=True)
class Case:
    call: Callable[[World], object]
    moves: bool = False
    """Whether it moves a directory, the one thing that is not left to another attempt."""


CASES = {
    "create_database": Case(lambda w: w.t.store.writes.databases.create_database(ttypes.Database(name=f"{w.name}_2"))),
    "alter_database": Case(
        lambda w: w.t.store.writes.databases.alter_database(
            DatabaseName(CATALOG, w.name), ttypes.Database(name=w.name, locationUri=f"file:{w.directory}/moved")
        )
    ),
    "create_table": Case(lambda w: w.t.store.writes.tables.create_table(table("new", dbName=w.name))),
    "create_external_table": Case(
        lambda w: w.t.store.writes.tables.create_table(
            table("new", dbName=w.name, location=f"file:{w.directory}/other", tableType="EXTERNAL_TABLE")
        )
    ),
    "add_partitions": Case(
        lambda w: w.t.store.writes.partitions.add_partitions(
            TableName(CATALOG, w.name, "v"), [w.partition("v", "1"), w.partition("v", "2", f"file:{w.directory}/other")]
        )
    ),
    "alter_table": Case(
        lambda w: altered(w, "plain", lambda new: setattr(new.sd, "location", f"file:{w.directory}/other"))
    ),
    "rename_table": Case(lambda w: altered(w, "t", lambda new: setattr(new, "tableName", "u")), moves=True),
    "alter_partitions": Case(alter_partition),
    "rename_partition": Case(rename_partition, moves=True),
    "exchange_partitions": Case(
        lambda w: w.t.store.writes.partitions.exchange_partitions(
            {"k": "1"}, TableName(CATALOG, w.name, "t"), TableName(CATALOG, w.name, "v")
        ),
        moves=True,
    ),
    "truncate_table": Case(lambda w: w.t.store.writes.tables.truncate_table(TableName(CATALOG, w.name, "plain"))),
    "truncate_partitions": Case(
        lambda w: w.t.store.writes.tables.truncate_table(TableName(CATALOG, w.name, "t"), ["k=1"])
    ),
    "truncate_under_write_id": Case(
        lambda w: w.t.store.writes.tables.truncate_table(
            TableName(CATALOG, w.name, "acid"),
            writer=Writer(write_id=3, valid_write_ids=f"{w.name}.acid:3:9223372036854775807::"),
        )
    ),
    "drop_partitions": Case(
        lambda w: w.t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, w.name, "t"), ByNames(("k=1",)), delete_data=True
        )
    ),
    "drop_partitions_softly": Case(
        lambda w: w.t.store.writes.partitions.drop_partitions(
            TableName(CATALOG, w.name, "acid"),
            ByNames(("k=1",)),
            delete_data=False,
            options=environment_options(ttypes.EnvironmentContext({"writeId": "4", "txnId": "7"})),
        )
    ),
    "drop_table": Case(lambda w: w.t.store.writes.tables.drop_table(TableName(CATALOG, w.name, "t"), delete_data=True)),
    "drop_database": Case(
        lambda w: w.t.store.writes.databases.drop_database(
            DatabaseName(CATALOG, w.name), delete_data=True, cascade=True
        ),
    ),
}


QUICK = ("add_partitions", "alter_table", "rename_table", "exchange_partitions", "truncate_table", "drop_partitions")
"""At their first operation; the others, and at each operation, in the soaks."""


def write_meanwhile(t: StoreUnderTest) -> None:
    """Another client's write, which accesses no file."""
    t.store.writes.databases.alter_database(
        DatabaseName(CATALOG, "default"), ttypes.Database(name="default", description="meanwhile", parameters={})
    )


def waited_for(future: Future[Any]) -> BaseException | None:
    return future.exception(LONG_S)


def numbers_of(world_of: Callable[[str], World], disk: Disk, case: Case) -> tuple[list[str], tuple[Any, ...]]:
    """The operations of the call in their order, and its result."""
    world = world_of("usual")
    disk.begin(0)
    case.call(world)
    return list(disk.names), world.state()


@pytest.fixture
def world_of(under_test: StoreUnderTest) -> Callable[[str], World]:
    return lambda name: World(under_test, name)


def _wait_until_idle(t: StoreUnderTest) -> None:
    gone = threading.Event()
    for _ in range(int(LONG_S / 0.01)):
        if not t.context.warehouse._threads.in_use():
            return
        gone.wait(0.01)
    pytest.fail("threads stay at work")


@pytest.mark.parametrize(
    ("kind", "is_every"),
    [(kind, False) for kind in QUICK] + [pytest.param(kind, True, marks=pytest.mark.soak) for kind in CASES],
)
def test_a_silent_file_system_holds_no_lock_and_the_write_ends_as_usual(
    under_test: StoreUnderTest, world_of: Callable[[str], World], disk: Disk, kind: str, is_every: bool
) -> None:
    """It answers in the end: with the same result as if it had answered at once."""
    case = CASES[kind]
    operations, usual = numbers_of(world_of, disk, case)
    assert operations
    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        for number in range(1, len(operations) + 1) if is_every else (1,):
            world = world_of(f"d{number}")
            before = world.state()
            stack.callback(disk.end)
            disk.begin(number)
            call = threads.submit(case.call, world)
            assert disk.is_requested.wait(LONG_S)
            write_meanwhile(under_test)
            done = operations[:number]
            if case.moves and "rename" in done and "delete_file" not in done:
                # The move must not be left to another attempt: it fails, and is undone when it is done.
                error = waited_for(call)
                assert isinstance(error, TException)
                assert "did not answer within" in str(error)
                disk.end()
                _wait_until_idle(under_test)
                assert world.state() == before
                continue
            assert not call.done()
            disk.end()
            assert waited_for(call) is None
            assert world.state() == usual, operations[number - 1]


SHORT = ("create_table", "rename_table", "truncate_under_write_id")
"""Each operation costs the time limit."""


@pytest.mark.parametrize("limit_s", [0.5], indirect=True)
@pytest.mark.parametrize(
    ("kind", "is_every"),
    [("create_table", False)]
    + [
        pytest.param(kind, True, marks=[pytest.mark.soak, *([] if kind in SHORT else [pytest.mark.long])])
        for kind in CASES
    ],
)
def test_a_file_system_that_stays_silent_fails_the_call_within_the_limit(
    under_test: StoreUnderTest, world_of: Callable[[str], World], disk: Disk, kind: str, is_every: bool
) -> None:
    """And changes nothing; failures after the commit are logged, and reported by TRUNCATE."""
    case = CASES[kind]
    operations, usual = numbers_of(world_of, disk, case)
    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        for number in range(1, len(operations) + 1) if is_every else (1,):
            world = world_of(f"d{number}")
            before = world.state()
            stack.callback(disk.end)
            disk.begin(number)
            call = threads.submit(case.call, world)
            assert disk.is_requested.wait(LONG_S)
            error = waited_for(call)
            disk.end()
            _wait_until_idle(under_test)
            rows, files = world.state()
            if error is not None:
                assert isinstance(error, TException), error
                assert "did not answer within" in str(error)
            if error is None or "counts as truncated" in str(error):  # after the commit
                assert rows == usual[0]
                assert set(usual[1]) <= set(files) <= set(before[1]) | set(usual[1])
            else:
                assert (rows, files) == before, operations[number - 1]
