"""Positions in the notification log as listeners store them, and reading from there.

A position is an event's id and, if the log contained the event, a digest of its row: a database restored from a copy
may give the same ids to other events. Ids have no gaps (see `hms_cache.notifications.event_log`), so a missing id is a
lost event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum

from hms_cache.errors import HmsCacheError
from hms_cache.notifications.event_log import digest_of
from hms_cache.notifications.events import NotificationRow
from hms_cache.values import frozen

ReadRows = Callable[[int, int | None], Sequence[NotificationRow]]
"""Reads rows after an event, by id: at least two if the log has two. The row of the second event id is read only to be
recognized, as in `EventLog`."""

ReadEnd = Callable[[], int]
"""Returns the last event's id."""

_POSITION = re.compile(r"([0-9]{1,18})(?:-([0-9a-f]{32}))?", re.ASCII)


class EndReason(StrEnum):
    """Why a feed ends."""

    EXPIRED = "expired"
    HISTORY_CHANGED = "history_changed"
    SLOW = "slow"
    STOPPING = "stopping"
    REFUSED = "refused"
    FAILED = "failed"


class FeedEndedError(HmsCacheError):
    """The log cannot be continued from a position without a gap."""

    def __init__(self, reason: EndReason, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@frozen
class FeedPosition:
    """The position after the event with this id; as text it is the `id` of a server-sent event."""

    event_id: int
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> FeedPosition:
        """Parses `123` or `123-DIGEST`; raises ValueError for anything else."""
        found = _POSITION.fullmatch(text)
        if found is None:
            raise ValueError(f"not a position: {text[:80]!r}")
        return cls(int(found[1]), found[2])

    @classmethod
    def of(cls, row: NotificationRow) -> FeedPosition:
        """The position after this row."""
        return cls(row.event_id, digest_of([row]))

    def __str__(self) -> str:
        return str(self.event_id) if self.digest is None else f"{self.event_id}-{self.digest}"


def position_at(event_id: int, read_rows: ReadRows) -> FeedPosition:
    """The position after this event, with its digest if the log contains it."""
    for row in read_rows(event_id - 1, event_id) if event_id > 0 else ():
        if row.event_id == event_id:
            return FeedPosition.of(row)
    return FeedPosition(event_id)


def oldest_position(read_rows: ReadRows, read_end: ReadEnd) -> FeedPosition:
    """The position before the oldest event in the log, or the end if it is empty."""
    rows = read_rows(0, None)
    return FeedPosition(rows[0].event_id - 1) if rows else FeedPosition(read_end())


def rows_following(position: FeedPosition, read_rows: ReadRows, read_end: ReadEnd) -> list[NotificationRow]:
    """The next rows; empty at the log's end.

    Also reads the row of the position, so that one statement proves the position and continues. Raises FeedEndedError
    if later events were deleted, or if the log has another history.
    """
    rows = read_rows(max(0, position.event_id - 1), position.event_id)
    if not any(row.event_id >= position.event_id for row in rows):
        # Read before the rows are read again: otherwise an event committed in between would look deleted.
        end = read_end()
        if end < position.event_id:
            raise _history_changed(f"the notification log ends at event {end}, before {position.event_id}")
        if end > position.event_id:
            rows = read_rows(position.event_id, None)
            if not rows:
                raise _expired(position.event_id + 1, end)
    here = [row for row in rows if row.event_id == position.event_id]
    if here and position.digest is not None and all(digest_of([row]) != position.digest for row in here):
        raise _history_changed(f"event {position.event_id} is another one")
    following = [row for row in rows if row.event_id > position.event_id]
    expected = position.event_id + 1
    for row in following:
        # Before Hive 4 an id could be allocated twice (HIVE-16886).
        if row.event_id not in (expected, expected - 1):
            raise _expired(expected, row.event_id - 1)
        expected = row.event_id + 1
    return following


def _expired(first: int, last: int) -> FeedEndedError:
    which = f"event {first} is" if first == last else f"events {first} to {last} are"
    return FeedEndedError(
        EndReason.EXPIRED,
        f"{which} no longer in the notification log (events.retention_s): read everything anew and listen with"
        " after=latest, or go on with after=oldest and miss them",
    )


def _history_changed(what: str) -> FeedEndedError:
    return FeedEndedError(
        EndReason.HISTORY_CHANGED,
        f"{what}: this is another history, such as a database restored from a copy. Read everything anew and listen"
        " with after=latest",
    )
