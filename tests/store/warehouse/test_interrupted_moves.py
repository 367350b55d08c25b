"""A repeated move finds what a process that ended before its commit has moved, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hms_cache.config.sections import WarehouseSettings
from hms_cache.store.warehouse import AllowedLocation, Warehouse
from hms_cache.store.warehouse.move_records import RECORD_PREFIX, MoveRecord


class Transaction:
    """Stores the actions, and executes them on request: a transaction whose process may end before."""

    def __init__(self) -> None:
        self.committed: list[Callable[[], None]] = []
        self.rolled_back: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        self.committed.append(action)

    def on_rollback(self, action: Callable[[], None], *, under_locks: bool = False) -> None:
        self.rolled_back.append(action)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "data").write_text("1")
    return tmp_path


@pytest.fixture
def warehouse(root: Path) -> Warehouse:
    return Warehouse(WarehouseSettings(directory=str(root)))


def place(warehouse: Warehouse, root: Path, name: str) -> AllowedLocation:
    found = warehouse.allow(warehouse.location(f"{root}/{name}"))
    assert found is not None
    return found


def records(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.name.startswith(RECORD_PREFIX)]


def moved(warehouse: Warehouse, root: Path) -> Transaction:
    """The transaction of a move that is neither committed nor rolled back."""
    transaction = Transaction()
    source, goal = place(warehouse, root, "source"), place(warehouse, root, "goal")
    warehouse.changes(transaction).rename_directory(source, goal)
    return transaction


def resumed(warehouse: Warehouse, root: Path, source: str = "source", goal: str = "goal") -> tuple[bool, Transaction]:
    transaction = Transaction()
    changes = warehouse.changes(transaction)
    return changes.resume_rename(place(warehouse, root, source), place(warehouse, root, goal)), transaction


def test_the_record_goes_with_the_commit_and_with_the_rollback(warehouse: Warehouse, root: Path) -> None:
    transaction = moved(warehouse, root)
    assert len(records(root)) == 1
    for action in reversed(transaction.rolled_back):
        action()
    assert (root / "source" / "data").exists()
    assert not (root / "goal").exists()
    assert not records(root)
    for action in moved(warehouse, root).committed:
        action()
    assert (root / "goal" / "data").exists()
    assert not records(root)


def test_a_repeat_takes_what_was_moved_and_its_rollback_leaves_it_to_the_next(warehouse: Warehouse, root: Path) -> None:
    moved(warehouse, root)
    found, failed = resumed(warehouse, root)
    assert found
    assert not failed.rolled_back
    found, succeeded = resumed(warehouse, root)
    assert found
    for action in succeeded.committed:
        action()
    assert not records(root)
    assert (root / "goal" / "data").read_text() == "1"


def test_an_empty_destination_is_removed(warehouse: Warehouse, root: Path) -> None:
    moved(warehouse, root)
    (root / "goal").rename(root / "source")
    (root / "goal").mkdir()
    assert resumed(warehouse, root)[0] is False
    assert not (root / "goal").exists()
    assert (root / "source" / "data").exists()


def another_directory(root: Path) -> None:
    (root / "goal").rename(root / "kept")
    (root / "goal").mkdir()


def source_made_anew(root: Path) -> None:
    (root / "source").mkdir()


def link_in_its_place(root: Path) -> None:
    (root / "goal").rename(root / "kept")
    (root / "goal").symlink_to(root / "kept")


def broken_record(root: Path) -> None:
    records(root)[0].write_text('{"source": ')


def huge_number(root: Path) -> None:
    records(root)[0].write_text("9" * 10_000)


def record_of_another(root: Path) -> None:
    record = MoveRecord.decode(records(root)[0].read_bytes())
    assert record is not None
    records(root)[0].write_bytes(MoveRecord(f"file:{root}/other", record.destination, record.inode).encode())


def no_record(root: Path) -> None:
    records(root)[0].unlink()


@pytest.mark.parametrize(
    "change",
    [
        another_directory,
        source_made_anew,
        link_in_its_place,
        broken_record,
        huge_number,
        record_of_another,
        no_record,
    ],
)
def test_nothing_else_is_taken_for_it(warehouse: Warehouse, root: Path, change: Callable[[Path], None]) -> None:
    moved(warehouse, root)
    change(root)
    assert resumed(warehouse, root)[0] is False
    assert (root / "goal").exists(), "what lies there is not touched"


def test_no_record_is_kept_of_remote_places() -> None:
    warehouse = Warehouse(WarehouseSettings(directory="memory://records"))
    transaction = Transaction()
    source, goal = (warehouse.allow(warehouse.location(f"memory://records/{name}")) for name in ("a", "b"))
    assert source is not None
    assert goal is not None
    warehouse.make_directory(source)
    warehouse.changes(transaction).rename_directory(source, goal)
    assert not transaction.committed
    assert warehouse.changes(transaction).resume_rename(source, goal) is False
