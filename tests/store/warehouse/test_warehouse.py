"""Default locations and file operations."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hms_cache.config.sections import WarehouseSettings
from hms_cache.store.warehouse import (
    AllowedLocation,
    DirectoryStatistics,
    Location,
    Warehouse,
    local_files,
)
from hms_cache.store.warehouse.allowed import allow_by_names
from hms_cache.thrift_gen.hive_metastore.ttypes import Catalog, Database, MetaException


class Outcome:
    """A transaction whose end the test determines."""

    def __init__(self) -> None:
        self._after_commit: list[Callable[[], None]] = []
        self._on_rollback: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        self._after_commit.append(action)

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        self._on_rollback.append(action)

    def commit(self) -> None:
        for action in self._after_commit:
            action()

    def roll_back(self) -> None:
        for action in reversed(self._on_rollback):
            action()


class Everywhere:
    """A warehouse whose operations accept plain locations: each is checked first, and must be allowed."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.warehouse, name)

        def judged(*arguments: Any, **options: Any) -> Any:
            return operation(*(self.judge(argument) for argument in arguments), **options)

        return judged if callable(operation) else operation

    def judge(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self.judge(each) for each in argument]
        if not isinstance(argument, Location):
            return argument
        found = self.warehouse.allow(argument)
        assert found is not None, f"{argument} is not allowed"
        return found

    def changes(self, outcome: Outcome) -> Any:
        everywhere = Everywhere(self.warehouse)
        everywhere.warehouse = self.warehouse.changes(outcome)  # type: ignore[assignment]
        everywhere.judge = self.judge  # type: ignore[method-assign]
        return everywhere


def warehouse_of(directory: str, **settings: object) -> Everywhere:
    return Everywhere(Warehouse(WarehouseSettings(directory=directory, **settings)))  # type: ignore[arg-type]


class TestDefaultLocations:
    def test_one_root(self) -> None:
        warehouse = warehouse_of("hdfs://nn/warehouse")
        database = Database(name="Db", catalogName="hive")
        assert str(warehouse.database_location(database)) == "hdfs://nn/warehouse/db.db"
        assert str(warehouse.database_location(Database(name="default"))) == "hdfs://nn/warehouse"
        database.locationUri = "hdfs://nn/elsewhere/"
        for external in (False, True):
            location = warehouse.default_table_location(database, "T x", external=external)
            assert str(location) == "hdfs://nn/elsewhere/t-32-x"

    def test_two_roots(self) -> None:
        warehouse = warehouse_of("file:/m", external_directory="file:/e")

        def tables(location: str | None, managed: str | None = None, name: str = "d") -> tuple[str, str]:
            database = Database(name=name, catalogName="hive", locationUri=location, managedLocationUri=managed)
            return (
                str(warehouse.default_table_location(database, "t", external=False)),
                str(warehouse.default_table_location(database, "t", external=True)),
            )

        assert tables("file:/e/d.db") == ("file:/m/d.db/t", "file:/e/d.db/t")
        assert tables("file:/m/d.db") == ("file:/m/d.db/t", "file:/e/d.db/t")
        assert tables("file:/other", "file:/mine") == ("file:/mine/t", "file:/other/t")
        assert tables("file:/m", name="default") == ("file:/m/t", "file:/e/t")
        assert tables(None) == ("file:/m/d.db/t", "file:/e/d.db/t")

    def test_other_catalogs_have_their_own_root(self) -> None:
        warehouse = warehouse_of("file:/m", external_directory="file:/e")
        database = Database(name="d", catalogName="spark")
        location = warehouse.database_location(database, Catalog(name="spark", locationUri="s3a://b/spark/"))
        assert str(location) == "s3a://b/spark/d.db"
        database.locationUri = str(location)
        assert str(warehouse.default_table_location(database, "t", external=False)) == "s3a://b/spark/d.db/t"

    def test_plain_paths_lie_on_the_default_file_system(self) -> None:
        warehouse = warehouse_of("/warehouse", default_file_system="hdfs://nn:8020")
        assert str(warehouse.database_location(Database(name="d"))) == "hdfs://nn:8020/warehouse/d.db"


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """A directory on a local file system and on one that only fsspec supports."""
    if request.param == "memory":
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]
    yield Location(request.param, "", str(tmp_path))
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def warehouse(root: Location) -> Everywhere:
    return warehouse_of(str(root))


