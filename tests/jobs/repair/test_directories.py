"""Trees of directories: what belongs to a partition, and how often anything is listed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.jobs.frame.rate_limit import RateLimit
from hms_cache.jobs.repair.directories import NO_PARTITION, NO_ROOT, Directories, PartitionTree
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema

KEYS = [FieldSchema("Day", "int", None), FieldSchema("region", "string", None)]


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


class CountedDirectories(Directories):
    """Records what is listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[str] = []

    def entries(self, location: Location) -> tuple[list[str], list[str]]:  # type: ignore[override]
        self.listed.append(location.path)
        return super().entries(location)


def found(tree: PartitionTree, pool: ThreadPoolExecutor) -> tuple[dict[str, str], dict[str, str]]:
    """Partitions with their directories; kinds of problems by location."""
    partitions, problems = {}, {}
    for leaf in tree.walk(pool):
        pairs = zip(leaf.partitions, leaf.directories, strict=True)
        partitions |= {f"{leaf.location}/{directory}": name for name, directory in pairs}
        problems |= {problem.location: problem.kind for problem in leaf.problems}
    return partitions, problems


def test_a_tree_with_everything_in_it(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    for name in ("day=1/region=a b", "DAY=02/Region=x%2Fy", "day=3", "day=4/region=", "day=5/region=a=b"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("day=x/region=a", "_temporary/0", ".hidden/day=1", "region=a/day=1", "day=6/other=1/region=z"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "day=1" / "region=a b" / "deeper=1").mkdir()
    (tmp_path / "day=1" / "file").touch()
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "day=7").symlink_to(tmp_path / "day=1", target_is_directory=True)
    directories = CountedDirectories()
    partitions, problems = found(PartitionTree(directories, Location.parse(f"file:{tmp_path}"), KEYS), pool)
    base = f"file:{tmp_path}"
    assert partitions == {
        f"{base}/day=1/region=a b": "day=1/region=a b",
        f"{base}/day=7/region=a b": "day=7/region=a b",
        f"{base}/DAY=02/Region=x%2Fy": "day=2/region=x%2Fy",
    }
    bad = ("day=4/region=", "day=5/region=a=b", "day=x", "region=a", "day=6/other=1", "day=1/file", "day=7/file")
    assert problems == {f"{base}/{name}": NO_PARTITION for name in bad}
    listed = ("day=1", "DAY=02", "day=3", "day=4", "day=5", "day=6", "day=7")
    assert sorted(directories.listed) == sorted([str(tmp_path), *(f"{tmp_path}/{name}" for name in listed)])


def test_a_table_without_its_directory(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    location = f"file:{tmp_path}/none"
    assert found(PartitionTree(Directories(), Location.parse(location), KEYS), pool) == ({}, {location: NO_ROOT})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c%3A", "ü", "-"])), max_size=30))
def test_object_stores_are_listed_as_directories_are(pool: ThreadPoolExecutor, names: set[tuple[int, str]]) -> None:
    """A store without directories, as its driver shows it: partitions are prefixes of files; each prefix is listed
    once."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    memory.pipe_file("/lake/t/_SUCCESS", b"")
    for day, region in names:
        memory.pipe_file(f"/lake/t/day={day}/region={region}/part-0", b"x")
    directories = CountedDirectories()
    partitions, problems = found(PartitionTree(directories, Location.parse("memory:/lake/t"), KEYS), pool)
    assert set(partitions.values()) == {f"day={day}/region={region}" for day, region in names}
    assert not problems
    assert sorted(directories.listed) == sorted({"/lake/t", *(f"/lake/t/day={day}" for day, _ in names)})


def test_existence_is_that_of_now(tmp_path: Path) -> None:
    directories = Directories()
    (tmp_path / "file").touch()
    assert directories.exists(Location.parse(f"file:{tmp_path}"))
    assert not directories.exists(Location.parse(f"file:{tmp_path}/file"))
    assert not directories.exists(Location.parse(f"file:{tmp_path}/file/below"))
    assert not directories.exists(Location.parse("memory:/never/there"))


def test_requests_are_spread_by_store() -> None:
    now, slept = [100.0], []
    limit = RateLimit(4, clock=lambda: now[0], sleep=slept.append)
    for store in ("s3://a", "s3://a", "s3://b", "s3://a"):
        limit.wait(store)
    assert slept == [0.25, 0.5]
    now[0] += 10
    limit.wait("s3://a")
    RateLimit(0, sleep=slept.append).wait("s3://a")
    assert slept == [0.25, 0.5]
