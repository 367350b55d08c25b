"""Positions in the notification log, and reading the events between two positions without silent loss.

Event ids have no gaps and are in commit order (every writer holds the sequence's row until it commits), so a missing id
is a lost event. A position contains a digest of its event, which proves that the log is still the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from hms_cache.errors import HmsCacheError
from hms_cache.notifications.event_log import EventLog, LogPage
from hms_cache.notifications.events import NotificationRow
from hms_cache.values import frozen

ROWS_OF_A_READ = 1_000
"""Number of events read together: messages have a few KiB, so this is a few MiB."""


class EventLogError(HmsCacheError):
    """Events are missing in the log, or it is not the log that was read before: continuing would lose events."""


@frozen
class EventPosition:
    """The position after the event with this id. ``digest`` is that of the event, None if the log did not contain
    it."""

    event_id: int
    digest: str | None = None

    @classmethod
    def of_offset(cls, offset: dict[str, object]) -> EventPosition:
        """Converts from the JSON of a checkpoint."""
        digest = offset.get("digest")
        return cls(int(str(offset["event_id"])), None if digest is None else str(digest))

    @property
    def offset(self) -> dict[str, object]:
        """The position as JSON for a checkpoint."""
        return {"event_id": self.event_id, "digest": self.digest}


def position_after(log: EventLog, event_id: int) -> EventPosition:
    """The position after this event, with its digest if the log contains it."""
    if event_id <= 0:
        return EventPosition(0)
    rows = [row for row in log.fetch(event_id - 1, 2).rows if row.event_id == event_id]
    return EventPosition(event_id, _digest(rows[0]) if rows else None)


def earliest_position(log: EventLog) -> EventPosition:
    """The position before the oldest event in the log; the end of the log if it is empty."""
    rows = log.fetch(0, 1).rows
    return position_after(log, rows[0].event_id - 1 if rows else log.head().last_event_id)


def check_position(log: EventLog, position: EventPosition) -> None:
    """Raises EventLogError if the log is another one than that of the position, or does not continue there.

    A log that was trimmed exactly up to the position continues there: in a quiet night, the last event may get older
    than the retention time.
    """
    last_event_id = log.head().last_event_id
    if last_event_id < position.event_id:
        raise EventLogError(
            f"the notification log ends at event {last_event_id}, but event {position.event_id} was read from it"
            " before: this is another history (a database restored from a copy, or another database). "
            "Start again with a new checkpoint"
        )
    if position.digest is None:
        return
    found = position_after(log, position.event_id).digest
    if found is None:
        following = log.fetch(position.event_id, 1).rows
        if (following[0].event_id if following else last_event_id + 1) == position.event_id + 1:
            return
        raise EventLogError(
            f"event {position.event_id}, the last one that was read, is no longer in the notification log: it was "
            "trimmed, and later events may be lost. Run the query within the retention time of events (metastore.event."
            "db.listener.timetolive), or start again with a new checkpoint and start=earliest"
        )
    if found != position.digest:
        raise EventLogError(
            f"event {position.event_id} is not the event that was read before with this id: the notification log is "
            "another history (a database restored from a copy, or another database). Start again with a new checkpoint"
        )


def read_events(log: EventLog, after_event_id: int, last_event_id: int) -> Iterator[NotificationRow]:
    """Yields all events after the first id up to and including the second one, by id.

    Raises EventLogError if one is missing.
    """
    expected = after_event_id + 1
    while expected <= last_event_id:
        # More rows than ids: an id may occur twice, and a page that ends before the last id shows that it is complete.
        page = log.fetch(expected - 1, min(ROWS_OF_A_READ, last_event_id - expected + 1) + 2)
        rows = [row for row in _complete(page) if row.event_id <= last_event_id]
        if not rows:
            raise _missing(expected, last_event_id)
        for row in rows:
            if row.event_id > expected:
                raise _missing(expected, row.event_id - 1)
            if row.event_id == expected:
                expected += 1
            yield row


def _complete(page: LogPage) -> Sequence[NotificationRow]:
    """The rows of the page without those of its last id, of which another row may follow: Hive releases without the
    unique index could allocate an id twice (HIVE-16886). A page that has one id only has all rows of it."""
    rows = page.rows
    if page.exhausted or not rows:
        return rows
    return [row for row in rows if row.event_id != rows[-1].event_id] or rows


def _missing(first: int, last: int) -> EventLogError:
    which = f"event {first} is" if first == last else f"events {first} to {last} are"
    return EventLogError(
        f"{which} no longer in the notification log: it was trimmed before they were read, and they cannot be "
        f"recovered. To continue without them, start with a new checkpoint and start={last}"
    )


def _digest(row: NotificationRow) -> str:
    """A digest of the row that does not depend on how it was read: over the protocol, messages are never null, and
    times are in seconds."""
    columns = (row.event_id, row.event_time_s, row.event_type, row.catalog, row.database, row.table, row.message or "")
    return hashlib.blake2b(repr(columns).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
