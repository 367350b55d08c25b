"""Listings of directories: hidden names, levels, escapes, and directories that cannot be listed."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.jobs.files.directories import DirectoryFiles, DirectoryLister, canonical
from hms_cache.jobs.files.trees import ListedDirectory, TreeLister
from hms_cache.jobs.repair.directories import Directories
from hms_cache.store.warehouse.locations import Location


def write(path: Path, size: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_files_are_counted_with_those_below_and_without_hidden_ones(tmp_path: Path) -> None:
    for name, size in {"a": 5, "b": 100, "below/c": 250, "_SUCCESS": 9, ".a.crc": 9, "_tmp/d": 9}.items():
        write(tmp_path / "p" / name, size)
    lister = DirectoryLister(small_file_bytes=100, block_bytes=100)
    newest_us = max(round((tmp_path / "p" / name).stat().st_mtime * 1_000_000) for name in ("a", "b", "below/c"))
    os.utime(tmp_path / "p" / ".a.crc", (2**33, 2**33))
    wanted = DirectoryFiles(True, files=3, bytes=355, small_files=1, blocks=5, newest_us=newest_us, depth=1)
    assert replace(found := lister.files(f"file:{tmp_path}/p"), digest="") == wanted
    assert found.digest
    write(tmp_path / "p" / "later", 1)
    assert lister.files(f"file://{tmp_path}/p/").files == 4
    (tmp_path / "empty").mkdir()
    assert lister.files(f"file:{tmp_path}/empty") == DirectoryFiles(True)
    assert lister.files(f"file:{tmp_path}/none") == DirectoryFiles(False)


@pytest.mark.parametrize("of", ["a directory", "a file", "a link to a directory"])
def test_local_directories_are_told_as_fsspec_tells_them(of: str, tmp_path: Path) -> None:
    """Digests of listings are stored with statistics: they must not change, whichever method lists."""
    place = tmp_path / "p"
    write(place / "file", 5)
    write(place / "below" / "deep", 7)
    write(place / "ü %41 #?*", 3)
    (place / "link").symlink_to("file")
    (place / "link of directory").symlink_to("below")
    (place / "nowhere").symlink_to("absent")
    os.mkfifo(place / "pipe")
    (tmp_path / "q").symlink_to(place)
    path = {"a directory": place, "a file": place / "file", "a link to a directory": tmp_path / "q"}[of]
    expected = {}
    for info in fsspec.filesystem("file").ls(str(path), detail=True):
        expected[info["name"].rpartition("/")[2]] = {key: info[key] for key in ("name", "size", "type", "mtime")}
    found = DirectoryLister().entries(Location("file", "", str(path)))
    assert found == {name: info for name, info in expected.items() if info["name"] != str(path)}
    with pytest.raises(FileNotFoundError):
        DirectoryLister().entries(Location("file", "", str(tmp_path / "absent")))


def test_what_the_digest_tells_apart(tmp_path: Path) -> None:
    """Number, bytes and newest modification are the same in all of these."""
    second = datetime(2024, 1, 1, tzinfo=UTC)
    first = {"name": "b/f", "type": "file", "size": 5, "LastModified": second, "ETag": '"1"'}
    other = {"name": "b/g", "type": "file", "size": 7, "LastModified": second, "ETag": '"2"'}
    lister = DirectoryLister()

    def found(*infos: dict[str, Any]) -> DirectoryFiles:
        return lister.figures((0, info) for info in infos)

    before = found(first, other)
    assert found(other, first) == before
    for changed in (
        [first | {"ETag": '"3"'}, other],  # written again within the same second
        [first | {"name": "b/h"}, other],
        [first | {"size": 7}, other | {"size": 5}],
        [first | {"LastModified": second - timedelta(days=1)}, other],  # replaced by an older one
    ):
        assert replace(found(*changed), digest=before.digest) == before
        assert found(*changed).digest != before.digest


class LibraryError(Exception):
    """Like those of botocore: not an OSError."""


def test_errors_of_a_drivers_library_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "unreachable"

        def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
            raise LibraryError("could not connect")

    fsspec.register_implementation("unreachable", Unreachable, clobber=True)
    found = DirectoryLister().files("unreachable://host/path")
    assert (found.exists, found.problem) == (False, "LibraryError: could not connect")
    for keys in (["a"], ["a", "b"]):
        trees = list(TreeLister().prefixes("unreachable://host/path", keys))
        assert [(one.kind, one.problem) for one in trees] == [("unreadable", "LibraryError: could not connect")]
    place = Location.parse("unreachable://host/path")
    for ask in (Directories().entries, Directories().exists):
        with pytest.raises(OSError, match="could not connect"):
            ask(place)


@pytest.mark.parametrize("location", ["unheard-of://host/path", "", "relative"])
def test_what_cannot_be_listed_is_told(location: str) -> None:
    found = DirectoryLister().files(location)
    assert not found.exists
    assert found.problem


def test_directories_below_a_table(tmp_path: Path) -> None:
    for name in ("A=1/b=x", "a=1/b=%2F", "a=2/b=__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / name / "file")
    write(tmp_path / "a=4" / "stray")
    for name in ("a=3", "old/b=1", "a=1/c=1", "_hidden", ".staging"):
        (tmp_path / name).mkdir(parents=True)
    root = canonical(f"file://{tmp_path}/")
    expected = {
        ("partition", f"{root}/A=1/b=x", "a=1/b=x"),
        ("partition", f"{root}/a=1/b=%2F", "a=1/b=%2F"),
        ("partition", f"{root}/a=2/b=__HIVE_DEFAULT_PARTITION__", "a=2/b=__HIVE_DEFAULT_PARTITION__"),
        ("empty", f"{root}/a=3", None),
        ("orphan", f"{root}/a=4", None),
        ("orphan", f"{root}/old", None),
        ("orphan", f"{root}/a=1/c=1", None),
    }
    assert kinds(root, ["a", "b"]) == expected
    assert kinds(f"{root}/nothing", ["a"]) == {("no root", f"{root}/nothing", None)}


def test_values_are_read_by_the_types_of_their_keys(tmp_path: Path) -> None:
    """As read by the repair of partitions: other text belongs to no partition, and makes queries fail."""
    root = f"file:{tmp_path}"
    for name in ("a=007/b=007", "a=8/b=x", "a=x/b=1", "a=__HIVE_DEFAULT_PARTITION__/b=1"):
        write(tmp_path / name / "f")
    found = set()
    for prefix in TreeLister().prefixes(root, ["a", "b"]):
        for one in TreeLister().tree(prefix.location, root, ["a", "b"], ["int", "string"]):
            found.add((one.found.kind, one.found.location.removeprefix(f"{root}/"), one.found.partition))
    assert found == {
        ("partition", "a=007/b=007", "a=7/b=007"),
        ("partition", "a=8/b=x", "a=8/b=x"),
        ("orphan", "a=x", None),
        ("partition", "a=__HIVE_DEFAULT_PARTITION__/b=1", "a=__HIVE_DEFAULT_PARTITION__/b=1"),
    }


def kinds(root: str, keys: list[str]) -> set[tuple[str, str, str | None]]:
    return {(one.found.kind, one.found.location, one.found.partition) for one in listed(root, keys)}


def listed(root: str, keys: list[str]) -> list[ListedDirectory]:
    """Everything below a table's directory, prefix by prefix, each returned once."""
    lister, found = TreeLister(small_file_bytes=100, block_bytes=100), []
    for prefix in lister.prefixes(root, keys):
        known = prefix.kind == "partition"
        found += list(lister.tree(prefix.location, root, keys)) if known else [ListedDirectory(prefix)]
    assert len({one.found.location for one in found}) == len(found)
    return found


