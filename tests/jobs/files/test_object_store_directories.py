"""The jobs' listings of directories in object stores: markers, neighbors with a longer name, several levels."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from hms_cache.jobs.files import directories
from hms_cache.jobs.files.directories import DirectoryFiles, DirectoryLister
from hms_cache.jobs.files.trees import TreeLister
from hms_cache.jobs.repair import directories as repair
from hms_cache.jobs.repair.directories import Directories, PartitionTree
from hms_cache.store.warehouse.file_systems import FileSystems
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema
from tests.lakes import LAKES, Lake, LakeServers

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

_numbers = count()


@pytest.fixture(scope="module")
def lake_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServers]:
    with LakeServers(tmp_path_factory.mktemp("lakes")) as servers:
        yield servers


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, lake_servers: LakeServers, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A new bucket, which the listers reach: the jobs' own drivers read their credentials from the environment."""
    found = Lake(request.param, lake_servers.take(request.param), f"jobs{next(_numbers)}")
    for module in (directories, repair):
        monkeypatch.setattr(module, "FileSystems", lambda: FileSystems({found.scheme: found.options}))
    return found


def test_the_files_of_a_directory(lake: Lake) -> None:
    lake.put("t/", "t/a", "t/deep/", "t/deep/b", "t/deep/empty/", "t/_hidden", "t/.hidden/c", "t2/a", "e/", "file")
    lister = TreeLister(small_file_bytes=10, block_bytes=4)
    found = lister.files(f"{lake.root}/t")
    assert (found.exists, found.files, found.bytes) == (True, 2, 10)
    assert (found.small_files, found.blocks, found.depth) == (2, 4, 1)
    assert found.newest_us > 0
    assert found.digest == lister.files(f"{lake.root}/t").digest != ""
    lake.put("t/deep/b")
    lake.put("t/deep/d")
    assert lister.files(f"{lake.root}/t").files == 3  # written by another program
    assert lister.files(f"{lake.root}/e") == DirectoryFiles(True)
    assert lister.files(f"{lake.root}/none") == DirectoryFiles(False)
    nowhere = lister.files(f"{lake.url_of('misspelt')}/t")
    assert not nowhere.exists and "misspelt" in (nowhere.problem or "")


def test_the_files_of_many_directories(lake: Lake) -> None:
    """By pages of a listing, if the store can start one anywhere; each as by its own listing."""
    names = [f"t/day={number:02d}" for number in range(30)]
    lake.put(*(f"{name}/{file}" for name in names for file in ("", "a", "_hidden", ".hidden/b")))
    lake.put("t/day=03-late/x", "t/day=030/x", "t/day=05/deep/c", "u/day=1/x", "t/day=07//x")
    names += ["t/day=03-late", "t/day=030", "u/day=1", "t/none", "t/day=31", "t"]
    locations = [Location.parse(f"{lake.root}/{name}") for name in names]
    lister = DirectoryLister()
    found = dict(lister.data_files_of(locations))
    assert set(found) in (set(), set(locations)) and bool(found) is (lake.scheme != "abfss")
    for location, files in found.items():
        assert not isinstance(files, Exception)
        alone = [(path, info) for path, info in lister.data_files(location) if info["type"] == "file"]
        assert sorted(files, key=str) == sorted(alone, key=str)
    there = found.get(locations[5], [])
    assert not found or sorted(path.rpartition("/")[2] for path, _ in there) == ["a", "c"]


def test_a_tree_of_partitions(lake: Lake) -> None:
    lake.put(
        *("t/", "t/a=1/", "t/a=1/b=1/", "t/a=1/b=1/f", "t/a=1/b=1/deep/f", "t/a=1/b=2/", "t/a=1/c=1/"),
        *("t/a=10/b=%2F/f", "t/a=2/", "t/a=3/stray", "t/old/f", "t/_hidden/a=1/f", "t2/a=1/b=1/f"),
    )
    root = f"{lake.root}/t"
    assert kinds(root, ["a", "b"]) == {
        ("partition", "a=1/b=1", "a=1/b=1", 2),
        ("partition", "a=1/b=2", "a=1/b=2", 0),
        ("partition", "a=10/b=%2F", "a=10/b=%2F", 1),
        ("orphan", "a=1/c=1", None, None),
        ("empty", "a=2", None, None),
        ("orphan", "a=3", None, None),
        ("orphan", "old", None, None),
    }
    assert kinds(root, ["a"]) == {
        ("partition", "a=1", "a=1", 2),
        ("partition", "a=10", "a=10", 1),
        ("partition", "a=2", "a=2", 0),
        ("partition", "a=3", "a=3", 1),
        ("orphan", "old", None, None),
    }
    for keys in (["a"], ["a", "b"]):
        assert [one.kind for one in TreeLister().prefixes(f"{lake.root}/none", keys)] == ["no root"]


