"""Servers that are killed (SIGKILL) between the steps of a write that touches directories and the database (P10).

After each kill: no row has lost its files except where `docs/operations.md` says so, nothing acknowledged before is
lost, and the same call repeated by a client ends as if nothing had happened.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from thrift.transport.TTransport import TTransportException

from hms_cache.store.crash_points import CrashPoint
from hms_cache.store.warehouse.local_files import DELETED_PREFIX
from hms_cache.store.warehouse.move_records import COPY_PREFIX, RECORD_PREFIX
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    Catalog,
    CreateCatalogRequest,
    Database,
    DropCatalogRequest,
    EnvironmentContext,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    RenamePartitionRequest,
    SQLForeignKey,
    Table,
    TruncateTableRequest,
)
from tests.conftest import ServerLookup
from tests.documentation.pages import ROOT
from tests.processes.writers import connected, descriptor
from tests.servers import ServerProcess

MOVES = (CrashPoint.MOVE_RECORDED, CrashPoint.DESTINATION_MADE, CrashPoint.DIRECTORY_MOVED)
ENDS = (CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT)
PURGE = EnvironmentContext({"ifPurge": "true"})


class MortalServer(ServerProcess):
    """A server that can be killed at a given point."""

    is_program_late = True

    def __init__(self, directory: Path, database_url: str, settings: dict[str, object]) -> None:
        super().__init__(directory, database_url, settings)
        self.orders = directory / "orders"
        self.program = (
            "from pathlib import Path; from hms_cache.store import crash_points; "
            f"crash_points.arm(Path({str(self.orders)!r})); " + ServerProcess.program
        )

    def die_at(self, point: CrashPoint, call: Callable[[Any], object]) -> None:
        """Makes the call, during which the server must die at this point, and restarts it."""
        self.orders.write_text(point)
        try:
            with connected(self.port) as client, pytest.raises((TTransportException, OSError, EOFError)):
                call(client)
        finally:
            self.orders.unlink()
            self.kill()
            self.start()


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.long])]
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup
) -> Iterator[MortalServer]:
    databases = database_servers(request.param)
    url = databases.initialized_database()
    directory = tmp_path_factory.mktemp("mortal")
    settings: dict[str, object] = {
        "warehouse.trash_interval_min": 60,
        "warehouse.trash_directory": directory / "trash",
        "cache.warm": "off",
    }
    server = MortalServer(directory / "server", url, settings)
    server.start()
    yield server
    if server.is_running:
        server.stop()
    databases.give_back(url)


class World:
    """One database of a case, and its contents."""

    def __init__(self, server: MortalServer, name: str) -> None:
        self.server = server
        self.name = name
        self.directory = server.warehouse / f"{name}.db"

    def table(self, name: str, **fields: Any) -> Table:
        return Table(
            dbName=self.name,
            tableName=name,
            owner="me",
            sd=descriptor(),
            partitionKeys=[FieldSchema("day", "string", "")],
            parameters={},
            tableType="MANAGED_TABLE",
            **fields,
        )

    def partition(self, table: str, value: str, location: Path | None = None) -> Partition:
        sd = descriptor()
        sd.location = None if location is None else f"file:{location}"
        return Partition(values=[value], dbName=self.name, tableName=table, sd=sd, parameters={})

    def put(self, *path: str) -> None:
        """A file of data."""
        place = self.directory.joinpath(*path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("/".join(path))

    def locations(self, client: Any) -> dict[str, Path]:
        """The location of each table and partition."""
        found = {}
        for name in client.get_all_tables(self.name) if self.name in client.get_all_databases() else ():
            table = client.get_table(self.name, name)
            found[name] = Path(table.sd.location.removeprefix("file:"))
            for partition in client.get_partitions(self.name, name, -1) if table.partitionKeys else ():
                found[f"{name}/{partition.values[0]}"] = Path(partition.sd.location.removeprefix("file:"))
        return found

    def files(self) -> set[str]:
        """The visible files, relative to the database's directory."""
        return {
            str(path.relative_to(self.directory))
            for path in self.directory.rglob("*")
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(self.directory).parts)
        }


@dataclass(frozen=True)
class Case:
    """One kind of write."""

    call: Callable[[World, Any], object]
    points: tuple[CrashPoint, ...]
    repeated: tuple[type[Exception], ...] = ()
    """What a repeat after the commit may be told: that it is done."""

    files: frozenset[str] = frozenset({"t/day=1/a", "t/day=2/b"})
    """The visible files in the end."""

    may_stay: frozenset[str] = frozenset()
    """Files without a row that a death after the commit leaves: `hms-cache check` names their directory."""

    tables: frozenset[str] = frozenset({"t", "t/1", "t/2", "v"})
    """The rows in the end."""

    prepare: Callable[[World, Any], object] = lambda world, client: None


