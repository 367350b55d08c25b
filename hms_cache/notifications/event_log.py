"""The poller's interface to the notification log, and the proof of a position in it.

Event ids are gapless and in commit order, because every writer holds the NOTIFICATION_SEQUENCE row until it commits
(Hive since HIVE-16886, and this program). But an id alone proves nothing: a database restored from a copy gives the
same ids to other events. So a position contains a digest of its row, and the identity of the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from hms_cache.notifications.events import NotificationRow
from hms_cache.values import frozen


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One session on one database server, compared as an object: a new connection, or a connection that a proxy moved
    to another server, has a new one.

    Ids that two reads found in one history are of the same events: a server loses commits only in a crash, a restart or
    a promotion, and these end its sessions.
    """

    server_identity: str
    """Identifies the server, its timeline and the database. If it changes, earlier reads may not be valid any more (a
    failover may have lost commits)."""

    session: str = ""
    """The server's identifier of the session."""

    stale_reason: str | None = None
    """Why reads there may miss a commit that was acknowledged elsewhere; None if they cannot."""


UNKNOWN_HISTORY = History("")
"""For a log without this information."""


class LogHead(NamedTuple):
    """The end of the log. ``last_event_id`` is NEXT_EVENT_ID - 1: 0 for a log that has never had an event."""

    last_event_id: int
    history: History


MAX_RECOGNIZED: Final = 1024 * 1024
"""Messages of up to this many characters are compared as a whole."""

RECOGNIZED_END: Final = 32 * 1024
"""For longer messages, the length and this many characters at each end are compared."""

_LENGTH_OF_MARK: Final = range(2 + len(str(MAX_RECOGNIZED)), 2 + 12)
"""Length of the part between the ends of a shortened message."""


class LogPage(NamedTuple):
    """Rows by ascending event id. ``exhausted``: the log had no further row when this one was read.

    ``history``: where it was read, if it may be another session than that of the head.
    """

    rows: Sequence[NotificationRow]
    exhausted: bool
    history: History | None = None


class EventLog(Protocol):
    """Reads the log. Each call sees the latest commit. Raises the database's exceptions."""

    def head(self) -> LogHead:
        """The end of the log, read by a new statement."""
        ...

    def fetch(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> LogPage:
        """At most ``limit`` rows with larger ids; fewer if they are large, but at least two if the log has two.

        ``known_event_id``: an event whose row is only compared (`digest_of`); a long message in it may be `shortened`.
        """
        ...


class FollowedLog(EventLog, Protocol):
    """A log whose connections can be reopened."""

    def read(self, after_event_id: int, limit: int, known_event_id: int | None = None) -> tuple[LogHead, LogPage]:
        """`head`, then `fetch`: a complete page contains everything that the head counts."""
        ...

    def renew(self) -> None:
        """Drops the connections: they lead to different servers, or to one that is not a primary."""
        ...

    def keep_connections(self, *, enabled: bool) -> None:
        """Whether connections, including those of calls, are reused. Not while the server is not a primary: its address
        may lead to another server at any moment."""
        ...


@frozen
class LogPosition:
    """A position in a log: everything up to ``event_id`` is applied.

    ``row_digest`` is that of the rows with this id (more than one only in logs of Hive releases without the unique
    index on EVENT_ID); ``None`` if the log had no such row at that time, because it was empty or cleaned up to there. A
    stored position is proven again before it is trusted.
    """

    event_id: int
    row_digest: str | None
    server_identity: str


def shortened(length: int, beginning: str, end: str) -> str:
    """The text by which a message of more than `MAX_RECOGNIZED` characters is compared. `beginning` and `end`: at least
    `RECOGNIZED_END` characters of the message.

    Every reader of the log reads the row of its position again each time. If that row contains a table with a parameter
    of 100 MB, every server would otherwise do little else until the next event.
    """
    return f"{beginning[:RECOGNIZED_END]}…{length}…{end[-RECOGNIZED_END:]}"


def is_long(message: str | None) -> bool:
    """Whether comparing a row with this message, complete or `shortened`, requires reading much."""
    text = message or ""
    is_cut = text[RECOGNIZED_END : RECOGNIZED_END + 1] == text[-RECOGNIZED_END - 1 : -RECOGNIZED_END] == "…"
    return len(text) > MAX_RECOGNIZED or (is_cut and len(text) - 2 * RECOGNIZED_END in _LENGTH_OF_MARK)


def _recognized(message: str | None) -> str | None:
    if message is None or len(message) <= MAX_RECOGNIZED:
        return message
    return shortened(len(message), message[:RECOGNIZED_END], message[-RECOGNIZED_END:])


def digest_of(rows: Sequence[NotificationRow]) -> str | None:
    """A digest of all columns of the rows, for a long message of its ends; ``None`` without rows."""
    if not rows:
        return None
    digest = hashlib.blake2b(digest_size=16)
    recognized = [row._replace(message=_recognized(row.message)) for row in rows]
    for row in sorted(recognized, key=lambda row: (row.event_type, row.message or "")):
        digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


class LogDiscontinuity(Exception):
    """The log does not continue what was applied (P7); the text is the reason."""


def rows_after(place: LogPosition, head: LogHead, page: LogPage) -> list[NotificationRow]:
    """The rows of the page that follow the position.

    ``page`` begins with the row of the position and was read after ``head``, so it must contain, or be followed by,
    everything that the head counts. Raises ``LogDiscontinuity`` unless both continue the same log.
    """
    identity = head.history.server_identity
    if place.server_identity and identity != place.server_identity:
        raise LogDiscontinuity(f"the database server is another one: {identity}, not {place.server_identity}")
    if page.history is not None and page.history.server_identity != identity:
        raise LogDiscontinuity(
            f"two database servers answer: {identity} where the log ends, {page.history.server_identity} what is in it"
        )
    if head.last_event_id < place.event_id:
        raise LogDiscontinuity(
            f"the log ends at event {head.last_event_id}, before the last one applied, {place.event_id}"
        )
    here = [row for row in page.rows if row.event_id == place.event_id]
    if place.event_id > 0 and digest_of(here) != place.row_digest:
        what = "is no longer in the log" if not here else "is not the one that was applied"
        raise LogDiscontinuity(f"event {place.event_id} {what}")
    rows = [row for row in page.rows if row.event_id > place.event_id]
    expected = place.event_id + 1
    for row in rows:
        # Releases without the unique index could allocate an id twice (HIVE-16886); both events are applied.
        if row.event_id not in (expected, expected - 1):
            raise LogDiscontinuity(f"events {expected} to {row.event_id - 1} are missing from the log")
        expected = row.event_id + 1
    if page.exhausted and expected <= head.last_event_id:
        raise LogDiscontinuity(f"events {expected} to {head.last_event_id} are missing from the log")
    return rows
