"""What a notification log reports about tables since their positions in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hms_cache.errors import ConfigurationError
from hms_cache.jobs.statistics.changes import Changes, EventPosition, PositionFile, changes_since, current_position
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_log import UNKNOWN_HISTORY, LogHead, LogPage
from hms_cache.notifications.events import NotificationRow

A, B = TableName("hive", "default", "a"), TableName("hive", "default", "b")


class ListedLog:
    """A log that is a list of rows, and a head that may be beyond them."""

    def __init__(self, rows: Sequence[NotificationRow], head: int | None = None) -> None:
        self.rows = rows
        self.last = max((row.event_id for row in rows), default=0) if head is None else head

    def head(self) -> LogHead:
        return LogHead(self.last, UNKNOWN_HISTORY)

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        found = [row for row in self.rows if row.event_id > after_event_id][:limit]
        return LogPage(found, exhausted=not found)


def row(event_id: int, event_type: str, table: str) -> NotificationRow:
    """An event whose message cannot be read: it affects its whole table."""
    return NotificationRow(event_id, 1_700_000_000, event_type, "hive", "default", table, "{", "json-0.2")


ROWS = [
    row(1, "CREATE_TABLE", "a"),
    row(2, "INSERT", "a"),
    row(3, "UPDATE_PART_COL_STAT_EVENT", "a"),
    row(4, "DROP_PARTITION", "b"),
    row(5, "OPEN_TXN", "a"),
]


def position_at(event_id: int) -> EventPosition:
    return current_position(ListedLog(ROWS[:event_id]))


def test_each_table_has_the_changes_after_its_own_place() -> None:
    found = changes_since(ListedLog(ROWS), {A: position_at(1), B: position_at(4)})
    assert found == {A: Changes(whole=True, touched=True), B: Changes()}
    found = changes_since(ListedLog(ROWS), {A: position_at(2), B: position_at(0)})
    assert found == {A: Changes(), B: Changes(whole=True, touched=True)}
    assert changes_since(ListedLog(ROWS), {}) == {}


def test_events_that_are_gone_count_as_changes() -> None:
    cleaned = ListedLog(ROWS[3:])
    found = changes_since(cleaned, {A: position_at(1), B: position_at(4)})
    assert "no longer in the log" in found[A].lost
    assert found[B].lost == ""
    found = changes_since(ListedLog([], head=5), {A: position_at(0), B: position_at(4)})
    assert all(one.lost for one in found.values())


def test_a_log_cleaned_up_to_a_place_misses_nothing() -> None:
    found = changes_since(ListedLog([], head=5), {A: position_at(5), B: position_at(4)})
    assert (found[A], bool(found[B].lost)) == (Changes(), True)
    found = changes_since(ListedLog(ROWS[3:]), {A: position_at(3), B: position_at(3)})
    assert found == {A: Changes(), B: Changes(whole=True, touched=True)}


def test_another_log_under_the_same_ids_is_noticed() -> None:
    other = ListedLog([*ROWS[:3], row(4, "DROP_PARTITION", "other"), ROWS[4]])
    found = changes_since(other, {A: position_at(3), B: position_at(4)})
    assert found[A].lost == ""
    assert "not the same log" in found[B].lost
    shorter = changes_since(ListedLog(ROWS[:2]), {A: position_at(5)})
    assert "not the same log" in shorter[A].lost


def test_the_file_of_places(tmp_path: Path) -> None:
    file = PositionFile(str(tmp_path / "below" / "places.json"))
    assert file.read() == {}
    file.write({A: position_at(3), B: position_at(0)})
    assert PositionFile(file.path).read() == {A: position_at(3), B: EventPosition(0, None)}
    Path(file.path).write_text("[]")
    with pytest.raises(ConfigurationError):
        file.read()


_WRITER = """
import resource, signal, sys
from hms_cache.jobs.statistics.changes import EventPosition, PositionFile
from hms_cache.metadata.object_names import TableName
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
positions = {TableName("hive", "default", f"t{number}"): EventPosition(number, "x" * 32) for number in range(1000)}
PositionFile(sys.argv[1]).write(positions)
"""


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, prefix: str) -> None:
    """The disk is full, or the process is killed: the next run must be able to read it."""
    path = tmp_path / "places.json"
    file = PositionFile(f"{prefix}{path}")
    file.write({A: position_at(3)})
    done = subprocess.run([sys.executable, "-c", _WRITER, file.path], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert file.read() == {A: position_at(3)}


def test_a_link_to_the_file_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "places.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    PositionFile(str(link)).write({A: position_at(3)})
    assert link.is_symlink()
    assert PositionFile(str(tmp_path / "elsewhere.json")).read() == {A: position_at(3)}
