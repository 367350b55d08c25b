"""Partitions changed since their statistics were computed, by the notification log; and the position of the last
run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from hms_cache.errors import ConfigurationError
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_log import EventLog, digest_of
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.events import NotificationRow, TableAltered
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.scope import PartitionValues
from hms_cache.values import frozen

EVENTS_OF_A_READ = 1_000
"""Number of events per request: some MB if messages are long."""

_CHANGES = frozenset(
    {
        EventType.ADD_PARTITION,
        EventType.ALTER_PARTITION,
        EventType.ALTER_PARTITIONS,
        EventType.DROP_PARTITION,
        EventType.INSERT,
        EventType.RELOAD,
        EventType.CREATE_TABLE,
        EventType.ALTER_TABLE,
    }
)
"""Events after which data may have changed. Writing statistics causes other events."""


@frozen
class EventPosition:
    """A position in the log: the statistics include everything up to this event. The digest proves that it is the same
    log."""

    event_id: int
    digest: str | None


def current_position(log: EventLog) -> EventPosition:
    """The end of the log."""
    head = log.head().last_event_id
    if head < 1:
        return EventPosition(0, None)
    return EventPosition(head, digest_of([row for row in log.fetch(head - 1, 2).rows if row.event_id == head]))


@dataclass(slots=True)
class Changes:
    """Changes of a table since its position."""

    lost: str = ""
    """Why the log cannot be used; then everything counts as changed."""

    whole: bool = False
    """The data of the table as a whole may have changed: any change of an unpartitioned table, an ambiguous one
    otherwise."""

    partitions: set[PartitionValues] = field(default_factory=set)
    touched: bool = False
    """Partitions were added, dropped or changed."""


def changes_since(log: EventLog, positions: Mapping[TableName, EventPosition]) -> dict[TableName, Changes]:
    """The changes of each table since its position, read in one pass over the log."""
    changes = {table: Changes() for table in positions}
    waiting = {position.event_id: position.digest for position in positions.values() if position.event_id > 0}
    # The event at a position is read again; a log that was empty then is read from its beginning.
    first = min((max(position.event_id - 1, 0) for position in positions.values()), default=0)
    head = log.head().last_event_id
    expected = first + 1
    for row in _rows(log, first):
        if row.event_id > expected:
            _gone(expected, row.event_id - 1, positions, changes)
            waiting.pop(row.event_id - 1, None)
        expected = row.event_id + 1
        if row.event_id in waiting and waiting[row.event_id] == digest_of([row]):
            del waiting[row.event_id]
        if row.event_type in _CHANGES:
            _note(row, positions, changes)
    if expected <= head:
        _gone(expected, head, positions, changes)
        waiting.pop(head, None)
    for table, position in positions.items():
        if position.event_id in waiting and not changes[table].lost:
            changes[table].lost = f"event {position.event_id} is missing or has changed: it is not the same log"
    return changes


def _gone(
    first: int, last: int, positions: Mapping[TableName, EventPosition], changes: dict[TableName, Changes]
) -> None:
    """Marks the tables for which the log lacks these events. A position at the last of them misses none: without new
    events, even the event at the position may exceed the log's retention."""
    for table, position in positions.items():
        if position.event_id < last:
            changes[table].lost = changes[table].lost or f"events {first} to {last} are no longer in the log"


def _rows(log: EventLog, after_event_id: int) -> Iterator[NotificationRow]:
    while True:
        page = log.fetch(after_event_id, EVENTS_OF_A_READ)
        yield from page.rows
        if not page.rows:
            return
        after_event_id = page.rows[-1].event_id


def _note(
    row: NotificationRow, positions: Mapping[TableName, EventPosition], changes: dict[TableName, Changes]
) -> None:
    event = read_event(row)
    scope = event.scope
    named = set(scope.partitions) | set(scope.tables)
    everything = scope.everything or bool(scope.whole_databases) or bool(scope.whole_catalogs)
    for table in positions if everything else named & positions.keys():
        if row.event_id <= positions[table].event_id or not scope.concerns_table(table):
            continue
        found = changes[table]
        found.touched = True
        if table in scope.partitions:
            found.partitions.update(scope.partitions[table])
        # An alteration of a partitioned table does not change data; a change of a column's type has removed its
        # statistics.
        elif not isinstance(event, TableAltered) and row.event_type != EventType.CREATE_TABLE:
            found.whole = True


class PositionFile:
    """The positions of all tables, in a JSON file of any file system. Only one job at a time may use it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> dict[TableName, EventPosition]:
        """All positions; none if the file does not exist. Raises ConfigurationError for an invalid file."""
        try:
            with fsspec.open(self.path, "r", encoding="utf-8") as file:
                content = json.load(file)
            return {
                TableName(*name.split(".", 2)): EventPosition(int(position["event_id"]), position["digest"])
                for name, position in content["tables"].items()
            }
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{self.path} is not a file of positions: {error}") from error

    def write(self, positions: Mapping[TableName, EventPosition]) -> None:
        """Replaces the file atomically."""
        tables = {
            ".".join(table): {"event_id": position.event_id, "digest": position.digest}
            for table, position in sorted(positions.items())
        }
        content = json.dumps({"tables": tables}, indent=1)
        file_system, path = url_to_fs(self.path)
        if not isinstance(file_system, LocalFileSystem):  # in an object store, a file appears when it is closed
            with fsspec.open(self.path, "w", encoding="utf-8", auto_mkdir=True) as file:
                file.write(content)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"{target.name}.new")
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
