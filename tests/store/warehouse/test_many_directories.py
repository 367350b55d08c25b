"""The objects of many directories: the same as by a listing of each, with fewer requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_cache.store.warehouse.keys import OrderedKeyStore, StoredObject
from hms_cache.store.warehouse.many_directories import Listed, objects_of

BUCKET = "lake"
_PARTS = ["a", "a-b", "a=1", "a=10", "b", "é", "\U0001f600", "\uffff"]


class Keys(OrderedKeyStore):
    """Some keys in the order of their UTF-8, in pages of at most `most`."""

    marker_suffix = "/"

    def __init__(self, keys: Sequence[str], most: int = 1000, begins_after: bool = True) -> None:
        super().__init__(None)
        self.keys = sorted(set(keys), key=str.encode)
        self.most = most
        self.begins_after = begins_after
        self.requests = 0
        self.left = 1_000_000
        """Pages before it is a loop without an end."""
        self.refused: list[str] = []

    def _found(self, keys: Sequence[str], prefix: str) -> list[StoredObject]:
        if any(prefix == one for one in self.refused):
            raise PermissionError(prefix)
        return [StoredObject(key, "tag", 1, key.endswith("/")) for key in keys if key.startswith(prefix)]

    def page_from(self, bucket: str, prefix: str, start: str, page_objects: int) -> tuple[list[StoredObject], bool]:
        assert bucket == BUCKET
        self.requests += 1
        self.left -= 1
        if self.left < 0:
            pytest.fail("the listing does not end")
        found = [
            each
            for each in self._found(self.keys, prefix)
            if each.suffix.encode() > start.encode() or (each.suffix == start and not self.begins_after)
        ]
        size = min(self.most, page_objects)
        return found[:size], len(found) > size

    def below(self, path: str, page_objects: int | None = None) -> Iterator[list[StoredObject]]:
        key = path.removeprefix(f"{BUCKET}/")
        found = [each._replace(suffix=each.suffix[len(key) :]) for each in self._found(self.keys, f"{key}/")]
        self.requests += max(1, -(-len(found) // self.most))
        for start in range(0, len(found), self.most):
            yield found[start : start + self.most]

    def children(self, path: str) -> Any:
        raise NotImplementedError

    make_marker = copy = delete = children


def told(found: Iterator[Listed]) -> dict[str, Any]:
    answers = list(found)
    assert len({key for key, _ in answers}) == len(answers)
    return {
        key: objects
        if isinstance(objects, Exception)
        else sorted(each.suffix for each in objects if each.suffix != "/")
        for key, objects in answers
    }


def _files(objects: Sequence[StoredObject]) -> list[str]:
    return sorted(each.suffix for each in objects if each.suffix != "/")


def one_by_one(store: Keys, directories: Sequence[str]) -> dict[str, Any]:
    return {key: _files([each for page in store.below(f"{BUCKET}/{key}") for each in page]) for key in directories}


_NAMES = ["x", "y", "", "deep/z", "-"]
_paths = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=3).map("/".join)


@st.composite
def _keys_and_directories(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Half of the objects are in requested directories: most paths are not among them by chance."""
    requested = draw(st.lists(_paths, unique=True, max_size=12))
    paths = _paths | st.sampled_from(requested) if requested else _paths
    objects = draw(st.lists(st.tuples(paths, st.sampled_from(_NAMES)), max_size=40))
    return [f"{path}/{name}" for path, name in objects], requested


@given(_keys_and_directories(), st.integers(1, 12), st.booleans())
@example((["a/x", "a/y", "b/x"], ["a", "b"]), 1, False)
def test_they_are_those_of_each(found: tuple[list[str], list[str]], most: int, begins_after: bool) -> None:
    keys, requested = found
    store = Keys(keys, most, begins_after)
    # Each request but a directory's own listing passes at least one object or completes a directory.
    store.left = 10 * (len(keys) + len(requested) + 1)
    assert told(objects_of(store, BUCKET, requested)) == one_by_one(store, requested)


@given(st.sets(st.integers(0, 500)), st.sets(st.integers(0, 500), max_size=200), st.integers(1, 4))
def test_not_many_more_requests_than_with_one_for_each(there: set[int], requested: set[int], files: int) -> None:
    keys = [f"t/a={number:03d}/{file}" for number in there for file in range(files)]
    names = [f"t/a={number:03d}" for number in requested]
    store, other = Keys(keys), Keys(keys)
    assert told(objects_of(store, BUCKET, names)) == one_by_one(other, names)
    # A page without the directory at which it began, which is then listed once more.
    assert store.requests <= 2 * other.requests


def test_neighbours_take_a_page() -> None:
    names = [f"t/day={number:04d}" for number in range(1000)]
    store = Keys([f"{name}/f" for name in names])
    assert len(told(objects_of(store, BUCKET, names[100:200]))) == 100
    assert store.requests == 1


def test_directories_of_many_files_take_whole_pages() -> None:
    names = [f"t/day={number}" for number in range(3)]
    keys = [f"{name}/{file:05d}" for name in names for file in range(3_000)]
    store, other = Keys(keys), Keys(keys)
    assert told(objects_of(store, BUCKET, names)) == one_by_one(other, names)
    assert store.requests <= 2 * other.requests


def test_those_far_apart_are_listed_by_themselves() -> None:
    names = [f"t/day={number:06d}" for number in range(20_000)]
    store = Keys([f"{name}/f" for name in names])
    some = names[::100]
    assert told(objects_of(store, BUCKET, some)) == {key: ["/f"] for key in some}
    assert store.requests <= len(some) + 5


def test_a_store_in_another_order_is_asked_for_each() -> None:
    """A gateway over directories may list `a/` before `a-b/`."""

    class ByDirectory(Keys):
        def __init__(self, keys: Sequence[str]) -> None:
            super().__init__(keys, 2)
            self.keys = sorted(set(keys), key=lambda key: key.split("/"))

    names = ["t/a", "t/a-b", "t/a-c", "t/b"]
    store = ByDirectory([f"{name}/{file}" for name in names for file in "xy"])
    assert told(objects_of(store, BUCKET, names)) == {key: ["/x", "/y"] for key in names}


def test_a_listing_that_is_refused() -> None:
    """The account may list directories, but not the one above them; and one of them neither."""
    names = [f"t/day={number}" for number in range(5)]
    store = Keys([f"{name}/f" for name in names])
    store.refused = ["t/day=", "t/day=3/"]
    found = told(objects_of(store, BUCKET, names))
    assert isinstance(found.pop("t/day=3"), PermissionError)
    assert found == {name: ["/f"] for name in names if name != "t/day=3"}


@pytest.mark.parametrize("files", [1, 30])
def test_a_directory_that_takes_several_pages(files: int) -> None:
    names = ["t/a", "t/b", "t/c"]
    store = Keys([f"{name}/{file:02d}" for name in names for file in range(files)], most=7)
    assert told(objects_of(store, BUCKET, names)) == {key: [f"/{file:02d}" for file in range(files)] for key in names}