def fill(warehouse: Everywhere, location: Location) -> None:
    """Two visible files, 8 bytes, and two hidden ones."""
    for name, content in (("a", b"12345"), ("sub/b", b"123"), ("_c/d", b"1"), ("sub/.e", b"1")):
        warehouse.make_directory(location.resolve(name).parent)
        warehouse.write_file(location.resolve(name), content)


class TestFileOperations:
    def test_make_directory(self, warehouse: Everywhere, root: Location) -> None:
        place = root.child("a", "b")
        assert not warehouse.is_directory(place)
        assert warehouse.make_directory(place) is True
        assert warehouse.make_directory(place) is False
        assert warehouse.is_directory(place)
        assert warehouse.exists(place)

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"1")
        warehouse = warehouse_of(f"file:{tmp_path}")
        with pytest.raises(MetaException, match="is not a directory or unable to create one"):
            warehouse.make_directory(warehouse.location(f"{tmp_path}/f"))

    def test_statistics(self, warehouse: Everywhere, root: Location) -> None:
        assert warehouse.directory_statistics(root.child("none")) == DirectoryStatistics(0, 0)
        fill(warehouse, root.child("t"))
        assert warehouse.directory_statistics(root.child("t")) == DirectoryStatistics(2, 8)

    def test_rename(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("a"))
        warehouse.rename_directory(root.child("a"), root.child("deep", "b"))
        assert not warehouse.exists(root.child("a"))
        assert warehouse.directory_statistics(root.child("deep", "b")) == DirectoryStatistics(2, 8)
        fill(warehouse, root.child("a"))
        with pytest.raises(MetaException, match="Destination already exists"):
            warehouse.rename_directory(root.child("a"), root.child("deep", "b"))
        elsewhere = allow_by_names([Location("hdfs", "nn", "/w/x")], [Location("hdfs", "nn", "/w")])[0]
        with pytest.raises(MetaException, match=r"Cannot move .* to another file system"):
            warehouse.rename_directory(root.child("a"), elsewhere)

    def test_of_many_directories_renamed_to_one_exactly_one_gets_there(self, tmp_path: Path) -> None:
        warehouse = warehouse_of(f"file:{tmp_path}")
        root = warehouse.location(str(tmp_path))
        names = [f"d{number}" for number in range(8)]
        for name in names:
            warehouse.make_directory(root.child(name))
            warehouse.write_file(root.child(name, name), b"1")
        barrier = threading.Barrier(len(names), timeout=60)

        def rename(name: str) -> bool:
            barrier.wait(30)
            try:
                warehouse.rename_directory(root.child(name), root.child("goal"))
            except MetaException:
                return False
            return True

        with ThreadPoolExecutor(len(names)) as threads:
            winners = [name for name, won in zip(names, threads.map(rename, names), strict=True) if won]
        assert len(winners) == 1
        for name in names:
            place = "goal" if name in winners else name
            assert warehouse.exists(root.child(place, name))

    def test_delete(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("a"))
        warehouse.delete_directory(root.child("a"), skip_trash=False)
        warehouse.delete_directory(root.child("a"), skip_trash=False)
        assert not warehouse.exists(root.child("a"))
        everything = Location(root.scheme, "", "/")
        with pytest.raises(MetaException, match="Refusing to delete the root"):
            warehouse.delete_directory(allow_by_names([everything], [everything])[0], skip_trash=False)
        with pytest.raises(MetaException, match="Refusing to delete a directory of the warehouse itself"):
            warehouse.delete_directory(root, skip_trash=False)

    def test_delete_contents_keeps_hidden_entries(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("a"))
        warehouse.delete_contents(root.child("a"), skip_trash=False)
        warehouse.delete_contents(root.child("none"), skip_trash=False)
        assert warehouse.exists(root.child("a", "_c", "d"))
        assert not warehouse.exists(root.child("a", "sub"))
        assert warehouse.is_directory(root.child("a"))

    def test_remove_empty_directory(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("full"))
        warehouse.make_directory(root.child("empty"))
        for name in ("full", "empty", "none"):
            warehouse.remove_empty_directory(root.child(name))
        assert warehouse.exists(root.child("full"))
        assert not warehouse.exists(root.child("empty"))