def rename_table(world: World, client: Any) -> None:
    client.alter_table(world.name, "t", world.table("u"))


def rename_partition(world: World, client: Any) -> None:
    client.rename_partition(world.name, "t", ["1"], world.partition("t", "9"))


def exchange(world: World, client: Any) -> None:
    client.exchange_partition({"day": "1"}, world.name, "t", world.name, "v")


def change_location(world: World, client: Any) -> None:
    table = client.get_table(world.name, "v")
    table.sd.location = f"file:{world.directory}/elsewhere"
    client.alter_table(world.name, "v", table)


def with_bad_key(world: World, client: Any) -> None:
    table = world.table("w")
    key = SQLForeignKey(
        pktable_db=world.name,
        pktable_name="absent",
        pkcolumn_name="id",
        fktable_db=world.name,
        fktable_name="w",
        fkcolumn_name="id",
        key_seq=1,
        fk_name="k",
        pk_name="p",
        enable_cstr=True,
        validate_cstr=False,
        rely_cstr=True,
    )
    client.create_table_with_constraints(table, [], [key], [], [], [], [])


def make_transactional(world: World, client: Any) -> None:
    table = world.table("x")
    table.partitionKeys = []
    table.parameters = {"transactional": "true"}
    table.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    table.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
    client.create_table(table)
    world.put("x", "delta_0000001_0000001", "c")


def truncate_under_write_id(world: World, client: Any) -> None:
    request = TruncateTableRequest(
        dbName=world.name, tableName="x", writeId=7, validWriteIdList=f"{world.name}.x:7:9223372036854775807::"
    )
    client.truncate_table_req(request)


def make_written_partition(world: World, client: Any) -> None:
    table = world.table("x")
    table.parameters = {"transactional": "true"}
    table.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    table.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
    client.create_table(table)
    client.add_partition(world.partition("x", "1"))
    world.put("x", "day=1", "delta_0000001_0000001", "c")


def rename_by_copy(world: World, client: Any) -> None:
    new = world.partition("x", "9")
    new.writeId = 7
    client.rename_partition_req(
        RenamePartitionRequest(
            "hive", world.name, "x", ["1"], new, f"{world.name}.x:7:9223372036854775807::", txnId=3, clonePart=True
        )
    )


def put_partition_elsewhere(world: World, client: Any) -> None:
    client.add_partition(world.partition("t", "3", world.directory / "other" / "three"))
    world.put("other", "three", "c")


START = frozenset({"t/day=1/a", "t/day=2/b"})
ROWS = frozenset({"t", "t/1", "t/2", "v"})
NONE: frozenset[str] = frozenset()

