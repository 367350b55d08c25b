"""Directories as they are listed: hidden names, levels, escapes, what cannot be listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hms_cache.jobs.files.directories import DirectoryFiles, DirectoryLister, canonical


def write(path: Path, size: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_files_are_counted_with_those_below_and_without_hidden_ones(tmp_path: Path) -> None:
    for name, size in {"a": 5, "b": 100, "below/c": 250, "_SUCCESS": 9, ".a.crc": 9, "_tmp/d": 9}.items():
        write(tmp_path / "p" / name, size)
    lister = DirectoryLister(small_file_bytes=100, block_bytes=100)
    newest_us = max(round((tmp_path / "p" / name).stat().st_mtime * 1_000_000) for name in ("a", "b", "below/c"))
    os.utime(tmp_path / "p" / ".a.crc", (2**33, 2**33))
    wanted = DirectoryFiles(True, files=3, bytes=355, small_files=1, blocks=5, newest_us=newest_us)
    assert lister.files(f"file:{tmp_path}/p") == wanted
    write(tmp_path / "p" / "later", 1)
    assert lister.files(f"file://{tmp_path}/p/").files == 4
    (tmp_path / "empty").mkdir()
    assert lister.files(f"file:{tmp_path}/empty") == DirectoryFiles(True)
    assert lister.files(f"file:{tmp_path}/none") == DirectoryFiles(False)


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
    root, lister = canonical(f"file://{tmp_path}/"), DirectoryLister()
    expected = {
        ("partition", f"{root}/A=1/b=x", "a=1/b=x"),
        ("partition", f"{root}/a=1/b=%2F", "a=1/b=%2F"),
        ("partition", f"{root}/a=2/b=__HIVE_DEFAULT_PARTITION__", "a=2/b=__HIVE_DEFAULT_PARTITION__"),
        ("empty", f"{root}/a=3", None),
        ("orphan", f"{root}/a=4", None),
        ("orphan", f"{root}/old", None),
        ("orphan", f"{root}/a=1/c=1", None),
    }
    found = list(lister.below(root, ["a", "b"]))
    assert {(one.kind, one.location, one.partition) for one in found} == expected
    in_parts = []
    for one in lister.below(root, ["a", "b"], depth=1):
        in_parts += list(lister.rest(one.location, root, ["a", "b"])) if one.kind == "partition" else [one]
    assert sorted(in_parts, key=str) == sorted(found, key=str)
    assert [one.kind for one in lister.below(f"{root}/nothing", ["a"])] == ["no root"]