class TestTrash:
    @pytest.fixture
    def warehouse(self, root: Location) -> Everywhere:
        return warehouse_of(str(root), trash_interval_min=10, trash_directory=str(root.child("trash")))

    def trashed(self, root: Location, name: str) -> Location:
        return root.child("trash", "Current").resolve(f"{root.path}/{name}")

    def test_moves(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("a"))
        warehouse.delete_directory(root.child("a"), skip_trash=False)
        assert warehouse.directory_statistics(self.trashed(root, "a")) == DirectoryStatistics(2, 8)
        assert not warehouse.exists(root.child("a"))

    def test_what_is_in_the_trash_is_deleted(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("trash", "a"))
        warehouse.delete_directory(root.child("trash", "a"), skip_trash=False)
        assert not warehouse.exists(root.child("trash", "a"))
        fill(warehouse, root.child("trash", "b"))
        with pytest.raises(MetaException, match="contains the trash"):
            warehouse.delete_directory(AllowedLocation(root, (root.parent,)), skip_trash=False)

    def test_home(self) -> None:
        warehouse = warehouse_of("/x", trash_interval_min=1).warehouse
        trash = warehouse._deletions.trash_directory(Location("file", "", "/x"))
        assert trash.path == f"{Path.home()}/.Trash"
        assert str(warehouse._deletions.trash_directory(Location("hdfs", "nn", "/x"))).startswith("hdfs://nn/user/")


class TestChanges:
    def test_rolled_back(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("old"))
        outcome = Outcome()
        changes = warehouse.changes(outcome)
        changes.make_directory(root.child("made"))
        changes.rename_directory(root.child("old"), root.child("made", "new"))
        changes.write_file(root.child("written", "f"), b"1")
        changes.delete_directories_after_commit([root.child("made")], skip_trash=False)
        outcome.roll_back()
        assert warehouse.directory_statistics(root.child("old")) == DirectoryStatistics(2, 8)
        for name in ("made", "written"):
            assert not warehouse.exists(root.child(name))

    def test_committed(self, warehouse: Everywhere, root: Location) -> None:
        fill(warehouse, root.child("gone"))
        fill(warehouse, root.child("emptied"))
        outcome = Outcome()
        changes = warehouse.changes(outcome)
        assert changes.make_directory(root.child("made")) is True
        assert changes.make_directory(root.child("made")) is False
        changes.delete_directories_after_commit([root.child("gone")], skip_trash=False)
        changes.delete_contents_after_commit(root.child("emptied"), skip_trash=False)
        assert warehouse.exists(root.child("gone")), "not before the commit"
        outcome.commit()
        assert not warehouse.exists(root.child("gone"))
        assert warehouse.directory_statistics(root.child("emptied")) == DirectoryStatistics(0, 0)
        assert warehouse.is_directory(root.child("made"))

    def test_a_directory_that_others_filled_is_not_undone(self, warehouse: Everywhere, root: Location) -> None:
        outcome = Outcome()
        warehouse.changes(outcome).make_directory(root.child("made"))
        warehouse.write_file(root.child("made", "f"), b"1")
        outcome.roll_back()
        assert warehouse.exists(root.child("made", "f"))


