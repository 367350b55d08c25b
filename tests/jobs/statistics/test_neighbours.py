"""Files of partitions in an object store: by one listing of the directory above them, as by one of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.statistics.data_files import NESTED_FILES, FigureLister, Figures, are_most
from hms_cache.jobs.statistics.writing import FILES_CHANGED, _unchanged

ROOT = "/lake/t"


@pytest.fixture(autouse=True)
def memory() -> Iterator[Any]:
    """Its scheme is not one of those with directories."""
    made = fsspec.filesystem("memory")
    made.store.clear()
    made.pseudo_dirs[:] = [""]
    yield made
    made.store.clear()


class Counting(FigureLister):
    """Records which directories it has listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[str] = []
        below = self._lister.below

        def counted(location: Any) -> Any:
            self.listed.append(str(location))
            return below(location)

        self._lister.below = counted  # type: ignore[method-assign]


_NAMES = ["a=1", "a=1/b=1", "a=1/b=2", "a=2", "a=2/b=1", "a=11"]
_FILES = ["x", "y", "_hidden", ".hidden", "below/z", "_below/z", "below/_z"]


@given(
    st.sets(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_FILES), st.integers(0, 3)), max_size=20),
    st.lists(st.sampled_from([*_NAMES, "a=9"]), unique=True, max_size=7),
)
def test_they_are_those_of_each(files: set[tuple[str, str, int]], requested: list[str]) -> None:
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    for name, file, size in files:
        store.pipe_file(f"{ROOT}/{name}/{file}", b"x" * size)
    locations = [f"memory:{ROOT}/{name}" for name in requested]
    lister = FigureLister()
    for location, found in lister.of_many(locations, len(locations)).items():
        assert (found, None) == lister.figures(location)


def test_files_below_a_units_own_directory_are_told(memory: Any, tmp_path: Path) -> None:
    """As those of a UNION ALL by Hive, which Hive counts and Spark does not; hidden ones are not files."""
    lister = FigureLister()
    for number, file in enumerate(["x", "HIVE_UNION_SUBDIR_1/000000_0", "_temporary/x", ".staging/a/b"]):
        memory.pipe_file(f"{ROOT}/a={number}/{file}", b"12345")
        (tmp_path / f"a={number}" / file).parent.mkdir(parents=True)
        (tmp_path / f"a={number}" / file).write_bytes(b"12345")
    for root in (f"memory:{ROOT}", f"file:{tmp_path}"):
        assert [lister.figures(f"{root}/a={number}")[1] for number in range(4)] == [None, NESTED_FILES, None, None]
    places = [f"memory:{ROOT}/a={number}" for number in range(4)]
    assert set(lister.of_many(places, 4)) == {places[0], places[2], places[3]}


def test_one_listing_for_neighbours(memory: Any) -> None:
    for number in range(20):
        memory.pipe_file(f"{ROOT}/day={number % 2}/hour={number}/x", b"12345")
    memory.pipe_file("/elsewhere/day=7/x", b"1")
    near = [f"memory:{ROOT}/day={number % 2}/hour={number}" for number in range(20)]
    lister = Counting()
    others = ["memory:/elsewhere/day=7", "file:/lake/a/b", "file:/lake/a/c", "no location"]
    found = lister.of_many([*near, *others], 24)
    # The one without neighbors, and directories, are listed one by one.
    assert set(found) == set(near) and {(one.files, one.bytes) for one in found.values()} == {(1, 5)}
    assert sorted(lister.listed) == [f"memory:{ROOT}/day=0", f"memory:{ROOT}/day=1"]


def test_what_cannot_be_listed_is_not_answered() -> None:
    """So that it is listed alone, and reported."""

    class Away(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "away"

        def find(self, path: str, **options: Any) -> Any:
            raise OSError("it is away")

    fsspec.register_implementation("away", Away, clobber=True)
    assert FigureLister().of_many(["away://b/t/a=1", "away://b/t/a=2"], 2) == {}


def test_a_file_that_changed_is_seen_among_neighbours(memory: Any) -> None:
    lister = Counting()
    rows = []
    for number in range(4):
        memory.pipe_file(f"{ROOT}/a={number}/x", b"12345")
        location = f"memory:{ROOT}/a={number}"
        rows.append({"name": f"a={number}", "location": location, "files": str(lister.figures(location)[0])})
    memory.pipe_file(f"{ROOT}/a=2/y", b"1")
    lister.listed.clear()
    kept, outcomes = _unchanged(rows, lister, None, 4)
    assert [row["name"] for row in kept] == ["a=0", "a=1", "a=3"]
    assert [(one["partition"], one["failure"]) for one in outcomes] == [("a=2", FILES_CHANGED)]
    assert lister.listed == [f"memory:{ROOT}"]
    # A few of a table of thousands are listed one by one.
    lister.listed.clear()
    assert _unchanged(rows[:2], lister, None, 5_000)[0] == rows[:2] and len(lister.listed) == 2


def test_how_many_are_most() -> None:
    assert not are_most(1, 1) and not are_most(0, 0)
    assert are_most(500, 5_000) and not are_most(500, 5_001)
    assert str(Figures(0, 0, 0)) == "0:0:0:"
