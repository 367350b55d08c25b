"""Partitions outside of their table's directory, on a file system that is not mounted: none of them counts as gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_cache.jobs.files.directories import AWAY, DirectoryLister
from hms_cache.jobs.files.repair import _is_gone
from hms_cache.jobs.repair.directories import Directories
from hms_cache.jobs.repair.plan import Change, missing
from hms_cache.store.warehouse.locations import Location


def test_what_is_not_mounted_is_not_gone(tmp_path: Path) -> None:
    root, archive = tmp_path / "lake" / "t", tmp_path / "archive"
    root.mkdir(parents=True)
    archive.mkdir()  # the mount point
    deep, old = (
        Change(name, f"file:{place}")
        for name, place in (("a=1/b=1", root / "a=1" / "b=1"), ("a=2/b=1", archive / "t" / "2"))
    )

    def found() -> tuple[list[Change], list[tuple[Change, str]]]:
        with ThreadPoolExecutor(1) as pool:
            return missing([deep, old], Directories(), pool, Location.parse(f"file:{root}"))

    def are_gone() -> list[bool]:
        lister = DirectoryLister()
        return [_is_gone(lister, change.location, f"file:{root}") for change in (deep, old)]

    assert found() == ([deep], [(old, AWAY)]) and are_gone() == [True, False]
    (archive / "t").mkdir()
    assert found() == ([deep, old], []) and are_gone() == [True, True]
    (archive / "t" / "2").mkdir()
    assert found() == ([deep], []) and are_gone() == [True, False]


@pytest.mark.parametrize("link", ["a=1", "a=1/b=1"])
def test_what_a_link_leads_to_that_is_not_mounted_is_not_gone(tmp_path: Path, link: str) -> None:
    """Old partitions on another disk, behind links in the table's own directory."""
    root, disk = tmp_path / "lake" / "t", tmp_path / "disk"
    (root / link).parent.mkdir(parents=True)
    behind = disk / "old"
    (root / link).symlink_to(behind)
    change = Change("a=1/b=1", f"file:{root}/a=1/b=1")
    (behind / ("b=1" if link == "a=1" else "")).mkdir(parents=True)

    def found() -> tuple[list[Change], list[tuple[Change, str]], bool]:
        with ThreadPoolExecutor(1) as pool:
            gone, undecided = missing([change], Directories(), pool, Location.parse(f"file:{root}"))
        return gone, undecided, _is_gone(DirectoryLister(), change.location, f"file:{root}")

    assert found() == ([], [], False)
    disk.rename(tmp_path / "away")
    assert found() == ([], [(change, AWAY)], False)
    (root / link).unlink()
    assert found() == ([change], [], True)