def test_what_is_made_during_a_deletion_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of the same name is created, and gets a partition, while the files of the dropped one are deleted."""
    warehouse = warehouse_of(f"file:{tmp_path}")
    place = warehouse.location(f"{tmp_path}/a")
    warehouse.make_directory(place.child("p=1"))
    warehouse.write_file(place.child("p=1", "old"), b"1")
    delete_tree = local_files._delete_tree

    def while_another_creates(name: str, parent: int) -> None:
        warehouse.make_directory(place.child("p=1"))
        warehouse.write_file(place.child("p=1", "new"), b"1")
        delete_tree(name, parent)

    monkeypatch.setattr(local_files, "_delete_tree", while_another_creates)
    warehouse.delete_directory(place, skip_trash=False)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "a",
        "a/p=1",
        "a/p=1/new",
    ]


@pytest.mark.parametrize("limits", [{"listing_max_entries": 3}, {"listing_timeout_s": 1e-9}])
def test_listings_are_bounded_and_deletions_are_whole(tmp_path: Path, limits: dict[str, float]) -> None:
    warehouse = warehouse_of(f"file:{tmp_path}", **limits)
    place = warehouse.location(f"{tmp_path}/t")
    for name in ("t/k=1", "t/k=2"):
        (tmp_path / name).mkdir(parents=True)
        for number in range(300):
            (tmp_path / name / str(number)).touch()
    assert warehouse.directory_statistics(place) is None
    warehouse.delete_contents(place, skip_trash=True)
    assert list((tmp_path / "t").iterdir()) == []


def test_a_deep_tree_takes_few_file_descriptors(tmp_path: Path) -> None:
    """Deeper than the number of files a process may open, and than Python recurses. Counting is given up."""
    warehouse = warehouse_of(f"file:{tmp_path}")
    place = warehouse.location(f"{tmp_path}/deep")
    deepest = tmp_path / "deep"
    deepest.mkdir()
    here = os.open(deepest, os.O_DIRECTORY)
    for _ in range(1_500):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.mkdir("d", dir_fd=here)
        os.symlink("/", "link", dir_fd=here)
        below = os.open("d", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert warehouse.directory_statistics(place) is None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, hard))
    try:
        warehouse.delete_directory(place, skip_trash=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_deletions_inside_of_each_other(tmp_path: Path) -> None:
    """Dropped concurrently, as by two clients: a database's directory, its tables', their partitions'."""
    warehouse = warehouse_of(f"file:{tmp_path}")
    root = warehouse.location(f"{tmp_path}/d")
    places = [root, *(root.child(f"t{table}") for table in range(3))]
    places += [root.child(f"t{table}", f"p={value}") for table in range(3) for value in range(3)]
    for place in places:
        warehouse.make_directory(place)
        for number in range(20):
            warehouse.write_file(place.child(f"f{number}"), b"1")
    barrier = threading.Barrier(len(places), timeout=60)

    def delete(place: Location) -> None:
        barrier.wait(30)
        warehouse.delete_directory(place, skip_trash=True)

    with ThreadPoolExecutor(len(places)) as threads:
        list(threads.map(delete, places))
    assert list(tmp_path.rglob("*")) == []


def test_no_directory_is_made_that_no_path_names(tmp_path: Path) -> None:
    """A partition of 3,000 keys of one letter would be located below more names than a path may have."""
    warehouse = warehouse_of(str(tmp_path))
    location = Location.parse(f"file:{tmp_path}").child(*["k=1"] * 1_500)
    with pytest.raises(MetaException):
        warehouse.make_directory(location)
    assert not (tmp_path / "k=1").exists()


def test_unknown_schemes_are_a_clear_fault() -> None:
    warehouse = warehouse_of("nosuch://h/x")
    with pytest.raises(MetaException, match='No FileSystem for scheme "nosuch"'):
        warehouse.make_directory(Location("nosuch", "h", "/x"))


def test_a_missing_driver_is_a_clear_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    def no_driver(_: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", no_driver)
    warehouse = warehouse_of("s3a://bucket/x")
    with pytest.raises(MetaException) as raised:
        warehouse.is_directory(Location("s3a", "bucket", "/x"))
    assert raised.value.message.startswith('No FileSystem for scheme "s3a"')
    assert "Install s3fs" in raised.value.message


def test_files_left_alone(tmp_path: Path) -> None:
    warehouse = warehouse_of(f"file:{tmp_path}", files="leave").warehouse
    assert warehouse.allow(warehouse.location(f"{tmp_path}/a")) is None
    warehouse.require_known_scheme(Location("nosuch", "h", "/x"))
