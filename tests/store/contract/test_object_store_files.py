"""A warehouse on S3, Azure and Google: what the server does with objects, and what other readers see of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from fsspec.asyn import sync_wrapper

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import AllPartitions, ByNames
from hms_cache.store.installation.directories import check_directories
from hms_cache.store.warehouse import AllowedLocation, remote_files
from hms_cache.store.warehouse.object_moves import ObjectMove
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.lakes import LAKES, S3_LAKES, Lake, LakeServers
from tests.store.contract.harness import CATALOG, DATABASE, StoreUnderTest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

KEYS = [("k", "string")]
LONG_S = 200.0
"""More than any of this takes on a busy machine: what waits for it fails."""

_numbers = count()

on_s3_only = pytest.mark.parametrize("lake_kind", S3_LAKES)


@pytest.fixture(params=LAKES)
def lake_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="module")
def lake_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServers]:
    with LakeServers(tmp_path_factory.mktemp("lakes")) as servers:
        yield servers


@pytest.fixture
def lake(lake_servers: LakeServers, lake_kind: str) -> Lake:
    """A new bucket or container."""
    return Lake(lake_kind, lake_servers.take(lake_kind), f"lake{next(_numbers)}")


@pytest.fixture(params=["object"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """The cache does not affect files."""
    kind: str = request.param
    return kind


@pytest.fixture(params=["sqlite"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """Neither does the database."""
    kind: str = request.param
    return kind


@pytest.fixture
def move_timeout_s() -> float:
    return LONG_S


@pytest.fixture
def warehouse_settings(lake: Lake, move_timeout_s: float) -> WarehouseSettings:
    return WarehouseSettings(
        directory=f"{lake.url}/w", options={lake.scheme: lake.options}, file_move_timeout_s=move_timeout_s
    )


def test_directories_are_objects_as_hadoop_writes_them(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table("t", keys=KEYS)
    catalog.add_partitions("t", ("1",))
    assert lake.keys() == ["t/", "t/k=1/"]
    assert catalog.get("t").sd.location == f"{lake.root}/t"
    catalog.drop("t")
    assert lake.keys() == []
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, DATABASE), delete_data=True, cascade=True)
    catalog.create_database()


def test_statistics(catalog: StoreUnderTest, lake: Lake) -> None:
    """Objects that represent directories are not files."""
    lake.put("t/a", "t/deep/b", "t/_hidden", "t/.hidden/c", "t/deep/more/")
    made = catalog.create_table("t")
    assert (made.parameters["numFiles"], made.parameters["totalSize"]) == ("2", "10")
    catalog.create_table("e")
    new = catalog.get("e")
    catalog.alter("e", new)
    assert catalog.get("e").parameters["numFiles"] == "0"


def test_another_writer_is_seen_at_once(catalog: StoreUnderTest, lake: Lake) -> None:
    """Drivers cache listings: otherwise the next statement would count the previous contents."""
    catalog.create_table("t")
    for number in range(3):
        lake.put(f"t/{number}")
        catalog.alter("t", catalog.get("t"))
        assert catalog.get("t").parameters["numFiles"] == str(number + 1)


def test_rename_a_table(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table("t", keys=KEYS)
    catalog.create_table("t2")
    catalog.add_partitions("t", ("1",), ("2",))
    names = ["*", "[x]?", "%41", "a", "a b", "a#1", "a?b=1", "deep/b", "Käse"]
    lake.put("t2/a", *(f"t/k=1/{name}" for name in names))
    rename_t_to_u(catalog)
    assert lake.keys() == sorted(["t2/", "t2/a", "u/", "u/k=1/", "u/k=2/", *(f"u/k=1/{name}" for name in names)])
    assert [each.sd.location.rpartition("/d.db/")[2] for each in catalog.partitions("u")] == ["u/k=1", "u/k=2"]


def test_rename_and_exchange_of_partitions(catalog: StoreUnderTest, lake: Lake) -> None:
    for name in ("t", "v"):
        catalog.create_table(name, keys=KEYS)
    catalog.add_partitions("t", ("1",), ("2",))
    lake.put("t/k=1/a", "t/k=2/b")
    [first, _] = catalog.partitions("t")
    first.values = ["9"]
    catalog.store.writes.partitions.rename_partition(TableName(CATALOG, DATABASE, "t"), ["1"], first)
    assert lake.keys() == ["t/", "t/k=2/", "t/k=2/b", "t/k=9/", "t/k=9/a", "v/"]
    catalog.store.writes.partitions.exchange_partitions(
        {"k": "2"}, TableName(CATALOG, DATABASE, "t"), TableName(CATALOG, DATABASE, "v")
    )
    assert lake.keys() == ["t/", "t/k=9/", "t/k=9/a", "v/", "v/k=2/", "v/k=2/b"]


def test_rename_of_a_partition_that_is_copied(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table(
        "t", keys=KEYS, parameters={"transactional": "true", "transactional_properties": "insert_only"}
    )
    catalog.add_partitions("t", ("1",))
    lake.put("t/k=1/delta_0000001_0000001/a", "t/k=1/[x]")
    [first] = catalog.partitions("t")
    first.values, first.writeId = ["9"], 7
    copied = environment_options(ttypes.EnvironmentContext({"renamePartitionMakeCopy": "true", "txnId": "3"}))
    table = TableName(CATALOG, DATABASE, "t")
    catalog.store.writes.partitions.rename_partition(table, ["1"], first, writer=Writer(write_id=7, options=copied))
    listed = lake.keys()
    files = [key for key in listed if not key.endswith("/")]
    assert files == [
        *("t/k=1/[x]", "t/k=1/base_0000007/_metadata_acid", "t/k=1/delta_0000001_0000001/a"),
        *("t/k=9/[x]", "t/k=9/delta_0000001_0000001/a"),
    ]
    assert [each.sd.location.rpartition("/d.db/")[2] for each in catalog.partitions("t")] == ["t/k=9"]


def test_truncate_and_drops(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table("t", keys=KEYS)
    catalog.add_partitions("t", ("1",), ("12",))
    catalog.create_table("plain")
    lake.put("t/k=1/a", "t/k=12/b", "plain/a", "plain/deep/b", "plain/_keep")
    catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "plain"))
    assert lake.keys() == ["plain/", "plain/_keep", "t/", "t/k=1/", "t/k=1/a", "t/k=12/", "t/k=12/b"]
    catalog.store.writes.partitions.drop_partitions(
        TableName(CATALOG, DATABASE, "t"), ByNames(("k=1",)), delete_data=True
    )
    assert lake.keys() == ["plain/", "plain/_keep", "t/", "t/k=12/", "t/k=12/b"]
    catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, DATABASE), delete_data=True, cascade=True)
    assert lake.keys() == []
    catalog.create_database()


@pytest.fixture
def requests_sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the called S3 methods."""
    s3fs = pytest.importorskip("s3fs")
    sent: list[str] = []
    call = s3fs.S3FileSystem._call_s3

    async def noting(self: object, method: str, *arguments: object, **options: object) -> object:
        sent.append(method)
        return await call(self, method, *arguments, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", noting)
    monkeypatch.setattr(s3fs.S3FileSystem, "call_s3", sync_wrapper(noting))
    return sent


@on_s3_only
def test_dropped_partitions_are_listed_once_and_deleted_together(
    catalog: StoreUnderTest, lake: Lake, requests_sent: list[str]
) -> None:
    counts = []
    for partitions in (3, 30):
        catalog.create_table("t", keys=KEYS)
        catalog.add_partitions("t", *((str(number),) for number in range(partitions)))
        lake.put(*(f"t/k={number}/{name}" for number in range(partitions) for name in "ab"))
        requests_sent.clear()
        writes = catalog.store.writes.partitions
        writes.drop_partitions(TableName(CATALOG, DATABASE, "t"), AllPartitions(), delete_data=True)
        counts.append(len(requests_sent))
        assert requests_sent.count("delete_objects") == 1
        assert lake.keys() == ["t/"]
        catalog.drop("t")
    assert counts[1] == counts[0] + 27  # a request to list for each


@dataclass
class SlowCopies:
    """Copying in the object store continues when the test permits it."""

    is_requested: threading.Event
    goes_on: threading.Event


@pytest.fixture
def slow_copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowCopies]:
    copies = SlowCopies(threading.Event(), threading.Event())
    copy = remote_files.copy_objects

    def slow(*arguments: Any) -> None:
        copies.is_requested.set()
        assert copies.goes_on.wait(LONG_S)
        copy(*arguments)

    monkeypatch.setattr(remote_files, "copy_objects", slow)
    yield copies
    copies.goes_on.set()


