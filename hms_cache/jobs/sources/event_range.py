"""Places in the notification log, and reading what lies between two without losing anything unnoticed.

Event ids have no gaps and are in commit order (every writer holds the sequence's row until it commits), so a missing id
is a lost event. A digest of the event that a place stands on proves that it is still the same log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from hms_cache.errors import HmsCacheError
from hms_cache.notifications.event_log import EventLog
from hms_cache.notifications.events import NotificationRow
from hms_cache.values import frozen

ROWS_OF_A_READ = 1_000
"""Events asked for at once: messages are of a few KiB, so some MiB."""


class EventLogError(HmsCacheError):
    """The log lacks what was asked for, or is not the log that was read before: to read on would lose events."""


@frozen
class EventPlace:
    """After the event with this id. ``digest`` is that of the event, None if the log did not hold it."""

    event_id: int
    digest: str | None = None

    @classmethod
    def of_offset(cls, offset: dict[str, object]) -> EventPlace:
        """From the JSON of a checkpoint."""
        digest = offset.get("digest")
        return cls(int(str(offset["event_id"])), None if digest is None else str(digest))

    @property
    def offset(self) -> dict[str, object]:
        """As the JSON of a checkpoint."""
        return {"event_id": self.event_id, "digest": self.digest}


def place_after(log: EventLog, event_id: int) -> EventPlace:
    """The place after this event, with its digest if the log holds it."""
    if event_id <= 0:
        return EventPlace(0)
    rows = [row for row in log.fetch(event_id - 1, 2).rows if row.event_id == event_id]
    return EventPlace(event_id, _digest(rows[0]) if rows else None)


def earliest_place(log: EventLog) -> EventPlace:
    """The place before the oldest event that the log holds, its end if it holds none."""
    rows = log.fetch(0, 1).rows
    return place_after(log, rows[0].event_id - 1 if rows else log.head().last_event_id)


def check_place(log: EventLog, place: EventPlace) -> None:
    """Raises EventLogError unless the log still is the one that the place was taken in, and goes on from there.

    A log that was trimmed up to the place and no further goes on: in a quiet night the last event gets older than
    events are kept.
    """
    last_event_id = log.head().last_event_id
    if last_event_id < place.event_id:
        raise EventLogError(
            f"the notification log ends at event {last_event_id}, and event {place.event_id} was read from it before: "
            "it is another history (a database restored from a copy, or another database). "
            "Begin anew with a new checkpoint"
        )
    if place.digest is None:
        return
    found = place_after(log, place.event_id).digest
    if found is None:
        following = log.fetch(place.event_id, 1).rows
        if (following[0].event_id if following else last_event_id + 1) == place.event_id + 1:
            return
        raise EventLogError(
            f"event {place.event_id}, the last one that was read, is no longer in the notification log: it was "
            "trimmed, and what followed may be lost. Read more often than events are kept (metastore.event.db.listener."
            "timetolive), or begin anew with a new checkpoint and start=earliest"
        )
    if found != place.digest:
        raise EventLogError(
            f"event {place.event_id} is not the one that was read before under this id: the notification log is "
            "another history (a database restored from a copy, or another database). Begin anew with a new checkpoint"
        )


def read_events(log: EventLog, after_event_id: int, last_event_id: int) -> Iterator[NotificationRow]:
    """All events after the first id up to the second one, included, by id.

    Raises EventLogError when one is missing.
    """
    expected = after_event_id + 1
    while expected <= last_event_id:
        # One more than the ids that are missing: in logs of before Hive 4 an id may stand twice.
        wanted = min(ROWS_OF_A_READ, last_event_id - expected + 1)
        rows = [row for row in log.fetch(expected - 1, wanted).rows if row.event_id <= last_event_id]
        if not rows:
            raise _missing(expected, last_event_id)
        for row in rows:
            if row.event_id > expected:
                raise _missing(expected, row.event_id - 1)
            if row.event_id == expected:
                expected += 1
            yield row


def _missing(first: int, last: int) -> EventLogError:
    which = f"event {first} is" if first == last else f"events {first} to {last} are"
    return EventLogError(
        f"{which} no longer in the notification log: it was trimmed before they were read, and they cannot be had "
        f"again. To go on without them, begin with a new checkpoint and start={last}"
    )


def _digest(row: NotificationRow) -> str:
    """The same for a row however it was read: the protocol has no null message, and the time is a number of seconds."""
    columns = (row.event_id, row.event_time_s, row.event_type, row.catalog, row.database, row.table, row.message or "")
    return hashlib.blake2b(repr(columns).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