CASES: dict[str, Case] = {
    "create_table": Case(
        lambda world, client: client.create_table(world.table("w")),
        (CrashPoint.DIRECTORY_MADE, *ENDS),
        (AlreadyExistsException,),
        tables=ROWS | {"w"},
    ),
    "add_partitions": Case(
        lambda world, client: client.add_partitions([world.partition("v", "5"), world.partition("v", "6")]),
        (CrashPoint.DIRECTORY_MADE, *ENDS),
        (AlreadyExistsException,),
        tables=ROWS | {"v/5", "v/6"},
    ),
    "append_partition": Case(
        lambda world, client: client.append_partition(world.name, "v", ["5"]),
        (CrashPoint.DIRECTORY_MADE, *ENDS),
        (AlreadyExistsException,),
        tables=ROWS | {"v/5"},
    ),
    "rename_table": Case(
        rename_table,
        (*MOVES, *ENDS),
        (Exception,),
        files=frozenset({"u/day=1/a", "u/day=2/b"}),
        tables=frozenset({"u", "u/1", "u/2", "v"}),
    ),
    "rename_partition": Case(
        rename_partition,
        (*MOVES, *ENDS),
        (Exception,),
        files=frozenset({"t/day=9/a", "t/day=2/b"}),
        tables=frozenset({"t", "t/9", "t/2", "v"}),
    ),
    "rename_by_copy": Case(
        rename_by_copy,
        (CrashPoint.DIRECTORY_COPIED, *MOVES, CrashPoint.FILE_WRITTEN, *ENDS),
        (Exception,),
        prepare=make_written_partition,
        files=START
        | {f"x/day={day}/delta_0000001_0000001/c" for day in (1, 9)}
        | {"x/day=1/base_0000007/_metadata_acid"},
        tables=ROWS | {"x", "x/9"},
    ),
    "exchange_partition": Case(
        exchange,
        (*MOVES, *ENDS),
        (Exception,),
        files=frozenset({"v/day=1/a", "t/day=2/b"}),
        tables=frozenset({"t", "v/1", "t/2", "v"}),
    ),
    "change_location": Case(change_location, ENDS),
    "truncate_table": Case(
        lambda world, client: client.truncate_table(world.name, "t", None),
        (*ENDS, CrashPoint.DELETED),
        files=NONE,
    ),
    "truncate_under_write_id": Case(
        truncate_under_write_id,
        (CrashPoint.FILE_WRITTEN, *ENDS),
        prepare=make_transactional,
        files=START | {"x/delta_0000001_0000001/c"},
        may_stay=frozenset({"x/base_0000007/_metadata_acid"}),
        tables=ROWS | {"x"},
    ),
    "drop_partition": Case(
        lambda world, client: client.drop_partition(world.name, "t", ["1"], True),
        (*ENDS, CrashPoint.DELETED),
        (NoSuchObjectException,),
        files=frozenset({"t/day=2/b"}),
        may_stay=frozenset({"t/day=1/a"}),
        tables=ROWS - {"t/1"},
    ),
    "drop_partition_purge": Case(
        lambda world, client: client.drop_partition_with_environment_context(world.name, "t", ["1"], True, PURGE),
        (CrashPoint.SET_ASIDE,),
        (NoSuchObjectException,),
        files=frozenset({"t/day=2/b"}),
        tables=ROWS - {"t/1"},
    ),
    "drop_table": Case(
        lambda world, client: client.drop_table(world.name, "t", True),
        (*ENDS, CrashPoint.DELETED),
        (NoSuchObjectException,),
        prepare=put_partition_elsewhere,
        files=NONE,
        may_stay=START | {"other/three/c"},
        tables=frozenset({"v"}),
    ),
    "drop_table_purge": Case(
        lambda world, client: client.drop_table_with_environment_context(world.name, "t", True, PURGE),
        (CrashPoint.SET_ASIDE, CrashPoint.DELETED),
        (NoSuchObjectException,),
        prepare=put_partition_elsewhere,
        files=NONE,
        may_stay=START,
        tables=frozenset({"v"}),
    ),
    "drop_database": Case(
        lambda world, client: client.drop_database(world.name, True, True),
        (*ENDS, CrashPoint.DELETED),
        (NoSuchObjectException,),
        files=NONE,
        may_stay=START,
        tables=NONE,
    ),
}

COMMITTED = (CrashPoint.AFTER_COMMIT, CrashPoint.SET_ASIDE, CrashPoint.DELETED)
MAY_LACK_DIRECTORY = ("rename_table", "rename_partition", "exchange_partition")
"""Where a row names the old place of a directory that has been moved, until the call is repeated."""


