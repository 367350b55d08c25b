"""A merge whose files another run on the same history has deleted: the original files remain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hms_cache.jobs.history.compaction import STAGING, Journal, recover
from hms_cache.jobs.history.files import Files, StoredFile

JOURNAL = Journal("2026-01-01", 2, ("day=2026-01-01/batch=1/a", "day=2026-01-01/batch=2/b"), ("m", "n"))


class LocalFiles(Files):
    """The same operations without Hadoop."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def exists(self, path: str = "") -> bool:
        return Path(self.root, path).exists()

    def directories(self, path: str = "") -> list[str]:
        return sorted(one.name for one in Path(self.root, path).iterdir() if one.is_dir()) if self.exists(path) else []

    def files(self, path: str) -> list[StoredFile]:
        found = (one for one in Path(self.root, path).rglob("*") if one.is_file())
        return sorted(StoredFile(str(one.relative_to(self.root)), one.stat().st_size) for one in found)

    def delete(self, path: str) -> None:
        place = Path(self.root, path)
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def move(self, path: str, to: str) -> None:
        Path(self.root, to).parent.mkdir(parents=True, exist_ok=True)
        Path(self.root, path).rename(Path(self.root, to))

    def read(self, path: str) -> str:
        return Path(self.root, path).read_text()


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    for path in (*JOURNAL.old, *(f"{JOURNAL.staging}/{name}" for name in JOURNAL.new), JOURNAL.path):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path)
    (tmp_path / JOURNAL.path).write_text(JOURNAL.text)
    return LocalFiles(tmp_path)


def stored(files: LocalFiles) -> set[str]:
    return {one.path for one in files.files("") if not one.path.startswith(STAGING)}


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_merge_that_was_cut_short_is_ended(files: LocalFiles, moved: int) -> None:
    for path in JOURNAL.old if moved else JOURNAL.old[:1]:
        files.delete(path)
    for name in JOURNAL.new[:moved]:
        files.move(f"{JOURNAL.staging}/{name}", JOURNAL.target(name))
    recover(files)
    assert stored(files) == {JOURNAL.target(name) for name in JOURNAL.new}
    assert not files.exists(STAGING)


@pytest.mark.parametrize("gone", [JOURNAL.new, JOURNAL.new[:1]])
def test_what_was_merged_is_gone(files: LocalFiles, gone: tuple[str, ...]) -> None:
    for name in gone:
        files.delete(f"{JOURNAL.staging}/{name}")
    recover(files)
    assert stored(files) == set(JOURNAL.old)
    assert not files.exists(STAGING)


def test_nothing_more_is_deleted_where_something_is_lost(files: LocalFiles) -> None:
    files.delete(JOURNAL.old[0])
    files.delete(f"{JOURNAL.staging}/m")
    with pytest.raises(OSError, match="are gone, among them m"):
        recover(files)
    assert stored(files) == {JOURNAL.old[1]}
    assert files.exists(f"{JOURNAL.staging}/n") and files.exists(JOURNAL.path)