PATHS = st.lists(
    st.tuples(st.sampled_from(["a=1", "A=2", "a=x%2F", "c=1", "_tmp"]), st.sampled_from(["b=1", "b=2", "x"]))
    | st.tuples(st.sampled_from(["a=1", "a=3"]))
    | st.tuples(st.just("a=1"), st.just("b=1"), st.sampled_from(["deep", ".hidden"])),
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATHS, st.sampled_from([["a"], ["a", "b"]]))
def test_a_tree_is_the_same_in_a_store_of_objects(
    tmp_path_factory: pytest.TempPathFactory, paths: list[tuple[str, ...]], keys: list[str]
) -> None:
    """Local directories are listed one by one, prefixes of a store with everything below them: the same partitions with
    the same files as by separate listings; and one listing of the store for each value of the first key."""
    root = tmp_path_factory.mktemp("tree")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    for number, path in enumerate([*paths, ("_SUCCESS",)]):
        name = "/".join(path) + ("/f" if path[-1] != "_SUCCESS" else "")
        write(root / f"{name}{number}", 40 * number)
        memory.pipe_file(f"/lake/t/{name}{number}", b"x" * 40 * number)
    local = {one.found.location.removeprefix(f"file:{root}"): one for one in listed(f"file:{root}", keys)}
    objects = {one.found.location.removeprefix("memory:/lake/t"): one for one in listed("memory:/lake/t", keys)}
    assert {place: one.found.kind for place, one in local.items()} == {
        place: one.found.kind for place, one in objects.items()
    }
    for place, one in local.items():
        if one.files is not None:
            assert one.files == TreeLister(small_file_bytes=100, block_bytes=100).files(f"file:{root}{place}")
            of_object = objects[place].files
            assert of_object is not None
            times = {"newest_us": 0, "digest": ""}
            assert replace(of_object, **times) == replace(one.files, **times)


@pytest.mark.parametrize(("keys", "listings"), [(["a"], 1), (["a", "b"], 4)])
def test_a_store_of_objects_is_listed_by_prefix(keys: list[str], listings: int) -> None:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    for day in range(3):
        for hour in range(24):
            memory.pipe_file(f"/lake/t/a={day}/b={hour}/f", b"x")

    class Counted(TreeLister):
        opened = 0

        def open(self, location: Location) -> tuple[Any, str]:
            self.opened += 1
            return super().open(location)

    lister, partitions = Counted(), 0
    prefixes = list(lister.prefixes("memory:/lake/t", keys))
    for prefix in prefixes:
        partitions += len(list(lister.tree(prefix.location, "memory:/lake/t", keys)))
    assert partitions == (3 if keys == ["a"] else 72)
    assert lister.opened == (2 if keys == ["a"] else listings)


def test_a_directory_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are listed anyway."""
    for name in ("a=1/b=1", "a=1/b=2", "a=2/b=1"):
        write(tmp_path / name / "file")
    real = TreeLister.entries

    def refusing(self: TreeLister, location: Location) -> Any:
        if location.path.endswith("a=1/b=2"):
            raise PermissionError("no")
        return real(self, location)

    monkeypatch.setattr(TreeLister, "entries", refusing)
    root = f"file:{tmp_path}"
    assert ("unreadable", f"{root}/a=1/b=2", None) in kinds(root, ["a", "b"])
    assert ("partition", f"{root}/a=2/b=1", "a=2/b=1") in kinds(root, ["a", "b"])
    assert TreeLister().files(f"{root}/a=1").problem == "no"