QUICK = ("create_table", "rename_table", "drop_partition", "drop_database")
"""One of each way that a directory goes; each point is a server that is started again."""


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "point"),
    [
        pytest.param(kind, point, marks=[] if kind in QUICK else pytest.mark.long)
        for kind, case in CASES.items()
        for point in case.points
    ],
)
def test_nothing_is_lost_and_a_repeat_works(server: MortalServer, kind: str, point: CrashPoint) -> None:
    case = CASES[kind]
    world = World(server, f"{kind}_{point.replace('-', '_')}")
    with connected(server.port) as client:
        client.create_database(Database(name=world.name))
        client.create_table(world.table("t"))
        client.create_table(world.table("v"))
        client.add_partitions([world.partition("t", "1"), world.partition("t", "2")])
        world.put("t", "day=1", "a")
        world.put("t", "day=2", "b")
        case.prepare(world, client)
        before = world.files()
    is_committed = point in COMMITTED

    server.die_at(point, lambda client: case.call(world, client))

    with connected(server.port) as client:
        # The current contents: all rows from before, or those from after.
        rows = world.locations(client)
        if is_committed:
            assert set(rows) == case.tables
        elif kind not in MAY_LACK_DIRECTORY or point not in (CrashPoint.DIRECTORY_MOVED, CrashPoint.BEFORE_COMMIT):
            assert before <= world.files()
        missing = {name for name, place in rows.items() if not place.is_dir()} - {
            "v" if kind == "change_location" else ""
        }
        if is_committed or kind not in MAY_LACK_DIRECTORY or point in MOVES[:2]:
            assert not missing, "rows without their directories"
        if not is_committed:
            assert len(world.files()) >= len(before), "files are gone although nothing was committed"

        # The same call again.
        if is_committed and case.repeated:
            with pytest.raises(case.repeated):
                case.call(world, client)
        else:
            case.call(world, client)
        rows = world.locations(client)
        assert set(rows) == case.tables
        lacking = {name for name, place in rows.items() if not place.is_dir()}
        assert not lacking - {"v" if kind == "change_location" else ""}
        found = world.files()
        assert case.files <= found <= case.files | case.may_stay
        if not is_committed and kind != "truncate_under_write_id":
            assert found == case.files
            hidden = [
                path
                for path in (world.directory.rglob(".*") if world.directory.exists() else ())
                if path.name.startswith((RECORD_PREFIX, COPY_PREFIX, DELETED_PREFIX))
            ]
            assert not hidden


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", [CrashPoint.DIRECTORY_MADE, *ENDS])
def test_a_database_and_a_catalog_are_there_or_can_be_made_again(server: MortalServer, point: CrashPoint) -> None:
    name = f"made_{point.replace('-', '_')}"
    place = server.directory / "warehouse" / f"catalog_{name}"
    catalog = CreateCatalogRequest(Catalog(name=name, locationUri=f"file:{place}"))
    for make, find in (
        (lambda client: client.create_database(Database(name=name)), lambda client: client.get_database(name)),
        (lambda client: client.create_catalog(catalog), lambda client: client.get_catalogs().names.index(name)),
    ):
        server.die_at(point, make)
        with connected(server.port) as client:
            if point == CrashPoint.AFTER_COMMIT:
                with pytest.raises(AlreadyExistsException):
                    make(client)
            else:
                make(client)
            find(client)
    assert place.is_dir()
    assert (server.warehouse / f"{name}.db").is_dir()
    if point != CrashPoint.DIRECTORY_MADE:
        drop = DropCatalogRequest(name=name)
        server.die_at(point, lambda client: client.drop_catalog(drop))
        with connected(server.port) as client:
            if point == CrashPoint.BEFORE_COMMIT:
                client.drop_catalog(drop)
            assert name not in client.get_catalogs().names


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_directory_whose_undoing_was_cut_short_is_used_by_the_next_call(server: MortalServer) -> None:
    world = World(server, "undo")
    with connected(server.port) as client:
        client.create_database(Database(name=world.name))
    server.die_at(CrashPoint.UNDO_BEGUN, lambda client: with_bad_key(world, client))
    with connected(server.port) as client:
        assert client.get_all_tables(world.name) == []
        assert (world.directory / "w").is_dir()
        client.create_table(world.table("w"))
        assert world.locations(client) == {"w": world.directory / "w"}


LEFT: tuple[tuple[str, CrashPoint, tuple[str, ...]], ...] = (
    ("create_table", CrashPoint.DIRECTORY_MADE, ("/w (",)),
    ("add_partitions", CrashPoint.BEFORE_COMMIT, ("/v/day=5 (", "/v/day=6 (")),
    ("rename_table", CrashPoint.MOVE_RECORDED, (f"/{RECORD_PREFIX}",)),
    ("rename_table", CrashPoint.DIRECTORY_MOVED, ("/u (", "/t", "that tables or partitions name are not there")),
    ("drop_partition", CrashPoint.AFTER_COMMIT, ("/t/day=1 (",)),
    ("drop_table_purge", CrashPoint.SET_ASIDE, ("/other (", "/t (")),
    ("drop_partition_purge", CrashPoint.SET_ASIDE, (f"/{DELETED_PREFIX}",)),
    ("drop_database", CrashPoint.AFTER_COMMIT, ("no row names",)),
)
"""What `hms-cache check` says of the directories after a death."""


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "point", "said"),
    [
        pytest.param(kind, point, said, marks=[] if kind in ("rename_table", "drop_partition") else pytest.mark.long)
        for kind, point, said in LEFT
    ],
)
def test_the_check_names_what_is_left(
    server: MortalServer, kind: str, point: CrashPoint, said: tuple[str, ...]
) -> None:
    case = CASES[kind]
    world = World(server, f"left_{kind}_{point.replace('-', '_')}")
    with connected(server.port) as client:
        client.create_database(Database(name=world.name))
        client.create_table(world.table("t"))
        client.create_table(world.table("v"))
        client.add_partitions([world.partition("t", "1"), world.partition("t", "2")])
        world.put("t", "day=1", "a")
        world.put("t", "day=2", "b")
        case.prepare(world, client)
    server.die_at(point, lambda client: case.call(world, client))
    command = [sys.executable, "-m", "hms_cache.cli", "check", "--database", server.database_url]
    command += ["--set", f"warehouse.directory={world.directory}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    text = found.stdout + found.stderr
    for part in said:
        assert part in text, text


def test_every_point_is_described() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    for point in CrashPoint:
        assert f"`{point}`" in text


def test_a_server_cannot_be_told_to_die_by_its_surroundings() -> None:
    """Only programs that call `arm`: none of ours does."""
    for path in (ROOT / "hms_cache").rglob("*.py"):
        if path.name != "crash_points.py":
            assert "arm(" not in path.read_text() or "crash_points" not in path.read_text(), path