def write_meanwhile(catalog: StoreUnderTest) -> None:
    """On SQLite, it waits for each other write that holds its lock."""
    catalog.store.writes.databases.alter_database(
        DatabaseName(CATALOG, "default"), ttypes.Database(name="default", description="meanwhile", parameters={})
    )


def wait_until_idle(catalog: StoreUnderTest) -> None:
    again = threading.Event()
    for _ in range(int(LONG_S / 0.01)):
        if not catalog.context.warehouse._threads.in_use():
            return
        again.wait(0.01)
    pytest.fail("threads stay at work")


def rename_t_to_u(catalog: StoreUnderTest) -> None:
    new = catalog.get("t")
    new.tableName = "u"
    catalog.alter("t", new)


class TestTrash:
    """What was deleted can be restored for a while."""

    @pytest.fixture
    def warehouse_settings(self, lake: Lake) -> WarehouseSettings:
        return WarehouseSettings(
            directory=f"{lake.url}/w",
            options={lake.scheme: lake.options},
            trash_interval_min=60,
            trash_directory=f"{lake.url}/trash",
        )

    @staticmethod
    def files(lake: Lake) -> set[str]:
        found = lake.keys()
        return {key.replace("trash/Current/w/d.db/", "trash:") for key in found if not key.endswith("/")}

    def test_files_and_directories(self, catalog: StoreUnderTest, lake: Lake) -> None:
        catalog.create_table("t")
        lake.put("t/a", "t/deep/b", "t/_keep")
        catalog.store.writes.tables.truncate_table(TableName(CATALOG, DATABASE, "t"))
        assert self.files(lake) == {"t/_keep", "trash:t/a", "trash:t/deep/b"}
        catalog.create_table("u")
        lake.put("u/a", "u/deep/b")
        catalog.drop("u")
        assert self.files(lake) == {"t/_keep", "trash:t/a", "trash:t/deep/b", "trash:u/a", "trash:u/deep/b"}

    def test_what_is_written_meanwhile_stays(
        self, catalog: StoreUnderTest, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A table that is created again writes into the same directory."""
        catalog.create_table("t")
        lake.put("t/a")
        copy_objects = remote_files.copy_objects

        def copying(*arguments: Any) -> None:
            copy_objects(*arguments)
            lake.put("t/new")

        monkeypatch.setattr(remote_files, "copy_objects", copying)
        catalog.drop("t")
        assert self.files(lake) == {"trash:t/a", "t/new"}


class TestOtherSchemes:
    """One bucket under two names, both of them allowed."""

    @pytest.fixture(params=S3_LAKES)
    def lake_kind(self, request: pytest.FixtureRequest) -> str:
        kind: str = request.param
        return kind

    @pytest.fixture
    def warehouse_settings(self, lake: Lake) -> WarehouseSettings:
        return WarehouseSettings(
            directory=f"{lake.url}/w",
            allowed_locations=(f"{other(lake, lake.url)}/w",),
            options=dict.fromkeys(("s3", "s3a"), lake.options),
            file_move_timeout_s=LONG_S,
        )

    def test_partitions_move_with_their_table_and_alone(self, catalog: StoreUnderTest, lake: Lake) -> None:
        catalog.create_table("t", keys=KEYS)
        catalog.add_partitions("t", ("1",), location=f"{other(lake, lake.root)}/t/k=1")
        lake.put("t/k=1/a")
        rename_t_to_u(catalog)
        assert [each.sd.location for each in catalog.partitions("u")] == [f"{other(lake, lake.root)}/u/k=1"]
        assert lake.keys() == ["u/", "u/k=1/", "u/k=1/a"]
        [found] = catalog.partitions("u")
        found.values = ["2"]
        catalog.store.writes.partitions.rename_partition(TableName(CATALOG, DATABASE, "u"), ["1"], found)
        assert [each.sd.location for each in catalog.partitions("u")] == [f"{other(lake, lake.root)}/u/k=2"]
        assert lake.keys() == ["u/", "u/k=2/", "u/k=2/a"]

    def test_a_partition_that_is_dropped_leaves_the_directory_of_its_table(
        self, catalog: StoreUnderTest, lake: Lake
    ) -> None:
        catalog.create_table("t", keys=KEYS)
        catalog.add_partitions("t", ("1",))
        catalog.add_partitions("t", ("0",), location=f"{other(lake, lake.root)}/t")
        lake.put("t/k=1/a")
        catalog.store.writes.partitions.drop_partitions(
            TableName(CATALOG, DATABASE, "t"), ByNames(("k=0",)), delete_data=True
        )
        assert lake.keys() == ["t/", "t/k=1/", "t/k=1/a"]

    def test_data_of_external_tables_stays(self, catalog: StoreUnderTest, lake: Lake) -> None:
        """In the directory of a dropped database, or of a table in it."""
        external: dict[str, Any] = {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
        catalog.create_table("t")
        catalog.create_table("u")
        catalog.create_table("e", location=f"{other(lake, lake.root)}/e", **external)
        catalog.create_table("f", location=f"{other(lake, lake.root)}/t/f", **external)
        lake.put("t/a", "u/a", "e/a", "t/f/a")
        catalog.store.writes.databases.drop_database(DatabaseName(CATALOG, DATABASE), delete_data=True, cascade=True)
        found = lake.keys()
        assert {key for key in found if not key.endswith("/")} == {"t/a", "e/a", "t/f/a"}
        catalog.create_database()

    def test_a_check_takes_no_directory_of_a_table_for_nobodys(self, catalog: StoreUnderTest, lake: Lake) -> None:
        catalog.create_table("t", location=f"{other(lake, lake.root)}/t")
        catalog.create_table("k", keys=KEYS)
        catalog.add_partitions("k", ("1",), location=f"{other(lake, lake.root)}/p")
        lake.put("t/a", "p/a", "nobodys/a")
        findings = _Findings()
        check_directories(findings, catalog.context.warehouse, catalog.database)
        [problem] = findings.problems
        assert "no row names 1 directory" in problem and f"{lake.root}/nobodys" in problem


class _Findings:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def warning(self, problem: str, remedy: str) -> None:
        self.problems.append(problem)


def other(lake: Lake, location: str) -> str:
    """The same location under another scheme of the store."""
    scheme = "s3" if lake.scheme == "s3a" else "s3a"
    return f"{scheme}{location.removeprefix(lake.scheme)}"


def test_a_move_that_takes_long_holds_no_lock(catalog: StoreUnderTest, lake: Lake, slow_copies: SlowCopies) -> None:
    """Files added by others meanwhile are moved, too."""
    catalog.create_table("t", keys=KEYS)
    catalog.add_partitions("t", ("1",))
    lake.put("t/k=1/a", "t/k=1/b")
    with ThreadPoolExecutor(1) as threads:
        renamed = threads.submit(rename_t_to_u, catalog)
        assert slow_copies.is_requested.wait(LONG_S)
        write_meanwhile(catalog)
        assert not renamed.done()
        catalog.add_partitions("t", ("2",))
        lake.put("t/k=2/c")
        slow_copies.goes_on.set()
        renamed.result(LONG_S)
    assert lake.keys() == ["u/", "u/k=1/", "u/k=1/a", "u/k=1/b", "u/k=2/", "u/k=2/c"]
    assert [each.sd.location.rpartition("/d.db/")[2] for each in catalog.partitions("u")] == ["u/k=1", "u/k=2"]


def test_a_copy_that_takes_long_holds_no_lock(catalog: StoreUnderTest, lake: Lake, slow_copies: SlowCopies) -> None:
    insert_only = {"transactional": "true", "transactional_properties": "insert_only"}
    catalog.create_table("t", keys=KEYS, parameters=insert_only)
    catalog.add_partitions("t", ("1",))
    lake.put("t/k=1/delta_0000001_0000001/a")
    [first] = catalog.partitions("t")
    first.values, first.writeId = ["9"], 7
    copied = environment_options(ttypes.EnvironmentContext({"renamePartitionMakeCopy": "true", "txnId": "3"}))
    rename = catalog.store.writes.partitions.rename_partition
    with ThreadPoolExecutor(1) as threads:
        renamed = threads.submit(
            rename, TableName(CATALOG, DATABASE, "t"), ["1"], first, writer=Writer(write_id=7, options=copied)
        )
        assert slow_copies.is_requested.wait(LONG_S)
        write_meanwhile(catalog)
        slow_copies.goes_on.set()
        renamed.result(LONG_S)
    files = [key for key in lake.keys() if not key.endswith("/")]  # noqa: SIM118
    assert files == [
        *("t/k=1/base_0000007/_metadata_acid", "t/k=1/delta_0000001_0000001/a"),
        "t/k=9/delta_0000001_0000001/a",
    ]


@pytest.mark.parametrize("rival", ["drop", "create"])
def test_a_move_that_another_write_overtakes_leaves_nothing(
    catalog: StoreUnderTest, lake: Lake, slow_copies: SlowCopies, rival: str
) -> None:
    catalog.create_table("t")
    lake.put("t/a", "t/b")
    with ThreadPoolExecutor(1) as threads:
        renamed = threads.submit(rename_t_to_u, catalog)
        assert slow_copies.is_requested.wait(LONG_S)
        if rival == "drop":
            catalog.drop("t", delete_data=False)
        else:
            catalog.create_table("u", location=str(catalog.context.warehouse.location(f"{lake.root}/other")))
        slow_copies.goes_on.set()
        assert isinstance(renamed.exception(LONG_S), ttypes.InvalidOperationException)
    found = lake.keys()
    assert [key for key in found if not key.startswith("other")] == ["t/", "t/a", "t/b"]


def test_the_place_of_a_move_under_way_is_taken(catalog: StoreUnderTest, lake: Lake, slow_copies: SlowCopies) -> None:
    catalog.create_table("t")
    catalog.create_table("v")
    lake.put("t/a", "v/a")
    with ThreadPoolExecutor(1) as threads:
        renamed = threads.submit(rename_t_to_u, catalog)
        assert slow_copies.is_requested.wait(LONG_S)
        other = catalog.get("v")
        other.tableName = "u"
        with pytest.raises(ttypes.InvalidOperationException, match="already exists"):
            catalog.alter("v", other)
        slow_copies.goes_on.set()
        renamed.result(LONG_S)
    assert lake.keys() == ["u/", "u/a", "v/", "v/a"]


@pytest.mark.parametrize("move_timeout_s", [0.2])
def test_a_move_has_a_time_limit(
    catalog: StoreUnderTest, lake: Lake, slow_copies: SlowCopies, move_timeout_s: float
) -> None:
    catalog.create_table("t")
    lake.put(*(f"t/{number:03}" for number in range(150)))
    with pytest.raises(ttypes.InvalidOperationException, match=r"0\.2 s \(warehouse\.file_move_timeout_s\)"):
        rename_t_to_u(catalog)
    write_meanwhile(catalog)
    slow_copies.goes_on.set()
    wait_until_idle(catalog)
    assert len(lake.keys()) == 151
    assert catalog.get("t").sd.location.endswith("/d.db/t")


def test_what_is_written_after_the_copy_stays(
    catalog: StoreUnderTest, lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.create_table("t")
    lake.put("t/a", "t/b")
    delete = ObjectMove.delete_source

    def late(move: ObjectMove) -> None:
        lake.put("t/c")
        delete(move)

    monkeypatch.setattr(ObjectMove, "delete_source", late)
    rename_t_to_u(catalog)
    assert lake.keys() == ["t/c", "u/", "u/a", "u/b"]
    assert any("1 objects at" in message and "stay" in message for message in caplog.messages)


@pytest.mark.long
def test_more_objects_than_a_request_takes(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table("t")
    lake.put(*(f"t/{number:05}" for number in range(1_005)))
    new = catalog.get("t")
    new.tableName = "u"
    catalog.alter("t", new)
    found = lake.keys()
    assert len(found) == 1_006
    assert all(key.startswith("u/") for key in found)
    catalog.drop("u")
    assert lake.keys() == []


@on_s3_only
def test_a_new_partition_costs_two_requests_however_much_is_there(
    catalog: StoreUnderTest, lake: Lake, requests_sent: list[str]
) -> None:
    """One that finds the directory, and one for each thousand files."""
    catalog.create_table("t", keys=KEYS)
    lake.put(*(f"t/k=1/{directory}/{number}" for directory in "ab" for number in range(3)), "t/k=1/_temporary/x")
    requests_sent.clear()
    catalog.add_partitions("t", ("1",))
    assert requests_sent == ["list_objects_v2"] * 2
    [added] = catalog.partitions("t")
    assert (added.parameters["numFiles"], added.parameters["totalSize"]) == ("6", "30")


@pytest.mark.parametrize("lake_kind", ["s3"])  # the gateway has no such storage class
def test_an_archived_object_is_not_moved(catalog: StoreUnderTest, lake: Lake) -> None:
    """It cannot be copied; what was copied is deleted again."""
    catalog.create_table("t")
    lake.put("t/a", "t/b")
    lake.put("t/c", storage_class="GLACIER")
    with pytest.raises(ttypes.InvalidOperationException, match="failed to move data"):
        rename_t_to_u(catalog)
    assert lake.keys() == ["t/", "t/a", "t/b", "t/c"]
    assert catalog.get("t").sd.location.endswith("/d.db/t")
    lake.put("t/c")
    rename_t_to_u(catalog)
    assert lake.keys() == ["u/", "u/a", "u/b", "u/c"]


def test_a_move_that_fails_leaves_the_source_whole(
    catalog: StoreUnderTest, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied is deleted again."""
    catalog.create_table("t", keys=KEYS)
    catalog.add_partitions("t", ("1",))
    lake.put("t/k=1/a", "t/k=1/b")
    copy = remote_files.copy_objects

    def fail(*arguments: Any) -> None:
        copy(*arguments)
        raise OSError("no more of it")

    with monkeypatch.context() as patch:
        patch.setattr(remote_files, "copy_objects", fail)
        with pytest.raises(ttypes.InvalidOperationException, match="failed to move data"):
            rename_t_to_u(catalog)
    assert lake.keys() == ["t/", "t/k=1/", "t/k=1/a", "t/k=1/b"]
    assert catalog.get("t").sd.location.endswith("/d.db/t")
    rename_t_to_u(catalog)
    assert lake.keys() == ["u/", "u/k=1/", "u/k=1/a", "u/k=1/b"]


def test_a_rolled_back_write_takes_its_directories_back(catalog: StoreUnderTest, lake: Lake) -> None:
    catalog.create_table("t", keys=KEYS)
    catalog.add_partitions("t", ("1",))
    with pytest.raises(ttypes.AlreadyExistsException):
        catalog.add_partitions("t", ("2",), ("1",))
    assert lake.keys() == ["t/", "t/k=1/"]
    assert [each.values for each in catalog.partitions("t")] == [["1"]]


def test_directories_of_many_partitions_are_made_at_the_same_time(
    catalog: StoreUnderTest, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes several requests: a thousand, one after another, would block the table for most of a minute."""
    make, together = remote_files.make_directory, threading.Barrier(8, timeout=60)

    def make_with_others(file_system: Any, path: str) -> bool:
        if "/k=" in path:
            together.wait(LONG_S)
        return make(file_system, path)

    monkeypatch.setattr(remote_files, "make_directory", make_with_others)
    catalog.create_table("t", keys=KEYS)
    values = [str(number) for number in range(64)]
    lake.put("t/k=7/a")
    catalog.add_partitions("t", *((value,) for value in values))
    markers = [f"t/k={value}/" for value in values if value != "7"]
    assert lake.keys() == sorted(["t/", "t/k=7/a", *markers])


def test_one_directory_that_cannot_be_made_takes_back_the_others(
    catalog: StoreUnderTest, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = remote_files.make_directory

    def make_some(file_system: Any, path: str) -> bool:
        if path.endswith("/k=7"):
            raise OSError("it was refused")
        return make(file_system, path)

    monkeypatch.setattr(remote_files, "make_directory", make_some)
    catalog.create_table("t", keys=KEYS)
    with pytest.raises(ttypes.MetaException, match=r"k=7 is not a directory or unable to create one: it was refused"):
        catalog.add_partitions("t", *((str(number),) for number in range(20)))
    assert lake.keys() == ["t/"]
    assert catalog.partitions("t") == []


def test_a_bucket_that_is_not_there(catalog: StoreUnderTest, lake: Lake) -> None:
    """None is created for a misspelt name."""
    place = catalog.context.warehouse.location(f"{lake.url_of('misspelt')}/x/y")
    with pytest.raises(ttypes.MetaException, match="unable to create one"):
        catalog.context.warehouse.make_directory(AllowedLocation(place, (place.parent,)))
    assert not catalog.context.warehouse.exists(AllowedLocation(place, (place.parent,)))


def test_a_file_in_the_place_of_a_directory(catalog: StoreUnderTest, lake: Lake) -> None:
    """On Azure, a directory's marker would have its key."""
    lake.put("file")
    warehouse = catalog.context.warehouse
    place = AllowedLocation(warehouse.location(f"{lake.root}/file"), (warehouse.location(lake.root),))
    if lake.kind == "azure":
        with pytest.raises(ttypes.MetaException):
            warehouse.make_directory(place)
        assert lake.keys() == ["file"]
    catalog.create_table("t")
    lake.put("t/a")
    with pytest.raises(ttypes.InvalidOperationException):
        new = catalog.get("t")
        new.tableName = "file"
        catalog.alter("t", new)
    assert lake.keys()[-2:] == ["t/", "t/a"]