def test_keys_with_an_empty_name_are_no_directories(lake: Lake) -> None:
    """Hadoop reads no such object. Its directory would be reported as the table's own, as unused."""
    if lake.kind == "gateway":
        pytest.skip("its objects are files, whose paths have no empty names")
    lake.put("t/", "t/a=1/f")
    for key in ("t//f", "t//a=1/f", "t/a=1//f", "t/a=2//f", "t/a=1/b=1//f"):
        lake.put_at_top(f"w/d.db/{key}")
    root = f"{lake.root}/t"
    assert kinds(root, ["a"]) == {("partition", "a=1", "a=1", 1)}
    assert {kind for kind, *_ in kinds(root, ["a", "b"])} <= {"orphan"}
    assert all("//" not in place and not place.endswith("/") for _, place, *_ in kinds(root, ["a", "b"]))
    assert TreeLister().files(root).files == 1


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_table_that_is_a_whole_bucket(lake: Lake, slash: str) -> None:
    for key in ("a=1/b=1/", "a=1/b=1/f", "a=1/b=1/deep/f", "a=2/b=2/f", "a=3/", "old/f", "_hidden/f"):
        lake.put_at_top(key)
    top = f"{lake.url}{slash}"
    found = kinds(top, ["a", "b"])
    assert found == {
        ("partition", "a=1/b=1", "a=1/b=1", 2),
        ("partition", "a=2/b=2", "a=2/b=2", 1),
        ("empty", "a=3", None, None),
        ("orphan", "old", None, None),
    }
    assert {(kind, place, files) for kind, place, _, files in kinds(top, ["a"])} == {
        ("partition", "a=1", 2),
        ("partition", "a=2", 1),
        ("partition", "a=3", 0),
        ("orphan", "old", None),
    }
    with ThreadPoolExecutor(2) as pool:
        tree = PartitionTree(Directories(), Location.parse(top), [FieldSchema(key, "int") for key in "ab"])
        problems = [one.location for leaf in tree.walk(pool) for one in leaf.problems]
    assert problems == [f"{lake.url}/old"]
    listed = TreeLister().files(top)
    assert (listed.files, listed.depth) == (4, 3)


def kinds(root: str, keys: list[str]) -> set[tuple[str, str, str | None, int | None]]:
    """Kind, directory below the table's, partition and files of each finding."""
    lister = TreeLister()
    prefixes = list(lister.prefixes(root, keys))
    assert {prefix.kind for prefix in prefixes} == {"partition"}
    every = (one for prefix in prefixes for one in lister.tree(prefix.location, root, keys))
    return {
        (found.kind, found.location.removeprefix(f"{root.rstrip('/')}/"), found.partition, files and files.files)
        for found, files in ((one.found, one.files) for one in every)
    }


def test_the_directories_of_partitions(lake: Lake) -> None:
    lake.put("t/", "t/a=1/", "t/a=1/b=1/", "t/a=1/b=1/f", "t/a=1/stray", "t/a=1/x/", "t/a=10/b=2/f", "t/.hidden/f")
    lake.put("t2/a=5/f")
    keys = [FieldSchema("a", "int"), FieldSchema("b", "int")]
    tree = PartitionTree(Directories(), Location.parse(f"{lake.root}/t"), keys)
    with ThreadPoolExecutor(2) as pool:
        leaves = list(tree.walk(pool))
    assert sorted(name for leaf in leaves for name in leaf.partitions) == ["a=1/b=1", "a=10/b=2"]
    problems = sorted(one.location.rpartition("/t/")[2] for leaf in leaves for one in leaf.problems)
    assert problems == ["a=1/stray", "a=1/x"]
    requested = {"t": True, "t/a=1": True, "none": False, "t/a=1/stray": False}
    requested |= {"t/a=1/x": True, "t/a": False, "t/a=1/b": False}  # only a marker; names that are prefixes of others
    assert {name: Directories().exists(Location.parse(f"{lake.root}/{name}")) for name in requested} == requested
